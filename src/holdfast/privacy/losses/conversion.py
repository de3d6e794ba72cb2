"""Concentrated privacy: from ρ to (ε, δ) and back, and from pure ε to ρ.

A mechanism is ρ-zCDP when its Rényi divergence satisfies D_α ≤ αρ for every order α > 1 (Bun and Steinke
2016). `orders="integer"` marks statements that are proved at whole orders α ≥ 2 only (THEORY H6); they
are converted with whole orders only.

*Guarantee:* D_α ≤ τ implies (ε, δ) with δ = e^((α−1)(τ−ε)) (1−1/α)^α / (α−1) (Canonne, Kamath and Steinke
2020); for ρ-zCDP take τ = αρ and the best α. Any α gives a true bound, so
the search for α may be done in floating point; the bound at the chosen α is computed in ball arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

from holdfast.arguments import one_of, probability
from holdfast.privacy.losses.gaussian import not_negative
from holdfast.privacy.rounding import at_most, ball, largest_double, outward, settled

ORDERS = ("all", "integer")
#: The order is searched as 1 + 2**x for x in this range; ρ below 1e-25 would want a larger one.
SMALLEST_STEP, LARGEST_STEP = -60.0, 90.0


def log_delta(order: Fraction, divergence: Any, epsilon: Fraction) -> Any:
    """Return the ball of log δ from D_α ≤ divergence (a ball) at one order α > 1."""
    a = ball(order)
    return (a - 1) * (divergence - ball(epsilon)) + (a - 1) * (1 - 1 / a).log() - a.log()


def epsilon_at(order: Fraction, divergence: Any, delta: Fraction) -> Any:
    """Return the ball of ε from D_α ≤ divergence (a ball) at one order α > 1."""
    a = ball(order)
    return divergence - (a * ball(delta)).log() / (a - 1) + (1 - 1 / a).log()


def _turning_point(slope: Callable[[float], float]) -> float:
    """Return the order where an increasing slope changes sign, searched on a logarithmic scale of α − 1."""
    low, high = SMALLEST_STEP, LARGEST_STEP
    for _ in range(80):
        middle = (low + high) / 2
        if slope(2.0**middle) < 0:
            low = middle
        else:
            high = middle
    return 1.0 + 2.0**high


def _candidates(order: float, orders: str) -> list[Fraction]:
    """Return the orders to try: the real optimum, or its whole neighbours (the objective is unimodal)."""
    if orders == "all":
        return [Fraction(max(order, 1.0 + 2.0**-50))]
    below = max(2, math.floor(order))
    return [Fraction(below), Fraction(below + 1)]


def rho_to_delta(rho: Any, epsilon: Any, orders: str = "all") -> float:
    """Return a double at or above the δ that ρ implies at ε (Canonne, Kamath and Steinke 2020)."""
    r, e = not_negative("rho", rho), not_negative("epsilon", epsilon)
    one_of("orders", orders, ORDERS)
    if r == 0:
        return 0.0
    return min(1.0, *(outward(settled(partial(_delta, r, e, a))) for a in _delta_orders(r, e, orders)))


def _delta(rho: Fraction, epsilon: Fraction, order: Fraction) -> Any:
    return log_delta(order, ball(order * rho), epsilon).exp()


def _epsilon(rho: Fraction, delta: Fraction, order: Fraction) -> Any:
    return epsilon_at(order, ball(order * rho), delta)


def _delta_orders(rho: Fraction, epsilon: Fraction, orders: str) -> list[Fraction]:
    r, e = float(rho), float(epsilon)
    # d(log δ)/dα with s = α − 1; log δ is convex in α.
    best = _turning_point(lambda s: (2 * s + 1) * r - e + (math.log(s) - math.log1p(s)))
    return _candidates(best, orders)


def rho_to_epsilon(rho: Any, delta: Any, orders: str = "all") -> float:
    """Return a double at or above the ε that ρ implies at δ (Canonne, Kamath and Steinke 2020)."""
    r, d = not_negative("rho", rho), probability("delta", delta)
    one_of("orders", orders, ORDERS)
    if r == 0:
        return 0.0
    rate, level = float(r), _log(d)
    # dε/dα with s = α − 1; its zero solves s²ρ = −log(αδ), which has one root.
    best = _turning_point(lambda s: rate * s * s + math.log1p(s) + level)
    return max(
        0.0,
        min(outward(settled(partial(_epsilon, r, d, a))) for a in _candidates(best, orders)),
    )


def rho_for(epsilon: Any, delta: Any, orders: str = "all") -> float:
    """Return the largest double ρ that certainly implies (ε, δ) by the conversion above; it may be 0."""
    e, d = not_negative("epsilon", epsilon), probability("delta", delta)
    one_of("orders", orders, ORDERS)

    def holds(rho: float) -> bool:
        exact = Fraction(rho)
        return rho == 0 or any(at_most(partial(_delta, exact, e, a), d) for a in _delta_orders(exact, e, orders))

    high = 2.0 * (float(e) + 1.0) + 2.0
    while holds(high):
        high *= 2
    return largest_double(holds, 0.0, high)


def _log(value: Fraction) -> float:
    """Return the logarithm of a positive fraction as a float, also where the fraction underflows."""
    return math.log(value.numerator) - math.log(value.denominator)


def pure_rho(epsilon: Any) -> float:
    """Return the smallest ρ for which pure ε implies ρ-zCDP: ε·tanh(ε/2), at most ε²/2, rounded up.

    *Guarantee:* randomized response is the worst case at every order (Jensen), D_α ≤
    log(cosh((α−½)ε)/cosh(ε/2))/(α−1); log cosh(ε√s) is concave in s = (α−½)², and α(α−1) = s − ¼, so D_α/α is
    at most its slope at s = ¼, which is ε·tanh(ε/2) (docs/theory/calibration; improves ε²/2 of Bun and
    Steinke 2016).
    """
    e = not_negative("epsilon", epsilon)
    return outward(settled(lambda: ball(e) * (ball(e) / 2).tanh())) if e else 0.0
