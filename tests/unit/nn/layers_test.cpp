#include <lockstep/nn/layers.hpp>

#include "golden/golden.hpp"
#include "passes.hpp"
#include "unit/bits.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

namespace {

namespace golden = lockstep::golden;
using lockstep::LogSoftmax;
using lockstep::ReLU;
using lockstep::Sigmoid;
using lockstep::Softmax;
using lockstep::Tanh;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double inf = std::numeric_limits<double>::infinity();

/// 1e-12 relative, and a rounding error of `unit` (the size of the terms that were added) absolute.
void expect_near(double got, double expected, std::size_t index, double unit = 0) {
    EXPECT_NEAR(got, expected, 1e-12 * std::abs(expected) + 1e-15 * unit + 1e-300) << "scalar " << index;
}

template <class Layer, class Outputs, class Gradients>
void expect_elementwise(Outputs const& outputs, Gradients const& input_gradients) {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        double const y = Layer::forward(golden::layer_inputs[i]);
        expect_near(y, outputs[i], i);
        double const dy = golden::layer_output_gradients[i];
        expect_near(Layer::backward(y, dy), input_gradients[i], i, std::abs(dy));
        auto const single = Layer::forward(static_cast<float>(golden::layer_inputs[i]));
        static_assert(std::is_same_v<decltype(single), float const>);
        EXPECT_NEAR(single, outputs[i], 1e-6 * std::abs(outputs[i]) + 1e-30) << "scalar " << i << " in float";
    }
}

TEST(Layers, ElementwiseOnesHaveTheGoldenValues) {
    expect_elementwise<ReLU>(golden::relu_outputs, golden::relu_input_gradients);
    expect_elementwise<Tanh>(golden::tanh_outputs, golden::tanh_input_gradients);
    expect_elementwise<Sigmoid>(golden::sigmoid_outputs, golden::sigmoid_input_gradients);
}

TEST(Layers, NaNStaysNaN) {
    EXPECT_TRUE(std::isnan(ReLU::forward(nan)));
    EXPECT_TRUE(std::isnan(ReLU::forward(std::numeric_limits<float>::quiet_NaN())));
    EXPECT_TRUE(std::isnan(ReLU::backward(1.0, nan)));
    EXPECT_TRUE(std::isnan(Tanh::forward(nan)));
    EXPECT_TRUE(std::isnan(Sigmoid::forward(nan)));
    for (std::size_t place = 0; place < 3; ++place) { // std::max_element sees it or not, depending on the place
        std::vector<double> x{1, 2, 3};
        x[place] = nan;
        for (double const y : test::forward<LogSoftmax, 3>(x)) { EXPECT_TRUE(std::isnan(y)) << place; }
        for (double const y : test::forward<Softmax, 3>(x)) { EXPECT_TRUE(std::isnan(y)) << place; }
    }
}

TEST(Layers, ReLUOfInfinities) {
    EXPECT_EQ(ReLU::forward(inf), inf);
    EXPECT_EQ(ReLU::forward(-inf), 0);
    EXPECT_EQ(ReLU::backward(0.0, 3.0), 0); // PyTorch: the slope at 0 is 0
}

TEST(Layers, LogSoftmaxHasTheGoldenValues) {
    std::vector<double> const x(golden::layer_inputs.begin(), golden::layer_inputs.end());
    std::vector<double> const dy(golden::layer_output_gradients.begin(), golden::layer_output_gradients.end());
    auto const y = test::forward<LogSoftmax, 4>(x);
    auto const dx = test::backward<LogSoftmax, 4>(x, dy);
    for (std::size_t i = 0; i < x.size(); ++i) {
        expect_near(y[i], golden::log_softmax_outputs[i], i, 1);
        expect_near(dx[i], golden::log_softmax_input_gradients[i], i, 4);
    }
}

TEST(Layers, SoftmaxIsTheExponentialOfLogSoftmax) {
    std::vector<double> const x(golden::layer_inputs.begin(), golden::layer_inputs.end());
    auto const y = test::forward<Softmax, 4>(x);
    for (std::size_t i = 0; i < x.size(); ++i) { expect_near(y[i], std::exp(golden::log_softmax_outputs[i]), i, 1); }
}

