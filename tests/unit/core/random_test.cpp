#include <lockstep/core/random.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>

namespace {

using lockstep::philox;
using lockstep::RandomPurpose;
using lockstep::RandomStream;
using Words = std::array<std::uint32_t, 4>;

// The known answers that come with Random123, the authors' own code.
static_assert(philox(0, {0, 0, 0, 0}) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
static_assert(philox(~std::uint64_t{0}, {~0U, ~0U, ~0U, ~0U}) == Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
static_assert(philox(0x299f31d0'a4093822U, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}) ==
              Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});

TEST(Philox, GivesTheKnownAnswersAtRunTime) {
    std::uint64_t volatile key = 0x299f31d0'a4093822U; // what the optimizer cannot fold
    EXPECT_EQ(philox(key, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}),
              (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomStream, IsAddressedBySeedPurposeIdAndIndex) {
    RandomStream const stream{0x1'0000'0002U, RandomPurpose::data, 7};
    EXPECT_EQ(stream.block(0x3'0000'0004U), philox(0x1'0000'0002U, {4, 3, 7, 4}));
    for (std::uint64_t i = 0; i < 9; ++i) { EXPECT_EQ(stream.word(i), stream.block(i / 4)[i % 4]); }
}

TEST(RandomStream, StreamsShareNoBlock) {
    std::set<Words> blocks;
    std::size_t count = 0;
    for (std::uint64_t const seed : {0ULL, 1ULL, 2ULL, 1ULL << 32U, ~0ULL}) {
        for (auto const purpose :
             {RandomPurpose::initialisation, RandomPurpose::shuffle, RandomPurpose::dropout, RandomPurpose::data}) {
            for (std::uint32_t id = 0; id < 4; ++id) {
                for (std::uint64_t const index : {0ULL, 1ULL, 2ULL, 1ULL << 32U}) {
                    blocks.insert(RandomStream{seed, purpose, id}.block(index));
                    ++count;
                }
            }
        }
    }
    EXPECT_EQ(blocks.size(), count);
}

TEST(RandomStream, UniformTakes53BitsOfTwoWords) {
    RandomStream const stream{3, RandomPurpose::shuffle, 1};
    for (std::uint64_t i = 0; i < 10; ++i) {
        std::uint64_t const bits = std::uint64_t{stream.word(2 * i)} << 32U | stream.word(2 * i + 1);
        EXPECT_EQ(stream.uniform(i), std::ldexp(static_cast<double>(bits >> 11U), -53)) << i;
    }
}

TEST(RandomStream, UniformHasTheMomentsOfItsDistribution) {
    RandomStream const stream{1, RandomPurpose::initialisation, 0};
    constexpr std::size_t count = 100'000;
    double sum = 0;
    double squares = 0;
    double neighbours = 0;
    double before = 0.5;
    std::array<int, 16> bins{};
    for (std::size_t i = 0; i < count; ++i) {
        double const u = stream.uniform(i);
        ASSERT_GE(u, 0);
        ASSERT_LT(u, 1);
        sum += u;
        squares += (u - 0.5) * (u - 0.5);
        neighbours += (u - 0.5) * (before - 0.5);
        before = u;
        ++bins.at(static_cast<std::size_t>(u * 16));
    }
    double const n = count; // bounds: five standard deviations
    EXPECT_NEAR(sum / n, 0.5, 5 * std::sqrt(1 / 12.0 / n));
    EXPECT_NEAR(squares / n, 1 / 12.0, 5 * std::sqrt(1 / 180.0 / n));
    EXPECT_NEAR(neighbours / n, 0, 5 / 12.0 / std::sqrt(n));
    for (int const bin : bins) { EXPECT_NEAR(bin, n / 16, 5 * std::sqrt(n / 16)); }
}

TEST(Seed, IsTheNumberItWasMadeFrom) {
    EXPECT_EQ(static_cast<std::uint64_t>(lockstep::seed(~std::uint64_t{0})), ~std::uint64_t{0});
}

} // namespace
