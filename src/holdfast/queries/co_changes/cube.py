"""Changes that keep complete margins of a cube, in closed form.

Let T run through the sets of axes (of two or more values) inside some asked and inside no kept margin, t be the least
size of one, K = 2**(t−1). A change that keeps the margins and alters the answer has at least K replacements; the
alternating table on t axes has exactly so many (docs/theory/difference-sets.md, Proposition 7). An axis needs K
if no kept margin contains it, if it lies in some T of size t, or if it can take the place of an axis of such a T; and
K + 1 otherwise (docs/theory/what-can-change.md, Proposition 2).
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from holdfast.domains import Cube

Margins = tuple[tuple[int, ...], ...]
#: Sets of axes are listed up to so many axes.
MOST_AXES = 14


def smallest_free_sets(shape: tuple[int, ...], kept: Margins, asked: Margins) -> list[frozenset[int]]:
    """Return the smallest sets of moving axes inside some asked and no kept margin."""
    keep = [frozenset(margin) for margin in kept]
    for t in range(1, len(shape) + 1):
        sets = {
            frozenset(chosen)
            for margin in asked
            for chosen in combinations([a for a in margin if shape[a] > 1], t)
            if _free(frozenset(chosen), keep)
        }
        if sets:
            return list(sets)
    return []


def records_of_axes(shape: tuple[int, ...], kept: Margins, asked: Margins) -> list[int | None] | None:
    """Return for each axis how many replacements it takes to change its values; None for those that never change.

    None instead of a list where there are too many axes to list their sets.
    """
    if sum(size > 1 for size in shape) > MOST_AXES:
        return None
    smallest, keep = smallest_free_sets(shape, kept, asked), [frozenset(margin) for margin in kept]
    if not smallest:
        return [None] * len(shape)
    least = 2 ** (len(smallest[0]) - 1)
    return [None if size < 2 else least + (not _moves(a, smallest, keep)) for a, size in enumerate(shape)]


def _free(axes: frozenset[int], keep: list[frozenset[int]]) -> bool:
    return not any(axes <= margin for margin in keep)


def _moves(axis: int, smallest: list[frozenset[int]], keep: list[frozenset[int]]) -> bool:
    """Whether an axis changes in some smallest change: as one of its axes, or together with one."""
    if _free(frozenset([axis]), keep):
        return True
    return any(
        axis in chosen or any(_free((chosen - {other}) | {axis}, keep) for other in chosen) for chosen in smallest
    )


def complete_margins(cube: Cube, rows: Any) -> Margins | None:
    """Return the margins whose cells the rows (on the cells of the cube) are, all of each; None for other rows."""
    table = csr_array(rows)
    table.eliminate_zeros()
    table.sum_duplicates()
    if not np.asarray(table.data == 1).all():
        return None
    margins: dict[tuple[int, ...], set[tuple[int, ...]]] = {}
    for i in range(table.shape[0]):
        cells = table.indices[table.indptr[i] : table.indptr[i + 1]]
        if cells.size == 0:
            continue
        points = cube.coordinates(cells)
        constant = [bool(same) for same in np.all(points == points[0], axis=0)]
        axes = tuple(a for a, size in enumerate(cube.shape) if constant[a] and size > 1)
        if cells.size != math.prod(size for a, size in enumerate(cube.shape) if not constant[a]):
            return None
        margins.setdefault(axes, set()).add(tuple(points[0][list(axes)].tolist()))
    if any(len(points) < math.prod(cube.shape[a] for a in axes) for axes, points in margins.items()):
        return None
    return tuple(margins)
