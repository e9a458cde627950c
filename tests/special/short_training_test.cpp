// A short training on two workers, with evaluation, momentum and Dropout: what the thread sanitizer shall see of the whole.
// labels: tsan
#include "lockstep/train/trainer.hpp"

#include "unit/train/training.hpp"

#include <gtest/gtest.h>

#include <span>
#include <stdexcept>

namespace {

using namespace lockstep;

TEST(ShortTraining, OnTwoWorkers) {
    auto const alone = training::train<SerialCommunicator, float>({.epochs = 2});
    auto const together = training::train<ThreadCommunicator, float>({.workers = 2, .epochs = 2});
    EXPECT_EQ(together.hashes[0], together.hashes[1]);
    EXPECT_NEAR(together.result.history[1].train_loss, alone.result.history[1].train_loss, 1e-4);
}

TEST(ShortTraining, OnMoreWorkersThanCores) {
    auto const together = training::train<ThreadCommunicator, double>({.workers = 5, .batch_size = 64, .epochs = 2});
    EXPECT_EQ(together.hashes[0], together.hashes[4]);
}

// The plain way, with its own collective operation.
TEST(ShortTraining, WithAllReduce) {
    launch<ThreadCommunicator>({.num_workers = 2}, [](auto& comm) {
        DataLoader train{training::train_data(), comm, {.batch_size = 32}};
        Model<training::Net> model{seed(1)};
        SGD const sgd{.lr = 0.1};
        auto state = sgd.init<float>(model.parameters().size());
        for (auto const& batch : train) {
            model.forward(batch);
            EXPECT_GT(all_reduce_sum(comm, model.loss(CrossEntropyLoss{}, batch)), 0);
            model.backward();
            comm.all_reduce(model.gradients());
            sgd.step(model.parameters(), std::span<float const>{model.gradients()}, state);
        }
    });
}

TEST(ShortTraining, ThatFails) {
    for (int failing_rank = 0; failing_rank < 2; ++failing_rank) {
        EXPECT_THROW(
            launch<ThreadCommunicator>({.num_workers = 2},
                                       [&](auto& comm) {
                                           DataLoader train{training::train_data(), comm, {.batch_size = 32}};
                                           Trainer trainer{Model<training::Net>{seed(1)}, CrossEntropyLoss{}, SGD{}, comm};
                                           trainer.fit(train);
                                           if (comm.rank() == failing_rank) { throw std::runtime_error("no"); }
                                           trainer.fit(train);
                                       }),
            WorkerError);
    }
}

} // namespace
