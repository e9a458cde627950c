#include <lockstep/data/synthetic.hpp>

#include <lockstep/core/hash.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace {

using namespace lockstep;

template <class Dataset>
std::vector<float> inputs(Dataset const& dataset) {
    auto const flat = dataset.stored_inputs().flat();
    return {flat.begin(), flat.end()};
}

template <class Dataset>
std::uint64_t hash(Dataset const& dataset) {
    Fnv1a sum;
    sum.add(dataset.stored_inputs().flat());
    for (std::size_t i = 0; i < dataset.size(); ++i) {
        if constexpr (ClassificationDataset<Dataset>) {
            Label const label = dataset.target(i);
            sum.add(std::span{&label, 1});
        } else {
            sum.add(dataset.target(i));
        }
    }
    return sum.value();
}

/// The hashes come from a Python program that follows the same recipe in whole numbers.
TEST(Synthetic, IsTheSameOnEveryCompiler) {
    EXPECT_EQ((hash(synthetic_classification<7, 3>(50, seed(1)))), 0x3AD5833663C9FBEDU);
    EXPECT_EQ((hash(synthetic_regression<5, 2>(50, seed(1)))), 0x8D82F5C8E429BE26U);
}

TEST(Synthetic, DependsOnSeedAndSplitAndNotOnTheNumberOfSamples) {
    auto const first = synthetic_classification<6, 4>(40, seed(3));
    EXPECT_EQ(hash(first), (hash(synthetic_classification<6, 4>(40, seed(3)))));
    EXPECT_NE(inputs(first), (inputs(synthetic_classification<6, 4>(40, seed(4)))));
    EXPECT_NE(inputs(first), (inputs(synthetic_classification<6, 4>(40, seed(3), {.split = 1}))));
    auto more = inputs(synthetic_classification<6, 4>(55, seed(3)));
    more.resize(inputs(first).size());
    EXPECT_EQ(inputs(first), more);
    EXPECT_EQ((synthetic_classification<6, 4>(0, seed(3)).size()), 0U);
    auto const regression = synthetic_regression<6, 4>(40, seed(3));
    EXPECT_NE(inputs(regression), (inputs(synthetic_regression<6, 4>(40, seed(4)))));
    EXPECT_NE(inputs(regression), (inputs(synthetic_regression<6, 4>(40, seed(3), {.split = 1}))));
}

/// The nearest mean of the training samples names the class of new ones.
TEST(Synthetic, ClassesCanBeLearned) {
    constexpr std::size_t features = 16;
    constexpr std::size_t classes = 10;
    auto const train = synthetic_classification<features, classes>(1000, seed(5));
    auto const test = synthetic_classification<features, classes>(500, seed(5), {.split = 1});
    std::array<std::array<double, features>, classes> means{};
    std::array<double, features> row{};
    for (std::size_t i = 0; i < train.size(); ++i) {
        train.load(i, std::span{row});
        for (std::size_t k = 0; k < features; ++k) { means[static_cast<std::size_t>(train.target(i))][k] += row[k] / 100; }
    }
    int correct = 0;
    for (std::size_t i = 0; i < test.size(); ++i) {
        test.load(i, std::span{row});
        std::size_t best = 0;
        double nearest = 1e9;
        for (std::size_t label = 0; label < classes; ++label) {
            double distance = 0;
            for (std::size_t k = 0; k < features; ++k) { distance += std::pow(row[k] - means[label][k], 2); }
            if (distance < nearest) { best = label, nearest = distance; }
        }
        for (double const value : row) { ASSERT_LT(std::abs(value), 1.5001); }
        correct += best == static_cast<std::size_t>(test.target(i)) ? 1 : 0;
    }
    EXPECT_GT(correct, 485);
}

/// Gradient descent on the squared error finds the law behind the training split, also for the other split.
TEST(Synthetic, TheRegressionIsLinear) {
    auto const train = synthetic_regression<4, 2>(200, seed(6));
    auto const test = synthetic_regression<4, 2>(100, seed(6), {.split = 1});
    std::array<double, 4> x{};
    for (std::size_t k = 0; k < 2; ++k) {
        std::array<double, 5> law{};
        auto const residual = [&](auto const& dataset, std::size_t i) {
            dataset.load(i, std::span{x});
            double value = law[4] - static_cast<double>(dataset.target(i)[k]);
            for (std::size_t j = 0; j < 4; ++j) { value += law[j] * x[j]; }
            return value;
        };
        for (int step = 0; step < 300; ++step) {
            std::array<double, 5> gradient{};
            for (std::size_t i = 0; i < train.size(); ++i) {
                double const error = residual(train, i);
                for (std::size_t j = 0; j < 4; ++j) { gradient[j] += error * x[j] / 200; }
                gradient[4] += error / 200;
            }
            for (std::size_t j = 0; j < 5; ++j) { law[j] -= gradient[j]; }
        }
        double magnitude = 0;
        double squares = 0;
        for (std::size_t i = 0; i < test.size(); ++i) {
            double const error = residual(test, i);
            EXPECT_LT(std::abs(error), 0.02) << "more than noise";
            squares += error * error;
            magnitude = std::max(magnitude, std::abs(static_cast<double>(test.target(i)[k])));
        }
        EXPECT_GT(squares, 0.0) << "there is noise";
        EXPECT_GT(magnitude, 0.1);
        EXPECT_LT(magnitude, 4.0);
    }
}

} // namespace
