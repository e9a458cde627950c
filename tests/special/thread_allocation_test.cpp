#include <lockstep/comm/thread.hpp>

#include "special/allocations.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <span>
#include <vector>

namespace {

using lockstep::special::allocations;

TEST(ThreadCommunicator, CollectivesAllocateNothing) {
    long const start = allocations();
    lockstep::special::allocate_once();
    ASSERT_GT(allocations(), start) << "the counter does not count";
    for (int const workers : {1, 2, 3, 4, 8}) {
        std::atomic<long> counted{0};
        lockstep::launch<lockstep::ThreadCommunicator>({.num_workers = workers}, [&](auto& comm) {
            std::vector<float> gradients(10'000);
            std::vector<float> parameters(10'000);
            comm.barrier();
            long const before = allocations();
            comm.barrier();
            for (int round = 0; round < 20; ++round) {
                comm.broadcast(std::span<float>{gradients}, comm.size() - 1);
                comm.all_reduce(std::span<float>{gradients});
                comm.all_reduce(std::span<float>{gradients}.first(5));
                static_cast<void>(lockstep::all_reduce_sum(comm, 1.0));
                comm.reduce_update(0.0, std::span<float>{gradients}, std::span<float>{parameters},
                                   [](std::size_t, std::span<float> p, std::span<float const> g) { p[0] += g[0]; });
            }
            comm.barrier();
            counted += allocations() - before;
            comm.barrier();
        });
        EXPECT_EQ(counted, 0) << workers << " workers";
    }
}

} // namespace
