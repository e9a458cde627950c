#pragma once

#include "lockstep/core/rows.hpp"
#include "lockstep/core/shard_tree.hpp"
#include "lockstep/engine/operations.hpp"
#include "lockstep/engine/simd/kernels.hpp"
#include "lockstep/engine/simd/memory.hpp"

#include <bit>
#include <cstddef>
#include <type_traits>

/// SimdEngine's forward and backward pass of each kind of operation, but for the weight gradients of linear layers.
namespace lockstep::detail::simd {

/// Where the tensors of the operations of one pass are. `gradients` are the partial sums of one buffer each.
template <class T>
struct Pass {
    std::size_t panels = 0;
    RowShards shards{};
    T const* parameters = nullptr;
    PartialSums<T> gradients{};
    T* scratch = nullptr; ///< gradients of one shard on each level of the tree, `scratch_size` scalars each
    std::size_t scratch_size = 0;
    PassContext context{};
};

template <class Op>
struct SimdPass;

template <std::size_t In, std::size_t Out, class Activation, std::size_t Weight, std::size_t Bias>
struct SimdPass<LinearOperation<In, Out, Activation, Weight, Bias>> {
    template <class Kernels, std::size_t Index, class T, class Memory>
    static void forward(Memory& memory, Pass<T> const& pass) {
        T* const y = memory.row_panels(Index + 1);
        Kernels::template product<Out, In>(pass.parameters + Weight, In, std::size_t{1}, Start::values, pass.parameters + Bias,
                                           static_cast<T const*>(memory.row_panels(Index)), y, pass.panels);
        if constexpr (!std::is_same_v<Activation, Identity>) {
            Kernels::template apply<Activation>(static_cast<T const*>(y), y, pass.panels * Out * line<T>);
        }
    }

    /// The slopes become those before the activation.
    template <class Kernels, std::size_t Index, class T, class Memory>
    static void backward(Memory& memory, Pass<T> const& pass) {
        T* const dy = memory.slopes(Index + 1);
        if constexpr (!std::is_same_v<Activation, Identity>) {
            Kernels::template apply_backward<Activation>(static_cast<T const*>(nullptr),
                                                         static_cast<T const*>(memory.row_panels(Index + 1)),
                                                         static_cast<T const*>(dy), dy, pass.panels * Out * line<T>);
        }
        pass.shards.for_each_sum([&](std::size_t number, Range rows) {
            Kernels::bias_gradient(static_cast<T const*>(dy), Out, pass.gradients.sum(number).data() + Bias,
                                   Shards{rows.first, rows.last, pass.shards.shard_rows});
        });
        if constexpr (Memory::has_slopes(Index)) {
            Kernels::template product<In, Out>(pass.parameters + Weight, std::size_t{1}, In, Start::zero,
                                               static_cast<T const*>(nullptr), static_cast<T const*>(dy), memory.slopes(Index),
                                               pass.panels);
        }
        if constexpr (Index > 0) { // the first one is there since `load`
            Kernels::template to_feature_panels<In>(static_cast<T const*>(memory.row_panels(Index)), memory.feature_panels(Index),
                                                    pass.panels);
        }
    }
};

template <class Function, std::size_t Width>
struct SimdPass<ElementwiseOperation<Function, Width>> {
    template <class Kernels, std::size_t Index, class T, class Memory>
    static void forward(Memory& memory, Pass<T> const& pass) {
        Kernels::template apply<Function>(static_cast<T const*>(memory.row_panels(Index)), memory.row_panels(Index + 1),
                                          pass.panels * Width * line<T>);
    }
    template <class Kernels, std::size_t Index, class T, class Memory>
    static void backward(Memory& memory, Pass<T> const& pass) {
        if constexpr (Memory::has_slopes(Index)) {
            Kernels::template apply_backward<Function>(
                static_cast<T const*>(memory.row_panels(Index)), static_cast<T const*>(memory.row_panels(Index + 1)),
                static_cast<T const*>(memory.slopes(Index + 1)), memory.slopes(Index), pass.panels * Width * line<T>);
        }
    }
};

template <class Layer, std::size_t In, std::size_t Out, std::size_t LayerIndex, class Table>
struct SimdPass<RowOperation<Layer, In, Out, LayerIndex, Table>> {
    template <class Kernels, std::size_t Index, class T, class Memory>
    static void forward(Memory& memory, Pass<T> const& pass) {
        std::size_t const rows = pass.shards.rows;
        auto context = pass.context;
        context.layer = LayerIndex;
        Layer::forward(ForwardPass<T, In, Out>{Rows<T const, In>{memory.row_major(Index), rows},
                                               Rows<T, Out>{memory.row_major(Index + 1), rows},
                                               {pass.parameters, Table::offsets.data(), Table::sizes.data()},
                                               context});
    }

    /// Shard by shard where the layer has parameters, so that their gradients are summed in the tree's order.
    template <class Kernels, std::size_t Index, class T, class Memory>
    static void backward(Memory& memory, Pass<T> const& pass) {
        auto const on_rows = [&](Range rows, T* gradients) {
            auto context = pass.context;
            context.layer = LayerIndex;
            context.first_row += rows.first;
            std::size_t const count = rows.size();
            Layer::backward(BackwardPass<T, In, Out>{Rows<T const, In>{memory.row_major(Index) + rows.first * In, count},
                                                     Rows<T const, Out>{memory.row_major(Index + 1) + rows.first * Out, count},
                                                     Rows<T const, Out>{memory.slope_rows(Index + 1) + rows.first * Out, count},
                                                     Rows<T, In>{memory.slope_rows(Index) + rows.first * In, count},
                                                     {pass.parameters, Table::offsets.data(), Table::sizes.data()},
                                                     {gradients, Table::offsets.data(), Table::sizes.data()},
                                                     context});
        };
        if constexpr (Table::count == 0) {
            on_rows({0, pass.shards.rows}, pass.gradients.data());
        } else {
            pass.shards.for_each_sum(
                [&](std::size_t number, Range rows) { sum_shards<T>(pass, pass.gradients.sum(number).data(), rows, on_rows); });
        }
    }

private:
    /// gradient = the tree over the shards within `rows`; the partial sums stand in the scratch, level over level.
    template <class T, class OnRows>
    static void sum_shards(Pass<T> const& pass, T* gradient, Range rows, OnRows const& on_rows) {
        Shards const shards{rows.first, rows.last, pass.shards.shard_rows};
        std::size_t const size = pass.scratch_size;
        std::size_t height = 0;
        for (std::size_t shard = 0; shard < shards.count(); ++shard) {
            T* const level = height == 0 ? gradient : pass.scratch + (height - 1) * size;
            on_rows({shards.first_of(shard), shards.last_of(shard)}, level);
            ++height;
            auto const below = shard + 1 == shards.count() ? height - 1 : static_cast<std::size_t>(std::countr_one(shard));
            for (std::size_t merged = 0; merged < below; ++merged, --height) {
                T* const left = height == 2 ? gradient : pass.scratch + (height - 3) * size;
                T const* const right = pass.scratch + (height - 2) * size;
                for (std::size_t tensor = 0; tensor < Table::count; ++tensor) {
                    for (std::size_t i = 0; i < Table::sizes[tensor]; ++i) {
                        left[Table::offsets[tensor] + i] += right[Table::offsets[tensor] + i];
                    }
                }
            }
        }
    }
};

} // namespace lockstep::detail::simd
