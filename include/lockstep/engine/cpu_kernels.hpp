#pragma once

#include "lockstep/core/rows.hpp"
#include "lockstep/engine/operations.hpp"
#include "lockstep/engine/products.hpp"

#include <algorithm>
#include <cstddef>

/// CpuEngine's forward and backward of each kind of operation, on row-major activations.
namespace lockstep::detail {

/// y = Activation(x W^T + b). Functions of the shapes alone: layers that share them share their code.
template <std::size_t In, std::size_t Out, class Activation, class T>
void linear_forward(Rows<T const, In> x, Rows<T, Out> y, T const* weight, T const* bias) {
    if (x.rows() == 0) { return; }
    multiply_transposed<In, Out>(x, weight, y);
    for (std::size_t r = 0; r < y.rows(); ++r) {
        T* const row = y[r].data();
        for (std::size_t o = 0; o < Out; ++o) { row[o] = Activation::forward(row[o] + bias[o]); }
    }
}

/// Overwrites `dy` by the gradient before the activation.
template <std::size_t In, std::size_t Out, class Activation, bool InputGradient, class T>
void linear_backward(Rows<T const, In> x, Rows<T const, Out> y, Rows<T, Out> dy, Rows<T, In> dx, T const* weight,
                     T* weight_gradient, T* bias_gradient) {
    std::fill_n(bias_gradient, Out, T{0});
    if (x.rows() == 0) {
        std::fill_n(weight_gradient, Out * In, T{0});
        return;
    }
    for (std::size_t r = 0; r < y.rows(); ++r) {
        T const* const value = y[r].data();
        T* const slope = dy[r].data();
        for (std::size_t o = 0; o < Out; ++o) {
            slope[o] = Activation::backward(value[o], slope[o]);
            bias_gradient[o] += slope[o];
        }
    }
    transposed_multiply<In, Out>(Rows<T const, Out>{dy}, x, weight_gradient);
    if constexpr (InputGradient) { multiply<In, Out>(Rows<T const, Out>{dy}, weight, dx); }
}

template <class Op>
struct CpuKernel;

template <std::size_t In, std::size_t Out, class Activation, std::size_t Weight, std::size_t Bias>
struct CpuKernel<LinearOperation<In, Out, Activation, Weight, Bias>> {
    template <class T>
    static void forward(Rows<T const, In> x, Rows<T, Out> y, T const* parameters, PassContext const&) {
        linear_forward<In, Out, Activation>(x, y, parameters + Weight, parameters + Bias);
    }

    template <bool InputGradient, class T>
    static void backward(Rows<T const, In> x, Rows<T const, Out> y, Rows<T, Out> dy, Rows<T, In> dx, T const* parameters,
                         T* gradients, PassContext const&) {
        linear_backward<In, Out, Activation, InputGradient>(x, y, dy, dx, parameters + Weight, gradients + Weight,
                                                            gradients + Bias);
    }
};

template <class Function, std::size_t Width>
struct CpuKernel<ElementwiseOperation<Function, Width>> {
    template <class T>
    static void forward(Rows<T const, Width> x, Rows<T, Width> y, T const*, PassContext const&) {
        T const* const from = x.data();
        T* const to = y.data();
        for (std::size_t i = 0; i < x.rows() * Width; ++i) { to[i] = Function::forward(from[i]); }
    }

    template <bool InputGradient, class T>
    static void backward(Rows<T const, Width> x, Rows<T const, Width> y, Rows<T, Width> dy, Rows<T, Width> dx, T const*, T*,
                         PassContext const&) {
        T const* const in = x.data();
        T const* const out = y.data();
        T const* const slope = dy.data();
        T* const to = dx.data();
        for (std::size_t i = 0; i < x.rows() * Width; ++i) {
            if constexpr (requires { Function::backward(out[i], slope[i]); }) {
                to[i] = Function::backward(out[i], slope[i]);
            } else {
                to[i] = Function::backward(in[i], out[i], slope[i]);
            }
        }
    }
};

template <class Layer, std::size_t In, std::size_t Out, std::size_t Index, class Table>
struct CpuKernel<RowOperation<Layer, In, Out, Index, Table>> {
    template <class T>
    static void forward(Rows<T const, In> x, Rows<T, Out> y, T const* parameters, PassContext context) {
        context.layer = Index;
        Layer::forward(ForwardPass<T, In, Out>{x, y, {parameters, Table::offsets.data(), Table::sizes.data()}, context});
    }

    template <bool InputGradient, class T>
    static void backward(Rows<T const, In> x, Rows<T const, Out> y, Rows<T, Out> dy, Rows<T, In> dx, T const* parameters,
                         T* gradients, PassContext context) {
        context.layer = Index;
        Layer::backward(BackwardPass<T, In, Out>{x,
                                                 y,
                                                 dy,
                                                 dx,
                                                 {parameters, Table::offsets.data(), Table::sizes.data()},
                                                 {gradients, Table::offsets.data(), Table::sizes.data()},
                                                 context});
    }
};

template <class Op, class T>
void forward(Rows<T, Op::inputs> x, Rows<T, Op::outputs> y, T const* parameters, PassContext const& context) {
    CpuKernel<Op>::template forward<T>(x, y, parameters, context);
}

/// `dy` is consumed: a kernel may overwrite it. With `InputGradient` false nobody reads `dx`.
template <class Op, bool InputGradient, class T>
void backward(Rows<T, Op::inputs> x, Rows<T, Op::outputs> y, Rows<T, Op::outputs> dy, Rows<T, Op::inputs> dx, T const* parameters,
              T* gradients, PassContext const& context) {
    CpuKernel<Op>::template backward<InputGradient, T>(x, y, dy, dx, parameters, gradients, context);
}

} // namespace lockstep::detail
