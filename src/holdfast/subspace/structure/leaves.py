"""Noise on single cells, carried up: exact laws for histograms with a total and for hierarchies, of any size."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from holdfast.arrays import Floats
from holdfast.queries import Neighbours, Query
from holdfast.subspace.extended_laplace import FrameLaplace
from holdfast.subspace.k_norm import Cells, KNorm
from holdfast.subspace.law import shown
from holdfast.subspace.structure.cube_spaces import CubeSpaces
from holdfast.subspace.structure.tree_space import TreeSpace


def k_norm(query: Query, neighbours: Neighbours, spaces: CubeSpaces | None, tree: TreeSpace | None) -> KNorm | None:
    """K of cells of which at most the total is exact, and of hierarchies whose differences all lie in N; else None."""
    if query.identity and spaces is not None and len(spaces.free) >= 2 ** len(_moving(spaces)) - 1:
        return _cells(query.n, neighbours, total=() not in spaces.free)
    if tree is None or not _all_in_space(tree, neighbours):
        return None
    below = _leaves_below(query)
    cells = Cells("free" if neighbours.adds else "balanced", np.ones(query.cells or 0))
    columns = query.columns
    return KNorm(
        cells,
        lambda numbers: np.asarray((columns @ numbers.T).T),
        lambda weights: np.asarray((columns.T @ weights.T).T),
        cells.variances(below, below),
        neighbours,
    )


def paths(query: Query, neighbours: Neighbours, tree: TreeSpace) -> FrameLaplace | None:
    """Laplace noise on the leaves, centred where a total is exact, and summed up: the whole-number basis of paths."""
    if not _all_in_space(tree, neighbours):
        return None
    count, below, columns = query.cells or 0, _leaves_below(query), query.columns
    largest = (1 if neighbours.adds else 2) * neighbours.records

    def centred(numbers: Floats) -> Floats:
        return numbers if neighbours.adds else numbers - numbers.mean(axis=1, keepdims=True)

    variances = 2 * (below if neighbours.adds else below - below**2 / count)
    return FrameLaplace(
        "extended Laplace (paths of the hierarchy)",
        lambda numbers: np.asarray((columns @ centred(numbers).T).T),
        np.ones(count),
        Fraction(largest),
        variances,
        lambda weights: 2 * float((centred((columns.T @ weights)[None]) ** 2).sum()),
        neighbours,
        shown(float(variances.sum()) * largest**2),
    )


def _cells(n: int, neighbours: Neighbours, total: bool) -> KNorm:
    which = "balanced" if not neighbours.adds else "centred" if total else "free"
    ones = np.ones(n)

    def apply(numbers: Floats) -> Floats:
        return numbers - numbers.mean(axis=1, keepdims=True) if which == "centred" else numbers

    cells = Cells(which, ones)
    squares, sums = (ones * (1 - 1 / n), 0 * ones) if which == "centred" else (ones, ones)
    return KNorm(cells, apply, apply, cells.variances(squares, sums), neighbours)


def _moving(spaces: CubeSpaces) -> list[int]:
    return [a for a, size in enumerate(spaces.shape) if size > 1]


def _all_in_space(tree: TreeSpace, neighbours: Neighbours) -> bool:
    """Whether every difference lies in N: no exact node, or, for replaced records, one that is above all leaves."""
    if neighbours.adds:
        return not tree.exact.any()
    return bool((tree.classes[tree.leaf] == tree.classes[tree.leaf][0]).all())


def _leaves_below(query: Query) -> Floats:
    return np.asarray(query.columns.sum(axis=1), dtype=np.float64).ravel()
