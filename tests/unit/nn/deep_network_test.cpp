#include <lockstep/nn/model.hpp>

#include <lockstep/nn/layers.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

namespace deep_network_test {

using lockstep::Linear;
using lockstep::Rows;
using lockstep::Tanh;

template <class Indices>
struct Deep;
template <std::size_t... Index>
struct Deep<std::index_sequence<Index...>> {
    using type = lockstep::Sequential<std::conditional_t<Index % 2 == 0, Linear<4, 4>, Tanh>...>;
};
using Net = Deep<std::make_index_sequence<300>>::type;
static_assert(Net::size == 300 && Net::tensor_count == 300 && Net::parameter_count == 150 * 20);

// The depth of instantiation must not grow with the number of layers: this compiles with the compilers' default limits.
TEST(DeepNetwork, Of300LayersRunsForwardAndBackward) {
    lockstep::Model<Net> model{lockstep::seed(1)};
    std::vector<float> const x(12, 0.5F);
    model.forward(Rows<float const, 4>{x.data(), 3});
    std::vector<int> const labels{0, 1, 3};
    EXPECT_TRUE(std::isfinite(model.loss(lockstep::CrossEntropyLoss{}, labels, 3)));
    model.backward();
    auto const last = model.gradient(299);
    EXPECT_TRUE(std::any_of(last.begin(), last.end(), [](float g) { return g != 0; }));
    EXPECT_EQ(model.state_dict().tensors.back().name, "298.bias");
    EXPECT_EQ(Net::description().substr(0, 24), "Linear<4, 4> -> Tanh -> ");
}

} // namespace deep_network_test
