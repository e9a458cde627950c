#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

/// exp, log and tanh whose results are the same bits on every machine: those of the C library differ between libraries, versions
/// and processors, and one differing bit sets replicas apart for ever. They use +, -, *, / (which IEEE 754 rounds in one way
/// only) and integer operations, without branches and tables, so that compilers vectorise a loop over them.
///
/// For round to nearest and gradual underflow, the defaults. Out of reach: -ffast-math and what it consists of, clang's
/// -ffp-contract=fast, x87 arithmetic. NaN stays NaN, its sign and payload are not promised. No errno.
/// Errors in units in the last place, all values of float and samples of double tested: exp and log 0.9, tanh 1.1.
namespace lockstep::math {

namespace detail {

template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

#ifndef __clang__
/// The bits of -0.0, in a variable that a compiler must take for one that changes: see `product`. An integer, because a loop that
/// writes scalars could not keep another scalar in a register: it might be the one that is written to.
template <class T>
[[gnu::used]] inline Bits<T> negative_zero = Bits<T>{1} << (8 * sizeof(T) - 1);
#endif

} // namespace detail

/// a * b, rounded, whatever is added to it: where a processor has a fused multiply-add, compilers make one of `a * b + c` and
/// round once instead of twice. Needed wherever a product is added to something, here or where it is returned to, and where it
/// is not exact anyway.
///
/// clang does not look across statements and has a pragma. GCC fuses across statements and functions and has neither pragma nor,
/// for what is inlined, attribute; its __builtin_assoc_barrier is lost when a loop is vectorised (seen with GCC 12). So GCC sees
/// a sum with a number that it does not know, but that changes nothing, -0.0: fused or not, the value is the rounded product.
/// That costs an addition without FMA, and nothing with FMA (the product becomes one, the sum stays).
template <std::floating_point T>
[[nodiscard, gnu::always_inline]] constexpr T product(T a, T b) noexcept {
#ifdef __clang__
#pragma clang fp contract(off)
    return a * b;
#else
    if (std::is_constant_evaluated()) { return a * b; }
    return a * b + std::bit_cast<T>(detail::negative_zero<T>);
#endif
}

namespace detail {

/// What the algorithms need to know of a format. The polynomials' coefficients, from the constant term up, were made by
/// tests/golden/polynomials.py; the rational function is Lambert's continued fraction tanh x = x / (1 + x^2 / (3 + x^2 / (5 + …
template <class T>
struct Format;

template <>
struct Format<float> {
    static constexpr int mantissa = 23;
    static constexpr std::uint32_t bias = 127;
    static constexpr float log2_e = 0x1.715476p0F;
    static constexpr float ln2_high = 0x1.62e4p-1F; // 15 bits: exact times an exponent
    static constexpr float ln2_low = 0x1.7f7d1cp-20F;
    static constexpr float sqrt_half = 0x1.6a09e6p-1F;
    static constexpr float exp_limit = 104.0F; // beyond it, exp is infinite or 0
    static constexpr std::array exp{0x1p-1F, 0x1.5554dep-3F, 0x1.55551ap-5F, 0x1.120b62p-7F, 0x1.6d10fcp-10F};
    static constexpr std::array log{0x1.555556p-1F, 0x1.9999ecp-2F, 0x1.245c44p-2F, 0x1.ddced8p-3F};
    static constexpr std::array tanh_numerator{-315.0F, -14.0F};
    static constexpr std::array tanh_denominator{945.0F, 420.0F, 15.0F};
};

template <>
struct Format<double> {
    static constexpr int mantissa = 52;
    static constexpr std::uint64_t bias = 1023;
    static constexpr double log2_e = 0x1.71547652b82fep0;
    static constexpr double ln2_high = 0x1.62e42feep-1; // 32 bits: exact times an exponent
    static constexpr double ln2_low = 0x1.a39ef35793c76p-33;
    static constexpr double sqrt_half = 0x1.6a09e667f3bcdp-1;
    static constexpr double exp_limit = 746.0;
    static constexpr std::array exp{0x1.0000000000001p-1,  0x1.5555555555556p-3,  0x1.5555555553d68p-5,  0x1.11111111109b5p-7,
                                    0x1.6c16c17889f3cp-10, 0x1.a01a01a7c2f2cp-13, 0x1.a019b914881bap-16, 0x1.71de0db2eb873p-19,
                                    0x1.28917c9f3a495p-22, 0x1.af389eea54156p-26};
    static constexpr std::array log{0x1.5555555555558p-1, 0x1.99999999952e2p-2, 0x1.2492492df14bcp-2, 0x1.c71c62e57c3c4p-3,
                                    0x1.7462b4ac441afp-3, 0x1.39fe604146b74p-3, 0x1.2b584c6b42d6p-3};
    static constexpr std::array tanh_numerator{-11486475.0, -810810.0, -12870.0, -44.0};
    static constexpr std::array tanh_denominator{34459425.0, 16216200.0, 945945.0, 13860.0, 45.0};
};

template <class T>
inline constexpr Bits<T> sign_bit = Bits<T>{1} << (8 * sizeof(T) - 1);

/// 1.5 * 2^mantissa: added to a small number, it leaves the nearest whole number in the lowest bits.
template <class T>
inline constexpr T rounder = static_cast<T>(Bits<T>{3} << (Format<T>::mantissa - 1));

/// All bits set where a < b, for numbers that are not negative; NaN is larger than all. By integers: where one comparison of
/// scalars decides another, GCC skips the second, and does not vectorise what is left (what is skipped might have trapped).
template <class T>
[[nodiscard, gnu::always_inline]] inline Bits<T> less(T a, T b) noexcept {
    return Bits<T>{0} - ((std::bit_cast<Bits<T>>(a) - std::bit_cast<Bits<T>>(b)) >> (8 * sizeof(T) - 1));
}

/// `yes` where the mask is set.
template <class T>
[[nodiscard, gnu::always_inline]] inline T select(Bits<T> mask, T yes, T no) noexcept {
    return std::bit_cast<T>((std::bit_cast<Bits<T>>(yes) & mask) | (std::bit_cast<Bits<T>>(no) & ~mask));
}

/// coefficients[0] + coefficients[1] * x + …, by Horner's rule. Without a loop: GCC does not vectorise around one.
template <class T, std::size_t Size>
[[nodiscard, gnu::always_inline]] inline T polynomial(T x, std::array<T, Size> const& coefficients) noexcept {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
        T value = coefficients[Size - 1];
        ((value = product(value, x) + coefficients[Size - 2 - I]), ...);
        return value;
    }
    (std::make_index_sequence<Size - 1>{});
}

} // namespace detail

