"""The named parts a constraint is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from holdfast.arguments import LARGEST, Refused
from holdfast.arrays import Array, Ints
from holdfast.constraints.system.rows import Rows
from holdfast.exact.rationals import ExactVector

Origin = Literal["structural", "invariant"]
Kind = Literal["consistent", "nonnegative", "between", "ordered", "fixed", "equals", "at_least", "invariant"]

#: Kinds whose rows say A z = b; ordered and at_least say A z ≥ b; an invariant says C z = C q(x).
EQUALITIES = frozenset({"consistent", "fixed", "equals"})
#: The source of a part that follows from others (`hidden`): a contradiction is named without it.
FOLLOWS = "follows from other parts"
#: How many positions a name lists before it says how many more there are.
_LISTED = 6


def listing(positions: Sequence[int] | Array) -> str:
    """Return positions as text such as [0, 3] or, shortened, [0, 1, 2, 3, 4, 5 and 94 more]."""
    shown = ", ".join(str(int(position)) for position in positions[:_LISTED])
    rest = len(positions) - _LISTED
    return f"[{shown} and {rest} more]" if rest > 0 else f"[{shown}]"


@dataclass(frozen=True, eq=False)
class Bounds:
    """Inclusive bounds: at every position (`at` None) or at the listed ones; ∓2**62 stands for no bound.

    `low` and `high` are exact and hold one entry per listed position, or a single entry for all positions.
    """

    at: Ints | None
    low: ExactVector
    high: ExactVector

    def applied(self, n: int) -> tuple[ExactVector, ExactVector]:
        """Return the bounds on all n coordinates."""
        low: ExactVector = np.full(n, -LARGEST, dtype=self.low.dtype)
        high: ExactVector = np.full(n, LARGEST, dtype=self.high.dtype)
        where = slice(None) if self.at is None else self.at
        low[where] = self.low
        high[where] = self.high
        return low, high


@dataclass(frozen=True, eq=False)
class Part:
    """One thing that must hold, under the name by which refusals speak of it.

    Exactly one of `rows` and `bounds` is there. `n` is the number of coordinates if the part knows it, and
    `least_n` the least number that it fits. `factors` are what the rows of an invariant were multiplied by to be
    whole (None: 1). `source` is the tree, query or set of exact figures it was made of.
    """

    name: str
    kind: Kind
    least_n: int
    n: int | None = None
    origin: Origin = "structural"
    rows: Rows | None = None
    bounds: Bounds | None = None
    rational: bool = True
    factors: list[int] | None = None
    source: Any = field(default=None, repr=False)

    def __str__(self) -> str:
        return self.name

    def refuse_unless_fits(self, n: int) -> None:
        """Refuse a table of n values if this part speaks of another number of them."""
        if self.n is not None and self.n != n:
            raise Refused(f"{self.name} is about {self.n} values, but there are {n}")
        if self.least_n > n:
            raise Refused(f"{self.name} names position {self.least_n - 1}, but there are only {n} values")

    def irrational_sentence(self) -> str | None:
        """Return the sentence that refuses this part where exact rationals are needed, or None."""
        if self.rational:
            return None
        return (
            f"{self.name} holds a number that is not a simple fraction, so whole-number noise cannot "
            "keep it; give the entries as integers or fractions, or use integer=False"
        )
