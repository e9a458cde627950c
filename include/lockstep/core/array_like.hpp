#pragma once

#include "lockstep/core/error.hpp"

#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

/// How arrays of other libraries come in without this library knowing them: by `data()` and `shape()`.
namespace lockstep::detail {

/// An array in memory: std::vector, std::array, std::span, or (with a shape and strides) xtensor's containers, adaptors and
/// strided views.
template <class A>
concept ArrayLike = requires(A const& array) {
    requires std::is_pointer_v<decltype(array.data())>;
    requires std::is_arithmetic_v<std::remove_cvref_t<decltype(*array.data())>>;
}
&&(
    requires(A const& array) { array.shape(), array.strides(); } ||
    requires(A const& array) {
        { array.size() } -> std::convertible_to<std::size_t>;
    });

template <ArrayLike A>
using Element = std::remove_cvref_t<decltype(*std::declval<A const&>().data())>;

template <class Extents>
[[nodiscard]] std::string tuple_text(Extents const& extents) {
    std::string text;
    for (auto const extent : extents) { text += concat(text.empty() ? "" : ", ", extent); }
    return "(" + text + ")";
}

/// Refuses every array whose elements do not lie in memory one after the other in row-major order.
template <class A>
void require_row_major(A const& array, std::string_view name) {
    std::vector<std::ptrdiff_t> const extents(array.shape().begin(), array.shape().end());
    std::vector<std::ptrdiff_t> const strides(array.strides().begin(), array.strides().end());
    std::ptrdiff_t expected = 1;
    for (std::size_t axis = extents.size(); axis-- > 0;) {
        // Along an axis of extent 1 the stride means nothing; xtensor sets it to 0.
        if (extents[axis] > 1 && strides[axis] != expected) {
            throw DataError(concat(name, ": expected a contiguous row-major array, found shape ", tuple_text(extents),
                                   " with strides ", tuple_text(strides), "; copy it first, e.g. into an xt::xtensor"));
        }
        expected *= extents[axis];
    }
}

/// The elements of `array` as rows of `width`. Its first dimension counts the samples and the others together make `width`; an
/// array of one dimension is cut into rows.
template <ArrayLike A>
[[nodiscard]] std::span<Element<A> const> rows_of(A const& array, std::size_t width, std::string_view name) {
    std::size_t size = 1;
    std::vector<std::size_t> shape;
    std::size_t offset = 0;
    if constexpr (requires { array.shape(), array.strides(); }) {
        for (auto const extent : array.shape()) {
            shape.push_back(static_cast<std::size_t>(extent));
            size *= shape.back();
        }
        if (size > 0) { require_row_major(array, name); }
        // A view's data() is where the array under it begins.
        if constexpr (requires { array.data_offset(); }) { offset = static_cast<std::size_t>(array.data_offset()); }
    } else {
        size = array.size();
        shape = {size};
    }
    bool const fits = shape.size() == 1 ? size % width == 0 : !shape.empty() && size == shape[0] * width;
    if (!fits) { throw DataError(concat(name, ": expected shape (samples, ", width, "), found ", tuple_text(shape))); }
    return {size == 0 ? nullptr : array.data() + offset, size};
}

} // namespace lockstep::detail
