"""A certified supremum where no closed form is known: few free directions, few inequalities, any shape.

With integer noise, c(x) depends only on the slacks s = G·x − h ≥ 0 of the inequalities: c = Σ of the weights of the
noise u on the lattice of the equalities with G·u ≥ −s. It grows with every slack. So on a box of slacks,
log c(s + G·d)/c(s) is at most log of c at the upper corner moved by G·d over c at the lower corner. Boxes are split
where this bound is largest; whenever one stops, the largest bound left holds for all tables. Proof:
docs/theory/orders-and-lines.md, §5.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import numpy.typing as npt
from flint import arb

from holdfast.arguments import LARGEST, Refused
from holdfast.arrays import Ints
from holdfast.constraints import System
from holdfast.given.prices.bounds import PRECISION
from holdfast.given.prices.lines import along_lines
from holdfast.noise.precision import ball, working_precision
from holdfast.privacy import Additive, Differences, Guarantee

Slacks = tuple[int, ...]
Move = tuple[float, float]  # ε_d, and what is known to come on top at most

#: Free directions, inequalities, outputs and kinds of changes up to which slacks are searched.
MOST_DIRECTIONS, MOST_ROWS, MOST_OUTPUTS, MOST_CHANGES = 4, 16, 16, 400
#: Places that are looked at for points of the lattice, and points that are kept.
MOST_PLACES, MOST_POINTS = 2_500_000, 25_000
#: Boxes that are split at most, comparisons that this may take, and the share of ε at which the bound is close enough.
MOST_BOXES, MOST_COMPARISONS, CLOSE = 400, 150_000_000, 0.01
#: An open end is first parted this many times finer than the noise of its row spreads.
PARTS = 4
#: Places that are looked at in one go.
TOGETHER = 1 << 17
#: Points that weigh less than this are counted with what is cut off, relative to the weight 1 of no noise.
LEAST_WEIGHT = 1e-9
#: About so much is cut off, relative to the same.
CUT_OFF = 5e-4
#: Relative rounding of sums of MOST_PLACES positive doubles, each right to 50 units in its last place: a third of this
#: (docs/theory/orders-and-lines.md, §5).
ROUNDING = 1e-9
#: Weights below this are taken for it, where doubles end.
LEAST_DOUBLE = 1e-290
#: Rows at the points that are looked at take no larger values.
LARGEST_VALUE = 1 << 16
#: No end of a slack: far beyond the largest value.
NEVER = 1 << 40


def slack_price(base: Additive, system: System, differences: Differences, **words: Any) -> Guarantee | None:
    """The guarantee of integer Laplace noise given few inequalities in few free directions; None where they are many.

    Guarantee (docs/theory/orders-and-lines.md, Proposition 6): at least the supremum over all tables of
    ε_d + log(c(x + d)/c(x)), never above 2ε.
    """
    if base.law.kind != "laplace" or not base.law.integer or system.n > MOST_OUTPUTS or base.query.grid is not None:
        return None
    slopes = _slopes(system)
    changes = _changes(base, system, differences)
    if slopes is None or changes is None:
        return None
    points = _Points.of(base, system, slopes)
    if points is None:
        return None
    rates = [base.inverse_scales[k] for k in base.law.complete.tolist()]
    moves: dict[Slacks, Move] = {}
    for change in changes:
        loss = sum((rate * abs(int(d)) for rate, d in zip(rates, change, strict=True)), Fraction(0))
        step = tuple(int(s) for s in slopes @ change)
        extra = _along_lines(loss, slopes, change, rates)
        earlier = moves.get(step, (0.0, 0.0))
        moves[step] = (max(_double(loss), earlier[0]), max(extra, earlier[1]))
    bound = _supremum(points, moves)
    words["because"] = "a certified supremum over the slacks of all tables (docs/theory/orders-and-lines.md)"
    twice = 2 * float(base.loss(differences).value)
    return None if bound >= twice else base.pure(Fraction(bound), **words)


def _slopes(system: System) -> Ints | None:
    """The rows G of all inequalities, bounds included; None where they are many or none."""
    if system.branches:
        return None
    low, high = np.flatnonzero(system.lower > -LARGEST), np.flatnonzero(system.upper < LARGEST)
    rows = system.inequalities.count + low.size + high.size
    if rows > MOST_ROWS or rows == 0:
        return None
    unit = np.eye(system.n, dtype=np.int64)
    slopes = np.vstack([system.inequalities.A.toarray(), unit[low], -unit[high]]).astype(np.int64)
    return slopes // np.maximum(np.gcd.reduce(slopes, axis=1, keepdims=True), 1)


def _changes(base: Additive, system: System, differences: Differences) -> Ints | None:
    """All changes that keep the equalities and the exact figures, one for each; None where they are many."""
    cells, records = base.query.cells, differences.neighbours.records
    if cells is None or not base.query.integer or (2 * cells) ** records > 40 * MOST_CHANGES or cells**2 > MOST_CHANGES:
        return None
    try:
        found = np.asarray(base.query.differences(differences.neighbours), dtype=np.int64)
    except Refused:
        return None
    kept = ~np.asarray(system.null_space().rows @ found.T).any(axis=0) & found.any(axis=1)
    found = found[kept]
    both = np.unique(np.vstack([found, -found]), axis=0)
    return both if 0 < len(both) <= MOST_CHANGES else None


@dataclass(eq=False)
class _Points:
    """Noise on the lattice of the equalities: G·u of each point (rows, count), its weight, and the weight left out."""

    values: Ints
    weights: npt.NDArray[np.float64]
    left_out: float
    kept: dict[Slacks, float] = field(default_factory=dict)
    gains: dict[tuple[Slacks, Slacks, Slacks], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        spread = np.sqrt((self.values.astype(np.float64) ** 2) @ self.weights / self.weights.sum())
        self.strides = [max(1, round(each / PARTS)) for each in spread]
        self.values = np.ascontiguousarray(self.values, dtype=np.int32)
        self.ends = (-self.values.min(axis=1)).tolist()  # slacks from which a row holds at every point

    def allowed(self, limits: Iterable[int]) -> npt.NDArray[np.bool_]:
        """Which points have no row below minus its limit."""
        found = np.ones(self.weights.size, dtype=bool)
        for values, limit, end in zip(self.values, limits, self.ends, strict=True):
            if limit < end:
                found &= values >= -limit
        return found

    @classmethod
    def of(cls, base: Additive, system: System, slopes: Ints) -> _Points | None:
        """List the points that weigh something; None where they are many."""
        basis = np.asarray(system.null_space().lattice_basis().toarray(), dtype=np.int64)
        if not 0 < basis.shape[1] <= MOST_DIRECTIONS:
            return None
        which = base.law.complete
        rates = [base.inverse_scales[int(law)] for law in which]
        chosen = _independent(basis, rates)
        if chosen is None:
            return None
        slow = np.array([float(rates[i]) for i in chosen])
        widths = np.ceil(np.log(len(chosen) * np.prod(1 / np.tanh(slow / 2)) / CUT_OFF) / slow)
        if np.prod(2 * widths + 1) > MOST_PLACES:
            return None
        widths = widths.astype(np.int64)
        inverse, common = _inverse([[Fraction(int(x)) for x in row] for row in basis[chosen]])
        steps = [size // common for size in _sizes(inverse, widths.tolist())]
        largest = _sizes(basis.tolist(), steps)  # how large the entries of the points can be, and then the rows there
        if common > LARGEST_VALUE or max(largest + _sizes(slopes.tolist(), largest)) > LARGEST_VALUE:
            return None
        tables = _weights(rates, largest)
        left_out = _beyond([rates[i] for i in chosen], widths.tolist())
        values, heavy = [], []
        for noise in _within(basis, inverse, common, widths):
            weights = np.ones(len(noise))
            for place, table in enumerate(tables):
                weights *= table[np.abs(noise[:, place])]
            keep = weights > LEAST_WEIGHT
            left_out += float(weights[~keep].sum()) * (1 + ROUNDING)
            values.append(slopes @ noise[keep].T)
            heavy.append(weights[keep])
        listed, weights = np.concatenate(values, axis=1), np.concatenate(heavy)
        order = np.argsort(-weights, kind="stable")
        left_out += float(weights[order[MOST_POINTS:]].sum()) * (1 + ROUNDING)
        return cls(listed[:, order[:MOST_POINTS]], weights[order[:MOST_POINTS]], left_out)

    @property
    def boxes(self) -> int:
        """How many boxes may be split: each takes a few sums over all points for every row."""
        rows = len(self.values)
        return min(MOST_BOXES, MOST_COMPARISONS // (self.values.size * (rows + 4)))

    def weight(self, slacks: Slacks) -> float:
        """The weight of the listed points that these slacks allow."""
        found = self.kept.get(slacks)
        if found is None:
            found = self.kept[slacks] = float((self.weights * self.allowed(slacks)).sum())
        return found

    def rise(self, step: Slacks, low: Slacks, high: Slacks) -> float:
        """An upper bound of log c(s + step)/c(s) for all slacks low ≤ s ≤ high.

        The smaller of two: c at the upper corner moved by the step over c at the lower one, and 1 + what the step newly
        allows over c at the lower corner.
        """
        below = self.weight(low)
        corner = (self.weight(_moved(high, step)) + self.left_out) / below
        gained = 1 + (self._gain(step, low, high) + self.left_out) / below
        return math.log(min(corner, gained)) + 4 * ROUNDING

    def _gain(self, step: Slacks, low: Slacks, high: Slacks) -> float:
        """The most that a step newly allows. Points are counted at the first row that forbade them before."""
        key = (step, low, high)
        found = self.gains.get(key)
        if found is not None:
            return found
        total = 0.0
        after = _moved(high, step)
        both = tuple(map(min, after, high))
        for i, by in enumerate(step):
            # The row rises from slack s by `by`: values −s − by, …, −s − 1 come in.
            first, last = low[i] + 1, min(high[i] + by, self.ends[i])
            if by <= 0 or last < first:
                continue
            inside = self.allowed((*both[:i], last, *after[i + 1 :])) & (self.values[i] <= -first)
            masses = np.bincount(-self.values[i][inside] - first, self.weights[inside], minlength=last - first + 1)
            total += _largest_window(masses.astype(np.float64), by)
        self.gains[key] = total
        return total


def _largest_window(masses: npt.NDArray[np.float64], length: int) -> float:
    """The largest sum of so many masses in a row; every sum is made of positive terms, none is subtracted."""
    if length >= masses.size:
        return float(masses.sum())
    blocks = np.append(masses, np.zeros(-masses.size % length + length)).reshape(-1, length)
    heads = np.cumsum(blocks, axis=1).ravel()
    tails = np.cumsum(blocks[:, ::-1], axis=1)[:, ::-1].ravel()
    # A window from t on: the rest of its block, and the part of the next block before t + length.
    start = np.arange(masses.size)
    aligned = start % length == 0
    return float((tails[start] + np.where(aligned, 0.0, heads[start + length - 1])).max())


def _independent(basis: Ints, rates: list[Fraction]) -> list[int] | None:
    """Measured outputs that tell the points of the lattice apart, those with the least noise first."""
    chosen: list[int] = []
    for i in sorted(range(len(rates)), key=lambda i: -rates[i]):
        if rates[i] > 0 and flint.fmpz_mat(basis[[*chosen, i]].tolist()).rank() > len(chosen):
            chosen.append(i)
        if len(chosen) == basis.shape[1]:
            return chosen
    return None


def _sizes(rows: list[list[int]], sizes: list[int]) -> list[int]:
    """The largest value of each row at entries of at most these sizes."""
    return [sum(abs(entry) * size for entry, size in zip(row, sizes, strict=True)) for row in rows]


def _weights(rates: list[Fraction], largest: list[int]) -> list[npt.NDArray[np.float64]]:
    """The weights e^{−k/λ} of noise 0, …, k at each output, right to a unit in the last place, or LEAST_DOUBLE."""
    kept: dict[tuple[Fraction, int], npt.NDArray[np.float64]] = {}
    with working_precision(PRECISION):
        for rate, most in zip(rates, largest, strict=True):
            if (rate, most) not in kept:
                powers = ((-ball(rate) * k).exp() for k in range(most + 1))
                kept[rate, most] = np.array([max(float(power), LEAST_DOUBLE) for power in powers])
    return [kept[rate, most] for rate, most in zip(rates, largest, strict=True)]


def _beyond(rates: list[Fraction], widths: list[int]) -> float:
    """The weight of noise that is larger than its width at a chosen output, rounded up.

    Guarantee: at most Σ_i 2α_i^(width_i+1)/(1−α_i)·∏_{l≠i} coth(1/2λ_l).
    """
    with working_precision(PRECISION):
        total = arb(0)
        for i, (rate, width) in enumerate(zip(rates, widths, strict=True)):
            term = 2 * (-ball(rate) * (width + 1)).exp() / (1 - (-ball(rate)).exp())
            for other in (*rates[:i], *rates[i + 1 :]):
                term *= 1 / (ball(other) / 2).tanh()
            total += term
        return float(total.upper()) * (1 + ROUNDING)


def _within(basis: Ints, inverse: list[list[int]], common: int, widths: Ints) -> Iterator[Ints]:
    """The points of the lattice (count, n) whose chosen entries are at most so large, in parts."""
    shape = tuple((2 * widths + 1).tolist())
    for start in range(0, math.prod(shape), TOGETHER):
        numbers = np.arange(start, min(start + TOGETHER, math.prod(shape)))
        places = np.stack(np.unravel_index(numbers, shape), axis=1) - widths
        steps = places @ np.array(inverse, dtype=np.int64).T
        whole = (steps % common == 0).all(axis=1)
        yield np.asarray((steps[whole] // common) @ basis.T)


def _inverse(square: list[list[Fraction]]) -> tuple[list[list[int]], int]:
    """The inverse of a regular matrix as whole numbers over a common denominator."""
    size = len(square)
    rows = [[*row, *(Fraction(int(i == k)) for k in range(size))] for i, row in enumerate(square)]
    for k in range(size):
        pivot = next(i for i in range(k, size) if rows[i][k])
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [value / rows[k][k] for value in rows[k]]
        for i in range(size):
            if i != k and rows[i][k]:
                rows[i] = [a - rows[i][k] * b for a, b in zip(rows[i], rows[k], strict=True)]
    common = math.lcm(*(value.denominator for row in rows for value in row[size:]))
    return [[int(value * common) for value in row[size:]] for row in rows], common


def _along_lines(loss: Fraction, slopes: Ints, change: Ints, rates: list[Fraction]) -> float:
    """What lines allow on top of ε_d (Proposition 7): each row that the change leads away from holds it by a rate."""
    held = Fraction(LARGEST_VALUE)
    for row in slopes[slopes @ change > 0]:
        inside = np.flatnonzero(row)
        apart = (row[inside] * change[inside] <= 0).any()
        held = min(held, *(Fraction(0) if apart else rates[i] for i in inside))
    with working_precision(PRECISION):
        return _double(Fraction(float(along_lines(loss, held, integer=True).upper())))


def _supremum(points: _Points, moves: dict[Slacks, Move]) -> float:
    """An upper bound of the largest ε_d + log(c(s + G·d)/c(s)) over all slacks s ≥ 0 with s + G·d ≥ 0."""
    heap: list[tuple[float, int, Slacks, Slacks, Slacks]] = []
    number, reached = itertools.count(), 0.0

    def enter(step: Slacks, low: Slacks, high: Slacks) -> float:
        loss, most = moves[step]
        extra = min(most, points.rise(step, low, high))
        heapq.heappush(heap, (-(loss + extra), next(number), step, low, high))
        return loss + math.log(points.weight(_moved(low, step)) / points.weight(low))

    for step in moves:
        low = tuple(max(0, -s) for s in step)
        reached = max(reached, enter(step, low, (NEVER,) * len(low)))
    close = CLOSE * max(loss for loss, _ in moves.values())
    for _ in range(points.boxes):
        bound, _, step, low, high = heap[0]
        at = _widest(points, step, low, high)
        if -bound <= reached + close or at is None:
            break
        heapq.heappop(heap)
        last = low[at] + points.strides[at] - 1 if high[at] == NEVER else (low[at] + high[at]) // 2
        near, far = list(high), list(low)
        near[at], far[at] = last, last + 1
        reached = max(reached, enter(step, low, tuple(near)), enter(step, tuple(far), high))
    return -heap[0][0] * (1 + 1e-15)


def _widest(points: _Points, step: Slacks, low: Slacks, high: Slacks) -> int | None:
    """The slack whose lower end alone lowers c at the upper corner most; None where all are decided."""
    above, best, at = _moved(high, step), -1.0, None
    for i in range(len(low)):
        if low[i] < high[i]:
            gain = points.weight(above) - points.weight((*above[:i], low[i] + step[i], *above[i + 1 :]))
            if gain > best:
                best, at = gain, i
    return at


def _moved(slacks: Slacks, step: Slacks) -> Slacks:
    return tuple(NEVER if s == NEVER else s + d for s, d in zip(slacks, step, strict=True))


def _double(value: Fraction) -> float:
    """A double at least as large as the value."""
    return math.nextafter(float(value), math.inf)
