#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>

namespace lockstep {

/// A view of `rows()` rows of `Width` contiguous scalars, row-major: shape (rows, Width). It owns nothing.
template <class T, std::size_t Width>
class Rows {
public:
    using value_type = std::remove_const_t<T>;
    static constexpr std::size_t width = Width;

    constexpr Rows() = default;
    constexpr Rows(T* data, std::size_t rows) noexcept : data_{data}, rows_{rows} {}

    /// A mutable view converts to a view of constants.
    constexpr operator Rows<T const, Width>() const noexcept // NOLINT(google-explicit-constructor)
        requires(!std::is_const_v<T>) {
        return {data_, rows_};
    }

    [[nodiscard]] constexpr T* data() const noexcept { return data_; }
    [[nodiscard]] constexpr std::size_t rows() const noexcept { return rows_; }
    [[nodiscard]] constexpr std::span<T, Width> operator[](std::size_t row) const noexcept {
        return std::span<T, Width>{data_ + row * Width, Width};
    }
    /// `count` rows from `first` on.
    [[nodiscard]] constexpr Rows part(std::size_t first, std::size_t count) const noexcept {
        return {data_ + first * Width, count};
    }
    [[nodiscard]] constexpr std::span<T> flat() const noexcept { return {data_, rows_ * Width}; }

    /// Copies row `row` into `destination`, converting the scalars: what makes this view a `RowSource`.
    template <class U>
    constexpr void load(std::size_t row, std::span<U, Width> destination) const noexcept {
        std::transform(data_ + row * Width, data_ + (row + 1) * Width, destination.begin(),
                       [](T value) { return static_cast<U>(value); });
    }

private:
    T* data_ = nullptr;
    std::size_t rows_ = 0;
};

/// Anything that can write its rows, one by one, as scalars of type `T` into a place that the caller chooses: a `Rows` view, the
/// inputs of a batch. An engine loads from it straight into its own layout.
template <class S, class T>
concept RowSource = requires(S const& source, std::size_t row, std::span<T, S::width> destination) {
    { source.rows() } -> std::convertible_to<std::size_t>;
    source.load(row, destination);
};

/// The index of the first of the largest scalars of a row that is not empty.
template <class T, std::size_t Width>
[[nodiscard]] constexpr std::size_t argmax(std::span<T, Width> row) noexcept {
    return static_cast<std::size_t>(std::max_element(row.begin(), row.end()) - row.begin());
}

} // namespace lockstep
