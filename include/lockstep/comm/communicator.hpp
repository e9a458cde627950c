#pragma once

#include "lockstep/core/error.hpp"
#include "lockstep/core/shard_tree.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace lockstep {

/// The scalars that every communicator can carry.
template <class T>
concept Communicable =
    std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, std::int64_t> || std::same_as<T, std::uint64_t>;

/// A communicator is one worker's end of a group of `size()` workers. The written contract, tested by tests/conformance:
///
/// - `name` says what it is ("threads"), for people.
/// - `rank()` is this worker's number in [0, size()); neither changes.
/// - `all_reduce`, `broadcast` and `barrier` are collective: every worker of the group calls the same operations in the same
/// order with spans of the same
///   length and scalar type. A worker that does otherwise is told so with an `Error` naming ranks and operations, where the
///   communicator can see it; the group is then of no further use.
/// - `all_reduce(values)`: afterwards every worker's `values` hold the element-wise sums over all workers, the same bits on all.
///   Sums are taken in the fixed binary tree over ranks of comm/tree_sum.hpp, so they depend on nothing but the values and
///   size().
/// - `broadcast(values, root)`: afterwards every worker's `values` equal the root's.
/// - `barrier()`: nobody returns before everybody has called it. What a worker wrote before it, others can read after it.
/// - No element count is special: 0 and 1 work. Nothing is allocated once the communicator exists.
/// - When a worker fails, or returns while others still wait for it, the others leave the operation they wait in by an exception
///   instead of waiting for ever. An error of a collective operation ends the run even if the body catches it.
template <class C>
concept Communicator = requires(C& comm, C const& constant, std::span<float> floats, std::span<double> doubles,
                                std::span<std::int64_t> integers, std::span<std::uint64_t> words, int root) {
    { C::name } -> std::convertible_to<char const*>;
    { constant.rank() } -> std::same_as<int>;
    { constant.size() } -> std::same_as<int>;
    comm.all_reduce(floats);
    comm.all_reduce(doubles);
    comm.all_reduce(integers);
    comm.all_reduce(words);
    comm.broadcast(floats, root);
    comm.broadcast(doubles, root);
    comm.broadcast(integers, root);
    comm.broadcast(words, root);
    comm.barrier();
};

namespace detail {

/// What `reduce_update` calls, at its least.
template <class T>
struct UpdateArchetype {
    void operator()(std::size_t /*offset*/, std::span<T> /*parameters*/, std::span<T const> /*gradients*/) const {}
};

inline void check_root(int root, int size) {
    if (root < 0 || root >= size) {
        throw ArgumentError(concat("broadcast: root must be a rank in [0, ", size, "), got ", root));
    }
}

inline void check_same_length(std::size_t gradients, std::size_t parameters) {
    if (gradients != parameters) {
        throw ArgumentError(
            concat("reduce_update: expected as many parameters as gradients, got ", parameters, " and ", gradients));
    }
}

/// One worker's sums added up, one after the other, in place of the first.
template <class T>
std::span<T> add_up(PartialSums<T> sums) {
    for (std::size_t number = 1; number < sums.sums(); ++number) {
        for (std::size_t i = 0; i < sums.count; ++i) { sums[i] += sums.sum(number)[i]; }
    }
    return sums;
}

/// Two sums that go together are over the same leaves.
inline void check_same_tree(PartialSums<double> const& values, std::size_t leaves) {
    if (values.leaves != leaves || values.count != 1) {
        throw ArgumentError(concat("reduce_update: expected one value over ", leaves, " leaves, as the gradients, got ",
                                   values.count, " over ", values.leaves));
    }
}

} // namespace detail

/// A communicator that also offers `reduce_update(value, gradients, parameters, update)`, collective: `all_reduce(gradients)` and
/// then an element-wise update of `parameters`, fused. Each worker calls `update(offset, parameters_piece,
/// summed_gradients_piece)` for the pieces of its own slice only, always the same slice for the same count and size(), and the
/// others receive the result. Before it, `parameters` are equal on all workers (they may be one shared buffer); after it they are
/// equal again and `gradients` are unspecified. Both spans have the same length. It returns the sum of `value` (the loss, say)
/// over all workers, and when that is not finite it updates nothing. An exception of `update` leaves it on this worker and ends
/// the run.
template <class C, class T>
concept FusesUpdate = Communicator<C> && Communicable<T> &&
    requires(C& comm, double value, std::span<T> values, detail::UpdateArchetype<T> update) {
    { comm.reduce_update(value, values, values, update) } -> std::same_as<double>;
};

