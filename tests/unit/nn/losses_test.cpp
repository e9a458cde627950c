#include <lockstep/nn/losses.hpp>

#include "golden/golden.hpp"
#include "passes.hpp"
#include "unit/bits.hpp"

#include <lockstep/nn/layers.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace {

namespace golden = lockstep::golden;
using lockstep::CrossEntropyLoss;
using lockstep::MSELoss;
using lockstep::NLLLoss;
using lockstep::Rows;

template <class T>
struct Result {
    double value;
    std::vector<T> gradient;
};

template <class Loss, std::size_t Out, class T>
Result<T> compute(std::vector<T> const& x, auto const& targets, T scale = T{1}) {
    Result<T> result{0, std::vector<T>(x.size(), T{-77})};
    std::size_t const rows = x.size() / Out;
    result.value =
        Loss::value_and_gradient(Rows<T const, Out>{x.data(), rows}, targets, scale, Rows<T, Out>{result.gradient.data(), rows});
    EXPECT_EQ((Loss::value(Rows<T const, Out>{x.data(), rows}, targets)), result.value) << "value and value_and_gradient differ";
    return result;
}

template <class T>
void expect_golden_rows(double tolerance) {
    for (auto const& row : golden::extreme_rows<T>()) {
        std::vector<T> const x(row.logits.begin(), row.logits.end());
        std::array const label{row.label};
        auto const result = compute<CrossEntropyLoss, 3>(x, label);
        EXPECT_NEAR(result.value, row.loss, tolerance * std::abs(row.loss));
        for (std::size_t i = 0; i < 3; ++i) { EXPECT_NEAR(result.gradient[i], row.gradients[i], tolerance); }
        auto const logs = test::forward<lockstep::LogSoftmax, 3>(x);
        EXPECT_NEAR((compute<NLLLoss, 3>(logs, label).value), row.loss, tolerance * std::abs(row.loss)) << "LogSoftmax, NLLLoss";
        EXPECT_NEAR((compute<CrossEntropyLoss, 3>(logs, label).value), row.loss, tolerance * std::abs(row.loss))
            << "LogSoftmax, CrossEntropyLoss";
    }
}

TEST(Losses, ExtremeRowsHaveTheGoldenValues) {
    expect_golden_rows<double>(1e-14);
    expect_golden_rows<float>(5e-7);
}

TEST(CrossEntropyLoss, AddsUpTheRowsAndScalesOnlyTheGradient) {
    std::vector<double> const x{0.5, -1, 2, 1, 1, 1, -3, 0, 0.25, 4, 0, 0};
    std::vector<int> const labels{2, 0, 1, 2};
    auto const whole = compute<CrossEntropyLoss, 3>(x, labels, 0.25);
    double sum = 0;
    for (std::size_t r = 0; r < 4; ++r) {
        std::vector<double> const row(x.begin() + static_cast<std::ptrdiff_t>(3 * r),
                                      x.begin() + static_cast<std::ptrdiff_t>(3 * r + 3));
        auto const one = compute<CrossEntropyLoss, 3>(row, std::array{labels[r]});
        sum += one.value;
        for (std::size_t i = 0; i < 3; ++i) { EXPECT_NEAR(whole.gradient[3 * r + i], one.gradient[i] / 4, 1e-15); }
    }
    EXPECT_NEAR(whole.value, sum, 1e-14);
}

TEST(NLLLoss, TakesTheLabelsLogProbability) {
    auto const result = compute<NLLLoss, 2>(std::vector<double>{-0.5, -2, -3, -0.25}, std::array{1, 0}, 0.5);
    EXPECT_EQ(result.value, 5);
    EXPECT_EQ(result.gradient, (std::vector<double>{0, -0.5, -0.5, 0}));
}

TEST(MSELoss, IsTheMeanOverTheOutputsOfEachRow) {
    std::vector<double> const targets{0, 0, 0, 1, 1, 1};
    auto const result = compute<MSELoss, 3>(std::vector<double>{1, 2, 3, 1, 1, 4}, Rows<double const, 3>{targets.data(), 2}, 0.5);
    EXPECT_DOUBLE_EQ(result.value, (1 + 4 + 9) / 3.0 + 9 / 3.0);
    std::vector<double> const expected{1 / 3.0, 2 / 3.0, 1, 0, 0, 1};
    for (std::size_t i = 0; i < 6; ++i) { EXPECT_DOUBLE_EQ(result.gradient[i], expected[i]); }
}

