#include <lockstep/comm/launch.hpp>

#include <gtest/gtest.h>

#include <exception>
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

TEST(CheckNumWorkers, RefusesLessThanOne) {
    EXPECT_NO_THROW(lockstep::detail::check_num_workers({}));
    for (int const workers : {0, -3}) {
        try {
            lockstep::detail::check_num_workers({.num_workers = workers});
            ADD_FAILURE() << workers << " workers were accepted";
        } catch (lockstep::ArgumentError const& error) {
            EXPECT_EQ(error.what(), "num_workers must be at least 1, got " + std::to_string(workers));
        }
    }
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
