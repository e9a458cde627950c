// What is an optimizer and what is not.
#include <lockstep/optim/optimizer.hpp>
#include <lockstep/optim/sgd.hpp>

#include <cstddef>
#include <span>
#include <utility>

namespace {

using lockstep::ElementwiseOptimizer;
using lockstep::Optimizer;

static_assert(Optimizer<lockstep::SGD> && Optimizer<lockstep::SGD, double> && ElementwiseOptimizer<lockstep::SGD>);

/// One step needs all gradients at once, so it cannot be made in pieces.
struct NormalizedSGD {
    template <class T>
    [[nodiscard]] int init(std::size_t /*size*/) const;
    template <class T>
    void step(std::span<T> parameters, std::span<T const> gradients, int& state) const;
};
static_assert(Optimizer<NormalizedSGD> && !ElementwiseOptimizer<NormalizedSGD>);

struct OnlyDouble {
    template <class T>
    [[nodiscard]] int init(std::size_t /*size*/) const;
    void step(std::span<double> parameters, std::span<double const> gradients, int& state) const;
};
static_assert(Optimizer<OnlyDouble, double> && !Optimizer<OnlyDouble, float>);

struct WithoutInit {
    template <class T>
    void step(std::span<T> parameters, std::span<T const> gradients, int& state) const;
};
struct WithoutStep {
    template <class T>
    [[nodiscard]] int init(std::size_t size) const;
};
struct StepIsNotConst {
    template <class T>
    [[nodiscard]] int init(std::size_t size) const;
    template <class T>
    void step(std::span<T> parameters, std::span<T const> gradients, int& state);
};
struct Immovable {
    Immovable() = default;
    Immovable(Immovable&&) = delete;
};
struct StateIsNotMovable {
    template <class T>
    [[nodiscard]] Immovable init(std::size_t size) const;
    template <class T>
    void step(std::span<T> parameters, std::span<T const> gradients, Immovable& state) const;
};
static_assert(!Optimizer<WithoutInit> && !Optimizer<WithoutStep> && !Optimizer<StepIsNotConst> && !Optimizer<StateIsNotMovable>);
static_assert(!Optimizer<int> && !ElementwiseOptimizer<WithoutStep>);

} // namespace
