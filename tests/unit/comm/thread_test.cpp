#include <lockstep/comm/thread.hpp>

#include <gtest/gtest.h>

#include <sys/resource.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using lockstep::all_reduce_sum;
using lockstep::launch;
using lockstep::ThreadCommunicator;
using lockstep::Waiting;
using lockstep::WorkerError;

/// What comes out of a launch that must fail.
template <class Body>
std::string error_of(int workers, Body const& body) {
    try {
        launch<ThreadCommunicator>({.num_workers = workers}, body);
    } catch (std::exception const& error) { return error.what(); }
    return "no error";
}

std::ptrdiff_t threads_of_this_process() {
    return std::distance(std::filesystem::directory_iterator{"/proc/self/task"}, std::filesystem::directory_iterator{});
}

TEST(ThreadCommunicator, IsNotCopied) {
    static_assert(!std::is_copy_constructible_v<ThreadCommunicator> && !std::is_move_constructible_v<ThreadCommunicator>);
}

TEST(ThreadCommunicator, LaunchReturnsWhatRankZeroReturns) {
    auto const rank =
        launch<ThreadCommunicator>({.num_workers = 3}, [](auto& comm) { return std::make_unique<int>(comm.rank()); });
    EXPECT_EQ(*rank, 0);
    std::atomic<int> calls{0};
    launch<ThreadCommunicator>({.num_workers = 3}, [&](lockstep::Communicator auto&) { ++calls; });
    EXPECT_EQ(calls, 3);
}

TEST(ThreadCommunicator, LaunchRefusesZeroWorkers) {
    EXPECT_EQ(error_of(0, [](auto&) {}), "num_workers must be at least 1, got 0");
    EXPECT_THROW(launch<ThreadCommunicator>({.num_workers = -1}, [](auto&) {}), lockstep::ArgumentError);
}

TEST(ThreadCommunicator, EveryWayOfWaitingGivesTheSameSums) {
    for (auto const waiting : {Waiting::automatic, Waiting::spin_then_block, Waiting::block}) {
        for (int const workers : {2, 5}) {
            double const sum = ThreadCommunicator::launch(
                {.num_workers = workers},
                [](auto& comm) {
                    double total = 0;
                    for (int round = 0; round < 500; ++round) { total += all_reduce_sum(comm, comm.rank() + 1.0); }
                    return total;
                },
                waiting);
            EXPECT_EQ(sum, 500.0 * workers * (workers + 1) / 2);
        }
    }
}

TEST(ThreadCommunicator, TheBarrierOrdersMemory) {
    std::array<int, 3> cells{};
    launch<ThreadCommunicator>({.num_workers = 3}, [&](auto& comm) {
        for (int round = 1; round < 500; ++round) {
            cells.at(static_cast<std::size_t>(comm.rank())) = round;
            comm.barrier();
            EXPECT_EQ(cells, (std::array<int, 3>{round, round, round}));
            comm.barrier();
        }
    });
}

TEST(ThreadCommunicator, LaunchesCanBeNestedAndConcurrent) {
    auto const inner = [](double value) {
        return launch<ThreadCommunicator>({.num_workers = 3}, [value](auto& comm) { return all_reduce_sum(comm, value); });
    };
    std::array<double, 4> results{};
    std::vector<std::thread> outside;
    for (std::size_t i = 0; i < results.size(); ++i) {
        outside.emplace_back([&, i] {
            results.at(i) = launch<ThreadCommunicator>({.num_workers = 2}, [&](auto& comm) {
                double sum = 0;
                for (int round = 0; round < 20; ++round) {
                    sum += all_reduce_sum(comm, inner(static_cast<double>(i) + comm.rank()));
                }
                return sum;
            });
        });
    }
    for (auto& thread : outside) { thread.join(); }
    for (std::size_t i = 0; i < results.size(); ++i) { EXPECT_EQ(results.at(i), 20 * 3 * (2 * static_cast<double>(i) + 1)); }
}

TEST(ThreadCommunicator, AnErrorInANestedLaunchNamesBothRanks) {
    auto const text = error_of(2, [](auto& comm) {
        if (comm.rank() == 1) {
            launch<ThreadCommunicator>({.num_workers = 3}, [](auto& inner) {
                if (inner.rank() == 2) { throw std::runtime_error("no data"); }
                inner.barrier();
            });
        }
        comm.barrier();
    });
    EXPECT_EQ(text, "rank 1 of 2: rank 2 of 3: no data");
}

TEST(ThreadCommunicator, AFailureOutsideReachesThroughANestedLaunch) {
    auto const text = error_of(2, [](auto& comm) {
        if (comm.rank() == 1) { throw std::runtime_error("no data"); }
        launch<ThreadCommunicator>({.num_workers = 2}, [&comm](auto& inner) {
            if (inner.rank() == 0) { comm.barrier(); } // on the thread that comm was given to
            inner.barrier();
            return 1;
        });
    });
    EXPECT_EQ(text, "rank 1 of 2: no data");
}

