"""Sensitivity after projection on a null space N: the largest ‖Π d‖, the price of a subspace statement.

Symmetry keeps the work small: cells with equal columns of the equalities are exchangeable, and the cells of
a cube with exact margins all are. Closed forms are exact and rounded up once; where a projector has to be asked,
it says how far each of its numbers may be off (`enclosed`), and the norm is taken of the largest that they allow.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array

from holdfast.arguments import Refused
from holdfast.arrays import Floats, Ints
from holdfast.privacy.projected.cube_projection import MOST_AXES, cube_norm
from holdfast.privacy.projected.disjoint_rows import disjoint_rows_norm
from holdfast.queries import Query
from holdfast.queries.columns import Columns, equal_columns, widest_row
from holdfast.queries.neighbours import Neighbours
from holdfast.queries.rounding import float_up, sqrt_up

#: Sums of n numbers are computed within n times this part.
STEP = 2.0**-52
#: Entries of all projected columns, of one block of them, and of all their pairwise differences.
MOST_PROJECTED = 10**9
BLOCK = 4_000_000
MOST_PAIR_WORK = 2 * 10**9


def sensitivity_within(query: Query, p: float, neighbours: Any, within: Any) -> float:
    """Return the largest ‖Π d‖_p over the difference set, p = 1, 2 or inf, rounded up (THEORY §2, subspace scope).

    within: a null space N with `enclosed(columns)` (the orthogonal projector Π on N, as `values` and a `radius` of
    their errors) and, if it has them, `rows` (the equalities) and `cube_margins`.
    """
    step = Fraction(1) if query.grid is None else query.grid
    return float_up(step * Fraction(_projected(query, float(p), Neighbours.of(neighbours), within)))


def _projected(query: Query, norm: float, relation: Neighbours, within: Any) -> float:
    """Return records · max ‖Π d‖_p over the one-record differences, in steps of the grid, rounded up."""
    if query.cells is None:  # Π shortens: ‖Πd‖_inf ≤ ‖Πd‖₂ ≤ ‖d‖₂ and ‖Πd‖₁ ≤ √n·‖d‖₂
        length = query.bound([1], None, 2, relation).value
        return sqrt_up(length * (query.n if norm == 1 else 1))
    power = _exact_power(query, norm, relation, within)
    if power is not None:
        return sqrt_up(power * relation.records**2) if norm == 2 else float_up(power * relation.records)
    return float_up(Fraction(_numerical(query, norm, relation, within)) * relation.records)


def _exact_power(query: Query, norm: float, relation: Neighbours, within: Any) -> Fraction | None:
    """Return max ‖Πd‖ (or its square for p = 2) exactly where a closed form is known."""
    hint = getattr(within, "cube_margins", None)
    if hint is not None and query.identity and len(hint[0]) <= MOST_AXES:
        return cube_norm(tuple(hint[0]), hint[1], norm, relation.adds)
    rows = getattr(within, "rows", None)
    if rows is None:
        return None
    matrix = csr_array(rows)
    matrix.eliminate_zeros()
    lengths = np.diff(matrix.indptr)
    if (lengths <= 1).all():  # Π sets the pinned outputs to zero
        return _without(query, norm, relation, np.unique(matrix.indices))
    if query.identity and (np.bincount(matrix.indices, minlength=query.n) <= 1).all():
        return disjoint_rows_norm(matrix, norm, relation.adds)
    return None


def _without(query: Query, norm: float, relation: Neighbours, pinned: Ints) -> Fraction | None:
    which = np.zeros(query.n, np.int64)
    which[pinned] = 1
    one = Neighbours(relation.kind)
    if norm != np.inf:
        return query.bound([1, 0], which, int(norm), one).value
    free = csc_array(query.columns[np.flatnonzero(which == 0)])
    if relation.adds:
        top = abs(free).max() if free.nnz else 0
        return Fraction(int(top) if free.dtype.kind == "i" else float(top))
    return widest_row(free, np.zeros(free.shape[1], np.int64))


def _numerical(query: Query, norm: float, relation: Neighbours, within: Any) -> float:
    columns, twins = _representatives(query, getattr(within, "rows", None))
    n, count = columns.shape
    if n * count > MOST_PROJECTED:
        raise Refused(
            f"sensitivity within a subspace must project at most {MOST_PROJECTED} numbers, "
            f"but this query has {count} different columns of {n}"
        )
    pairs = not relation.adds and n * count * count <= MOST_PAIR_WORK
    kept: list[Any] = []
    top = 0.0
    for start in range(0, count, max(1, BLOCK // n)):
        image = within.enclosed(columns[:, start : start + max(1, BLOCK // n)].toarray())
        top = max(top, _longest(np.abs(image.values) + image.radius, norm))
        if pairs:
            kept.append(image)
    up = 1 + (n + 16) * STEP
    if relation.adds:
        return top * up
    if not pairs:  # ‖Π(a − b)‖ ≤ ‖Πa‖ + ‖Πb‖
        return 2 * top * up
    images, radii = (np.hstack(parts) for parts in zip(*((i.values, i.radius) for i in kept), strict=True))
    # Two cells with the same equalities differ by a vector of N itself, which Π leaves as it is.
    best = {1.0: 2.0, 2.0: np.sqrt(2.0), np.inf: 1.0}[norm] if twins else 0.0
    for j in range(count - 1):
        gap = np.abs(images[:, j + 1 :] - images[:, j : j + 1]) + (radii[:, j + 1 :] + radii[:, j : j + 1])
        best = max(best, _longest(gap, norm))
    return best * up


def _longest(sizes: Floats, norm: float) -> float:
    return float(np.linalg.norm(sizes, norm, axis=0).max())


def _representatives(query: Query, rows: Any) -> tuple[Columns, bool]:
    """Return the columns to project, and whether two different cells share one of them."""
    if query.identity and rows is not None:
        classes = equal_columns(csc_array(rows))
        first = np.unique(classes, return_index=True)[1]
        return query.columns[:, first], first.size < classes.size
    classes = equal_columns(query.columns)
    return query.columns[:, np.unique(classes, return_index=True)[1]], False
