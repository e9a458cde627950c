#include <lockstep/nn/sequential.hpp>

#include <lockstep/nn/layers.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <ratio>
#include <type_traits>

namespace {

using lockstep::Dropout;
using lockstep::Flatten;
using lockstep::Linear;
using lockstep::LogSoftmax;
using lockstep::ReLU;
using lockstep::Sequential;
using lockstep::Tanh;

using Reference = Sequential<Linear<784, 512>, ReLU, Linear<512, 128>, ReLU, Linear<128, 64>, ReLU, Linear<64, 10>>;
static_assert(Reference::valid && Reference::size == 7);
static_assert(Reference::inputs == 784 && Reference::outputs == 10);
static_assert(Reference::widths == std::array<std::size_t, 8>{784, 512, 512, 128, 128, 64, 64, 10});
static_assert(std::is_same_v<Reference::layer<0>, Linear<784, 512>> && std::is_same_v<Reference::layer<5>, ReLU>);
static_assert(Reference::parameter_count == 476'490);
static_assert(Reference::tensor_count == 8);
static_assert(Reference::parameter_bytes<float> == 1'905'960 && Reference::parameter_bytes<double> == 3'811'920);
// Products alone: 2 in out per layer forward, twice that backward but for the first layer's input gradient.
static_assert(Reference::forward_flops == 951'552);
static_assert(Reference::backward_flops == 4 * 475'776 - 2 * 401'408);
static_assert(Reference::forward_flops + Reference::backward_flops == 2'051'840);
// 401408 + 512 + 65536 + 128 + 8192 + 64 + 640 + 10 scalars, all but the last multiples of 16.
static_assert(Reference::offsets<float> ==
              std::array<std::size_t, 9>{0, 401'408, 401'920, 467'456, 467'584, 475'776, 475'840, 476'480, 476'496});

using Odd = Sequential<Linear<3, 5>, Tanh, Linear<5, 2>>;
static_assert(Odd::parameter_count == 32);
static_assert(Odd::offsets<float> == std::array<std::size_t, 5>{0, 16, 32, 48, 64});
static_assert(Odd::offsets<double> == std::array<std::size_t, 5>{0, 16, 24, 40, 48});
static_assert(Odd::buffer_size<float> == 64 && Odd::buffer_size<double> == 48);
static_assert(Odd::tensors[0].layer == 0 && Odd::tensors[1].layer == 0);
static_assert(Odd::tensors[2].layer == 2 && Odd::tensors[2].spec.name == "weight" && Odd::tensors[3].spec.name == "bias");
static_assert(Odd::tensors[2].spec.shape[0] == 2 && Odd::tensors[2].spec.shape[1] == 5 && Odd::tensors[2].spec.rank == 2);

// Layers of any width take that of their neighbours, in front of the first Linear as well.
using Front = Sequential<Flatten, Dropout<>, Tanh, Linear<6, 4>, Flatten, LogSoftmax, Flatten>;
static_assert(Front::valid && Front::inputs == 6 && Front::outputs == 4);
static_assert(Front::widths == std::array<std::size_t, 8>{6, 6, 6, 6, 4, 4, 4, 4});
static_assert(Front::parameter_count == 28 && Front::tensors[0].layer == 3);
static_assert(Front::forward_flops == 48 && Front::backward_flops == 48);

using One = Sequential<Linear<1, 1>>;
static_assert(One::valid && One::parameter_count == 2 && One::forward_flops == 2 && One::backward_flops == 2);

struct RepeatTwice {
    static constexpr std::size_t inputs = 3;
    static constexpr std::size_t outputs = 6;
    static void forward(auto const& pass);
    static void backward(auto const& pass);
};
using WithoutParameters = Sequential<RepeatTwice>;
static_assert(WithoutParameters::valid && WithoutParameters::inputs == 3 && WithoutParameters::outputs == 6);
static_assert(WithoutParameters::tensor_count == 0 && WithoutParameters::parameter_count == 0);
static_assert(WithoutParameters::buffer_size<float> == 0 && WithoutParameters::backward_flops == 0);

// A description without memory.
static_assert(std::is_empty_v<Reference>);

TEST(Sequential, DescribesItself) {
    EXPECT_EQ(Reference::description(), "Linear<784, 512> -> ReLU -> Linear<512, 128> -> ReLU -> Linear<128, 64> -> ReLU -> "
                                        "Linear<64, 10>");
    EXPECT_EQ(One::description(), "Linear<1, 1>");
    EXPECT_EQ((Sequential<Flatten, RepeatTwice, LogSoftmax>::description()), "Flatten -> RepeatTwice -> LogSoftmax");
    EXPECT_EQ((Sequential<Linear<1, 1>, Dropout<std::ratio<1, 5>>>::description().find("Linear<1, 1> -> Dropout<ratio<1, 5>")),
              0U);
}

TEST(Sequential, StartsEveryTensorOn64Bytes) {
    for (auto const offset : Odd::offsets<float>) { EXPECT_EQ(offset * sizeof(float) % 64, 0U); }
    for (auto const offset : Odd::offsets<double>) { EXPECT_EQ(offset * sizeof(double) % 64, 0U); }
}

} // namespace
