#include "lockstep/train/update.hpp"

#include "unit/train/training.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace {

using namespace lockstep;

/// A communicator that cannot fuse; it sums by trees, so that its bits are the others'.
template <class Comm>
struct Unfused {
    static constexpr char const* name = "unfused";
    Comm& comm;
    [[nodiscard]] int rank() const { return comm.rank(); }
    [[nodiscard]] int size() const { return comm.size(); }
    template <class T>
    void all_reduce(std::span<T> values) {
        comm.all_reduce(values);
    }
    template <class T>
    void all_reduce(PartialSums<T> sums) {
        comm.all_reduce(sums);
    }
    template <class T>
    void broadcast(std::span<T> values, int root) {
        comm.broadcast(values, root);
    }
    void barrier() { comm.barrier(); }
};

/// An optimizer that makes its step in one piece only.
struct WholeSGD {
    SGD sgd;
    template <class T>
    [[nodiscard]] auto init(std::size_t size) const {
        return sgd.init<T>(size);
    }
    template <class T>
    void step(std::span<T> parameters, std::span<T const> gradients, SGD::State<T>& state) const {
        sgd.step(parameters, gradients, state);
    }
};

static_assert(Communicator<Unfused<ThreadCommunicator>> && !FusesUpdate<Unfused<ThreadCommunicator>, float>);
static_assert(Optimizer<WholeSGD, float> && !ElementwiseOptimizer<WholeSGD, float>);

template <class Comm, class OptimizerType>
std::vector<float> parameters_after(Comm& comm, OptimizerType const& optimizer) {
    DataLoader train{training::train_data(), comm, {.batch_size = 17, .seed = 1}};
    Trainer trainer{Model<training::Net>{seed(1)}, CrossEntropyLoss{}, optimizer, comm};
    trainer.fit(train, {.epochs = 3});
    auto const parameters = trainer.model().parameters();
    return {parameters.begin(), parameters.end()};
}

TEST(BackwardAverageUpdate, FusedWaysEndWithThePlainWaysBits) {
    for (SGD const& sgd :
         {SGD{.lr = 0.1}, SGD{.lr = 0.1, .weight_decay = 1e-2}, SGD{.lr = 0.05, .momentum = 0.9, .dampening = 0.1},
          SGD{.lr = 0.05, .momentum = 0.9, .weight_decay = 1e-3, .nesterov = true}}) {
        for (int const workers : {1, 2, 3, 7}) {
            launch<ThreadCommunicator>({.num_workers = workers}, [&](auto& comm) {
                auto const fused = parameters_after(comm, sgd);
                EXPECT_EQ(parameters_after(comm, WholeSGD{sgd}), fused) << workers << " workers";
                Unfused<ThreadCommunicator> unfused{comm};
                EXPECT_EQ(parameters_after(unfused, sgd), fused) << workers << " workers";
            });
        }
    }
}

// A skipped first batch must not count as the first step, which treats momentum in its own way.
TEST(BackwardAverageUpdate, ANonFiniteLossChangesNothingInAnyWay) {
    SGD const sgd{.lr = 0.1, .momentum = 0.9, .dampening = 0.5};
    auto const train = [&](auto& comm, auto const& optimizer, bool bad_loss_first) {
        Model<training::Net> model{seed(1)};
        auto state = optimizer.template init<float>(model.parameters().size());
        synchronize(model, comm, optimizer);
        DataLoader data{training::train_data(), comm, {.batch_size = 17, .seed = 1}};
        for (auto const& batch : data) {
            model.forward(batch);
            model.loss(CrossEntropyLoss{}, batch);
            if (bad_loss_first) {
                if (comm.rank() == comm.size() - 1) { model.losses()[0] = std::numeric_limits<double>::infinity(); }
                auto const before = model.parameter_hash();
                EXPECT_TRUE(std::isinf(backward_average_update(model, comm, optimizer, state)));
                EXPECT_EQ(model.parameter_hash(), before);
                bad_loss_first = false;
                model.forward(batch);
                static_cast<void>(model.loss(CrossEntropyLoss{}, batch));
            }
            EXPECT_TRUE(std::isfinite(backward_average_update(model, comm, optimizer, state)));
        }
        return model.parameter_hash();
    };
    for (int const workers : {1, 2, 3}) {
        launch<ThreadCommunicator>({.num_workers = workers}, [&](auto& comm) {
            auto const expected = train(comm, sgd, false);
            EXPECT_EQ(train(comm, sgd, true), expected);
            EXPECT_EQ(train(comm, WholeSGD{sgd}, true), expected);
        });
    }
}

TEST(Synchronize, WorkersOfOneProcessShareOneBufferAndAllStartFromRank0) {
    launch<ThreadCommunicator>({.num_workers = 3}, [](auto& comm) {
        auto const rank = static_cast<std::uint64_t>(comm.rank());
        auto const rank0 = Model<training::Net>{seed(5)}.parameter_hash();
        Model<training::Net> shared{seed(5 + rank)};
        synchronize(shared, comm, SGD{});
        EXPECT_EQ(shared.parameter_hash(), rank0);
        Model<training::Net> own{seed(5 + rank)};
        synchronize(own, comm, WholeSGD{});
        EXPECT_EQ(own.parameter_hash(), rank0);

        comm.barrier();
        if (comm.rank() == 1) { shared.shared_parameters()[0] = own.shared_parameters()[0] = 7; }
        comm.barrier();
        EXPECT_EQ(std::as_const(shared).parameters()[0], 7);
        EXPECT_EQ(std::as_const(own).parameters()[0] == 7, comm.rank() == 1);
        comm.barrier();
        shared.parameters()[0] = static_cast<float>(comm.rank()); // every worker's own from here on
        comm.barrier();
        EXPECT_EQ(std::as_const(shared).parameters()[0], static_cast<float>(comm.rank()));
    });
}

} // namespace
