#include <lockstep/nn/gradient_check.hpp>

#include <lockstep/engine/cpu.hpp>
#include <lockstep/engine/simd.hpp>
#include <lockstep/nn/layers.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>

/// Layers and losses as a user would write them, with an error planted where `Sign` is -1.
namespace {

using lockstep::gradient_check;
using lockstep::Initializer;
using lockstep::Linear;
using lockstep::MSELoss;
using lockstep::Rows;
using lockstep::Sequential;
using lockstep::Tanh;
using lockstep::TensorSpec;

/// y = exp(x) - 1: the derivative is y + 1.
template <int Sign>
struct Expm1 {
    template <class T>
    static T forward(T x) {
        return std::expm1(x);
    }
    template <class T>
    static constexpr T backward(T y, T dy) {
        return Sign * dy * (y + 1);
    }
};

/// y = x^3: the derivative needs x.
template <int Sign>
struct Cube {
    template <class T>
    static constexpr T forward(T x) {
        return x * x * x;
    }
    template <class T>
    static constexpr T backward(T x, T /*y*/, T dy) {
        return Sign * 3 * x * x * dy;
    }
};

/// y[i] = scale[i] * (x[2i] + x[2i+1]) + shift: parameters of its own, and half the width.
template <std::size_t In, int InputSign, int ScaleSign, int ShiftSign>
struct ScaledPairs {
    static constexpr std::size_t inputs = In;
    static constexpr std::size_t outputs = In / 2;

