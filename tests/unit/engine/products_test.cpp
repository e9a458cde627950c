#include <lockstep/engine/products.hpp>

#include <lockstep/core/type_list.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace {

using lockstep::Rows;

constexpr std::array<std::size_t, 6> sizes{1, 2, 3, 7, 64, 65};

/// Small numbers that no two places share, none of them exact in sums.
template <class T>
std::vector<T> numbers(std::size_t size, std::size_t salt) {
    std::vector<T> result(size);
    for (std::size_t i = 0; i < size; ++i) {
        result[i] = static_cast<T>(std::sin(static_cast<double>(i * 7919 + salt * 104'729 + 1)));
    }
    return result;
}

/// Element (i, j) of a product whose k-th factors are a(i, k) and b(k, j), in double.
template <class T, class A, class B>
void expect_product(std::vector<T> const& got, std::size_t rows, std::size_t columns, std::size_t depth, A a, B b) {
    for (std::size_t i = 0; i < rows; ++i) {
        for (std::size_t j = 0; j < columns; ++j) {
            double sum = 0;
            for (std::size_t k = 0; k < depth; ++k) { sum += static_cast<double>(a(i, k)) * static_cast<double>(b(k, j)); }
            double const bound = 2.0 * static_cast<double>(depth) * static_cast<double>(std::numeric_limits<T>::epsilon());
            ASSERT_NEAR(got[i * columns + j], sum, bound) << "element (" << i << ", " << j << ")";
        }
    }
    EXPECT_EQ(got[rows * columns], T{-77}) << "written behind its end";
}

template <std::size_t In, std::size_t Out, class T>
void expect_products(std::size_t rows) {
    SCOPED_TRACE(::testing::Message() << "in " << In << ", out " << Out << ", rows " << rows << ", bytes " << sizeof(T));
    auto const x = numbers<T>(rows * In, 1);
    auto const w = numbers<T>(Out * In, 2);
    auto const dy = numbers<T>(rows * Out, 3);
    std::vector<T> y(rows * Out + 1, T{-77}); // what is there before must not matter
    std::vector<T> dx(rows * In + 1, T{-77});
    std::vector<T> dw(Out * In + 1, T{-77});
    Rows<T const, In> const x_rows{x.data(), rows};
    Rows<T const, Out> const dy_rows{dy.data(), rows};
    lockstep::detail::multiply_transposed<In, Out>(x_rows, w.data(), Rows<T, Out>{y.data(), rows});
    lockstep::detail::multiply<In, Out>(dy_rows, w.data(), Rows<T, In>{dx.data(), rows});
    lockstep::detail::transposed_multiply<In, Out>(dy_rows, x_rows, dw.data());
    expect_product(
        y, rows, Out, In, [&](auto r, auto i) { return x[r * In + i]; }, [&](auto i, auto o) { return w[o * In + i]; });
    expect_product(
        dx, rows, In, Out, [&](auto r, auto o) { return dy[r * Out + o]; }, [&](auto o, auto i) { return w[o * In + i]; });
    expect_product(
        dw, Out, In, rows, [&](auto o, auto r) { return dy[r * Out + o]; }, [&](auto r, auto i) { return x[r * In + i]; });
}

template <class T>
void expect_all_shapes() {
    lockstep::detail::for_each_index<sizes.size() * sizes.size()>([](auto index) {
        constexpr std::size_t in = sizes[index() / sizes.size()];
        constexpr std::size_t out = sizes[index() % sizes.size()];
        for (std::size_t const rows : sizes) { expect_products<in, out, T>(rows); }
    });
}

TEST(Products, EqualATripleLoopInFloat) { expect_all_shapes<float>(); }

TEST(Products, EqualATripleLoopInDouble) { expect_all_shapes<double>(); }

TEST(Products, NaNInWhatTheyOverwriteDoesNotMatter) {
    std::vector<float> const x{1, 2};
    std::vector<float> const w{3, 4};
    std::vector<float> y{std::numeric_limits<float>::quiet_NaN()};
    lockstep::detail::multiply_transposed<2, 1>(Rows<float const, 2>{x.data(), 1}, w.data(), Rows<float, 1>{y.data(), 1});
    EXPECT_EQ(y[0], 11);
}

} // namespace
