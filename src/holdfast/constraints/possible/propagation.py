"""Bounds carried from row to row, exactly, until two of them cross or the work is used up.

A row Σ a_j z_j ≥ b bounds each of its coordinates once the others are bounded. Every derived bound remembers,
as a set of bits, which parts it was derived from; two bounds that cross prove that these parts contradict.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
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

#: Entries of rows looked at before giving up: a fixed amount, and some for each entry there is. Bounds that
#: creep (z₀ ≤ z₁/2, z₁ ≤ z₀/2 + 1) would otherwise go on for ever.
_PATIENCE, _PATIENCE_EACH = 50_000, 20
#: Creeping bounds double their digits at every step. One with a larger denominator is not taken over, which is
#: always allowed: it is only a bound less.
_FINEST = 2**40
#: Sums of bounds stay below this size, so that 64 bits hold them.
_SAFE = 2.0**60


def _light(value: Fraction | int) -> Fraction | int:
    """Return a whole number as an int: much faster to compute with than a Fraction."""
    return int(value) if value.denominator == 1 else value


def _quotient(value: Any, by: int) -> Any:
    """Return value / by exactly, as an int where it is whole."""
    if isinstance(value, int) and value % by == 0:
        return value // by
    return _light(Fraction(value) / by)


class _Box:
    """Bounds and the parts behind them, on both sides of every coordinate."""

    def __init__(self, lower: ExactVector, upper: ExactVector, bound_parts: Ints, whole: bool) -> None:
        self.rounded: tuple[Any, Any] = (math.ceil, math.floor) if whole else (_light, _light)
        self.value: list[list[Any]] = [
            [self.rounded[k](value) for value in side.tolist()] for k, side in enumerate((lower, upper))
        ]
        self.parts = [[1 << k if k >= 0 else 0 for k in side] for side in bound_parts.tolist()]

    def tightened(self, side: int, column: int, limit: Any, parts: int) -> bool:
        """Take over a better bound; one of 2**62 or more in size, or of many digits, is not worth having."""
        limit, old = self.rounded[side](limit), self.value[side][column]
        if abs(limit) >= LARGEST or limit.denominator > _FINEST or (limit <= old if side == 0 else limit >= old):
            return False
        self.value[side][column] = limit
        self.parts[side][column] = parts
        return True

    def crossed(self, column: int) -> int | None:
        """Return the parts behind two crossing bounds on this coordinate, or None."""
        if self.value[0][column] <= self.value[1][column]:
            return None
        return self.parts[0][column] | self.parts[1][column]


def _derived(box: _Box, row: Sequence[tuple[int, int]], b: Any, own: int) -> Iterator[int]:
    """Yield the columns that a row Σ a_j z_j ≥ b gives a better bound, once that bound is entered."""
    most: Any = 0
    open_at = -1
    for column, a in row:
        bound = box.value[1 if a > 0 else 0][column]
        if abs(bound) >= LARGEST:
            if open_at >= 0:
                return  # two coordinates without a bound: nothing follows for either
            open_at = column
        else:
            most += a * bound
    for column, a in row:
        if open_at not in (-1, column):
            continue
        side = 1 if a > 0 else 0
        rest = most if open_at == column else most - a * box.value[side][column]
        parts = own
        for other, factor in row:
            if other != column:
                parts |= box.parts[1 if factor > 0 else 0][other]
        if box.tightened(1 - side, column, _quotient(b - rest, a), parts):
            yield column


def crossing_parts(
    A: sparse.csr_array,
    b: ExactVector,
    equality: Bools,
    origins: Ints,
    bounds: tuple[ExactVector, ExactVector, Ints],
    *,
    whole: bool = False,
) -> frozenset[int] | None:
    """Return the numbers of parts that are proved to contradict each other, or None if nothing crosses.

    Rows are A z = b where `equality`, otherwise A z ≥ b; `origins` numbers the part of each row and `bounds`
    holds the lower bounds, the upper bounds and the parts (2, n) they come from. For `whole` points every bound is
    rounded to a whole number.
    """
    box = _Box(*bounds, whole)
    starts, columns, values = A.indptr.tolist(), A.indices.tolist(), A.data.tolist()
    by_column = sparse.csc_array(A)
    waiting = deque(range(A.shape[0]))
    queued = [True] * A.shape[0]
    work = _PATIENCE + _PATIENCE_EACH * A.nnz
    while waiting and work > 0:
        i = waiting.popleft()
        queued[i] = False
        row = list(zip(columns[starts[i] : starts[i + 1]], values[starts[i] : starts[i + 1]], strict=True))
        own = 1 << int(origins[i])
        side = _light(b.item(i))
        senses = ((1, side), (-1, -side)) if equality[i] else ((1, side),)
        for sign, least in senses:
            work -= len(row)
            for column in _derived(box, [(j, sign * a) for j, a in row], least, own):
                work -= len(row)
                found = box.crossed(column)
                if found is not None:
                    return frozenset(k for k in range(found.bit_length()) if found >> k & 1)
                for k in by_column.indices[by_column.indptr[column] : by_column.indptr[column + 1]].tolist():
                    if not queued[k]:
                        queued[k] = True
                        waiting.append(k)
    return None


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


def crossing_in_areas(parts: Sequence[Part], n: int) -> tuple[frozenset[int], tuple[str, ...]] | None:
    """Return the parts behind rules in areas that cannot hold together, and these rules in words; None: none found.

    Sums of cells that are not negative are looked at, of figures of one margin of one area.
    """
    where = next((k for k, part in enumerate(parts) if hasattr(part.source, "contradiction")), None)
    bounded = [part.bounds for part in parts if part.kind == "nonnegative" and part.bounds is not None]
    if where is None or all(bounds.at is not None for bounds in bounded):
        return None
    query = parts[where].source
    blocks: list[Any] = []
    least: list[Ints] = []
    most: list[Ints] = []
    origin: list[Ints] = []

    def add(rows: Any, low: Any, high: Any, number: int) -> None:
        if rows.shape[0] and bool((rows.data == 1).all()):
            blocks.append(rows)
            least.append(np.asarray(low, dtype=np.int64))
            most.append(np.asarray(high, dtype=np.int64))
            origin.append(np.full(rows.shape[0], number))

    for number, part in enumerate(parts):
        if part.bounds is not None and part.kind != "nonnegative":
            below, above = part.bounds.applied(n)
            low, high = _outward(below, False), _outward(above, True)
            at = np.flatnonzero((low > 0) | (high < LARGEST))
            ones = sparse.csr_array((np.ones(at.size, np.int64), at, np.arange(at.size + 1)), shape=(at.size, n))
            add(ones, np.maximum(low[at], 0), high[at], number)
        elif part.rows is not None and number != where and part.kind != "consistent":
            wide, low, high = part.rows.widened(n), _outward(part.rows.b, False), _outward(part.rows.b, True)
            add(wide.A, low, high if part.kind in EQUALITIES else np.full(wide.count, LARGEST), number)
            if part.kind == "at_least":
                add(-wide.A, np.zeros(wide.count, np.int64), -low, number)
    if not blocks:
        return None
    together = sparse.csr_array(sparse.vstack(blocks, format="csr"))
    low, high = np.concatenate(least), np.concatenate(most)
    found = query.contradiction(together, low, high)
    if found is None:
        return None
    used = frozenset(np.concatenate(origin)[found].tolist()) | {where}
    return used, tuple(_said(query, together, low, high, row) for row in found)


def _outward(numbers: ExactVector, up: bool) -> Ints:
    """The whole numbers at or outside exact ones: values need not be whole."""
    if numbers.dtype != object:
        return numbers
    return np.array([(math.ceil if up else math.floor)(Fraction(value)) for value in numbers.tolist()], dtype=np.int64)


def _said(query: Any, rows: Any, low: Ints, high: Ints, row: int) -> str:
    outputs = rows.indices[rows.indptr[row] : rows.indptr[row + 1]]
    name = query.output_name(int(outputs[0]))
    name = name if outputs.size == 1 else f"the sum of {outputs.size} figures from {name} on"
    if low[row] == high[row]:
        return f"{name} is {low[row]}"
    limits = [f"at least {low[row]}"] * bool(low[row] > 0) + [f"at most {high[row]}"] * bool(high[row] < LARGEST)
    return f"{name} is {' and '.join(limits)}"


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
