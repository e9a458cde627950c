#include <lockstep/comm/progress.hpp>
#include <lockstep/comm/thread.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace {

using lockstep::Phase;
using lockstep::ThreadCommunicator;

template <class Body>
std::string error_of(int workers, double timeout_seconds, Body const& body) {
    try {
        lockstep::launch<ThreadCommunicator>({.num_workers = workers, .timeout_seconds = timeout_seconds}, body);
    } catch (lockstep::WorkerError const& error) { return error.what(); }
    return "no error";
}

void sleep_for(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

TEST(Progress, SaysWhereAWorkerIs) {
    EXPECT_EQ(lockstep::Progress{}.describe(), "setup");
    EXPECT_EQ((lockstep::Progress{Phase::training, 2, 38}.describe()), "epoch 2, step 38");
    EXPECT_EQ((lockstep::Progress{Phase::evaluation, 2, 938}.describe()), "evaluation after epoch 2");
    EXPECT_EQ((lockstep::Progress{Phase::evaluation, 0, 0}.describe()), "evaluation");
    EXPECT_EQ((lockstep::Progress{Phase::epoch_end, 2, 938}.describe()), "end of epoch 2");
}

TEST(ThreadTimeout, NamesTheWorkerThatDoesNotComeAndWhereItIs) {
    auto const text = error_of(3, 0.5, [](ThreadCommunicator& comm) {
        comm.barrier();
        comm.note({Phase::training, 4, static_cast<std::uint64_t>(7 + comm.rank())});
        if (comm.rank() == 1) { sleep_for(1.5); }
        std::vector<float> data(100);
        comm.all_reduce(std::span{data});
    });
    std::string const expected =
        "rank 1 of 3: did not come to all_reduce of 100 float within 0.5 s; it was last seen in epoch 4, step 8, while rank ";
    EXPECT_TRUE(text == expected + "0 waits in epoch 4, step 7" || text == expected + "2 waits in epoch 4, step 9") << text;
}

TEST(ThreadTimeout, NamesAllThatDoNotCome) {
    auto const text = error_of(3, 0.5, [](ThreadCommunicator& comm) {
        if (comm.rank() != 1) { sleep_for(1.5); }
        comm.barrier();
    });
    EXPECT_EQ(
        text,
        "rank 0 of 3: did not come to barrier within 0.5 s; it was last seen in setup, while rank 1 waits in setup; rank 2 is "
        "missing too, last seen in setup");
}

TEST(ThreadTimeout, ALongStepOfAllIsNoTimeout) {
    EXPECT_EQ(error_of(2, 0.5,
                       [](ThreadCommunicator& comm) {
                           for (int round = 0; round < 3; ++round) {
                               sleep_for(0.7);
                               comm.barrier();
                           }
                       }),
              "no error");
}

TEST(ThreadTimeoutDeathTest, AnUpdateThatNeverEndsEndsTheProgram) {
    std::vector<float> parameters(100);
    auto const stuck = [&](ThreadCommunicator& comm) {
        std::vector<float> gradients(100);
        comm.reduce_update(0.0, std::span{gradients}, std::span{parameters}, [&](auto&&...) {
            if (comm.rank() == 1) { sleep_for(1000); }
        });
    };
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    EXPECT_DEATH(error_of(2, 0.1, stuck), "rank 0 of 2: waits for the others in reduce_update of 100 float for more than 0.1 s");
}

/// A thread cannot be taken away: where one never comes back, the program ends, and says why.
TEST(ThreadTimeoutDeathTest, AWorkerThatNeverEndsEndsTheProgram) {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    auto const never_comes = [](ThreadCommunicator& comm) {
        if (comm.rank() == 0) { sleep_for(1000); }
        comm.barrier();
    };
    EXPECT_DEATH(error_of(2, 0.1, never_comes),
                 "rank 0 of 2: did not come to barrier within 0.1 s;.*; rank 0 did not end within 2 s");
    auto const throws_while_the_other_hangs = [](ThreadCommunicator& comm) {
        if (comm.rank() == 0) { sleep_for(1000); }
        throw lockstep::Error("out of luck");
    };
    EXPECT_DEATH(error_of(2, 0.1, throws_while_the_other_hangs),
                 "rank 1 of 2: out of luck; rank 0 did not end within 0.1 s after that");
}

TEST(ThreadTimeout, TheProcessCanTrainAgainAfterwards) {
    EXPECT_NE(error_of(2, 0.05,
                       [](ThreadCommunicator& comm) {
                           if (comm.rank() == 1) { sleep_for(0.2); }
                           comm.barrier();
                       }),
              "no error");
    EXPECT_EQ(error_of(2, 5, [](ThreadCommunicator& comm) { comm.barrier(); }), "no error");
}

} // namespace
