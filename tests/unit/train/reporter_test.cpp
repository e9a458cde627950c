#include "lockstep/train/reporter.hpp"

#include "unit/train/training.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace lockstep;

struct Seen {
    std::vector<std::string> calls;
    RunInfo run;
    std::vector<StepInfo> steps;
    std::vector<EpochMetrics> epochs;
    Result result;
};

/// Writes down all that it is told.
struct Recording {
    std::string name;
    Seen* seen;

    void on_start(RunInfo const& run) const {
        seen->calls.push_back(name + " start");
        seen->run = run;
    }
    void on_step(StepInfo const& step) const {
        seen->calls.push_back(name + " step");
        seen->steps.push_back(step);
    }
    void on_epoch(EpochMetrics const& epoch) const {
        seen->calls.push_back(name + " epoch");
        seen->epochs.push_back(epoch);
    }
    void on_end(Result const& result) const {
        seen->calls.push_back(name + " end");
        seen->result = result;
    }
};
static_assert(Reporter<Recording>);
static_assert(!Reporter<int>);

/// Writes one hook, inherits the others.
struct OnlyEpochs : ReporterBase {
    int* count;
    explicit OnlyEpochs(int* counter) : count{counter} {}
    void on_epoch(EpochMetrics const& /*epoch*/) const { ++*count; }
};
static_assert(Reporter<OnlyEpochs>);

template <class... Reporters>
Result fit(int workers, std::size_t batch_size, int epochs, Reporters... reporters) {
    return launch<ThreadCommunicator>({.num_workers = workers}, [&](auto& comm) {
        DataLoader train{training::train_data(), comm, {.batch_size = batch_size, .seed = 1}};
        DataLoader test{training::test_data(), comm};
        Trainer trainer{Model<training::Net, CpuEngine, double>{seed(1)}, CrossEntropyLoss{}, SGD{.lr = 0.1}, comm, reporters...};
        return trainer.fit(train, test, {.epochs = epochs});
    });
}

TEST(Reporter, SeveralAreCalledInTheirOrderOnRankZeroOnly) {
    Seen seen;
    fit(3, 150, 2, Recording{"a", &seen}, Recording{"b", &seen});
    std::vector<std::string> expected;
    for (auto const* const hook : {"start", "step", "step", "epoch", "step", "step", "epoch", "end"}) {
        for (auto const* const name : {"a ", "b "}) { expected.push_back(std::string{name} + hook); }
    }
    EXPECT_EQ(seen.calls, expected);
}

TEST(Reporter, IsToldWhatTheRunIs) {
    Seen seen;
    fit(3, 17, 2, Recording{"a", &seen});
    EXPECT_NE(seen.run.network.find("Linear<12"), std::string::npos) << seen.run.network;
    EXPECT_NE(seen.run.network.find(" -> ReLU -> "), std::string::npos) << seen.run.network;
    EXPECT_EQ(seen.run.parameters, 12U * 16 + 16 + 16 * 5 + 5);
    EXPECT_EQ(seen.run.scalar, "double");
    EXPECT_EQ(seen.run.workers, 3);
    EXPECT_EQ(seen.run.engine, std::string{CpuEngine::name});
    EXPECT_EQ(seen.run.epochs, 2);
    EXPECT_EQ(seen.run.batch_size, 17U);
    EXPECT_EQ(seen.run.steps_per_epoch, 12U);
    EXPECT_EQ(seen.run.samples_per_epoch, training::train_samples);
}

TEST(Reporter, IsToldHowTheBatchIsCut) {
    Seen seen;
    auto const result = fit(3, 64, 1, Recording{"a", &seen});
    EXPECT_EQ(seen.run.shard_rows, 16U);
    EXPECT_FALSE(seen.run.shard_rows_halved);
    EXPECT_EQ(seen.run.idle_workers, std::vector<int>{});
    EXPECT_EQ(result.shard_rows, 16U);

    EXPECT_EQ(fit(3, 17, 1, Recording{"a", &seen}).shard_rows, 8U); // 16 + 1 rows would be 2 shards
    EXPECT_EQ(seen.run.shard_rows, 8U);
    EXPECT_TRUE(seen.run.shard_rows_halved);
    EXPECT_EQ(seen.run.idle_workers, std::vector<int>{});

    fit(3, 2, 1, Recording{"a", &seen});
    EXPECT_EQ(seen.run.shard_rows, 1U);
    EXPECT_EQ(seen.run.idle_workers.size(), 1U);

    launch<ThreadCommunicator>({.num_workers = 4}, [&](auto& comm) {
        DataLoader train{training::train_data(), comm, {.batch_size = 64, .shard_rows = 32}};
        Trainer trainer{Model<training::Net>{seed(1)}, CrossEntropyLoss{}, SGD{}, comm, Recording{"a", &seen}};
        trainer.fit(train);
    });
    EXPECT_EQ(seen.run.shard_rows, 32U);
    EXPECT_FALSE(seen.run.shard_rows_halved);
    EXPECT_EQ(seen.run.idle_workers, (std::vector<int>{0, 2}));
}

TEST(Reporter, StepsCarryGlobalValues) {
    Seen alone;
    Seen together;
    fit(1, 17, 2, Recording{"a", &alone});
    fit(3, 17, 2, Recording{"a", &together});
    ASSERT_EQ(together.steps.size(), 24U);
    double sum = 0;
    std::size_t samples = 0;
    for (std::size_t i = 0; i < together.steps.size(); ++i) {
        auto const& step = together.steps[i];
        std::size_t const rows = i % 12 == 11 ? training::train_samples - std::size_t{11} * 17 : 17;
        if (i % 12 == 0) {
            sum = 0;
            samples = 0;
        }
        samples += rows;
        sum += step.loss * static_cast<double>(rows);
        EXPECT_EQ(step.epoch, i < 12 ? 1 : 2);
        EXPECT_EQ(step.step, i % 12 + 1);
        EXPECT_EQ(step.samples, samples);
        EXPECT_NEAR(step.running_loss, sum / static_cast<double>(samples), 1e-12);
        EXPECT_NEAR(step.loss, alone.steps[i].loss, 1e-10);
    }
    EXPECT_EQ(together.epochs[1].train_loss, together.steps.back().running_loss);
}

TEST(Reporter, TheEndIsTheResult) {
    Seen seen;
    auto const result = fit(2, 64, 3, Recording{"a", &seen});
    EXPECT_EQ(seen.result.metrics, result.metrics);
    EXPECT_EQ(seen.result.parameter_hashes, result.parameter_hashes);
    ASSERT_EQ(seen.epochs.size(), 3U);
    EXPECT_EQ(seen.epochs[2].train_loss, result.metrics.at("train_loss"));
    EXPECT_EQ(seen.epochs[2].seconds, result.metrics.at("seconds"));
}

TEST(Reporter, BaseLetsOneHookBeWrittenAlone) {
    int count = 0;
    fit(2, 64, 3, OnlyEpochs{&count});
    EXPECT_EQ(count, 3);
}

TEST(Reporter, MayBeYourOwnObject) {
    int epochs = 0;
    OnlyEpochs mine{&epochs};
    fit(1, 20, 3, std::ref(mine));
    EXPECT_EQ(epochs, 3);
    EXPECT_EQ(mine.count, &epochs);
}

} // namespace
