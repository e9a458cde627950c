#include <lockstep/nn/model.hpp>

#include <lockstep/engine/cpu.hpp>
#include <lockstep/nn/layers.hpp>
#include <lockstep/optim/sgd.hpp>

#include "special/allocations.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <vector>

namespace {

using lockstep::Linear;
using lockstep::Rows;
using lockstep::special::allocations;
using Net = lockstep::Sequential<lockstep::Dropout<>, Linear<20, 33>, lockstep::ReLU, Linear<33, 7>, lockstep::Tanh,
                                 lockstep::Softmax, Linear<7, 3>, lockstep::LogSoftmax>;

template <class T>
void expect_no_allocations(bool reserve) {
    lockstep::Model<Net, lockstep::CpuEngine, T> model{lockstep::seed(1)};
    lockstep::SGD const sgd{.lr = 0.1, .momentum = 0.9};
    auto state = sgd.init<T>(model.parameters().size());
    std::vector<T> const x(20 * 64, T(0.5));
    std::vector<int> const labels(64, 1);
    auto const step = [&](std::size_t rows) {
        model.forward(Rows<T const, 20>{x.data(), rows});
        static_cast<void>(model.loss(lockstep::NLLLoss{}, std::span{labels}.first(rows), 64));
        model.backward();
        sgd.step(model.parameters(), std::span<T const>{model.gradients()}, state);
    };
    if (reserve) {
        model.reserve(64);
    } else {
        step(64);
    }
    long const before = allocations();
    for (int i = 0; i < 100; ++i) { step(static_cast<std::size_t>(64 - i % 65)); }
    EXPECT_EQ(allocations() - before, 0) << (reserve ? "after reserve" : "after the first step");
}

TEST(ModelAllocation, ReserveTakesAllMemory) {
    long const start = allocations();
    lockstep::special::allocate_once();
    ASSERT_GT(allocations(), start) << "the counter does not count";
    for (bool const reserve : {false, true}) { // the first also lets BLAS take its own
        expect_no_allocations<float>(reserve);
        expect_no_allocations<double>(reserve);
    }
}

} // namespace
