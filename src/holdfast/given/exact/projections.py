"""Projections on the null space that are prepared once and used for many draws.

Where the rows are margins of a cube and all outputs vary alike, the projection subtracts means: by inclusion and
exclusion over the listed margins, x − Σ_T c_T·(mean of x over the axes outside T), T running through the margins and
their intersections. Otherwise AΣAᵀ is factorised once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from holdfast.arrays import Floats, Ints, compiled, kept
from holdfast.constraints import NullSpace
from holdfast.given.problem import Problem


class Projection(Protocol):
    """x − ΣAᵀ(AΣAᵀ)⁻¹A x for every row x of an array, Σ the variances of the outputs."""

    def __call__(self, rows: Floats) -> Floats:
        """Project each row of (size, n); the array given may be changed."""

    def diagonal(self) -> Floats | None:
        """Π_ii for every output where it is known in closed form."""


@kept
def projection(problem: Problem) -> Projection:
    """The projection of a problem in which every output is measured, made once."""
    space = problem.space
    means = space.cube_margins is not None and problem.uniform_scale()
    return Means.of(space) if means else Factorised(space.weighted_projection(problem.law.variances))


@dataclass(frozen=True, eq=False)
class Means:
    """Subtract means over the margins of a cube. Term k has coefficient c_k and one group for each of its cells."""

    groups: Ints  # (terms, n): the cell of term k that cell i adds to
    starts: Ints  # where the cells of each term begin among all
    factors: Floats  # c_T divided by the number of cells that are averaged
    share: float  # of the dimensions that is left

    @classmethod
    def of(cls, space: NullSpace) -> Means:
        """Write the margins out as terms of inclusion and exclusion."""
        assert space.cube_margins is not None
        shape, keep = space.cube_margins
        cells = np.unravel_index(np.arange(space.n), shape)
        groups: list[Ints] = []
        sizes: list[int] = []
        factors: list[float] = []
        for axes, factor in _signed_sum([frozenset(margin) for margin in keep]).items():
            group = np.zeros(space.n, dtype=np.int64)
            for axis in sorted(axes):
                group = group * shape[axis] + cells[axis]
            size = int(group.max(initial=0)) + 1
            groups.append(group + sum(sizes))
            sizes.append(size)
            factors.append(factor * size / space.n)
        starts = np.cumsum([0, *sizes])
        return cls(np.stack(groups), starts, np.array(factors), space.dimension / space.n)

    def __call__(self, rows: Floats) -> Floats:
        """Project each row of (size, n), in place."""
        _subtract_means(self.groups, self.starts, self.factors, rows)
        return rows

    def diagonal(self) -> Floats:
        return np.full(self.groups.shape[1], self.share)  # the same for every cell, by symmetry


def _signed_sum(margins: list[frozenset[int]]) -> dict[frozenset[int], int]:
    """The projection on the sum of the margins' spaces as a signed sum of those of their intersections.

    P_S P_T = P_{S∩T}, all commute, and 1 − ∏(1 − P_S) is the projection on the sum.
    """
    left: dict[frozenset[int], int] = {}
    for margin in margins:
        found = dict(left)
        found[margin] = found.get(margin, 0) + 1
        for axes, factor in left.items():
            both = axes & margin
            found[both] = found.get(both, 0) - factor
        left = {axes: factor for axes, factor in found.items() if factor}
    return left


@compiled
def _subtract_means(groups: Any, starts: Any, factors: Any, rows: Any) -> None:  # pragma: no cover (compiled)
    terms, n = groups.shape
    totals = np.empty(starts[-1])
    for r in range(rows.shape[0]):
        totals[:] = 0.0
        for k in range(terms):
            for i in range(n):
                totals[groups[k, i]] += rows[r, i]
            for place in range(starts[k], starts[k + 1]):
                totals[place] *= factors[k]
        for k in range(terms):
            for i in range(n):
                rows[r, i] -= totals[groups[k, i]]


@dataclass(frozen=True, eq=False)
class Factorised:
    """A sparse factorisation of AΣAᵀ, kept over draws."""

    project: Callable[[Any], Floats]

    def __call__(self, rows: Floats) -> Floats:
        """Project each row of (size, n)."""
        return np.ascontiguousarray(self.project(rows.T).T)

    def diagonal(self) -> None:
        """Not known in closed form."""
