#pragma once

#include "lockstep/engine/operations.hpp"
#include "lockstep/nn/sequential.hpp"

#include <array>
#include <cstddef>
#include <utility>

/// Translates a network into the list of operations that an engine runs: `Flatten` vanishes, a `Linear` and the activation after
/// it become one operation, every operation knows its tensors' places in the parameter buffer.
namespace lockstep::detail {

inline constexpr std::size_t none = static_cast<std::size_t>(-1);

enum class LayerKind { linear, fusable, elementwise, rows, view };

template <class L>
inline constexpr LayerKind kind_of = LinearLayer<L>             ? LayerKind::linear
                                     : ViewLayer<L>             ? LayerKind::view
                                     : ElementwiseFromOutput<L> ? LayerKind::fusable
                                     : ElementwiseFromInput<L>  ? LayerKind::elementwise
                                                                : LayerKind::rows;

/// One operation: the layer that it computes and the activation that is fused into it, or `none`.
struct Step {
    std::size_t layer = none;
    std::size_t activation = none;
};

template <class Net>
struct Steps;

template <class... Layers>
struct Steps<Sequential<Layers...>> {
private:
    static constexpr std::size_t count_layers = sizeof...(Layers);
    struct All {
        std::array<Step, count_layers> steps{};
        std::size_t count = 0;
    };
    static constexpr All all = [] {
        std::array<LayerKind, count_layers> const kinds{kind_of<Layers>...};
        All result{};
        for (std::size_t i = 0; i < count_layers; ++i) {
            if (kinds[i] == LayerKind::view) { continue; }
            bool const fuses = kinds[i] == LayerKind::fusable && result.count > 0 &&
                               kinds[result.steps[result.count - 1].layer] == LayerKind::linear &&
                               result.steps[result.count - 1].activation == none;
            if (fuses) {
                result.steps[result.count - 1].activation = i;
            } else {
                result.steps[result.count++] = {i, none};
            }
        }
        return result;
    }();

public:
    static constexpr std::size_t count = all.count;
    static_assert(count > 0, "lockstep: a Sequential needs at least one layer that computes something");
    static constexpr std::array<Step, count_layers> steps = all.steps;
};

/// The first tensor of layer `Index` within the network's list of tensors.
template <class Net>
[[nodiscard]] constexpr std::size_t first_tensor(std::size_t index) {
    std::size_t at = 0;
    while (at < Net::tensor_count && Net::tensors[at].layer < index) { ++at; }
    return at;
}

/// Offsets (in scalars of type T) and sizes of the tensors of one layer.
template <class Net, class T, std::size_t Index>
struct ParameterTable {
    static constexpr std::size_t count = tensors_of<typename Net::template layer<Index>, Net::widths[Index]>().size();
    static constexpr std::array<std::size_t, count + 1> offsets = [] {
        std::array<std::size_t, count + 1> all{};
        for (std::size_t i = 0; i < count; ++i) { all[i] = Net::template offsets<T>[first_tensor<Net>(Index) + i]; }
        return all;
    }();
    static constexpr std::array<std::size_t, count + 1> sizes = [] {
        std::array<std::size_t, count + 1> all{};
        for (std::size_t i = 0; i < count; ++i) { all[i] = Net::tensors[first_tensor<Net>(Index) + i].spec.size(); }
        return all;
    }();
};

template <class Net, class T, std::size_t Number>
[[nodiscard]] constexpr auto make_operation() {
    constexpr Step step = Steps<Net>::steps[Number];
    using L = typename Net::template layer<step.layer>;
    constexpr std::size_t in = Net::widths[step.layer];
    constexpr std::size_t out = Net::widths[step.layer + 1];
    using Table = ParameterTable<Net, T, step.layer>;
    if constexpr (LinearLayer<L>) {
        if constexpr (step.activation == none) {
            return std::type_identity<LinearOperation<in, out, Identity, Table::offsets[0], Table::offsets[1]>>{};
        } else {
            using Activation = typename Net::template layer<step.activation>;
            return std::type_identity<LinearOperation<in, out, Activation, Table::offsets[0], Table::offsets[1]>>{};
        }
    } else if constexpr (ElementwiseLayer<L>) {
        return std::type_identity<ElementwiseOperation<L, in>>{};
    } else {
        return std::type_identity<RowOperation<L, in, out, step.layer, Table>>{};
    }
}

template <class Net, class T, class Numbers = std::make_index_sequence<Steps<Net>::count>>
struct Plan;

template <class Net, class T, std::size_t... Number>
struct Plan<Net, T, std::index_sequence<Number...>> {
    using type = OperationList<typename decltype(make_operation<Net, T, Number>())::type...>;
};

/// The operations of `Net` with a parameter buffer of scalars `T`.
template <class Net, class T>
using plan_of = typename Plan<Net, T>::type;

} // namespace lockstep::detail
