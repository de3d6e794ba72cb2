"""Bounds carried from row to row and along hierarchies, until two of them cross or the work is used up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from holdfast.arguments import LARGEST
from holdfast.arrays import Bools, Ints, ranges
from holdfast.constraints.system.null_space import TreeShape
from holdfast.constraints.system.own_sums import OwnSums
from holdfast.constraints.system.parts import EQUALITIES, Part
from holdfast.domains.breadth_first import breadth_first
from holdfast.domains.intervals import bound_upwards
from holdfast.exact.rationals import ExactVector

#: Sums of bounds stay below this size, so that 64 bits hold them.
_SAFE = 2.0**60


def carried(A: sparse.csr_array, b: Ints, bounds: tuple[Ints, Ints], rounds: int, *, whole: bool) -> tuple[Ints, Ints]:
    """Return bounds after rows A z ≥ b carried them on, all at once in each round, or as soon as two cross.

    A row bounds each of its coordinates once the others are at their best. Real values keep the next whole number
    outside. What 64 bits might not hold counts as without limit: a bound less is always allowed.
    """
    low, high = bounds
    row, column, a = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr)), A.indices, A.data
    most_in_a_row = max(1, int(np.diff(A.indptr).max(initial=1)))
    for _ in range(rounds):
        best = np.where(a > 0, high[column], low[column])
        size = np.abs(best.astype(np.float64))
        is_open = (size >= LARGEST) | (np.abs(a.astype(np.float64)) * size >= _SAFE / most_in_a_row)
        share = a * np.where(is_open, 0, best)
        sums = np.zeros(A.shape[0], dtype=np.int64)
        np.add.at(sums, row, share)
        opens = np.bincount(row[is_open], minlength=A.shape[0])
        decided = opens[row] - is_open == 0
        need, at, factor = (b[row] - (sums[row] - share))[decided], column[decided], a[decided]
        up = factor > 0
        before, (low, high) = (low, high), (low.copy(), high.copy())
        np.maximum.at(low, at[up], -(-need[up] // factor[up]) if whole else need[up] // factor[up])
        np.minimum.at(high, at[~up], need[~up] // factor[~up] if whole else -(-need[~up] // factor[~up]))
        if (low > high).any() or (np.array_equal(before[0], low) and np.array_equal(before[1], high)):
            break
    return low, high


def written_later(parts: Sequence[Part]) -> bool:
    return any(isinstance(part.rows, OwnSums) for part in parts)


def crossing_in_areas(parts: Sequence[Part], n: int) -> bool:
    """Whether rules in areas are proved not to hold together: sums of cells ≥ 0, of figures of a margin of an area."""
    where = next((k for k, part in enumerate(parts) if hasattr(part.source, "contradicts")), None)
    bounded = [part.bounds for part in parts if part.kind == "nonnegative" and part.bounds is not None]
    if where is None or all(bounds.at is not None for bounds in bounded):
        return False
    blocks: list[Any] = []
    least: list[Ints] = []
    most: list[Ints] = []

    def add(rows: Any, low: Any, high: Any) -> None:
        if rows.shape[0] and bool((rows.data == 1).all()):
            blocks.append(rows)
            least.append(np.asarray(low, dtype=np.int64))
            most.append(np.asarray(high, dtype=np.int64))

    for number, part in enumerate(parts):
        if part.bounds is not None and part.kind != "nonnegative":
            below, above = part.bounds.applied(n)
            low, high = _outward(below, False), _outward(above, True)
            at = np.flatnonzero((low > 0) | (high < LARGEST))
            ones = sparse.csr_array((np.ones(at.size, np.int64), at, np.arange(at.size + 1)), shape=(at.size, n))
            add(ones, np.maximum(low[at], 0), high[at])
        elif part.rows is not None and number != where and part.kind != "consistent":
            wide, low, high = part.rows.widened(n), _outward(part.rows.b, False), _outward(part.rows.b, True)
            add(wide.A, low, high if part.kind in EQUALITIES else np.full(wide.count, LARGEST))
            if part.kind == "at_least":
                add(-wide.A, np.zeros(wide.count, np.int64), -low)
    if not blocks:
        return False
    together = sparse.csr_array(sparse.vstack(blocks, format="csr"))
    query: Any = parts[where].source
    return bool(query.contradicts(together, np.concatenate(least), np.concatenate(most)))


def _outward(numbers: ExactVector, up: bool) -> Ints:
    """The whole numbers at or outside exact ones: values need not be whole."""
    if numbers.dtype != object:
        return numbers
    return np.array([(math.ceil if up else math.floor)(Fraction(value)) for value in numbers.tolist()], dtype=np.int64)


Sides = tuple[Ints, Ints]

#: Fractions are cleared by factors up to this one.
_LARGEST_FACTOR = 2**20
#: Sums of bounds stay below this size, so that 64 bits hold them.
_LARGEST_SUM = 2.0**61


def crossing_on_tree(parts: Sequence[Part], n: int) -> tuple[bool, frozenset[int]]:
    """Return whether this case is decided here, and the numbers of parts that contradict each other (none: they hold).

    Decided: at most one hierarchy's consistency, bounds and fixed values, of moderate size and denominators.
    """
    trees = [k for k, part in enumerate(parts) if isinstance(part.source, TreeShape) and part.kind == "consistent"]
    if len(trees) > 1 or any(part.bounds is None and part.kind != "fixed" for part in _without(parts, trees)):
        return False, frozenset()
    factor = math.lcm(*(_denominator(part) for part in _without(parts, trees)))
    if factor > _LARGEST_FACTOR:
        return False, frozenset()
    low, high = np.full(n, -LARGEST), np.full(n, LARGEST)
    behind = np.full((2, n), -1, dtype=np.int64)
    for number, part in enumerate(parts):
        if number in trees:
            continue
        sides = _sides(part, n, factor)
        if sides is None:
            return False, frozenset()
        _tighten(low, sides[0] > low, sides[0], behind[0], number)
        _tighten(high, sides[1] < high, sides[1], behind[1], number)
    if (low <= -LARGEST).all() or (high >= LARGEST).all():
        return True, frozenset()  # bounds on one side only never contradict each other
    for bounds in (low, high):
        if np.abs(np.where(np.abs(bounds) < LARGEST, bounds, 0), dtype=np.float64).sum() >= _LARGEST_SUM:
            return False, frozenset()
    shape: Any = parts[trees[0]].source if trees else None
    start, children, order, *_ = shape.passed if trees else breadth_first(np.full(n, -1, dtype=np.int64))
    least, most = low.copy(), high.copy()
    at = bound_upwards(start, children, order, least, most, 0.0)
    if at < 0:
        return True, frozenset()
    summed = np.stack([least > low, most < high])  # where the children's sums are the tighter bounds
    used = np.zeros(len(parts), dtype=np.bool_)
    if _mark_behind(at, start, children, summed, behind, used):
        used[trees[0]] = True
    return True, frozenset(np.flatnonzero(used).tolist())


def _without(parts: Sequence[Part], trees: Sequence[int]) -> list[Part]:
    return [part for k, part in enumerate(parts) if k not in trees]


def _numbers(part: Part) -> tuple[ExactVector, ...]:
    """The bounds or fixed values of a part."""
    if part.bounds is not None:
        return part.bounds.low, part.bounds.high
    assert part.rows is not None
    return part.rows.b, part.rows.b


def _denominator(part: Part) -> int:
    """The common denominator of a part's numbers, as far as it stays small."""
    common = 1
    for side in _numbers(part):
        if side.dtype == object:
            for value in side.tolist():
                common = min(math.lcm(common, Fraction(value).denominator), _LARGEST_FACTOR + 1)
    return common


