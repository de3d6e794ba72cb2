"""A law of noise and what the output must satisfy: what a way of computing `given` gets to see."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Bools, Floats, Ints, Owner
from holdfast.constraints import NullSpace, System
from holdfast.evidence import Evidence
from holdfast.noise import Independent
from holdfast.randomness import Stream
from holdfast.trees import Forest

#: The total variation within which a way that is not exact must draw, for all outputs together, unless less is needed.
TAU = 1e-6
#: The least and the largest that can be asked for: doubles are no finer, and a coarser one is worth nothing.
LEAST_TAU, LARGEST_TAU = 1e-15, 1e-3
#: The δ that the distance may cost where none was asked for.
PRICE = Fraction(1, 10**5)


@dataclass(frozen=True, eq=False)
class Problem(Owner):
    """Draw noise U from `law` given that truth + U satisfies `system`.

    Equalities and invariants ask for A U = 0, since the truth satisfies them itself. Where there are only
    equalities, the law of U does not depend on the truth. Truth and noise count in steps of `unit`. A way that is not
    exact draws within total variation `tau` of the law, rounding included.
    """

    law: Independent
    system: System
    unit: Fraction = Fraction(1)
    tau: float = TAU

    @cached_property
    def space(self) -> NullSpace:
        return self.system.null_space()

    @cached_property
    def forest(self) -> Forest | None:
        """The hierarchy, if the system is one with exact or fixed outputs and bounds."""
        return Forest.of(self.system)

    @property
    def chain_tau(self) -> float:
        """What couplings of chains in whole numbers are asked for: the other half is left to rounding."""
        return self.tau / 2

    @property
    def depends_on_data(self) -> bool:
        return self.system.has_inequalities or bool(self.system.branches)

    def uniform_scale(self) -> bool:
        return len(self.law.laws) == 1 and self.law.laws[0] is not None


Truth = Ints | Floats | None


def distance_of(evidence: Iterable[Evidence]) -> Fraction:
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


# When drawing again is given up: after a number of tries that a coin decides, so that a refusal is an output too.
#
# Noise that does not satisfy what must hold is drawn again. A fixed number of tries would tell how rare success is: the
# chance of a refusal, (1 − p)^N, differs between neighbours by any factor. Here each try that fails is the last one
# with
# probability γ, whatever the data.
#
# *Guarantee* (docs/theory/walks.md, Proposition 6): for Laplace noise, and tries whose law given the equalities does
# not
# depend on the data, the statement about the conditional law holds for the release *or refusal*, with the same ε.


def last_tries(count: int, bits: int, stream: Stream) -> Bools:
    """Which of so many tries are the last ones if they fail: each with probability 2^−bits, exactly."""
    return np.asarray(stream.words(count) >> np.uint64(64 - bits) == 0)
