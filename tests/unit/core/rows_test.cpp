#include <lockstep/core/rows.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <span>
#include <type_traits>

namespace {

using lockstep::Rows;

static_assert(Rows<float const, 3>::width == 3 && std::is_same_v<Rows<float const, 3>::value_type, float>);
static_assert(std::is_convertible_v<Rows<float, 3>, Rows<float const, 3>>);
static_assert(!std::is_convertible_v<Rows<float const, 3>, Rows<float, 3>>);
static_assert(!std::is_convertible_v<Rows<float, 3>, Rows<float const, 2>>);

TEST(Rows, ShowsRowsOfOneArray) {
    std::array<int, 6> values{0, 1, 2, 10, 11, 12};
    Rows<int, 3> const rows{values.data(), 2};
    EXPECT_EQ(rows.rows(), 2U);
    EXPECT_EQ(rows[1][2], 12);
    EXPECT_EQ(rows[0].size(), 3U);
    EXPECT_EQ(rows.flat().size(), 6U);
    EXPECT_EQ(rows.data(), values.data());
    rows[1][0] = 20;
    EXPECT_EQ(values[3], 20);
    Rows<int const, 3> const constant = rows;
    EXPECT_EQ(constant[1][0], 20);
}

TEST(Rows, CanBeEmpty) {
    Rows<int, 3> const rows;
    EXPECT_EQ(rows.rows(), 0U);
    EXPECT_TRUE(rows.flat().empty());
}

TEST(Rows, LoadsOneRowAndConverts) {
    std::array<std::uint8_t, 4> const values{1, 2, 250, 255};
    std::array<float, 2> row{};
    Rows<std::uint8_t const, 2>{values.data(), 2}.load(1, std::span<float, 2>{row});
    EXPECT_EQ(row, (std::array<float, 2>{250, 255}));
}

TEST(Argmax, IsTheFirstOfTheLargest) {
    std::array<float, 4> const values{1, 7, 7, -8};
    EXPECT_EQ(lockstep::argmax(std::span{values}), 1U);
    EXPECT_EQ(lockstep::argmax(std::span{values}.first<1>()), 0U);
    EXPECT_EQ(lockstep::argmax(std::span{values}.last<2>()), 0U);
}

} // namespace
