"""Bounds of figures in areas that contradict each other: a smallest set of them, by the limits that follow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arguments import LARGEST
from holdfast.arrays import Ints
from holdfast.constraints.system.own_sums import OwnSums
from holdfast.constraints.system.parts import EQUALITIES, Part
from holdfast.exact.rationals import ExactVector


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
