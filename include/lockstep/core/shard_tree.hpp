#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <ranges>
#include <span>

/// Sums whose bits do not depend on how many workers share the work: what is to be summed is cut into leaves (the shards of a
/// batch), and these are summed by one fixed binary tree. Each worker sums the nodes of the tree that lie wholly within its own
/// leaves, and the communicators the rest (comm/tree_plan.hpp).
///
/// The tree over leaves [0, n) is one leaf, or the sum of a left and a right part, where the left part has the largest power of
/// two below n leaves. So a node on level l holds leaves [index << l, (index + 1) << l), the last ones perhaps fewer. Its
/// rounding error grows with log2(n) (N. J. Higham, "The Accuracy of Floating Point Summation", SISC 14(4), 1993).
namespace lockstep {

/// A half-open range of positions.
struct Range {
    std::size_t first = 0;
    std::size_t last = 0;
    [[nodiscard]] constexpr std::size_t size() const noexcept { return last - first; }
    bool operator==(Range const&) const = default;
};

/// The part of `total` things that belongs to worker `rank` of `workers`: contiguous, together all of them, sizes differing by at
/// most one.
[[nodiscard]] constexpr Range part_of(std::size_t total, std::size_t rank, std::size_t workers) noexcept {
    return {total * rank / workers, total * (rank + 1) / workers};
}

/// A node of the tree: the sum of the leaves [index << level, (index + 1) << level), as far as they exist.
struct TreeNode {
    unsigned level = 0;
    std::size_t index = 0;

    [[nodiscard]] constexpr std::size_t first() const noexcept { return index << level; }
    [[nodiscard]] constexpr Range leaves(std::size_t total) const noexcept {
        return {first(), std::min(total, (index + 1) << level)};
    }
};

/// A tree has at most 2^31 leaves, and a contiguous range of them consists of at most so many nodes.
inline constexpr unsigned max_levels = 31;
inline constexpr std::size_t max_nodes = std::size_t{2} * max_levels;

/// Calls visit(TreeNode) for the largest nodes that lie wholly within `leaves` of the tree over [0, total), from left to right.
/// They are at most twice as many as the tree has levels, and one where the leaves are all.
template <class Visit>
constexpr void for_each_node(Range leaves, std::size_t total, Visit const& visit) {
    auto const root = static_cast<unsigned>(std::bit_width(total - 1)); // unused where there are no leaves
    for (std::size_t first = leaves.first; first < leaves.last;) {
        unsigned level = first == 0 ? root : static_cast<unsigned>(std::countr_zero(first));
        while (std::min(total, first + (std::size_t{1} << level)) > leaves.last) { --level; }
        visit(TreeNode{level, first >> level});
        first = std::min(total, first + (std::size_t{1} << level));
    }
}

[[nodiscard]] constexpr std::size_t count_nodes(Range leaves, std::size_t total) {
    std::size_t count = 0;
    for_each_node(leaves, total, [&](TreeNode) { ++count; });
    return count;
}

/// Adds up nodes of the tree over `leaves` leaves that come from left to right, each beside the one before it, in the tree's
/// order. What is known of each is a `Value`.
template <class Value>
class NodeFold {
public:
    explicit constexpr NodeFold(std::size_t leaves) noexcept : leaves_{leaves} {}

    /// Takes a node, and calls add(left, right), which makes `left` the sum of both, for all that this completes.
    template <class Add>
    constexpr void push(TreeNode node, Value const& value, Add const& add) {
        open_[size_++] = {node, value};
        for (;;) {
            auto& last = open_[size_ - 1];
            // A left half whose right half has no leaves is the whole.
            while (last.node.index % 2 == 0 && last.node.index > 0 && (last.node.index + 1) << last.node.level >= leaves_) {
                last.node = {last.node.level + 1, last.node.index / 2};
            }
            if (last.node.index % 2 == 0 || size_ == 1) { return; }
            auto& left = open_[size_ - 2];
            if (left.node.level != last.node.level || left.node.index + 1 != last.node.index) { return; }
            add(left.value, last.value);
            left.node = {left.node.level + 1, left.node.index / 2};
            --size_;
        }
    }

