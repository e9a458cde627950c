#pragma once

#include "lockstep/core/random.hpp"
#include "lockstep/nn/layer.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep {

/// Fills a parameter buffer of `Net` with each tensor's initial values; gaps are left as they are. Values are drawn in double
/// from the counter-based stream (seed, initialisation, tensor number) and rounded once to `T`: the same bits on every compiler.
template <class Net, class T>
void initialize(std::span<T> parameters, Seed seed) {
    for (std::size_t i = 0; i < Net::tensor_count; ++i) {
        auto const& spec = Net::tensors[i].spec;
        auto const values = parameters.subspan(Net::template offsets<T>[i], spec.size());
        RandomStream const stream{static_cast<std::uint64_t>(seed), RandomPurpose::initialisation, static_cast<std::uint32_t>(i)};
        if (spec.initializer.kind == Initializer::Kind::constant) {
            for (auto& value : values) { value = static_cast<T>(spec.initializer.value); }
        } else {
            double const bound = 1 / std::sqrt(spec.initializer.value);
            for (std::size_t k = 0; k < values.size(); ++k) {
                double const unit = 2 * stream.uniform(k) - 1; // exact, so that no compiler can round it in another way
                values[k] = static_cast<T>(bound * unit);
            }
        }
    }
}

} // namespace lockstep
