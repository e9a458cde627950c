#pragma once

#include "lockstep/core/aligned_buffer.hpp"
#include "lockstep/core/type_list.hpp"
#include "lockstep/nn/layer.hpp"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep {

namespace detail {

/// Named and laid out for its place in a compiler's message, which shows these arguments: two neighbouring layers and their
/// widths.
template <std::size_t Index, class Before, std::size_t OutputsBefore, class After, std::size_t InputsOfAfter>
struct neighbouring_layers {
    static_assert(
        OutputsBefore == InputsOfAfter,
        "lockstep: two neighbouring layers of Sequential do not fit: the first one's output width is not the second one's "
        "input width. See neighbouring_layers<index, layer, its output width, next layer, its input width>");
    static constexpr bool fit = OutputsBefore == InputsOfAfter;
};

template <class L, std::size_t In, std::size_t Out>
struct layer_in_sequential {
    static_assert(Layer<L, In, Out>,
                  "lockstep: this type is not a layer: it needs forward and backward as nn/layer.hpp describes them. "
                  "See layer_in_sequential<type, input width, output width>");
    static constexpr bool valid = Layer<L, In, Out>;
};

/// The name of a type as the compiler writes it, without namespaces: for descriptions, never for logic.
template <class T>
[[nodiscard]] std::string type_name() {
    std::string_view text = __PRETTY_FUNCTION__; // g++: […with T = X; …], clang: […[T = X]
    text.remove_prefix(text.find("T = ") + 4);
    text = text.substr(0, text.find_first_of(";]"));
    std::string name{text};
    for (std::string_view const scope : {"lockstep::", "std::", "{anonymous}::", "(anonymous namespace)::"}) {
        for (auto at = name.find(scope); at != std::string::npos; at = name.find(scope)) { name.erase(at, scope.size()); }
    }
    return name;
}

} // namespace detail

/// A feed-forward network as a type: a description without memory. All of it is known at compile time: widths, parameter tensors
/// and their places, floating-point operations and bytes. Layers that do not fit are refused by a static_assert naming them.
template <class... Layers>
struct Sequential {
    static_assert(sizeof...(Layers) > 0, "lockstep: a Sequential needs at least one layer");

    static constexpr std::size_t size = sizeof...(Layers);
    template <std::size_t Index>
    using layer = detail::type_at<Index, Layers...>;

    /// Width of the rows that the network reads: that of the first layer which has a width of its own.
    static constexpr std::size_t inputs = [] {
        std::array<std::size_t, size + 1> const fixed{detail::fixed_inputs<Layers>..., 0};
        std::size_t i = 0;
        while (i < size && fixed[i] == 0) { ++i; }
        return fixed[i];
    }();
    static_assert(size == 0 || inputs > 0,
                  "lockstep: no layer of this Sequential has a width of its own: begin with Linear<In, Out> or with a layer that "
                  "declares inputs and outputs");

    /// widths[i]: width of layer i's input; widths[size]: of the network's output.
    static constexpr std::array<std::size_t, size + 1> widths = [] {
        std::array<std::size_t, size + 1> const fixed{detail::fixed_outputs<Layers>..., 0};
        std::array<std::size_t, size + 1> all{};
        all[0] = inputs;
        for (std::size_t i = 0; i < size; ++i) { all[i + 1] = fixed[i] == 0 ? all[i] : fixed[i]; }
        return all;
    }();
    static constexpr std::size_t outputs = widths[size];

private:
    /// The last layer before `index` that has an output width of its own: the one to name when `index` does not fit.
    [[nodiscard]] static constexpr std::size_t setter_before(std::size_t index) {
        std::array<std::size_t, size + 1> const fixed{detail::fixed_outputs<Layers>..., 0};
        while (index > 1 && fixed[index - 1] == 0) { --index; }
        return index == 0 ? 0 : index - 1;
    }
    template <std::size_t Index>
    [[nodiscard]] static constexpr bool check() {
        using L = layer<Index>;
        if constexpr (Index > 0 && detail::fixed_inputs<L> != 0) {
            return detail::neighbouring_layers<Index, layer<setter_before(Index)>, widths[Index], L,
                                               detail::fixed_inputs<L>>::fit;
        } else {
            return true;
        }
    }
    template <std::size_t Index>
    [[nodiscard]] static constexpr bool check_kind() {
        return detail::layer_in_sequential<layer<Index>, widths[Index], widths[Index + 1]>::valid;
    }
    static constexpr bool fits = [] {
        bool all = true;
        detail::for_each_index<size>([&](auto index) { all = check<index()>() && all; });
        return all;
    }();
    static constexpr bool layers_valid = [] {
        bool all = fits;
        if constexpr (fits) {
            detail::for_each_index<size>([&](auto index) { all = check_kind<index()>() && all; });
        }
        return all;
    }();

public:
    /// True when the layers fit; when they do not, the compiler has already said which.
    static constexpr bool valid = fits && layers_valid;

