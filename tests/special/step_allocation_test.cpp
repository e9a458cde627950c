// A training step allocates nothing.
#include "lockstep/train/console_reporter.hpp"
#include "lockstep/train/trainer.hpp"

#include "special/allocations.hpp"
#include "unit/train/training.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <vector>

namespace {

using namespace lockstep;
using lockstep::special::allocate_once;
using lockstep::special::allocations;

/// Notes the count after each step.
struct Counter : ReporterBase {
    std::vector<long>* counts; ///< has room
    explicit Counter(std::vector<long>* room) : counts{room} {}
    void on_step(StepInfo const& /*step*/) const { counts->push_back(allocations()); }
};

constexpr std::size_t nowhere = static_cast<std::size_t>(-1);

/// The shared dataset, but it allocates when one of its samples is loaded.
struct Wasteful {
    static constexpr std::size_t features = 12;
    static constexpr std::size_t classes = 5;
    training::Data data = training::train_data();
    std::size_t wasteful_index = nowhere;

    [[nodiscard]] std::size_t size() const { return data.size(); }
    template <class T>
    void load(std::size_t index, std::span<T, 12> row) const {
        if (index == wasteful_index) { allocate_once(); }
        data.load(index, row);
    }
    [[nodiscard]] Label target(std::size_t index) const { return data.target(index); }
};

struct Options {
    int workers = 1;
    int epochs = 1;
    bool evaluating = false;
    std::size_t wasteful_index = nowhere;
};

constexpr std::size_t steps = 102; // of an epoch

/// Allocations on all workers from the first step of the first epoch to the last but one of the last: when that is counted on
/// rank 0, nobody is further than within the last.
template <class T, class EngineType = CpuEngine>
long allocations_of_training(Options const& options) {
    using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;
    File const piped{std::tmpfile(), &std::fclose};
    std::vector<long> counts;
    counts.reserve(1000);
    launch<ThreadCommunicator>({.num_workers = options.workers}, [&](auto& comm) {
        DataLoader train{Wasteful{.wasteful_index = options.wasteful_index}, comm, {.batch_size = 2, .shuffle = false}};
        DataLoader test{training::test_data(), comm, {.batch_size = 20}};
        Trainer trainer{Model<training::Net, EngineType, T>{seed(1)},
                        CrossEntropyLoss{},
                        SGD{.lr = 0.01, .momentum = 0.9, .nesterov = true},
                        comm,
                        ConsoleReporter{{.stream = piped.get(), .log_every = 10}},
                        Counter{&counts}};
        if (options.evaluating) {
            trainer.fit(train, test, {.epochs = options.epochs});
        } else {
            trainer.fit(train, {.epochs = options.epochs});
        }
    });
    EXPECT_EQ(counts.size(), steps * static_cast<std::size_t>(options.epochs));
    return counts.at(counts.size() - 2) - counts.front();
}

TEST(StepAllocation, TheCounterCounts) {
    long const before = allocations();
    allocate_once();
    EXPECT_EQ(allocations(), before + 1);
    void* volatile const aligned = ::operator new (64, std::align_val_t{64});
    ::operator delete (aligned, std::align_val_t{64});
    EXPECT_EQ(allocations(), before + 2);
    std::vector<int> const values(100, 1);
    EXPECT_EQ(values.back(), 1);
    EXPECT_EQ(allocations(), before + 3);
}

TEST(StepAllocation, OneAllocationOfAnyWorkerIsSeen) {
    EXPECT_EQ(allocations_of_training<float>({.wasteful_index = 100}), 1);
    EXPECT_EQ(allocations_of_training<float>({.workers = 2, .wasteful_index = 100}), 1); // rank 0's
    EXPECT_EQ(allocations_of_training<float>({.workers = 2, .wasteful_index = 101}), 1); // rank 1's
}

TEST(StepAllocation, AHundredStepsAllocateNothing) {
    for (int const workers : {1, 2}) {
        EXPECT_EQ(allocations_of_training<float>({.workers = workers}), 0) << workers << " workers";
        EXPECT_EQ(allocations_of_training<double>({.workers = workers}), 0) << workers << " workers";
    }
    for (int const workers : {1, 2, 3}) {
        EXPECT_EQ((allocations_of_training<float, SimdEngine>({.workers = workers})), 0) << workers << " workers";
        EXPECT_EQ((allocations_of_training<double, SimdEngine>({.workers = workers})), 0) << workers << " workers";
    }
}

// What is left between two epochs is the history, of which every worker keeps one: two entries, so two allocations() at the most.
TEST(StepAllocation, EvaluationAllocatesNothing) {
    for (int const workers : {1, 2}) {
        Options const options{.workers = workers, .epochs = 3, .evaluating = true};
        EXPECT_LE(allocations_of_training<float>(options), 2L * workers) << workers << " workers";
        EXPECT_LE(allocations_of_training<double>(options), 2L * workers) << workers << " workers";
        EXPECT_LE((allocations_of_training<float, SimdEngine>(options)), 2L * workers) << workers << " workers";
    }
}

} // namespace
