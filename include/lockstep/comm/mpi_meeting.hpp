#pragma once

#include "lockstep/comm/call.hpp"
#include "lockstep/comm/mpi_group.hpp"

#include <algorithm>
#include <utility>

namespace lockstep::detail {

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
        int const right_ranks = std::min(stride, group.size() - middle);
        if (right_ranks <= 0) { continue; }
        outgoing = post;
        bool const left = rank < middle;
        if (left) {
            group.receive(&incoming, sizeof incoming, middle + (rank - begin) % right_ranks, tag_post);
            if (rank - begin < right_ranks) { group.send(&outgoing, sizeof outgoing, rank + stride, tag_post); }
        } else {
            group.receive(&incoming, sizeof incoming, rank - stride, tag_post);
            for (int to = rank - stride; to < middle; to += right_ranks) { group.send(&outgoing, sizeof outgoing, to, tag_post); }
        }
        group.wait();
        if (!left) { std::swap(post, incoming); }
        if (post.other_rank < 0) {
            bool const same = incoming.call == post.call;
            post.other_rank = same ? incoming.other_rank : middle;
            post.other = same ? incoming.other : incoming.call;
        }
        post.scalar += incoming.scalar;
        combine(post, incoming, middle);
    }
    group.met();
    if (post.other_rank < 0) { return; }
    group.end(); // all throw the same
    throw Error(disagreement(post.other_rank, post.other, post.call));
}

} // namespace lockstep::detail
