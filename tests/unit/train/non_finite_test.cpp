// A loss that is infinite or not a number is a defined, common event.
#include "lockstep/train/trainer.hpp"

#include "unit/train/training.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace {

using namespace lockstep;

/// Ordinary samples, but those in [first_bad, last_bad) have the input `bad`.
struct Spoilt {
    static constexpr std::size_t features = 12;
    static constexpr std::size_t classes = 5;
    training::Data data = training::train_data();
    std::size_t first_bad = 0;
    std::size_t last_bad = 0;
    double bad = std::numeric_limits<double>::quiet_NaN();

    [[nodiscard]] std::size_t size() const { return data.size(); }
    template <class T>
    void load(std::size_t index, std::span<T, 12> row) const {
        data.load(index, row);
        if (index >= first_bad && index < last_bad) { row[3] = static_cast<T>(bad); }
    }
    [[nodiscard]] Label target(std::size_t index) const { return data.target(index); }
};

using Net = Sequential<Linear<12, 5>>;

struct Stop {
    std::string text;
    int epoch = 0;
    std::size_t step = 0;
    std::uint64_t hash = 0;
};

/// Trains until the error, and tells what each worker saw.
std::vector<Stop> stops_of(int workers, Spoilt const& data, std::string* launch_text = nullptr) {
    std::vector<Stop> stops(static_cast<std::size_t>(workers));
    try {
        launch<ThreadCommunicator>({.num_workers = workers}, [&](auto& comm) {
            DataLoader train{data, comm, {.batch_size = 10, .shuffle = false}};
            Trainer trainer{Model<Net>{seed(1)}, CrossEntropyLoss{}, SGD{.lr = 0.1, .momentum = 0.9}, comm};
            try {
                trainer.fit(train, {.epochs = 3});
            } catch (NonFiniteLoss const& error) {
                stops[static_cast<std::size_t>(comm.rank())] = {error.what(), error.epoch, error.step,
                                                                trainer.model().parameter_hash()};
                throw;
            }
        });
        ADD_FAILURE() << "no error";
    } catch (WorkerError const& error) {
        if (launch_text != nullptr) { *launch_text = error.what(); }
        EXPECT_THROW(std::rethrow_if_nested(error), NonFiniteLoss);
    }
    return stops;
}

std::uint64_t hash_after(std::size_t steps) {
    SerialCommunicator comm;
    DataLoader train{training::train_data(), comm, {.batch_size = 10, .shuffle = false}};
    Trainer trainer{Model<Net>{seed(1)}, CrossEntropyLoss{}, SGD{.lr = 0.1, .momentum = 0.9}, comm};
    auto batch = train.begin();
    for (std::size_t step = 0; step < steps; ++step, ++batch) { trainer.step(*batch); }
    return trainer.model().parameter_hash();
}

// Row 25 belongs to the third batch, and there to one worker alone.
TEST(NonFinite, AllWorkersStopAtTheSameStepWithTheSameError) {
    for (int round = 0; round < 30; ++round) {
        for (int const workers : {2, 3}) {
            std::string launch_text;
            auto const stops = stops_of(workers, {.first_bad = 25, .last_bad = 26}, &launch_text);
            for (auto const& stop : stops) {
                EXPECT_NE(stop.text.find("nan in epoch 1, step 3: lower the learning rate"), std::string::npos) << stop.text;
                EXPECT_EQ(stop.text, stops[0].text);
                EXPECT_EQ(stop.epoch, 1);
                EXPECT_EQ(stop.step, 3U);
                EXPECT_EQ(stop.hash, stops[0].hash);
            }
            EXPECT_NE(launch_text.find(" of " + std::to_string(workers) + ": " + stops[0].text), std::string::npos)
                << launch_text;
        }
    }
}

TEST(NonFinite, TheStepDoesNotTouchTheParameters) {
    EXPECT_EQ(stops_of(1, {.first_bad = 25, .last_bad = 26})[0].hash, hash_after(2));
    EXPECT_EQ(stops_of(1, {.first_bad = 0, .last_bad = 1})[0].hash, Model<Net>{seed(1)}.parameter_hash());
}

