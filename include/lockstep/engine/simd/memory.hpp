#pragma once

#include "lockstep/core/aligned_buffer.hpp"
#include "lockstep/core/type_list.hpp"
#include "lockstep/engine/operations.hpp"
#include "lockstep/engine/simd/panels.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace lockstep::detail::simd {

template <class Op>
inline constexpr bool is_linear = false;
template <std::size_t In, std::size_t Out, class Activation, std::size_t Weight, std::size_t Bias>
inline constexpr bool is_linear<LinearOperation<In, Out, Activation, Weight, Bias>> = true;

template <class Op>
inline constexpr bool is_rows = false;
template <class Layer, std::size_t In, std::size_t Out, std::size_t Index, class Table>
inline constexpr bool is_rows<RowOperation<Layer, In, Out, Index, Table>> = true;

/// All that lies between the operations of a network, in the forms in which they want it (engine/simd/panels.hpp). Activation
/// `i` is the input of operation i, the last one the output of the network.
template <class T, class... Operations>
class Memory {
    using List = OperationList<Operations...>;
    static constexpr std::size_t count = List::size + 1;
    static constexpr std::array<bool, List::size> linear{is_linear<Operations>...};
    static constexpr std::array<bool, List::size> rows{is_rows<Operations>...};

public:
    /// Which forms there are of activation `i`.
    [[nodiscard]] static constexpr bool has_feature_panels(std::size_t i) { return i == 0 || (i < List::size && linear[i]); }
    [[nodiscard]] static constexpr bool has_rows(std::size_t i) {
        return i == List::size || rows[std::min(i, List::size - 1)] || (i > 0 && rows[i - 1]);
    }
    [[nodiscard]] static constexpr bool has_slopes(std::size_t i) { return i > List::first_with_parameters; }
    [[nodiscard]] static constexpr bool has_slope_rows(std::size_t i) {
        return i >= List::first_with_parameters && has_rows(i); // a row layer writes them even where nobody reads them
    }

    /// For up to `new_rows` rows.
    void reserve(std::size_t new_rows) {
        if (new_rows <= capacity_) { return; }
        std::size_t const panels = panels_of<T>(new_rows);
        std::size_t const padded = panels * line<T>;
        std::size_t size = 0;
        auto const place = [&size](bool has, std::size_t scalars) {
            std::size_t const at = size;
            size += has ? aligned_count<T>(scalars) : 0;
            return at;
        };
        std::array<Places, count> places{};
        for (std::size_t i = 0; i < count; ++i) {
            std::size_t const width = List::widths[i];
            places[i].row_panels = place(true, padded * width);
            places[i].feature_panels = place(has_feature_panels(i), panels_of<T>(width) * feature_panel<T>(panels));
            places[i].rows = place(has_rows(i), new_rows * width);
            places[i].slopes = place(has_slopes(i), padded * width);
            places[i].slope_rows = place(has_slope_rows(i), new_rows * width);
        }
        buffer_ = AlignedBuffer<T>(size);
        places_ = places;
        capacity_ = new_rows;
    }

    [[nodiscard]] T* row_panels(std::size_t i) noexcept { return buffer_.data() + places_[i].row_panels; }
    [[nodiscard]] T* feature_panels(std::size_t i) noexcept { return buffer_.data() + places_[i].feature_panels; }
    /// Row-major: (rows, width).
    [[nodiscard]] T* row_major(std::size_t i) noexcept { return buffer_.data() + places_[i].rows; }
    [[nodiscard]] T const* row_major(std::size_t i) const noexcept { return buffer_.data() + places_[i].rows; }
    /// d loss / d activation, in panels of rows, and row-major.
    [[nodiscard]] T* slopes(std::size_t i) noexcept { return buffer_.data() + places_[i].slopes; }
    [[nodiscard]] T* slope_rows(std::size_t i) noexcept { return buffer_.data() + places_[i].slope_rows; }

private:
    struct Places {
        std::size_t row_panels, feature_panels, rows, slopes, slope_rows;
    };
    std::array<Places, count> places_{};
    AlignedBuffer<T> buffer_;
    std::size_t capacity_ = 0;
};

} // namespace lockstep::detail::simd
