"""Bounds and fixed values on one hierarchy: whether they can hold together, in one pass over whole numbers.

Going up, each output may take the values from the sum of its children's least to the sum of their largest values,
within its own bounds. If no such interval is empty, a table with these bounds exists: going down, every value can be
split over the children. If one is empty, the bounds behind its two ends contradict each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arguments import LARGEST
from holdfast.arrays import Ints, compiled
from holdfast.constraints.system.null_space import TreeShape
from holdfast.constraints.system.parts import Part
from holdfast.domains.breadth_first import breadth_first
from holdfast.domains.intervals import bound_upwards
from holdfast.exact.rationals import ExactVector

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


@compiled(beyond=20_000)
def _mark_behind(at: Any, start: Any, children: Any, summed: Any, behind: Any, used: Any) -> Any:  # pragma: no cover
    """Mark the parts behind both ends of an interval; return whether sums of children were used."""
    through = False
    stack = np.empty(start.size, np.int64)
    for side in range(2):
        stack[0] = at
        size = 1
        while size > 0:
            size -= 1
            v = stack[size]
            if summed[side, v]:
                through = True
                for c in range(start[v], start[v + 1]):
                    stack[size] = children[c]
                    size += 1
            elif behind[side, v] >= 0:
                used[behind[side, v]] = True
    return through
