#include <lockstep/comm/launch.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>

namespace {

TEST(WorkerError, NamesTheRankAndNestsTheOriginal) {
    try {
        lockstep::detail::throw_worker_error(1, 2, std::make_exception_ptr(std::out_of_range("index 7")));
    } catch (lockstep::Error const& error) {
        EXPECT_STREQ(error.what(), "rank 1 of 2: index 7");
        auto const* const worker_error = dynamic_cast<lockstep::WorkerError const*>(&error);
        ASSERT_NE(worker_error, nullptr);
        EXPECT_EQ(worker_error->rank, 1);
        EXPECT_THROW(std::rethrow_if_nested(error), std::out_of_range);
    }
}

TEST(WorkerError, NestsWhatIsNoStdException) {
    try {
        lockstep::detail::throw_worker_error(0, 3, std::make_exception_ptr(42));
    } catch (lockstep::WorkerError const& error) {
        EXPECT_STREQ(error.what(), "rank 0 of 3: an exception that is not derived from std::exception");
        EXPECT_THROW(std::rethrow_if_nested(error), int);
    }
}

template <class Call>
std::string refusal_of(Call const& call) {
    try {
        call();
    } catch (lockstep::ArgumentError const& error) { return error.what(); }
    return "accepted";
}

TEST(CheckScaling, RefusesLessThanOneWorker) {
    EXPECT_NO_THROW(lockstep::detail::check_scaling({}));
    for (int const workers : {0, -3}) {
        EXPECT_EQ(refusal_of([&] { lockstep::detail::check_scaling({.num_workers = workers}); }),
                  "num_workers must be at least 1, got " + std::to_string(workers));
    }
}

TEST(CheckScaling, RefusesATimeoutThatIsNoTime) {
    for (double const seconds : {0.001, 300.0, std::numeric_limits<double>::infinity()}) {
        EXPECT_NO_THROW(lockstep::detail::check_scaling({.timeout_seconds = seconds}));
    }
    EXPECT_EQ(refusal_of([] { lockstep::detail::check_scaling({.timeout_seconds = 0}); }),
              "timeout_seconds must be more than 0, got 0");
    EXPECT_EQ(refusal_of([] { lockstep::detail::check_scaling({.timeout_seconds = -1}); }),
              "timeout_seconds must be more than 0, got -1");
    EXPECT_EQ(refusal_of([] { lockstep::detail::check_scaling({.timeout_seconds = std::nan("")}); }),
              "timeout_seconds must be more than 0, got nan");
}

TEST(DeadlineAfter, IsATimeForAnyNumberOfSeconds) {
    auto const now = lockstep::detail::SteadyClock::now();
    EXPECT_GE(lockstep::detail::deadline_after(5), now + std::chrono::seconds{5});
    EXPECT_GE(lockstep::detail::deadline_after(std::numeric_limits<double>::infinity()), now + std::chrono::hours{24 * 365});
}

TEST(WorkerScopeDeathTest, ExitInABodyIsAnUncaughtWorkerError) {
    auto const leave = [] {
        lockstep::detail::WorkerScope const scope{1, 4};
        std::exit(0);
    };
    EXPECT_DEATH(leave(), "rank 1 of 4: called exit before the body of launch had returned");
    auto const leave_later = [] {
        { lockstep::detail::WorkerScope const scope{1, 4}; }
        std::exit(3);
    };
    EXPECT_EXIT(leave_later(), testing::ExitedWithCode(3), "");
}

TEST(ResultSlot, CarriesMoveOnlyValuesAndNothing) {
    lockstep::detail::ResultSlot<std::unique_ptr<int>> slot;
    slot.fill([] { return std::make_unique<int>(3); });
    EXPECT_EQ(*slot.take(), 3);
    bool called = false;
    lockstep::detail::ResultSlot<void> nothing;
    nothing.fill([&] { called = true; });
    nothing.take();
    EXPECT_TRUE(called);
}

} // namespace