def _sides(part: Part, n: int, factor: int) -> Sides | None:
    """The bounds that a part puts on n outputs, times a factor that makes them whole; None where they are too large."""
    where = part.bounds.at if part.bounds is not None else part.rows.A.indices  # type: ignore[union-attr]
    result = []
    for numbers, none in zip(_numbers(part), (-LARGEST, LARGEST), strict=True):
        whole = numbers
        if factor > 1 or numbers.dtype == object:
            times = [int(none if value == none else value * factor) for value in numbers.tolist()]
            if any(abs(value) >= LARGEST for value in times if value != none):
                return None
            whole = np.array(times, dtype=np.int64)
        side = np.full(n, none, dtype=np.int64)
        side[slice(None) if where is None else where] = whole
        result.append(side)
    return result[0], result[1]


def _tighten(kept: Ints, better: npt.NDArray[np.bool_], found: Ints, behind: Ints, number: int) -> None:
    kept[better], behind[better] = found[better], number


def _mark_behind(at: int, start: Ints, children: Ints, summed: Bools, behind: Ints, used: Bools) -> bool:
    """Mark the parts behind both ends of an interval; return whether sums of children were used."""
    for side in range(2):
        nodes = np.array([at])
        while nodes.size:
            inner = nodes[summed[side, nodes]]
            parts = behind[side, nodes[~summed[side, nodes]]]
            used[parts[parts >= 0]] = True
            nodes = children[ranges(start[inner], start[inner + 1] - start[inner])]
    return bool(summed[:, at].any())
