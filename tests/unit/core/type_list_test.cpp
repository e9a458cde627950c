#include <lockstep/core/type_list.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using lockstep::detail::for_each_index;
using lockstep::detail::type_at;

static_assert(std::is_same_v<type_at<0, int>, int>);
static_assert(std::is_same_v<type_at<2, int, char, int const&, void>, int const&>);
static_assert(std::is_void_v<type_at<3, int, char, int const&, void>>);
static_assert(std::is_same_v<type_at<1, int, int, int>, int>);

template <class Indices>
struct Many;
template <std::size_t... Index>
struct Many<std::index_sequence<Index...>> {
    template <std::size_t Number>
    using at = type_at<Number, std::integral_constant<std::size_t, 7 * Index>...>;
};

TEST(TypeAt, FindsAnyOf300Types) {
    using List = Many<std::make_index_sequence<300>>;
    std::size_t right = 0;
    for_each_index<300>([&](auto index) { right += List::at<index()>::value == 7 * index() ? 1U : 0U; });
    EXPECT_EQ(right, 300U);
}

TEST(ForEachIndex, CallsInOrder) {
    std::vector<std::size_t> seen;
    for_each_index<1000>([&](auto index) { seen.push_back(index); });
    ASSERT_EQ(seen.size(), 1000U);
    for (std::size_t i = 0; i < seen.size(); ++i) { EXPECT_EQ(seen[i], i); }
}

TEST(ForEachIndex, OfNothingCallsNothing) {
    for_each_index<0>([](auto /*index*/) { FAIL(); });
}

} // namespace
