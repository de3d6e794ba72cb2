"""From the name of a law and what must hold to the law itself: structure first, dense tables where there is none."""

from __future__ import annotations

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Floats
from holdfast.constraints import System
from holdfast.queries import Neighbours, Query
from holdfast.subspace import cube_spaces, extended_laplace
from holdfast.subspace.cube_spaces import CubeSpaces
from holdfast.subspace.gaussian_laws import ProjectedGaussian, correlated, optimal, projected_variances
from holdfast.subspace.geometry import NOTHING_OPEN, Geometry
from holdfast.subspace.k_norm import Cells, KNorm, k_norm
from holdfast.subspace.law import SubspaceLaw
from holdfast.system import one_thread

#: The laws by their names, best first.
LAWS = ("optimal", "gaussian", "correlated", "laplace", "k-norm")
GAUSSIAN = ("optimal", "gaussian", "correlated")


@one_thread()
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
    spaces = CubeSpaces.of(query, system)
    if law == "gaussian":
        found = _gaussian(query, system, neighbours, spaces)
    elif law == "optimal":
        found = _optimal(query, system, neighbours, spaces, costs)
    elif law == "correlated":
        found = correlated(Geometry.of(query, system, neighbours), neighbours)
    elif law == "laplace":
        found = _laplace(query, system, neighbours, spaces)
    else:
        known = _on_cells(query, neighbours, spaces)
        found = known or k_norm(Geometry.of(query, system, neighbours), neighbours)
    if found.largest == 0 or found.evidence.objective == 0:
        raise Refused(NOTHING_OPEN)
    return found


def _gaussian(query: Query, system: System, neighbours: Neighbours, spaces: CubeSpaces | None) -> SubspaceLaw:
    if spaces is not None:
        return cube_spaces.spherical(spaces, neighbours)
    return ProjectedGaussian(system.null_space(), query, neighbours)


def _optimal(
    query: Query, system: System, neighbours: Neighbours, spaces: CubeSpaces | None, costs: Floats | None
) -> SubspaceLaw:
    known = None if spaces is None else spaces.costs(costs)
    if spaces is not None and known is not None:
        return cube_spaces.optimal(spaces, neighbours, known)
    return optimal(Geometry.of(query, system, neighbours), neighbours, costs)


def _laplace(query: Query, system: System, neighbours: Neighbours, spaces: CubeSpaces | None) -> SubspaceLaw:
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
    if query.cells is None:
        return plain
    try:
        geometry = Geometry.of(query, system, neighbours)
    except Refused:
        return plain  # too large for a table of columns
    return extended_laplace.extended(system.null_space(), geometry, neighbours, plain)


def _on_cells(query: Query, neighbours: Neighbours, spaces: CubeSpaces | None) -> KNorm | None:
    """K of cells of which at most the total is exact; None for anything else."""
    if not query.identity or spaces is None or len(spaces.free) < 2 ** len(_moving(spaces)) - 1:
        return None
    return _cells(query.n, neighbours, total=() not in spaces.free)


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
