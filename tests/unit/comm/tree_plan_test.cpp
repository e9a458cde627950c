#include <lockstep/comm/tree_plan.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

namespace {

using lockstep::part_of;
using lockstep::PartialSums;
using lockstep::TreeNode;
using lockstep::detail::TreePlan;

float value(std::size_t leaf, std::size_t i) {
    auto const numerator = static_cast<float>((leaf * 7919 + i * 104729) % 1000003);
    return (leaf % 2 == 0 ? numerator : -numerator) / static_cast<float>(i % 97 + 1);
}

/// The definition of the tree.
float tree(std::size_t first, std::size_t count, std::size_t i) {
    return lockstep::tree_sum<float>(first, count, [i](std::size_t leaf) { return value(leaf, i); });
}

TEST(TreePlan, TheTotalHasTheSameBitsForAnyNumberOfWorkers) {
    constexpr std::size_t count = 100;
    for (std::size_t leaves = 1; leaves <= 40; ++leaves) {
        for (int workers = 1; workers <= 12; ++workers) {
            TreePlan plan{workers};
            plan.prepare(leaves);
            std::vector<std::vector<float>> sums;
            for (auto const& source : plan.sources()) { // what each worker sums itself
                std::vector<TreeNode> nodes;
                auto const part = part_of(leaves, source.rank, static_cast<std::size_t>(workers));
                lockstep::for_each_node(part, leaves, [&](TreeNode const& node) { nodes.push_back(node); });
                auto const range = nodes.at(source.number).leaves(leaves);
                auto& sum = sums.emplace_back(count);
                for (std::size_t i = 0; i < count; ++i) { sum[i] = tree(range.first, range.size(), i); }
            }
            double const total = plan.total(
                [&](auto const& source) { return static_cast<double>(sums[plan.first_source(source.rank) + source.number][0]); });
            EXPECT_NEAR(total, std::accumulate(sums.begin(), sums.end(), 0.0, [](double a, auto& s) { return a + s[0]; }), 1e-6);
            for (std::size_t place = 0; place <= sums.size(); ++place) { // in place of each of them, and elsewhere
                auto scratch = sums;
                scratch.emplace_back(count);
                plan.sum<float>(
                    count, [&](std::size_t i) { return scratch[i].data(); }, scratch[place].data());
                for (std::size_t i = 0; i < count; ++i) {
                    ASSERT_EQ(scratch[place][i], tree(0, leaves, i)) << leaves << " leaves, " << workers << " workers";
                }
            }
        }
    }
}

TEST(TreePlan, EveryLeafIsInOneNode) {
    for (std::size_t leaves : {1U, 2U, 7U, 16U, 33U, 1000U}) {
        for (std::size_t first = 0; first < std::min<std::size_t>(leaves, 40); ++first) {
            for (std::size_t last = first + 1; last <= leaves; last += 1 + last / 7) {
                std::size_t next = first;
                lockstep::for_each_node({first, last}, leaves, [&](TreeNode const& node) {
                    EXPECT_EQ(node.leaves(leaves).first, next);
                    next = node.leaves(leaves).last;
                });
                EXPECT_EQ(next, last);
                EXPECT_LE(lockstep::count_nodes({first, last}, leaves), lockstep::max_nodes);
            }
        }
        EXPECT_EQ(lockstep::count_nodes({0, leaves}, leaves), 1U);
    }
    EXPECT_EQ(lockstep::count_nodes({3, 3}, 7), 0U);
    EXPECT_EQ(lockstep::count_nodes({1, 7}, 8), 4U);
    EXPECT_EQ(lockstep::count_nodes({4, 7}, 7), 1U); // the right part, whole
}

TEST(TreePlan, WhatAWorkerHasToBringIsChecked) {
    TreePlan plan{3};
    std::vector<float> values(40);
    auto const message = [&](PartialSums<float> const& sums, int rank) -> std::string {
        try {
            plan.check(sums, rank);
        } catch (lockstep::ArgumentError const& error) { return error.what(); }
        return "";
    };
    EXPECT_EQ(message({values, 40, 0}, 0), "");
    EXPECT_EQ(message({values, 40, 4}, 2), "");  // leaves 2 and 3: one node
    EXPECT_EQ(message({values, 20, 16}, 0), ""); // leaves 0 to 4: two
    EXPECT_EQ(message({values, 40, 2}, 0), "");  // no leaf, and room for the total
    EXPECT_EQ(message({values, 40, 16}, 0),
              "partial sums over 16 leaves: expected 2 of 40 elements on rank 0 of 3, got 40 elements");
    EXPECT_EQ(message({values, 40, std::size_t{1} << 31U}, 0), "a sum has at most 2147483647 shards, got 2147483648");
}

} // namespace
