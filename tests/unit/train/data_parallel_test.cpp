// A training on any number of workers is the training on one.
#include "lockstep/train/trainer.hpp"

#include "unit/train/training.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace {

using lockstep::SerialCommunicator;
using lockstep::SGD;
using lockstep::ThreadCommunicator;
using training::Options;
using training::Outcome;

template <class T>
double distance(std::vector<T> const& a, std::vector<T> const& b) {
    if (a.size() != b.size() || a.empty()) { return INFINITY; }
    double worst = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        double const difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
        if (!(difference <= worst)) { worst = difference; }
    }
    return worst;
}

void expect_replicas_equal(std::vector<std::vector<std::uint64_t>> const& hashes, int epochs) {
    for (auto const& of_rank : hashes) { EXPECT_EQ(of_rank, hashes.front()); }
    EXPECT_EQ(hashes.front().size(), static_cast<std::size_t>(epochs));
}

/// Trains alone and with W workers over at least 50 steps.
template <class T>
void expect_same_training(Options options, double tolerance) {
    auto const steps = lockstep::steps_per_epoch(training::train_samples, options.batch_size, options.drop_last);
    options.epochs = static_cast<int>(std::max<std::size_t>(2, (50 + steps - 1) / steps));
    auto const alone = training::train<SerialCommunicator, T>(options);
    for (int const workers : {1, 2, 3, 4, 7}) {
        SCOPED_TRACE(testing::Message() << workers << " workers, batch " << options.batch_size << ", drop_last "
                                        << options.drop_last << ", momentum " << options.sgd.momentum);
        options.workers = workers;
        auto const together = training::train<ThreadCommunicator, T>(options);
        EXPECT_LE(distance(together.parameters, alone.parameters), tolerance);
        if (workers == 1) { EXPECT_EQ(together.hashes, alone.hashes); }
        expect_replicas_equal(together.hashes, options.epochs);
        for (std::size_t epoch = 0; epoch < alone.result.history.size(); ++epoch) {
            auto const& a = alone.result.history[epoch];
            auto const& b = together.result.history[epoch];
            EXPECT_NEAR(b.train_loss, a.train_loss, tolerance);
            EXPECT_NEAR(*b.validation_loss, *a.validation_loss, tolerance);
            EXPECT_NEAR(*b.accuracy, *a.accuracy, tolerance == 1e-10 ? 0 : 1.5 / training::test_samples);
        }
    }
    // Or else all of the above would hold of a training that does nothing.
    EXPECT_GT(alone.result.history.front().train_loss, alone.result.history.back().train_loss + 0.1);
}

TEST(DataParallel, EqualsSerialInDouble) {
    for (std::size_t const batch_size : {10U, 17U, 64U}) {
        for (bool const drop_last : {false, true}) {
            expect_same_training<double>({.batch_size = batch_size, .drop_last = drop_last}, 1e-10);
        }
    }
}

TEST(DataParallel, EqualsSerialInDoubleWithPlainSgd) {
    expect_same_training<double>({.batch_size = 17, .sgd = {.lr = 0.1}}, 1e-10);
    expect_same_training<double>({.batch_size = 17, .sgd = {.lr = 0.05, .momentum = 0.9, .dampening = 0.1}}, 1e-10);
}

TEST(DataParallel, EqualsSerialWhenWorkersHaveNoRows) {
    expect_same_training<double>({.batch_size = 2, .sgd = {.lr = 0.01, .momentum = 0.5}}, 1e-10);
}

TEST(DataParallel, EqualsSerialInFloat) {
    for (std::size_t const batch_size : {10U, 64U}) { expect_same_training<float>({.batch_size = batch_size}, 1e-4); }
}

TEST(DataParallel, RerunsAreBitIdentical) {
    for (int const workers : {1, 2, 3, 7}) {
        auto const first = training::train<ThreadCommunicator, float>({.workers = workers});
        auto const second = training::train<ThreadCommunicator, float>({.workers = workers});
        EXPECT_EQ(first.hashes, second.hashes) << workers << " workers";
        for (std::size_t epoch = 0; epoch < first.result.history.size(); ++epoch) {
            EXPECT_EQ(first.result.history[epoch].train_loss, second.result.history[epoch].train_loss);
            EXPECT_EQ(first.result.history[epoch].validation_loss, second.result.history[epoch].validation_loss);
        }
    }
}

} // namespace