template <class T>
void expect_extreme_rows() {
    T const big = 10'000;
    T const third = std::log(T{3});
    T const close = 4 * std::numeric_limits<T>::epsilon();
    std::vector<T> const x{big, 0, 0, -big, -big, -big, big, big, big, T(0.5), T(0.5), T(0.5), 0, -big, 0};
    auto const logs = test::forward<LogSoftmax, 3>(x);
    auto const shares = test::forward<Softmax, 3>(x);
    EXPECT_EQ(logs[0], 0);
    EXPECT_EQ(logs[1], -big);
    EXPECT_EQ(shares[0], 1);
    EXPECT_EQ(shares[1], 0);
    for (std::size_t i = 3; i < 12; ++i) {
        EXPECT_NEAR(logs[i], -third, close) << "scalar " << i;
        EXPECT_NEAR(shares[i], T{1} / 3, close) << "scalar " << i;
    }
    EXPECT_NEAR(logs[12], -std::log(T{2}), close);
    std::vector<T> const dy(x.size(), T{1});
    for (T const slope : test::backward<LogSoftmax, 3>(x, dy)) { EXPECT_TRUE(std::isfinite(slope)); }
    for (T const slope : test::backward<Softmax, 3>(x, dy)) { EXPECT_NEAR(slope, 0, close); } // shares always add up to 1
}

TEST(Layers, ExtremeRowsStayFiniteAndExact) {
    expect_extreme_rows<float>();
    expect_extreme_rows<double>();
}

TEST(Layers, LargestFiniteNumbersStayFinite) {
    float const most = std::numeric_limits<float>::max();
    EXPECT_EQ((test::forward<Softmax, 2>(std::vector<float>{most, -most})), (std::vector<float>{1, 0}));
    EXPECT_EQ(Sigmoid::forward(most), 1);
    EXPECT_EQ(Sigmoid::forward(-most), 0);
    EXPECT_EQ(Tanh::forward(-most), -1);
}

TEST(Layers, SoftmaxOfOneValueIsOne) {
    EXPECT_EQ((test::forward<Softmax, 1>(std::vector<double>{-5, 3})), (std::vector<double>{1, 1}));
    EXPECT_EQ((test::forward<LogSoftmax, 1>(std::vector<double>{-5, 3})), (std::vector<double>{0, 0}));
}

TEST(Layers, NoRowsAreNoWork) {
    EXPECT_TRUE((test::forward<LogSoftmax, 3>(std::vector<double>{}).empty()));
    EXPECT_TRUE((test::backward<Softmax, 3>(std::vector<double>{}, {}).empty()));
}

TEST(Linear, HasPyTorchsTensors) {
    constexpr auto tensors = lockstep::Linear<3, 5>::tensors<3>();
    static_assert(tensors.size() == 2);
    EXPECT_EQ(tensors[0].name, "weight");
    EXPECT_EQ(tensors[0].rank, 2U);
    EXPECT_EQ(tensors[0].shape[0], 5U);
    EXPECT_EQ(tensors[0].shape[1], 3U);
    EXPECT_EQ(tensors[1].name, "bias");
    EXPECT_EQ(tensors[1].rank, 1U);
    EXPECT_EQ(tensors[1].shape[0], 5U);
    EXPECT_EQ(tensors[0].size(), 15U);
    EXPECT_EQ(tensors[1].size(), 5U);
}

/// The bits of a layer's outputs and gradients, in loops as engines have them.
template <class Layer, class T>
void add_elementwise(lockstep::Fnv1a& hash) {
    auto const x = test::sample<T>(1000, 0);
    auto const dy = test::sample<T>(1000, 1);
    std::vector<T> y(x.size());
    std::vector<T> dx(x.size());
    std::vector<T> sums(x.size(), T{1}); // CpuEngine sums what backward returns, in the same loop
    for (std::size_t i = 0; i < x.size(); ++i) { y[i] = Layer::forward(x[i]); }
    for (std::size_t i = 0; i < x.size(); ++i) {
        dx[i] = Layer::backward(y[i], dy[i]);
        sums[i] += dx[i];
    }
    test::add(hash, y);
    test::add(hash, dx);
    test::add(hash, sums);
}

template <class Layer, class T>
void add_rows(lockstep::Fnv1a& hash) {
    auto const x = test::sample<T>(1000, 2);
    test::add(hash, test::forward<Layer, 10>(x));
    test::add(hash, test::backward<Layer, 10>(x, test::sample<T>(1000, 3)));
}

template <class T>
std::uint64_t hash_of_layers() {
    lockstep::Fnv1a hash;
    add_elementwise<Tanh, T>(hash);
    add_elementwise<Sigmoid, T>(hash);
    add_rows<LogSoftmax, T>(hash);
    add_rows<Softmax, T>(hash);
    return hash.value();
}

TEST(Layers, GiveTheStoredBits) {
    EXPECT_EQ(hash_of_layers<float>(), 9906758679035469155U);
    EXPECT_EQ(hash_of_layers<double>(), 15591670026187384942U);
}

} // namespace
