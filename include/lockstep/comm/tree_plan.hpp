#pragma once

#include "lockstep/comm/communicator.hpp"
#include "lockstep/comm/tree_sum.hpp"
#include "lockstep/core/error.hpp"
#include "lockstep/core/shard_tree.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::detail {

/// How the workers' partial sums (core/shard_tree.hpp) become the total: which are added, in the tree's order. A plan is made for
/// a number of leaves and kept until another one is asked for; it allocates nothing once it exists.
class TreePlan {
public:
    /// One of the sums that workers bring.
    struct Source {
        std::uint32_t rank = 0;
        std::uint32_t number = 0; ///< among those of that worker
    };
    /// Source `left` becomes the sum of both.
    struct Merge {
        std::uint32_t left = 0;
        std::uint32_t right = 0;
    };

    explicit TreePlan(int workers) : workers_{static_cast<std::size_t>(workers)}, first_source_(workers_ + 1) {
        sources_.reserve(workers_ * max_nodes);
        merges_.reserve(workers_ * max_nodes);
        values_.reserve(workers_ * max_nodes);
        prepare(workers_);
    }

    /// For `leaves` leaves, 0: one per worker. Throws ArgumentError for more than 2^31.
    void prepare(std::size_t leaves) {
        leaves = leaves == 0 ? workers_ : leaves;
        if (leaves == leaves_) { return; }
        if (leaves >> max_levels != 0) { throw ArgumentError(concat("a sum has at most 2147483647 shards, got ", leaves)); }
        leaves_ = leaves;
        sources_.clear();
        merges_.clear();
        NodeFold<std::uint32_t> fold{leaves};
        auto const merge = [&](std::uint32_t left, std::uint32_t right) { merges_.push_back({left, right}); };
        for (std::size_t rank = 0; rank < workers_; ++rank) {
            std::uint32_t number = 0;
            first_source_[rank] = sources_.size();
            for_each_node(part_of(leaves, rank, workers_), leaves, [&](TreeNode const& node) {
                sources_.push_back({static_cast<std::uint32_t>(rank), number++});
                fold.push(node, static_cast<std::uint32_t>(sources_.size() - 1), merge);
            });
        }
        first_source_[workers_] = sources_.size();
    }

    [[nodiscard]] std::size_t workers() const noexcept { return workers_; }
    [[nodiscard]] std::size_t leaves() const noexcept { return leaves_; }
    [[nodiscard]] std::span<Source const> sources() const noexcept { return sources_; }
    [[nodiscard]] std::span<Merge const> merges() const noexcept { return merges_; }

    /// How many sums a worker brings, it may be none, and the number of its first among all sources.
    [[nodiscard]] std::size_t sums_of(std::size_t rank) const { return first_source(rank + 1) - first_source(rank); }
    [[nodiscard]] std::size_t first_source(std::size_t rank) const { return first_source_[rank]; }

    /// Prepares for the tree of `sums`. Throws ArgumentError unless they are what worker `rank` has to bring.
    template <class T>
    void check(PartialSums<T> const& sums, int rank) {
        prepare(sums.leaves);
        std::size_t const expected = std::max<std::size_t>(sums_of(static_cast<std::size_t>(rank)), 1);
        if (sums.all.size() != expected * sums.count) {
            throw ArgumentError(concat("partial sums over ", leaves_, " leaves: expected ", expected, " of ", sums.count,
                                       " elements on rank ", rank, " of ", workers_, ", got ", sums.all.size(), " elements"));
        }
    }

    /// result[i] = the total of element i of all sums, for `count` elements that fit into a piece (reduction_piece_bytes).
    /// at(i) is where those of source i are; they serve as scratch. `result` may be one of these places.
    template <Communicable T, class At>
    void sum(std::size_t count, At const& at, T* result) const {
        if (merges_.empty()) {
            if (T const* const only = at(std::size_t{0}); only != result) { std::copy_n(only, count, result); }
            return;
        }
        for (auto const& merge : merges().first(merges_.size() - 1)) {
            accumulate<T>(at(std::size_t{merge.left}), at(std::size_t{merge.right}), count);
        }
        T* const left = at(std::size_t{merges_.back().left});
        T* const right = at(std::size_t{merges_.back().right});
        if (result == left) {
            accumulate<T>(left, right, count);
        } else if (result == right) {
            accumulate<T>(right, left, count);
        } else {
            sum_two<T>(left, right, result, count);
        }
    }

    /// The same without a copy where there is but one sum: returns where the totals are, in `scratch` or there.
    template <Communicable T, class At>
    [[nodiscard]] T const* sum_somewhere(std::size_t count, At const& at, T* scratch) const {
        if (merges_.empty()) { return at(std::size_t{0}); }
        sum<T>(count, at, scratch);
        return scratch;
    }

    /// The total of one number per source, value_of(source), which stay as they are.
    template <class ValueOf>
    [[nodiscard]] double total(ValueOf const& value_of) {
        values_.clear();
        for (auto const& source : sources_) { values_.push_back(value_of(source)); }
        for (auto const& merge : merges_) { values_[merge.left] += values_[merge.right]; }
        return values_.front();
    }

private:
    std::size_t workers_;
    std::size_t leaves_ = 0;
    std::vector<std::size_t> first_source_;
    std::vector<Source> sources_;
    std::vector<Merge> merges_;
    std::vector<double> values_;
};

} // namespace lockstep::detail
