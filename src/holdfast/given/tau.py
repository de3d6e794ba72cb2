"""How near draws must come to the law that was asked for, when they do not have that very law, and what that costs."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from holdfast.arguments import Refused
from holdfast.evidence import Evidence

#: The total variation within which a way that is not exact must draw, for all outputs together, unless less is needed.
TAU = 1e-6
#: What is said about draws whose distance from the law was measured by coupled chains.
NEAR_WORDS = (
    "the draws come from a walk that runs until L-lag couplings put it within total variation {tau:.3g} of the law "
    "this statement is about, at 99 % confidence; this is measured and not proved"
)
#: The least and the largest that can be asked for: doubles are no finer, and a coarser one is worth nothing.
LEAST_TAU, LARGEST_TAU = 1e-15, 1e-3
#: The δ that the distance may cost where none was asked for.
PRICE = Fraction(1, 10**5)


def distance_of(evidence: Iterable[Evidence]) -> Fraction:
    """The distance of all outputs together."""
    return sum((Fraction(each.distance) for each in evidence), Fraction(0))


def needed_tau(epsilon: float, price: Fraction) -> float:
    """The largest power of ten, TAU at most, at which the δ that it costs at this ε, (1 + e^ε)·τ, is within a price."""
    if epsilon > 700:
        return LEAST_TAU
    most = math.log10(float(price)) - math.log10(1 + math.exp(epsilon))
    return min(TAU, max(LEAST_TAU, float(f"1e{math.floor(most)}")))


def refuse_rounding(tau: float, each: float, steps: int) -> None:
    """Refuse draws of so many steps if rounding, which adds `each` to the distance in one, takes over half of tau."""
    if each * steps > tau / 2:
        raise Refused(
            f"rounding in {steps} steps does not let these draws come within total variation {tau:.3g} of their law: "
            f"ask for tau={4 * each * steps:.1g} or more, or use onto()"
        )
