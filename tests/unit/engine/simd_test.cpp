// labels: tsan
#include <lockstep/engine/simd.hpp>

#include "lockstep/comm/thread.hpp"
#include "lockstep/data/data_loader.hpp"
#include "lockstep/data/synthetic.hpp"
#include "lockstep/engine/cpu.hpp"
#include "lockstep/nn/gradient_check.hpp"
#include "lockstep/nn/layers.hpp"
#include "lockstep/nn/losses.hpp"
#include "lockstep/nn/model.hpp"
#include "lockstep/optim/sgd.hpp"
#include "lockstep/train/trainer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using namespace lockstep;

/// Runs a test on every instruction set of this processor.
template <class Body>
void on_all_sets(Body const& body) {
    auto const before = SimdEngine::instruction_set();
    for (auto const set : {InstructionSet::portable, InstructionSet::neon, InstructionSet::avx2, InstructionSet::avx512}) {
        if (!supports(set)) { continue; }
        SCOPED_TRACE(name_of(set));
        SimdEngine::use(set);
        body();
    }
    SimdEngine::use(before);
}

/// y = x * weight, a user's layer with parameters of its own.
struct Scale {
    template <std::size_t In>
    static constexpr std::array<TensorSpec, 1> tensors() {
        return {TensorSpec{"weight", {In}, Initializer::constant(0.75)}};
    }
    static void forward(auto const& pass) {
        for (std::size_t r = 0; r < pass.x.rows(); ++r) {
            for (std::size_t i = 0; i < pass.x.width; ++i) { pass.y[r][i] = pass.x[r][i] * pass.parameters[0][i]; }
        }
    }
    static void backward(auto const& pass) {
        for (auto& slope : pass.gradients[0]) { slope = 0; }
        for (std::size_t r = 0; r < pass.x.rows(); ++r) {
            for (std::size_t i = 0; i < pass.x.width; ++i) {
                pass.gradients[0][i] += pass.dy[r][i] * pass.x[r][i];
                pass.dx[r][i] = pass.dy[r][i] * pass.parameters[0][i];
            }
        }
    }
};

/// y = x + x^3, whose derivative needs the input.
struct Cubic {
    template <class T>
    static constexpr T forward(T x) {
        T const cube = x * x * x; // a statement of its own: clang would contract it
        return x + cube;
    }
    template <class T>
    static constexpr T backward(T x, T /*y*/, T dy) {
        T const square = 3 * x * x;
        return dy * (1 + square);
    }
};

using EveryLayer = Sequential<Flatten, Linear<5, 17>, Tanh, Linear<17, 33>, Cubic, Scale, Dropout<>, Scale, Linear<33, 16>,
                              Sigmoid, Linear<16, 7>, LogSoftmax>;
using BeginsWithRows = Sequential<Scale, Dropout<>, Linear<4, 6>, Softmax, Linear<6, 3>>;
using RowsOnly = Sequential<Linear<3, 3>, Scale, Scale>;
using Small = Sequential<Linear<1, 1>, ReLU, Linear<1, 2>>;

template <class Net, class LossType>
void expect_gradients(std::size_t rows, bool training) {
    auto const result = gradient_check<Net, LossType, SimdEngine>({}, {.rows = rows, .training = training});
    EXPECT_TRUE(result.passed(1e-7)) << Net::description() << ", " << rows << " rows: " << result.worst_tensor << "["
                                     << result.worst_index << "]: " << result.analytic << " against " << result.numeric;
    EXPECT_EQ(result.checked, Net::parameter_count);
}

TEST(SimdEngine, GradientsAgreeWithDifferences) {
    auto const check = [](std::size_t rows, bool training) {
        expect_gradients<EveryLayer, NLLLoss>(rows, training);
        expect_gradients<BeginsWithRows, CrossEntropyLoss>(rows, training);
        expect_gradients<RowsOnly, MSELoss>(rows, training);
    };
    on_all_sets([&] { check(19, true); });
    for (std::size_t const rows : {1U, 16U, 35U}) { check(rows, false); }
}

/// Parameters after some steps of training.
template <class Net, class EngineType, class T>
std::vector<T> trained(int workers, DataLoaderOptions const& options, int epochs = 1) {
    auto const data = synthetic_classification<Net::inputs, Net::outputs>(203, seed(3));
    std::vector<T> result;
    launch<ThreadCommunicator>({.num_workers = workers}, [&](Communicator auto& comm) {
        DataLoader train{data, comm, options};
        Trainer trainer{Model<Net, EngineType, T>{seed(1)}, CrossEntropyLoss{}, SGD{.lr = 0.05, .momentum = 0.9}, comm};
        trainer.fit(train, {.epochs = epochs});
        if (comm.rank() == 0) {
            auto const parameters = std::as_const(trainer.model()).parameters();
            result.assign(parameters.begin(), parameters.end());
        }
    });
    return result;
}

