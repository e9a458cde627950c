#pragma once

#include "lockstep/core/rows.hpp"
#include "lockstep/engine/xtensor.hpp"

#include <cstddef>

/// The three matrix products of a linear layer with W: (Out, In) row-major, as calls of cblas_sgemm / cblas_dgemm.
/// At least one row; the shapes are types, because xtensor-blas checks none.
namespace lockstep::detail {

/// y = x W^T. x: (rows, In), y: (rows, Out).
template <std::size_t In, std::size_t Out, class T>
void multiply_transposed(Rows<T const, In> x, T const* weight, Rows<T, Out> y) {
    auto result = as_xtensor(y);
    xt::blas::gemm(as_xtensor(x), as_xtensor(weight, Out, In), result, false, true, T{1}, T{0});
}

/// dx = dy W. dy: (rows, Out), dx: (rows, In).
template <std::size_t In, std::size_t Out, class T>
void multiply(Rows<T const, Out> dy, T const* weight, Rows<T, In> dx) {
    auto result = as_xtensor(dx);
    xt::blas::gemm(as_xtensor(dy), as_xtensor(weight, Out, In), result, false, false, T{1}, T{0});
}

/// dW = dy^T x. dy: (rows, Out), x: (rows, In), dW: (Out, In).
template <std::size_t In, std::size_t Out, class T>
void transposed_multiply(Rows<T const, Out> dy, Rows<T const, In> x, T* weight_gradient) {
    auto result = as_xtensor(weight_gradient, Out, In);
    xt::blas::gemm(as_xtensor(dy), as_xtensor(x), result, true, false, T{1}, T{0});
}

} // namespace lockstep::detail