TEST(ThreadCommunicator, TheErrorThatHappenedFirstComesOut) {
    auto const text = error_of(3, [](auto& comm) {
        if (comm.rank() == 2) { throw std::runtime_error("first"); }
        try {
            comm.barrier();
        } catch (...) { throw std::runtime_error("second"); } // made out of the release
    });
    EXPECT_EQ(text, "rank 2 of 3: first");
}

TEST(ThreadCommunicator, BuffersThatOverlapAreRefused) {
    std::vector<float> data(150);
    auto const text =
        error_of(2, [&](auto& comm) { comm.all_reduce(std::span<float>{data}.subspan(comm.rank() == 0 ? 0 : 50, 100)); });
    EXPECT_NE(text.find("rank 0 and rank 1 called all_reduce of 100 float on overlapping buffers"), std::string::npos) << text;
    std::vector<float> parameters(150);
    auto const fused = error_of(2, [&](auto& comm) {
        std::vector<float> gradients(100);
        comm.reduce_update(0.0, std::span<float>{gradients}, std::span<float>{parameters}.subspan(comm.rank() == 0 ? 0 : 50, 100),
                           [](auto...) {});
    });
    EXPECT_NE(fused.find("called reduce_update of 100 float on overlapping buffers"), std::string::npos) << fused;
}

TEST(ThreadCommunicator, ReduceUpdateRefusesSpansOfDifferentLengths) {
    auto const text = error_of(2, [&](auto& comm) {
        std::vector<float> gradients(100);
        std::vector<float> parameters(comm.rank() == 0 ? 100 : 99);
        comm.reduce_update(0.0, std::span<float>{gradients}, std::span<float>{parameters}, [](auto...) {});
    });
    EXPECT_EQ(text, "rank 1 of 2: reduce_update: expected as many parameters as gradients, got 99 and 100");
}

TEST(ThreadCommunicator, AnUpdateThatThrowsLeavesOnlyWhenNobodyUsesItsMemory) {
    for (int round = 0; round < 20; ++round) { // ASan and TSan see the others writing into freed parameters if it does not
        auto const text = error_of(3, [](auto& comm) {
            std::vector<double> gradients(40'000, 1.0);
            std::vector<double> parameters(40'000, 1.0);
            comm.reduce_update(0.0, std::span<double>{gradients}, std::span<double>{parameters},
                               [&](std::size_t offset, auto...) {
                                   if (comm.rank() == 1 && offset > 15'000) { throw std::runtime_error("bad step"); }
                                   if (comm.rank() == 2) { std::this_thread::sleep_for(std::chrono::microseconds{200}); }
                               });
            comm.barrier();
        });
        EXPECT_EQ(text, "rank 1 of 3: bad step");
    }
}

TEST(ThreadCommunicator, LeavesNoThreadBehind) {
    launch<ThreadCommunicator>({.num_workers = 2}, [](auto&) {}); // whatever starts only once has started
    auto const before = threads_of_this_process();
    for (int round = 0; round < 20; ++round) {
        launch<ThreadCommunicator>({.num_workers = 4}, [](auto& comm) { comm.barrier(); });
        error_of(4, [](auto& comm) {
            if (comm.rank() == 3) { throw std::runtime_error("no data"); }
            comm.barrier();
        });
        error_of(4, [](auto& comm) { // early return
            if (comm.rank() != 0) { comm.barrier(); }
        });
    }
    for (int wait = 0; wait < 1000 && threads_of_this_process() > before;
         ++wait) { // the kernel forgets a joined thread a bit later
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
    EXPECT_EQ(threads_of_this_process(), before);
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#endif
#ifndef SANITIZED // sanitizers need far more address space than this leaves

/// Leaves room for about three more stacks of 8 MiB, then tries to start 50 workers; the process exits with 7 if all is well.
[[noreturn]] void start_too_many_workers() {
    std::size_t pages = 0;
    std::ifstream{"/proc/self/statm"} >> pages;
    rlimit limit{};
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = pages * 4096 + (std::size_t{28} << 20U);
    setrlimit(RLIMIT_AS, &limit);
    std::string const text = error_of(50, [](auto& comm) { comm.barrier(); });
    bool const named = text.find(" of 50: cannot start a thread for this worker: ") != std::string::npos;
    double const after = launch<ThreadCommunicator>({.num_workers = 2}, [](auto& comm) { return all_reduce_sum(comm, 1.0); });
    std::_Exit(named && after == 2.0 ? 7 : 1);
}

TEST(ThreadCommunicatorDeathTest, AThreadThatCannotStartReleasesTheOthers) {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    EXPECT_EXIT(start_too_many_workers(), testing::ExitedWithCode(7), "");
}

#endif

} // namespace
