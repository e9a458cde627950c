#include <lockstep/core/hash.hpp>

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <string_view>

namespace {

using lockstep::Fnv1a;

constexpr std::uint64_t hash(std::string_view text) { return Fnv1a{}.add(std::span<char const>{text}).value(); }

// From the authors' test vectors.
static_assert(hash("") == 0xcbf29ce484222325U);
static_assert(hash("a") == 0xaf63dc4c8601ec8cU);
static_assert(hash("foobar") == 0x85944171f73967e8U);

TEST(Fnv1a, TakesScalarsLeastSignificantByteFirst) {
    std::array<std::uint32_t, 2> const words{0x6f6f6661U, 0};
    std::array<std::uint8_t, 8> const bytes{0x61, 0x66, 0x6f, 0x6f, 0, 0, 0, 0};
    EXPECT_EQ(Fnv1a{}.add(std::span{words}).value(), Fnv1a{}.add(std::span{bytes}).value());
    std::array<double, 1> const number{1.5};
    std::array<std::uint64_t, 1> const bits{std::bit_cast<std::uint64_t>(1.5)};
    EXPECT_EQ(Fnv1a{}.add(std::span{number}).value(), Fnv1a{}.add(std::span{bits}).value());
}

TEST(Fnv1a, AddsUpPieces) {
    EXPECT_EQ(Fnv1a{}.add(std::span{std::string_view{"foo"}}).add(std::span{std::string_view{"bar"}}).value(), hash("foobar"));
}

TEST(Fnv1a, TellsBitsApartThatCompareEqual) {
    std::array<float, 1> const zero{0.0F};
    std::array<float, 1> const minus_zero{-0.0F};
    EXPECT_NE(Fnv1a{}.add(std::span{zero}).value(), Fnv1a{}.add(std::span{minus_zero}).value());
}

} // namespace
