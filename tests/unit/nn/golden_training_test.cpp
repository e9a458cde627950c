#include <lockstep/nn/model.hpp>

#include "golden/golden.hpp"

#include <lockstep/engine/cpu.hpp>
#include <lockstep/engine/simd.hpp>
#include <lockstep/nn/layers.hpp>
#include <lockstep/optim/sgd.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace golden_training_test {

namespace golden = lockstep::golden;
using lockstep::CpuEngine;
using lockstep::Linear;
using lockstep::Model;
using lockstep::Rows;
using lockstep::SimdEngine;

template <class... Last>
using NetWith = lockstep::Sequential<Linear<5, 7>, lockstep::ReLU, Linear<7, 6>, lockstep::Tanh, Linear<6, 4>, lockstep::Sigmoid,
                                     Linear<4, 3>, Last...>;

template <class T>
void expect_near(T got, double expected, std::size_t index) {
    double const tolerance = std::is_same_v<T, double> ? 1e-10 : 1e-5;
    EXPECT_NEAR(got, expected, tolerance * std::max(1.0, std::abs(expected))) << "index " << index;
}

/// The initial parameters under PyTorch's names.
template <class Net, class Engine, class T>
Model<Net, Engine, T> start() {
    Model<Net, Engine, T> model{lockstep::seed(99)};
    auto state = model.state_dict();
    std::size_t at = 0;
    for (auto const* const name : {"0.weight", "0.bias", "2.weight", "2.bias", "4.weight", "4.bias", "6.weight", "6.bias"}) {
        for (T& value : state.at(name).values) { value = static_cast<T>(golden::initial_parameters.at(at++)); }
    }
    EXPECT_EQ(at, golden::parameter_count);
    model.load_state_dict(state);
    return model;
}

template <class T, std::size_t Size>
std::vector<T> converted(std::array<double, Size> const& values) {
    std::vector<T> result(Size);
    std::transform(values.begin(), values.end(), result.begin(), [](double value) { return static_cast<T>(value); });
    return result;
}

/// Forward, loss, backward over one batch; the mean loss.
template <class Loss, class Net, class Engine, class T>
double pass(Model<Net, Engine, T>& model, golden::Batch batch) {
    static auto const inputs = converted<T>(golden::inputs);
    static auto const targets = converted<T>(golden::targets);
    std::size_t const rows = batch.last - batch.first;
    model.forward(Rows<T const, 5>{inputs.data() + 5 * batch.first, rows});
    double sum = 0;
    if constexpr (Loss::kind == lockstep::TargetKind::labels) {
        sum = model.loss(Loss{}, std::span{golden::labels}.subspan(batch.first, rows), rows);
    } else {
        sum = model.loss(Loss{}, Rows<T const, 3>{targets.data() + 3 * batch.first, rows}, rows);
    }
    model.backward();
    return sum / static_cast<double>(rows);
}

template <class Loss, class Net, class Engine, class T>
void expect_gradients(std::string_view name) {
    auto model = start<Net, Engine, T>();
    pass<Loss>(model, golden::batches[0]);
    std::size_t found = 0;
    for (auto const& expected : golden::first_gradients<T>()) {
        if (expected.loss != name) { continue; }
        ++found;
        std::size_t at = 0;
        for (std::size_t tensor = 0; tensor < Net::tensor_count; ++tensor) {
            for (T const slope : model.gradient(tensor)) {
                expect_near(slope, expected.gradients.at(at), at);
                ++at;
            }
        }
        EXPECT_EQ(at, golden::parameter_count);
    }
    EXPECT_EQ(found, 1U);
}

template <class Loss, class Net, class Engine, class T>
void expect_trainings(std::string_view name) {
    std::size_t found = 0;
    for (auto const& expected : golden::cases<T>()) {
        if (expected.loss != name) { continue; }
        ++found;
        SCOPED_TRACE(expected.optimizer);
        auto model = start<Net, Engine, T>();
        lockstep::SGD const sgd{.lr = expected.lr,
                                .momentum = expected.momentum,
                                .dampening = expected.dampening,
                                .weight_decay = expected.weight_decay,
                                .nesterov = expected.nesterov};
        auto state = sgd.init<T>(model.parameters().size());
        for (std::size_t step = 0; step < golden::steps; ++step) {
            expect_near(static_cast<T>(pass<Loss>(model, golden::batches[step % golden::batches.size()])), expected.losses[step],
                        step);
            sgd.step(model.parameters(), std::span<T const>{model.gradients()}, state);
        }
        std::size_t at = 0;
        for (auto const& tensor : model.state_dict().tensors) {
            for (T const value : tensor.values) {
                expect_near(value, expected.parameters.at(at), at);
                ++at;
            }
        }
    }
    EXPECT_EQ(found, 6U) << "one for each optimizer";
}

template <class Loss, class Net, class Engine, class T>
void expect_golden_on(std::string_view name) {
    SCOPED_TRACE(std::string{Engine::name} + (std::is_same_v<T, double> ? ", double" : ", float"));
    expect_gradients<Loss, Net, Engine, T>(name);
    expect_trainings<Loss, Net, Engine, T>(name);
}

template <class Loss, class Net>
void expect_golden(std::string_view name) {
    expect_golden_on<Loss, Net, CpuEngine, double>(name);
    expect_golden_on<Loss, Net, CpuEngine, float>(name);
    expect_golden_on<Loss, Net, SimdEngine, double>(name);
    expect_golden_on<Loss, Net, SimdEngine, float>(name);
}

TEST(GoldenTraining, CrossEntropyLoss) { expect_golden<lockstep::CrossEntropyLoss, NetWith<>>("CrossEntropyLoss"); }

TEST(GoldenTraining, LogSoftmaxAndCrossEntropyLoss) {
    expect_golden<lockstep::CrossEntropyLoss, NetWith<lockstep::LogSoftmax>>("LogSoftmax, CrossEntropyLoss");
}

TEST(GoldenTraining, LogSoftmaxAndNLLLoss) {
    expect_golden<lockstep::NLLLoss, NetWith<lockstep::LogSoftmax>>("LogSoftmax, NLLLoss");
}

TEST(GoldenTraining, MSELoss) { expect_golden<lockstep::MSELoss, NetWith<>>("MSELoss"); }

} // namespace golden_training_test
