#pragma once

#include "lockstep/core/math.hpp"

#include <cstddef>
#include <span>

/// What softmax, its logarithm and cross entropy have in common.
namespace lockstep::detail {

template <class T>
struct RowExponentials {
    T largest; ///< of the row's scalars
    T sum;     ///< of exp(x[i] - largest), in the order of i; at least 1 where all is finite
};

/// Hands every exp(x[i] - largest) of a row to `take(i, exponential)`. A row with NaN or +infinity has no finite sum.
template <class T, std::size_t Width, class Take>
[[nodiscard]] RowExponentials<T> exponentials(std::span<T const, Width> x, Take const& take) noexcept {
    T largest = x[0];
    for (T const value : x) { largest = largest < value ? value : largest; }
    T sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        T const exponential = math::exp(x[i] - largest);
        take(i, exponential);
        sum += exponential;
    }
    return {largest, sum};
}

template <class T, std::size_t Width>
[[nodiscard]] RowExponentials<T> exponentials(std::span<T const, Width> x) noexcept {
    return exponentials(x, [](std::size_t, T) {});
}

} // namespace lockstep::detail
