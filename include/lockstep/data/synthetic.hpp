#pragma once

#include "lockstep/core/random.hpp"
#include "lockstep/data/array_dataset.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace lockstep {

/// `split`: samples of different splits are different, but follow the same law: train on split 0, test on split 1.
struct SyntheticOptions {
    std::uint32_t split = 0;
};

namespace detail {

/// Row `row` of an endless table of random integers, uniform in [-2048, 2048). Whole numbers as small as this stay exact in all
/// that the synthetic datasets do with them, so no compiler's rounding or contraction can change a bit.
inline void fill_random_steps(RandomStream const& stream, std::uint64_t row, std::span<std::int32_t> steps) {
    std::uint64_t const blocks = (steps.size() + 3) / 4;
    for (std::size_t i = 0; i < steps.size(); i += 4) {
        auto const words = stream.block(row * blocks + i / 4);
        for (std::size_t k = i; k < steps.size() && k < i + 4; ++k) {
            steps[k] = static_cast<std::int32_t>(words[k - i] >> 20U) - 2048;
        }
    }
}

/// The streams of one synthetic dataset: its law (id 0), and for each split inputs and noise.
enum class SyntheticPart : std::uint32_t { inputs = 1, noise = 2 };

[[nodiscard]] inline RandomStream synthetic_law(Seed seed_value) {
    return {static_cast<std::uint64_t>(seed_value), RandomPurpose::data, 0};
}
[[nodiscard]] inline RandomStream synthetic_stream(Seed seed_value, SyntheticPart part, SyntheticOptions options) {
    return {static_cast<std::uint64_t>(seed_value), RandomPurpose::data, 2 * options.split + static_cast<std::uint32_t>(part)};
}

} // namespace detail

/// A seeded dataset for classification that a linear model learns: each class has a random centre in [-1, 1)^Features, and its
/// samples are scattered around it by up to 0.5 in each coordinate. Sample i has label i % Classes. The same bits on every
/// compiler.
template <std::size_t Features, std::size_t Classes>
[[nodiscard]] ArrayDataset<Features, ClassLabels<Classes>> synthetic_classification(std::size_t samples, Seed seed_value,
                                                                                    SyntheticOptions options = {}) {
    std::vector<std::int32_t> centres(Classes * Features);
    for (std::size_t label = 0; label < Classes; ++label) {
        detail::fill_random_steps(detail::synthetic_law(seed_value), label,
                                  std::span{centres}.subspan(label * Features, Features));
    }
    auto const stream = detail::synthetic_stream(seed_value, detail::SyntheticPart::inputs, options);
    std::vector<float> inputs(samples * Features);
    std::vector<Label> labels(samples);
    std::vector<std::int32_t> scatter(Features);
    for (std::size_t sample = 0; sample < samples; ++sample) {
        std::size_t const label = sample % Classes;
        labels[sample] = static_cast<Label>(label);
        detail::fill_random_steps(stream, sample, scatter);
        for (std::size_t feature = 0; feature < Features; ++feature) {
            std::int32_t const steps = 2 * centres[label * Features + feature] + scatter[feature];
            inputs[sample * Features + feature] = static_cast<float>(steps) * 0x1p-12F;
        }
    }
    return {std::move(inputs), std::move(labels)};
}

/// A seeded dataset for regression: y = A x + b + noise with x in [-1, 1)^Features, random A and b (shapes (Targets, Features)
/// and (Targets)) scaled so that y is of the order of 1, and noise below 2^-6 of that. The same bits on every compiler.
template <std::size_t Features, std::size_t Targets>
[[nodiscard]] ArrayDataset<Features, TargetVectors<Targets>> synthetic_regression(std::size_t samples, Seed seed_value,
                                                                                  SyntheticOptions options = {}) {
    // Row k of the law: A's row k, then b's element k.
    std::vector<std::int32_t> law(Targets * (Features + 1));
    for (std::size_t k = 0; k < Targets; ++k) {
        detail::fill_random_steps(detail::synthetic_law(seed_value), k, std::span{law}.subspan(k * (Features + 1), Features + 1));
    }
    auto const input_stream = detail::synthetic_stream(seed_value, detail::SyntheticPart::inputs, options);
    auto const noise_stream = detail::synthetic_stream(seed_value, detail::SyntheticPart::noise, options);
    // A sum of n random products grows like sqrt(n); a power of two keeps the scaling exact.
    constexpr double scale = 0x1p-22 / static_cast<double>(std::uint64_t{1} << (std::bit_width(Features) / 2U));
    std::vector<float> inputs(samples * Features);
    std::vector<float> outputs(samples * Targets);
    std::vector<std::int32_t> x(Features);
    std::vector<std::int32_t> noise(Targets);
    for (std::size_t sample = 0; sample < samples; ++sample) {
        detail::fill_random_steps(input_stream, sample, x);
        detail::fill_random_steps(noise_stream, sample, noise);
        for (std::size_t i = 0; i < Features; ++i) { inputs[sample * Features + i] = static_cast<float>(x[i]) * 0x1p-11F; }
        for (std::size_t k = 0; k < Targets; ++k) {
            auto const* const row = law.data() + k * (Features + 1);
            std::int64_t sum = std::int64_t{row[Features]} * 2048 + std::int64_t{noise[k]} * 32;
            for (std::size_t i = 0; i < Features; ++i) { sum += std::int64_t{row[i]} * x[i]; }
            outputs[sample * Targets + k] = static_cast<float>(static_cast<double>(sum) * scale);
        }
    }
    return {std::move(inputs), std::move(outputs)};
}

} // namespace lockstep