/// e^x; 0 where that is nearest, infinity where it is too large; subnormal results are gradual.
///
/// e^x = 2^n e^r, |r| <= ln(2) / 2, with ln 2 in two parts and n found by rounding (W. J. Cody, W. Waite, "Software Manual for
/// the Elementary Functions", 1980); e^r = 1 + r + r^2 q(r), whose first sum keeps its rounding error (T. J. Dekker, Numer. Math.
/// 18, 1971).
template <std::floating_point T>
[[nodiscard]] inline T exp(T x) noexcept {
    using F = detail::Format<T>;
    using Bits = detail::Bits<T>;
    Bits const sign = std::bit_cast<Bits>(x) & detail::sign_bit<T>;
    T const size = std::bit_cast<T>(std::bit_cast<Bits>(x) ^ sign);
    T const clamped = size > F::exp_limit ? F::exp_limit : size; // NaN stays
    x = std::bit_cast<T>(std::bit_cast<Bits>(clamped) | sign);
    T const rounded = product(x, F::log2_e) + detail::rounder<T>;
    T const n = rounded - detail::rounder<T>;
    T const high = x - n * F::ln2_high; // both exact
    T const low = product(n, F::ln2_low);
    T const r = high - low;
    T const rest = product(product(r, r), detail::polynomial(r, F::exp)) - low;
    T const sum = 1 + high;
    T const power = sum + ((high - (sum - 1)) + rest);
    // In two steps: 2^n itself may be no number of the format, where the result still is one.
    Bits const biased = std::bit_cast<Bits>(rounded) - std::bit_cast<Bits>(detail::rounder<T>) + 2 * F::bias;
    Bits const half = biased >> 1U;
    return product(power * std::bit_cast<T>(half << F::mantissa), std::bit_cast<T>((biased - half) << F::mantissa));
}

