#include <lockstep/core/math.hpp>

#include <lockstep/core/hash.hpp>
#include <lockstep/core/random.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace {

namespace math = lockstep::math;

template <class T>
constexpr T inf = std::numeric_limits<T>::infinity();
template <class T>
constexpr T nan = std::numeric_limits<T>::quiet_NaN();
template <class T>
constexpr T smallest = std::numeric_limits<T>::denorm_min();

struct Exp {
    static auto ours(auto x) { return math::exp(x); }
    static auto exact(auto x) { return std::exp(x); }
};
struct Log {
    static auto ours(auto x) { return math::log(x); }
    static auto exact(auto x) { return std::log(x); }
};
struct Tanh {
    static auto ours(auto x) { return math::tanh(x); }
    static auto exact(auto x) { return std::tanh(x); }
};

/// |got - exact| in units of T's last place at `exact`; what rounds to infinity, 0 or NaN must be just that.
template <class T, class Wide>
double ulps(T got, Wide exact) {
    constexpr double wrong = 1e9;
    auto const nearest = static_cast<T>(exact);
    if (std::isnan(exact) || !std::isfinite(nearest)) {
        return got == nearest || (std::isnan(got) && std::isnan(exact)) ? 0 : wrong;
    }
    if (std::signbit(got) != std::signbit(exact)) { return wrong; }
    int exponent = std::numeric_limits<T>::min_exponent;
    if (exact != 0) {
        int own = 0;
        static_cast<void>(std::frexp(exact, &own));
        exponent = std::max(exponent, own);
    }
    auto const unit = std::ldexp(Wide{1}, exponent - std::numeric_limits<T>::digits);
    return static_cast<double>(std::abs((static_cast<Wide>(got) - exact) / unit));
}

/// The largest error of `Function` over scalars(0), …, scalars(count - 1) is below `bound`, and not suspiciously small.
template <class Function, class T, class Wide>
void expect_errors_below(double bound, std::size_t count, auto const& scalars) {
    double largest = 0;
    T worst = 0;
    for (std::size_t i = 0; i < count; ++i) {
        T const x = scalars(i);
        double const error = ulps<T>(Function::ours(x), Function::exact(static_cast<Wide>(x)));
        if (!(error <= largest)) {
            largest = error;
            worst = x;
        }
    }
    EXPECT_LT(largest, bound) << "at " << worst;
    EXPECT_GT(largest, 0.45) << "what was compared?";
    testing::Test::RecordProperty("ulps", std::to_string(largest));
}

/// Every 1009th bit pattern of float: all exponents, both signs, subnormals, NaNs.
float float_sample(std::size_t i) { return std::bit_cast<float>(static_cast<std::uint32_t>(1009 * i)); }
constexpr std::size_t float_samples = (std::size_t{1} << 32U) / 1009;

/// Random bit patterns of double, and random numbers of the sizes where the functions do something.
double double_sample(std::size_t i) {
    auto const words = lockstep::RandomStream{1, lockstep::RandomPurpose::data, 0}.block(i / 8);
    auto const bits = std::uint64_t{words[0]} << 32U | words[1];
    double const unit = static_cast<double>(words[2]) * 0x1p-31 - 1 + static_cast<double>(words[3]) * 0x1p-60;
    switch (i % 8) {
    case 0:
        return std::bit_cast<double>(bits);
    case 1:
        return 0.5 * unit;
    case 2:
        return unit;
    case 3:
        return 1 + 0x1p-3 * unit;
    case 4:
        return 1.5 + unit;
    case 5:
        return 32 * unit;
    case 6:
        return 800 * unit;
    default:
        return 0x1p-1022 * unit;
    }
}
constexpr std::size_t double_samples = 2'000'000;

TEST(Math, FloatErrorsAgainstDouble) {
    expect_errors_below<Exp, float, double>(0.9, float_samples, float_sample);
    expect_errors_below<Log, float, double>(0.9, float_samples, float_sample);
    expect_errors_below<Tanh, float, double>(1.1, float_samples, float_sample);
}

