#include "lockstep/engine/simd/kernels.hpp"

#include "lockstep/core/aligned_buffer.hpp"
#include "lockstep/core/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace lockstep::detail::simd {
namespace {

std::vector<InstructionSet> supported_sets() {
    std::vector<InstructionSet> sets;
    for (auto const set : {InstructionSet::portable, InstructionSet::neon, InstructionSet::avx2, InstructionSet::avx512}) {
        if (supports(set)) { sets.push_back(set); }
    }
    return sets;
}

template <class T>
AlignedBuffer<T> random_values(std::size_t count, std::uint64_t seed) {
    AlignedBuffer<T> values(count);
    RandomStream const stream{seed, RandomPurpose::data, 0};
    for (std::size_t i = 0; i < count; ++i) { values.data()[i] = static_cast<T>(2 * stream.uniform(i) - 1); }
    return values;
}

/// Element [row][feature] of row panels of `width` features, and of feature panels of `panels` row panels.
template <class T>
std::size_t in_row_panels(std::size_t row, std::size_t feature, std::size_t width) {
    return (row / line<T> * width + feature) * line<T> + row % line<T>;
}
template <class T>
std::size_t in_feature_panels(std::size_t row, std::size_t feature, std::size_t panels) {
    return feature / line<T> * feature_panel<T>(panels) + row * line<T> + feature % line<T>;
}

template <class T>
void expect_same_bits(AlignedBuffer<T> const& got, AlignedBuffer<T> const& expected, std::string const& what) {
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
        ASSERT_EQ(std::memcmp(got.data() + i, expected.data() + i, sizeof(T)), 0)
            << what << ": element " << i << " is " << got.data()[i] << ", expected " << expected.data()[i];
    }
}

/// The definition: chains of fused multiply-adds over the inputs, from the bias.
template <std::size_t In, std::size_t Out, class T>
void check_products(std::size_t panels) {
    auto const weight = random_values<T>(Out * In, 1);
    auto const bias = random_values<T>(Out, 2);
    auto const x = random_values<T>(panels * In * line<T>, 3);
    auto const dy = random_values<T>(panels * Out * line<T>, 4);
    AlignedBuffer<T> y(panels * Out * line<T>);
    AlignedBuffer<T> dx(panels * In * line<T>);
    for (std::size_t row = 0; row < panels * line<T>; ++row) {
        for (std::size_t o = 0; o < Out; ++o) {
            T sum = bias.data()[o];
            for (std::size_t i = 0; i < In; ++i) {
                sum = std::fma(weight.data()[o * In + i], x.data()[in_row_panels<T>(row, i, In)], sum);
            }
            y.data()[in_row_panels<T>(row, o, Out)] = sum;
        }
        for (std::size_t i = 0; i < In; ++i) {
            T sum = 0;
            for (std::size_t o = 0; o < Out; ++o) {
                sum = std::fma(weight.data()[o * In + i], dy.data()[in_row_panels<T>(row, o, Out)], sum);
            }
            dx.data()[in_row_panels<T>(row, i, In)] = sum;
        }
    }
    for (auto const set : supported_sets()) {
        std::string const name{name_of(set)};
        AlignedBuffer<T> got_y(y.size());
        AlignedBuffer<T> got_dx(dx.size());
        with_kernels(set, [&]<class Kernels>(Kernels) {
            T const* const none = nullptr;
            Kernels::template product<Out, In>(weight.data(), In, std::size_t{1}, Start::values, bias.data(), x.data(),
                                               got_y.data(), panels);
            Kernels::template product<In, Out>(weight.data(), std::size_t{1}, In, Start::zero, none, dy.data(), got_dx.data(),
                                               panels);
        });
        expect_same_bits(got_y, y, name + ", outputs");
        expect_same_bits(got_dx, dx, name + ", input gradients");
    }
}

/// The definition: a chain over each shard's rows from zero, the shards by the tree whose left part is the largest power of two.
template <class T>
T shard_tree(std::vector<T> const& shards, std::size_t first, std::size_t count) {
    if (count == 1) { return shards[first]; }
    std::size_t left = 1;
    while (2 * left < count) { left *= 2; }
    return shard_tree(shards, first, left) + shard_tree(shards, first + left, count - left);
}

