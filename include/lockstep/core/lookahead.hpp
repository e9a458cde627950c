#pragma once

#include <array>
#include <cstddef>

namespace lockstep {

/// What will be wanted soon and may be brought into the cache meanwhile, from one element of the parameters on: others' sums of
/// the gradients, which will be read, and the parameters, which will be written.
template <class T>
struct Lookahead {
    static constexpr std::size_t most = 8; ///< of more than so many others only the first are looked at

    std::array<T const*, most> read{};
    std::size_t count = 0;      ///< of `read`
    T const* written = nullptr; ///< nullptr: there is nothing to look ahead to

    std::size_t stride = 0; ///< from row to row of the matrix whose elements these are; the engine sets it

    /// `rows` further on.
    constexpr void advance(std::size_t rows) noexcept {
        if (written == nullptr) { return; }
        for (std::size_t i = 0; i < count; ++i) { read[i] += rows * stride; }
        written += rows * stride;
    }
};

} // namespace lockstep
