#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

namespace lockstep::detail {

template <std::size_t Index, class T>
struct IndexedType {
    using type = T;
};

template <class Indices, class... Ts>
struct TypeIndex;

template <std::size_t... Indices, class... Ts>
struct TypeIndex<std::index_sequence<Indices...>, Ts...> : IndexedType<Indices, Ts>... {};

template <std::size_t Index, class T>
IndexedType<Index, T> pick(IndexedType<Index, T> const&);

/// The type number `Index` of a pack, by overload resolution: the depth of instantiation does not grow with the pack, as it
/// would with std::tuple_element.
template <std::size_t Index, class... Ts>
using type_at = typename decltype(pick<Index>(std::declval<TypeIndex<std::index_sequence_for<Ts...>, Ts...>>()))::type;

/// Calls `function(std::integral_constant<std::size_t, 0>{})` … up to `Count - 1`, in that order. An array initialiser and not a
/// fold expression: clang refuses folds over more than 256 operands.
template <std::size_t Count, class Function>
constexpr void for_each_index(Function&& function) {
    [&]<std::size_t... Index>(std::index_sequence<Index...>) {
        [[maybe_unused]] int const in_order[] = {0, (function(std::integral_constant<std::size_t, Index>{}), 0)...};
    }
    (std::make_index_sequence<Count>{});
}

} // namespace lockstep::detail
