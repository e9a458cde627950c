#pragma once

#include <concepts>
#include <cstddef>
#include <span>

namespace lockstep {

/// An optimizer is a plain type of hyperparameters; what it remembers between steps is its state, made by `init`.
///
/// - `init<T>(size)` checks the hyperparameters (ArgumentError) and returns the state for `size` parameters.
/// - `step(parameters, gradients, state)` makes one step. Gradients are those of the global batch's mean loss. It allocates
/// nothing.
template <class O, class T = float>
concept Optimizer = requires(O const& optimizer, std::span<T> parameters, std::span<T const> gradients, std::size_t size) {
    { optimizer.template init<T>(size) } -> std::movable;
    requires requires(decltype(optimizer.template init<T>(size))& state) { optimizer.step(parameters, gradients, state); };
};

/// An optimizer that treats every parameter for itself, so that a step can be made in pieces by different workers with the same
/// bits: `begin_step(state)` once, then `update(offset, parameters, gradients, state)` for pieces that begin at `offset` of the
/// buffer. `step` does the same with one piece. After a step in pieces, `state` is only valid where this worker's pieces were.
template <class O, class T = float>
concept ElementwiseOptimizer = Optimizer<O, T> &&
    requires(O const& optimizer, std::span<T> parameters, std::span<T const> gradients, std::size_t offset,
             decltype(optimizer.template init<T>(offset))& state) {
    optimizer.update(offset, parameters, gradients, state);
    optimizer.end_step(state);
};

} // namespace lockstep
