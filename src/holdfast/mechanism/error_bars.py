"""Error bars beside a table: a private draw whose errors have a public law, and what is certain (THEORY H10).

Proofs, and why nothing here costs privacy: docs/theory/error-bars.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from holdfast.arguments import LARGEST, Refused, probability
from holdfast.arrays import Array, Floats, Ints
from holdfast.constraints import System
from holdfast.constraints.possible.propagation import carried
from holdfast.constraints.system.parts import EQUALITIES
from holdfast.noise.spread import FEWEST, STUDY, Spread, simulated_quantiles
from holdfast.randomness import seeded

if TYPE_CHECKING:
    from holdfast.mechanism.mechanism import Mechanism

#: Rounds in which what is certain of one figure is carried to others: more than a hierarchy has levels, up and down.
ROUNDS = 64
#: Relative error of sums of real figures; ends of intervals that miss a whole number by no more are on it.
TOLERANCE = 1e-9
#: Errors that are simulated in all for sums of figures.
MOST_SUMMED = 1 << 22


@dataclass(frozen=True, eq=False)
class ErrorBars:
    """What the published figures tell about the true ones.

    `centre`: a private draw, or its best linear estimate, whose errors have the law `spread`, which does not depend on
    the data; None where no such draw may be published. `low` and `high`: limits that are certain, from bounds that hold
    for all data and from exact figures, infinite where there is none. `whole`: the true figures are whole numbers.
    """

    centre: npt.NDArray[Any]
    spread: Spread | None
    low: Floats
    high: Floats
    whole: bool

    def interval(self, confidence: Any) -> Floats:
        """Return ends, (n, 2), between which each true figure lies with at least this probability.

        Without a known law of the errors they are the certain limits.
        """
        tail = (1 - float(probability("confidence", confidence))) / 2
        if self.spread is None:
            return np.column_stack([self.low, self.high])
        # Errors are symmetric, so truth = draw − error lies between draw − q(1−tail) and draw + q(1−tail).
        reach = np.maximum(np.abs(self.spread.quantiles(tail)), np.abs(self.spread.quantiles(1 - tail)))
        return self.within(self.centre - reach, self.centre + reach, self.low, self.high)

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


def sum_intervals(mechanism: Mechanism, bars: ErrorBars, sums: Any, confidence: Any) -> Floats:
    """Return ends, (k, 2), for sums of true figures, `sums` a sparse matrix of 0 and 1, (k, n).

    Measured on simulated errors; for many outputs the sum of the figures' own intervals, each at its share of what may
    be missed (a union bound).
    """
    tail = (1 - float(probability("confidence", confidence))) / 2
    low, high = sums @ bars.low, sums @ bars.high
    linear = mechanism.linear_part
    if bars.spread is None or linear is None:
        return np.column_stack([low, high])
    middle = sums @ np.asarray(bars.centre, dtype=np.float64)
    reach = np.zeros(sums.shape[0])
    if sums.shape[1] * FEWEST <= MOST_SUMMED:
        size = min(MOST_SUMMED // sums.shape[1], STUDY)
        errors = simulated_quantiles(lambda: np.asarray(sums @ linear.noise(size, seeded(0)).T).T)
        try:
            reach = np.maximum(np.abs(errors(tail)), np.abs(errors(1 - tail)))
        except Refused:  # too rare for so few simulated errors
            reach = np.zeros(0)
    if not reach.any():
        parts = np.diff(sums.indptr)
        for count in np.unique(parts[parts > 0]).tolist():
            each = np.maximum(*(np.abs(bars.spread.quantiles(p)) for p in (tail / count, 1 - tail / count)))
            reach = (
                np.where(parts == count, sums @ each, reach) if reach.size else np.where(parts == count, sums @ each, 0)
            )
    return bars.within(middle - reach, middle + reach, low, high)


def possible(mechanism: Mechanism) -> bool:
    """Whether a draw with a public law of errors can be published beside the tables of a mechanism."""
    return not mechanism.source.depends_on_data


def linear_part(mechanism: Mechanism) -> Mechanism | None:
    """The mechanism whose draw is published with a table and has a public law of errors; None where there is none.

    The mechanism itself where its law does not depend on the data. Otherwise what was drawn before bounds moved it; of
    independent noise, that draw moved onto the equalities alone, weighted by the noise: its best linear estimate.
    """
    if mechanism.source.depends_on_data:
        return None
    if not mechanism.moves or (not mechanism.depends_on_data and mechanism.unit_spread() is not None):
        return mechanism
    drawn = replace(mechanism, moves=())
    asked = mechanism.asked
    if mechanism.source.system is not None or asked is None:
        return drawn
    kept = tuple(part for part in asked.parts if part.kind in EQUALITIES or part.origin == "invariant")
    return drawn.onto(replace(asked, parts=kept, branches=()), integer=False) if kept else drawn


def error_bars(mechanism: Mechanism, values: npt.NDArray[Any], draw: npt.NDArray[Any] | None) -> ErrorBars:
    """What published values, and the draw that is published beside them if there is one, tell about the truth."""
    whole = mechanism.base.law.integer and mechanism.base.unit == 1
    low, high = certain(mechanism.held, values, whole=whole)
    centre, spread = values, None
    try:
        linear = mechanism.linear_part
        if linear is mechanism:
            spread = mechanism.unit_spread()
        elif linear is not None and draw is not None:
            spread = linear.unit_spread()
            centre = _estimated(linear, values, draw, whole=whole)
    except Refused:  # what is not measured is not determined without the bounds
        spread = None
    return ErrorBars(centre, spread, low, high, whole)


def _estimated(linear: Mechanism, values: npt.NDArray[Any], draw: npt.NDArray[Any], *, whole: bool) -> npt.NDArray[Any]:
    """The draw, moved so that all sums and the exact figures of the published table hold."""
    if not linear.moves:
        return draw
    problem, query = linear.moves[0].problem, linear.query
    sides = problem.space.sides_of(np.asarray(values) if linear.base.unit == 1 else values / float(linear.base.unit))
    right = np.rint(sides.astype(np.float64)).astype(np.int64) if whole and sides.dtype.kind != "i" else sides
    steps = query.in_steps("draw", draw, (query.n,), whole=linear.base.law.integer)
    return np.asarray(query.in_units(linear.moves[0].way.image(problem, steps[None], right, None)[0]))


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
