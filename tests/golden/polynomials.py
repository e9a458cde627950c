#!/usr/bin/env python3
"""Prints the numbers of include/lockstep/core/math.hpp, class Format, and fails where that header has others. See README.md."""

import pathlib
import re
import sys

from mpmath import chebyfit, exp, floor, frexp, ldexp, log, mp, mpf, nint, sqrt, tanh

mp.prec = 240  # far more than a double has, so that nothing here rounds but `rounded`
HEADER = pathlib.Path(__file__).parents[2] / "include/lockstep/core/math.hpp"
FORMATS = {  # name: (bits, bits of ln2_high, coefficients of exp, of log, depth of tanh's continued fraction)
    "float": (24, 15, 5, 4, 5),
    "double": (53, 32, 10, 7, 9),
}
MARGIN = 1 + mpf(2) ** -20  # the reduced arguments leave their interval by rounding


def cut(x, bits, how):
    mantissa, exponent = frexp(x)
    return ldexp(how(ldexp(mantissa, bits)), exponent - bits)


def rounded(x, bits):
    return cut(x, bits, nint)


def literal(x):
    mantissa, exponent = frexp(abs(x))
    digits = f"{int(ldexp(2 * mantissa - 1, 52)):013x}".rstrip("0")
    return f"{'-' if x < 0 else ''}0x1{'.' if digits else ''}{digits}p{exponent - 1}"


def fit(function, first, last, count, weight, bits):
    """A nearly minimax polynomial, constant term first, rounded; its error must not matter: a quarter of an ulp of 1 at most."""
    coefficients, error = chebyfit(function, [first, last], count, error=True)
    assert error * weight < mpf(2) ** (1 - bits) / 4, (count, error)
    return [rounded(c, bits) for c in reversed(coefficients)]


def exp_rest(r):
    """q in e^r = 1 + r + r^2 q(r)."""
    return mpf(1) / 2 if abs(r) < mpf(2) ** -60 else (exp(r) - 1 - r) / r**2


def log_rest(z):
    """L in log((1 + s) / (1 - s)) = 2 s + s z L(z), z = s^2."""
    if z < mpf(2) ** -60:
        return mpf(2) / 3
    s = sqrt(z)
    return (log((1 + s) / (1 - s)) / s - 2) / z


def lambert(depth, bits):
    """P and Q in tanh x = x + x z P(z) / Q(z), z = x^2: x / (1 + z / (3 + z / (5 + ...))), `depth` terms, in whole numbers."""
    value, divisor = [2 * depth - 1], [1]
    for odd in range(2 * depth - 3, 0, -2):
        longer = [odd * c for c in value] + [0] * max(0, len(divisor) + 1 - len(value))
        for i, c in enumerate(divisor):
            longer[i + 1] += c
        value, divisor = longer, value
    divisor = divisor + [0] * (len(value) - len(divisor))
    difference = [a - b for a, b in zip(divisor, value)]
    assert difference[0] == 0
    for c in difference + value:
        assert rounded(mpf(c), bits) == c
    z = mpf(0.75) ** 2
    result = 1 + z * sum(c * z**i for i, c in enumerate(difference[1:])) / sum(c * z**i for i, c in enumerate(value))
    assert abs(result * mpf(0.75) / tanh(mpf(0.75)) - 1) < mpf(2) ** -bits / 8
    return [c for c in difference[1:] if c], value


def numbers(bits, high_bits, exp_count, log_count, depth):
    half = log(2) / 2 * MARGIN
    largest = ((sqrt(2) - 1) / (sqrt(2) + 1)) ** 2 * MARGIN
    high = cut(log(2), high_bits, floor)
    numerator, denominator = lambert(depth, bits)
    return {
        "log2_e": [literal(rounded(1 / log(2), bits))],
        "ln2_high": [literal(high)],
        "ln2_low": [literal(rounded(log(2) - high, bits))],
        "sqrt_half": [literal(rounded(sqrt(mpf(1) / 2), bits))],
        "exp": [literal(c) for c in fit(exp_rest, -half, half, exp_count, half**2, bits)],
        "log": [literal(c) for c in fit(log_rest, 0, largest, log_count, largest, bits)],
        "tanh_numerator": [f"{c}.0" for c in numerator],
        "tanh_denominator": [f"{c}.0" for c in denominator],
    }


def main():
    wrong = 0
    for name, parameters in FORMATS.items():
        body = re.search(rf"struct Format<{name}> {{(.*?)\n}};", HEADER.read_text(), re.S).group(1)
        for number, values in numbers(*parameters).items():
            print(name, number, ", ".join(values))
            found = re.search(rf" {number}\s*(?:=([^;]*)|{{([^}}]*)}});", body)
            text = re.sub(r"[\sF]", "", (found.group(1) or found.group(2))) if found else "nothing"
            if text != ",".join(values):
                print(f"  but the header has {text}")
                wrong += 1
    return 1 if wrong else 0


sys.exit(main())
