"""Error bars beside a table: a private draw whose errors have a public law, and what is certain (THEORY H10).

Proofs, and why nothing here costs privacy: docs/theory/error-bars.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from holdfast.arguments import LARGEST, probability
from holdfast.arrays import Array, Floats, Ints
from holdfast.constraints import System
from holdfast.constraints.possible.propagation import carried
from holdfast.constraints.system.own_sums import OwnSums
from holdfast.noise.spread import Spread
from holdfast.randomness import Stream

#: Rounds in which what is certain of one figure is carried to others: more than a hierarchy has levels, up and down.
ROUNDS = 64
#: Relative error of sums of real figures; ends of intervals that miss a whole number by no more are on it.
TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class ErrorBars:
    """What the published figures tell about the true ones.

    `centre`: a private draw, or its best linear estimate, whose errors have the law `spread`, which does not depend on
    the data; None where no such draw may be published. `low` and `high`: limits that are certain, from bounds that hold
    for all data and from exact figures, infinite where there is none. `whole`: the true figures are whole numbers.
    `noise(size, stream)` draws errors of `centre`; None where there is no law of them.
    """

    centre: npt.NDArray[Any]
    spread: Spread | None
    low: Floats
    high: Floats
    whole: bool
    noise: Callable[[int, Stream], npt.NDArray[Any]] | None = None

    def interval(self, confidence: Any) -> Floats:
        """Return ends, (n, 2), between which each true figure lies with at least this probability.

        Without a known law of the errors they are the certain limits.
        """
        if self.spread is None:
            probability("confidence", confidence)
            return np.column_stack([self.low, self.high])
        # Errors are symmetric, so truth = draw − error lies between draw − q(1−tail) and draw + q(1−tail).
        reach = self.reach(confidence)
        return self.within(self.centre - reach, self.centre + reach, self.low, self.high)

    def reach(self, confidence: Any) -> Floats:
        """Return how far intervals reach to either side of `centre`, by the law of its errors."""
        assert self.spread is not None
        tail = (1 - float(probability("confidence", confidence))) / 2
        found = np.abs(self.spread.quantiles(tail))
        return np.maximum(found, np.abs(self.spread.quantiles(1 - tail)), out=found)

    def within(self, low: Any, high: Any, least: Any, most: Any) -> Floats:
        """Cut intervals to limits that are certain; the nearest allowed point where nothing is left (THEORY H10)."""
        ends = np.column_stack([low, high]).astype(np.float64)
        if self.whole:
            room = TOLERANCE * np.maximum(1.0, np.abs(ends))
            inner = np.column_stack([np.ceil(ends[:, 0] - room[:, 0]), np.floor(ends[:, 1] + room[:, 1])])
            between = inner[:, 0] > inner[:, 1]  # two whole numbers: the nearer one
            inner[between] = np.rint(ends[between].mean(axis=1))[:, None]
            ends = inner
        return np.clip(ends, np.reshape(least, (-1, 1)), np.reshape(most, (-1, 1)))

    def certain(self, weights: Floats) -> tuple[float, float]:
        """Limits of a weighted sum of the true figures that are certain."""
        if not weights.any():
            return 0.0, 0.0
        used = weights != 0
        ends = weights[used, None] * np.column_stack([self.low[used], self.high[used]])
        return float(ends.min(axis=1).sum()), float(ends.max(axis=1).sum())


def certain(system: System | None, values: npt.NDArray[Any], *, whole: bool) -> tuple[Floats, Floats]:
    """Limits of every true figure that follow from bounds for all data and from the exact figures in `values`.

    Bounds are carried from row to row; what is left is always true, if not always the narrowest.
    """
    n = len(values)
    if system is None:
        return np.full(n, -np.inf), np.full(n, np.inf)
    low, high = (_outward(side, up) for side, up in ((system.lower, False), (system.upper, True)))
    equal, given, more = system.equalities, system.invariants, system.inequalities
    exact = np.asarray(given.A @ np.asarray(values, dtype=np.float64)) if given.count else np.zeros(0)
    if values.dtype.kind == "i" and given.count:
        exact = np.asarray(given.A @ values)
    room = 0.0 if whole else TOLERANCE * np.maximum(1.0, np.abs(exact))
    least = np.rint(exact) if whole else np.floor(exact - room)
    most = np.rint(exact) if whole else np.ceil(exact + room)
    equal = equal.others if isinstance(equal, OwnSums) else equal  # what sums alone would carry on is left out
    A = sparse.csr_array(sparse.vstack([equal.A, -equal.A, given.A, -given.A, more.A], format="csr"))
    sides = [_outward(equal.b, False), -_outward(equal.b, True), _whole(least), -_whole(most), _outward(more.b, False)]
    if A.nnz:
        found = carried(A, np.concatenate(sides), (low, high), ROUNDS, whole=whole)
        if (found[0] <= found[1]).all():
            low, high = found
    ends = [np.where(np.abs(side) >= LARGEST, sign * np.inf, side) for side, sign in ((low, -1.0), (high, 1.0))]
    alone = np.flatnonzero(np.diff(given.A.indptr) == 1) if given.count else np.zeros(0, dtype=np.int64)
    if alone.size:  # an exact figure by itself is known to the last digit
        at = given.A.indices[given.A.indptr[alone]]
        for end in ends:
            end[at] = values[at]
    return ends[0], ends[1]


def _outward(numbers: Array, up: bool) -> Ints:
    """Whole numbers at or outside exact ones, at most 2**62 in size."""
    if numbers.dtype.kind == "i":
        return np.asarray(numbers, dtype=np.int64)
    rounded = math.ceil if up else math.floor
    return np.array([rounded(Fraction(value)) for value in numbers.tolist()], dtype=np.int64)


def _whole(numbers: Array) -> Ints:
    return np.clip(numbers, -float(LARGEST), float(LARGEST)).astype(np.int64)
