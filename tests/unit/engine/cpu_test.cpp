#include <lockstep/engine/cpu.hpp>

#include <lockstep/core/error.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// The engine without a network: operations written down by hand.
namespace {

using lockstep::AlignedBuffer;
using lockstep::CpuEngine;
using lockstep::ElementwiseOperation;
using lockstep::Identity;
using lockstep::LinearOperation;
using lockstep::OperationList;
using lockstep::PassContext;
using lockstep::Rows;

struct Double {
    template <class T>
    static constexpr T forward(T x) {
        return 2 * x;
    }
    template <class T>
    static constexpr T backward(T /*y*/, T dy) {
        return 2 * dy;
    }
};
struct Square {
    template <class T>
    static constexpr T forward(T x) {
        return x * x;
    }
    template <class T>
    static constexpr T backward(T x, T /*y*/, T dy) {
        return 2 * x * dy;
    }
};

// x: 2 -> Double(W x + b): 1 -> Square
using Operations = OperationList<LinearOperation<2, 1, Double, 0, 16>, ElementwiseOperation<Square, 1>>;

template <class T>
struct SmallNetwork {
    typename CpuEngine::Workspace<Operations, T> workspace;
    AlignedBuffer<T> parameters{32};
    AlignedBuffer<T> gradients{32};

    SmallNetwork() {
        parameters.data()[0] = 3;
        parameters.data()[1] = -1;
        parameters.data()[16] = 2;
        for (T& value : gradients.span()) { value = 99; }
    }
    void forward(std::vector<T> const& x) {
        workspace.load(Rows<T const, 2>{x.data(), x.size() / 2});
        workspace.forward(parameters.data(), PassContext{});
    }
    void backward(std::vector<T> const& dy) {
        auto const slopes = workspace.output_gradient();
        for (std::size_t i = 0; i < dy.size(); ++i) { slopes[i][0] = dy[i]; }
        workspace.backward(parameters.data(), lockstep::PartialSums<T>{gradients.span(), gradients.size()}, PassContext{});
    }
};

template <class T>
void expect_small_network() {
    SmallNetwork<T> run;
    run.forward({1, 1, 0, 2, -1, 0}); // W x + b: 4, 0, -1
    auto const y = run.workspace.outputs();
    ASSERT_EQ(y.rows(), 3U);
    EXPECT_EQ(y[0][0], 64);
    EXPECT_EQ(y[1][0], 0);
    EXPECT_EQ(y[2][0], 4);
    run.backward({1, 5, T(0.5)});
    // dy by the line before Square: 2 * 8, 0, 2 * -2 / 2; by W x + b twice that: 32, 0, -4
    EXPECT_EQ(run.gradients.data()[0], 32 + 4);
    EXPECT_EQ(run.gradients.data()[1], 32);
    EXPECT_EQ(run.gradients.data()[16], 28);
    EXPECT_EQ(run.gradients.data()[2], 99) << "gaps are left as they are";
    EXPECT_EQ(run.gradients.data()[17], 99);
}

TEST(CpuEngine, RunsForwardAndBackward) {
    expect_small_network<float>();
    expect_small_network<double>();
}

TEST(CpuEngine, OfNoRowsHasZeroGradients) {
    SmallNetwork<float> run;
    for (int round = 0; round < 2; ++round) {
        run.forward({});
        EXPECT_EQ(run.workspace.rows(), 0U);
        EXPECT_EQ(run.workspace.outputs().rows(), 0U);
        run.backward({});
        EXPECT_EQ(run.gradients.data()[0], 0);
        EXPECT_EQ(run.gradients.data()[1], 0);
        EXPECT_EQ(run.gradients.data()[16], 0);
        run.forward({1, 1}); // and once more, with memory that was used
        run.backward({1});
        EXPECT_NE(run.gradients.data()[16], 0);
    }
}

TEST(CpuEngine, BatchesGrowAndShrink) {
    SmallNetwork<float> run;
    for (std::size_t const rows : {1U, 5U, 2U, 40U, 3U, 0U, 41U}) {
        std::vector<float> x(2 * rows);
        for (std::size_t i = 0; i < x.size(); ++i) { x[i] = static_cast<float>(i % 5); }
        run.forward(x);
        ASSERT_EQ(run.workspace.outputs().rows(), rows);
        float bias = 0;
        for (std::size_t r = 0; r < rows; ++r) {
            float const line = 2 * (3 * x[2 * r] - x[2 * r + 1] + 2);
            EXPECT_EQ(run.workspace.outputs()[r][0], line * line) << rows;
            bias += 4 * line;
        }
        run.backward(std::vector<float>(rows, 1));
        EXPECT_EQ(run.gradients.data()[16], bias) << rows;
    }
}

TEST(CpuEngine, LoadsAndConvertsOtherScalars) {
    SmallNetwork<float> run;
    std::array<std::uint8_t, 2> const x{255, 1};
    run.workspace.load(Rows<std::uint8_t const, 2>{x.data(), 1});
    run.workspace.forward(run.parameters.data(), PassContext{});
    EXPECT_EQ(run.workspace.outputs()[0][0], 4.0F * (765 - 1 + 2) * (765 - 1 + 2));
}

TEST(CpuEngine, StartsItsActivationsAligned) {
    SmallNetwork<float> run;
    for (std::size_t const rows : {1U, 7U, 33U}) {
        run.forward(std::vector<float>(2 * rows));
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(run.workspace.outputs().data()) % 64, 0U);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(run.workspace.output_gradient().data()) % 64, 0U);
    }
}

TEST(CpuEngine, SetsAndRefusesThreads) {
    EXPECT_THROW(CpuEngine::set_num_threads(0), lockstep::ArgumentError);
    EXPECT_THROW(CpuEngine::set_num_threads(-3), lockstep::ArgumentError);
    CpuEngine::set_num_threads(2);
    SmallNetwork<float> const run; // the default of 1 does not undo it
    auto const info = lockstep::blas::info();
    if (info.threads > 0 && info.threading != "sequential") { EXPECT_EQ(info.threads, 2); }
    CpuEngine::set_num_threads(1);
}

TEST(CpuEngine, IsNamed) {
    EXPECT_EQ(std::string{CpuEngine::name}, "cpu");
    EXPECT_EQ(CpuEngine::description(), lockstep::blas::info().description());
}

} // namespace
