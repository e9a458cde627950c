#pragma once

#include "lockstep/comm/launch.hpp"
#include "lockstep/comm/serial.hpp"
#include "lockstep/comm/thread.hpp"
#include "lockstep/data/data_loader.hpp"
#include "lockstep/data/synthetic.hpp"
#include "lockstep/engine/cpu.hpp"
#include "lockstep/nn/layers.hpp"
#include "lockstep/nn/losses.hpp"
#include "lockstep/nn/model.hpp"
#include "lockstep/optim/sgd.hpp"
#include "lockstep/train/trainer.hpp"

#include <cstddef>
#include <cstdint>
#include <ratio>
#include <span>
#include <vector>

/// What the tests of the training loop share: a small network with every kind of layer, a dataset of an odd size, a whole
/// training.
namespace training {

using Net =
    lockstep::Sequential<lockstep::Linear<12, 16>, lockstep::ReLU, lockstep::Dropout<std::ratio<1, 4>>, lockstep::Linear<16, 5>>;
using Data = lockstep::ArrayDataset<12, lockstep::ClassLabels<5>>;

inline constexpr std::size_t train_samples = 203;
inline constexpr std::size_t test_samples = 57;

inline Data train_data() { return lockstep::synthetic_classification<12, 5>(train_samples, lockstep::seed(3)); }
inline Data test_data() { return lockstep::synthetic_classification<12, 5>(test_samples, lockstep::seed(3), {.split = 1}); }

struct Options {
    int workers = 1;
    std::size_t batch_size = 17;
    bool drop_last = false;
    int epochs = 3;
    lockstep::SGD sgd{.lr = 0.05, .momentum = 0.9, .weight_decay = 1e-3, .nesterov = true};
};

/// What a training left: rank 0's result and parameters, and each rank's parameter hash after each epoch.
template <class T>
struct Outcome {
    lockstep::Result result;
    std::vector<T> parameters;
    std::vector<std::vector<std::uint64_t>> hashes; ///< [rank][epoch]
};

template <class Comm, class T>
Outcome<T> train(Options const& options) {
    Outcome<T> outcome;
    outcome.hashes.resize(static_cast<std::size_t>(options.workers));
    auto const train_set = train_data();
    auto const test_set = test_data();
    lockstep::launch<Comm>({.num_workers = options.workers}, [&](auto& comm) {
        lockstep::DataLoader train{
            train_set, comm, {.batch_size = options.batch_size, .drop_last = options.drop_last, .seed = 1}};
        lockstep::DataLoader test{test_set, comm, {.batch_size = 20, .shuffle = false}};
        lockstep::Trainer trainer{lockstep::Model<Net, lockstep::CpuEngine, T>{lockstep::seed(1)}, lockstep::CrossEntropyLoss{},
                                  options.sgd, comm};
        for (int epoch = 0; epoch < options.epochs; ++epoch) {
            auto const result = trainer.fit(train, test, {.epochs = 1});
            outcome.hashes[static_cast<std::size_t>(comm.rank())].push_back(trainer.model().parameter_hash());
            if (comm.rank() == 0) { outcome.result.history.push_back(result.history.front()); }
        }
        if (comm.rank() == 0) {
            auto const parameters = trainer.model().parameters();
            outcome.parameters.assign(parameters.begin(), parameters.end());
        }
    });
    return outcome;
}

} // namespace training
