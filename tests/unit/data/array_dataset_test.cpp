#include <lockstep/data/array_dataset.hpp>

#include "../io/files.hpp"

#include <gtest/gtest.h>

#if __has_include(<xtensor/containers/xtensor.hpp>)
#include <xtensor/containers/xadapt.hpp>
#include <xtensor/containers/xarray.hpp>
#include <xtensor/containers/xfixed.hpp>
#include <xtensor/containers/xtensor.hpp>
#include <xtensor/generators/xbuilder.hpp>
#include <xtensor/misc/xmanipulation.hpp>
#include <xtensor/views/xview.hpp>
#else
#include <xtensor/xadapt.hpp>
#include <xtensor/xarray.hpp>
#include <xtensor/xbuilder.hpp>
#include <xtensor/xfixed.hpp>
#include <xtensor/xmanipulation.hpp>
#include <xtensor/xtensor.hpp>
#include <xtensor/xview.hpp>
#endif

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace array_dataset_test {

using namespace lockstep;
using test::error_text;

using Classified = ArrayDataset<4, ClassLabels<3>>;
using Regressed = ArrayDataset<4, TargetVectors<2>>;
using Pixels = ArrayDataset<4, ClassLabels<3>, std::uint8_t>;

static_assert(ClassificationDataset<Classified> && ClassificationDataset<Classified, double> && !RegressionDataset<Classified>);
static_assert(RegressionDataset<Regressed> && RegressionDataset<Regressed, double> && !ClassificationDataset<Regressed>);
static_assert(ClassificationDataset<Pixels> && Classified::classes == 3 && Regressed::targets == 2 && Pixels::features == 4);
static_assert(std::is_same_v<decltype(std::declval<Classified const&>().target(0)), Label>);
static_assert(std::is_same_v<decltype(std::declval<Regressed const&>().target(0)), std::span<float const, 2>>);

std::vector<float> counted(std::size_t size) {
    std::vector<float> values(size);
    std::iota(values.begin(), values.end(), 0.0F);
    return values;
}

template <class T, class Dataset>
std::array<T, Dataset::features> loaded(Dataset const& dataset, std::size_t index) {
    std::array<T, Dataset::features> row{};
    dataset.load(index, std::span{row});
    return row;
}

/// Samples 0, 1, 2 hold 0 … 11 and have labels 2, 0, 1.
template <class Dataset>
void expect_counted(Dataset const& dataset) {
    ASSERT_EQ(dataset.size(), 3U);
    EXPECT_EQ(loaded<float>(dataset, 0), (std::array<float, 4>{0, 1, 2, 3}));
    EXPECT_EQ(loaded<double>(dataset, 2), (std::array<double, 4>{8, 9, 10, 11}));
    EXPECT_EQ(dataset.target(0), 2);
    EXPECT_EQ(dataset.target(1), 0);
    EXPECT_EQ(dataset.target(2), 1);
}

template <class Dataset, class Inputs, class Targets>
std::string refusal(Inputs&& inputs, Targets&& targets) {
    return error_text<DataError>([&] { (void)Dataset(std::forward<Inputs>(inputs), std::forward<Targets>(targets)); });
}

std::vector<int> const labels = {2, 0, 1};

TEST(ArrayDataset, MovesVectorsInAndCopiesShareThem) {
    auto inputs = counted(12);
    auto const* const place = inputs.data();
    Classified dataset{std::move(inputs), std::vector<Label>{2, 0, 1}};
    EXPECT_EQ(dataset.stored_inputs().data(), place);
    Classified const copy = dataset;
    Classified const taken = std::move(dataset);
    EXPECT_EQ(copy.stored_inputs().data(), place);
    expect_counted(copy);
    expect_counted(taken);
    dataset = Classified{counted(0), std::vector<int>{}};
    EXPECT_EQ(dataset.size(), 0U);
    expect_counted(copy);
}

TEST(ArrayDataset, CopiesLvaluesSpansAndArrays) {
    auto inputs = counted(12);
    Classified const from_vector{inputs, labels};
    Classified const from_span{std::span{inputs}, std::span{labels}};
    Classified const from_doubles{std::vector<double>(inputs.begin(), inputs.end()), labels};
    Classified const from_array{inputs, std::array<std::uint64_t, 3>{2, 0, 1}};
    std::ranges::fill(inputs, -1.0F);
    expect_counted(from_vector);
    expect_counted(from_span);
    expect_counted(from_doubles);
    expect_counted(from_array);
}

TEST(ArrayDataset, TakesEveryXtensorContainerAdaptorAndContiguousView) {
    auto flat = counted(12);
    xt::xtensor<float, 2> const matrix = xt::adapt(flat, std::array<std::size_t, 2>{3, 4});
    xt::xarray<float> const cube = xt::reshape_view(matrix, {3, 2, 2});
    xt::xtensor<std::int64_t, 1> const long_labels = {2, 0, 1};
    xt::xtensor<std::uint8_t, 2> const label_column = {{2}, {0}, {1}};
    expect_counted(Classified{matrix, labels});
    expect_counted(Classified{cube, long_labels});
    expect_counted(Classified{xt::adapt(flat, std::array<std::size_t, 2>{3, 4}), label_column});
    expect_counted(Classified{xt::adapt(flat.data(), 12, xt::no_ownership(), std::array<std::size_t, 4>{3, 1, 4, 1}), labels});
    xt::xtensor_fixed<float, xt::xshape<3, 4>> const fixed = matrix;
    expect_counted(Classified{fixed, labels});
    // Rows 1 to 3 of 5: contiguous, but not at the start of the array under the view.
    xt::xtensor<float, 2> const taller = xt::concatenate(xt::xtuple(xt::ones<float>({1, 4}), matrix, xt::ones<float>({1, 4})));
    expect_counted(Classified{xt::view(taller, xt::range(1, 4)), labels});
    expect_counted(Classified{xt::eval(matrix + 0.0F), labels});
    // A column whose memory order does not matter.
    xt::xtensor<float, 2, xt::layout_type::column_major> const column = {{3}, {5}};
    ArrayDataset<1, ClassLabels<2>> const narrow{column, std::vector<int>{0, 1}};
    EXPECT_EQ(loaded<float>(narrow, 1)[0], 5.0F);
}

TEST(ArrayDataset, RefusesOtherMemoryOrders) {
    xt::xtensor<float, 2, xt::layout_type::column_major> const columns = xt::ones<float>({3, 4});
    auto const text = refusal<Classified>(columns, labels);
    EXPECT_EQ(
        text,
        "ArrayDataset inputs: expected a contiguous row-major array, found shape (3, 4) with strides (1, 3); copy it first, "
        "e.g. into an xt::xtensor");
    xt::xtensor<float, 2> const wide = xt::ones<float>({3, 8});
    EXPECT_NE(refusal<Classified>(xt::view(wide, xt::all(), xt::range(0, 4)), labels).find("strides (8, 1)"), std::string::npos);
    EXPECT_NE(refusal<Classified>(xt::view(wide, xt::all(), xt::range(0, 8, 2)), labels).find("strides (8, 2)"),
              std::string::npos);
    xt::xtensor<float, 2> const square = xt::ones<float>({4, 4});
    EXPECT_NE(refusal<Classified>(xt::transpose(square), labels).find("row-major"), std::string::npos);
    xt::xtensor<int, 1> const six = {0, 1, 2, 0, 1, 2};
    EXPECT_NE(refusal<Classified>(counted(12), xt::view(six, xt::range(0, 6, 2))).find("ArrayDataset targets"),
              std::string::npos);
}

TEST(ArrayDataset, RefusesOtherShapes) {
    EXPECT_EQ(refusal<Classified>(counted(13), labels), "ArrayDataset inputs: expected shape (samples, 4), found (13)");
    xt::xtensor<float, 2> const transposed = xt::ones<float>({4, 3});
    EXPECT_EQ(refusal<Classified>(transposed, labels), "ArrayDataset inputs: expected shape (samples, 4), found (4, 3)");
    xt::xtensor<float, 3> const cube = xt::ones<float>({3, 4, 2});
    EXPECT_EQ(refusal<Classified>(cube, labels), "ArrayDataset inputs: expected shape (samples, 4), found (3, 4, 2)");
    EXPECT_EQ(refusal<Classified>(xt::xarray<float>(1.0F), labels), "ArrayDataset inputs: expected shape (samples, 4), found ()");
    EXPECT_EQ(refusal<Regressed>(counted(12), counted(5)), "ArrayDataset targets: expected shape (samples, 2), found (5)");
    xt::xtensor<int, 2> const one_hot = {{0, 0, 1}, {1, 0, 0}, {0, 1, 0}};
    EXPECT_EQ(refusal<Classified>(counted(12), one_hot), "ArrayDataset targets: expected shape (samples, 1), found (3, 3)");
    EXPECT_EQ(refusal<Classified>(counted(16), labels), "ArrayDataset: 4 inputs, but 3 targets");
    EXPECT_EQ(refusal<Regressed>(counted(8), counted(2)), "ArrayDataset: 2 inputs, but 1 targets");
    xt::xtensor<float, 2> const none = xt::ones<float>({0, 4});
    EXPECT_EQ(Classified(none, std::vector<int>{}).size(), 0U);
}

TEST(ArrayDataset, ChecksEveryLabel) {
    auto const refused = [](auto bad) {
        using T = decltype(bad);
        return refusal<Classified>(counted(12), std::vector<T>{T{2}, T{0}, bad});
    };
    EXPECT_EQ(refused(3), "ArrayDataset targets: index 2, label 3, classes 3");
    EXPECT_EQ(refused(-1), "ArrayDataset targets: index 2, label -1, classes 3");
    EXPECT_EQ(refused(std::uint8_t{255}), "ArrayDataset targets: index 2, label 255, classes 3");
    EXPECT_EQ(refused(static_cast<signed char>(-128)), "ArrayDataset targets: index 2, label -128, classes 3");
    EXPECT_EQ(refused(std::int64_t{1} << 32U), "ArrayDataset targets: index 2, label 4294967296, classes 3");
    EXPECT_EQ(refused(~std::uint64_t{0}), "ArrayDataset targets: index 2, label 18446744073709551615, classes 3");
    EXPECT_EQ(refused(std::int16_t{2}), "");
}

TEST(ArrayDataset, ScalesWhileLoading) {
    std::vector<std::uint8_t> const pixels = {0, 51, 255, 1};
    std::vector<int> const label = {1};
    Pixels const images{pixels, label};
    EXPECT_DOUBLE_EQ(images.input_scale(), 1.0 / 255.0);
    auto const row = loaded<double>(images, 0);
    EXPECT_EQ(row, (std::array<double, 4>{0.0, 51 * (1 / 255.0), 1.0, 1 / 255.0}));
    EXPECT_EQ(loaded<float>(images, 0)[2], 1.0F);
    Pixels const unscaled{pixels, label, {.input_scale = 1.0}};
    EXPECT_EQ(loaded<float>(unscaled, 0), (std::array<float, 4>{0, 51, 255, 1}));
    Classified const halved{counted(4), label, {.input_scale = 0.5}};
    EXPECT_EQ(loaded<float>(halved, 0), (std::array<float, 4>{0, 0.5F, 1, 1.5F}));
    EXPECT_EQ(images.stored_inputs()[0][1], 51);
}

TEST(ArrayDataset, HoldsTargetVectors) {
    xt::xtensor<float, 2> const targets = {{1, 2}, {3, 4}, {5, 6}};
    Regressed const dataset{counted(12), targets};
    ASSERT_EQ(dataset.size(), 3U);
    EXPECT_EQ(dataset.target(2)[0], 5.0F);
    EXPECT_EQ(dataset.target(2)[1], 6.0F);
    ArrayDataset<4, TargetVectors<1, double>> const one{counted(12), std::vector<double>{0.1, 0.2, 0.3}};
    EXPECT_EQ(one.target(1)[0], 0.2);
}

TEST(ArrayDataset, BorrowsWithoutCopying) {
    auto inputs = counted(12);
    std::vector<float> const targets = {1, 2, 3, 4, 5, 6};
    auto const classified = Classified::borrow(inputs, labels);
    auto const copy = classified;
    expect_counted(copy);
    EXPECT_EQ(copy.stored_inputs().data(), inputs.data());
    auto const regressed = Regressed::borrow(std::span<float const>{inputs}, targets);
    EXPECT_EQ(regressed.stored_inputs().data(), inputs.data());
    EXPECT_EQ(regressed.target(0).data(), targets.data());
    xt::xtensor<float, 2> const matrix = xt::ones<float>({5, 4});
    auto const rows = xt::view(matrix, xt::range(1, 4));
    EXPECT_EQ(Classified::borrow(rows, labels).stored_inputs().data(), matrix.data() + 4);
    EXPECT_EQ(error_text<DataError>([&] { (void)Classified::borrow(matrix, labels); }), "ArrayDataset: 5 inputs, but 3 targets");
    EXPECT_NE(error_text<DataError>([&] {
                  (void)Classified::borrow(inputs, std::vector<int>{0, 1, 7});
              }).find("label 7"),
              std::string::npos);
}

TEST(ArrayDataset, AsksForExistingSamplesOnly) {
    Classified const dataset{counted(12), labels};
    std::array<float, 4> row{};
    EXPECT_THROW(dataset.load(3, std::span{row}), AssertionError);
    EXPECT_THROW((void)dataset.target(3), AssertionError);
}

} // namespace array_dataset_test
