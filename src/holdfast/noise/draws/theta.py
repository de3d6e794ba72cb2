"""Sums of the weights e^{−u²/2s} over whole numbers u, enclosed with proof (s = σ²).

Three ways, each with a bound for what it leaves out (how much that is can be set, to test the bounds):

- *directly* for small s: beyond K the weights fall faster than a geometric series;
- *Poisson summation* for the sum over all u: Z = √(2πs)·Σ_j e^{−2π²sj²}, fast for s ≥ 1;
- *Euler and Maclaurin* for tails and s ≥ 64: with f(x) = e^{−x²/2s} and m ≥ 1,
  Σ_{j≥a} f(j) = ∫_a^∞ f + f(a)/2 − Σ_{i≤m} B_{2i}/(2i)!·f^{(2i−1)}(a) + R,
  |R| ≤ 2ζ(2m)/(2π)^{2m}·∫|f^{(2m)}|, and f^{(n)}(x) = (−1)^n σ^{−n} He_n(x/σ) f(x) with
  ∫|He_n(t)| e^{−t²/2} dt ≤ √(2π·n!), since He_n has mean square n! under the normal law.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from flint import arb, ctx, fmpq

from holdfast.noise.precision import ball

# From here on Euler and Maclaurin's remainder can be made as small as e^{−(2πσ)²/2} ≤ 2^−1800.
_SMOOTH = 64
# Up to here a direct sum from 10σ on has at most some thousand terms.
_SHORT = 10_000


def _between(low: arb, high: arb) -> arb:
    return low.union(high)


def total(sigma2: Fraction) -> arb:
    """Enclose Z, the sum of the weights over all whole numbers."""
    if sigma2 < 1:
        return 1 + 2 * _direct(sigma2, 1, 0)
    sums = _dual(sigma2)
    return (2 * arb.pi() * ball(sigma2)).sqrt() * (1 + 2 * sums[0])


def variance(sigma2: Fraction) -> arb:
    """Enclose the variance of the law with these weights.

    By Poisson summation it is s − 4π²s²·Σ_j j²q_j / Σ_j q_j with q_j = e^{−2π²sj²} (differentiate log Z).
    """
    if sigma2 < 1:
        return 2 * _direct(sigma2, 1, 2) / total(sigma2)
    zeroth, second = _dual(sigma2)
    s = ball(sigma2)
    return s - 4 * arb.pi() ** 2 * s**2 * (2 * second) / (1 + 2 * zeroth)


def _dual(sigma2: Fraction, last: int | None = None) -> tuple[arb, arb]:
    """Enclose Σ_{j≥1} q_j and Σ_{j≥1} j²q_j, q_j = e^{−2π²sj²}, for s ≥ 1.

    Terms fall by more than 4e^{−6π²} < 1/2 each, so that those left out are at most twice the first of them.
    """
    exponent = -2 * arb.pi() ** 2 * ball(sigma2)
    if last is None:  # 2^(−prec) is e^{−2π²sj²} at j² = prec/(28.4 s)
        last = 1 + math.isqrt(int(ctx.prec / (28 * sigma2)))
    zeroth, second = arb(0), arb(0)
    for j in range(1, last + 1):
        term = (exponent * j**2).exp()
        zeroth, second = zeroth + term, second + j**2 * term
    rest = 2 * (exponent * (last + 1) ** 2).exp()
    return zeroth + _between(arb(0), rest), second + _between(arb(0), (last + 1) ** 2 * rest)


def _direct(sigma2: Fraction, a: int, power: int, last: int | None = None) -> arb:
    """Enclose Σ_{j≥a} j^power·e^{−j²/2s} for a ≥ 0 and power 0, or a ≥ 1, power 2 and s < 1.

    Beyond K the ratio of successive terms is at most r = ((K+2)/(K+1))^power·e^{−(2K+3)/2s}.
    """
    # The last term is at most 2^−prec times the first; K ≥ 4 keeps the ratio below 1/2 for power 2, s < 1.
    if last is None:
        last = max(math.isqrt(a * a + int(Fraction(14, 10) * sigma2 * ctx.prec)) + 1, a + 4)
    exponent = ball(-1 / (2 * sigma2))
    result = arb(0)
    for j in range(a, last + 1):
        result = result + j**power * (exponent * j**2).exp()
    first = (last + 1) ** power * (exponent * (last + 1) ** 2).exp()
    ratio = (ball(Fraction(last + 2, last + 1)) ** power) * (exponent * (2 * last + 3)).exp()
    return result + _between(arb(0), first / (1 - ratio))


def _orders(sigma2: Fraction) -> int:
    """Return m with √((2m)!)/(2πσ)^{2m} below 2^−prec, or the m after which it no longer falls."""
    log_step = math.log2(2 * math.pi) + math.log2(float(sigma2)) / 2
    orders, size = 0, 0.0
    while size > -ctx.prec:
        step = 0.5 * math.log2((2 * orders + 1) * (2 * orders + 2)) - 2 * log_step
        if step >= 0:
            break
        orders, size = orders + 1, size + step
    return orders


def _smooth(sigma2: Fraction, a: int, orders: int | None = None) -> arb:
    """Enclose Σ_{j≥a} e^{−j²/2s} by Euler and Maclaurin, to about 2^−prec of Z."""
    sigma = ball(sigma2).sqrt()
    t = a / sigma
    weight = (-(t**2) / 2).exp()
    if orders is None:
        orders = _orders(sigma2)
    result = sigma * (arb.pi() / 2).sqrt() * (t / arb(2).sqrt()).erfc() + weight / 2
    # factor = σ^{1−2i}/(2i)!, odd = He_{2i−1}(t), even = He_{2i−2}(t)
    even, odd, factor = arb(1), t, 1 / (2 * sigma)
    for i in range(1, orders + 1):
        result = result + arb(fmpq.bernoulli(2 * i)) * factor * odd * weight
        even = t * odd - (2 * i - 1) * even
        odd = t * even - 2 * i * odd
        factor = factor / (ball(sigma2) * (2 * i + 1) * (2 * i + 2))
    n = 2 * orders
    rest = 2 * arb(n).zeta() / (2 * arb.pi() * sigma) ** n * sigma * (2 * arb.pi() * arb.fac_ui(n)).sqrt()
    return result + _between(-rest, rest)


@dataclass(frozen=True)
class GaussianTails:
    """Upper tails of integer Gaussian noise (see `Tails`)."""

    sigma2: Fraction

    def at(self, a: int) -> arb:
        # Far out the direct sum is short, and its accuracy is relative to the tail, not to the whole.
        far = a * a > 100 * self.sigma2 and self.sigma2 < _SHORT
        direct = far or self.sigma2 < _SMOOTH
        part = _direct(self.sigma2, a, 0) if direct else _smooth(self.sigma2, a)
        return part / total(self.sigma2)

    def run(self) -> Iterator[arb]:
        """Enclose P(U ≥ 0), P(U ≥ 1), … in turn, each from the one before."""
        whole = total(self.sigma2)
        tail = (1 + 1 / whole) / 2
        weight = 1 / whole
        ratio = ball(-1 / (2 * self.sigma2)).exp()  # of the weights of a + 1 and a
        growth = ratio**2
        while True:
            yield tail
            tail, weight, ratio = tail - weight, weight * ratio, ratio * growth