template <std::size_t In, std::size_t Out, class T>
void check_weight_gradient(std::size_t rows, std::size_t shard_rows) {
    std::size_t const panels = panels_of<T>(rows);
    auto const dy = random_values<T>(panels * Out * line<T>, 5);
    auto const x = random_values<T>(panels_of<T>(In) * feature_panel<T>(panels), 6);
    AlignedBuffer<T> expected(Out * In);
    Shards const shards{0, rows, shard_rows};
    std::vector<T> sums(shards.count());
    for (std::size_t o = 0; o < Out; ++o) {
        for (std::size_t i = 0; i < In; ++i) {
            for (std::size_t shard = 0; shard < sums.size(); ++shard) {
                T sum = 0;
                for (std::size_t row = shard * shard_rows; row < std::min(rows, (shard + 1) * shard_rows); ++row) {
                    sum = std::fma(dy.data()[in_row_panels<T>(row, o, Out)], x.data()[in_feature_panels<T>(row, i, panels)], sum);
                }
                sums[shard] = sum;
            }
            expected.data()[o * In + i] = shard_tree(sums, 0, sums.size());
        }
    }
    for (auto const set : supported_sets()) {
        AlignedBuffer<T> got(Out * In);
        with_kernels(set, [&]<class Kernels>(Kernels) {
            for (std::size_t o = 0; o < Out; o += Kernels::template block_rows<T>) {
                Kernels::template weight_gradient<T>(std::min(Kernels::template block_rows<T>, Out - o), dy.data() + o * line<T>,
                                                     Out * line<T>, x.data(), feature_panel<T>(panels), got.data() + o * In, In,
                                                     In, shards);
            }
        });
        expect_same_bits(got, expected,
                         detail::concat(name_of(set), ", ", rows, " rows in shards of ", shard_rows, ", ", In, " to ", Out));
    }
}

/// The definition: a shard's rows in lanes that are added by halving, the shards by the tree.
template <class T>
T bias_sum(std::vector<T> const& slopes, std::size_t shard_rows) {
    std::size_t lanes = 1;
    while (lanes < line<T> && lanes < shard_rows) { lanes *= 2; }
    std::vector<T> shards;
    for (std::size_t first = 0; first < slopes.size(); first += shard_rows) {
        std::vector<T> sums(lanes);
        for (std::size_t row = first; row < std::min(slopes.size(), first + shard_rows); ++row) {
            sums[(row - first) % lanes] += slopes[row];
        }
        for (std::size_t half = lanes / 2; half > 0; half /= 2) {
            for (std::size_t i = 0; i < half; ++i) { sums[i] += sums[i + half]; }
        }
        shards.push_back(sums[0]);
    }
    return shard_tree(shards, 0, shards.size());
}

template <std::size_t Out, class T>
void check_bias_gradient(std::size_t rows, std::size_t shard_rows) {
    auto const dy = random_values<T>(panels_of<T>(rows) * Out * line<T>, 8);
    AlignedBuffer<T> expected(Out);
    for (std::size_t o = 0; o < Out; ++o) {
        std::vector<T> slopes;
        for (std::size_t row = 0; row < rows; ++row) { slopes.push_back(dy.data()[in_row_panels<T>(row, o, Out)]); }
        expected.data()[o] = bias_sum(slopes, shard_rows);
    }
    for (auto const set : supported_sets()) {
        AlignedBuffer<T> got(Out);
        with_kernels(set, [&]<class Kernels>(Kernels) {
            Kernels::bias_gradient(dy.data(), Out, got.data(), Shards{0, rows, shard_rows});
        });
        expect_same_bits(got, expected, detail::concat(name_of(set), ", ", rows, " rows in shards of ", shard_rows));
    }
}

template <std::size_t Width, class T>
void check_row_major(std::size_t rows) {
    auto const matrix = random_values<T>(rows * Width, 9);
    for (auto const set : supported_sets()) {
        AlignedBuffer<T> panels(panels_of<T>(rows) * Width * line<T>);
        std::fill_n(panels.data(), panels.size(), T{7});
        AlignedBuffer<T> back(matrix.size());
        with_kernels(set, [&]<class Kernels>(Kernels) {
            Kernels::template from_row_major<Width>(matrix.data(), panels.data(), rows);
            Kernels::template to_row_major<Width>(static_cast<T const*>(panels.data()), back.data(), rows);
        });
        for (std::size_t row = 0; row < panels_of<T>(rows) * line<T>; ++row) {
            for (std::size_t f = 0; f < Width; ++f) {
                T const expected = row < rows ? matrix.data()[row * Width + f] : T{0};
                ASSERT_EQ(panels.data()[in_row_panels<T>(row, f, Width)], expected) << "row " << row << ", feature " << f;
            }
        }
        expect_same_bits(back, matrix, std::string{name_of(set)} + ", row-major");
    }
}

