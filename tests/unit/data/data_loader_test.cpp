#include "lockstep/data/data_loader.hpp"

#include "lockstep/core/error.hpp"
#include "lockstep/data/dataset.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace {

using namespace lockstep;

/// A dataset of one's own, as small as it can be: sample i has the inputs (i, 2 i) and the label i % 3.
struct Numbers {
    static constexpr std::size_t features = 2;
    static constexpr std::size_t classes = 3;
    std::size_t count = 0;

    [[nodiscard]] std::size_t size() const { return count; }
    template <class T>
    void load(std::size_t index, std::span<T, 2> row) const {
        row[0] = static_cast<T>(index);
        row[1] = static_cast<T>(2 * index);
    }
    [[nodiscard]] static Label target(std::size_t index) { return static_cast<Label>(index % 3); }
};

/// And one for regression: sample i has the target (i).
struct Line {
    static constexpr std::size_t features = 1;
    static constexpr std::size_t targets = 1;
    [[nodiscard]] static std::size_t size() { return 10; }
    template <class T>
    void load(std::size_t index, std::span<T, 1> row) const {
        row[0] = static_cast<T>(index);
    }
    [[nodiscard]] static std::array<float, 1> target(std::size_t index) { return {static_cast<float>(index)}; }
};

/// All that a DataLoader asks of a communicator.
struct Place {
    int rank_value = 0;
    int size_value = 1;
    [[nodiscard]] int rank() const { return rank_value; }
    [[nodiscard]] int size() const { return size_value; }
};

std::vector<DataLoader<Numbers>> loaders(std::size_t samples, std::size_t workers, DataLoaderOptions const& options) {
    std::vector<DataLoader<Numbers>> all;
    for (std::size_t rank = 0; rank < workers; ++rank) {
        all.emplace_back(Numbers{samples}, Place{static_cast<int>(rank), static_cast<int>(workers)}, options);
    }
    return all;
}

std::vector<std::uint32_t> epoch_of(DataLoader<Numbers>& loader) {
    std::vector<std::uint32_t> indices;
    for (auto const& batch : loader) { indices.insert(indices.end(), batch.indices.begin(), batch.indices.end()); }
    return indices;
}

/// One epoch over all workers, step by step, as they would make it together.
void check_epoch(std::vector<DataLoader<Numbers>>& all, std::size_t samples, DataLoaderOptions const& options) {
    std::vector<int> visits(samples);
    std::size_t visited = 0;
    std::vector<DataLoader<Numbers>::Iterator> at;
    for (auto& loader : all) {
        at.push_back(loader.begin());
        ASSERT_EQ(loader.steps(), all[0].steps());
        ASSERT_EQ(loader.samples(), all[0].samples());
    }
    for (std::size_t step = 0; step < all[0].steps(); ++step) {
        std::size_t rows = 0;
        std::size_t global_rows = 0;
        for (std::size_t rank = 0; rank < all.size(); ++rank) {
            ASSERT_FALSE(at[rank] == all[rank].end());
            auto const batch = *at[rank]++;
            ASSERT_EQ(batch.first_row, rows);
            ASSERT_EQ(batch.shard_rows, all[0].shard_rows());
            ASSERT_TRUE(batch.rows() == 0 || batch.first_row % batch.shard_rows == 0);
            ASSERT_EQ(batch.step_in_epoch, step);
            ASSERT_LE(batch.rows(), all[rank].max_rows());
            ASSERT_EQ(batch.inputs.rows(), batch.rows());
            ASSERT_EQ(batch.targets.size(), batch.rows());
            global_rows = batch.global_rows;
            rows += batch.rows();
            for (auto const index : batch.indices) { ++visits[index]; }
        }
        ASSERT_EQ(rows, global_rows);
        ASSERT_LE(rows, options.batch_size);
        ASSERT_GE(rows, 1U);
        ASSERT_TRUE(rows == options.batch_size || (!options.drop_last && step + 1 == all[0].steps()));
        visited += rows;
    }
    for (std::size_t rank = 0; rank < all.size(); ++rank) { ASSERT_TRUE(at[rank] == all[rank].end()); }
    ASSERT_EQ(visited, all[0].samples());
    ASSERT_EQ(visited, options.drop_last ? samples / options.batch_size * options.batch_size : samples);
    for (int const count : visits) { ASSERT_LE(count, 1); } // together with the sum: exactly once
}

TEST(DataLoader, VisitsEverySampleOnce) {
    for (std::size_t const samples : {1U, 2U, 3U, 7U, 31U, 64U, 203U}) {
        for (std::size_t const batch_size : {1U, 2U, 10U, 17U, 64U, 203U, 1000U}) {
            for (std::size_t const workers : {1U, 2U, 3U, 4U, 7U, 16U}) {
                for (bool const drop_last : {false, true}) {
                    for (bool const shuffle : {false, true}) {
                        if (drop_last && batch_size > samples) { continue; }
                        DataLoaderOptions options{
                            .batch_size = batch_size, .shuffle = shuffle, .drop_last = drop_last, .seed = 5};
                        if (samples % 2 == 0) { options.shard_rows = 3; }
                        auto all = loaders(samples, workers, options);
                        for (int epoch = 0; epoch < 2; ++epoch) {
                            SCOPED_TRACE(testing::Message() << samples << " samples, batch " << batch_size << ", " << workers
                                                            << " workers, drop_last " << drop_last << ", epoch " << epoch);
                            ASSERT_NO_FATAL_FAILURE(check_epoch(all, samples, options));
                        }
                    }
                }
            }
        }
    }
}

