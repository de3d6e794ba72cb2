"""Sensitivity after projection on a null space N: the largest ‖Π d‖, the price of a subspace statement.

Symmetry keeps the work small: cells with equal columns of the equalities are exchangeable, and the cells of
a cube with exact margins all are. Closed forms are exact and rounded up once; where a projector has to be asked,
it says how far each of its numbers may be off (`enclosed`), and the norm is taken of the largest that they allow.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array

from holdfast.arguments import Refused
from holdfast.arrays import Floats, Ints
from holdfast.queries import Query
from holdfast.queries.columns import Columns, equal_columns, widest_row
from holdfast.queries.exact_weights import float_up, sqrt_up
from holdfast.queries.neighbours import Neighbours

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


# Projection of cells of a cube on the tables whose listed margins are zero, in closed form.
#
# The projector is Σ over the sets S of axes inside no listed margin of ⊗_{a∈S}(I − J/n_a) ⊗_{a∉S} J/n_a, so the
# entry of Π e_i at cell x depends only on the axes on which x agrees with i
# (docs/theory/difference-sets.md, Proposition 6).

#: 6**axes exact terms are summed for pairs of cells; beyond this many axes a numerical projector is asked.
MOST_AXES = 6


def cube_norm(shape: tuple[int, ...], keep: Any, norm: float, adds: bool) -> Fraction:
    """Return max ‖Π d‖_p over one-record differences of the cells (its square for p = 2), exactly."""
    entry = _entries(shape, [set(axes) for axes in keep])
    axes = range(len(shape))
    if adds:
        options = [[(True, False, 1), (False, False, size - 1)] for size in shape]
        return _norm([(entry, _EMPTY)], options, norm, shape)
    best = Fraction(0)
    for differ in product([False, True], repeat=len(shape)):
        if not any(differ) or any(d and shape[a] < 2 for a, d in zip(axes, differ, strict=True)):
            continue
        options = [
            [(True, False, 1), (False, True, 1), (False, False, shape[a] - 2)]
            if differ[a]
            else [(True, True, 1), (False, False, shape[a] - 1)]
            for a in axes
        ]
        best = max(best, _norm([(entry, entry)], options, norm, shape))
    return best


_EMPTY: dict[int, int] = {}


def _norm(
    pair: list[tuple[dict[int, int], dict[int, int]]],
    options: list[list[tuple[bool, bool, int]]],
    norm: float,
    shape: tuple[int, ...],
) -> Fraction:
    """Return the norm of first(x) − second(x) over all cells x, counted by how x agrees with either cell."""
    first, second = pair[0]
    total = 0
    for choice in product(*options):
        times = math.prod(count for _, _, count in choice)
        if times == 0:
            continue
        here = first[_bits(agree for agree, _, _ in choice)]
        there = second[_bits(agree for _, agree, _ in choice)] if second else 0
        change = abs(here - there)
        total = max(total, change) if norm == np.inf else total + times * change ** int(norm)
    cells = math.prod(shape)
    return Fraction(total, cells**2 if norm == 2 else cells)


def _bits(flags: Any) -> int:
    return sum(1 << a for a, flag in enumerate(flags) if flag)


def _entries(shape: tuple[int, ...], keep: list[set[int]]) -> dict[int, int]:
    """Return cells·(Π e_i)(x) for every set of axes (as bits) on which x agrees with i."""
    axes = range(len(shape))
    outside = []
    for chosen in product([False, True], repeat=len(shape)):
        members = {a for a in axes if chosen[a]}
        if not any(members <= margin for margin in keep):
            outside.append(members)
    entries = {}
    for agree in product([False, True], repeat=len(shape)):
        factor = [shape[a] * agree[a] - 1 for a in axes]
        entries[_bits(agree)] = sum(math.prod(factor[a] for a in members) for members in outside)
    return entries
