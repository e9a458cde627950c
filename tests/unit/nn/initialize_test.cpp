#include <lockstep/nn/initialize.hpp>

#include <lockstep/core/aligned_buffer.hpp>
#include <lockstep/core/hash.hpp>
#include <lockstep/nn/layers.hpp>
#include <lockstep/nn/sequential.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace {

using lockstep::Initializer;
using lockstep::Linear;
using lockstep::ReLU;
using lockstep::Sequential;
using lockstep::TensorSpec;

using Reference = Sequential<Linear<784, 512>, ReLU, Linear<512, 128>, ReLU, Linear<128, 64>, ReLU, Linear<64, 10>>;
using Small = Sequential<Linear<3, 5>, ReLU, Linear<5, 2>>;

template <class Net, class T>
lockstep::AlignedBuffer<T> initial(std::uint64_t seed) {
    lockstep::AlignedBuffer<T> buffer(Net::template buffer_size<T>);
    lockstep::initialize<Net>(buffer.span(), lockstep::seed(seed));
    return buffer;
}

template <class Net, class T>
std::uint64_t hash(std::uint64_t seed) {
    auto const buffer = initial<Net, T>(seed);
    return lockstep::Fnv1a{}.add(buffer.span()).value();
}

template <class T>
void expect_uniform(std::span<T const> values, double fan_in) {
    double const bound = 1 / std::sqrt(fan_in);
    double const n = static_cast<double>(values.size());
    double sum = 0;
    double squares = 0;
    for (T const value : values) {
        ASSERT_LE(std::abs(static_cast<double>(value)), bound * (1 + 1e-7));
        sum += value;
        squares += static_cast<double>(value) * value;
    }
    EXPECT_NEAR(sum / n, 0, 5 * bound / std::sqrt(3 * n));
    EXPECT_NEAR(squares / n, bound * bound / 3, 5 * bound * bound * std::sqrt(4 / 45.0 / n));
    if (values.size() > 1000) { EXPECT_GT(*std::max_element(values.begin(), values.end()), 0.99 * bound); }
}

TEST(Initialize, DrawsWeightsAndBiasesAsPyTorchDoes) {
    auto const buffer = initial<Reference, float>(1);
    std::array<double, 8> const fan_in{784, 784, 512, 512, 128, 128, 64, 64};
    for (std::size_t i = 0; i < 8; ++i) {
        SCOPED_TRACE(i);
        expect_uniform(buffer.span().subspan(Reference::offsets<float>[i], Reference::tensors[i].spec.size()), fan_in.at(i));
    }
}

// The same bits with every compiler, optimisation and machine: what these numbers are for.
TEST(Initialize, GivesKnownBits) {
    EXPECT_EQ((hash<Small, float>(1)), 5730109553940464753U);
    EXPECT_EQ((hash<Small, double>(1)), 840673266088918898U);
    EXPECT_EQ((hash<Reference, float>(1)), 9328124900129959992U);
    EXPECT_EQ((hash<Reference, double>(1)), 7202872990119586846U);
}

TEST(Initialize, DependsOnTheSeed) {
    EXPECT_EQ((hash<Small, float>(1)), (hash<Small, float>(1)));
    std::vector<std::uint64_t> hashes;
    for (std::uint64_t const seed : {0ULL, 1ULL, 2ULL, 1ULL << 32U, ~0ULL}) { hashes.push_back(hash<Small, float>(seed)); }
    std::sort(hashes.begin(), hashes.end());
    EXPECT_EQ(std::unique(hashes.begin(), hashes.end()), hashes.end());
}

TEST(Initialize, FloatIsDoubleRoundedOnce) {
    auto const single = initial<Small, float>(5);
    auto const doubled = initial<Small, double>(5);
    for (std::size_t tensor = 0; tensor < Small::tensor_count; ++tensor) {
        for (std::size_t i = 0; i < Small::tensors[tensor].spec.size(); ++i) {
            EXPECT_EQ(single.span()[Small::offsets<float>[tensor] + i],
                      static_cast<float>(doubled.span()[Small::offsets<double>[tensor] + i]));
        }
    }
}

TEST(Initialize, TensorsOfOneShapeDiffer) {
    using Twins = Sequential<Linear<4, 4>, Linear<4, 4>>;
    auto const buffer = initial<Twins, float>(1);
    EXPECT_NE(buffer.span()[0], buffer.span()[Twins::offsets<float>[2]]);
    EXPECT_NE(buffer.span()[0], buffer.span()[Twins::offsets<float>[1]]);
}

TEST(Initialize, LeavesTheGaps) {
    lockstep::AlignedBuffer<float> buffer(Small::buffer_size<float>);
    std::fill_n(buffer.data(), buffer.size(), 99.0F);
    lockstep::initialize<Small>(buffer.span(), lockstep::seed(1));
    EXPECT_EQ(std::count(buffer.span().begin(), buffer.span().end(), 99.0F), 64 - 32);
}

struct Scale {
    template <std::size_t In>
    static constexpr std::array<TensorSpec, 2> tensors() {
        return {TensorSpec{"scale", {In}, Initializer::constant(0.25)}, TensorSpec{"mix", {1, 2, 3, In}, Initializer{}}};
    }
    static void forward(auto const& pass);
    static void backward(auto const& pass);
};

TEST(Initialize, SetsConstants) {
    using Net = Sequential<Linear<2, 3>, Scale>;
    static_assert(Net::tensors[3].spec.size() == 18 && Net::tensors[3].spec.rank == 4);
    lockstep::AlignedBuffer<double> buffer(Net::buffer_size<double>);
    std::fill_n(buffer.data(), buffer.size(), 99.0);
    lockstep::initialize<Net>(buffer.span(), lockstep::seed(1));
    for (double const value : buffer.span().subspan(Net::offsets<double>[2], 3)) { EXPECT_EQ(value, 0.25); }
    for (double const value : buffer.span().subspan(Net::offsets<double>[3], 18)) { EXPECT_EQ(value, 0); }
}

} // namespace
