#include <lockstep/nn/model.hpp>

#include <lockstep/engine/cpu.hpp>
#include <lockstep/nn/layers.hpp>
#include <lockstep/optim/sgd.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace model_test {

using lockstep::CpuEngine;
using lockstep::CrossEntropyLoss;
using lockstep::Linear;
using lockstep::Rows;
using Net = lockstep::Sequential<Linear<3, 5>, lockstep::ReLU, Linear<5, 2>>;
template <class T>
using Model = lockstep::Model<Net, CpuEngine, T>;

template <class T>
std::vector<T> ramp(std::size_t rows) {
    std::vector<T> values(3 * rows);
    for (std::size_t i = 0; i < values.size(); ++i) { values[i] = static_cast<T>(std::sin(static_cast<double>(i))); }
    return values;
}
std::vector<int> labels(std::size_t rows) {
    std::vector<int> values(rows);
    for (std::size_t i = 0; i < rows; ++i) { values[i] = static_cast<int>(i * i % 2); }
    return values;
}

template <class T>
double pass(Model<T>& model, std::size_t rows) {
    auto const x = ramp<T>(rows);
    model.forward(Rows<T const, 3>{x.data(), rows});
    double const loss = model.loss(CrossEntropyLoss{}, labels(rows), rows);
    model.backward();
    return loss;
}

template <class T>
std::size_t gaps_not_zero(std::span<T const> buffer) {
    std::vector<bool> used(buffer.size());
    for (std::size_t tensor = 0; tensor < Net::tensor_count; ++tensor) {
        for (std::size_t i = 0; i < Net::tensors[tensor].spec.size(); ++i) { used[Net::offsets<T>[tensor] + i] = true; }
    }
    std::size_t count = 0;
    for (std::size_t i = 0; i < buffer.size(); ++i) { count += !used[i] && buffer[i] != 0 ? 1U : 0U; }
    return count;
}

template <class T>
void expect_layout() {
    Model<T> model{lockstep::seed(1)};
    EXPECT_EQ(model.parameters().size(), Net::buffer_size<T>);
    EXPECT_EQ(model.gradients().size(), Net::buffer_size<T>);
    for (std::size_t tensor = 0; tensor < Net::tensor_count; ++tensor) {
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(model.parameter(tensor).data()) % 64, 0U);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(model.gradient(tensor).data()) % 64, 0U);
        EXPECT_EQ(model.parameter(tensor).size(), Net::tensors[tensor].spec.size());
        EXPECT_EQ(model.gradient(tensor).size(), Net::tensors[tensor].spec.size());
    }
    lockstep::SGD const sgd{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1};
    auto state = sgd.init<T>(model.parameters().size());
    for (int step = 0; step < 5; ++step) {
        EXPECT_EQ(gaps_not_zero<T>(model.parameters()), 0U) << "step " << step;
        EXPECT_EQ(gaps_not_zero<T>(model.gradients()), 0U) << "step " << step;
        pass<T>(model, 4);
        sgd.step(model.parameters(), std::span<T const>{model.gradients()}, state);
    }
    EXPECT_EQ(gaps_not_zero<T>(model.parameters()), 0U);
}

TEST(Model, TensorsAreAlignedAndGapsStayZero) {
    expect_layout<float>();
    expect_layout<double>();
}

TEST(Model, TheSeedDecidesTheParameters) {
    EXPECT_EQ(Model<float>{lockstep::seed(1)}.parameter_hash(), Model<float>{lockstep::seed(1)}.parameter_hash());
    EXPECT_NE(Model<float>{lockstep::seed(1)}.parameter_hash(), Model<float>{lockstep::seed(2)}.parameter_hash());
}

TEST(Model, TheHashSeesEveryParameterAndNoGap) {
    Model<float> model{lockstep::seed(1)};
    auto const before = model.parameter_hash();
    model.parameters()[15] = 7; // behind 0.weight's 15 scalars
    EXPECT_EQ(model.parameter_hash(), before);
    for (std::size_t tensor = 0; tensor < Net::tensor_count; ++tensor) {
        for (float& value : model.parameter(tensor)) {
            float const start = value;
            value = std::nextafter(value, 9.0F);
            EXPECT_NE(model.parameter_hash(), before);
            value = start;
        }
    }
    EXPECT_EQ(model.parameter_hash(), before);
}