/// The natural logarithm: -infinity of ±0, NaN of negative numbers, exactly 0 of 1.
///
/// x = 2^k (1 + f), 1 + f between sqrt(1/2) and sqrt(2); log(1 + f) by the series of atanh(f / (2 + f)), arranged as in fdlibm
/// (K. C. Ng, e_log.c, Sun Microsystems, 1993), where the first terms carry no rounding error.
template <std::floating_point T>
[[nodiscard]] inline T log(T x) noexcept {
    using F = detail::Format<T>;
    using Bits = detail::Bits<T>;
    using Limits = std::numeric_limits<T>;
    Bits const sign = std::bit_cast<Bits>(x) & detail::sign_bit<T>;
    T const size = std::bit_cast<T>(std::bit_cast<Bits>(x) ^ sign);
    Bits const subnormal = detail::less(size, Limits::min());
    T const normal = detail::select(subnormal, size * (2 / Limits::epsilon()), size);
    T const shift = detail::select(subnormal, static_cast<T>(F::mantissa + 1), T{0});
    // Moves the exponent's boundary from 1 to sqrt(1/2).
    Bits const bits = std::bit_cast<Bits>(normal) + (std::bit_cast<Bits>(T{1}) - std::bit_cast<Bits>(F::sqrt_half));
    constexpr Bits one = Bits{1} << F::mantissa;
    T const f = std::bit_cast<T>((bits & (one - 1)) + std::bit_cast<Bits>(F::sqrt_half)) - 1;
    // The exponent as a number: as the lowest bits of 2^mantissa, for a conversion of 64 bits is no vector instruction
    // everywhere.
    constexpr T power = static_cast<T>(one);
    T const k = (std::bit_cast<T>((bits >> F::mantissa) | std::bit_cast<Bits>(power)) - (power + T{F::bias})) - shift;

    T const s = f / (2 + f);
    T const z = product(s, s);
    T const half_square = product(T{0.5} * f, f);
    T const series = product(s, half_square + product(z, detail::polynomial(z, F::log)));
    T const rest = half_square - (series + product(k, F::ln2_low));
    T const value = k * F::ln2_high - (rest - f); // the product is exact

    Bits const zero = detail::less(size, Limits::denorm_min());
    Bits const negative = Bits{0} - (sign >> (8 * sizeof(T) - 1));
    T const positive = detail::select(detail::less(size, Limits::infinity()), value, x); // infinity and NaN stay
    return detail::select(zero, -Limits::infinity(), detail::select(negative, Limits::quiet_NaN(), positive));
}

/// The hyperbolic tangent, odd in every bit; ±0 of ±0.
///
/// 1 - 2 / (e^(2x) + 1), and near 0 x + x^3 times a rational function (J. H. Lambert, 1761); both share the division.
template <std::floating_point T>
[[nodiscard]] inline T tanh(T x) noexcept {
    using F = detail::Format<T>;
    using Bits = detail::Bits<T>;
    Bits const sign = std::bit_cast<Bits>(x) & detail::sign_bit<T>;
    T const size = std::bit_cast<T>(std::bit_cast<Bits>(x) ^ sign);
    T const square = product(size, size);
    Bits const small = detail::less(size, T{0.75});
    T const numerator =
        detail::select(small, product(product(size, square), detail::polynomial(square, F::tanh_numerator)), T{-2});
    T const denominator = detail::select(small, detail::polynomial(square, F::tanh_denominator), exp(2 * size) + 1);
    T const value = detail::select(small, size, T{1}) + numerator / denominator;
    return std::bit_cast<T>(std::bit_cast<Bits>(value) | sign);
}

} // namespace lockstep::math
