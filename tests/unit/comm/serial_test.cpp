#include <lockstep/comm/serial.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

namespace {

using lockstep::SerialCommunicator;

TEST(SerialCommunicator, LeavesValuesAlone) {
    SerialCommunicator comm;
    std::vector<float> data{1, 2};
    comm.all_reduce(std::span<float>{data});
    comm.broadcast(std::span<float>{data}, 0);
    EXPECT_EQ(data, (std::vector<float>{1, 2}));
    EXPECT_EQ(comm.rank(), 0);
    EXPECT_EQ(comm.size(), 1);
}

TEST(SerialCommunicator, ReduceUpdateIsTheUpdate) {
    SerialCommunicator comm;
    std::vector<float> gradients{1, 2};
    std::vector<float> parameters{10, 20};
    comm.reduce_update(0.0, std::span<float>{gradients}, std::span<float>{parameters},
                       [](std::size_t offset, std::span<float> p, std::span<float const> g) {
                           EXPECT_EQ(offset, 0U);
                           for (std::size_t i = 0; i < p.size(); ++i) { p[i] -= g[i]; }
                       });
    EXPECT_EQ(parameters, (std::vector<float>{9, 18}));
    auto const shorter = std::span<float>{parameters}.first(1);
    EXPECT_THROW(comm.reduce_update(0.0, std::span<float>{gradients}, shorter, [](auto...) {}), lockstep::ArgumentError);
}

TEST(SerialCommunicator, RefusesRootsThatAreNoRank) {
    SerialCommunicator comm;
    EXPECT_THROW(comm.broadcast(std::span<float>{}, 1), lockstep::ArgumentError);
}

TEST(SerialCommunicator, LaunchReturnsWhatTheBodyReturns) {
    auto const result = lockstep::launch<SerialCommunicator>({}, [](auto&) { return std::make_unique<int>(5); });
    EXPECT_EQ(*result, 5);
    static_assert(std::is_void_v<decltype(lockstep::launch<SerialCommunicator>({}, [](auto&) {}))>);
}

TEST(SerialCommunicator, LaunchRefusesOtherNumbersOfWorkers) {
    auto const text = [](int workers) -> std::string {
        try {
            lockstep::launch<SerialCommunicator>({.num_workers = workers}, [](auto&) {});
        } catch (lockstep::ArgumentError const& error) { return error.what(); }
        return "";
    };
    EXPECT_EQ(text(2), "SerialCommunicator has 1 worker, got num_workers 2");
    EXPECT_EQ(text(0), "num_workers must be at least 1, got 0");
}

TEST(SerialCommunicator, LaunchReportsErrorsLikeTheOthers) {
    try {
        lockstep::launch<SerialCommunicator>({}, [](auto&) { throw std::runtime_error("no data"); });
        FAIL() << "no error came out";
    } catch (lockstep::WorkerError const& error) {
        EXPECT_STREQ(error.what(), "rank 0 of 1: no data");
        EXPECT_EQ(error.rank, 0);
    }
}

} // namespace
