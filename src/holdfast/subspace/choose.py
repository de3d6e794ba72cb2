"""From the name of a law and what must hold to the law itself: structure first, dense tables where there is none."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Floats
from holdfast.constraints import System
from holdfast.queries import Neighbours, Query
from holdfast.subspace import extended_laplace
from holdfast.subspace.extended_laplace import FrameLaplace
from holdfast.subspace.gaussian_laws import ProjectedGaussian, correlated, optimal, projected_variances
from holdfast.subspace.geometry import MOST_ENTRIES, NOTHING_OPEN, Geometry
from holdfast.subspace.k_norm import Cells, KNorm, k_norm
from holdfast.subspace.law import SubspaceLaw, shown
from holdfast.subspace.structure import cube_spaces, waves
from holdfast.subspace.structure.cube_spaces import CubeSpaces, Spaces
from holdfast.subspace.structure.tree_levels import TreeLevels
from holdfast.subspace.structure.tree_space import TreeGaussian, TreeSpace

#: The laws by their names, best first.
LAWS = ("optimal", "gaussian", "correlated", "laplace", "k-norm")
GAUSSIAN = ("optimal", "gaussian", "correlated")
#: Entries of a table of all outputs by all outputs that is not too large.
MOST_LISTED = 10**7


def choose(
    query: Query,
    system: System,
    neighbours: Neighbours,
    law: str,
    costs: Floats | None = None,
    basis: Floats | None = None,
) -> SubspaceLaw:
    """Return the law of noise on the null space of all equalities; refuse where none is known."""
    if costs is not None and law != "optimal":
        raise Refused(f"weights say what law='optimal' makes least, found law={law!r}")
    if basis is not None:
        geometry = Geometry.of(query, system, neighbours)
        return extended_laplace.by_basis(system.null_space(), geometry, neighbours, basis)
    spaces, tree = CubeSpaces.of(query, system), TreeSpace.of(query, system)
    if law == "gaussian":
        found = _gaussian(query, system, neighbours, spaces, tree)
    elif law == "optimal":
        found = _optimal(query, system, neighbours, spaces or TreeLevels.of(tree), costs)
    elif law == "correlated":
        found = _correlated(query, system, neighbours, spaces)
    elif law == "laplace":
        found = _laplace(query, system, neighbours, spaces, tree)
    else:
        known = _on_cells(query, neighbours, spaces, tree)
        found = known or k_norm(Geometry.of(query, system, neighbours), neighbours)
    if found.largest == 0 or found.evidence.objective == 0:
        raise Refused(NOTHING_OPEN)
    return found


def _gaussian(
    query: Query, system: System, neighbours: Neighbours, spaces: CubeSpaces | None, tree: TreeSpace | None
) -> SubspaceLaw:
    if spaces is not None:
        return cube_spaces.spherical(spaces, neighbours)
    listed = not neighbours.adds and query.n**2 <= MOST_LISTED
    if tree is not None and (tree.separated or not listed):
        return TreeGaussian(tree, query, neighbours)
    return ProjectedGaussian(system.null_space(), query, neighbours)


def _optimal(
    query: Query, system: System, neighbours: Neighbours, spaces: Spaces | None, costs: Floats | None
) -> SubspaceLaw:
    known = None if spaces is None else spaces.costs(costs)
    if spaces is not None and known is not None:
        return cube_spaces.optimal(spaces, neighbours, known)
    return optimal(Geometry.of(query, system, neighbours), neighbours, costs)


def _correlated(query: Query, system: System, neighbours: Neighbours, spaces: CubeSpaces | None) -> SubspaceLaw:
    if spaces is not None and query.n**2 > MOST_ENTRIES:
        by_waves = waves.correlated(spaces, neighbours)
        if by_waves is not None:
            return by_waves
    return correlated(Geometry.of(query, system, neighbours), neighbours)


def _laplace(
    query: Query, system: System, neighbours: Neighbours, spaces: CubeSpaces | None, tree: TreeSpace | None
) -> SubspaceLaw:
    known: FrameLaplace | None = None
    if spaces is not None:
        variances = spaces.variances(np.ones(len(spaces.free)))
        plain = extended_laplace.projected(query, neighbours, spaces.project, variances)
    else:
        space = system.null_space()
        plain = extended_laplace.projected(
            query,
            neighbours,
            lambda rows: np.ascontiguousarray(space.project(rows.T).T),
            projected_variances(space),
        )
        known = None if tree is None else _paths(query, neighbours, tree)
    if query.cells is None:
        return plain
    best = plain if known is None or known.evidence.objective >= plain.evidence.objective else known
    try:
        geometry = Geometry.of(query, system, neighbours)
    except Refused:
        return best  # too large for a table of columns
    tried = extended_laplace.extended(system.null_space(), geometry, neighbours, plain)
    return tried if tried.evidence.objective <= best.evidence.objective else best


def _on_cells(query: Query, neighbours: Neighbours, spaces: CubeSpaces | None, tree: TreeSpace | None) -> KNorm | None:
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


def _paths(query: Query, neighbours: Neighbours, tree: TreeSpace) -> FrameLaplace | None:
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
