#pragma once

#include "lockstep/comm/communicator.hpp"
#include "lockstep/optim/optimizer.hpp"
#include "lockstep/train/fused_step.hpp"

#include <cmath>
#include <concepts>
#include <cstddef>
#include <span>

namespace lockstep {

/// True when each worker sums and updates only its own slice of the parameters.
template <class Comm, class OptimizerType, class T>
inline constexpr bool updates_in_slices = FusesUpdate<Comm, T>&& ElementwiseOptimizer<OptimizerType, T>;

/// Makes all replicas start from rank 0's parameters; call it once before the first step. Collective. Where each worker updates
/// its slice and all live in one address space, they share one buffer until one of them writes to its own (`Model::parameters`):
/// the same bits need not be copied to every worker.
template <class ModelType, class Comm, class OptimizerType>
void synchronize(ModelType& model, Comm& comm, OptimizerType const&) {
    if constexpr (SharesMemory<Comm> && updates_in_slices<Comm, OptimizerType, typename ModelType::value_type>) {
        model.share_parameters(comm.share(model.parameter_buffer(), 0));
    } else {
        comm.broadcast(model.parameters(), 0);
    }
}

/// Sums the last `loss` over all workers and returns the sum. Computes the gradients of that loss, sums them over all workers and
/// makes one optimizer step on every replica; when the loss is not finite, parameters and state stay as they are. Collective.
/// This is the one place that chooses between the plain way and the fused ones; all end with the same bits:
///
/// 1. where engine, communicator and optimizer can do everything at once, they do (train/fused_step.hpp);
/// 2. with an element-wise optimizer, and a communicator that can, each worker sums and updates its own slice of the parameters
///    for all (the idea of Rajbhandari et al., "ZeRO", SC '20). `model.gradients()` are then unspecified;
/// 3. otherwise: `all_reduce`, then `step` on every worker. Write these lines yourself when you want to see or clip gradients.
template <class ModelType, class Comm, class OptimizerType, class State>
double backward_average_update(ModelType& model, Comm& comm, OptimizerType const& optimizer, State& state) {
    using T = typename ModelType::value_type;
    if constexpr (FusesStep<ModelType, Comm, OptimizerType>) {
        return fused_step(model, comm, optimizer, state);
    } else if constexpr (updates_in_slices<Comm, OptimizerType, T>) {
        model.backward();
        auto const update = [&](std::size_t offset, std::span<T> parameters, std::span<T const> gradients) {
            optimizer.update(offset, parameters, gradients, state);
        };
        double const sum = reduce_update(comm, model.losses(), model.gradients(), model.shared_parameters(), update);
        if (std::isfinite(sum)) { optimizer.end_step(state); }
        return sum;
    } else {
        auto const losses = model.losses();
        all_reduce(comm, losses);
        if (!std::isfinite(losses[0])) { return losses[0]; }
        model.backward();
        all_reduce(comm, model.gradients());
        optimizer.step(model.parameters(), std::span<T const>{model.gradients()}, state);
        return losses[0];
    }
}

} // namespace lockstep
