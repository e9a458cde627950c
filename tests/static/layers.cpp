// What is a layer, of which kind, and what is none.
#include <lockstep/nn/layer.hpp>
#include <lockstep/nn/layers.hpp>

#include <cstddef>
#include <ratio>

namespace {

using namespace lockstep; // NOLINT: a test of names

template <class L>
inline constexpr int kinds = int{LinearLayer<L>} + int{ElementwiseLayer<L>} + int{ViewLayer<L>} + int{RowLayer<L, 4>};

static_assert(LinearLayer<Linear<2, 3>> && ElementwiseFromOutput<ReLU> && ElementwiseFromOutput<Tanh>);
static_assert(ElementwiseFromOutput<Sigmoid> && ViewLayer<Flatten> && RowLayer<LogSoftmax, 4> && RowLayer<Softmax, 4>);
static_assert(RowLayer<Dropout<>, 4> && RowLayer<Dropout<std::ratio<1, 10>>, 4>);
static_assert(!ElementwiseFromInput<ReLU> && !LinearLayer<ReLU> && !ViewLayer<LogSoftmax>);
// Of exactly one kind each.
static_assert(kinds<Linear<2, 3>> == 1 && kinds<ReLU> == 1 && kinds<Tanh> == 1 && kinds<Sigmoid> == 1 && kinds<Flatten> == 1);
static_assert(kinds<LogSoftmax> == 1 && kinds<Softmax> == 1 && kinds<Dropout<>> == 1);
static_assert(Layer<Linear<2, 3>, 2, 3> && Layer<ReLU, 4> && Layer<Flatten, 4> && Layer<LogSoftmax, 4>);

struct FromInput {
    template <class T>
    static T forward(T x);
    template <class T>
    static T backward(T x, T y, T dy);
};
static_assert(ElementwiseFromInput<FromInput> && !ElementwiseFromOutput<FromInput> && kinds<FromInput> == 1);

struct OfRows {
    static void forward(auto const& pass);
    static void backward(auto const& pass);
};
static_assert(RowLayer<OfRows, 4> && Layer<OfRows, 4> && Layer<OfRows, 4, 2>);

struct Nothing {};
struct ForwardOnly {
    template <class T>
    static T forward(T x);
};
struct OnlyFloat {
    static float forward(float x);
    static float backward(float y, float dy);
};
struct NeedsAnObject {
    template <class T>
    T forward(T x) const;
    template <class T>
    T backward(T y, T dy) const;
};
struct AlwaysFloat {
    template <class T>
    static float forward(T x);
    template <class T>
    static float backward(T y, T dy);
};
struct NoView {
    static constexpr bool is_view = false;
};
struct OnlyInputs {
    [[maybe_unused]] static constexpr std::size_t in_features = 3;
};
static_assert(kinds<Nothing> == 0 && kinds<ForwardOnly> == 0 && kinds<OnlyFloat> == 0 && kinds<NeedsAnObject> == 0);
static_assert(kinds<AlwaysFloat> == 0 && kinds<NoView> == 0 && kinds<OnlyInputs> == 0 && kinds<int> == 0);
static_assert(!Layer<Nothing, 4> && !Layer<ForwardOnly, 4> && !Layer<int, 4>);

static_assert(TensorSpec{"weight", {2, 3, 4}, Initializer{}}.size() == 24 && TensorSpec{"scalar", {}, Initializer{}}.size() == 1);

} // namespace