TEST(Model, OfNoRowsHasZeroLossAndGradients) {
    Model<float> model{lockstep::seed(1)};
    for (int round = 0; round < 2; ++round) {
        EXPECT_EQ(pass<float>(model, 0), 0);
        EXPECT_EQ(model.outputs().rows(), 0U);
        for (float const slope : model.gradients()) { EXPECT_EQ(slope, 0); }
        pass<float>(model, 3); // so that the second round begins with gradients that are not 0
        EXPECT_NE(model.gradient(3)[0], 0);
    }
}

TEST(Model, AWorkerWithoutRowsTakesPartInABatchOfOthers) {
    Model<float> model{lockstep::seed(1)};
    model.forward(Rows<float const, 3>{});
    EXPECT_EQ(model.loss(CrossEntropyLoss{}, labels(0), 64), 0);
    model.backward();
    for (float const slope : model.gradients()) { EXPECT_EQ(slope, 0); }
}

TEST(Model, NoticesAGlobalBatchOfNoRows) {
    Model<float> model{lockstep::seed(1)};
    auto const x = ramp<float>(2);
    model.forward(Rows<float const, 3>{x.data(), 2});
    EXPECT_THROW(model.loss(CrossEntropyLoss{}, labels(2), 0), lockstep::AssertionError);
}

template <class T>
void expect_any_batch(double tolerance) {
    Model<T> changing{lockstep::seed(1)};
    for (std::size_t const rows : {1U, 64U, 3U, 0U, 65U, 2U, 128U, 7U}) {
        Model<T> fresh{lockstep::seed(1)};
        EXPECT_EQ(pass<T>(changing, rows), pass<T>(fresh, rows)) << rows;
        EXPECT_TRUE(std::equal(changing.gradients().begin(), changing.gradients().end(), fresh.gradients().begin())) << rows;
    }
    // The gradient of a batch is the sum of its parts', whatever the split.
    constexpr std::size_t rows = 23;
    auto const x = ramp<T>(rows);
    auto const y = labels(rows);
    Model<T> whole{lockstep::seed(1)};
    double const loss = pass<T>(whole, rows);
    for (std::size_t const workers : {2U, 3U, 7U, 40U}) {
        double sum = 0;
        std::vector<T> gradients(Net::buffer_size<T>);
        for (std::size_t worker = 0; worker < workers; ++worker) {
            std::size_t const first = rows * worker / workers;
            std::size_t const count = rows * (worker + 1) / workers - first;
            changing.forward(Rows<T const, 3>{x.data() + 3 * first, count}, 0, first);
            sum += changing.loss(CrossEntropyLoss{}, std::span{y}.subspan(first, count), rows);
            changing.backward();
            for (std::size_t i = 0; i < gradients.size(); ++i) { gradients[i] += changing.gradients()[i]; }
        }
        EXPECT_NEAR(sum, loss, tolerance * loss);
        for (std::size_t i = 0; i < gradients.size(); ++i) { EXPECT_NEAR(gradients[i], whole.gradients()[i], tolerance); }
    }
}

TEST(Model, TakesBatchesOfAnySizeInAnyOrder) {
    expect_any_batch<float>(1e-6);
    expect_any_batch<double>(1e-14);
}

TEST(Model, ARerunHasTheSameBits) {
    Model<float> model{lockstep::seed(1)};
    Model<float> other{lockstep::seed(1)};
    pass<float>(model, 61);
    for (int round = 0; round < 10; ++round) {
        pass<float>(other, 61);
        ASSERT_TRUE(std::equal(model.gradients().begin(), model.gradients().end(), other.gradients().begin()));
    }
}

