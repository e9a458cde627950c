// labels: tsan
#include "lockstep/train/fused_step.hpp"

#include "lockstep/comm/serial.hpp"
#include "lockstep/comm/thread.hpp"
#include "lockstep/data/data_loader.hpp"
#include "lockstep/data/synthetic.hpp"
#include "lockstep/engine/simd.hpp"
#include "lockstep/nn/layers.hpp"
#include "lockstep/nn/losses.hpp"
#include "lockstep/nn/model.hpp"
#include "lockstep/optim/sgd.hpp"
#include "lockstep/train/trainer.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fused_step_test {

using namespace lockstep;

/// A layer with parameters that is not Linear, so that both kinds of elements are there.
struct Shift {
    template <std::size_t In>
    static constexpr std::array<TensorSpec, 1> tensors() {
        return {TensorSpec{"bias", {In}, Initializer::constant(0.125)}};
    }
    static void forward(auto const& pass) {
        for (std::size_t r = 0; r < pass.x.rows(); ++r) {
            for (std::size_t i = 0; i < pass.x.width; ++i) { pass.y[r][i] = pass.x[r][i] + pass.parameters[0][i]; }
        }
    }
    static void backward(auto const& pass) {
        for (auto& slope : pass.gradients[0]) { slope = 0; }
        for (std::size_t r = 0; r < pass.x.rows(); ++r) {
            for (std::size_t i = 0; i < pass.x.width; ++i) { pass.gradients[0][i] += pass.dx[r][i] = pass.dy[r][i]; }
        }
    }
};

using Net = Sequential<Linear<23, 37>, ReLU, Shift, Linear<37, 19>, Tanh, Linear<19, 5>>;
constexpr std::size_t samples = 333;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int epochs = 4; // for what these look for, as good as many
#else
constexpr int epochs = 34; // of 6 steps: 204
#endif

template <class T>
auto data() {
    return synthetic_classification<23, 5>(samples, seed(5));
}

DataLoaderOptions loader_options(std::size_t shard_rows) {
    DataLoaderOptions options{.batch_size = 61, .seed = 2}; // and a tail of 28
    if (shard_rows != 0) { options.shard_rows = shard_rows; }
    return options;
}

template <class T>
std::uint64_t fused(int workers, SGD const& sgd, std::size_t shard_rows) {
    std::uint64_t hash = 0;
    launch<ThreadCommunicator>({.num_workers = workers}, [&](ThreadCommunicator& comm) {
        DataLoader train{data<T>(), comm, loader_options(shard_rows)};
        using ModelType = Model<Net, SimdEngine, T>;
        static_assert(FusesStep<ModelType, ThreadCommunicator, SGD>);
        Trainer trainer{ModelType{seed(1)}, CrossEntropyLoss{}, sgd, comm};
        trainer.fit(train, {.epochs = epochs});
        if (comm.rank() == 0) { hash = trainer.model().parameter_hash(); }
    });
    return hash;
}

/// As a user writes it who wants to see the gradients.
template <class T>
std::uint64_t plain(int workers, SGD const& sgd, std::size_t shard_rows) {
    std::uint64_t hash = 0;
    launch<ThreadCommunicator>({.num_workers = workers}, [&](ThreadCommunicator& comm) {
        DataLoader train{data<T>(), comm, loader_options(shard_rows)};
        Model<Net, SimdEngine, T> model{seed(1)};
        auto state = sgd.init<T>(model.parameters().size());
        for (int epoch = 0; epoch < epochs; ++epoch) {
            for (auto const& batch : train) {
                model.forward(batch);
                model.loss(CrossEntropyLoss{}, batch);
                model.backward();
                comm.all_reduce(model.gradients());
                sgd.step(model.parameters(), model.gradients(), state);
            }
        }
        if (comm.rank() == 0) { hash = model.parameter_hash(); }
    });
    return hash;
}

constexpr SGD optimizers[] = {{.lr = 0.05},
                              {.lr = 0.05, .weight_decay = 0.01},
                              {.lr = 0.02, .momentum = 0.9},
                              {.lr = 0.02, .momentum = 0.9, .dampening = 0.5, .weight_decay = 0.01},
                              {.lr = 0.02, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true}};

template <class T>
void expect_the_same_bits(std::size_t shard_rows, std::vector<int> const& workers) {
    for (auto const& sgd : optimizers) {
        auto const expected = plain<T>(1, sgd, shard_rows);
        for (int const count : workers) {
            EXPECT_EQ(plain<T>(count, sgd, shard_rows), expected) << sgd.description() << ", plain, " << count << " workers";
            EXPECT_EQ(fused<T>(count, sgd, shard_rows), expected) << sgd.description() << ", fused, " << count << " workers";
        }
    }
}

TEST(FusedStep, EndsWithTheBitsOfThePlainWay) { expect_the_same_bits<float>(0, {1, 2, 3, 4}); }
TEST(FusedStep, EndsWithTheBitsOfThePlainWayInDouble) { expect_the_same_bits<double>(0, {2, 3}); }
TEST(FusedStep, EndsWithTheBitsOfThePlainWayForManyShards) { expect_the_same_bits<float>(4, {1, 3, 5, 7}); }
TEST(FusedStep, EndsWithTheBitsOfThePlainWayWhereSomeHaveNoRows) { expect_the_same_bits<float>(32, {1, 4}); }

/// A replica that has come to own its parameters receives the others' updates.
TEST(FusedStep, ReachesParametersThatAreNotShared) {
    std::vector<std::uint64_t> hashes(3);
    launch<ThreadCommunicator>({.num_workers = 3}, [&](ThreadCommunicator& comm) {
        DataLoader train{data<float>(), comm, loader_options(0)};
        Trainer trainer{Model<Net, SimdEngine>{seed(1)}, CrossEntropyLoss{}, SGD{.lr = 0.1}, comm};
        if (comm.rank() == 1) { static_cast<void>(trainer.model().parameters()); } // takes a copy
        trainer.fit(train, {.epochs = 2});
        hashes[static_cast<std::size_t>(comm.rank())] = trainer.model().parameter_hash();
    });
    EXPECT_EQ(hashes[0], hashes[1]);
    EXPECT_EQ(hashes[0], hashes[2]);
}

TEST(FusedStep, ANonFiniteLossChangesNothing) {
    launch<ThreadCommunicator>({.num_workers = 2}, [&](ThreadCommunicator& comm) {
        DataLoader train{data<float>(), comm, loader_options(0)};
        Model<Net, SimdEngine> model{seed(1)};
        SGD const sgd{.lr = 0.1, .momentum = 0.9};
        auto state = sgd.init<float>(model.parameters().size());
        auto const batch = *train.begin();
        model.forward(batch);
        model.loss(CrossEntropyLoss{}, batch);
        if (comm.rank() == 1) { model.losses()[0] = std::nan(""); }
        auto const before = model.parameter_hash();
        EXPECT_TRUE(std::isnan(fused_step(model, comm, sgd, state)));
        EXPECT_EQ(model.parameter_hash(), before);
        EXPECT_EQ(state.steps, 0U);
    });
}

} // namespace fused_step_test
