#pragma once

#include "lockstep/comm/communicator.hpp"
#include "lockstep/core/aligned_buffer.hpp"

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>

/// The fixed order in which all communicators add: the sum over ranks [first, first + count) is the sum over its left part plus
/// the sum over its right part, where the left part has the largest power of two below `count` ranks. Doubling strides build the
/// same tree (a[i] += a[i + stride] for stride 1, 2, 4, …), and for powers of two so does recursive halving or doubling between
/// processes (R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of Collective Communication Operations in MPICH", IJHPCA 19(1),
/// 2005). Its rounding error grows with log2(count) (N. J. Higham, "The Accuracy of Floating Point Summation", SISC 14(4), 1993).
namespace lockstep {

/// Reductions work through their spans in pieces of this many bytes: a piece of every buffer that takes part stays in the
/// first-level cache (measured: 2 KiB is 10 to 20 % faster than 8 KiB on AMD Zen 3).
inline constexpr std::size_t reduction_piece_bytes = 2048;

namespace detail {

template <Communicable T>
[[nodiscard]] constexpr T add(T left, T right) noexcept {
    if constexpr (std::same_as<T, std::int64_t>) { // wraps around, where a signed addition would be undefined
        return static_cast<T>(static_cast<std::uint64_t>(left) + static_cast<std::uint64_t>(right));
    } else {
        return left + right;
    }
}

// These loops stay functions: inlined into a large one, GCC 12 no longer vectorises them (measured: a step 15 % slower).

/// into[i] += from[i].
template <Communicable T>
[[gnu::noinline]] void accumulate(T* __restrict into, T const* __restrict from, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) { into[i] = add(into[i], from[i]); }
}

/// sum[i] = left[i] + right[i].
template <Communicable T>
[[gnu::noinline]] void sum_two(T const* __restrict left, T const* __restrict right, T* __restrict sum,
                               std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) { sum[i] = add(left[i], right[i]); }
}

/// Both become their sum.
template <Communicable T>
[[gnu::noinline]] void sum_both(T* __restrict left, T* __restrict right, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) { left[i] = right[i] = add(left[i], right[i]); }
}

} // namespace detail

/// Elements [begin, end) of a buffer.
struct Slice {
    std::size_t begin = 0;
    std::size_t end = 0;
};

/// The part of `count` elements that `rank` sums for all. Slices begin at whole cache lines of aligned buffers, so that no two
/// workers write to one line; the first ones may have a line more.
template <Communicable T>
[[nodiscard]] constexpr Slice slice_of(std::size_t count, std::size_t rank, std::size_t workers) {
    constexpr std::size_t per_line = alignment / sizeof(T);
    std::size_t const lines = count / per_line + (count % per_line != 0 ? 1 : 0);
    auto const cut = [&](std::size_t r) {
        return std::min(count, (r * (lines / workers) + std::min(r, lines % workers)) * per_line);
    };
    return {cut(rank), cut(rank + 1)};
}

/// The sum of value_of(first), …, value_of(first + count - 1) by the tree; 0 for no values.
template <Communicable T, class ValueOf>
[[nodiscard]] constexpr T tree_sum(std::size_t first, std::size_t count, ValueOf const& value_of) {
    if (count == 0) { return T{}; }
    if (count == 1) { return value_of(first); }
    std::size_t const left = std::bit_floor(count - 1);
    return detail::add(tree_sum<T>(first, left, value_of), tree_sum<T>(first + left, count - left, value_of));
}

} // namespace lockstep
