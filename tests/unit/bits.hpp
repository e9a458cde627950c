#pragma once

#include <lockstep/core/hash.hpp>
#include <lockstep/core/random.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

/// For tests that compare the bits of results with stored ones: another value means that replicas on that machine, or made by
/// that compiler with those flags, would not move in lockstep with others.
namespace test {

/// Scalars in [-4, 4), the same bits everywhere: only exact steps and one rounding.
template <class T>
[[nodiscard]] std::vector<T> sample(std::size_t count, std::uint32_t id) {
    lockstep::RandomStream const stream{1, lockstep::RandomPurpose::data, id};
    std::vector<T> values(count);
    for (std::size_t i = 0; i < count; ++i) { values[i] = static_cast<T>(8 * stream.uniform(i) - 4); }
    return values;
}

template <class T>
void add(lockstep::Fnv1a& hash, std::vector<T> const& values) {
    hash.add(std::span{values});
}

} // namespace test
