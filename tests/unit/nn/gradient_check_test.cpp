#include <lockstep/nn/gradient_check.hpp>

#include <lockstep/engine/cpu.hpp>
#include <lockstep/engine/simd.hpp>
#include <lockstep/nn/layers.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <ratio>
#include <type_traits>

namespace {

using lockstep::CrossEntropyLoss;
using lockstep::Dropout;
using lockstep::Flatten;
using lockstep::gradient_check;
using lockstep::Linear;
using lockstep::LogSoftmax;
using lockstep::MSELoss;
using lockstep::NLLLoss;
using lockstep::ReLU;
using lockstep::Sequential;
using lockstep::Sigmoid;
using lockstep::Softmax;
using lockstep::Tanh;

template <class Net, class Loss, class Engine>
void expect_passes_on(lockstep::GradientCheckOptions const& options) {
    SCOPED_TRACE(Engine::name);
    auto const result = gradient_check<Net, Loss, Engine>({}, options);
    EXPECT_TRUE(result.passed(1e-7)) << Net::description() << ": " << result.worst_tensor << "[" << result.worst_index
                                     << "]: " << result.analytic << " against " << result.numeric;
    EXPECT_EQ(result.checked, Net::parameter_count);
    EXPECT_FALSE(result.worst_tensor.empty() && result.worst_error > 0);
}

template <class Net, class Loss>
void expect_passes(lockstep::GradientCheckOptions const& options = {}) {
    expect_passes_on<Net, Loss, lockstep::CpuEngine>(options);
    expect_passes_on<Net, Loss, lockstep::SimdEngine>(options);
}

/// Far from ReLU's kink for inputs within [-1, 1].
struct Lift {
    template <class T>
    static constexpr T forward(T x) {
        return x + (x < 0 ? T{-3} : T{3});
    }
    template <class T>
    static constexpr T backward(T /*y*/, T dy) {
        return dy;
    }
};

TEST(GradientCheck, EveryLayerPasses) {
    expect_passes<Sequential<Linear<4, 5>, Tanh, Linear<5, 6>, Sigmoid, Linear<6, 5>, Lift, ReLU, Linear<5, 3>>, MSELoss>();
    expect_passes<Sequential<Flatten, Linear<4, 5>, LogSoftmax, Flatten, Linear<5, 4>, Softmax, Linear<4, 3>, Flatten>,
                  MSELoss>();
}

TEST(GradientCheck, EveryLossPasses) {
    expect_passes<Sequential<Linear<4, 3>>, CrossEntropyLoss>();
    expect_passes<Sequential<Linear<4, 3>, LogSoftmax>, CrossEntropyLoss>();
    expect_passes<Sequential<Linear<4, 3>, LogSoftmax>, NLLLoss>({.rows = 1, .seed = 7});
    expect_passes<Sequential<Linear<4, 3>, Softmax>, MSELoss>();
}

TEST(GradientCheck, DropoutPassesInTrainingAtEveryPlace) {
    lockstep::GradientCheckOptions const options{.rows = 6, .training = true};
    using Quarter = Dropout<std::ratio<1, 4>>;
    expect_passes<Sequential<Quarter, Linear<4, 5>, Quarter, Linear<5, 3>, Quarter>, MSELoss>(options);
    expect_passes<Sequential<Quarter, Linear<4, 5>, Quarter, Linear<5, 3>, Quarter>, MSELoss>({.rows = 6});
}

TEST(GradientCheck, LinearOfEverySizePasses) {
    expect_passes<Sequential<Linear<1, 2>, Tanh, Linear<2, 65>, Tanh, Linear<65, 7>, Tanh, Linear<7, 1>, Tanh, Linear<1, 64>,
                             Tanh, Linear<64, 3>>,
                  MSELoss>({.rows = 3});
}

TEST(GradientCheck, OfNothingDoesNotPass) { EXPECT_FALSE(lockstep::GradientCheckResult{}.passed()); }

} // namespace
