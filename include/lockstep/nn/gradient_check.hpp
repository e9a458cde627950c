#pragma once

#include "lockstep/core/random.hpp"
#include "lockstep/core/rows.hpp"
#include "lockstep/engine/simd.hpp"
#include "lockstep/nn/losses.hpp"
#include "lockstep/nn/model.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// What a gradient check found: the worst disagreement and where it was.
struct GradientCheckResult {
    double worst_error = 0;     ///< |analytic - numeric| / max(1, |analytic|, |numeric|)
    std::string worst_tensor{}; ///< name in the state dict
    std::size_t worst_index = 0;
    double analytic = 0;
    double numeric = 0;
    std::size_t checked = 0; ///< scalars compared

    /// True when every derivative agrees to `tolerance`; central differences in double are good for about 1e-8 on smooth layers.
    [[nodiscard]] bool passed(double tolerance = 1e-6) const noexcept { return checked > 0 && worst_error <= tolerance; }
};

struct GradientCheckOptions {
    std::size_t rows = 5;
    std::uint64_t seed = 1;
    double step = 1e-5;    ///< of the central difference
    bool training = false; ///< with Dropout on: its mask is the same in every pass of one check
};

/// Compares the gradient of every parameter of `Net` (in double, on random inputs and targets) with a central difference of the
/// loss. To check a layer of your own, put it between two Linear layers: the first one's gradients pass through the layer's input
/// gradient. `LossType` is one of nn/losses.hpp or your own.
template <class Net, class LossType, class EngineType = SimdEngine>
[[nodiscard]] GradientCheckResult gradient_check(LossType const& criterion = {}, GradientCheckOptions const& options = {}) {
    Model<Net, EngineType, double> model{seed(options.seed)};
    model.train(options.training);
    RandomStream const random{options.seed, RandomPurpose::data, 0};
    std::vector<double> inputs(options.rows * Net::inputs);
    for (std::size_t i = 0; i < inputs.size(); ++i) { inputs[i] = 2 * random.uniform(i) - 1; }
    std::vector<double> vectors(options.rows * Net::outputs);
    for (std::size_t i = 0; i < vectors.size(); ++i) { vectors[i] = 2 * random.uniform(inputs.size() + i) - 1; }
    std::vector<std::size_t> labels(options.rows);
    for (std::size_t i = 0; i < labels.size(); ++i) { labels[i] = random.word(i) % Net::outputs; }

    auto const mean_loss = [&] {
        model.forward(Rows<double const, Net::inputs>{inputs.data(), options.rows});
        if constexpr (LossType::kind == TargetKind::labels) {
            return model.loss(criterion, labels, options.rows) / static_cast<double>(options.rows);
        } else {
            return model.loss(criterion, Rows<double const, Net::outputs>{vectors.data(), options.rows}, options.rows) /
                   static_cast<double>(options.rows);
        }
    };
    static_cast<void>(mean_loss());
    model.backward();

    GradientCheckResult result;
    auto const names = model.state_dict();
    for (std::size_t tensor = 0; tensor < Net::tensor_count; ++tensor) {
        auto const values = model.parameter(tensor);
        auto const gradient = model.gradient(tensor);
        for (std::size_t i = 0; i < values.size(); ++i) {
            double const start = values[i];
            values[i] = start + options.step;
            double const above = mean_loss();
            values[i] = start - options.step;
            double const below = mean_loss();
            values[i] = start;
            double const numeric = (above - below) / (2 * options.step);
            double const error = std::abs(gradient[i] - numeric) / std::max({1.0, std::abs(gradient[i]), std::abs(numeric)});
            ++result.checked;
            if (!(error <= result.worst_error) && !std::isnan(result.worst_error)) { // NaN is the worst and stays it
                result.worst_error = error;
                result.worst_tensor = names.tensors[tensor].name;
                result.worst_index = i;
                result.analytic = gradient[i];
                result.numeric = numeric;
            }
        }
    }
    return result;
}

} // namespace lockstep