TEST(Math, DoubleErrorsAgainstLongDouble) {
    if constexpr (std::numeric_limits<long double>::digits < 64) {
        GTEST_SKIP() << "long double has no more digits than double here";
    } else {
        expect_errors_below<Exp, double, long double>(0.9, double_samples, double_sample);
        expect_errors_below<Log, double, long double>(0.9, double_samples, double_sample);
        expect_errors_below<Tanh, double, long double>(1.1, double_samples, double_sample);
    }
}

template <class T>
class MathOf : public testing::Test {};
using Scalars = testing::Types<float, double>;
TYPED_TEST_SUITE(MathOf, Scalars);

TYPED_TEST(MathOf, ExpHasItsLimits) {
    using T = TypeParam;
    EXPECT_EQ(math::exp(T{0}), 1);
    EXPECT_EQ(math::exp(-T{0}), 1);
    EXPECT_EQ(math::exp(inf<T>), inf<T>);
    EXPECT_EQ(math::exp(-inf<T>), 0);
    EXPECT_FALSE(std::signbit(math::exp(-inf<T>)));
    EXPECT_EQ(math::exp(std::numeric_limits<T>::max()), inf<T>);
    EXPECT_EQ(math::exp(std::numeric_limits<T>::lowest()), 0);
    EXPECT_EQ(math::exp(smallest<T>), 1);
    EXPECT_TRUE(std::isnan(math::exp(nan<T>)));
    EXPECT_TRUE(std::isnan(math::exp(-nan<T>)));
    // The last that is finite and the first that is not; the same at 0.
    T const overflow = std::log(std::numeric_limits<T>::max());
    EXPECT_LT(math::exp(std::nextafter(overflow, T{0})), inf<T>);
    EXPECT_EQ(math::exp(std::nextafter(std::nextafter(overflow, inf<T>), inf<T>)), inf<T>);
    T const underflow = std::log(smallest<T>) - std::log(T{2});
    EXPECT_EQ(math::exp(underflow + T{0x1p-10}), smallest<T>);
    EXPECT_EQ(math::exp(underflow - T{0x1p-10}), 0);
}

TYPED_TEST(MathOf, LogHasItsLimits) {
    using T = TypeParam;
    EXPECT_EQ(math::log(T{1}), 0);
    EXPECT_FALSE(std::signbit(math::log(T{1})));
    EXPECT_EQ(math::log(T{0}), -inf<T>);
    EXPECT_EQ(math::log(-T{0}), -inf<T>);
    EXPECT_EQ(math::log(inf<T>), inf<T>);
    for (T const x : {T{-1}, -smallest<T>, std::numeric_limits<T>::lowest(), -inf<T>, nan<T>, -nan<T>}) {
        EXPECT_TRUE(std::isnan(math::log(x))) << x;
    }
    EXPECT_NEAR(math::log(smallest<T>), std::log(smallest<T>), 2 * std::numeric_limits<T>::epsilon() * 745);
}

TYPED_TEST(MathOf, TanhIsOddAndHasItsLimits) {
    using T = TypeParam;
    EXPECT_EQ(math::tanh(inf<T>), 1);
    EXPECT_EQ(math::tanh(T{30}), 1);
    EXPECT_EQ(math::tanh(std::numeric_limits<T>::max()), 1);
    EXPECT_TRUE(std::isnan(math::tanh(nan<T>)));
    EXPECT_EQ(math::tanh(smallest<T>), smallest<T>);
    EXPECT_EQ(math::tanh(std::numeric_limits<T>::min()), std::numeric_limits<T>::min());
    EXPECT_FALSE(std::signbit(math::tanh(T{0})));
    EXPECT_TRUE(std::signbit(math::tanh(-T{0})));
    for (std::size_t i = 0; i < 10'000; ++i) {
        T const x = static_cast<T>(double_sample(8 * i + i % 7 + 1));
        EXPECT_EQ(math::tanh(-x), -math::tanh(x)) << x;
        EXPECT_LE(std::abs(math::tanh(x)), 1) << x;
    }
}

