"""Noise on residuals themselves: every set of axes at every depth has a precision of its own.

A margin with noise of its own measures the coordinates of all sets of axes that it tells alike. What is measured here
is each set by itself, so that the precision of the cells is X = Σ w_{ℓ,S} Σ_v (1_v 1_vᵀ) ⊗ P_S, v the areas of depth ℓ
and P_S the projection on the coordinates of S. What is asked then has the covariance W·X⁺·Wᵀ, and a change d of cells
costs dᵀXd (docs/theory/areas-and-margins.md, section 7). Two cells that agree on the axes T have the entry
∏_{a∈S}(s_a[a ∈ T] − 1)/K in P_S; a cell with itself m_S/K.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Floats
from holdfast.domains import Cube
from holdfast.queries import Neighbours
from holdfast.queries.areas.area_equalities import Axes, known_sets, knows
from holdfast.queries.areas.area_margins import AreaMargins
from holdfast.trees.normal import grains
from holdfast.trees.normal.residuals import Residuals

#: A depth and a set of axes.
Residual = tuple[int, Axes]
#: Ways in which two cells can agree, at most.
MOST_AGREEMENTS = 1 << 14


@dataclass(frozen=True, eq=False)
class Direct(Residuals):
    """The coordinates of a query where every residual has its own precision (0 or none: not measured)."""

    own: Mapping[Residual, float] = field(default_factory=dict)

    @classmethod
    def of(cls, query: AreaMargins, own: Mapping[Residual, float]) -> Direct:
        """Give each residual of a query its precision; refused where nothing measured tells some figure."""
        result = cls(query, (0.0,) * len(query.groups), own)
        if result.untold is not None:
            raise Refused(f"residuals must be measured so that every figure is told, but nothing tells {result.untold}")
        return result

    def _precision(self, axes: Axes) -> Floats:
        return np.array([self.own.get((depth, axes), 0.0) for depth in range(len(self.query.keep))])


def residuals_of(query: AreaMargins) -> list[Residual]:
    """Return every depth with each set of axes that is known there, from the roots down, small sets first."""
    if not grains.alike(query.table):
        raise Refused("residuals need recoded axes whose groups are alike in size: measure margins")
    known = {axes: knows(query.table, query.keep, axes) for axes in known_sets(query.table, query.keep)}
    return [(depth, axes) for depth in range(len(query.keep)) for axes, at in known.items() if at[depth]]


def costs(query: AreaMargins, relation: Neighbours) -> list[list[Fraction]]:
    """Return what a unit of precision of each residual adds to μ², one row for each kind of change.

    The largest sum over a row is μ²: several records at once change at most as often as the dearest record does.
    """
    listed, table, times = residuals_of(query), query.table, relation.records**2
    one = {axes: Fraction(grains.count_of(table, axes), table.cells) for _, axes in listed}
    if relation.adds:
        return [[times * one[axes] for _, axes in listed]]
    rows = []
    for meeting, first, second in query.meetings():
        for agreed in _agreements(table) if meeting >= 0 else [{}]:
            if meeting == first == second and all(agreed.get(a) == a for a in range(len(table.shape))):
                continue  # one and the same cell
            rows.append(
                [
                    times * 2 * (one[axes] - _entry(table, axes, agreed))
                    if depth <= meeting
                    else times * one[axes] * ((depth <= first) + (depth <= second))
                    for depth, axes in listed
                ]
            )
    return sorted({tuple(row): list(row) for row in rows}.values()) or [[Fraction(0)] * len(listed)]


def _agreements(table: Cube) -> list[dict[int, int]]:
    """Return all ways in which two cells agree: for each axis the finest of its recodings on which they do, if any."""
    choices: list[list[int | None]] = []
    for axis in range(len(table.shape)):
        chain = table.chain(axis)
        finer = [
            table.sizes[b] // (table.sizes[a] if a is not None else 1)
            for a, b in zip([None, *chain], chain, strict=False)
        ]
        # They part below a member of the chain only where its groups have several parts.
        choices.append([each for each, parts in zip([None, *chain], [*finer, 2], strict=True) if parts > 1])
    if np.prod([len(each) for each in choices], dtype=np.float64) > MOST_AGREEMENTS:
        raise Refused("residuals of so many axes are measured for add-remove only: measure margins, or ask fewer axes")
    return [{axis: each for axis, each in enumerate(chosen) if each is not None} for chosen in product(*choices)]


def _entry(table: Cube, axes: Axes, agreed: Mapping[int, int]) -> Fraction:
    """Return the entry of P_S at two cells."""
    found = Fraction(1, table.cells)
    for axis in axes:
        chain = table.chain(table.own(axis))
        at = chain.index(axis)
        shared = agreed.get(table.own(axis))
        depth = -1 if shared is None else chain.index(shared)
        if depth >= at:
            found *= table.rank(axis)
        elif depth == at - 1:
            found *= -(table.sizes[chain[at - 1]] if at else 1)
        else:
            return Fraction(0)
    return found