template <class Label>
std::string refusal(std::vector<Label> const& labels) {
    std::vector<float> const x(3 * labels.size());
    std::string text;
    auto const note = [&](auto const& call) {
        try {
            call();
            text += "accepted";
        } catch (lockstep::Error const& error) {
            if (text.empty()) {
                text = error.what();
            } else {
                EXPECT_EQ(text, error.what());
            }
        }
    };
    std::span<Label const> const targets{labels};
    Rows<float const, 3> const outputs{x.data(), labels.size()};
    std::vector<float> gradient(x.size());
    Rows<float, 3> const slopes{gradient.data(), labels.size()};
    note([&] { static_cast<void>(CrossEntropyLoss::value(outputs, targets)); });
    note([&] { static_cast<void>(CrossEntropyLoss::value_and_gradient(outputs, targets, 1.0F, slopes)); });
    note([&] { static_cast<void>(NLLLoss::value(outputs, targets)); });
    note([&] { static_cast<void>(NLLLoss::value_and_gradient(outputs, targets, 1.0F, slopes)); });
    return text;
}

TEST(Losses, RefuseLabelsOutOfRangeByRowAndLabel) {
    EXPECT_EQ(refusal<int>({0, 1, 3, 2}), "row 2 of the batch has label 3, the network has 3 outputs (labels 0 to 2)");
    EXPECT_EQ(refusal<int>({-1}), "row 0 of the batch has label -1, the network has 3 outputs (labels 0 to 2)");
    EXPECT_EQ(refusal<std::size_t>({0, 1U << 31U}),
              "row 1 of the batch has label 2147483648, the network has 3 outputs (labels 0 to 2)");
    EXPECT_EQ(refusal<std::int64_t>({std::int64_t{1} << 32}),
              "row 0 of the batch has label 4294967296, the network has 3 outputs (labels 0 to 2)");
}

TEST(Losses, PrintLabelsOfOneByteAsNumbers) {
    EXPECT_EQ(refusal<std::uint8_t>({65}), "row 0 of the batch has label 65, the network has 3 outputs (labels 0 to 2)");
    EXPECT_EQ(refusal<std::int8_t>({-1}), "row 0 of the batch has label -1, the network has 3 outputs (labels 0 to 2)");
}

TEST(Losses, OfNoRowsAreZero) {
    std::vector<float> const nothing;
    EXPECT_EQ((compute<CrossEntropyLoss, 3>(nothing, std::vector<int>{}).value), 0);
    EXPECT_EQ((compute<NLLLoss, 3>(nothing, std::vector<int>{}).value), 0);
    EXPECT_EQ((compute<MSELoss, 3>(nothing, Rows<float const, 3>{}).value), 0);
}

TEST(Losses, NotFiniteOutputsGiveALossThatIsNotFinite) {
    constexpr float infinite = std::numeric_limits<float>::infinity();
    for (float const bad : {std::numeric_limits<float>::quiet_NaN(), infinite}) {
        for (std::size_t place = 0; place < 3; ++place) {
            std::vector<float> x{1, 2, 3};
            x[place] = bad;
            std::vector<float> const targets(3);
            std::vector<float> gradient(3);
            Rows<float const, 3> const outputs{x.data(), 1};
            for (int label = 0; label < 3; ++label) {
                EXPECT_FALSE(std::isfinite(CrossEntropyLoss::value(outputs, std::array{label}))) << place << ", " << label;
            }
            EXPECT_FALSE(std::isfinite(MSELoss::value(outputs, Rows<float const, 3>{targets.data(), 1})));
        }
    }
}

template <class T>
std::uint64_t hash_of_losses() {
    auto const x = test::sample<T>(1000, 0);
    auto const vectors = test::sample<T>(1000, 1);
    std::vector<int> labels(100);
    for (std::size_t i = 0; i < labels.size(); ++i) { labels[i] = static_cast<int>(i % 10); }
    auto const entropy = compute<CrossEntropyLoss, 10>(x, labels, T{1} / 96);
    auto const squares = compute<MSELoss, 10>(x, Rows<T const, 10>{vectors.data(), 100}, T{1} / 96);
    lockstep::Fnv1a hash;
    test::add(hash, entropy.gradient);
    test::add(hash, squares.gradient);
    test::add(hash, std::vector<double>{entropy.value, squares.value});
    return hash.value();
}

TEST(Losses, GiveTheStoredBits) {
    EXPECT_EQ(hash_of_losses<float>(), 5640053665176362002U);
    EXPECT_EQ(hash_of_losses<double>(), 13586843422396239170U);
}

} // namespace
