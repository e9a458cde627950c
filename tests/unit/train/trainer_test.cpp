#include "lockstep/train/trainer.hpp"

#include "unit/train/training.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace trainer_test {

using namespace lockstep;

constexpr int epochs = 3;
SGD const sgd{.lr = 0.05, .momentum = 0.9};

std::uint64_t hash_of_trainer(Communicator auto& comm) {
    DataLoader train{training::train_data(), comm, {.batch_size = 17, .seed = 1}};
    Trainer trainer{Model<training::Net>{seed(1)}, CrossEntropyLoss{}, sgd, comm};
    return trainer.fit(train, {.epochs = epochs}).parameter_hashes.front();
}

std::uint64_t hash_of_own_loop(Communicator auto& comm) {
    DataLoader train{training::train_data(), comm, {.batch_size = 17, .seed = 1}};
    Model<training::Net> model{seed(1)};
    auto state = sgd.init<float>(model.parameters().size());
    for (int epoch = 0; epoch < epochs; ++epoch) {
        for (auto const& batch : train) {
            model.forward(batch);
            model.loss(CrossEntropyLoss{}, batch);
            model.backward();
            comm.all_reduce(model.gradients());
            sgd.step(model.parameters(), std::span<float const>{model.gradients()}, state);
        }
    }
    return model.parameter_hash();
}

std::uint64_t hash_of_steps(Communicator auto& comm) {
    DataLoader train{training::train_data(), comm, {.batch_size = 17, .seed = 1}};
    Trainer trainer{Model<training::Net>{seed(1)}, CrossEntropyLoss{}, sgd, comm};
    for (int epoch = 0; epoch < epochs; ++epoch) {
        for (auto const& batch : train) { trainer.step(batch); }
    }
    return trainer.model().parameter_hash();
}

TEST(Trainer, ALoopOfOnesOwnGivesTheSameBits) {
    for (int const workers : {1, 2, 3}) {
        launch<ThreadCommunicator>({.num_workers = workers}, [](auto& comm) {
            auto const expected = hash_of_trainer(comm);
            EXPECT_EQ(hash_of_own_loop(comm), expected);
            EXPECT_EQ(hash_of_steps(comm), expected);
            EXPECT_NE(expected, Model<training::Net>{seed(1)}.parameter_hash());
        });
    }
}

TEST(Trainer, FitInPiecesEqualsFitAtOnce) {
    launch<ThreadCommunicator>({.num_workers = 2}, [](auto& comm) {
        DataLoader train{training::train_data(), comm, {.batch_size = 17, .seed = 1}};
        Trainer trainer{Model<training::Net>{seed(1)}, CrossEntropyLoss{}, sgd, comm};
        trainer.fit(train, {.epochs = 2});
        EXPECT_EQ(trainer.fit(train, {.epochs = 1}).parameter_hashes.front(), hash_of_trainer(comm));
    });
}

// Evaluation changes nothing in the training: not the parameters, not Dropout, not the order of the samples.
TEST(Trainer, TestDataDoNotChangeTheTraining) {
    launch<ThreadCommunicator>({.num_workers = 2}, [](auto& comm) {
        DataLoader train{training::train_data(), comm, {.batch_size = 17, .seed = 1}};
        DataLoader test{training::test_data(), comm, {.batch_size = 50}};
        Trainer trainer{Model<training::Net>{seed(1)}, CrossEntropyLoss{}, sgd, comm};
        EXPECT_EQ(trainer.fit(train, test, {.epochs = epochs}).parameter_hashes.front(), hash_of_trainer(comm));
    });
}

TEST(Trainer, ReplicasStartFromRankZero) {
    launch<ThreadCommunicator>({.num_workers = 3}, [](auto& comm) {
        Model<training::Net> model{seed(10)};
        model.parameters()[0] += static_cast<float>(comm.rank());
        Trainer const trainer{std::move(model), CrossEntropyLoss{}, SGD{}, comm};
        EXPECT_EQ(trainer.model().parameter_hash(), Model<training::Net>{seed(10)}.parameter_hash());
    });
}