template <std::size_t Width, class T>
void check_transposes(std::size_t panels) {
    auto const rows = random_values<T>(panels * Width * line<T>, 7);
    for (auto const set : supported_sets()) {
        AlignedBuffer<T> features(panels_of<T>(Width) * feature_panel<T>(panels));
        AlignedBuffer<T> back(rows.size());
        with_kernels(set, [&]<class Kernels>(Kernels) {
            Kernels::template to_feature_panels<Width>(rows.data(), features.data(), panels);
            for (std::size_t p = 0; p < panels; ++p) {
                Kernels::template to_row_panel<Width>(features.data(), back.data(), p, panels);
            }
        });
        for (std::size_t row = 0; row < panels * line<T>; ++row) {
            for (std::size_t f = 0; f < Width; ++f) {
                ASSERT_EQ(features.data()[in_feature_panels<T>(row, f, panels)], rows.data()[in_row_panels<T>(row, f, Width)]);
            }
        }
        expect_same_bits(back, rows, std::string{name_of(set)} + ", there and back");
    }
}

template <class T>
class SimdKernels : public testing::Test {};
using Scalars = testing::Types<float, double>;
TYPED_TEST_SUITE(SimdKernels, Scalars);

TYPED_TEST(SimdKernels, ProductsAreChainsOfFusedMultiplyAdds) {
    for (std::size_t const panels : {1U, 2U, 3U, 9U}) {
        check_products<1, 1, TypeParam>(panels);
        check_products<10, 7, TypeParam>(panels);
        check_products<785, 13, TypeParam>(panels); // longer than a piece
        check_products<17, 64, TypeParam>(panels);
        check_products<12, 300, TypeParam>(panels);
    }
}

TYPED_TEST(SimdKernels, WeightGradientsAreTreesOfShards) {
    for (std::size_t const rows : {1U, 3U, 15U, 16U, 17U, 50U, 64U, 100U}) {
        for (std::size_t const shard_rows : {1U, 4U, 8U, 16U, 32U}) {
            check_weight_gradient<1, 1, TypeParam>(rows, shard_rows);
            check_weight_gradient<33, 13, TypeParam>(rows, shard_rows);
            check_weight_gradient<48, 6, TypeParam>(rows, shard_rows);
        }
    }
}

TYPED_TEST(SimdKernels, BiasGradientsAreTreesOfShards) {
    for (std::size_t const rows : {1U, 3U, 16U, 17U, 50U, 64U, 100U}) {
        for (std::size_t const shard_rows : {1U, 3U, 4U, 8U, 16U, 32U, 40U}) {
            check_bias_gradient<1, TypeParam>(rows, shard_rows);
            check_bias_gradient<13, TypeParam>(rows, shard_rows);
        }
    }
}

TYPED_TEST(SimdKernels, RowMajorMatricesComeAndGo) {
    for (std::size_t const rows : {1U, 7U, 16U, 33U}) {
        check_row_major<1, TypeParam>(rows);
        check_row_major<10, TypeParam>(rows);
        check_row_major<32, TypeParam>(rows);
        check_row_major<50, TypeParam>(rows);
    }
}

TYPED_TEST(SimdKernels, PanelsOfRowsAndOfFeaturesHoldTheSame) {
    check_transposes<1, TypeParam>(1);
    check_transposes<16, TypeParam>(2);
    check_transposes<50, TypeParam>(3);
}

TEST(SimdInstructionSet, ASetThatTheProcessorLacksIsRefusedByName) {
    EXPECT_EQ(instruction_set_from("portable", "test"), InstructionSet::portable);
    EXPECT_TRUE(supports(best_instruction_set()));
    EXPECT_EQ(instruction_set_from(name_of(best_instruction_set()), "test"), best_instruction_set());
    auto const message = [](std::string_view name) -> std::string {
        try {
            static_cast<void>(instruction_set_from(name, "LOCKSTEP_SIMD"));
        } catch (ArgumentError const& error) { return error.what(); }
        return "no error";
    };
    EXPECT_EQ(message("sse9").substr(0, 14), "LOCKSTEP_SIMD:");
    EXPECT_NE(message("sse9").find("got \"sse9\""), std::string::npos) << message("sse9");
    EXPECT_NE(message("sse9").find("portable"), std::string::npos) << message("sse9");
#if defined(LOCKSTEP_SIMD_X86)
    EXPECT_EQ(message("neon"), "LOCKSTEP_SIMD: this processor does not support the instruction set neon");
#endif
}

} // namespace
} // namespace lockstep::detail::simd
