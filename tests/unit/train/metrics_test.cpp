#include "lockstep/train/metrics.hpp"

#include "unit/train/training.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace {

using namespace lockstep;

using Linear53 = Sequential<Linear<12, 5>>;
using DoubleModel = Model<Linear53, CpuEngine, double>;

/// The mean cross entropy over all samples by hand, in double, from the state dict.
double loss_by_hand(DoubleModel const& model, training::Data const& data) {
    auto const state = model.state_dict();
    auto const& weight = state.at("0.weight").values;
    auto const& bias = state.at("0.bias").values;
    double total = 0;
    for (std::size_t sample = 0; sample < data.size(); ++sample) {
        std::vector<double> x(12);
        data.load(sample, std::span<double, 12>{x});
        std::vector<double> scores(bias.begin(), bias.end());
        double sum = 0;
        for (std::size_t k = 0; k < 5; ++k) {
            for (std::size_t i = 0; i < 12; ++i) { scores[k] += weight[k * 12 + i] * x[i]; }
            sum += std::exp(scores[k]);
        }
        total += std::log(sum) - scores[static_cast<std::size_t>(data.target(sample))];
    }
    return total / static_cast<double>(data.size());
}

Result fit_standing_still(int workers, std::size_t batch_size, int epochs) {
    return launch<ThreadCommunicator>({.num_workers = workers}, [&](auto& comm) {
        DataLoader train{training::train_data(), comm, {.batch_size = batch_size, .seed = 1}};
        DataLoader test{training::test_data(), comm, {.batch_size = batch_size}};
        Trainer trainer{DoubleModel{seed(1)}, CrossEntropyLoss{}, SGD{.lr = 0}, comm};
        return trainer.fit(train, test, {.epochs = epochs});
    });
}

// With a learning rate of 0 the loss of an epoch is that of the initial parameters, whatever the batch and the workers.
TEST(Metrics, TrainLossIsTheSumOfSampleLossesDividedOnce) {
    DoubleModel const model{seed(1)};
    double const train_loss = loss_by_hand(model, training::train_data());
    double const validation_loss = loss_by_hand(model, training::test_data());
    for (int const workers : {1, 2, 3, 7}) {
        for (std::size_t const batch_size : {1U, 10U, 64U, 500U}) {
            for (auto const& epoch : fit_standing_still(workers, batch_size, 2).history) {
                EXPECT_NEAR(epoch.train_loss, train_loss, 1e-12) << workers << " workers, batch " << batch_size;
                EXPECT_NEAR(epoch.validation_loss.value_or(0), validation_loss, 1e-12);
            }
        }
    }
}

TEST(Metrics, AccuracyDoesNotDependOnWorkersAndBatch) {
    double const expected = *fit_standing_still(1, 500, 1).history[0].accuracy;
    EXPECT_GT(expected, 0);
    EXPECT_LT(expected, 1);
    for (int const workers : {1, 2, 3, 7, 64}) {
        for (std::size_t const batch_size : {10U, 50U}) {
            EXPECT_EQ(fit_standing_still(workers, batch_size, 1).history[0].accuracy, expected);
        }
    }
}

TEST(Metrics, AreTheLastEpochs) {
    auto const result = fit_standing_still(2, 50, 3);
    ASSERT_EQ(result.history.size(), 3U);
    for (int epoch = 1; epoch <= 3; ++epoch) {
        auto const& entry = result.history[static_cast<std::size_t>(epoch - 1)];
        EXPECT_EQ(entry.epoch, epoch);
        EXPECT_GT(entry.samples_per_second, 0);
        EXPECT_GT(entry.seconds, 0);
        // Training alone is not slower than training and validation.
        EXPECT_GE(entry.samples_per_second, training::train_samples / entry.seconds);
    }
    auto const& last = result.history.back();
    std::map<std::string, double> const expected{{"epoch", 3},
                                                 {"train_loss", last.train_loss},
                                                 {"validation_loss", *last.validation_loss},
                                                 {"accuracy", *last.accuracy},
                                                 {"samples_per_second", last.samples_per_second},
                                                 {"seconds", last.seconds}};
    EXPECT_EQ(result.metrics, expected);
    EXPECT_EQ(result.parameter_hashes.size(), 2U);
    EXPECT_EQ(std::set(result.parameter_hashes.begin(), result.parameter_hashes.end()).size(), 1U);
    EXPECT_EQ(result.parameter_hashes[0], DoubleModel{seed(1)}.parameter_hash());
    EXPECT_EQ(result.skipped_steps, 0U);
}

TEST(Metrics, WithoutTestDataThereIsNoValidation) {
    SerialCommunicator comm;
    DataLoader train{training::train_data(), comm};
    Trainer trainer{DoubleModel{seed(1)}, CrossEntropyLoss{}, SGD{}, comm};
    auto const result = trainer.fit(train);
    EXPECT_FALSE(result.history[0].validation_loss.has_value());
    EXPECT_FALSE(result.history[0].accuracy.has_value());
    EXPECT_FALSE(result.metrics.contains("validation_loss"));
    EXPECT_FALSE(result.metrics.contains("accuracy"));
    EXPECT_TRUE(result.metrics.contains("train_loss"));
}

TEST(Metrics, RegressionHasNoAccuracy) {
    launch<ThreadCommunicator>({.num_workers = 2}, [](auto& comm) {
        DataLoader train{synthetic_regression<4, 2>(101, seed(1)), comm, {.batch_size = 10}};
        DataLoader test{synthetic_regression<4, 2>(33, seed(1), {.split = 1}), comm};
        Trainer trainer{Model<Sequential<Linear<4, 2>>>{seed(1)}, MSELoss{}, SGD{.lr = 0.1}, comm};
        auto const result = trainer.fit(train, test, {.epochs = 20});
        EXPECT_FALSE(result.history.back().accuracy.has_value());
        EXPECT_FALSE(result.metrics.contains("accuracy"));
        EXPECT_LT(result.metrics.at("validation_loss"), 0.1 * *result.history.front().validation_loss);
    });
}

// The same on every worker, not only on rank 0.
TEST(Metrics, EveryWorkerHasTheSameResult) {
    std::vector<Result> results(3);
    launch<ThreadCommunicator>({.num_workers = 3}, [&](auto& comm) {
        DataLoader train{training::train_data(), comm};
        DataLoader test{training::test_data(), comm};
        Trainer trainer{Model<training::Net>{seed(1)}, CrossEntropyLoss{}, SGD{.lr = 0.1}, comm};
        results[static_cast<std::size_t>(comm.rank())] = trainer.fit(train, test, {.epochs = 2});
    });
    for (auto const& result : results) {
        EXPECT_EQ(result.metrics.at("train_loss"), results[0].metrics.at("train_loss"));
        EXPECT_EQ(result.metrics.at("validation_loss"), results[0].metrics.at("validation_loss"));
        EXPECT_EQ(result.metrics.at("accuracy"), results[0].metrics.at("accuracy"));
        EXPECT_EQ(result.parameter_hashes, results[0].parameter_hashes);
    }
}

TEST(Metrics, AreReadByName) {
    Metrics const metrics{{"accuracy", 0.5}, {"train_loss", 2}};
    EXPECT_EQ(metrics["accuracy"], 0.5);
    try {
        static_cast<void>(metrics["acuracy"]);
        ADD_FAILURE() << "no error";
    } catch (ArgumentError const& error) {
        EXPECT_STREQ(error.what(), "there is no metric \"acuracy\", only accuracy, train_loss");
    }
}

} // namespace
