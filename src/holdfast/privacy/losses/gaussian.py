"""Continuous Gaussian noise: its exact trade between ε and δ, and the papers' classical formula.

*Law:* z = q(x) + N(0, Σ). With μ = max over differences d of ‖Σ^(−1/2) d‖₂ the mechanism is μ-Gaussian
private (Dong, Roth, Su 2022), and its exact curve is (Balle and Wang 2018)

    δ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ).

All functions compute in ball arithmetic and round to the safe side.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from flint import arb

from holdfast.arguments import Refused, positive, probability, rational, shown
from holdfast.privacy.rounding import at_most, ball, largest_double, outward, settled, smallest_double

#: Limits of the searches. A μ at its limit is still certain, only not the largest; an ε beyond is void.
LARGEST_MU = 1e6
LARGEST_EPSILON = 1e15


def not_negative(name: str, value: Any) -> Fraction:
    """Return a finite number at or above zero as an exact rational."""
    number = rational(name, value)
    if number < 0:
        raise Refused(f"{name} must not be negative, found {shown(value)}")
    return number


def _normal(x: Any) -> Any:
    """Return the standard normal distribution function Φ as a ball, accurate in both tails."""
    return (-x / arb(2).sqrt()).erfc() / 2


def curve(mu: Fraction, epsilon: Fraction) -> Any:
    """Return the ball of δ(ε) at the current precision; μ above 0."""
    return _curve(ball(mu), ball(epsilon))


def _curve(m: Any, e: Any) -> Any:
    return _normal(m / 2 - e / m) - e.exp() * _normal(-m / 2 - e / m)


def gaussian_delta(mu: Any, epsilon: Any) -> float:
    """Return the smallest double at or above the exact δ(ε) of a μ-Gaussian private mechanism."""
    m, e = not_negative("mu", mu), not_negative("epsilon", epsilon)
    if m == 0:
        return 0.0
    return min(1.0, outward(settled(lambda: curve(m, e))))


def gaussian_epsilon(mu: Any, delta: Any) -> float:
    """Return the smallest double ε for which δ(ε) ≤ δ certainly holds; 0 when it already holds there."""
    m, d = not_negative("mu", mu), probability("delta", delta)
    if m == 0 or at_most(lambda: curve(m, Fraction(0)), d):
        return 0.0

    def holds(epsilon: float) -> bool:
        return at_most(lambda: curve(m, Fraction(epsilon)), d)

    high = 1.0
    while not holds(high):
        high *= 2
        if high > LARGEST_EPSILON:
            return math.inf
    return smallest_double(holds, 0.0, high)


def gaussian_mu(epsilon: Any, delta: Any) -> float:
    """Return the largest double μ that is certainly (ε, δ)-private: noise σ = Δ₂/μ suffices."""
    # What holds at an ε holds at every larger one, which balls may not tell.
    e, d = min(not_negative("epsilon", epsilon), Fraction(LARGEST_EPSILON)), probability("delta", delta)

    def holds(mu: float) -> bool:
        return mu == 0 or at_most(lambda: curve(Fraction(mu), e), d)

    if holds(LARGEST_MU):
        return LARGEST_MU
    return largest_double(holds, 0.0, LARGEST_MU)


def classical_sigma(l2: Any, epsilon: Any, delta: Any) -> float:
    """Return the papers' σ = Δ₂(1 + √(1 + ln 1/δ))/ε (SDP Lemma 13, TV Prop 7), rounded up.

    *Guarantee:* none by itself: the claim is false for small δ or large ε. Use `classical_delta` for the δ
    that this σ truly has.
    """
    width, e, d = positive("l2", l2), positive("epsilon", epsilon), probability("delta", delta)
    return outward(settled(lambda: ball(width) * (1 + (1 - ball(d).log()).sqrt()) / ball(e)))


def classical_delta(epsilon: Any, delta: Any) -> float:
    """Return the true δ at ε of noise calibrated by the classical formula for (ε, δ), by Balle and Wang.

    Sensitivity cancels: μ = Δ₂/σ = ε/(1 + √(1 + ln 1/δ)).
    """
    e, d = positive("epsilon", epsilon), probability("delta", delta)

    def compute() -> Any:
        return _curve(ball(e) / (1 + (1 - ball(d).log()).sqrt()), ball(e))

    return min(1.0, outward(settled(compute)))
