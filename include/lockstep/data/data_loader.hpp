#pragma once

#include "lockstep/core/error.hpp"
#include "lockstep/core/shard_tree.hpp"
#include "lockstep/data/dataset.hpp"
#include "lockstep/data/sampler.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace lockstep {

/// The inputs of a batch, still in the dataset: a `RowSource` whose rows are gathered, converted and scaled when an engine loads
/// them.
template <class DatasetType>
class BatchInputs {
public:
    static constexpr std::size_t width = DatasetType::features;

    BatchInputs() = default;
    BatchInputs(DatasetType const* dataset, std::span<std::uint32_t const> indices) noexcept
        : dataset_{dataset}, indices_{indices} {}

    [[nodiscard]] std::size_t rows() const noexcept { return indices_.size(); }
    template <class T>
    void load(std::size_t row, std::span<T, width> destination) const {
        dataset_->load(indices_[row], destination);
    }
    /// Where the dataset offers `prefetch(index)`: begins to bring a row into the cache.
    void prefetch(std::size_t row) const requires requires(DatasetType const& dataset) { dataset.prefetch(std::size_t{}); }
    { dataset_->prefetch(indices_[row]); }

private:
    DatasetType const* dataset_ = nullptr;
    std::span<std::uint32_t const> indices_;
};

/// The targets of a batch: `targets[row]` is a label or a span, as the dataset gives it.
template <class DatasetType>
class BatchTargets {
public:
    BatchTargets() = default;
    BatchTargets(DatasetType const* dataset, std::span<std::uint32_t const> indices) noexcept
        : dataset_{dataset}, indices_{indices} {}

    [[nodiscard]] std::size_t size() const noexcept { return indices_.size(); }
    [[nodiscard]] decltype(auto) operator[](std::size_t row) const { return dataset_->target(indices_[row]); }

private:
    DatasetType const* dataset_ = nullptr;
    std::span<std::uint32_t const> indices_;
};

/// One worker's part of a global batch; it may have no rows at all. It views the loader and the dataset: the next `begin()`
/// changes what it shows.
template <class DatasetType>
struct Batch {
    BatchInputs<DatasetType> inputs;
    BatchTargets<DatasetType> targets;
    std::span<std::uint32_t const> indices; ///< of the rows, within the dataset
    std::size_t global_rows = 0;            ///< rows of the whole batch, over all workers
    std::size_t first_row = 0;              ///< this part's place within the whole batch
    std::size_t shard_rows = 0;             ///< the whole batch is cut into shards of so many rows; this part has whole ones
    std::uint64_t step = 0;                 ///< counts over all epochs of this loader
    std::size_t step_in_epoch = 0;

    [[nodiscard]] std::size_t rows() const noexcept { return indices.size(); }
};

struct DataLoaderOptions {
    std::size_t batch_size = 64; ///< of the GLOBAL batch: the workers share it
    bool shuffle = true;         ///< another order each epoch
    bool drop_last = false;      ///< leave out a last batch that is not full
    std::uint64_t seed = 0;      ///< of the shuffle; the same on all workers

    /// Rows of the shards that the global batch is cut into; workers get whole ones. Engines that sum shard by shard
    /// (SimdEngine) give the same bits for every number of workers while this stays the same. Without it: 16, halved as long
    /// as some workers would have none. With other engines, 1 spreads the rows most evenly.
    std::optional<std::size_t> shard_rows{};
};

/// Iterates over a dataset in global batches and yields this worker's part of each. Every sample exactly once per epoch, whatever
/// the sizes and the number of workers; all workers make the same number of steps. Each `begin()` starts the next epoch, with its
/// own order; `start_epoch` chooses one. It copies the dataset, so give it one that is cheap to copy (ArrayDataset is). No
/// allocation per step.
template <class DatasetType>
class DataLoader {
    static_assert(
        Dataset<DatasetType, float> || Dataset<DatasetType, double>,
        "lockstep: this type is not a dataset: it needs features, size(), load(index, row), target(index) and classes or "
        "targets, as data/dataset.hpp describes them");

public:
    /// `comm` tells which part is this worker's (anything with rank() and size()). Throws ArgumentError for a batch or shards of
    /// 0 rows, an empty dataset, or one that has no full batch with drop_last.
    template <class Comm>
    DataLoader(DatasetType dataset, Comm const& comm, DataLoaderOptions options = {})
        : dataset_{std::move(dataset)}, options_{options}, rank_{static_cast<std::size_t>(comm.rank())},
          workers_{static_cast<std::size_t>(comm.size())}, sampler_{dataset_.size(), options.shuffle, options.seed} {
        if (options.batch_size == 0) { throw ArgumentError("DataLoader: batch_size must be at least 1, got 0"); }
        if (options.shard_rows == 0U) { throw ArgumentError("DataLoader: shard_rows must be at least 1, got 0"); }
        if (dataset_.size() == 0) { throw ArgumentError("DataLoader: the dataset has no samples"); }
        if (steps() == 0) {
            throw ArgumentError(detail::concat("DataLoader: ", dataset_.size(), " samples make no full batch of ",
                                               options.batch_size, ", and drop_last leaves out the rest"));
        }
    }

