// Several trainings in one process do not influence each other.
#include "lockstep/train/trainer.hpp"

#include "unit/train/training.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

using namespace lockstep;

TEST(ConcurrentTrainings, GiveTheSameBitsAsAlone) {
    std::array<training::Options, 3> const options{{{.workers = 2, .batch_size = 17},
                                                    {.workers = 2, .batch_size = 10, .sgd = {.lr = 0.1}},
                                                    {.workers = 1, .batch_size = 64}}};
    std::array<training::Outcome<float>, 3> alone;
    for (std::size_t i = 0; i < options.size(); ++i) { alone[i] = training::train<ThreadCommunicator, float>(options[i]); }
    for (int round = 0; round < 5; ++round) {
        std::array<training::Outcome<float>, 3> together;
        std::vector<std::thread> threads;
        for (std::size_t i = 0; i < options.size(); ++i) {
            threads.emplace_back([&, i] { together[i] = training::train<ThreadCommunicator, float>(options[i]); });
        }
        for (auto& thread : threads) { thread.join(); }
        for (std::size_t i = 0; i < options.size(); ++i) { EXPECT_EQ(together[i].hashes, alone[i].hashes) << "training " << i; }
    }
}

TEST(ConcurrentTrainings, OneThatFailsDoesNotDisturbAnother) {
    training::Options const options{.workers = 2};
    auto const alone = training::train<ThreadCommunicator, float>(options);
    std::thread failing{[] {
        for (int round = 0; round < 20; ++round) {
            EXPECT_THROW(launch<ThreadCommunicator>({.num_workers = 2},
                                                    [](auto& comm) {
                                                        if (comm.rank() == 1) { throw std::runtime_error("no"); }
                                                        comm.barrier();
                                                    }),
                         WorkerError);
        }
    }};
    auto const beside = training::train<ThreadCommunicator, float>(options);
    failing.join();
    EXPECT_EQ(beside.hashes, alone.hashes);
}

// A worker may itself launch a training, of a network of its own.
TEST(ConcurrentTrainings, MayBeNested) {
    auto const alone = training::train<ThreadCommunicator, float>({.workers = 2});
    std::array<training::Outcome<float>, 2> nested;
    launch<ThreadCommunicator>({.num_workers = 2}, [&](auto& comm) {
        nested[static_cast<std::size_t>(comm.rank())] = training::train<ThreadCommunicator, float>({.workers = 2});
        comm.barrier();
    });
    for (auto const& outcome : nested) { EXPECT_EQ(outcome.hashes, alone.hashes); }
}

} // namespace
