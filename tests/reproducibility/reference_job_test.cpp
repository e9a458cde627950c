// The reference job on Fashion-MNIST: with SimdEngine its first 100 steps always end with the same bits. Not on the portable set,
// where a fused multiply-add is a call of the C library: there other tests compare fewer steps.
#include <lockstep/comm/thread.hpp>
#include <lockstep/data/data_loader.hpp>
#include <lockstep/data/fashion_mnist.hpp>
#include <lockstep/engine/simd.hpp>
#include <lockstep/nn/layers.hpp>
#include <lockstep/nn/losses.hpp>
#include <lockstep/nn/model.hpp>
#include <lockstep/nn/sequential.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/train/update.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

namespace {

using namespace lockstep;

using Net = Sequential<Linear<784, 512>, ReLU, Linear<512, 128>, ReLU, Linear<128, 64>, ReLU, Linear<64, 10>>;
constexpr std::size_t steps = 100;

struct Outcome {
    std::uint64_t hash = 0;
    double loss = 0; ///< of the last step, summed over its batch
};

Outcome first_steps(FashionMnist const& data, int workers, std::size_t shard_rows) {
    Outcome outcome;
    launch<ThreadCommunicator>({.num_workers = workers}, [&](ThreadCommunicator& comm) {
        DataLoaderOptions options{.batch_size = 64, .seed = 1};
        if (shard_rows != 0) { options.shard_rows = shard_rows; }
        DataLoader train{data.train, comm, options};
        Model<Net, SimdEngine> model{seed(1)};
        SGD const sgd{.lr = 1e-3};
        auto state = sgd.init<float>(model.parameters().size());
        synchronize(model, comm, sgd);
        std::size_t step = 0;
        double loss = 0;
        for (auto const& batch : train) {
            if (step++ == steps) { break; }
            model.forward(batch);
            model.loss(CrossEntropyLoss{}, batch);
            loss = backward_average_update(model, comm, sgd, state);
        }
        if (comm.rank() == 0) { outcome = {model.parameter_hash(), loss}; }
    });
    return outcome;
}

class ReferenceJob : public testing::TestWithParam<InstructionSet> {
protected:
    void SetUp() override {
        if (!supports(GetParam())) { GTEST_SKIP() << "this processor has no " << name_of(GetParam()); }
        SimdEngine::use(GetParam());
    }
    void TearDown() override { SimdEngine::use(usual_); }

private:
    InstructionSet usual_ = SimdEngine::instruction_set();
};

TEST_P(ReferenceJob, EndsWithTheStoredBits) {
    auto const data = fashion_mnist();
    for (int const workers : {1, 2, 3, 4}) {
        auto const [hash, loss] = first_steps(data, workers, 0);
        EXPECT_EQ(hash, 0xd3e653fff7555b09U) << workers << " workers";
        EXPECT_NEAR(loss / 64, 2.3, 0.05) << workers << " workers";
    }
    for (int const workers : {1, 3, 7}) {
        EXPECT_EQ(first_steps(data, workers, 4).hash, 0x320bdf338f9da21U) << workers << " workers, shards of 4 rows";
    }
}

INSTANTIATE_TEST_SUITE_P(OnEverySet, ReferenceJob,
                         testing::Values(InstructionSet::avx2, InstructionSet::avx512, InstructionSet::neon),
                         [](auto const& info) { return std::string{name_of(info.param)}; });

} // namespace
