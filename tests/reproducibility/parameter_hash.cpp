// Trains small and large networks and prints hashes of their parameters, one line each. Whatever compiles it, for whatever
// processor, and however many workers train, the lines are the same:
//     parameter_hash <workers> [<steps> <images> <labels>]
// With images and labels of Fashion-MNIST (IDX files, not compressed) it also trains the reference job on them: its first steps,
// with a line each 50 steps. -DFLOAT_ONLY leaves out the network in double, a third of the compile time.
#include <lockstep/comm/launch.hpp>
#include <lockstep/comm/thread.hpp>
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
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace lockstep;

using Reference = Sequential<Linear<784, 512>, ReLU, Linear<512, 128>, ReLU, Linear<128, 64>, ReLU, Linear<64, 10>>;
using EveryLayer = Sequential<Linear<30, 33>, Tanh, Dropout<>, Linear<33, 10>, Sigmoid, Softmax, LogSoftmax>;

constexpr std::size_t print_every = 50;

struct Job {
    char const* name;
    int workers;
    std::size_t batch_size;
    std::size_t steps;
    SGD sgd;
};

template <class Net, class T, class Data>
void print_hashes(Job const& job, Data const& data) {
    launch<ThreadCommunicator>({.num_workers = job.workers}, [&](auto& comm) {
        DataLoader train{data, comm, {.batch_size = job.batch_size, .seed = 1}};
        Trainer trainer{Model<Net, SimdEngine, T>{seed(1)}, CrossEntropyLoss{}, job.sgd, comm};
        std::size_t step = 0;
        while (step < job.steps) {
            for (auto batch = train.begin(); batch != train.end() && step < job.steps; ++batch) {
                trainer.step(*batch);
                if (++step % print_every != 0 || comm.rank() != 0) { continue; }
                std::printf("%s %s step %zu: %016" PRIx64 "\n", job.name, sizeof(T) == 4 ? "float" : "double", step,
                            trainer.model().parameter_hash());
            }
        }
    });
}

/// `batch_size` rows, so that there is a tail in shards of 16.
template <class T>
void print_every_layer(int workers, SGD const& sgd) {
    constexpr std::size_t batch_size = 41;
    auto const data = synthetic_classification<30, 10>(batch_size * 9 + 5, seed(1)); // and a tail of 5
    print_hashes<EveryLayer, T>({"every-layer", workers, batch_size, 50, sgd}, data);
}

/// The bytes of a file of `dimensions` dimensions, without the header. By hand, so that no zlib for another processor is needed.
std::vector<std::uint8_t> values_of(char const* path, std::size_t dimensions) {
    std::ifstream file{path, std::ios::binary};
    std::vector<std::uint8_t> bytes{std::istreambuf_iterator<char>{file}, {}};
    std::size_t const header = 4 * (dimensions + 1);
    if (bytes.size() < header) { throw std::runtime_error(std::string{path} + ": expected an IDX file"); }
    bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(header));
    return bytes;
}

} // namespace

int main(int argc, char** argv) {
    try {
        if (argc != 2 && argc != 5) { throw std::runtime_error("parameter_hash <workers> [<steps> <images> <labels>]"); }
        int const workers = std::stoi(argv[1]);
        print_every_layer<float>(workers, {.lr = 0.05, .momentum = 0.9, .weight_decay = 1e-3, .nesterov = true});
#ifndef FLOAT_ONLY
        print_every_layer<double>(workers, {.lr = 0.05});
#endif
        if (argc == 5) {
            ArrayDataset<784, ClassLabels<10>, std::uint8_t> const data{values_of(argv[3], 3), values_of(argv[4], 1)};
            print_hashes<Reference, float>({"reference", workers, 64, std::stoul(argv[2]), {.lr = 1e-3}}, data);
        }
        return 0;
    } catch (std::exception const& error) {
        std::fprintf(stderr, "error: %s\n", error.what());
        return 1;
    }
}