TEST(Trainer, StepReturnsTheLossOfTheGlobalBatch) {
    std::vector<double> losses;
    for (int const workers : {1, 3}) {
        losses.push_back(launch<ThreadCommunicator>({.num_workers = workers}, [](auto& comm) {
            DataLoader train{training::train_data(), comm, {.batch_size = 20, .seed = 1}};
            Trainer trainer{Model<training::Net, CpuEngine, double>{seed(1)}, CrossEntropyLoss{}, sgd, comm};
            return trainer.step(*train.begin());
        }));
    }
    EXPECT_NEAR(losses[0], losses[1], 1e-12);
    EXPECT_GT(losses[0], 0.5);
}

TEST(Trainer, RefusesFewerThanOneEpoch) {
    for (int const count : {0, -1}) {
        SerialCommunicator comm;
        DataLoader train{training::train_data(), comm};
        Trainer trainer{Model<training::Net>{seed(1)}, CrossEntropyLoss{}, sgd, comm};
        try {
            trainer.fit(train, {.epochs = count});
            FAIL() << "accepted";
        } catch (ArgumentError const& error) {
            EXPECT_EQ(std::string{error.what()}, "fit: epochs must be at least 1, got " + std::to_string(count));
        }
    }
}

TEST(Trainer, RefusesWhatTheOptimizerRefuses) {
    SerialCommunicator comm;
    EXPECT_THROW((Trainer{Model<training::Net>{seed(1)}, CrossEntropyLoss{}, SGD{.lr = -1}, comm}), ArgumentError);
}

/// An optimizer that forgets to be the same everywhere.
struct Diverging {
    int rank;
    template <class T>
    [[nodiscard]] int init(std::size_t /*size*/) const {
        return 0;
    }
    template <class T>
    void step(std::span<T> parameters, std::span<T const> /*gradients*/, int& /*state*/) const {
        parameters[0] += static_cast<T>(rank);
    }
};

TEST(Trainer, ReplicasThatHaveComeApartAreAnError) {
    try {
        launch<ThreadCommunicator>({.num_workers = 2}, [](auto& comm) {
            DataLoader train{training::train_data(), comm};
            Trainer trainer{Model<training::Net>{seed(1)}, CrossEntropyLoss{}, Diverging{comm.rank()}, comm};
            trainer.fit(train);
        });
        FAIL() << "not noticed";
    } catch (WorkerError const& error) {
        EXPECT_NE(std::string{error.what()}.find("the replicas differ: rank 1 has parameter hash"), std::string::npos)
            << error.what();
    }
}

TEST(Trainer, LoadsAStateDictOnAllWorkers) {
    Model<training::Net> const source{seed(9)};
    auto const state = source.state_dict("net.");
    for (int const workers : {1, 2, 3}) {
        launch<ThreadCommunicator>({.num_workers = workers}, [&](auto& comm) {
            Trainer trainer{Model<training::Net>{seed(1)}, CrossEntropyLoss{}, SGD{}, comm};
            trainer.load_state_dict(comm.rank() == 0 ? state : StateDict<float>{}, "net.");
            EXPECT_EQ(trainer.model().parameter_hash(), source.parameter_hash());
        });
    }
}

TEST(Trainer, RefusesAStateDictThatDoesNotFitOnAllWorkersAndStaysUnchanged) {
    launch<ThreadCommunicator>({.num_workers = 2}, [&](auto& comm) {
        Trainer trainer{Model<training::Net>{seed(1)}, CrossEntropyLoss{}, SGD{}, comm};
        auto const before = trainer.model().parameter_hash();
        EXPECT_THROW(trainer.load_state_dict(StateDict<float>{}), ArgumentError);
        EXPECT_EQ(trainer.model().parameter_hash(), before);
    });
}

} // namespace trainer_test
