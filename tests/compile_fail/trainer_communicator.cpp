// expect-first: Trainer's fourth argument is not a communicator: see comm/communicator.hpp
#include <lockstep/comm/serial.hpp>
#include <lockstep/nn/layers.hpp>
#include <lockstep/nn/model.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/train/trainer.hpp>

using namespace lockstep;

struct Telephone {
    static int rank() { return 0; }
    static int size() { return 1; }
};

#ifdef LOCKSTEP_CONTROL
using Part = SerialCommunicator;
#else
using Part = Telephone;
#endif

void run(Part& comm) {
    Trainer trainer{Model<Sequential<Linear<4, 2>>>{seed(1)}, CrossEntropyLoss{}, SGD{}, comm, ReporterBase{}};
}
