#include "lockstep/train/evaluate.hpp"

#include "unit/train/training.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace lockstep;

/// The identity: the scores are the inputs.
using Copy = Sequential<Linear<3, 3>>;
using Scores = ArrayDataset<3, ClassLabels<3>>;

template <class T = float>
Model<Copy, CpuEngine, T> copying_model() {
    Model<Copy, CpuEngine, T> model{seed(1)};
    auto const weight = model.parameter(0);
    for (std::size_t i = 0; i < 9; ++i) { weight[i] = i % 4 == 0 ? T{1} : T{0}; }
    for (auto& bias : model.parameter(1)) { bias = 0; }
    return model;
}

/// Rows that score class `predicted[i]` highest, with labels.
Scores confusion(std::vector<std::size_t> const& predicted, std::vector<int> const& labels) {
    std::vector<float> scores(3 * predicted.size());
    for (std::size_t row = 0; row < predicted.size(); ++row) { scores[3 * row + predicted[row]] = 2; }
    return {scores, labels};
}

TEST(Evaluate, AccuracyIsTheShareOfTheDiagonal) {
    // Right: rows 0, 2, 4, 6, 7, 10.
    auto const data = confusion({0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1}, {0, 0, 2, 1, 1, 0, 0, 1, 1, 2, 1});
    double const right = -std::log(std::exp(2.0) / (std::exp(2.0) + 2));
    double const wrong = -std::log(1 / (std::exp(2.0) + 2));
    for (int const workers : {1, 2, 3, 4, 16}) {
        for (std::size_t const batch_size : {1U, 3U, 4U, 11U, 500U}) {
            launch<ThreadCommunicator>({.num_workers = workers}, [&](auto& comm) {
                auto model = copying_model<double>();
                DataLoader test{data, comm, {.batch_size = batch_size, .shuffle = batch_size == 4}};
                auto const found = evaluate(model, CrossEntropyLoss{}, test, comm);
                EXPECT_EQ(found.accuracy, 6.0 / 11) << workers << " workers, batch " << batch_size;
                EXPECT_NEAR(found.loss, (6 * right + 5 * wrong) / 11, 1e-12) << workers << " workers, batch " << batch_size;
                EXPECT_EQ(found.samples, 11U);
            });
        }
    }
}

TEST(Evaluate, RefusesPartsOfDifferentSets) {
    auto const all = confusion({0, 1, 2, 0}, {0, 1, 2, 0});
    auto const half = confusion({0, 1}, {0, 1});
    std::array<std::string, 2> errors;
    EXPECT_THROW(launch<ThreadCommunicator>({.num_workers = 2},
                                            [&](auto& comm) {
                                                auto model = copying_model();
                                                DataLoader test{comm.rank() == 0 ? half : all, comm};
                                                try {
                                                    static_cast<void>(evaluate(model, CrossEntropyLoss{}, test, comm));
                                                } catch (ArgumentError const& error) {
                                                    errors[static_cast<std::size_t>(comm.rank())] = error.what();
                                                    throw;
                                                }
                                            }),
                 WorkerError);
    std::string const begin = "evaluate: this worker's DataLoader visits ";
    std::string const end =
        " samples over all workers, but together they have visited 3: the workers' datasets or loaders differ";
    EXPECT_EQ(errors[0], begin + "2" + end);
    EXPECT_EQ(errors[1], begin + "4" + end);
}

TEST(Evaluate, TheFirstOfEqualScoresWins) {
    SerialCommunicator comm;
    auto model = copying_model();
    DataLoader test{Scores{std::vector<float>(6), std::vector<int>{0, 1}}, comm};
    EXPECT_EQ(evaluate(model, CrossEntropyLoss{}, test, comm).accuracy, 0.5);
}

TEST(Evaluate, DropLastCountsOnlyWhatItVisits) {
    launch<ThreadCommunicator>({.num_workers = 2}, [](auto& comm) {
        auto model = copying_model();
        DataLoader test{
            confusion({0, 1, 2, 0, 1}, {0, 1, 2, 0, 0}), comm, {.batch_size = 2, .shuffle = false, .drop_last = true}};
        auto const found = evaluate(model, CrossEntropyLoss{}, test, comm);
        EXPECT_EQ(found.samples, 4U);
        EXPECT_EQ(found.accuracy, 1.0);
    });
}

