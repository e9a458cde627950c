#include <lockstep/nn/layers.hpp>

#include "passes.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <ratio>
#include <vector>

namespace {

using lockstep::Dropout;
using lockstep::PassContext;

constexpr PassContext training{.training = true, .seed = 1, .step = 5, .first_row = 0, .layer = 2};

std::vector<double> ramp(std::size_t size) {
    std::vector<double> values(size);
    for (std::size_t i = 0; i < size; ++i) { values[i] = 1 + static_cast<double>(i % 13); }
    return values;
}

std::size_t zeros(std::vector<double> const& values) {
    std::size_t count = 0;
    for (double const value : values) { count += value == 0 ? 1U : 0U; }
    return count;
}

TEST(Dropout, IsOffInEvaluation) {
    PassContext context = training;
    context.training = false;
    EXPECT_EQ((test::forward<Dropout<>, 7>(ramp(70), context)), ramp(70));
    EXPECT_EQ((test::backward<Dropout<>, 7>(ramp(70), ramp(70), context)), ramp(70));
}

template <class P>
void expect_rate_and_scale() {
    double const p = static_cast<double>(P::num) / static_cast<double>(P::den);
    auto const x = ramp(100'000);
    auto const y = test::forward<Dropout<P>, 100>(x, training);
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (y[i] != 0) { ASSERT_NEAR(y[i], x[i] / (1 - p), 1e-12 * y[i]); }
    }
    double const n = static_cast<double>(x.size());
    EXPECT_NEAR(static_cast<double>(zeros(y)), n * p, 5 * std::sqrt(n * p * (1 - p))) << p;
}

TEST(Dropout, ZeroesAtItsRateAndScalesTheRest) {
    expect_rate_and_scale<std::ratio<1, 2>>();
    expect_rate_and_scale<std::ratio<1, 10>>();
    expect_rate_and_scale<std::ratio<9, 10>>();
    expect_rate_and_scale<std::ratio<1, 3>>();
    expect_rate_and_scale<std::ratio<0>>();
}

TEST(Dropout, EveryFeatureAndRowHasItsOwnLot) {
    std::size_t const rows = 4000;
    auto const y = test::forward<Dropout<>, 9>(ramp(9 * rows), training);
    double const bound = 5 * std::sqrt(static_cast<double>(rows) / 4);
    for (std::size_t feature = 0; feature < 9; ++feature) {
        std::size_t dropped = 0;
        std::size_t same_as_next_feature = 0;
        std::size_t same_as_next_row = 0;
        for (std::size_t r = 0; r + 1 < rows; ++r) {
            bool const here = y[9 * r + feature] == 0;
            dropped += here ? 1U : 0U;
            same_as_next_feature += here == (y[9 * r + (feature + 1) % 9] == 0) ? 1U : 0U;
            same_as_next_row += here == (y[9 * (r + 1) + feature] == 0) ? 1U : 0U;
        }
        double const half = static_cast<double>(rows) / 2;
        EXPECT_NEAR(static_cast<double>(dropped), half, bound) << feature;
        EXPECT_NEAR(static_cast<double>(same_as_next_feature), half, bound) << feature;
        EXPECT_NEAR(static_cast<double>(same_as_next_row), half, bound) << feature;
    }
}

TEST(Dropout, TheMaskDoesNotDependOnTheSplitIntoWorkers) {
    constexpr std::size_t width = 6; // not a multiple of the four words of a block
    constexpr std::size_t rows = 23;
    auto const x = ramp(width * rows);
    auto const whole = test::forward<Dropout<>, width>(x, training);
    for (std::size_t const workers : {2U, 3U, 7U, 23U}) {
        std::vector<double> joined;
        for (std::size_t worker = 0; worker < workers; ++worker) {
            std::size_t const first = rows * worker / workers;
            std::size_t const last = rows * (worker + 1) / workers;
            std::vector<double> const part(x.begin() + static_cast<std::ptrdiff_t>(first * width),
                                           x.begin() + static_cast<std::ptrdiff_t>(last * width));
            PassContext context = training;
            context.first_row = first;
            auto const y = test::forward<Dropout<>, width>(part, context);
            joined.insert(joined.end(), y.begin(), y.end());
        }
        EXPECT_EQ(joined, whole) << workers << " workers";
    }
}

TEST(Dropout, TheMaskDependsOnSeedStepAndLayer) {
    auto const x = ramp(1000);
    auto const mask = test::forward<Dropout<>, 10>(x, training);
    EXPECT_EQ((test::forward<Dropout<>, 10>(x, training)), mask);
    PassContext seed = training;
    seed.seed = 2;
    PassContext step = training;
    step.step = 6;
    PassContext layer = training;
    layer.layer = 3;
    for (auto const& context : {seed, step, layer}) {
        auto const other = test::forward<Dropout<>, 10>(x, context);
        std::size_t differences = 0;
        for (std::size_t i = 0; i < x.size(); ++i) { differences += (mask[i] == 0) != (other[i] == 0) ? 1U : 0U; }
        EXPECT_NEAR(static_cast<double>(differences), 500, 80);
    }
}

TEST(Dropout, BackwardUsesTheMaskOfForward) {
    std::vector<double> const ones(600, 1);
    EXPECT_EQ((test::backward<Dropout<>, 6>(ramp(600), ones, training)), (test::forward<Dropout<>, 6>(ones, training)));
}

TEST(Dropout, TheMaskIsTheSameInFloatAndDouble) {
    std::vector<float> const ones(600, 1);
    auto const single = test::forward<Dropout<>, 6>(ones, training);
    auto const doubles = test::forward<Dropout<>, 6>(std::vector<double>(600, 1), training);
    EXPECT_EQ(std::vector<double>(single.begin(), single.end()), doubles);
}

// So that no compiler or machine changes it unnoticed.
TEST(Dropout, TheMaskIsAKnownOne) {
    std::uint32_t bits = 0;
    auto const y = test::forward<Dropout<>, 4>(std::vector<double>(32, 1), training);
    for (std::size_t i = 0; i < y.size(); ++i) { bits |= (y[i] == 0 ? 1U : 0U) << i; }
    EXPECT_EQ(bits, 2604046539U);
}

} // namespace
