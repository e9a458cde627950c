#pragma once

#include "communicator_values.hpp"

#include <lockstep/comm/launch.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

/// What every communicator must do when a worker fails. Backends as for communicator_suite.hpp.
namespace conformance {

template <class Backend>
class CommunicatorFailures : public testing::Test {
public:
    /// Runs the body, which must fail: the error that comes out. Afterwards another run must work.
    template <class Body>
    static lockstep::WorkerError error_of(int workers, Body const& body) {
        try {
            Backend::run(workers, body);
        } catch (lockstep::WorkerError const& error) {
            Backend::run(workers, [](auto& comm) { EXPECT_EQ(lockstep::all_reduce_sum(comm, 1.0), comm.size()); });
            return error;
        }
        ADD_FAILURE() << "no error came out";
        return {-1, workers, ""};
    }

    /// The same for a disagreement, which every worker must hear of: rank 0 and the last rank do different things.
    template <class First, class Last>
    static void expect_disagreement(First const& first, Last const& last, std::string const& first_call,
                                    std::string const& last_call) {
        for (int const workers : Backend::worker_counts()) {
            if (workers < 2) { continue; }
            auto const text =
                "rank " + std::to_string(workers - 1) + " called " + last_call + " while rank 0 called " + first_call;
            auto const error = error_of(workers, [&](auto& comm) {
                try {
                    if (comm.rank() == comm.size() - 1) {
                        last(comm);
                    } else {
                        first(comm);
                    }
                    ADD_FAILURE() << "rank " << comm.rank() << " heard nothing of: " << text;
                } catch (lockstep::Error const& heard) {
                    EXPECT_EQ(heard.what(), text);
                    throw;
                }
            });
            EXPECT_EQ(error.what(), "rank " + std::to_string(error.rank) + " of " + std::to_string(workers) + ": " + text);
        }
    }
};

TYPED_TEST_SUITE_P(CommunicatorFailures);

/// A short training in miniature, in which the worker `culprit` throws at one of its phases.
inline constexpr int phases = 8;
template <class Comm>
void fail_at(Comm& comm, int culprit, int phase) {
    auto const reach = [&](int here) {
        if (here == phase && comm.rank() == culprit) { throw std::out_of_range("phase " + std::to_string(here)); }
    };
    std::vector<float> data(3000, 1.0F);
    std::vector<float> parameters(3000, 1.0F);
    reach(0);
    comm.broadcast(std::span<float>{data}, 0);
    reach(1);
    comm.barrier();
    reach(2);
    comm.all_reduce(std::span<float>{data});
    reach(3);
    static_cast<void>(lockstep::all_reduce_sum(comm, 1.0));
    reach(4);
    if constexpr (lockstep::FusesUpdate<Comm, float>) {
        comm.reduce_update(0.0, std::span<float>{data}, std::span<float>{parameters},
                           [&](std::size_t, std::span<float>, std::span<float const>) { reach(5); });
    } else {
        reach(5);
    }
    reach(6);
    comm.broadcast(std::span<float>{data}.first(3), comm.size() - 1);
    reach(7);
}

TYPED_TEST_P(CommunicatorFailures, AWorkerThatThrowsReleasesTheOthers) {
    for (int const workers : TypeParam::worker_counts()) {
        for (int phase = 0; phase < phases; ++phase) {
            for (int const culprit : {0, workers - 1}) {
                auto const error = this->error_of(workers, [&](auto& comm) { fail_at(comm, culprit, phase); });
                EXPECT_EQ(error.rank, culprit);
                EXPECT_EQ(std::string(error.what()), "rank " + std::to_string(culprit) + " of " + std::to_string(workers) +
                                                         ": phase " + std::to_string(phase));
            }
        }
    }
}

TYPED_TEST_P(CommunicatorFailures, TheOriginalErrorIsNested) {
    int const workers = TypeParam::worker_counts().back();
    try {
        TypeParam::run(workers, [](auto& comm) { fail_at(comm, 0, 3); });
        FAIL() << "no error came out";
    } catch (lockstep::WorkerError const& error) {
        if (TypeParam::shares_memory || error.to_report) { // the worker that failed is in this process
            EXPECT_THROW(std::rethrow_if_nested(error), std::out_of_range);
        } else {
            EXPECT_THROW(std::rethrow_if_nested(error), lockstep::Error);
        }
    }
}

TYPED_TEST_P(CommunicatorFailures, AnErrorOfAnyTypeComesOut) {
    int const workers = TypeParam::worker_counts().back();
    auto const error = this->error_of(workers, [](auto& comm) {
        if (comm.rank() == 0) { throw 42; }
        comm.barrier();
    });
    EXPECT_EQ(std::string(error.what()),
              "rank 0 of " + std::to_string(workers) + ": an exception that is not derived from std::exception");
}

TYPED_TEST_P(CommunicatorFailures, DifferentCallsAreRefusedOnAllWorkers) {
    auto const reduce = []<class T>(T, std::size_t count) {
        return [count](auto& comm) {
            std::vector<T> data(count);
            comm.all_reduce(std::span<T>{data});
        };
    };
    auto const broadcast = [](std::size_t count, int root) {
        return [count, root](auto& comm) {
            std::vector<float> data(count);
            comm.broadcast(std::span<float>{data}, root);
        };
    };
    auto const barrier = [](auto& comm) { comm.barrier(); };
    this->expect_disagreement(reduce(float{}, 12), broadcast(10, 0), "all_reduce of 12 float", "broadcast of 10 float");
    this->expect_disagreement(barrier, reduce(double{}, 0), "barrier", "all_reduce of 0 double");
    this->expect_disagreement(reduce(float{}, 12), reduce(float{}, 1200000), "all_reduce of 12 float",
                              "all_reduce of 1200000 float");
    this->expect_disagreement(reduce(float{}, 5000), reduce(float{}, 5001), "all_reduce of 5000 float",
                              "all_reduce of 5001 float");
    this->expect_disagreement(reduce(double{}, 5000), reduce(float{}, 10000), "all_reduce of 5000 double",
                              "all_reduce of 10000 float");
    this->expect_disagreement(reduce(std::int64_t{}, 5000), reduce(std::uint64_t{}, 5000), "all_reduce of 5000 int64",
                              "all_reduce of 5000 uint64");
    this->expect_disagreement(broadcast(3, 0), broadcast(3, 1), "broadcast of 3 float from root 0",
                              "broadcast of 3 float from root 1");
    this->expect_disagreement(broadcast(300, 1), broadcast(300, 0), "broadcast of 300 float from root 1",
                              "broadcast of 300 float from root 0");
}

TYPED_TEST_P(CommunicatorFailures, AWorkerThatReturnsEarlyReleasesTheOthers) {
    for (int const workers : TypeParam::worker_counts()) {
        if (workers < 2) { continue; }
        for (int const leaver : {0, workers - 1}) {
            for (int round = 0; round < 50; ++round) { // the leaver often completes the last common barrier itself
                auto const error = this->error_of(workers, [&](auto& comm) {
                    comm.barrier();
                    if (comm.rank() == leaver) { return; }
                    std::vector<float> data(12);
                    comm.all_reduce(std::span<float>{data});
                });
                auto const rank = std::to_string(error.rank);
                EXPECT_NE(error.rank, leaver);
                EXPECT_EQ(std::string(error.what()), "rank " + rank + " of " + std::to_string(workers) + ": rank " + rank +
                                                         " waits in all_reduce of 12 float, but rank " + std::to_string(leaver) +
                                                         " has already returned");
            }
        }
    }
}

TYPED_TEST_P(CommunicatorFailures, LeavingRightAfterTheLastBarrierIsNoError) {
    for (int const workers : TypeParam::worker_counts()) {
        for (int round = 0; round < 300; ++round) {
            EXPECT_NO_THROW(TypeParam::run(workers, [](auto& comm) {
                comm.barrier();
                std::vector<float> data(40, 1.0F);
                comm.all_reduce(std::span<float>{data});
            }));
        }
    }
}

TYPED_TEST_P(CommunicatorFailures, AFailureOfTheGroupCannotBeSwallowed) {
    int const workers = TypeParam::worker_counts().back();
    if (workers < 2) { GTEST_SKIP() << "needs two workers"; }
    auto const error = this->error_of(workers, [](auto& comm) {
        for (int round = 0; round < 3; ++round) {
            try {
                std::vector<float> data(comm.rank() == 0 ? 100 : 200);
                comm.all_reduce(std::span<float>{data});
                ADD_FAILURE() << "the group went on after an error";
            } catch (...) {} // NOLINT(bugprone-empty-catch)
        }
    });
    EXPECT_NE(std::string(error.what()).find("rank 1 called all_reduce of 200 float while rank 0 called all_reduce of 100 float"),
              std::string::npos);
}

REGISTER_TYPED_TEST_SUITE_P(CommunicatorFailures, AWorkerThatThrowsReleasesTheOthers, TheOriginalErrorIsNested,
                            AnErrorOfAnyTypeComesOut, DifferentCallsAreRefusedOnAllWorkers,
                            AWorkerThatReturnsEarlyReleasesTheOthers, LeavingRightAfterTheLastBarrierIsNoError,
                            AFailureOfTheGroupCannotBeSwallowed);

} // namespace conformance