/// Counts how often each sample is loaded.
struct Counting {
    static constexpr std::size_t features = 3;
    static constexpr std::size_t classes = 3;
    std::vector<std::atomic<int>>* loads;

    [[nodiscard]] std::size_t size() const { return loads->size(); }
    template <class T>
    void load(std::size_t index, std::span<T, 3> row) const {
        ++(*loads)[index];
        row[0] = row[1] = row[2] = 0;
    }
    [[nodiscard]] static Label target(std::size_t index) { return static_cast<Label>(index % 3); }
};

TEST(Evaluate, VisitsEverySampleOnce) {
    for (std::size_t const samples : {1U, 2U, 5U, 64U, 203U}) {
        for (int const workers : {1, 2, 3, 7}) {
            std::vector<std::atomic<int>> loads(samples);
            launch<ThreadCommunicator>({.num_workers = workers}, [&](auto& comm) {
                auto model = copying_model();
                DataLoader test{Counting{&loads}, comm, {.batch_size = 10}};
                static_cast<void>(evaluate(model, CrossEntropyLoss{}, test, comm));
            });
            for (auto const& count : loads) { EXPECT_EQ(count, 1) << samples << " samples, " << workers << " workers"; }
        }
    }
}

TEST(Evaluate, RegressionHasNoAccuracy) {
    // (x - t)^2 summed over 2 outputs: 1 + 4, 9 + 0; the mean over outputs and rows: 14 / 4.
    ArrayDataset<2, TargetVectors<2>> const data{std::vector<float>{1, 2, 3, 4}, std::vector<float>{0, 0, 0, 4}};
    launch<ThreadCommunicator>({.num_workers = 2}, [&](auto& comm) {
        Model<Sequential<Linear<2, 2>>, CpuEngine, double> model{seed(1)};
        auto const weight = model.parameter(0);
        weight[0] = weight[3] = 1;
        weight[1] = weight[2] = 0;
        model.parameter(1)[0] = model.parameter(1)[1] = 0;
        DataLoader test{data, comm};
        auto const found = evaluate(model, MSELoss{}, test, comm);
        EXPECT_NEAR(found.loss, 3.5, 1e-12);
        EXPECT_FALSE(found.accuracy.has_value());
    });
}

TEST(Evaluate, IsInEvaluationModeAndPutsTheModeBack) {
    SerialCommunicator comm;
    DataLoader test{training::test_data(), comm, {.batch_size = 10, .shuffle = false}};
    Model<training::Net> model{seed(1)};
    auto const with_dropout_off = evaluate(model, CrossEntropyLoss{}, test, comm).loss;
    EXPECT_TRUE(model.training());
    model.eval();
    EXPECT_EQ(evaluate(model, CrossEntropyLoss{}, test, comm).loss, with_dropout_off);
    EXPECT_FALSE(model.training());
}

TEST(Evaluate, ALoaderThatAlsoTrainsKeepsItsEpochs) {
    SerialCommunicator comm;
    DataLoader data{training::test_data(), comm, {.batch_size = 10, .seed = 1}};
    Model<training::Net> model{seed(1)};
    static_cast<void>(data.begin());
    static_cast<void>(evaluate(model, CrossEntropyLoss{}, data, comm));
    EXPECT_EQ(data.next_epoch(), 1U);
}

/// Labels of any integral type count.
struct UnsignedLabels {
    static constexpr std::size_t features = 3;
    static constexpr std::size_t classes = 3;
    [[nodiscard]] static std::size_t size() { return 6; }
    template <class T>
    void load(std::size_t index, std::span<T, 3> row) const {
        for (std::size_t i = 0; i < 3; ++i) { row[i] = i == index % 3 ? T{2} : T{0}; }
    }
    [[nodiscard]] static std::size_t target(std::size_t index) { return index < 4 ? index % 3 : 0; }
};

TEST(Evaluate, LabelsMayBeUnsigned) {
    SerialCommunicator comm;
    DataLoader data{UnsignedLabels{}, comm};
    auto model = copying_model();
    EXPECT_EQ(evaluate(model, CrossEntropyLoss{}, data, comm).accuracy, 4.0 / 6);
}

} // namespace
