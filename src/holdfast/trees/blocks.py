"""Blocks of alike leaves under one parent: their joint message, and how a total is spread over them.

Integer Laplace leaves without bounds (THEORY H3) and with noise ≥ 0 (zero counts: geometric) have closed forms; other
alike leaves are halved until one is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from flint import arb, ctx

from holdfast.noise import IntegerGaussian, IntegerLaplace
from holdfast.noise.precision import ball
from holdfast.trees.choice import Support
from holdfast.trees.message import Message

#: Longest window of one leaf's message; wider noise is refused before memory is taken.
LONGEST = 10_000


@dataclass(frozen=True)
class Leaf:
    """One kind of leaf: its law (None: not measured) and the bounds on its noise (None: no bound)."""

    law: IntegerLaplace | IntegerGaussian | None
    low: int | None
    high: int | None

    @property
    def support(self) -> Support:
        """The noise it can have."""
        return Support(self.low, self.high)

    @property
    def free(self) -> bool:
        """Integer Laplace without bounds: THEORY H3 applies to blocks."""
        return isinstance(self.law, IntegerLaplace) and self.low is None and self.high is None

    @property
    def geometric(self) -> bool:
        """Integer Laplace with noise ≥ 0 only: a block's total is spread uniformly."""
        return isinstance(self.law, IntegerLaplace) and self.low == 0 and self.high is None

    def message(self) -> Message:
        """The leaf's weights at the working precision, cut to its bounds."""
        assert self.law is not None
        reach = reach_at(self.law, int(ctx.prec))
        low = -reach if self.low is None else max(self.low, -reach)
        high = reach if self.high is None else min(self.high, reach)
        values = tuple(weight(self.law, u) for u in range(low, high + 1))
        tail = tail_beyond(self.law, reach)
        below = arb(0) if self.low is not None and self.low >= -reach else tail
        above = arb(0) if self.high is not None and self.high <= reach else tail
        if not values:  # bounds that lie beyond the reach: only that almost nothing is there is known
            return Message(low, (arb(0),), tail, tail)
        return Message(low, values, below, above)


def weight(law: IntegerLaplace | IntegerGaussian, u: int) -> arb:
    """e^{−|u|/λ} or e^{−u²/2σ²}: at most 1, falling away from 0."""
    known = _weights(law, int(ctx.prec))
    while len(known) <= abs(u) < 2 * LONGEST:
        if isinstance(law, IntegerLaplace):
            known.append(known[-1] * known[1] if len(known) > 1 else (-ball(1 / law.scale)).exp())
        else:
            known.append((-ball(Fraction(len(known) ** 2) / (2 * law.sigma2))).exp())
    if abs(u) < len(known):
        return known[abs(u)]
    exponent = Fraction(abs(u)) / law.scale if isinstance(law, IntegerLaplace) else Fraction(u * u) / (2 * law.sigma2)
    return (-ball(exponent)).exp()


@lru_cache(maxsize=64)
def _weights(law: IntegerLaplace | IntegerGaussian, bits: int) -> list[arb]:
    """The weights of 0, 1, 2, … found so far at one precision; balls grow by one rounding per step."""
    del law, bits
    return [arb(1)]


def reach_at(law: IntegerLaplace | IntegerGaussian, bits: int) -> int:
    """How far from 0 weights above 2^−(bits+32) lie, about."""
    need = Fraction(7 * (bits + 32), 10)  # a little above log(2)·bits
    if isinstance(law, IntegerLaplace):
        return int(need * law.scale) + 1
    square = 2 * need * law.sigma2
    return int(float(square) ** 0.5) + 2


def tail_beyond(law: IntegerLaplace | IntegerGaussian, reach: int) -> arb:
    """An upper bound on Σ_{u > reach} of the weights: a geometric series with the first ratio, which only falls."""
    first, second = weight(law, reach + 1), weight(law, reach + 2)
    return (first / (1 - second / first)).upper()
