#include <lockstep/core/type_list.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <type_traits>
#include <utility>

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

// These count while compiling: an optimizer would take a minute to inline a thousand calls.

TEST(TypeAt, FindsAnyOf300Types) {
    using List = Many<std::make_index_sequence<300>>;
    constexpr std::size_t right = [] {
        std::size_t result = 0;
        for_each_index<300>([&](auto index) { result += List::at<index()>::value == 7 * index() ? 1U : 0U; });
        return result;
    }();
    EXPECT_EQ(right, 300U);
}

TEST(ForEachIndex, CallsInOrder) {
    constexpr auto seen = [] {
        std::array<std::size_t, 1000> result{};
        std::size_t calls = 0;
        for_each_index<1000>([&](auto index) { result.at(calls++) = index; });
        return std::pair{result, calls};
    }();
    EXPECT_EQ(seen.second, 1000U);
    for (std::size_t i = 0; i < seen.first.size(); ++i) { EXPECT_EQ(seen.first[i], i); }
}

TEST(ForEachIndex, OfNothingCallsNothing) {
    for_each_index<0>([](auto /*index*/) { FAIL(); });
}

} // namespace
