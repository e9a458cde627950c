#include <lockstep/comm/thread_barrier.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

namespace {

using lockstep::Waiting;
using lockstep::detail::Arrival;
using lockstep::detail::ThreadBarrier;

/// Starts `workers` threads with body(index) and waits for them.
template <class Body>
void on_threads(unsigned workers, Body const& body) {
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < workers; ++i) { threads.emplace_back(body, i); }
    for (auto& thread : threads) { thread.join(); }
}

TEST(ThreadBarrier, KeepsThreadsInStepHoweverTheyWait) {
    for (auto const waiting : {Waiting::automatic, Waiting::spin_then_block, Waiting::block}) {
        for (unsigned const workers : {1U, 2U, 3U, 6U}) {
            ThreadBarrier barrier{workers, waiting};
            std::vector<int> step(workers); // not atomic: the barrier itself must order these
            std::atomic<int> wrong{0};
            int const rounds = waiting != Waiting::block && workers == 2 ? 20'000 : 200;
            on_threads(workers, [&](unsigned self) {
                for (int round = 1; round <= rounds; ++round) {
                    step[self] = round;
                    if (barrier.arrive_and_wait() != Arrival::complete) { ++wrong; }
                    for (int const other : step) { wrong += other == round ? 0 : 1; }
                    if (barrier.arrive_and_wait() != Arrival::complete) { ++wrong; }
                }
            });
            EXPECT_EQ(wrong, 0) << workers << " workers";
        }
    }
}

TEST(ThreadBarrier, InterruptReleasesThoseWhoWaitAndThoseWhoCome) {
    for (auto const waiting : {Waiting::spin_then_block, Waiting::block}) {
        for (int const delay_in_ms : {0, 5}) { // while they spin, and when they sleep
            ThreadBarrier barrier{3, waiting};
            std::atomic<int> released{0};
            on_threads(3, [&](unsigned self) {
                if (self == 2) {
                    std::this_thread::sleep_for(std::chrono::milliseconds{delay_in_ms});
                    barrier.interrupt();
                }
                if (barrier.arrive_and_wait() == Arrival::interrupted) { ++released; }
            });
            EXPECT_EQ(released, 3);
        }
    }
}

TEST(ThreadBarrier, WhatIsCompleteStaysComplete) {
    for (int round = 0; round < 300; ++round) {
        ThreadBarrier barrier{2, Waiting::automatic};
        std::atomic<int> complete{0};
        on_threads(2, [&](unsigned) {
            if (barrier.arrive_and_wait() == Arrival::complete) { ++complete; }
            barrier.interrupt(); // as a worker does that returns, often before the other has noticed
        });
        ASSERT_EQ(complete, 2);
    }
}

TEST(ThreadBarrier, TimesOutForGood) {
    for (auto const waiting : {Waiting::spin_then_block, Waiting::block}) {
        ThreadBarrier barrier{3, waiting, 0.05};
        std::atomic<int> timed_out{0};
        std::atomic<int> interrupted{0};
        on_threads(2, [&](unsigned self) {
            std::this_thread::sleep_for(std::chrono::milliseconds{5 * self});
            auto const arrival = barrier.arrive_and_wait();
            timed_out += arrival == Arrival::timed_out ? 1 : 0;
            interrupted += arrival == Arrival::interrupted ? 1 : 0;
        });
        EXPECT_EQ(timed_out, 1); // one gives up for all
        EXPECT_EQ(interrupted, 1);
        EXPECT_EQ(barrier.arrive_and_wait(), Arrival::interrupted) << "the last one came after all";
    }
}

/// The last one comes just when the first one gives up: both must see the same.
TEST(ThreadBarrier, IsCompleteForAllOrForNobody) {
    int complete_rounds = 0;
    for (int round = 0; round < 300; ++round) {
        ThreadBarrier barrier{2, Waiting::block, 0.001};
        std::atomic<int> complete{0};
        on_threads(2, [&](unsigned self) {
            if (self == 1) { std::this_thread::sleep_for(std::chrono::microseconds{850 + round}); }
            complete += barrier.arrive_and_wait() == Arrival::complete ? 1 : 0;
        });
        ASSERT_TRUE(complete == 0 || complete == 2);
        complete_rounds += complete / 2;
    }
    RecordProperty("complete_rounds", complete_rounds);
}

} // namespace
