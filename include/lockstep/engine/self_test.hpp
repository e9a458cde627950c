#pragma once

#include "lockstep/core/aligned_buffer.hpp"
#include "lockstep/core/error.hpp"
#include "lockstep/core/random.hpp"
#include "lockstep/core/type_list.hpp"
#include "lockstep/engine/blas.hpp"
#include "lockstep/engine/operations.hpp"
#include "lockstep/engine/products.hpp"

#include <cmath>
#include <cstddef>
#include <limits>

/// BLAS builds exist that compute wrong products for some shapes on some processors. So the products of a network's own shapes
/// are compared once per process with sums in double before anything is trained on them.
namespace lockstep::detail {

template <class T>
[[nodiscard]] AlignedBuffer<T> random_matrix(std::size_t size, std::uint32_t id) {
    AlignedBuffer<T> matrix(size);
    RandomStream const stream{0, RandomPurpose::data, id};
    for (std::size_t i = 0; i < size; ++i) {
        matrix.data()[i] = static_cast<T>(static_cast<std::int32_t>(stream.word(i) >> 22U) - 512) / T{512};
    }
    return matrix;
}

/// Compares element (i, j) of C = op(A) op(B), where `a(k)` and `b(k)` give the k-th of `depth` factors.
template <class T, class A, class B>
void check_element(char const* product, std::size_t i, std::size_t j, T got, std::size_t depth, A a, B b) {
    double sum = 0;
    double magnitude = 0;
    for (std::size_t k = 0; k < depth; ++k) {
        double const term = static_cast<double>(a(k)) * static_cast<double>(b(k));
        sum += term;
        magnitude += std::abs(term);
    }
    // The classical bound of a sum's rounding errors, whatever the order: N. J. Higham, "Accuracy and Stability", section 3.1.
    double const bound =
        2 * static_cast<double>(depth + 1) * static_cast<double>(std::numeric_limits<T>::epsilon()) * (magnitude + 1e-30);
    if (!(std::abs(static_cast<double>(got) - sum) <= bound)) {
        throw Error(concat("this BLAS computes wrong results: ", blas::info().description(), ": ", product, ", element (", i,
                           ", ", j, "): expected ", sum, ", got ", got,
                           ". Use another BLAS, or other kernels of it (OpenBLAS: environment variable OPENBLAS_CORETYPE)"));
    }
}

/// The three products of Linear<In, Out>. A function of the shapes alone: layers that share them share its code.
template <std::size_t In, std::size_t Out, class T>
bool test_products() {
    static constexpr std::size_t rows = 33; // full vectors and a tail
    auto const x = random_matrix<T>(rows * In, 1);
    auto const w = random_matrix<T>(Out * In, 2);
    auto const dy = random_matrix<T>(rows * Out, 3);
    AlignedBuffer<T> y(rows * Out);
    AlignedBuffer<T> dx(rows * In);
    AlignedBuffer<T> dw(Out * In);
    multiply_transposed<In, Out>(Rows<T const, In>{x.data(), rows}, w.data(), Rows<T, Out>{y.data(), rows});
    multiply<In, Out>(Rows<T const, Out>{dy.data(), rows}, w.data(), Rows<T, In>{dx.data(), rows});
    transposed_multiply<In, Out>(Rows<T const, Out>{dy.data(), rows}, Rows<T const, In>{x.data(), rows}, dw.data());
    auto const product = [](char const* what) { return concat(what, " of Linear<", In, ", ", Out, "> on ", rows, " rows"); };
    auto const forward = product("x W^T");
    auto const input = product("dy W");
    auto const weight = product("dy^T x");
    // Every column of a few rows: kernels err in whole tiles, and the check shall cost milliseconds.
    for (std::size_t const r : {std::size_t{0}, std::size_t{5}, rows - 1}) {
        for (std::size_t o = 0; o < Out; ++o) {
            check_element(
                forward.c_str(), r, o, y.data()[r * Out + o], In, [&](auto k) { return x.data()[r * In + k]; },
                [&](auto k) { return w.data()[o * In + k]; });
        }
        for (std::size_t i = 0; i < In; ++i) {
            check_element(
                input.c_str(), r, i, dx.data()[r * In + i], Out, [&](auto k) { return dy.data()[r * Out + k]; },
                [&](auto k) { return w.data()[k * In + i]; });
        }
    }
    for (std::size_t o = 0; o < Out; o += 1 + Out / 13) {
        for (std::size_t i = 0; i < In; ++i) {
            check_element(
                weight.c_str(), o, i, dw.data()[o * In + i], rows, [&](auto k) { return dy.data()[k * Out + o]; },
                [&](auto k) { return x.data()[k * In + i]; });
        }
    }
    return true;
}

template <class Op, class T>
struct SelfTest {
    static void run() {} // no product in it
};

template <std::size_t In, std::size_t Out, class Activation, std::size_t Weight, std::size_t Bias, class T>
struct SelfTest<LinearOperation<In, Out, Activation, Weight, Bias>, T> {
    static void run() { [[maybe_unused]] static bool const passed = test_products<In, Out, T>(); }
};

template <class List, class T>
struct SelfTestList;

template <class... Operations, class T>
struct SelfTestList<OperationList<Operations...>, T> {
    static bool run() {
        for_each_index<sizeof...(Operations)>([](auto index) { SelfTest<type_at<index(), Operations...>, T>::run(); });
        return true;
    }
};

} // namespace lockstep::detail

namespace lockstep {

/// Checks the products of all linear operations of a list, once per process; some 20 ms for 784-512-128-64-10, in proportion to
/// the weights. Throws Error naming the BLAS, its version and core, and the first wrong element.
template <class List, class T>
void self_test_products() {
    [[maybe_unused]] static bool const passed = detail::SelfTestList<List, T>::run();
}

} // namespace lockstep
