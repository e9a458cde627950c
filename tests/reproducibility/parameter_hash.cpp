// Trains for 50 steps and prints a hash of the parameters, one line per network and scalar type. Whatever compiles it, and for
// whatever processor, the lines are the same.
#include <lockstep/comm/serial.hpp>
#include <lockstep/data/data_loader.hpp>
#include <lockstep/data/synthetic.hpp>
#include <lockstep/engine/simd.hpp>
#include <lockstep/nn/layers.hpp>
#include <lockstep/nn/losses.hpp>
#include <lockstep/nn/model.hpp>
#include <lockstep/nn/sequential.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/train/trainer.hpp>

#include <cinttypes>
#include <cstddef>
#include <cstdio>
#include <exception>

namespace {

using namespace lockstep;

using Reference = Sequential<Linear<784, 512>, ReLU, Linear<512, 128>, ReLU, Linear<128, 64>, ReLU, Linear<64, 10>>;
using EveryLayer =
    Sequential<Linear<30, 50>, Tanh, Dropout<>, Linear<50, 33>, Sigmoid, Linear<33, 20>, Softmax, Linear<20, 10>, LogSoftmax>;

/// `batch_size` rows, so that there is a tail in shards of 16.
template <class Net, class T>
void print_hash(char const* name, std::size_t batch_size, SGD const& sgd) {
    constexpr std::size_t steps = 50;
    auto const data = synthetic_classification<Net::inputs, Net::outputs>(batch_size * 9 + 5, seed(1)); // and a tail of 5
    SerialCommunicator comm;
    DataLoader train{data, comm, {.batch_size = batch_size, .seed = 1}};
    Trainer trainer{Model<Net, SimdEngine, T>{seed(1)}, CrossEntropyLoss{}, sgd, comm};
    trainer.fit(train, {.epochs = static_cast<int>(steps / train.steps())});
    std::printf("%s %s %016" PRIx64 "\n", name, sizeof(T) == 4 ? "float" : "double", trainer.model().parameter_hash());
}

} // namespace

int main() {
    try {
        print_hash<Reference, float>("reference", 64, {.lr = 0.05, .momentum = 0.9});
        print_hash<EveryLayer, float>("every-layer", 41, {.lr = 0.05, .momentum = 0.9, .weight_decay = 1e-3, .nesterov = true});
        print_hash<EveryLayer, double>("every-layer", 41, {.lr = 0.05});
        return 0;
    } catch (std::exception const& error) {
        std::fprintf(stderr, "error: %s\n", error.what());
        return 1;
    }
}
