#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep {

/// A class label, counted from 0.
using Label = std::int32_t;

/// A dataset holds `size()` samples of `features` input scalars each. `load(index, row)` writes the inputs of one sample, scaled
/// as the network shall see them; it is called by several workers at once, so it changes nothing and allocates nothing. `T` is
/// the scalar type of the model that asks.
template <class D, class T = float>
concept InputDataset = requires(D const& dataset, std::size_t index, std::span<T, D::features> row) {
    { D::features } -> std::convertible_to<std::size_t>;
    { dataset.size() } -> std::convertible_to<std::size_t>;
    dataset.load(index, row);
};

/// A dataset for classification: `target(index)` is a label in [0, classes).
template <class D, class T = float>
concept ClassificationDataset = InputDataset<D, T> && requires(D const& dataset, std::size_t index) {
    { D::classes } -> std::convertible_to<std::size_t>;
    { dataset.target(index) } -> std::integral;
};

/// A dataset for regression: `target(index)` is a span of `targets` scalars.
template <class D, class T = float>
concept RegressionDataset = InputDataset<D, T> && requires(D const& dataset, std::size_t index) {
    { D::targets } -> std::convertible_to<std::size_t>;
    { dataset.target(index)[0] } -> std::convertible_to<double>;
};

template <class D, class T = float>
concept Dataset = ClassificationDataset<D, T> || RegressionDataset<D, T>;

} // namespace lockstep
