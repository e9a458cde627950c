#include <lockstep/nn/plan.hpp>

#include <lockstep/nn/layers.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <type_traits>

namespace {

using lockstep::Dropout;
using lockstep::ElementwiseOperation;
using lockstep::Flatten;
using lockstep::Identity;
using lockstep::Linear;
using lockstep::LinearOperation;
using lockstep::LogSoftmax;
using lockstep::OperationList;
using lockstep::ReLU;
using lockstep::Sequential;
using lockstep::Tanh;
using lockstep::detail::plan_of;
using lockstep::detail::type_at;

/// Its derivative needs the input, so no engine can fuse it.
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

template <class Net, class... Operations>
inline constexpr bool plans = std::is_same_v<plan_of<Net, float>, OperationList<Operations...>>;

static_assert(plans<Sequential<Linear<3, 5>>, LinearOperation<3, 5, Identity, 0, 16>>);
static_assert(plans<Sequential<Linear<3, 5>, ReLU>, LinearOperation<3, 5, ReLU, 0, 16>>);
static_assert(plans<Sequential<Linear<3, 5>, ReLU, Linear<5, 2>>, LinearOperation<3, 5, ReLU, 0, 16>,
                    LinearOperation<5, 2, Identity, 32, 48>>);
static_assert(std::is_same_v<plan_of<Sequential<Linear<3, 5>, ReLU, Linear<5, 2>>, double>,
                             OperationList<LinearOperation<3, 5, ReLU, 0, 16>, LinearOperation<5, 2, Identity, 24, 40>>>);

// Only the first activation after a Linear is fused.
static_assert(plans<Sequential<Linear<3, 5>, ReLU, ReLU>, LinearOperation<3, 5, ReLU, 0, 16>, ElementwiseOperation<ReLU, 5>>);
static_assert(plans<Sequential<Linear<3, 5>, Tanh, ReLU>, LinearOperation<3, 5, Tanh, 0, 16>, ElementwiseOperation<ReLU, 5>>);
static_assert(plans<Sequential<ReLU, Linear<3, 5>>, ElementwiseOperation<ReLU, 3>, LinearOperation<3, 5, Identity, 0, 16>>);
static_assert(plans<Sequential<Linear<3, 5>, Square>, LinearOperation<3, 5, Identity, 0, 16>, ElementwiseOperation<Square, 5>>);
static_assert(plans<Sequential<Linear<3, 5>, Square, ReLU>, LinearOperation<3, 5, Identity, 0, 16>,
                    ElementwiseOperation<Square, 5>, ElementwiseOperation<ReLU, 5>>);

// Flatten vanishes wherever it is.
static_assert(plans<Sequential<Flatten, Linear<3, 5>, Flatten, ReLU, Flatten>, LinearOperation<3, 5, ReLU, 0, 16>>);

// A row layer knows its place in the network, not in the plan: Dropout's mask depends on it.
using WithRows = plan_of<Sequential<Dropout<>, Linear<3, 5>, ReLU, Dropout<>, LogSoftmax, Tanh>, float>;
static_assert(WithRows::size == 5);
template <std::size_t Index, class... Operations>
type_at<Index, Operations...> pick_operation(OperationList<Operations...>);
template <class List, std::size_t Index>
using operation = decltype(pick_operation<Index>(List{}));
static_assert(operation<WithRows, 0>::layer == 0 && operation<WithRows, 2>::layer == 3 && operation<WithRows, 3>::layer == 4);
static_assert(std::is_same_v<operation<WithRows, 2>::Layer, Dropout<>>);
static_assert(std::is_same_v<operation<WithRows, 4>, ElementwiseOperation<Tanh, 5>>);
static_assert(!operation<WithRows, 0>::has_parameters);
static_assert(WithRows::widths == std::array<std::size_t, 6>{3, 3, 5, 5, 5, 5});
static_assert(WithRows::first_with_parameters == 1);

/// A row layer with two tensors of its own.
struct ScaleEach {
    template <std::size_t In>
    static constexpr std::array<lockstep::TensorSpec, 2> tensors() {
        return {lockstep::TensorSpec{"scale", {In}, lockstep::Initializer::constant(1)},
                lockstep::TensorSpec{"shift", {1}, lockstep::Initializer::constant(0)}};
    }
    static void forward(auto const& pass);
    static void backward(auto const& pass);
};
using WithTable = plan_of<Sequential<Linear<3, 17>, ScaleEach, Linear<17, 2>>, float>;
static_assert(operation<WithTable, 1>::has_parameters && operation<WithTable, 1>::Table::count == 2);

TEST(Plan, TellsARowLayerWhereItsTensorsAre) {
    using Table = operation<WithTable, 1>::Table;
    EXPECT_EQ(Table::offsets[0], 96U); // after 51 and 17 scalars, aligned
    EXPECT_EQ(Table::offsets[1], 128U);
    EXPECT_EQ(Table::sizes[0], 17U);
    EXPECT_EQ(Table::sizes[1], 1U);
    EXPECT_TRUE((std::is_same_v<operation<WithTable, 2>, LinearOperation<17, 2, Identity, 144, 192>>));
}

TEST(Plan, KnowsWhereNobodyHasParameters) {
    using Nothing = plan_of<Sequential<Linear<3, 5>>, float>;
    EXPECT_EQ(Nothing::first_with_parameters, 0U);
    using OnlyElements = OperationList<ElementwiseOperation<ReLU, 3>, ElementwiseOperation<Tanh, 3>>;
    EXPECT_EQ(OnlyElements::first_with_parameters, 2U);
}

} // namespace
