#pragma once

// The reference job with any engine.
#include "options.hpp"
#include "run_file.hpp"

#include <lockstep/core.hpp>
#ifdef FASHION_MNIST_WITH_MPI
#include <lockstep/comm/mpi.hpp>
#endif

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <vector>

namespace fashion_mnist_example {

using namespace lockstep;

using Net = Sequential<Linear<784, 512>, ReLU, Linear<512, 128>, ReLU, Linear<128, 64>, ReLU, Linear<64, 10>>;

/// The first `count` of some images, or all of them.
inline FashionMnist::Images first(FashionMnist::Images const& images, std::size_t count) {
    std::vector<Label> labels(std::min(count, images.size()));
    for (std::size_t i = 0; i < labels.size(); ++i) { labels[i] = images.target(i); }
    return {images.stored_inputs().flat().first(labels.size() * FashionMnist::Images::features), labels};
}

inline FashionMnist load(Options const& options, bool speaks) {
    auto data = fashion_mnist(options.data);
    if (constexpr std::size_t steps = 300; options.smoke_test && options.batch_size < data.train.size() / steps) {
        data.train = first(data.train, steps * options.batch_size);
    }
    if (speaks) {
        std::printf("Fashion-MNIST from %s: %zu training and %zu test images\n", data.source.c_str(), data.train.size(),
                    data.test.size());
    }
    return data;
}

/// What a worker does.
template <class Engine>
Result train(FashionMnist const& data, Options const& options, Communicator auto& comm) {
    DataLoader train{
        data.train, comm, {.batch_size = options.batch_size, .seed = options.seed, .shard_rows = options.shard_rows}};
    DataLoader test{data.test, comm, {.batch_size = 500, .shuffle = false}};
    SGD const sgd{.lr = options.lr, .momentum = options.momentum};
    Trainer trainer{Model<Net, Engine>{seed(options.seed)}, CrossEntropyLoss{}, sgd, comm, ConsoleReporter{}};
    return trainer.fit(train, test, {.epochs = options.epochs});
}

inline Scaling scaling(Options const& options) {
    return {.num_workers = options.num_workers, .timeout_seconds = options.timeout_seconds};
}

/// Before the training, so that it is not for nothing.
inline void check_output(Options const& options) {
    if (!options.json.empty()) { check_writable(options.json); }
}

/// Workers in this process share the data.
template <class Engine, class Comm>
Result train_here(Options const& options) {
    check_output(options);
    static_cast<void>(Engine::description()); // throws for a wrong LOCKSTEP_SIMD, before the data are loaded
    auto const data = load(options, true);
    return launch<Comm>(scaling(options), [&](Communicator auto& comm) { return train<Engine>(data, options, comm); });
}

/// Each process reads the data for itself, as a part of its work: when one cannot, all end, and the error has its rank. A process
/// that ended before it is a worker could leave the others waiting for it.
template <class Engine>
Result train_with_mpi([[maybe_unused]] Options const& options) {
#ifdef FASHION_MNIST_WITH_MPI
    return launch<MpiCommunicator>(scaling(options), [&](Communicator auto& comm) {
        if (comm.rank() == 0) { check_output(options); }
        auto const data = load(options, comm.rank() == 0);
        return train<Engine>(data, options, comm);
    });
#else
    throw UsageError("this program was built without MPI"); // start_workers has said so at length
#endif
}

template <class Engine>
Result train_on(Options const& options) {
    switch (options.backend) {
    case Backend::serial:
        return train_here<Engine, SerialCommunicator>(options);
    case Backend::threads:
        return train_here<Engine, ThreadCommunicator>(options);
    case Backend::mpi:
        return train_with_mpi<Engine>(options);
    }
    throw Error("unknown backend");
}

} // namespace fashion_mnist_example
