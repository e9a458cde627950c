#include <lockstep/core/array_like.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <deque>
#include <list>
#include <span>
#include <string>
#include <vector>

namespace {

using lockstep::DataError;
using lockstep::detail::ArrayLike;
using lockstep::detail::rows_of;

/// What an array library's container looks like from outside.
struct Strided {
    std::vector<float> values;
    std::vector<std::size_t> extents;
    std::vector<std::ptrdiff_t> steps;
    [[nodiscard]] float const* data() const { return values.data(); }
    [[nodiscard]] auto const& shape() const { return extents; }
    [[nodiscard]] auto const& strides() const { return steps; }
};
struct View : Strided {
    std::size_t offset = 0;
    [[nodiscard]] std::size_t data_offset() const { return offset; }
};

static_assert(ArrayLike<std::vector<float>> && ArrayLike<std::array<int, 3>> && ArrayLike<std::span<double const>>);
static_assert(ArrayLike<std::span<double, 4>> && ArrayLike<Strided> && ArrayLike<View>);
static_assert(!ArrayLike<std::list<float>> && !ArrayLike<std::deque<float>> && !ArrayLike<std::vector<std::string>>);
static_assert(!ArrayLike<std::vector<bool>> && !ArrayLike<int> && !ArrayLike<float*>);
static_assert(std::same_as<lockstep::detail::Element<std::span<double const>>, double>);

template <class A>
std::string message_of(A const& array, std::size_t width) {
    try {
        static_cast<void>(rows_of(array, width, "pictures"));
    } catch (DataError const& error) { return error.what(); }
    return "no error";
}

TEST(RowsOf, CutsFlatArraysIntoRows) {
    std::vector<float> const values{1, 2, 3, 4, 5, 6};
    for (std::size_t const width : {1U, 2U, 3U, 6U}) {
        auto const rows = rows_of(values, width, "x");
        EXPECT_EQ(rows.data(), values.data());
        EXPECT_EQ(rows.size(), 6U);
    }
    EXPECT_EQ(message_of(values, 4), "pictures: expected shape (samples, 4), found (6)");
    EXPECT_EQ(message_of(values, 7), "pictures: expected shape (samples, 7), found (6)");
}

TEST(RowsOf, NothingIsNoRows) {
    EXPECT_TRUE(rows_of(std::vector<float>{}, 4, "x").empty());
    EXPECT_TRUE(rows_of(Strided{{}, {0, 4}, {4, 1}}, 4, "x").empty());
}

TEST(RowsOf, TakesTheFirstDimensionForTheSamples) {
    std::vector<float> const values(12);
    EXPECT_EQ(rows_of(Strided{values, {2, 6}, {6, 1}}, 6, "x").size(), 12U);
    EXPECT_EQ(rows_of(Strided{values, {2, 2, 3}, {6, 3, 1}}, 6, "x").size(), 12U);
    EXPECT_EQ(rows_of(Strided{values, {3, 4, 1}, {4, 1, 0}}, 4, "x").size(), 12U);
    EXPECT_EQ(rows_of(Strided{values, {1, 12}, {0, 1}}, 12, "x").size(), 12U);
    EXPECT_EQ(message_of(Strided{values, {2, 6}, {6, 1}}, 4), "pictures: expected shape (samples, 4), found (2, 6)");
    EXPECT_EQ(message_of(Strided{values, {2, 6}, {6, 1}}, 12), "pictures: expected shape (samples, 12), found (2, 6)");
    EXPECT_EQ(message_of(Strided{values, {}, {}}, 1), "pictures: expected shape (samples, 1), found ()");
}

TEST(RowsOf, RefusesOtherLayouts) {
    std::vector<float> const values(12);
    EXPECT_NE(message_of(Strided{values, {3, 4}, {1, 3}}, 4).find("found shape (3, 4) with strides (1, 3)"), std::string::npos);
    EXPECT_NE(message_of(Strided{values, {3, 2}, {4, 1}}, 2).find("contiguous row-major"), std::string::npos);
    EXPECT_NE(message_of(Strided{values, {3, 4}, {0, 1}}, 4).find("contiguous row-major"), std::string::npos);
    EXPECT_NE(message_of(Strided{values, {6}, {2}}, 2).find("contiguous row-major"), std::string::npos);
    EXPECT_NE(message_of(Strided{values, {6}, {-1}}, 2).find("contiguous row-major"), std::string::npos);
}

TEST(RowsOf, BeginsWhereAViewBegins) {
    View const view{{{0, 1, 2, 3, 4, 5}, {2, 2}, {2, 1}}, 2};
    EXPECT_EQ(rows_of(view, 2, "x").data(), view.data() + 2);
}

} // namespace
