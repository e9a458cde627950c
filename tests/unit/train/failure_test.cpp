// A worker that fails in any phase of a training ends it, by name and in bounded time, and leaves nothing behind.
#include "lockstep/train/trainer.hpp"

#include "unit/train/training.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>

namespace failure_test {

using namespace lockstep;

constexpr int workers = 3;
constexpr std::size_t never = static_cast<std::size_t>(-1);

/// The shared dataset in its own order; one sample cannot be read, or has a label out of range.
struct Faulty {
    static constexpr std::size_t features = 12;
    static constexpr std::size_t classes = 5;
    training::Data data = training::train_data();
    std::size_t unreadable = never;
    std::size_t mislabelled = never;

    [[nodiscard]] std::size_t size() const { return data.size(); }
    template <class T>
    void load(std::size_t index, std::span<T, 12> row) const {
        if (index == unreadable) { throw DataError("sample " + std::to_string(index) + " cannot be read"); }
        data.load(index, row);
    }
    [[nodiscard]] Label target(std::size_t index) const { return index == mislabelled ? 99 : data.target(index); }
};

struct Broken {
    bool at_start = false;
    std::size_t at_step = 0;
    int at_epoch = 0;
    bool at_end = false;

    static void fail(bool now) {
        if (now) { throw std::runtime_error("the disk is full"); }
    }
    void on_start(RunInfo const& /*run*/) const { fail(at_start); }
    void on_step(StepInfo const& step) const { fail(step.step == at_step); }
    void on_epoch(EpochMetrics const& epoch) const { fail(epoch.epoch == at_epoch); }
    void on_end(Result const& /*result*/) const { fail(at_end); }
};

struct Faults {
    int refusing_rank = -1; ///< throws before it has a trainer
    Faulty train{};
    Faulty test{};
    Broken reporter{};
};

std::uint64_t train_with(Faults const& faults) {
    return launch<ThreadCommunicator>({.num_workers = workers}, [&](auto& comm) {
        if (comm.rank() == faults.refusing_rank) { throw std::bad_alloc(); }
        // In batches of 30 rows every worker has 10: samples 0 to 9 are rank 0's, 20 to 29 the last one's.
        DataLoader train{faults.train, comm, {.batch_size = 30, .shuffle = false}};
        DataLoader test{faults.test, comm, {.batch_size = 30, .shuffle = false}};
        Trainer trainer{Model<training::Net>{seed(1)}, CrossEntropyLoss{}, SGD{.lr = 0.1}, comm, faults.reporter};
        return trainer.fit(train, test, {.epochs = 2}).parameter_hashes.front();
    });
}

std::ptrdiff_t threads() {
    return std::distance(std::filesystem::directory_iterator{"/proc/self/task"}, std::filesystem::directory_iterator{});
}

/// A joined thread may be seen for a moment after.
std::ptrdiff_t threads_when_settled(std::ptrdiff_t expected) {
    for (int wait = 0; wait < 200 && threads() > expected; ++wait) { std::this_thread::sleep_for(std::chrono::milliseconds{10}); }
    return threads();
}

/// The smallest number within a while: the threads of what has just ended are not among them.
std::ptrdiff_t settled_threads() {
    std::ptrdiff_t smallest = threads();
    for (int wait = 0; wait < 20; ++wait) {
        std::this_thread::sleep_for(std::chrono::milliseconds{5});
        smallest = std::min(smallest, threads());
    }
    return smallest;
}

void expect_failure(Faults const& faults, int rank, std::string const& text) {
    SCOPED_TRACE(text + ", rank " + std::to_string(rank));
    static std::uint64_t const expected = train_with({});
    static std::ptrdiff_t const before = settled_threads();
    auto const start = std::chrono::steady_clock::now();
    try {
        train_with(faults);
        ADD_FAILURE() << "no error";
    } catch (WorkerError const& error) {
        EXPECT_EQ(error.rank, rank);
        EXPECT_EQ(std::string{error.what()}, "rank " + std::to_string(rank) + " of 3: " + text);
    }
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds{5});
    EXPECT_LE(threads_when_settled(before), before);
    EXPECT_EQ(train_with({}), expected) << "the next training is another one";
}

TEST(Failure, WhileBuilding) {
    expect_failure({.refusing_rank = 0}, 0, std::bad_alloc{}.what());
    expect_failure({.refusing_rank = 2}, 2, std::bad_alloc{}.what());
}

TEST(Failure, WhileLoadingTheFirstBatch) {
    expect_failure({.train = {.unreadable = 3}}, 0, "sample 3 cannot be read");
    expect_failure({.train = {.unreadable = 29}}, 2, "sample 29 cannot be read");
}

TEST(Failure, WhileLoadingALaterBatch) {
    expect_failure({.train = {.unreadable = 123}}, 0, "sample 123 cannot be read");
    expect_failure({.train = {.unreadable = 202}}, 2, "sample 202 cannot be read");
}

TEST(Failure, InTheLoss) {
    auto const text = [](int row) {
        return "row " + std::to_string(row) + " of the batch has label 99, the network has 5 outputs (labels 0 to 4)";
    };
    expect_failure({.train = {.mislabelled = 5}}, 0, text(5));
    expect_failure({.train = {.mislabelled = 84}}, 2, text(8)); // the third worker has rows 16 to 29 of each batch of 30
}

TEST(Failure, InEvaluation) {
    expect_failure({.test = {.unreadable = 3}}, 0, "sample 3 cannot be read");
    expect_failure({.test = {.unreadable = 202}}, 2, "sample 202 cannot be read");
}

TEST(Failure, InAReporter) {
    expect_failure({.reporter = {.at_start = true}}, 0, "the disk is full");
    expect_failure({.reporter = {.at_step = 4}}, 0, "the disk is full");
    expect_failure({.reporter = {.at_epoch = 2}}, 0, "the disk is full");
    expect_failure({.reporter = {.at_end = true}}, 0, "the disk is full");
}

/// Rank 0 alone has reporters: the others wait for it in the comparison of the parameters.
struct SlowAtTheEnd : ReporterBase {
    static void on_epoch(EpochMetrics const& /*epoch*/) { std::this_thread::sleep_for(std::chrono::milliseconds{1500}); }
};

TEST(Failure, ATimeoutAfterTheLastEvaluationIsAtTheEndOfTheEpoch) {
    try {
        launch<ThreadCommunicator>({.num_workers = 2, .timeout_seconds = 0.5}, [](auto& comm) {
            DataLoader train{training::train_data(), comm, {}};
            DataLoader test{training::test_data(), comm, {}};
            Trainer trainer{Model<training::Net>{seed(1)}, CrossEntropyLoss{}, SGD{}, comm, SlowAtTheEnd{}};
            trainer.fit(train, test);
        });
        ADD_FAILURE() << "no error";
    } catch (WorkerError const& error) {
        EXPECT_STREQ(error.what(), "rank 0 of 2: did not come to all_reduce of 2 uint64 within 0.5 s; it was last seen in end of "
                                   "epoch 1, while rank 1 waits in end of epoch 1");
    }
}

} // namespace failure_test