template <class Net, class T>
void expect_as_cpu_engine(double tolerance) {
    DataLoaderOptions const options{.batch_size = 21, .seed = 4}; // 10 steps
    auto const expected = trained<Net, CpuEngine, T>(1, options);
    auto const got = trained<Net, SimdEngine, T>(2, options);
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
        ASSERT_NEAR(got[i], expected[i], tolerance * std::max(1.0, std::abs(static_cast<double>(expected[i]))))
            << Net::description() << ": parameter " << i;
    }
}

using Wide = Sequential<Linear<10, 785>, ReLU, Linear<785, 300>, Tanh, Linear<300, 10>>;

TEST(SimdEngine, TrainsAsCpuEngineDoes) {
    on_all_sets([] {
        expect_as_cpu_engine<EveryLayer, float>(1e-5);
        expect_as_cpu_engine<EveryLayer, double>(1e-12);
        expect_as_cpu_engine<BeginsWithRows, float>(1e-5);
        expect_as_cpu_engine<BeginsWithRows, double>(1e-12);
        expect_as_cpu_engine<Wide, float>(1e-5);
        expect_as_cpu_engine<Wide, double>(1e-12);
        expect_as_cpu_engine<Small, double>(1e-12);
    });
}

/// The same bits from every instruction set and every number of workers, for batches and tails of all kinds.
template <class Net, class T>
void expect_one_result(std::vector<int> const& workers, DataLoaderOptions const& options) {
    std::vector<T> first;
    on_all_sets([&] {
        for (int const count : workers) {
            auto const result = trained<Net, SimdEngine, T>(count, options);
            if (first.empty()) { first = result; }
            EXPECT_EQ(result, first) << Net::description() << ", " << count << " workers, batch " << options.batch_size;
        }
    });
    for (T const parameter : first) { ASSERT_TRUE(std::isfinite(parameter)); }
}

TEST(SimdEngine, BitsDependNeitherOnTheWorkersNorOnTheInstructionSet) {
    for (std::size_t const batch_size : {64U, 61U, 203U}) {
        expect_one_result<EveryLayer, float>({1, 2, 3, 4}, {.batch_size = batch_size, .seed = 1});
        expect_one_result<EveryLayer, float>({1, 2, 3, 5, 7, 8}, {.batch_size = batch_size, .seed = 1, .shard_rows = 4});
        expect_one_result<EveryLayer, double>({1, 3, 4}, {.batch_size = batch_size, .seed = 1});
    }
    expect_one_result<EveryLayer, double>({1, 6, 9}, {.batch_size = 37, .seed = 1, .shard_rows = 3});
    expect_one_result<Wide, float>({1, 2, 3}, {.batch_size = 64, .seed = 1});
    expect_one_result<BeginsWithRows, float>({1, 2, 5}, {.batch_size = 50, .seed = 1, .shard_rows = 1000});
}

TEST(SimdEngine, PartsOfABatchThatAreNoWholeShardsAreSummedByThemselves) {
    Model<Small, SimdEngine> model{seed(1)};
    std::vector<float> const x(20, 0.5F);
    std::vector<int> const labels(20, 1);
    struct Part {
        Rows<float const, 1> inputs;
        std::uint64_t step;
        std::size_t first_row, global_rows, shard_rows;
    };
    for (auto const& [first_row, leaves] :
         {std::pair{std::size_t{0}, std::size_t{3}}, std::pair{std::size_t{3}, std::size_t{0}}}) {
        model.forward(Part{{x.data(), 16}, 0, first_row, 40, 16});
        model.loss(CrossEntropyLoss{}, std::span{labels}.first(16), 40);
        model.backward();
        EXPECT_EQ(model.gradients().leaves, leaves);
        EXPECT_EQ(model.gradients().sums(), 1U);
    }
}

TEST(SimdEngine, TheSetCanBeChosen) {
    auto const before = SimdEngine::instruction_set();
    SimdEngine::use(InstructionSet::portable);
    EXPECT_EQ(SimdEngine::description(), "portable");
    SimdEngine::use(before);
    for (auto const set : {InstructionSet::neon, InstructionSet::avx512, InstructionSet::avx2}) {
        if (!supports(set)) { EXPECT_THROW(SimdEngine::use(set), ArgumentError); }
    }
}

} // namespace
