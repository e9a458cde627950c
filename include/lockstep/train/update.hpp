#pragma once

#include "lockstep/comm/communicator.hpp"
#include "lockstep/optim/optimizer.hpp"

#include <cstddef>
#include <span>

namespace lockstep {

/// An engine that takes over the whole of "backward, average, update" for this communicator and optimizer: the model's
/// `backward_average_update(comm, optimizer, state)`. It must end with the same bits as the plain way below.
template <class ModelType, class Comm, class OptimizerType, class State>
concept FusesStep = requires(ModelType& model, Comm& comm, OptimizerType const& optimizer, State& state) {
    model.backward_average_update(comm, optimizer, state);
};

/// Computes the gradients of the last loss, sums them over all workers and makes one optimizer step on every replica. Collective.
/// This is the one place that chooses between the plain way and the fused ones; all end with the same bits:
///
/// 1. an engine that can do everything at once does;
/// 2. with an element-wise optimizer, and a communicator that can, each worker sums and updates only its own slice of the
/// parameters and
///    hands it to the others (the idea of Rajbhandari et al., "ZeRO", SC '20). `model.gradients()` are then unspecified;
/// 3. otherwise: `all_reduce`, then `step` on every worker. Write these lines yourself when you want to see or clip gradients.
template <class ModelType, class Comm, class OptimizerType, class State>
void backward_average_update(ModelType& model, Comm& comm, OptimizerType const& optimizer, State& state) {
    using T = typename ModelType::value_type;
    if constexpr (FusesStep<ModelType, Comm, OptimizerType, State>) {
        model.backward_average_update(comm, optimizer, state);
    } else {
        model.backward();
        if constexpr (FusesUpdate<Comm, T> && ElementwiseOptimizer<OptimizerType, T>) {
            optimizer.begin_step(state);
            comm.reduce_update(model.gradients(), model.parameters(),
                               [&](std::size_t offset, std::span<T> parameters, std::span<T const> gradients) {
                                   optimizer.update(offset, parameters, gradients, state);
                               });
        } else {
            comm.all_reduce(model.gradients());
            optimizer.step(model.parameters(), std::span<T const>{model.gradients()}, state);
        }
    }
}

} // namespace lockstep
