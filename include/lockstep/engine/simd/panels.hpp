#pragma once

#include "lockstep/core/aligned_buffer.hpp"
#include "lockstep/core/shard_tree.hpp"

#include <cstddef>

/// How SimdEngine lays out its activations. A line is `line<T>` scalars, 64 bytes, whatever the registers' width; a tile is as
/// many lines. There are two forms of a matrix of rows and features:
///
/// - row panels: panel p holds rows [p * line, (p + 1) * line), feature after feature, a line each: at[p][feature][row];
/// - feature panels: panel f holds features [f * line, (f + 1) * line), row after row, a line each: at[f][row][feature].
///
/// Forward passes and input gradients read row panels, so that rows are the lanes and weights are single scalars, never packed or
/// transposed. Weight gradients read their inputs in feature panels. The rows are padded to whole panels.
namespace lockstep::detail::simd {

template <class T>
inline constexpr std::size_t line = alignment / sizeof(T);

/// Pieces in which the products go through long sums, many rows and many outputs, so that all pieces stay in the second-level
/// cache.
inline constexpr std::size_t depth_at_once = 256;
inline constexpr std::size_t panels_at_once = 4;
inline constexpr std::size_t width_goal = 256;

/// The tree over the shards of one node is this high at most.
inline constexpr std::size_t shard_levels = max_levels + 1;

/// Rows [first, last), summed in shards of `shard_rows` that begin at `first`; the last one may be shorter.
struct Shards {
    std::size_t first = 0;
    std::size_t last = 0;
    std::size_t shard_rows = 1;
    [[nodiscard]] constexpr std::size_t count() const noexcept { return count_shards(last - first, shard_rows); }
    [[nodiscard]] constexpr std::size_t first_of(std::size_t shard) const noexcept { return first + shard * shard_rows; }
    [[nodiscard]] constexpr std::size_t last_of(std::size_t shard) const noexcept {
        return last - first_of(shard) < shard_rows ? last : first_of(shard) + shard_rows;
    }
};

/// Where the chains of a product begin: at given values, at zero, or at what the destination holds.
enum class Start { values, zero, go_on };

template <class T>
[[nodiscard]] constexpr std::size_t panels_of(std::size_t count) noexcept {
    return (count + line<T> - 1) / line<T>;
}

/// From one feature panel to the next, for rows in `panels` row panels: one line more than the rows, or the same row of many
/// panels would fall into one set of the caches.
template <class T>
[[nodiscard]] constexpr std::size_t feature_panel(std::size_t panels) noexcept {
    return (panels * line<T> + 1) * line<T>;
}

} // namespace lockstep::detail::simd
