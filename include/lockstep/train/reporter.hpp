#pragma once

#include "lockstep/train/metrics.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace lockstep {

/// What is known before the first step.
struct RunInfo {
    std::string network;        ///< "Linear<784, 512> -> ReLU -> …"
    std::size_t parameters = 0; ///< trainable scalars
    std::string scalar{};       ///< "float" or "double"
    std::string backend{};      ///< the communicator's name
    int workers = 1;
    std::string engine{}; ///< the engine's name
    std::string engine_description{};
    int epochs = 0;
    std::size_t batch_size = 0; ///< global
    std::size_t steps_per_epoch = 0;
    std::size_t samples_per_epoch = 0;
    std::size_t shard_rows = 0;      ///< rows of the shards that a batch is cut into
    bool shard_rows_halved = false;  ///< fewer than usual, because there are more workers than usual shards
    std::vector<int> idle_workers{}; ///< ranks without rows in a full batch
};

/// What is known after each step, over all workers.
struct StepInfo {
    int epoch = 0;           ///< counted from 1
    std::size_t step = 0;    ///< within the epoch, counted from 1
    std::size_t samples = 0; ///< visited in this epoch so far, over all workers
    double loss = 0;         ///< mean over this global batch
    double running_loss = 0; ///< mean over the epoch's samples so far
};

/// Inherit from it to write only the hooks that you want.
struct ReporterBase {
    void on_start(RunInfo const&) {}
    void on_step(StepInfo const&) {}
    void on_epoch(EpochMetrics const&) {}
    void on_end(Result const&) {}
};

/// A reporter watches a training. Its hooks are called on rank 0 only, with values over all workers, between the steps: what they
/// cost, the training waits for. A Trainer takes any number of reporters and calls them in their order.
template <class R>
concept Reporter = requires(R& reporter, RunInfo const& run, StepInfo const& step, EpochMetrics const& epoch,
                            Result const& result) {
    reporter.on_start(run);
    reporter.on_step(step);
    reporter.on_epoch(epoch);
    reporter.on_end(result);
};

static_assert(Reporter<ReporterBase>);

} // namespace lockstep