    [[nodiscard]] DatasetType const& dataset() const noexcept { return dataset_; }
    [[nodiscard]] DataLoaderOptions const& options() const noexcept { return options_; }

    /// The part that this loader yields: that of worker `rank()` of `workers()`.
    [[nodiscard]] int rank() const noexcept { return static_cast<int>(rank_); }
    [[nodiscard]] int workers() const noexcept { return static_cast<int>(workers_); }

    /// Steps per epoch, the same on all workers.
    [[nodiscard]] std::size_t steps() const noexcept {
        return steps_per_epoch(dataset_.size(), options_.batch_size, options_.drop_last);
    }
    /// Samples that an epoch visits, over all workers.
    [[nodiscard]] std::size_t samples() const noexcept {
        return options_.drop_last ? steps() * options_.batch_size : dataset_.size();
    }
    /// Rows of a shard; see DataLoaderOptions.
    [[nodiscard]] std::size_t shard_rows() const noexcept {
        return options_.shard_rows.value_or(default_shard_rows(full_batch(), workers_));
    }
    /// The workers, by rank, that have no rows in a full batch: there are not enough shards for all.
    [[nodiscard]] std::vector<int> idle_workers() const {
        std::vector<int> idle;
        for (std::size_t rank = 0; rank < workers_; ++rank) {
            if (worker_part({0, full_batch()}, rank, workers_, shard_rows()).size() == 0) {
                idle.push_back(static_cast<int>(rank));
            }
        }
        return idle;
    }
    /// The most rows that any worker's part of a batch has.
    [[nodiscard]] std::size_t max_rows() const noexcept {
        return std::min(full_batch(), (count_shards(full_batch(), shard_rows()) + workers_ - 1) / workers_ * shard_rows());
    }
    /// The most rows that a batch has, over all workers.
    [[nodiscard]] std::size_t full_batch() const noexcept { return std::min(options_.batch_size, dataset_.size()); }

    /// The most partial sums (core/shard_tree.hpp) that this worker has in a batch, for Model::reserve.
    [[nodiscard]] std::size_t max_partial_sums() const {
        std::size_t most = 1;
        for (std::size_t const step : {std::size_t{0}, steps() - 1}) {
            auto const shards = count_shards(global_batch(dataset_.size(), options_.batch_size, step).size(), shard_rows());
            most = std::max(most, count_nodes(part_of(shards, rank_, workers_), shards));
        }
        return most;
    }

    class Iterator {
    public:
        using iterator_category = std::input_iterator_tag;
        using value_type = Batch<DatasetType>;
        using difference_type = std::ptrdiff_t;
        using pointer = value_type const*;
        using reference = value_type;

        Iterator() = default;
        [[nodiscard]] value_type operator*() const { return loader_->batch(step_); }
        Iterator& operator++() {
            ++step_;
            return *this;
        }
        Iterator operator++(int) {
            auto before = *this;
            ++step_;
            return before;
        }
        [[nodiscard]] friend bool operator==(Iterator const& a, Iterator const& b) noexcept { return a.step_ == b.step_; }

    private:
        friend class DataLoader;
        Iterator(DataLoader const* loader, std::size_t step) noexcept : loader_{loader}, step_{step} {}
        DataLoader const* loader_ = nullptr;
        std::size_t step_ = 0;
    };

    /// The epoch that the next `begin()` starts, counted from 0.
    [[nodiscard]] std::uint64_t next_epoch() const noexcept { return next_epoch_; }
    void start_epoch(std::uint64_t epoch) noexcept { next_epoch_ = epoch; }

    [[nodiscard]] Iterator begin() {
        epoch_ = next_epoch_++;
        sampler_.set_epoch(epoch_);
        return {this, 0};
    }
    [[nodiscard]] Iterator end() const noexcept { return {this, steps()}; }

private:
    [[nodiscard]] Batch<DatasetType> batch(std::size_t step) const {
        auto const whole = global_batch(dataset_.size(), options_.batch_size, step);
        auto const part = worker_part(whole, rank_, workers_, shard_rows());
        auto const indices = sampler_.order().subspan(part.first, part.size());
        return {.inputs = {&dataset_, indices},
                .targets = {&dataset_, indices},
                .indices = indices,
                .global_rows = whole.size(),
                .first_row = part.first - whole.first,
                .shard_rows = shard_rows(),
                .step = epoch_ * steps() + step,
                .step_in_epoch = step};
    }

    DatasetType dataset_;
    DataLoaderOptions options_;
    std::size_t rank_;
    std::size_t workers_;
    Sampler sampler_;
    std::uint64_t epoch_ = 0;
    std::uint64_t next_epoch_ = 0;
};

} // namespace lockstep