TEST(NonFinite, InfinityCountsToo) {
    auto const stops = stops_of(2, {.first_bad = 202, .last_bad = 203, .bad = std::numeric_limits<double>::infinity()});
    for (auto const& stop : stops) {
        EXPECT_EQ(stop.step, 21U); // the exact tail: one worker has 1 row, the other 2
        EXPECT_EQ(stop.text, stops[0].text);
    }
}

TEST(NonFinite, ADivergingTrainingStops) {
    try {
        launch<ThreadCommunicator>({.num_workers = 2}, [](auto& comm) {
            DataLoader train{synthetic_regression<4, 2>(100, seed(1)), comm, {.batch_size = 10}};
            Trainer trainer{Model<Sequential<Linear<4, 2>>>{seed(1)}, MSELoss{}, SGD{.lr = 1e6}, comm};
            trainer.fit(train, {.epochs = 100});
        });
        FAIL() << "not noticed";
    } catch (WorkerError const& error) { EXPECT_THROW(std::rethrow_if_nested(error), NonFiniteLoss); }
}

TEST(NonFinite, SkipLeavesOutTheBatchAndGoesOn) {
    for (int const workers : {1, 2, 3}) {
        launch<ThreadCommunicator>({.num_workers = workers}, [&](auto& comm) {
            DataLoader train{Spoilt{.first_bad = 25, .last_bad = 35}, comm, {.batch_size = 10, .shuffle = false}};
            Trainer trainer{Model<Net>{seed(1)}, CrossEntropyLoss{}, SGD{.lr = 0.1}, comm};
            auto const result = trainer.fit(train, {.epochs = 2, .non_finite = NonFinite::skip});
            EXPECT_EQ(result.skipped_steps, 4U); // batches 3 and 4 of both epochs
            EXPECT_TRUE(std::isfinite(result.history[1].train_loss));
            EXPECT_LT(result.history[1].train_loss, result.history[0].train_loss);
            for (auto const hash : result.parameter_hashes) { EXPECT_EQ(hash, result.parameter_hashes[0]); }
            for (float const value : trainer.model().parameters()) { EXPECT_TRUE(std::isfinite(value)); }
        });
    }
}

// The mean of no samples is not a number; the count of skipped steps says why.
TEST(NonFinite, SkippingEveryBatchLeavesTheModelAsItWas) {
    launch<ThreadCommunicator>({.num_workers = 2}, [](auto& comm) {
        DataLoader train{Spoilt{.first_bad = 0, .last_bad = training::train_samples}, comm, {.batch_size = 50}};
        Trainer trainer{Model<Net>{seed(1)}, CrossEntropyLoss{}, SGD{.lr = 0.1}, comm};
        auto const result = trainer.fit(train, {.epochs = 1, .non_finite = NonFinite::skip});
        EXPECT_EQ(result.skipped_steps, train.steps());
        EXPECT_TRUE(std::isnan(result.history[0].train_loss));
        EXPECT_EQ(trainer.model().parameter_hash(), Model<Net>{seed(1)}.parameter_hash());
    });
}

// Bad test data, or an epoch whose last step spoils the parameters after the last training loss was looked at.
TEST(NonFinite, TheValidationLossCountsToo) {
    auto const train = [](NonFinite non_finite) {
        return launch<ThreadCommunicator>({.num_workers = 2}, [&](auto& comm) {
            DataLoader loader{training::train_data(), comm, {.batch_size = 203}};
            DataLoader test{Spoilt{.first_bad = 25, .last_bad = 26}, comm};
            Trainer trainer{Model<Net>{seed(1)}, CrossEntropyLoss{}, SGD{.lr = 0.1}, comm};
            return trainer.fit(loader, test, {.epochs = 1, .non_finite = non_finite});
        });
    };
    try {
        train(NonFinite::stop);
        FAIL() << "not noticed";
    } catch (WorkerError const& error) {
        EXPECT_STREQ(error.what(),
                     "rank 0 of 2: the validation loss is nan in epoch 1, step 1: lower the learning rate or look for bad "
                     "values in the data");
        EXPECT_THROW(std::rethrow_if_nested(error), NonFiniteLoss);
    }
    EXPECT_TRUE(std::isnan(train(NonFinite::skip).metrics["validation_loss"]));
}

} // namespace
