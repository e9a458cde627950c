#pragma once

#include "lockstep/comm/communicator.hpp"
#include "lockstep/comm/tree_sum.hpp"
#include "lockstep/core/aligned_buffer.hpp"
#include "lockstep/core/lookahead.hpp"
#include "lockstep/core/shard_tree.hpp"
#include "lockstep/optim/optimizer.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>

namespace lockstep {

/// Where the whole of "backward, average, update" can be one: the engine gives the weights' gradients piece by piece, the workers
/// can read each other's sums in place, and the optimizer updates each parameter by itself.
template <class ModelType, class Comm, class OptimizerType>
concept FusesStep = ModelType::backward_in_parts && ReducesInPlace<Comm, typename ModelType::value_type> &&
    ElementwiseOptimizer<OptimizerType, typename ModelType::value_type>;

/// What `backward_average_update` (train/update.hpp) promises, with the same bits, and fewer ways to memory: each worker owns a
/// part of the parameters. It first computes the gradients that the others own and lets them know; then its own ones, piece by
/// piece, and while a piece is in the cache adds the others' sums and updates the parameters. `model.gradients()` are unspecified
/// afterwards.
template <class ModelType, class Comm, class OptimizerType, class State>
requires FusesStep<ModelType, Comm, OptimizerType>
double fused_step(ModelType& model, Comm& comm, OptimizerType const& optimizer, State& state) {
    using T = typename ModelType::value_type;
    auto const parameters = model.shared_parameters();
    Slice const own =
        slice_of<T>(parameters.size(), static_cast<std::size_t>(comm.rank()), static_cast<std::size_t>(comm.size()));
    model.backward_slopes();
    model.weight_gradients({0, own.begin});
    model.weight_gradients({own.end, parameters.size()});
    auto const use = [&](auto const& sums) {
        constexpr std::size_t most = reduction_piece_bytes / sizeof(T);
        alignas(alignment) std::array<T, most> scratch;
        auto const update = [&](std::size_t first, std::size_t count, auto const&... own_sum) {
            for (std::size_t begin = 0; begin < count; begin += most) {
                std::size_t const piece = std::min(most, count - begin);
                [[maybe_unused]] auto const from_begin = [&](auto const& sum) {
                    return [&](std::size_t number) { return sum(number) + begin; };
                };
                T const* const gradients = sums.total(first + begin, piece, scratch.data(), from_begin(own_sum)...);
                optimizer.update(first + begin, parameters.subspan(first + begin, piece), std::span<T const>{gradients, piece},
                                 state);
                sums.spread(first + begin, piece);
            }
        };
        auto const ahead_of = [&](std::size_t first) {
            Lookahead<T> ahead{.written = parameters.data() + first};
            ahead.count = sums.others(first, ahead.read);
            return ahead;
        };
        model.update_weights({own.begin, own.end}, update, ahead_of);
    };
    double const sum = comm.reduce_in_place(model.losses(), model.gradients(), parameters, use);
    if (std::isfinite(sum)) { optimizer.end_step(state); }
    return sum;
}

} // namespace lockstep