/// Neighbours around `x` never go the wrong way: where one formula gives way to another, and where the range is cut.
template <class Function, class T>
void expect_monotonic_around(T x) {
    for (int i = 0; i < 2000; ++i) { x = std::nextafter(x, -inf<T>); }
    T before = Function::ours(x);
    for (int i = 0; i < 4000; ++i) {
        x = std::nextafter(x, inf<T>);
        T const now = Function::ours(x);
        // Between neighbours each may be wrong by an ulp: they may fall back by one, never by more.
        ASSERT_GE(now, std::nextafter(before, -inf<T>)) << x;
        before = now;
    }
}

TYPED_TEST(MathOf, HasNoStepsWhereFormulasMeet) {
    using T = TypeParam;
    for (T const x : {T{0.75}, T{-0.75}, T{9}, T{19}}) { expect_monotonic_around<Tanh>(x); }
    for (int k = -4; k < 4; ++k) {
        expect_monotonic_around<Exp>((static_cast<T>(k) + T{0.5}) * std::log(T{2}));
        expect_monotonic_around<Log>(std::ldexp(std::sqrt(T{0.5}), k));
    }
    expect_monotonic_around<Exp>(std::log(std::numeric_limits<T>::min()));
    expect_monotonic_around<Log>(std::numeric_limits<T>::min());
    expect_monotonic_around<Log>(T{1});
}

TYPED_TEST(MathOf, ProductIsRoundedBeforeItIsAdded) {
    using T = TypeParam;
    // Nothing here is known when this is compiled, and the loop is one that compilers vectorise.
    std::vector<T> a(1000);
    std::vector<T> b(1000);
    std::vector<T> rests(1000, T{-1});
    for (std::size_t i = 0; i < a.size(); ++i) {
        a[i] = 1 + static_cast<T>(i + 1) * std::numeric_limits<T>::epsilon();
        b[i] = 1 - static_cast<T>(i + 1) * std::numeric_limits<T>::epsilon();
    }
    for (std::size_t i = 0; i < a.size(); ++i) { rests[i] += math::product(a[i], b[i]); }
    // (1 + e)(1 - e) = 1 - e^2 is nearest to 1; a fused multiply-add would leave -e^2.
    for (T const rest : rests) { EXPECT_EQ(rest, 0); }
    EXPECT_TRUE(std::signbit(math::product(-T{0}, T{1})));
    EXPECT_FALSE(std::signbit(math::product(T{0}, T{1})));
    static_assert(math::product(T{3}, T{5}) == 15);
}

/// The bits of all three functions over a sample; every NaN counts as the same.
template <class T>
std::uint64_t hash_of_results(std::size_t count, auto const& scalars) {
    std::vector<T> x(count);
    for (std::size_t i = 0; i < count; ++i) { x[i] = scalars(i); }
    std::vector<T> y(3 * count);
    for (std::size_t i = 0; i < count; ++i) { y[i] = math::exp(x[i]); }
    for (std::size_t i = 0; i < count; ++i) { y[count + i] = math::log(x[i]); }
    for (std::size_t i = 0; i < count; ++i) { y[2 * count + i] = math::tanh(x[i]); }
    for (auto& value : y) { value = std::isnan(value) ? T{12345} : value; }
    return lockstep::Fnv1a{}.add(std::span{y}).value();
}

// Another value means that replicas on this machine would not move in lockstep with others.
TEST(Math, GivesTheStoredBits) {
    auto const floats = [](std::size_t i) { return std::bit_cast<float>(static_cast<std::uint32_t>(65521 * i)); };
    EXPECT_EQ(hash_of_results<float>((std::size_t{1} << 32U) / 65521, floats), 11326908340816404145U);
    EXPECT_EQ(hash_of_results<double>(60'000, double_sample), 1666266405409350439U);
}

} // namespace
