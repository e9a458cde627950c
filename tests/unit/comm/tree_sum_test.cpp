#include <lockstep/comm/tree_sum.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>

namespace {

constexpr double at(double const* values, std::size_t count) {
    return lockstep::tree_sum<double>(0, count, [values](std::size_t i) { return values[i]; });
}

TEST(TreeSum, AddsInTheDocumentedOrder) {
    constexpr double big = 0x1p53; // big + 1 is big again, so each order has its own result
    constexpr double a[] = {big, 1, 1, -big, 1, 1, 1};
    static_assert(at(a, 0) == 0 && at(a, 1) == big);
    EXPECT_EQ(at(a, 2), big + 1);
    EXPECT_EQ(at(a, 3), (big + 1) + 1);
    EXPECT_EQ(at(a, 4), (big + 1) + (1 + -big));
    EXPECT_NE(at(a, 4), ((big + 1) + 1) + -big);
    EXPECT_EQ(at(a, 5), ((big + 1) + (1 + -big)) + 1);
    EXPECT_EQ(at(a, 6), ((big + 1) + (1 + -big)) + (1.0 + 1.0));
    constexpr double b[] = {0, 0, 0, 0, big, 1, 1};
    EXPECT_EQ(at(b, 7), (big + 1) + 1);
    EXPECT_NE(at(b, 7), big + (1.0 + 1.0));
}

TEST(TreeSum, IntegersWrapAround) {
    constexpr auto largest = std::numeric_limits<std::int64_t>::max();
    EXPECT_EQ(lockstep::tree_sum<std::int64_t>(0, 2, [](std::size_t i) { return i == 0 ? largest : std::int64_t{1}; }),
              std::numeric_limits<std::int64_t>::min());
}

TEST(SumBoth, PutsTheSumIntoBoth) {
    std::vector<double> a{1, 2, 3};
    std::vector<double> b{10, 20, 30};
    lockstep::detail::sum_both(a.data(), b.data(), 3);
    EXPECT_EQ(a, (std::vector<double>{11, 22, 33}));
    EXPECT_EQ(b, a);
}

} // namespace
