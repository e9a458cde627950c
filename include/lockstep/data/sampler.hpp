#pragma once

#include "lockstep/core/error.hpp"
#include "lockstep/core/random.hpp"
#include "lockstep/core/shard_tree.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace lockstep {

/// The number of steps that one epoch has, the same on every worker: a pure function of the three.
[[nodiscard]] constexpr std::size_t steps_per_epoch(std::size_t samples, std::size_t batch_size, bool drop_last) noexcept {
    return drop_last ? samples / batch_size : samples / batch_size + (samples % batch_size != 0 ? 1 : 0);
}

/// The positions, within the epoch's order, of the global batch number `step`: `batch_size` of them, fewer in an exact tail.
[[nodiscard]] constexpr Range global_batch(std::size_t samples, std::size_t batch_size, std::size_t step) noexcept {
    return {std::min(samples, step * batch_size), std::min(samples, (step + 1) * batch_size)};
}

/// The part of a global batch that belongs to worker `rank` of `workers`: whole shards, contiguous, together exactly the batch,
/// their numbers differing by at most one; 0 rows for some when there are more workers than shards.
[[nodiscard]] constexpr Range worker_part(Range batch, std::size_t rank, std::size_t workers, std::size_t shard_rows) noexcept {
    auto const shards = part_of(count_shards(batch.size(), shard_rows), rank, workers);
    std::size_t const rows = std::min(shard_rows, batch.size()); // no product overflows
    return {std::min(batch.last, batch.first + shards.first * rows), std::min(batch.last, batch.first + shards.last * rows)};
}

/// The usual shards of a batch, of 16 rows, or of fewer where some workers would have none.
[[nodiscard]] constexpr std::size_t default_shard_rows(std::size_t rows, std::size_t workers) noexcept {
    std::size_t shard_rows = usual_shard_rows;
    while (shard_rows > 1 && count_shards(rows, shard_rows) < workers) { shard_rows /= 2; }
    return shard_rows;
}

/// The order in which an epoch visits the samples: every index once, shuffled by (seed, epoch) alone, the same on all workers.
class Sampler {
public:
    /// Throws ArgumentError for more than 2^32 - 1 samples.
    Sampler(std::size_t samples, bool shuffle, std::uint64_t seed) : shuffle_{shuffle}, seed_{seed} {
        if (samples > std::numeric_limits<std::uint32_t>::max()) {
            throw ArgumentError(detail::concat("a dataset can have at most 4294967295 samples, got ", samples));
        }
        order_.resize(samples);
        std::iota(order_.begin(), order_.end(), 0U);
    }

    /// Prepares the order of epoch `epoch`. Fisher–Yates, drawing by Lemire's method ("Fast random integer generation in an
    /// interval", ACM TOMACS 29, 2019), from the start order each time: epochs can be had in any sequence.
    void set_epoch(std::uint64_t epoch) {
        if (!shuffle_) { return; }
        std::iota(order_.begin(), order_.end(), 0U);
        // The epoch is part of the key, so that the whole stream is left for the draws.
        RandomStream const epochs{seed_, RandomPurpose::shuffle, 0};
        auto const key = epochs.block(epoch);
        RandomStream const stream{std::uint64_t{key[0]} << 32U | key[1], RandomPurpose::shuffle, 1};
        std::uint64_t drawn = 0;
        std::array<std::uint32_t, 4> words{};
        auto const next = [&] {
            if (drawn % 4 == 0) { words = stream.block(drawn / 4); }
            return words[drawn++ % 4];
        };
        for (std::size_t i = order_.size(); i > 1; --i) {
            auto const bound = static_cast<std::uint32_t>(i);
            std::uint64_t product = std::uint64_t{next()} * bound;
            if (static_cast<std::uint32_t>(product) < bound) {
                std::uint32_t const threshold = (0U - bound) % bound;
                while (static_cast<std::uint32_t>(product) < threshold) { product = std::uint64_t{next()} * bound; }
            }
            std::swap(order_[i - 1], order_[product >> 32U]);
        }
    }

    /// Sample indices in the order of the current epoch.
    [[nodiscard]] std::span<std::uint32_t const> order() const noexcept { return order_; }

private:
    bool shuffle_;
    std::uint64_t seed_;
    std::vector<std::uint32_t> order_;
};

} // namespace lockstep
