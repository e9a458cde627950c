#pragma once

#include "lockstep/engine/operations.hpp"

#include <array>
#include <concepts>
#include <cstddef>
#include <string_view>

namespace lockstep {

/// How a parameter tensor starts: uniform in [-bound, bound), or one constant.
struct Initializer {
    enum class Kind { uniform_fan_in, constant };
    Kind kind = Kind::constant;
    double value = 0;

    /// Uniform in ±1/sqrt(fan_in): PyTorch's default for Linear, weight and bias alike.
    [[nodiscard]] static constexpr Initializer uniform_fan_in(std::size_t fan_in) noexcept {
        return {Kind::uniform_fan_in, static_cast<double>(fan_in)};
    }
    [[nodiscard]] static constexpr Initializer constant(double value) noexcept { return {Kind::constant, value}; }
};

/// One parameter tensor of a layer: its name in a state dict, its shape (row-major) and how it starts.
struct TensorSpec {
    std::string_view name;
    std::size_t rank = 0;
    std::array<std::size_t, 4> shape{};
    Initializer initializer{};

    constexpr TensorSpec() = default;
    constexpr TensorSpec(std::string_view tensor, std::initializer_list<std::size_t> dimensions, Initializer start)
        : name{tensor}, rank{dimensions.size()}, initializer{start} {
        std::size_t i = 0;
        for (auto const dimension : dimensions) { shape.at(i++) = dimension; }
    }

    [[nodiscard]] constexpr std::size_t size() const noexcept {
        std::size_t product = 1;
        for (std::size_t i = 0; i < rank; ++i) { product *= shape[i]; }
        return product;
    }
};

/// An element-wise layer: y = forward(x), dx = backward(y, dy), both on single scalars, both static templates without state.
/// It keeps the width, has no parameters, and an engine may fuse it with the `Linear` before it.
template <class L>
concept ElementwiseFromOutput = requires(float f, double d) {
    { L::forward(f) } -> std::same_as<float>;
    { L::forward(d) } -> std::same_as<double>;
    { L::backward(f, f) } -> std::same_as<float>;
    { L::backward(d, d) } -> std::same_as<double>;
};

/// An element-wise layer whose derivative needs the input as well: dx = backward(x, y, dy).
template <class L>
concept ElementwiseFromInput = requires(float f, double d) {
    { L::forward(f) } -> std::same_as<float>;
    { L::forward(d) } -> std::same_as<double>;
    { L::backward(f, f, f) } -> std::same_as<float>;
    { L::backward(d, d, d) } -> std::same_as<double>;
};

template <class L>
concept ElementwiseLayer = ElementwiseFromOutput<L> || ElementwiseFromInput<L>;

/// A layer that the engines know as a matrix product and compute themselves, marked by `is_linear`: `in_features`,
/// `out_features`, tensors weight (out, in) and bias (out).
template <class L>
concept LinearLayer = requires {
    requires L::is_linear;
    { L::in_features } -> std::convertible_to<std::size_t>;
    { L::out_features } -> std::convertible_to<std::size_t>;
};

/// A layer that only looks at the same row in another shape: it costs nothing at run time.
template <class L>
concept ViewLayer = requires {
    requires L::is_view;
};

/// Any other layer that works on whole rows: `forward(pass)` gets a `ForwardPass`, `backward(pass)` a `BackwardPass`, both static
/// templates. `In` is the width of its input; a layer that changes the width declares `inputs` and `outputs`.
/// Parameters, if any: `tensors<In>()` returns a std::array of `TensorSpec`.
template <class L, std::size_t In, std::size_t Out = In>
concept RowLayer = !ElementwiseLayer<L> && !LinearLayer<L> && !ViewLayer<L> &&
                   requires(ForwardPass<float, In, Out> const& forward, BackwardPass<float, In, Out> const& backward) {
    L::forward(forward);
    L::backward(backward);
};

namespace detail {

/// The width of the rows that `L` must be given; 0: any.
template <class L>
inline constexpr std::size_t fixed_inputs = [] {
    if constexpr (LinearLayer<L>) {
        return std::size_t{L::in_features};
    } else if constexpr (requires { L::inputs; }) {
        return std::size_t{L::inputs};
    } else {
        return std::size_t{0};
    }
}();

/// The width of the rows that `L` returns; 0: that of its input.
template <class L>
inline constexpr std::size_t fixed_outputs = [] {
    if constexpr (LinearLayer<L>) {
        return std::size_t{L::out_features};
    } else if constexpr (requires { L::outputs; }) {
        return std::size_t{L::outputs};
    } else {
        return std::size_t{0};
    }
}();

/// The parameter tensors of `L` when its input has width `In`.
template <class L, std::size_t In>
[[nodiscard]] constexpr auto tensors_of() {
    if constexpr (requires { L::template tensors<In>(); }) {
        return L::template tensors<In>();
    } else {
        return std::array<TensorSpec, 0>{};
    }
}

} // namespace detail

/// What every layer is, whatever its kind; `In` is the width of its input.
template <class L, std::size_t In, std::size_t Out = In>
concept Layer = LinearLayer<L> || ElementwiseLayer<L> || ViewLayer<L> || RowLayer<L, In, Out>;

} // namespace lockstep
