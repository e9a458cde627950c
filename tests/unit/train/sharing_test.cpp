// Workers of one process hold their parameters once. What a user does to his replica between the trainings must not show that.
#include "lockstep/train/trainer.hpp"

#include "unit/train/training.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace {

using namespace lockstep;

/// The parameters that body(trainer, train, comm) leaves on rank 0, between two trainings, and that it must leave on all.
template <class Comm, class Body>
std::vector<double> parameters_after(int workers, Body const& body) {
    return launch<Comm>({.num_workers = workers}, [&](auto& comm) {
        DataLoader train{training::train_data(), comm, {.batch_size = 20, .seed = 1}};
        Trainer trainer{Model<training::Net, CpuEngine, double>{seed(1)}, CrossEntropyLoss{}, SGD{.lr = 0.05}, comm};
        trainer.fit(train);
        body(trainer, train, comm);
        auto const result = trainer.fit(train); // throws when the replicas have come to differ
        for (auto const hash : result.parameter_hashes) { EXPECT_EQ(hash, trainer.model().parameter_hash()); }
        auto const& model = trainer.model();
        return std::vector<double>(model.parameters().begin(), model.parameters().end());
    });
}

template <class Body>
void expect_the_same_on_any_number_of_workers(Body const& body) {
    auto const expected = parameters_after<SerialCommunicator>(1, body);
    for (int const workers : {2, 3, 4}) {
        auto const got = parameters_after<ThreadCommunicator>(workers, body);
        double worst = 0;
        for (std::size_t i = 0; i < expected.size(); ++i) { worst = std::max(worst, std::abs(got[i] - expected[i])); }
        EXPECT_LT(worst, 1e-10) << workers << " workers";
    }
}

TEST(Sharing, ALoopOfYourOwnAfterATraining) {
    expect_the_same_on_any_number_of_workers([](auto& trainer, auto& train, auto& comm) {
        SGD const sgd{.lr = 0.05, .momentum = 0.9};
        auto& model = trainer.model();
        auto state = sgd.init<double>(model.parameters().size());
        for (auto const& batch : train) {
            model.forward(batch);
            static_cast<void>(model.loss(CrossEntropyLoss{}, batch));
            model.backward();
            comm.all_reduce(model.gradients());
            sgd.step(model.parameters(), model.gradients(), state);
        }
    });
}

TEST(Sharing, EveryWorkerScalesItsParameters) {
    expect_the_same_on_any_number_of_workers([](auto& trainer, auto& /*train*/, auto& /*comm*/) {
        for (auto& value : trainer.model().parameters()) { value *= 0.5; }
    });
}

TEST(Sharing, EveryWorkerLoadsAStateDict) {
    auto const state = Model<training::Net, CpuEngine, double>{seed(9)}.state_dict();
    expect_the_same_on_any_number_of_workers(
        [&](auto& trainer, auto& /*train*/, auto& /*comm*/) { trainer.model().load_state_dict(state); });
}

TEST(Sharing, ParametersAreAveraged) {
    expect_the_same_on_any_number_of_workers([](auto& trainer, auto& /*train*/, auto& comm) {
        auto const parameters = trainer.model().parameters();
        comm.all_reduce(parameters);
        for (auto& value : parameters) { value /= comm.size(); }
    });
}

} // namespace
