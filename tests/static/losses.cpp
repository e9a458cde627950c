// What is a loss and what is not.
#include <lockstep/nn/losses.hpp>

#include <cstddef>

namespace {

using lockstep::Loss;
using lockstep::Rows;
using lockstep::TargetKind;

static_assert(Loss<lockstep::CrossEntropyLoss> && Loss<lockstep::CrossEntropyLoss, double>);
static_assert(Loss<lockstep::NLLLoss> && Loss<lockstep::NLLLoss, double>);
static_assert(Loss<lockstep::MSELoss> && Loss<lockstep::MSELoss, double>);
static_assert(lockstep::CrossEntropyLoss::kind == TargetKind::labels && lockstep::NLLLoss::kind == TargetKind::labels);
static_assert(lockstep::MSELoss::kind == TargetKind::vectors);

struct Mine {
    static constexpr TargetKind kind = TargetKind::vectors;
    template <class T, std::size_t Out>
    static double value(Rows<T const, Out> outputs, auto const& targets);
    template <class T, std::size_t Out>
    static double value_and_gradient(Rows<T const, Out> outputs, auto const& targets, T scale, Rows<T, Out> gradient);
};
static_assert(Loss<Mine> && Loss<Mine, double>);

struct WithoutKind {
    template <class T, std::size_t Out>
    static double value(Rows<T const, Out> outputs, auto const& targets);
    template <class T, std::size_t Out>
    static double value_and_gradient(Rows<T const, Out> outputs, auto const& targets, T scale, Rows<T, Out> gradient);
};
struct WithoutGradient {
    static constexpr TargetKind kind = TargetKind::labels;
    template <class T, std::size_t Out>
    static double value(Rows<T const, Out> outputs, auto const& targets);
};
struct ValueInFloat {
    static constexpr TargetKind kind = TargetKind::labels;
    template <class T, std::size_t Out>
    static float value(Rows<T const, Out> outputs, auto const& targets);
    template <class T, std::size_t Out>
    static float value_and_gradient(Rows<T const, Out> outputs, auto const& targets, T scale, Rows<T, Out> gradient);
};
static_assert(!Loss<WithoutKind> && !Loss<WithoutGradient> && !Loss<ValueInFloat> && !Loss<int>);

} // namespace
