// expect-first: Trainer's last arguments are reporters: see train/reporter.hpp
#include <lockstep/comm/serial.hpp>
#include <lockstep/nn/layers.hpp>
#include <lockstep/nn/model.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/train/trainer.hpp>

using namespace lockstep;

struct Silent {
    void on_start(RunInfo const& /*run*/) {}
};
struct Reading : ReporterBase {};

#ifdef LOCKSTEP_CONTROL
using Part = Reading;
#else
using Part = Silent;
#endif

void run(SerialCommunicator& comm) {
    Trainer trainer{Model<Sequential<Linear<4, 2>>>{seed(1)}, CrossEntropyLoss{}, SGD{}, comm, ReporterBase{}, Part{}};
}
