#include <lockstep/engine/self_test.hpp>

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace {

using lockstep::Identity;
using lockstep::LinearOperation;
using lockstep::OperationList;

// What it does with a BLAS that is wrong has a program of its own, in tests/special.
TEST(SelfTest, PassesWithThisBlas) {
    using List = OperationList<LinearOperation<1, 1, Identity, 0, 16>, LinearOperation<784, 512, Identity, 0, 0>,
                               LinearOperation<65, 7, Identity, 0, 0>, lockstep::ElementwiseOperation<Identity, 7>>;
    EXPECT_NO_THROW((lockstep::self_test_products<List, float>()));
    EXPECT_NO_THROW((lockstep::self_test_products<List, double>()));
}

std::string refusal(float got) {
    try {
        lockstep::detail::check_element(
            "x W^T", 3, 4, got, 2, [](auto k) { return static_cast<float>(k + 1); }, [](auto) { return 0.5F; });
    } catch (lockstep::Error const& error) { return error.what(); }
    return "accepted";
}

TEST(SelfTest, AllowsRoundingAndNothingElse) {
    EXPECT_EQ(refusal(1.5F), "accepted");
    EXPECT_EQ(refusal(1.5F + 2 * std::numeric_limits<float>::epsilon()), "accepted");
    EXPECT_NE(refusal(1.5001F), "accepted");
    EXPECT_NE(refusal(0), "accepted");
    EXPECT_NE(refusal(std::numeric_limits<float>::quiet_NaN()), "accepted");
}

TEST(SelfTest, NamesTheBlasAndTheElement) {
    auto const text = refusal(2);
    EXPECT_NE(text.find(lockstep::blas::info().description()), std::string::npos) << text;
    EXPECT_NE(text.find("x W^T, element (3, 4): expected 1.5, got 2"), std::string::npos) << text;
}

} // namespace
