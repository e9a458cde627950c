#pragma once

#include <lockstep/comm/communicator.hpp>

#include <gtest/gtest.h>

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

/// Data for the communicators' conformance suite, and the sums that they must give, found in another way than the library's.
namespace conformance {

inline std::uint64_t mix(std::uint64_t x) { // splitmix64's output function
    x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
    return x ^ (x >> 31U);
}

/// Element `i` of a worker's data. Floating values have many magnitudes, so that the order of additions shows in the bits.
template <class T>
T value(int rank, std::size_t i, std::uint64_t salt) {
    std::uint64_t const bits = mix(mix(salt * 1000003U + static_cast<std::uint64_t>(rank)) + i * 0x9E3779B97F4A7C15U);
    if constexpr (std::floating_point<T>) {
        T const scale = static_cast<T>(std::uint64_t{1} << (bits % 20U));
        return static_cast<T>(static_cast<std::int64_t>(bits >> 20U) - (std::int64_t{1} << 43U)) * static_cast<T>(0x1p-40) *
               scale;
    } else {
        return static_cast<T>(bits); // sums wrap around
    }
}

template <class T>
std::vector<T> values(int rank, std::size_t count, std::uint64_t salt) {
    std::vector<T> result(count);
    for (std::size_t i = 0; i < count; ++i) { result[i] = value<T>(rank, i, salt); }
    return result;
}

/// The sum over `ranks` ranks, from `first` on, by the documented tree, in place, by doubling strides.
template <class T>
T expected_sum(int ranks, std::size_t i, std::uint64_t salt, int first = 0) {
    T part[64];
    for (int rank = 0; rank < ranks; ++rank) { part[rank] = value<T>(first + rank, i, salt); }
    for (int stride = 1; stride < ranks; stride *= 2) {
        for (int rank = 0; rank + stride < ranks; rank += 2 * stride) {
            if constexpr (std::floating_point<T>) {
                part[rank] += part[rank + stride];
            } else {
                part[rank] =
                    static_cast<T>(static_cast<std::uint64_t>(part[rank]) + static_cast<std::uint64_t>(part[rank + stride]));
            }
        }
    }
    return part[0];
}

/// What worker `rank` of `size` brings to a sum over `leaves` leaves, where leaf number l has the values of "rank" l.
template <class T>
std::vector<T> partial_sums(std::size_t leaves, int rank, int size, std::size_t count, std::uint64_t salt) {
    std::vector<T> result;
    auto const part = lockstep::part_of(leaves, static_cast<std::size_t>(rank), static_cast<std::size_t>(size));
    lockstep::for_each_node(part, leaves, [&](lockstep::TreeNode const& node) {
        auto const range = node.leaves(leaves);
        for (std::size_t i = 0; i < count; ++i) {
            result.push_back(expected_sum<T>(static_cast<int>(range.size()), i, salt, static_cast<int>(range.first)));
        }
    });
    if (result.empty()) { result.resize(count); } // room for the total
    return result;
}

template <class T>
bool same_bits(T a, T b) {
    if constexpr (sizeof(T) == 4) { return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b); }
    if constexpr (sizeof(T) == 8) { return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b); }
}

/// Compares bit for bit with expected(i) and reports the first difference.
template <class T, class Expected>
void expect_bits(std::vector<T> const& actual, Expected const& expected, char const* what, int rank, int size) {
    for (std::size_t i = 0; i < actual.size(); ++i) {
        if (!same_bits<T>(actual[i], expected(i))) {
            ADD_FAILURE() << what << ": rank " << rank << " of " << size << ", element " << i << " of " << actual.size()
                          << ": expected " << expected(i) << ", got " << actual[i];
            return;
        }
    }
}

/// Element counts around everything that is cut: values up to 64 bytes, cache lines, pieces of 8 KiB; for 4 and 8 byte scalars.
inline std::vector<std::size_t> counts() {
    return {0,  1,   2,   3,   5,   7,   8,    9,    15,   16,   17,   31,   32,   33,   61,   64,   67,
            97, 127, 128, 129, 251, 509, 1023, 1024, 1025, 2047, 2048, 2049, 4095, 4096, 4097, 8209, 16411};
}

/// Calls test(T{}) for every scalar type that a communicator carries.
template <class Test>
void for_each_scalar(Test const& test) {
    test(float{});
    test(double{});
    test(std::int64_t{});
    test(std::uint64_t{});
}

} // namespace conformance
