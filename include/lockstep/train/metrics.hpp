#pragma once

#include "lockstep/core/error.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

/// What one epoch gave, over all workers. Losses are sums of sample losses divided once by the number of samples.
struct EpochMetrics {
    int epoch = 0; ///< counted from 1
    double train_loss = 0;
    std::optional<double> validation_loss{}; ///< without test data: none
    std::optional<double> accuracy{};        ///< share of test samples classified correctly, in [0, 1]; only for class labels
    double samples_per_second = 0;           ///< training alone
    double seconds = 0;                      ///< training and validation
};

/// Values by name, read as `metrics["accuracy"]`, also from a constant; ArgumentError for a name that is not there.
struct Metrics : std::map<std::string, double> {
    using map::map;
    [[nodiscard]] double operator[](std::string const& name) const {
        auto const found = find(name);
        if (found != end()) { return found->second; }
        std::string names;
        for (auto const& [known, value] : *this) { names += (names.empty() ? "" : ", ") + known; }
        throw ArgumentError(detail::concat("there is no metric \"", name, "\", only ", names));
    }
};

/// What a training gave. The same on every worker.
struct Result {
    std::vector<EpochMetrics> history;           ///< one entry per epoch
    Metrics metrics;                             ///< the last epoch's, by the names of EpochMetrics' members
    std::vector<std::uint64_t> parameter_hashes; ///< one per worker; they are equal, or the training would have failed
    std::uint64_t skipped_steps = 0;             ///< with NonFinite::skip
    std::size_t shard_rows = 0;                  ///< as DataLoader::shard_rows: runs that shall give the same bits need the same
};

/// What `evaluate` found, over all workers.
struct Evaluation {
    double loss = 0;                  ///< mean over the samples
    std::optional<double> accuracy{}; ///< only for class labels
    std::size_t samples = 0;
};

/// The loss of a batch, or the validation loss after an epoch, was infinite or not a number. Every worker stops at the same step
/// with this same error; `launch` throws it nested in a `WorkerError`.
struct NonFiniteLoss : Error {
    NonFiniteLoss(int in_epoch, std::size_t step_in_epoch, double value, char const* which = "loss")
        : Error(detail::concat("the ", which, " is ", value != value ? "nan" : detail::concat(value), " in epoch ", in_epoch,
                               ", step ", step_in_epoch, ": lower the learning rate or look for bad values in the data")),
          epoch{in_epoch}, step{step_in_epoch}, loss{value} {}

    int epoch;        ///< counted from 1
    std::size_t step; ///< within the epoch, counted from 1
    double loss;
};

namespace detail {

[[nodiscard]] inline Metrics named(EpochMetrics const& metrics) {
    Metrics all{{"epoch", metrics.epoch},
                {"train_loss", metrics.train_loss},
                {"samples_per_second", metrics.samples_per_second},
                {"seconds", metrics.seconds}};
    if (metrics.validation_loss) { all.emplace("validation_loss", *metrics.validation_loss); }
    if (metrics.accuracy) { all.emplace("accuracy", *metrics.accuracy); }
    return all;
}

} // namespace detail
} // namespace lockstep
