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

/// A factor of a product: its element (i, j) is `data[i * row_step + j * column_step]`.
template <class T>
struct Factor {
    T const* data;
    std::size_t row_step;
    std::size_t column_step;

    double operator()(std::size_t i, std::size_t j) const { return static_cast<double>(data[i * row_step + j * column_step]); }
};

template <class T>
void expect_product(std::vector<T> const& got, std::size_t rows, std::size_t columns, std::size_t depth, Factor<T> a,
                    Factor<T> b) {
    for (std::size_t i = 0; i < rows; ++i) {
        for (std::size_t j = 0; j < columns; ++j) {
            double sum = 0;
            for (std::size_t k = 0; k < depth; ++k) { sum += a(i, k) * b(k, j); }
            double const bound = 2.0 * static_cast<double>(depth) * static_cast<double>(std::numeric_limits<T>::epsilon());
            ASSERT_NEAR(got[i * columns + j], sum, bound) << "element (" << i << ", " << j << ")";
        }
    }
    EXPECT_EQ(got[rows * columns], T{-77}) << "written behind its end";
}

/// The matrices of one shape. All but the products themselves is compiled once and not for every shape.
template <class T>
struct Matrices {
    std::size_t in;
    std::size_t out;
    std::size_t rows;
    std::vector<T> x = numbers<T>(rows * in, 1);
    std::vector<T> w = numbers<T>(out * in, 2);
    std::vector<T> dy = numbers<T>(rows * out, 3);
    std::vector<T> y = std::vector<T>(rows * out + 1, T{-77}); // what is there before must not matter
    std::vector<T> dx = std::vector<T>(rows * in + 1, T{-77});
    std::vector<T> dw = std::vector<T>(out * in + 1, T{-77});

    void expect_right() const {
        SCOPED_TRACE(::testing::Message() << "in " << in << ", out " << out << ", rows " << rows << ", bytes " << sizeof(T));
        expect_product<T>(y, rows, out, in, {x.data(), in, 1}, {w.data(), 1, in});
        expect_product<T>(dx, rows, in, out, {dy.data(), out, 1}, {w.data(), in, 1});
        expect_product<T>(dw, out, in, rows, {dy.data(), 1, out}, {x.data(), in, 1});
    }
};

template <std::size_t In, std::size_t Out, class T>
void multiply_all(Matrices<T>& m) {
    Rows<T const, In> const x{m.x.data(), m.rows};
    Rows<T const, Out> const dy{m.dy.data(), m.rows};
    lockstep::detail::multiply_transposed<In, Out>(x, m.w.data(), Rows<T, Out>{m.y.data(), m.rows});
    lockstep::detail::multiply<In, Out>(dy, m.w.data(), Rows<T, In>{m.dx.data(), m.rows});
    lockstep::detail::transposed_multiply<In, Out>(dy, x, m.dw.data());
}

template <class T>
void expect_all_shapes() {
    lockstep::detail::for_each_index<sizes.size() * sizes.size()>([](auto index) {
        constexpr std::size_t in = sizes[index() / sizes.size()];
        constexpr std::size_t out = sizes[index() % sizes.size()];
        for (std::size_t const rows : sizes) {
            Matrices<T> matrices{.in = in, .out = out, .rows = rows};
            multiply_all<in, out>(matrices);
            matrices.expect_right();
        }
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
