#include "lockstep/data/sampler.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace {

using lockstep::Range;
using lockstep::Sampler;

std::vector<std::uint32_t> order_of(std::size_t samples, std::uint64_t seed, std::uint64_t epoch) {
    Sampler sampler{samples, true, seed};
    sampler.set_epoch(epoch);
    return {sampler.order().begin(), sampler.order().end()};
}

bool is_permutation_of_indices(std::vector<std::uint32_t> order) {
    std::sort(order.begin(), order.end());
    for (std::size_t i = 0; i < order.size(); ++i) {
        if (order[i] != i) { return false; }
    }
    return true;
}

TEST(StepsPerEpoch, CountsFullBatchesAndTheTail) {
    EXPECT_EQ(lockstep::steps_per_epoch(60'000, 64, false), 938U);
    EXPECT_EQ(lockstep::steps_per_epoch(60'000, 64, true), 937U);
    EXPECT_EQ(lockstep::steps_per_epoch(128, 64, false), 2U);
    EXPECT_EQ(lockstep::steps_per_epoch(128, 64, true), 2U);
    EXPECT_EQ(lockstep::steps_per_epoch(1, 64, false), 1U);
    EXPECT_EQ(lockstep::steps_per_epoch(1, 64, true), 0U);
    EXPECT_EQ(lockstep::steps_per_epoch(0, 64, false), 0U);
    EXPECT_EQ(lockstep::steps_per_epoch(7, 1, false), 7U);
    EXPECT_EQ(lockstep::steps_per_epoch(7, std::numeric_limits<std::size_t>::max(), false), 1U);
}

TEST(WorkerPart, TogetherTheyAreTheBatch) {
    for (std::size_t size = 0; size <= 70; ++size) {
        for (std::size_t const workers : {1U, 2U, 3U, 4U, 7U, 64U, 100U}) {
            for (std::size_t const shard_rows : {std::size_t{1}, std::size_t{4}, std::size_t{16}, ~std::size_t{0}}) {
                std::size_t next = 5;
                std::size_t smallest = size;
                std::size_t largest = 0;
                for (std::size_t rank = 0; rank < workers; ++rank) {
                    auto const part = lockstep::worker_part(Range{5, 5 + size}, rank, workers, shard_rows);
                    ASSERT_EQ(part.first, next) << size << " rows, rank " << rank << " of " << workers;
                    ASSERT_TRUE(part.size() == 0 || (part.first - 5) % shard_rows == 0) << "a shard is divided";
                    next = part.last;
                    auto const shards = lockstep::count_shards(part.size(), shard_rows);
                    smallest = std::min(smallest, shards);
                    largest = std::max(largest, shards);
                }
                ASSERT_EQ(next, 5 + size);
                ASSERT_LE(largest - smallest, 1U);
            }
        }
    }
}

TEST(WorkerPart, UsualShardsLeaveNobodyWithoutWork) {
    EXPECT_EQ(lockstep::default_shard_rows(64, 1), 16U);
    EXPECT_EQ(lockstep::default_shard_rows(64, 4), 16U);
    EXPECT_EQ(lockstep::default_shard_rows(64, 5), 8U);
    EXPECT_EQ(lockstep::default_shard_rows(33, 4), 8U);
    EXPECT_EQ(lockstep::default_shard_rows(64, 16), 4U);
    EXPECT_EQ(lockstep::default_shard_rows(64, 100), 1U);
    EXPECT_EQ(lockstep::default_shard_rows(3, 2), 2U);
}

TEST(GlobalBatch, IsShortOnlyAtTheEnd) {
    EXPECT_EQ(lockstep::global_batch(203, 64, 0).size(), 64U);
    EXPECT_EQ(lockstep::global_batch(203, 64, 3).first, 192U);
    EXPECT_EQ(lockstep::global_batch(203, 64, 3).last, 203U);
    EXPECT_EQ(lockstep::global_batch(203, 64, 4).size(), 0U);
    EXPECT_EQ(lockstep::global_batch(3, 500, 0).size(), 3U);
}

TEST(Sampler, EveryEpochIsAPermutation) {
    for (std::size_t const samples : {0U, 1U, 2U, 3U, 5U, 31U, 1000U, 4099U}) {
        for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
            auto const order = order_of(samples, 17, epoch);
            EXPECT_EQ(order.size(), samples);
            EXPECT_TRUE(is_permutation_of_indices(order)) << samples << " samples, epoch " << epoch;
        }
    }
}

// The same on every compiler and machine, now and later: a training can be repeated from its seed alone.
TEST(Sampler, OrderIsAFunctionOfSeedAndEpoch) {
    auto const first_of = [](std::uint64_t seed, std::uint64_t epoch) {
        auto order = order_of(60'000, seed, epoch);
        order.resize(6);
        return order;
    };
    EXPECT_EQ(first_of(1, 0), (std::vector<std::uint32_t>{37075, 50538, 34215, 40003, 23177, 13174}));
    EXPECT_EQ(first_of(1, 1), (std::vector<std::uint32_t>{56631, 9840, 52607, 37081, 41400, 9677}));
    EXPECT_EQ(first_of(2, 0), (std::vector<std::uint32_t>{49748, 41640, 42541, 24479, 51780, 47944}));
    EXPECT_EQ(order_of(10, 1, 0), (std::vector<std::uint32_t>{6, 9, 1, 4, 2, 7, 3, 8, 0, 5}));
}

TEST(Sampler, EpochsCanBeHadInAnySequence) {
    Sampler sampler{100, true, 3};
    for (std::uint64_t const epoch : {7U, 0U, 7U, 2U}) {
        sampler.set_epoch(epoch);
        EXPECT_EQ(std::vector<std::uint32_t>(sampler.order().begin(), sampler.order().end()), order_of(100, 3, epoch));
    }
}

TEST(Sampler, OrdersDifferBetweenEpochsAndSeeds) {
    EXPECT_NE(order_of(100, 1, 0), order_of(100, 1, 1));
    EXPECT_NE(order_of(100, 1, 0), order_of(100, 2, 0));
    EXPECT_NE(order_of(100, 1, 1), order_of(100, 2, 0));
    EXPECT_NE(order_of(100, 0, 1), order_of(100, 1, 0));
    EXPECT_NE(order_of(100, std::uint64_t{1} << 32U, 0), order_of(100, 1, 0));
    EXPECT_NE(order_of(100, 1, std::uint64_t{1} << 32U), order_of(100, 1, 0));
}

TEST(Sampler, WithoutShuffleTheOrderIsTheDatasets) {
    Sampler sampler{5, false, 1};
    sampler.set_epoch(3);
    EXPECT_EQ(std::vector<std::uint32_t>(sampler.order().begin(), sampler.order().end()),
              (std::vector<std::uint32_t>{0, 1, 2, 3, 4}));
}

// Every sample is equally likely at every place. With 16 x 16 cells the statistic has 225 degrees of freedom: it exceeds 330 by
// chance once in 100 000 times, and the seed is fixed.
TEST(Sampler, ShuffleIsUniform) {
    constexpr std::size_t samples = 16;
    constexpr std::size_t epochs = 16'000;
    std::array<std::array<double, samples>, samples> counts{};
    Sampler sampler{samples, true, 12345};
    for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
        sampler.set_epoch(epoch);
        for (std::size_t place = 0; place < samples; ++place) { ++counts[place][sampler.order()[place]]; }
    }
    constexpr double expected = double{epochs} / samples;
    double chi_square = 0;
    for (auto const& row : counts) {
        for (double const count : row) { chi_square += (count - expected) * (count - expected) / expected; }
    }
    EXPECT_LT(chi_square, 330);
    EXPECT_GT(chi_square, 140); // too even would not be random either
}

// All orders of 4 samples equally likely: 23 degrees of freedom.
TEST(Sampler, EveryOrderIsEquallyLikely) {
    constexpr std::size_t epochs = 24'000;
    std::array<double, 256> counts{};
    Sampler sampler{4, true, 99};
    for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
        sampler.set_epoch(epoch);
        auto const order = sampler.order();
        ++counts[order[0] * 64 + order[1] * 16 + order[2] * 4 + order[3]];
    }
    double chi_square = 0;
    std::size_t seen = 0;
    for (double const count : counts) {
        if (count == 0) { continue; }
        ++seen;
        chi_square += (count - 1000) * (count - 1000) / 1000;
    }
    EXPECT_EQ(seen, 24U);
    EXPECT_LT(chi_square, 60);
}

TEST(Sampler, RefusesMoreSamplesThanItsIndicesReach) {
    if constexpr (sizeof(std::size_t) > 4) { EXPECT_THROW((Sampler{std::size_t{1} << 32U, true, 1}), lockstep::ArgumentError); }
}

} // namespace