    /// The nodes that are left, and their values: one when all leaves have come.
    [[nodiscard]] constexpr std::size_t size() const noexcept { return size_; }
    [[nodiscard]] constexpr Value const& operator[](std::size_t i) const noexcept { return open_[i].value; }

private:
    struct Open {
        TreeNode node{};
        Value value{};
    };
    std::size_t leaves_;
    std::size_t size_ = 0;
    std::array<Open, max_nodes + 1> open_{};
};

/// Rows of a shard where nobody says otherwise.
inline constexpr std::size_t usual_shard_rows = 16;

/// How many shards some rows are: all of `shard_rows` rows, but for a shorter last one.
[[nodiscard]] constexpr std::size_t count_shards(std::size_t rows, std::size_t shard_rows) noexcept {
    return rows / shard_rows + (rows % shard_rows != 0 ? 1 : 0);
}

/// The shards that a worker's rows are, and the nodes that it sums.
struct RowShards {
    std::size_t rows = 0;       ///< of this worker
    std::size_t shard_rows = 1; ///< of each shard, but for a shorter last one of the batch
    std::size_t first = 0;      ///< place of this worker's first shard within the batch
    std::size_t leaves = 0;     ///< shards of the whole batch; 0: this worker's sums are one leaf, whatever others do

    [[nodiscard]] constexpr std::size_t count() const noexcept { return count_shards(rows, shard_rows); }
    /// The tree that the nodes belong to.
    [[nodiscard]] constexpr std::size_t tree() const noexcept { return leaves == 0 ? count() : leaves; }
    [[nodiscard]] constexpr Range own() const noexcept { return {first, first + count()}; }
    /// How many sums there is memory for: one where there are no rows.
    [[nodiscard]] constexpr std::size_t sums() const { return std::max<std::size_t>(count_nodes(own(), tree()), 1); }

    /// Calls visit(number, rows) for each node, with the rows of this worker that it sums.
    template <class Visit>
    constexpr void for_each_sum(Visit const& visit) const {
        std::size_t number = 0;
        for_each_node(own(), tree(), [&](TreeNode const& node) {
            auto const range = node.leaves(tree());
            visit(number++, Range{(range.first - first) * shard_rows, std::min(rows, (range.last - first) * shard_rows)});
        });
    }
    /// The sum of value_of(rows of a shard) over the shards of the node that sums `node_rows`, by the tree.
    template <class ValueOf>
    [[nodiscard]] constexpr double sum_of(Range node_rows, ValueOf const& value_of) const {
        Range const shards{node_rows.first / shard_rows, (node_rows.last + shard_rows - 1) / shard_rows};
        NodeFold<double> fold{shards.size()};
        for (std::size_t shard = shards.first; shard < shards.last; ++shard) {
            Range const part{shard * shard_rows, std::min(rows, (shard + 1) * shard_rows)};
            fold.push({0, shard - shards.first}, value_of(part), [](double& sum, double addend) { sum += addend; });
        }
        return fold[0];
    }
};

/// One worker's contribution to element-wise sums over the leaves of a tree: `all` holds the sums of its nodes (those of
/// `part_of(leaves, rank, workers)`), `size` elements each, one after the other, and room for one where it has no leaves.
/// `leaves` of 0 means that each worker is one leaf. After an `all_reduce` the total stands in the first `size` elements, which
/// are what this object shows as a range.
template <class T>
struct PartialSums {
    std::span<T> all;
    std::size_t count = 0; ///< elements of one sum
    std::size_t leaves = 0;

    [[nodiscard]] constexpr T* data() const noexcept { return all.data(); }
    [[nodiscard]] constexpr std::size_t size() const noexcept { return count; }
    [[nodiscard]] constexpr T* begin() const noexcept { return all.data(); }
    [[nodiscard]] constexpr T* end() const noexcept { return all.data() + count; }
    [[nodiscard]] constexpr T& operator[](std::size_t i) const noexcept { return all[i]; }
    /// How many sums there are, and number `number` of them.
    [[nodiscard]] constexpr std::size_t sums() const noexcept { return count == 0 ? 0 : all.size() / count; }
    [[nodiscard]] constexpr std::span<T> sum(std::size_t number) const noexcept { return all.subspan(number * count, count); }
};

} // namespace lockstep

template <class T>
inline constexpr bool std::ranges::enable_borrowed_range<lockstep::PartialSums<T>> = true;