    template <std::size_t>
    static constexpr std::array<TensorSpec, 2> tensors() {
        return {TensorSpec{"scale", {outputs}, Initializer::uniform_fan_in(2)},
                TensorSpec{"shift", {1}, Initializer::constant(0.5)}};
    }
    static void forward(auto const& pass) {
        for (std::size_t r = 0; r < pass.x.rows(); ++r) {
            for (std::size_t i = 0; i < outputs; ++i) {
                pass.y[r][i] = pass.parameters[0][i] * (pass.x[r][2 * i] + pass.x[r][2 * i + 1]) + pass.parameters[1][0];
            }
        }
    }
    static void backward(auto const& pass) {
        for (auto& slope : pass.gradients[0]) { slope = 0; }
        pass.gradients[1][0] = 0;
        for (std::size_t r = 0; r < pass.x.rows(); ++r) {
            for (std::size_t i = 0; i < outputs; ++i) {
                auto const dy = pass.dy[r][i];
                pass.gradients[0][i] += ScaleSign * dy * (pass.x[r][2 * i] + pass.x[r][2 * i + 1]);
                pass.gradients[1][0] += ShiftSign * dy;
                pass.dx[r][2 * i] = pass.dx[r][2 * i + 1] = InputSign * dy * pass.parameters[0][i];
            }
        }
    }
};

/// The mean over the outputs of (x - target)^4.
template <int Sign>
struct QuarticLoss {
    static constexpr lockstep::TargetKind kind = lockstep::TargetKind::vectors;
    double weight = 1; // a loss may have settings
    template <class T, std::size_t Out>
    [[nodiscard]] double value(Rows<T const, Out> outputs, auto const& targets) const {
        double total = 0;
        for (std::size_t r = 0; r < outputs.rows(); ++r) {
            for (std::size_t i = 0; i < Out; ++i) { total += std::pow(static_cast<double>(outputs[r][i] - targets[r][i]), 4); }
        }
        return weight * total / static_cast<double>(Out);
    }
    template <class T, std::size_t Out>
    double value_and_gradient(Rows<T const, Out> outputs, auto const& targets, T scale, Rows<T, Out> gradient) const {
        scale *= static_cast<T>(weight);
        for (std::size_t r = 0; r < outputs.rows(); ++r) {
            for (std::size_t i = 0; i < Out; ++i) {
                T const error = outputs[r][i] - static_cast<T>(targets[r][i]);
                gradient[r][i] = Sign * 4 * scale / static_cast<T>(Out) * error * error * error;
            }
        }
        return value(outputs, targets);
    }
};

/// A layer of a user's that happens to have Linear's member names is still his own.
struct LooksLikeLinear {
    [[maybe_unused]] static constexpr std::size_t in_features = 4;
    [[maybe_unused]] static constexpr std::size_t out_features = 4;
    static void forward(auto const& pass) {
        for (std::size_t i = 0; i < pass.x.rows() * 4; ++i) { pass.y.data()[i] = 3 * pass.x.data()[i]; }
    }
    static void backward(auto const& pass) {
        for (std::size_t i = 0; i < pass.x.rows() * 4; ++i) { pass.dx.data()[i] = 3 * pass.dy.data()[i]; }
    }
};
static_assert(!lockstep::LinearLayer<LooksLikeLinear> && lockstep::RowLayer<LooksLikeLinear, 4>);

template <class Net, class Loss, class Engine>
std::string verdict_on() {
    auto const result = gradient_check<Net, Loss, Engine>();
    EXPECT_EQ(result.checked, Net::parameter_count);
    return result.passed(1e-7) ? "passed" : result.worst_tensor;
}

/// What the check says with both engines: "passed" or the name of the worst tensor.
template <class Net, class Loss = MSELoss>
std::string verdict() {
    auto const simd = verdict_on<Net, Loss, lockstep::SimdEngine>();
    EXPECT_EQ((verdict_on<Net, Loss, lockstep::CpuEngine>()), simd);
    return simd;
}

template <class Layer, std::size_t In = 4, std::size_t Out = 4>
using Between = Sequential<Linear<3, In>, Layer, Linear<Out, 2>>;

TEST(GradientCheck, ElementwiseLayersOfUsersPass) {
    EXPECT_EQ(verdict<Between<Expm1<1>>>(), "passed");
    EXPECT_EQ(verdict<Between<Cube<1>>>(), "passed");
    EXPECT_EQ((verdict<Sequential<Linear<3, 4>, Tanh, Cube<1>, Expm1<1>, Linear<4, 2>, Cube<1>>>()), "passed");
}

TEST(GradientCheck, FindsASignErrorInAnElementwiseLayer) {
    // Its own input's gradient is wrong, which the tensors before it show and those after it do not.
    EXPECT_EQ(verdict<Between<Expm1<-1>>>().substr(0, 2), "0.");
    EXPECT_EQ(verdict<Between<Cube<-1>>>().substr(0, 2), "0.");
}

TEST(GradientCheck, RowLayersOfUsersPass) {
    EXPECT_EQ((verdict<Between<ScaledPairs<6, 1, 1, 1>, 6, 3>>()), "passed");
    EXPECT_EQ((verdict<Sequential<ScaledPairs<6, 1, 1, 1>, Linear<3, 2>>>()), "passed");
    EXPECT_EQ((verdict<Sequential<Linear<3, 8>, ScaledPairs<8, 1, 1, 1>, Tanh, ScaledPairs<4, 1, 1, 1>>>()), "passed");
}

TEST(GradientCheck, FindsASignErrorInARowLayer) {
    EXPECT_EQ((verdict<Between<ScaledPairs<6, 1, -1, 1>, 6, 3>>()), "1.scale");
    EXPECT_EQ((verdict<Between<ScaledPairs<6, 1, 1, -1>, 6, 3>>()), "1.shift");
    EXPECT_EQ((verdict<Between<ScaledPairs<6, -1, 1, 1>, 6, 3>>().substr(0, 2)), "0.");
}

TEST(GradientCheck, LossesOfUsersPassAndFailLikewise) {
    EXPECT_EQ((verdict<Sequential<Linear<3, 2>>, QuarticLoss<1>>()), "passed");
    EXPECT_EQ((verdict<Sequential<Linear<3, 2>>, QuarticLoss<-1>>().substr(0, 2)), "0.");
}

/// What reading memory that nobody wrote can end in.
struct NaNs {
    template <class T>
    static constexpr T forward(T x) {
        return x;
    }
    template <class T>
    static T backward(T /*y*/, T /*dy*/) {
        return static_cast<T>(std::nan(""));
    }
};

TEST(GradientCheck, NaNIsTheWorst) {
    auto const result = gradient_check<Between<NaNs>, MSELoss>();
    EXPECT_FALSE(result.passed(1e300));
    EXPECT_EQ(result.worst_tensor.substr(0, 2), "0.");
}

TEST(GradientCheck, NamesTheScalarAndBothDerivatives) {
    auto const result = gradient_check<Between<ScaledPairs<6, 1, 1, -1>, 6, 3>, MSELoss>();
    EXPECT_EQ(result.worst_index, 0U);
    EXPECT_NEAR(result.analytic, -result.numeric, 1e-6 * std::abs(result.numeric));
    EXPECT_NEAR(result.worst_error, 2 * std::abs(result.analytic) / std::max(1.0, std::abs(result.analytic)), 1e-6);
}

} // namespace
