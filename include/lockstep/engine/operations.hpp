#pragma once

#include "lockstep/core/rows.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

/// The vocabulary between networks and engines: a network is handed to an engine as a compile-time list of operations. Engines
/// see shapes, functors and offsets into the parameter buffer, never layers' names.
namespace lockstep {

/// Where and how a pass runs: what layers with randomness need to give the same values whatever the number of workers.
struct PassContext {
    bool training = false;       ///< false: Dropout and the like are off
    std::uint64_t seed = 0;      ///< of the model
    std::uint64_t step = 0;      ///< counts training steps over all epochs
    std::uint64_t first_row = 0; ///< position of this worker's first row within the global batch
    std::size_t global_rows = 0; ///< of the whole batch, over all workers; 0: not known
    std::size_t shard_rows = 0;  ///< the shards of the batch; 0: not known, or the rows are no whole shards
    std::uint32_t layer = 0;     ///< index of the layer within the network
};

/// The parameter tensors (or their gradients) of one layer: `tensors[i]` is the flat span of the layer's tensor number i.
template <class T>
class Tensors {
public:
    constexpr Tensors(T* buffer, std::size_t const* offsets, std::size_t const* sizes) noexcept
        : buffer_{buffer}, offsets_{offsets}, sizes_{sizes} {}
    [[nodiscard]] constexpr std::span<T> operator[](std::size_t tensor) const noexcept {
        return {buffer_ + offsets_[tensor], sizes_[tensor]};
    }

private:
    T* buffer_;
    std::size_t const* offsets_;
    std::size_t const* sizes_;
};

/// What a row layer's `forward` is given: it reads x: (rows, In), row-major, and writes all of y: (rows, Out).
template <class T, std::size_t In, std::size_t Out>
struct ForwardPass {
    using value_type = T;
    Rows<T const, In> x;
    Rows<T, Out> y;
    Tensors<T const> parameters;
    PassContext context;
};

/// What a row layer's `backward` is given: it reads x, y and dy = d loss / d y, and writes all of dx: (rows, In) and of
/// `gradients` (the sums over the rows; with no rows: zeros).
template <class T, std::size_t In, std::size_t Out>
struct BackwardPass {
    using value_type = T;
    Rows<T const, In> x;
    Rows<T const, Out> y;
    Rows<T const, Out> dy;
    Rows<T, In> dx;
    Tensors<T const> parameters;
    Tensors<T> gradients;
    PassContext context;
};

/// The element-wise function that does nothing.
struct Identity {
    template <class T>
    [[nodiscard]] static constexpr T forward(T x) noexcept {
        return x;
    }
    template <class T>
    [[nodiscard]] static constexpr T backward(T /*y*/, T dy) noexcept {
        return dy;
    }
};

/// y = Activation(x W^T + b). x: (rows, In), W: (Out, In) row-major at `Weight` in the parameter buffer, b: (Out) at `Bias`.
template <std::size_t In, std::size_t Out, class ActivationFunction, std::size_t Weight, std::size_t Bias>
struct LinearOperation {
    static constexpr std::size_t inputs = In;
    static constexpr std::size_t outputs = Out;
    static constexpr std::size_t weight = Weight;
    static constexpr std::size_t bias = Bias;
    static constexpr bool has_parameters = true;
    using Activation = ActivationFunction;
};

/// y = Function(x), element by element, any layout. `Function::backward(y, dy)` or `Function::backward(x, y, dy)` gives dx.
template <class ElementwiseFunction, std::size_t Width>
struct ElementwiseOperation {
    static constexpr std::size_t inputs = Width;
    static constexpr std::size_t outputs = Width;
    static constexpr bool has_parameters = false;
    using Function = ElementwiseFunction;
};

/// Any other layer: it works on row-major views, see `ForwardPass` and `BackwardPass`.
template <class RowLayer, std::size_t In, std::size_t Out, std::size_t Index, class ParameterTable>
struct RowOperation {
    static constexpr std::size_t inputs = In;
    static constexpr std::size_t outputs = Out;
    static constexpr std::size_t layer = Index;
    static constexpr bool has_parameters = ParameterTable::count != 0;
    using Layer = RowLayer;
    using Table = ParameterTable; ///< offsets and sizes of the layer's tensors in the parameter buffer
};

/// A whole network as an engine sees it.
template <class... Operations>
struct OperationList {
    static constexpr std::size_t size = sizeof...(Operations);
    /// widths[i]: inputs of operation i; widths[size]: outputs of the network.
    static constexpr std::array<std::size_t, size + 1> widths = [] {
        std::array<std::size_t, size + 1> all{};
        std::array<std::size_t, size> const in{Operations::inputs...};
        std::array<std::size_t, size> const out{Operations::outputs...};
        for (std::size_t i = 0; i < size; ++i) { all[i] = in[i]; }
        all[size] = out[size - 1];
        return all;
    }();
    /// The first operation that has parameters: the backward pass ends there, nobody asks for gradients of the data.
    static constexpr std::size_t first_with_parameters = [] {
        std::array<bool, size> const has{Operations::has_parameters...};
        std::size_t first = 0;
        while (first < size && !has[first]) { ++first; }
        return first;
    }();
};

} // namespace lockstep
