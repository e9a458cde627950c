#pragma once

#include "lockstep/core/rows.hpp"
#include "lockstep/core/shard_tree.hpp"
#include "lockstep/engine/operations.hpp"

#include <concepts>
#include <cstddef>
#include <string>

namespace lockstep {

/// An engine is where the mathematics of a network runs. It is a type without state; what belongs to one model is its
/// `Workspace<Operations, T>`: the activations, in whatever layout and place the engine likes. The written contract:
///
/// - `reserve(rows)` takes all memory for batches of up to `rows` rows; nothing later allocates.
/// - `load(source)` copies the rows of a `RowSource` in, converting to the engine's layout; `rows()` is then their number, 0
/// included.
/// - `forward(parameters, context)` runs all operations; `parameters` is the model's buffer in PyTorch's layout.
/// - `outputs()` shows the result row-major: (rows, outputs). `output_gradient()` is the place, row-major, for d loss / d
/// outputs;
///   a loss writes all of it.
/// - `shards()` says how the rows of the last forward pass are summed: in shards and these by the tree (core/shard_tree.hpp), as
///   `context` cuts them, or all rows as one.
/// - `backward(parameters, gradients, context)` writes d loss / d parameters, in the layout of `parameters`: for each node of
///   `shards()` the sum over its rows; zeros when there are no rows. The gaps between tensors are left as they are.
/// - Two calls with the same bits in give the same bits out, whatever other workspaces do at the same time.
///
/// An engine whose backward pass comes in two parts, as train/fused_step.hpp wants it, can fuse it with averaging and updating.
template <class E, class Operations = OperationList<LinearOperation<2, 2, Identity, 0, 16>>, class T = float>
concept Engine = requires(typename E::template Workspace<Operations, T>& workspace, Rows<T const, Operations::widths[0]> rows,
                          T const* parameters, PartialSums<T> gradients, PassContext const& context, std::size_t count) {
    { E::name } -> std::convertible_to<char const*>;
    { E::description() } -> std::convertible_to<std::string>;
    workspace.reserve(count);
    workspace.load(rows);
    { workspace.rows() } -> std::same_as<std::size_t>;
    workspace.forward(parameters, context);
    { workspace.outputs() } -> std::same_as<Rows<T const, Operations::widths[Operations::size]>>;
    { workspace.output_gradient() } -> std::same_as<Rows<T, Operations::widths[Operations::size]>>;
    { workspace.shards() } -> std::convertible_to<RowShards>;
    workspace.backward(parameters, gradients, context);
};

} // namespace lockstep
