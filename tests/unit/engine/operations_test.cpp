#include <lockstep/engine/operations.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>

namespace {

using lockstep::ElementwiseOperation;
using lockstep::Identity;
using lockstep::LinearOperation;
using lockstep::OperationList;

static_assert(OperationList<LinearOperation<3, 5, Identity, 0, 16>, ElementwiseOperation<Identity, 5>>::widths ==
              std::array<std::size_t, 3>{3, 5, 5});
static_assert(OperationList<LinearOperation<3, 5, Identity, 0, 16>>::first_with_parameters == 0);
static_assert(OperationList<ElementwiseOperation<Identity, 3>, LinearOperation<3, 5, Identity, 0, 16>>::first_with_parameters ==
              1);
static_assert(OperationList<ElementwiseOperation<Identity, 3>>::first_with_parameters == 1);
static_assert(Identity::forward(3.0) == 3.0 && Identity::backward(1.0F, 2.0F) == 2.0F);

TEST(Tensors, FindsEachInTheBuffer) {
    std::array<double, 6> buffer{0, 1, 2, 3, 4, 5};
    constexpr std::array<std::size_t, 2> offsets{1, 4};
    constexpr std::array<std::size_t, 2> sizes{3, 1};
    lockstep::Tensors<double> const tensors{buffer.data(), offsets.data(), sizes.data()};
    EXPECT_EQ(tensors[0].size(), 3U);
    EXPECT_EQ(tensors[0][2], 3);
    EXPECT_EQ(tensors[1].size(), 1U);
    tensors[1][0] = 40;
    EXPECT_EQ(buffer[4], 40);
}

} // namespace
