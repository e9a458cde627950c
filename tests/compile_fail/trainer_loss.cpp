// expect-first: Trainer's second argument is not a loss: see nn/losses.hpp
#include <lockstep/comm/serial.hpp>
#include <lockstep/nn/layers.hpp>
#include <lockstep/nn/model.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/train/trainer.hpp>

using namespace lockstep;

struct Hinge {};

#ifdef LOCKSTEP_CONTROL
using Part = CrossEntropyLoss;
#else
using Part = Hinge;
#endif

void run(SerialCommunicator& comm) {
    Trainer trainer{Model<Sequential<Linear<4, 2>>>{seed(1)}, Part{}, SGD{}, comm, ReporterBase{}};
}
