#include "mpi/mpi_main.hpp"

#include <lockstep/comm/mpi_watchdog.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <limits>
#include <thread>

namespace lockstep::detail {

constexpr Call call{Operation::all_reduce, Scalar::float32, 0, 1000};

TEST(MpiWatchdog, CallsThatEndInTimeGoOn) {
    MpiWatchdog watchdog{0, 2, 0.25};
    auto const end = SteadyClock::now() + std::chrono::seconds{1}; // together longer than the timeout, and between two calls too
    std::size_t calls = 0;
    while (SteadyClock::now() < end) {
        for (int i = 0; i < 1000; ++i) {
            watchdog.guard(call, {}, [&] { ++calls; });
        }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{600});
    EXPECT_GE(calls, 1000U);
}

TEST(MpiWatchdog, InfiniteTimeout) {
    MpiWatchdog watchdog{0, 2, std::numeric_limits<double>::infinity()};
    watchdog.guard(call, {}, [] { std::this_thread::sleep_for(std::chrono::milliseconds{300}); });
}

/// A call that never ends, as MPI's when another process is stopped.
void stay_away(int rank) {
    MpiWatchdog watchdog{rank, 4, 0.3};
    watchdog.guard(call, {Phase::training, 2, 38}, [] { std::this_thread::sleep_for(std::chrono::seconds{60}); });
}

TEST(MpiWatchdogDeathTest, EndsTheProgram) {
    auto const start = SteadyClock::now();
    EXPECT_EXIT(stay_away(1), testing::KilledBySignal(SIGABRT),
                "rank 1 of 4: all_reduce of 1000 float did not end within 0.3 s.*epoch 2, step 38");
    EXPECT_LT(SteadyClock::now() - start, std::chrono::seconds{5});
}

} // namespace lockstep::detail

int main(int argc, char** argv) { return conformance::mpi_main(argc, argv); }
