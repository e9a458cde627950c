// A program with a BLAS of its own, in front of the library's: one that errs in float for one shape.
#include <lockstep/nn/model.hpp>

#include "wrong_blas.hpp"

#include <lockstep/engine/cpu.hpp>
#include <lockstep/nn/layers.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <string>

namespace {

using lockstep::Linear;
template <class T, std::size_t Hidden>
using Model =
    lockstep::Model<lockstep::Sequential<Linear<20, Hidden>, lockstep::ReLU, Linear<Hidden, 3>>, lockstep::CpuEngine, T>;

template <class T, std::size_t Hidden>
std::string construction() {
    try {
        Model<T, Hidden> const model{lockstep::seed(1)};
    } catch (lockstep::Error const& error) { return error.what(); }
    return "accepted";
}

TEST(WrongBlas, IsRefusedWhereItErrs) {
    test::wrong_columns = 40;
    auto const text = construction<float, 40>();
    EXPECT_GT(test::sgemm_calls, 0) << "this program's own cblas_sgemm is not the one that is called";
    EXPECT_NE(text.find("this BLAS computes wrong results: " + lockstep::blas::info().description()), std::string::npos) << text;
    EXPECT_NE(text.find("x W^T of Linear<20, 40> on 33 rows, element (0, 39): expected "), std::string::npos) << text;
    EXPECT_NE(text.find("OPENBLAS_CORETYPE"), std::string::npos) << text;
    auto const again = construction<float, 40>();
    EXPECT_EQ(again, text) << "a failed test is not remembered as passed";

    test::wrong_columns = 20;
    auto const input = construction<float, 41>();
    EXPECT_NE(input.find("dy W of Linear<20, 41> on 33 rows, element (0, 19)"), std::string::npos) << input;
}

TEST(WrongBlas, IsAcceptedForOtherShapesAndTypes) {
    test::wrong_columns = 40;
    EXPECT_EQ((construction<float, 42>()), "accepted");
    EXPECT_EQ((construction<double, 40>()), "accepted");
}

TEST(WrongBlas, IsAcceptedWhenItIsRight) {
    test::wrong_columns = 0;
    EXPECT_EQ((construction<float, 43>()), "accepted");
    auto const after_first = test::sgemm_calls;
    EXPECT_GT(after_first, 0);
    EXPECT_EQ((construction<float, 43>()), "accepted");
    EXPECT_EQ(test::sgemm_calls, after_first) << "tested once per process";
}

} // namespace