TEST(DataLoader, EachEpochHasAnotherOrder) {
    auto loader = loaders(100, 1, {.batch_size = 10, .seed = 1}).front();
    auto const first = epoch_of(loader);
    auto const second = epoch_of(loader);
    EXPECT_NE(first, second);
    auto again = loaders(100, 1, {.batch_size = 10, .seed = 1}).front();
    EXPECT_EQ(epoch_of(again), first);
    EXPECT_EQ(epoch_of(again), second);
    auto other = loaders(100, 1, {.batch_size = 10, .seed = 2}).front();
    EXPECT_NE(epoch_of(other), first);
}

TEST(DataLoader, OrderDoesNotDependOnBatchOrWorkers) {
    auto one = loaders(50, 1, {.batch_size = 50, .seed = 1}).front();
    auto other = loaders(50, 1, {.batch_size = 7, .seed = 1}).front();
    auto const order = epoch_of(one);
    EXPECT_EQ(epoch_of(other), order);
    std::vector<std::uint32_t> together;
    for (auto& loader : loaders(50, 3, {.batch_size = 50, .seed = 1})) {
        auto const part = epoch_of(loader);
        together.insert(together.end(), part.begin(), part.end());
    }
    EXPECT_EQ(together, order);
}

TEST(DataLoader, StartEpochChoosesOne) {
    auto loader = loaders(100, 1, {.batch_size = 10, .seed = 1}).front();
    EXPECT_EQ(loader.next_epoch(), 0U);
    auto const first = epoch_of(loader);
    auto const second = epoch_of(loader);
    EXPECT_EQ(loader.next_epoch(), 2U);
    loader.start_epoch(1);
    EXPECT_EQ(loader.next_epoch(), 1U);
    EXPECT_EQ(epoch_of(loader), second);
    loader.start_epoch(0);
    EXPECT_EQ(epoch_of(loader), first);
}

TEST(DataLoader, WithoutShuffleTheOrderIsTheDatasets) {
    auto loader = loaders(5, 1, {.batch_size = 2, .shuffle = false}).front();
    for (int epoch = 0; epoch < 2; ++epoch) { EXPECT_EQ(epoch_of(loader), (std::vector<std::uint32_t>{0, 1, 2, 3, 4})); }
}

TEST(DataLoader, StepsCountOverEpochs) {
    auto loader = loaders(10, 2, {.batch_size = 4}).back();
    std::vector<std::uint64_t> steps;
    for (int epoch = 0; epoch < 2; ++epoch) {
        for (auto const& batch : loader) { steps.push_back(batch.step); }
    }
    EXPECT_EQ(steps, (std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5}));
    loader.start_epoch(7);
    EXPECT_EQ((*loader.begin()).step, 21U);
}

TEST(DataLoader, GivesTheDatasetsRows) {
    auto loader = loaders(20, 3, {.batch_size = 7, .seed = 9}).at(1);
    for (auto const& batch : loader) {
        for (std::size_t row = 0; row < batch.rows(); ++row) {
            std::array<double, 2> inputs{};
            batch.inputs.load(row, std::span<double, 2>{inputs});
            EXPECT_EQ(inputs[0], batch.indices[row]);
            EXPECT_EQ(inputs[1], 2 * batch.indices[row]);
            EXPECT_EQ(batch.targets[row], static_cast<Label>(batch.indices[row] % 3));
        }
    }
}

TEST(DataLoader, GivesTargetVectors) {
    DataLoader loader{Line{}, Place{}, {.batch_size = 3}};
    std::size_t rows = 0;
    for (auto const& batch : loader) {
        for (std::size_t row = 0; row < batch.rows(); ++row, ++rows) {
            EXPECT_EQ(batch.targets[row][0], static_cast<float>(batch.indices[row]));
        }
    }
    EXPECT_EQ(rows, 10U);
}

TEST(DataLoader, RefusesWhatMakesNoBatch) {
    auto const text_of = [](std::size_t samples, DataLoaderOptions const& options) -> std::string {
        try {
            DataLoader const loader{Numbers{samples}, Place{}, options};
        } catch (ArgumentError const& error) { return error.what(); }
        return "accepted";
    };
    EXPECT_EQ(text_of(10, {.batch_size = 0}), "DataLoader: batch_size must be at least 1, got 0");
    EXPECT_EQ(text_of(0, {.batch_size = 4}), "DataLoader: the dataset has no samples");
    EXPECT_EQ(text_of(0, {.batch_size = 4, .drop_last = true}), "DataLoader: the dataset has no samples");
    EXPECT_EQ(text_of(9, {.batch_size = 10, .drop_last = true}),
              "DataLoader: 9 samples make no full batch of 10, and drop_last leaves out the rest");
    EXPECT_EQ(text_of(10, {.batch_size = 10, .drop_last = true}), "accepted");
}

} // namespace
