#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace lockstep::benchmarks {

/// Repeats of one figure.
struct Repeats {
    std::vector<double> values;

    void add(double value) { values.push_back(value); }
    [[nodiscard]] std::size_t size() const { return values.size(); }
    [[nodiscard]] double median() const {
        auto sorted = values;
        std::sort(sorted.begin(), sorted.end());
        auto const middle = sorted.size() / 2;
        return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
    }
    [[nodiscard]] double min() const { return *std::min_element(values.begin(), values.end()); }
    [[nodiscard]] double max() const { return *std::max_element(values.begin(), values.end()); }
};

} // namespace lockstep::benchmarks
