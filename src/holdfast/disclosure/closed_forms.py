"""The ranges of a cube's cells given one or two of its margins (and margins of these), in closed form.

Where the axes of two margins meet, the cube falls into independent tables, one for each cell of the common margin. In
each of them a cell lies between max(0, r + c − n) and min(r, c) (Fréchet bounds), and both ends are attained.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from holdfast.arguments import LARGEST, Refused
from holdfast.arrays import Ints
from holdfast.disclosure.figures import CellRows, Contradiction, Known
from holdfast.domains.breadth_first import breadth_first
from holdfast.domains.intervals import bound_downwards, bound_upwards, output_parents

Axes = frozenset[int]


def cell_ranges(rows: CellRows, shape: tuple[int, ...]) -> tuple[Ints, Ints] | None:
    """Return the least and the largest count of every cell, or None where this closed form does not apply."""
    if rows.G.shape[0] or rows.low.any() or (rows.high < LARGEST).any() or (rows.b < 0).any():
        return None
    margins = _margins(rows, shape)
    if margins is None:
        return None
    largest = {axes: table for axes, table in margins.items() if not any(axes < other for other in margins)}
    if len(largest) > 2:
        return None
    for axes, table in margins.items():
        for other, wider in largest.items():
            if axes <= other and not np.array_equal(_summed(wider, axes), table):
                raise Contradiction
    sets, tables = list(largest), list(largest.values())
    if not sets:
        low, high = np.zeros(shape, dtype=np.int64), np.full(shape, LARGEST, dtype=np.int64)
    elif len(sets) == 1:
        low = high = tables[0]
    else:
        common, other = (_summed(table, sets[0] & sets[1]) for table in tables)
        if not np.array_equal(common, other):
            raise Contradiction
        low, high = np.maximum(0, tables[0] + tables[1] - common), np.minimum(tables[0], tables[1])
    covered = frozenset[int]().union(*sets)
    if any(size > 1 for axis, size in enumerate(shape) if axis not in covered):
        low = np.zeros(shape, dtype=np.int64)  # a cell has twins that can take its whole count
    return np.broadcast_to(low, shape).ravel().copy(), np.broadcast_to(high, shape).ravel().copy()


def _margins(rows: CellRows, shape: tuple[int, ...]) -> dict[Axes, Any] | None:
    """Return the margins that the rows are, with size 1 on the other axes; None if a row is no cell of a margin.

    A cell of a margin is a sum over a full slab: on each axis one place, or all of them. An axis with one place counts
    as summed over.
    """
    A, b = rows.A, rows.b
    if A.shape[0] == 0:
        return {}
    if (A.data != 1).any():
        return None
    points = np.stack(np.unravel_index(A.indices, shape))
    first, last = (ends.reduceat(points, A.indptr[:-1], axis=1) for ends in (np.minimum, np.maximum))
    sizes = np.array(shape)[:, None]
    kept = (first == last) & (sizes > 1)
    full = np.where(kept, 1, sizes).prod(axis=0)
    if (~kept & (last - first + 1 != sizes)).any() or (np.diff(A.indptr) != full).any():
        return None
    found: dict[Axes, Any] = {}
    for pattern in np.unique(kept.T, axis=0):
        members = np.flatnonzero((kept == pattern[:, None]).all(axis=0))
        axes = np.flatnonzero(pattern)
        sides = tuple(shape[a] for a in axes)
        index = (
            np.ravel_multi_index(tuple(first[axes][:, members]), sides) if axes.size else np.zeros(members.size, int)
        )
        table = np.full(math.prod(sides), -1, dtype=np.int64)
        table[index] = b[members]
        if (table < 0).any():
            return None  # only a part of the margin is published
        if (table[index] != b[members]).any():
            raise Contradiction
        found[frozenset(axes.tolist())] = table.reshape(np.where(pattern, shape, 1))
    return found


def _summed(table: Any, axes: Axes) -> Any:
    return table.sum(axis=tuple(a for a in range(table.ndim) if a not in axes), keepdims=True)


# --- The ranges of a hierarchy's counts given exact and bounded nodes, in closed form: one pass up and one pass down
# Going up, a node may take the values from the sum of its children's least to the sum of their largest values,
# within its
# own bounds. Going down, a child may take what its parent leaves when the other children take as much, or as little, as
# they may. All these sets are intervals of whole numbers, so both ends are attained.

#: Kinds of parts that bound single nodes, besides consistency, which counts obey by themselves.
SIMPLE = frozenset({"consistent", "nonnegative", "between", "fixed", "at_least", "invariant"})
#: Sums of bounds stay below this size, so that 64 bits hold them.
MOST = 2.0**61


def accepts(known: Sequence[Known], of: Any) -> bool:
    """Whether everything is about single nodes of one hierarchy."""
    tree = of.tree
    if tree is None:
        return False
    for each in known:
        own = each.query.tree
        if own is None or each.query.n != of.n or not (own is tree or np.array_equal(own.parents, tree.parents)):
            return False
        if each.system.inequalities.count or any(part.kind not in SIMPLE for part in each.system.parts):
            return False
        if (each.system.invariants.sizes != 1).any():
            return False
    return True


def ranges(known: Sequence[Known], of: Any, figures: bool = True) -> tuple[Ints, Ints]:
    """Return the least and the largest count of every output; 2**62 where there is no limit."""
    low, high = np.zeros(of.n, dtype=np.int64), np.full(of.n, LARGEST, dtype=np.int64)
    for each in known:
        lower, upper = each.system.integer_bounds()
        np.maximum(low, lower, out=low)
        np.minimum(high, upper, out=high)
        exact = [
            (part.rows, part.rows.b) for part in each.system.parts if part.kind == "fixed" and part.rows is not None
        ]
        if figures:
            exact.append((each.system.invariants, each.figures))
        for rows, values in exact:
            filled = np.flatnonzero(rows.sizes == 1)
            outputs, factor = rows.A.indices[rows.A.indptr[filled]], rows.A.data[rows.A.indptr[filled]]
            side = np.asarray(values)[filled]
            if (side % factor != 0).any():
                raise Contradiction
            value = (side // factor).astype(np.int64)
            np.maximum.at(low, outputs, value)
            np.minimum.at(high, outputs, value)
    finite = np.where(high < LARGEST, high, 0)
    if max(low.astype(np.float64).sum(), finite.astype(np.float64).sum()) >= MOST:
        raise Refused("figures must add up to less than 2**61")
    passed = breadth_first(output_parents(of.tree.parents, of.n // of.tree.n))[:3]
    if bound_upwards(*passed, low, high, 0.0) >= 0:
        raise Contradiction
    bound_downwards(*passed, low, high)
    return low, high