/// A communicator that also sums over the leaves of a tree (core/shard_tree.hpp), so that the bits need not depend on the number
/// of workers:
///
/// - `all_reduce(PartialSums<T>)`, collective: afterwards the total stands in the first sum's place, on all workers.
/// - `reduce_update(PartialSums<double> values, PartialSums<T> gradients, parameters, update)` is `reduce_update` with the total
///   of both.
template <class C, class T>
concept SumsTrees = FusesUpdate<C, T> && requires(C& comm, PartialSums<double> values, PartialSums<T> gradients,
                                                  std::span<T> parameters, detail::UpdateArchetype<T> update) {
    comm.all_reduce(gradients);
    { comm.reduce_update(values, gradients, parameters, update) } -> std::same_as<double>;
};

namespace detail {

/// What `reduce_in_place` calls, at its least.
struct UseArchetype {
    void operator()(auto const& /*sums*/) const {}
};

} // namespace detail

/// A communicator whose workers can read each other's sums where they are also offers `reduce_in_place(values, gradients,
/// parameters, use)`, collective, which leaves summing and updating to the caller. It waits until all have come and returns the
/// total of `values`; when that is finite, each worker's use(sums) runs before anybody leaves. In it,
///
/// - `sums.total(first, count, scratch)` returns where the total of the gradients' elements [first, first + count) is: in
///   `scratch`, or elsewhere. Of each element one worker may ask, once, for the sums serve as scratch, too. `count` elements fit
///   into a piece (reduction_piece_bytes);
/// - `sums.total(first, count, scratch, own)` takes own(number) for this worker's sum `number` of these elements, in place of
///   what `gradients` hold;
/// - `sums.others(first, where)` writes into the span `where` the pointers to the others' sums of the elements from `first` on,
/// as
///   many as fit, and returns how many: for those who want to bring them into the cache before they ask for the total;
/// - `sums.spread(first, count)` gives what this worker has written to its `parameters` to the others.
///
/// An exception of `use` leaves it on this worker and ends the run.
template <class C, class T>
concept ReducesInPlace = SumsTrees<C, T> &&
    requires(C& comm, PartialSums<double> values, PartialSums<T> gradients, std::span<T> parameters, detail::UseArchetype use) {
    { comm.reduce_in_place(values, gradients, parameters, use) } -> std::same_as<double>;
};

/// A communicator whose workers live in one address space also offers `share(pointer, root)`, collective: every worker receives a
/// copy of the root's std::shared_ptr.
template <class C>
concept SharesMemory = Communicator<C> && requires(C& comm, std::shared_ptr<int> pointer, int root) {
    { comm.share(pointer, root) } -> std::same_as<std::shared_ptr<int>>;
};

/// The total of all workers' partial sums, in the first one's place. A communicator without `SumsTrees` sums over the ranks what
/// each worker has added up by itself, so that the bits depend on the number of workers. Collective.
template <Communicator C, Communicable T>
void all_reduce(C& comm, PartialSums<T> sums) {
    if constexpr (requires { comm.all_reduce(sums); }) {
        comm.all_reduce(sums);
    } else {
        comm.all_reduce(detail::add_up(sums));
    }
}

/// `reduce_update` with partial sums, likewise. Collective.
template <Communicator C, Communicable T, class Update>
double reduce_update(C& comm, PartialSums<double> values, PartialSums<T> gradients, std::span<T> parameters,
                     Update const& update) {
    if constexpr (SumsTrees<C, T>) {
        return comm.reduce_update(values, gradients, parameters, update);
    } else {
        return comm.reduce_update(detail::add_up(values)[0], detail::add_up(gradients), parameters, update);
    }
}

/// The sum of `value` over all workers, the same bits on all. Collective.
template <Communicator C>
[[nodiscard]] double all_reduce_sum(C& comm, double value) {
    comm.all_reduce(std::span<double>{&value, 1});
    return value;
}

} // namespace lockstep
