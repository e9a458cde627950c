#include <lockstep/engine/xtensor.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace {

TEST(AsXtensor, IsAViewOfTheSameMemory) {
    std::vector<float> values{1, 2, 3, 4, 5, 6};
    auto view = lockstep::as_xtensor(lockstep::Rows<float, 3>{values.data(), 2});
    EXPECT_EQ(view.shape()[0], 2U);
    EXPECT_EQ(view.shape()[1], 3U);
    EXPECT_EQ(view(1, 0), 4);
    view(1, 2) = 60;
    EXPECT_EQ(values[5], 60);
    auto const constant = lockstep::as_xtensor(static_cast<float const*>(values.data()), 3, 2);
    EXPECT_EQ(constant(2, 1), 60);
    EXPECT_EQ(constant.data(), values.data());
}

} // namespace
