#pragma once

#include "lockstep/comm/call.hpp"
#include "lockstep/comm/mpi_group.hpp"
#include "lockstep/core/shard_tree.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace lockstep::detail {

/// Joins the losses of two blocks of ranks, [begin, middle) and [middle, end).
inline void join_losses(MpiPost& left, MpiPost const& right, int begin, int middle, int end, int workers) {
    if (left.losses_size + right.losses_size == 0) { return; }
    auto const leaves = left.call.leaves == 0 ? static_cast<std::size_t>(workers) : left.call.leaves;
    auto const first_leaf = [&](int rank) {
        return part_of(leaves, static_cast<std::size_t>(rank), static_cast<std::size_t>(workers)).first;
    };
    NodeFold<double> fold{leaves};
    auto const push_all = [&](MpiPost const& post, Range range) {
        std::size_t next = 0;
        for_each_node(range, leaves, [&](TreeNode const& node) {
            fold.push(node, post.losses[next++], [](double& sum, double addend) { sum += addend; });
        });
    };
    push_all(left, {first_leaf(begin), first_leaf(middle)});
    push_all(right, {first_leaf(middle), first_leaf(end)});
    left.losses_size = fold.size();
    for (std::size_t i = 0; i < fold.size(); ++i) { left.losses[i] = fold[i]; }
}

/// Waits until all workers have come, and combines their posts: afterwards `post` is that of the whole group, on all. Throws the
/// same Error on all if they do not agree. combine(left, right, middle) joins the values of the ranks below and from `middle` in
/// `left`.
///
/// Blocks of 1, 2, 4, … ranks exchange their posts, which is recursive doubling; where the last block is short, its ranks serve
/// several of the other side. So all have met after log2(size) rounds, rounded up, and what is summed is summed in the tree of
/// comm/tree_sum.hpp for any number of ranks.
template <class Combine>
void meet(MpiGroup& group, MpiPost& post, Combine const& combine) {
    int const rank = group.rank();
    Call const call = post.call;
    group.begin(call);
    MpiPost& incoming = group.incoming;
    MpiPost& outgoing = group.outgoing;
    for (int stride = 1; stride < group.size(); stride *= 2) {
        int const begin = rank / (2 * stride) * (2 * stride);
        int const middle = begin + stride;
        int const end = std::min(middle + stride, group.size());
        int const right_ranks = end - middle;
        if (right_ranks <= 0) { continue; }
        outgoing = post;
        bool const left = rank < middle;
        if (left) {
            group.receive(&incoming, sizeof incoming, middle + (rank - begin) % right_ranks, tag_post);
            if (rank - begin < right_ranks) { group.send(&outgoing, outgoing.bytes(), rank + stride, tag_post); }
        } else {
            group.receive(&incoming, sizeof incoming, rank - stride, tag_post);
            for (int to = rank - stride; to < middle; to += right_ranks) {
                group.send(&outgoing, outgoing.bytes(), to, tag_post);
            }
        }
        group.wait();
        if (!left) { std::swap(post, incoming); }
        if (post.other_rank < 0) {
            bool const same = incoming.call == post.call;
            post.other_rank = same ? incoming.other_rank : middle;
            post.other = same ? incoming.other : incoming.call;
        }
        if (post.other_rank < 0) { join_losses(post, incoming, begin, middle, end, group.size()); }
        combine(post, incoming, middle);
    }
    group.met();
    if (post.other_rank < 0) { return; }
    group.end(); // all throw the same
    throw Error(disagreement(post.other_rank, post.other, post.call));
}

} // namespace lockstep::detail
