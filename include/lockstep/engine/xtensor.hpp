#pragma once

// The only header that includes xtensor and xtensor-blas. The configuration comes first: xtensor-blas from 0.21 on skips BLAS
// silently without it. xtensor's headers moved into folders with 0.26.
#if !__has_include(<xtensor-blas/xblas_config.hpp>)
#error "lockstep: xtensor-blas was not found: install libxtensor-blas-dev (Debian, Ubuntu) or xtensor-blas (conda-forge)"
#endif
#include <xtensor-blas/xblas_config.hpp>
#ifndef HAVE_CBLAS
#define HAVE_CBLAS 1
#endif
#include <xtensor-blas/xblas.hpp>
#if __has_include(<xtensor/containers/xadapt.hpp>)
#include <xtensor/containers/xadapt.hpp>
#else
#include <xtensor/xadapt.hpp>
#endif

#include "lockstep/core/rows.hpp"

#include <array>
#include <cstddef>

namespace lockstep {

/// An xtensor view of shape (rows, columns), row-major, over memory that it does not own. Building it allocates nothing.
template <class T>
[[nodiscard]] auto as_xtensor(T* data, std::size_t rows, std::size_t columns) {
    return xt::adapt(data, rows * columns, xt::no_ownership(), std::array<std::size_t, 2>{rows, columns});
}
template <class T, std::size_t Width>
[[nodiscard]] auto as_xtensor(Rows<T, Width> rows) {
    return as_xtensor(rows.data(), rows.rows(), Width);
}

} // namespace lockstep