    /// One parameter tensor of the network: which layer it belongs to and what it is there.
    struct Tensor {
        std::size_t layer = 0;
        TensorSpec spec{};
    };

    static constexpr std::size_t tensor_count = [] {
        std::size_t count = 0;
        detail::for_each_index<size>([&](auto index) { count += detail::tensors_of<layer<index()>, widths[index()]>().size(); });
        return count;
    }();

    /// All parameter tensors in PyTorch's order: layer after layer, weight before bias.
    static constexpr std::array<Tensor, tensor_count> tensors = [] {
        std::array<Tensor, tensor_count> all{};
        std::size_t at = 0;
        detail::for_each_index<size>([&](auto index) {
            constexpr auto specs = detail::tensors_of<layer<index()>, widths[index()]>();
            for (std::size_t i = 0; i < specs.size(); ++i) { all[at++] = Tensor{index(), specs[i]}; }
        });
        return all;
    }();

    /// Number of trainable scalars.
    static constexpr std::size_t parameter_count = [] {
        std::size_t count = 0;
        for (auto const& tensor : tensors) { count += tensor.spec.size(); }
        return count;
    }();

    /// offsets<T>[i]: where tensor i begins in the parameter buffer, in scalars; offsets<T>[tensor_count]: the buffer's size.
    template <class T>
    static constexpr std::array<std::size_t, tensor_count + 1> offsets = [] {
        std::array<std::size_t, tensor_count + 1> all{};
        for (std::size_t i = 0; i < tensor_count; ++i) { all[i + 1] = all[i] + aligned_count<T>(tensors[i].spec.size()); }
        return all;
    }();

    /// Scalars in the parameter buffer, the gaps before aligned starts included.
    template <class T>
    static constexpr std::size_t buffer_size = offsets<T>[tensor_count];

    /// Bytes of the parameters alone, without gaps.
    template <class T>
    static constexpr std::size_t parameter_bytes = parameter_count * sizeof(T);

    /// Floating-point operations per sample in the matrix products, a multiplication and an addition being two.
    static constexpr std::size_t forward_flops = [] {
        std::size_t flops = 0;
        detail::for_each_index<size>([&](auto index) {
            if constexpr (LinearLayer<layer<index()>>) { flops += 2 * widths[index()] * widths[index() + 1]; }
        });
        return flops;
    }();
    /// The weight gradients and, for all layers but the first with parameters, the input gradients.
    static constexpr std::size_t backward_flops = [] {
        std::size_t flops = 0;
        bool first = true;
        detail::for_each_index<size>([&](auto index) {
            using L = layer<index()>;
            if constexpr (LinearLayer<L>) { flops += (first ? 2 : 4) * widths[index()] * widths[index() + 1]; }
            first = first && detail::tensors_of<L, widths[index()]>().size() == 0;
        });
        return flops;
    }();

    /// "Linear<784, 512> -> ReLU -> …", as the compiler names the types.
    [[nodiscard]] static std::string description() {
        std::string text;
        detail::for_each_index<size>(
            [&](auto index) { text += (index() == 0 ? "" : " -> ") + detail::type_name<layer<index()>>(); });
        return text;
    }
};

} // namespace lockstep
