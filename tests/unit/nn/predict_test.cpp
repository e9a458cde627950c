#include <lockstep/nn/model.hpp>

#include <lockstep/core/random.hpp>
#include <lockstep/engine/xtensor.hpp>
#include <lockstep/nn/layers.hpp>

#if __has_include(<xtensor/views/xview.hpp>)
#include <xtensor/views/xview.hpp>
#else
#include <xtensor/xview.hpp>
#endif

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace predict_test {

using lockstep::Dropout;
using lockstep::Linear;
using lockstep::Rows;
using Net = lockstep::Sequential<Linear<784, 5>, lockstep::Tanh, Dropout<>, Linear<5, 3>>;
using Model = lockstep::Model<Net>;

std::vector<float> pixels(std::size_t rows) {
    lockstep::RandomStream const random{3, lockstep::RandomPurpose::data, 0};
    std::vector<float> values(784 * rows);
    for (std::size_t i = 0; i < values.size(); ++i) { values[i] = static_cast<float>(random.word(i) % 256) / 255; }
    return values;
}

/// The scores of forward, row by row.
std::vector<float> row_by_row(Model& model, std::vector<float> const& x) {
    std::vector<float> scores;
    model.eval();
    for (std::size_t r = 0; r < x.size() / 784; ++r) {
        model.forward(Rows<float const, 784>{x.data() + 784 * r, 1});
        scores.insert(scores.end(), model.outputs()[0].begin(), model.outputs()[0].end());
    }
    model.train();
    return scores;
}

TEST(Predict, EqualsForwardRowByRow) {
    Model model{lockstep::seed(1)};
    auto const all = pixels(1000);
    auto const expected = row_by_row(model, all);
    for (std::size_t const rows : {0U, 1U, 255U, 256U, 257U, 512U, 1000U}) {
        auto const prediction = model.predict(std::span{all}.first(784 * rows));
        ASSERT_EQ(prediction.classes.size(), rows);
        ASSERT_EQ(prediction.scores.size(), 3 * rows);
        EXPECT_EQ(prediction.rows().rows(), rows);
        for (std::size_t i = 0; i < 3 * rows; ++i) { ASSERT_NEAR(prediction.scores[i], expected[i], 1e-5F) << rows; }
        for (std::size_t r = 0; r < rows; ++r) {
            auto const scores = prediction.rows()[r];
            EXPECT_EQ(scores[prediction.classes[r]], *std::max_element(scores.begin(), scores.end()));
        }
    }
}

TEST(Predict, TakesArraysOfManyKinds) {
    Model model{lockstep::seed(1)};
    auto values = pixels(4);
    auto const expected = model.predict(values).scores;
    ASSERT_EQ(expected.size(), 12U);
    EXPECT_EQ(model.predict(std::span<float const>{values}).scores, expected);
    EXPECT_EQ(model.predict(std::span<float>{values}).scores, expected);

    xt::xtensor<float, 2> tensor = xt::adapt(values, std::array<std::size_t, 2>{4, 784});
    EXPECT_EQ(model.predict(tensor).scores, expected);
    xt::xarray<float> array = tensor;
    EXPECT_EQ(model.predict(array).scores, expected);
    array.reshape({4, 28, 28});
    EXPECT_EQ(model.predict(array).scores, expected);
    array.reshape({4, 1, 28, 28});
    EXPECT_EQ(model.predict(array).scores, expected);
    EXPECT_EQ(model.predict(xt::adapt(values, std::array<std::size_t, 3>{4, 28, 28})).scores, expected);
    EXPECT_EQ(model.predict(lockstep::as_xtensor(values.data(), 4, 784)).scores, expected);

    auto const middle = xt::view(tensor, xt::range(1, 3), xt::all()); // contiguous, but not from the beginning
    EXPECT_EQ(model.predict(middle).scores, std::vector<float>(expected.begin() + 3, expected.begin() + 9));

    xt::xarray<double> doubles = tensor;
    EXPECT_EQ(model.predict(doubles).scores, expected);
    EXPECT_TRUE(model.predict(xt::xtensor<float, 2>(std::array<std::size_t, 2>{0, 784})).classes.empty());
}

TEST(Predict, ConvertsIntegers) {
    Model model{lockstep::seed(1)};
    std::vector<std::uint8_t> const bytes(784, 200);
    EXPECT_EQ(model.predict(bytes).scores, model.predict(std::vector<float>(784, 200)).scores);
}

template <class Array>
std::string refusal(Array const& array) {
    Model model{lockstep::seed(1)};
    try {
        static_cast<void>(model.predict(array));
    } catch (lockstep::DataError const& error) { return error.what(); }
    return "accepted";
}

TEST(Predict, RefusesOtherShapes) {
    EXPECT_EQ(refusal(std::vector<float>(785)), "predict: expected shape (samples, 784), found (785)");
    EXPECT_EQ(refusal(xt::xtensor<float, 2>(std::array<std::size_t, 2>{2, 783})),
              "predict: expected shape (samples, 784), found (2, 783)");
    EXPECT_EQ(refusal(xt::xtensor<float, 2>(std::array<std::size_t, 2>{784, 2})),
              "predict: expected shape (samples, 784), found (784, 2)");
    EXPECT_EQ(refusal(xt::xtensor<float, 2>(std::array<std::size_t, 2>{2, 784})), "accepted");
}

TEST(Predict, RefusesOtherLayouts) {
    xt::xtensor<float, 2, xt::layout_type::column_major> const columns(std::array<std::size_t, 2>{2, 784});
    EXPECT_NE(refusal(columns).find("contiguous row-major"), std::string::npos);
    xt::xtensor<float, 2> const wide(std::array<std::size_t, 2>{2, 1568});
    EXPECT_NE(refusal(xt::view(wide, xt::all(), xt::range(0, 784))).find("contiguous row-major"), std::string::npos);
    EXPECT_NE(refusal(xt::view(wide, xt::all(), xt::range(0, 1568, 2))).find("contiguous row-major"), std::string::npos);
}

TEST(Predict, EvaluatesAndRestoresTheMode) {
    Model model{lockstep::seed(1)};
    auto const x = pixels(3);
    model.train();
    auto const first = model.predict(x).scores;
    EXPECT_TRUE(model.training());
    EXPECT_EQ(model.predict(x).scores, first);
    model.eval();
    EXPECT_EQ(model.predict(x).scores, first);
    EXPECT_FALSE(model.training());
    model.train();
    model.forward(Rows<float const, 784>{x.data(), 3});
    auto const dropped = model.outputs().flat();
    EXPECT_NE(std::vector<float>(dropped.begin(), dropped.end()), first) << "with Dropout";
}

} // namespace predict_test
