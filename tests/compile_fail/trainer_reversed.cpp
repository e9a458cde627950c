// Two arguments in the wrong order.
// expect-first: Trainer's second argument is not a loss: see nn/losses.hpp
#include <lockstep/comm/serial.hpp>
#include <lockstep/nn/layers.hpp>
#include <lockstep/nn/model.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/train/trainer.hpp>

using namespace lockstep;

void run(SerialCommunicator& comm) {
#ifdef LOCKSTEP_CONTROL
    Trainer trainer{Model<Sequential<Linear<4, 2>>>{seed(1)}, CrossEntropyLoss{}, SGD{}, comm};
#else
    Trainer trainer{Model<Sequential<Linear<4, 2>>>{seed(1)}, SGD{}, CrossEntropyLoss{}, comm};
#endif
}
