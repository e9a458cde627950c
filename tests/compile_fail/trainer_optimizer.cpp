// expect-first: Trainer's third argument is not an optimizer: see optim/optimizer.hpp
#include <lockstep/comm/serial.hpp>
#include <lockstep/nn/layers.hpp>
#include <lockstep/nn/model.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/train/trainer.hpp>

using namespace lockstep;

struct Lion {};

#ifdef LOCKSTEP_CONTROL
using Part = SGD;
#else
using Part = Lion;
#endif

void run(SerialCommunicator& comm) {
    Trainer trainer{Model<Sequential<Linear<4, 2>>>{seed(1)}, CrossEntropyLoss{}, Part{}, comm, ReporterBase{}};
}