TEST(Model, ALabelThatIsNoOutputIsNamed) {
    Model<float> model{lockstep::seed(1)};
    auto const x = ramp<float>(3);
    model.forward(Rows<float const, 3>{x.data(), 3});
    try {
        model.loss(CrossEntropyLoss{}, std::vector<int>{0, 1, 2}, 3);
        FAIL();
    } catch (lockstep::Error const& error) {
        EXPECT_STREQ(error.what(), "row 2 of the batch has label 2, the network has 2 outputs (labels 0 to 1)");
    }
}

/// What a DataLoader gives out.
struct Batch {
    Rows<float const, 3> inputs;
    std::vector<int> targets;
    std::size_t global_rows;
    std::uint64_t step, first_row;
};

TEST(Model, TakesBatchesWhole) {
    auto const x = ramp<float>(4);
    Batch const batch{{x.data(), 4}, labels(4), 9, 3, 5};
    Model<float> model{lockstep::seed(1)};
    model.forward(batch);
    double const loss = model.loss(CrossEntropyLoss{}, batch);
    model.backward();
    Model<float> other{lockstep::seed(1)};
    other.forward(batch.inputs, 3, 5);
    EXPECT_EQ(other.loss(CrossEntropyLoss{}, batch.targets, 9), loss);
    other.backward();
    EXPECT_TRUE(std::equal(model.gradients().begin(), model.gradients().end(), other.gradients().begin()));
}

TEST(Model, StartsInTraining) {
    Model<float> model{lockstep::seed(1)};
    EXPECT_TRUE(model.training());
    model.eval();
    EXPECT_FALSE(model.training());
    model.train(false);
    EXPECT_FALSE(model.training());
    model.train();
    EXPECT_TRUE(model.training());
}

TEST(Model, CanBeMovedAndGoesOn) {
    Model<float> model{lockstep::seed(1)};
    Model<float> reference{lockstep::seed(1)};
    pass<float>(model, 5);
    pass<float>(reference, 5);
    Model<float> moved{std::move(model)};
    EXPECT_EQ(moved.parameter_hash(), reference.parameter_hash());
    EXPECT_EQ(pass<float>(moved, 9), pass<float>(reference, 9));
}

TEST(Model, SharesParametersWithAnother) {
    Model<float> first{lockstep::seed(1)};
    Model<float> second{lockstep::seed(2)};
    EXPECT_NE(first.parameter_hash(), second.parameter_hash());
    second.share_parameters(first.parameter_buffer());
    first.shared_parameters()[0] = 3;
    EXPECT_EQ(std::as_const(second).parameters()[0], 3);
    EXPECT_EQ(pass(first, 4), pass(second, 4));
    first.parameters()[0] = 5; // takes a copy first
    EXPECT_EQ(std::as_const(second).parameters()[0], 3);
    EXPECT_EQ(std::as_const(first).parameters()[0], 5);
    first.share_parameters(second.parameter_buffer());
    first.load_state_dict(Model<float>{lockstep::seed(3)}.state_dict());
    EXPECT_EQ(std::as_const(second).parameters()[0], 3);
    EXPECT_NE(first.gradients().data(), second.gradients().data());
    EXPECT_THROW(first.share_parameters(std::make_shared<lockstep::AlignedBuffer<float>>(3U)), lockstep::ArgumentError);
    EXPECT_THROW(first.share_parameters(nullptr), lockstep::ArgumentError);
}

TEST(Model, RefusesAnotherNumberOfTargetsThanRows) {
    Model<float> model{lockstep::seed(1)};
    auto const x = ramp<float>(10);
    model.forward(Rows<float const, 3>{x.data(), 10});
    for (std::size_t const count : {0U, 3U, 11U}) {
        try {
            static_cast<void>(model.loss(CrossEntropyLoss{}, labels(count), 10));
            ADD_FAILURE() << "no error";
        } catch (lockstep::ArgumentError const& error) {
            EXPECT_EQ(error.what(),
                      "loss: expected 10 targets, one per row of the last forward pass, got " + std::to_string(count));
        }
    }
}

} // namespace model_test
