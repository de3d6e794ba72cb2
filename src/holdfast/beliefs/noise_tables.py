"""Tables of integer noise for the enumeration oracle: whole-number weights, good to hundreds of bits.

The weight of u is 2**bits·exp(−|u|/λ) (Laplace) or 2**bits·exp(−u²/2σ²) (Gaussian), rounded to the nearest
whole number: its error is at most one half, so its *relative* error is at most 1/(2·weight). With the default
of 256 bits a value of weight 1e-40 is still right to 36 digits.
"""

from __future__ import annotations

import math
from typing import Any

from flint import arb, ctx, fmpq

from holdfast.arguments import Number, Refused, one_of, positive, probability, whole

KINDS = ("laplace", "gaussian")


def weights(kind: str, parameter: Number, reach: int, bits: int = 256) -> dict[int, int]:
    """Return whole-number weights of the noise values |u| ≤ reach; parameter is λ or σ²."""
    one_of("kind", kind, KINDS)
    scale, limit = positive("parameter", parameter), whole("reach", reach, at_least=0)
    size = whole("bits", bits, at_least=53)
    with ctx.workprec(2 * size + 64):
        found = [_rounded(kind, scale.numerator, scale.denominator, u, size) for u in range(limit + 1)]
    if found[-1] == 0:
        raise Refused(f"bits must be larger for reach {limit}: the outermost weight is rounded to 0")
    return {u: found[abs(u)] for u in range(-limit, limit + 1)}


def _rounded(kind: str, numerator: int, denominator: int, u: int, bits: int) -> int:
    exponent = fmpq(u * denominator, numerator) if kind == "laplace" else fmpq(u * u * denominator, 2 * numerator)
    return nearest_whole((-arb(exponent)).exp() * arb(2) ** bits)


def nearest_whole(value: Any) -> int:
    mantissa, exponent = (int(part) for part in value.mid().man_exp())
    return mantissa << exponent if exponent >= 0 else ((mantissa >> (-exponent - 1)) + 1) >> 1


def reach_for(kind: str, parameter: Number, tail: float = 1e-30) -> int:
    """Return a reach beyond which the noise has at most this probability, two tails together (proved).

    Laplace: P(|u| > r) ≤ 2e^(−(r+1)/λ)/(1 + e^(−1/λ)). Gaussian: P(|u| > r) ≤ 2e^(−r²/2σ²) (the integer law
    is sub-Gaussian: E e^(tu) ≤ e^(t²σ²/2), because a shifted sum Σ exp(−(u−s)²/2σ²) is largest at s = 0).
    """
    one_of("kind", kind, KINDS)
    scale, limit = positive("parameter", parameter), float(probability("tail", tail))
    if kind == "laplace":
        return math.ceil(float(scale) * math.log(2 / limit)) + 1
    return math.ceil(math.sqrt(2 * float(scale) * math.log(2 / limit))) + 1
