"""The weighted squared error of a query's outputs by the precision of each group, and where it is least.

For every set S of axes the error is that of a hierarchy of scalars (residuals.py), so it and its derivatives come from
passes over classes of alike nodes. It is convex in the precisions p and f(cp) = f(p)/c. So with costs c_g per unit of
precision and Σ c_g p_g = 1 no other division has less than 2f(p) − max_g(−∂f/∂p_g)/c_g: the gap that is measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import optimize as _optimize

from holdfast.arrays import Floats, Ints
from holdfast.queries import Neighbours
from holdfast.queries.areas.area_equalities import Axes, known_sets, knows
from holdfast.queries.areas.area_margins import AreaMargins
from holdfast.trees.normal import grains
from holdfast.trees.normal.bound import least_error
from holdfast.trees.normal.classes import Classes
from holdfast.trees.normal.direct import residuals_of
from holdfast.trees.normal.residuals import scalar_forest

minimize: Any = _optimize.minimize
#: The gap that is reached, as a part of the error.
GAP = 5e-7
#: Small steps after the large ones until then.
ROUNDS = 500
#: The least part of the budget that a group gets: what is not worth measuring is measured with next to nothing.
LEAST = 1e-9
_FAR: Any = {"maxiter": 100, "maxfun": 150, "ftol": 1e-15, "gtol": 1e-10, "maxcor": 30}


class _Found(Exception):
    """Precisions with so small a gap that no further step is needed."""

    def __init__(self, precision: Floats) -> None:
        super().__init__()
        self.precision = precision


@dataclass(frozen=True, eq=False)
class Problem:
    """The weighted squared error of a query's outputs as a function of the precision of each group."""

    query: AreaMargins
    wanted: Floats

    @cached_property
    def _sets(self) -> list[Axes]:
        return known_sets(self.query.table, self.query.keep)

    @cached_property
    def _places(self) -> Classes:
        return Classes.of(self.query.hierarchy.parents, self.query.hierarchy.depth)

    @cached_property
    def _forests(self) -> list[tuple[Ints, Classes]]:
        """The sets of axes that are known at the same depths, with the classes of their common hierarchy of scalars."""
        query = self.query
        rows: dict[tuple[bool, ...], list[int]] = {}
        for row, axes in enumerate(self._sets):
            rows.setdefault(tuple(knows(query.table, query.keep, axes)), []).append(row)
        found = []
        for known, mine in rows.items():
            if all(known):
                found.append((np.array(mine), self._places))
                continue
            _, parents, depths = scalar_forest(query.hierarchy, list(known))
            found.append((np.array(mine), Classes.of(parents, depths)))
        return found

    @cached_property
    def _holds(self) -> Floats:
        """How many cells are summed into one entry of each group's margin, for the sets it keeps: (sets, groups)."""
        kept = [[self.query.table.tells(kept, axes) for _, kept in self.query.groups] for axes in self._sets]
        return np.array(kept) * (self.query.table.cells / self.query.sizes)

    @cached_property
    def _count(self) -> Floats:
        return np.array([float(grains.count_of(self.query.table, axes)) for axes in self._sets])

    @cached_property
    def _depth(self) -> Floats:
        """Whether each group stands at each depth, (groups, depths)."""
        depth = np.array([depth for depth, _ in self.query.groups])
        return (depth[:, None] == np.arange(len(self.query.keep))).astype(np.float64)

    def by_depth(self, values: Floats) -> Floats:
        """Return for every set of axes and depth the sum of cells × value over the margins that keep it."""
        with np.errstate(invalid="ignore"):
            parts = np.where(self._holds > 0, self._holds * values, 0.0)
        infinite = np.isinf(parts)
        total = np.where(infinite, 0.0, parts) @ self._depth
        return np.where(infinite @ self._depth > 0, np.inf, total)

    def measured(self, precision: Floats) -> Floats:
        """Return with which precision the coordinates of every set of axes are measured at each depth."""
        return self.by_depth(precision)

    def _slopes(self, slopes: Floats) -> Floats:
        """Return derivatives by the precisions from those by what they are in every set of axes and depth."""
        return np.asarray((self._holds * (slopes @ self._depth.T)).sum(axis=0))

    def wanted_by_set(self) -> dict[Axes, Floats]:
        return dict(zip(self._sets, self.by_depth(self.wanted), strict=True))

    def bound(self, relation: Neighbours) -> float:
        """Return a lower bound of the weighted squared error of every Gaussian mechanism at μ = 1."""
        return least_error(self.query, self._places, self.wanted_by_set(), relation)

    def error(self, precision: Floats) -> tuple[float, Floats]:
        """Return the weighted squared error and its derivatives."""
        measured, asked = self.measured(precision), self.by_depth(self.wanted)
        value, slopes = 0.0, np.zeros_like(measured)
        for rows, classes in self._forests:
            part, by_depth = classes.error(measured[rows], asked[rows])
            value += float(self._count[rows] @ part)
            slopes[rows] = self._count[rows][:, None] * by_depth
        return value, self._slopes(slopes)

    def parts(self, precision: Floats) -> Floats:
        """Return what the error of each group adds to the weighted squared error."""
        measured, found = self.measured(precision), np.zeros(self.wanted.size)
        for group in np.flatnonzero(self.wanted):
            one = np.zeros(self.wanted.size)
            one[group] = self.wanted[group]
            asked = self.by_depth(one)
            for rows, classes in self._forests:
                mine = rows[asked[rows].any(axis=1)]
                found[group] += float(self._count[mine] @ classes.error(measured[mine], asked[mine])[0])
        return found

    def solved(self, cost: Floats) -> tuple[Floats, float, float]:
        """Return precisions that cost 1 in all, their error, and how much less there could be at most."""
        paid = cost > 0
        start = np.where(paid, 1.0, np.inf)
        start[paid] /= cost[paid].sum()
        if self.error(start)[0] == 0:  # what is wanted is free
            return start, 0.0, 0.0

        def full(precision: Floats) -> Floats:
            return _placed(paid, precision / float(cost[paid] @ precision))

        def logarithm(powers: Floats) -> tuple[float, Floats]:
            precision = np.exp(powers)
            value, slope = self.error(_placed(paid, precision))
            total = float(cost[paid] @ precision)
            if float((-slope[paid] / cost[paid]).max()) * total <= value * (1 + GAP):
                raise _Found(precision)
            return math.log(value) + math.log(total), precision * (slope[paid] / value + cost[paid] / total)

        limits = [(math.log(LEAST), 1.0)] * int(paid.sum())
        try:
            found = minimize(logarithm, np.log(start[paid]), jac=True, method="L-BFGS-B", bounds=limits, options=_FAR)
            precision = self._polished(full(np.exp(found.x)), cost, paid)
        except _Found as enough:
            precision = enough.precision
        best, value, gap = start, math.inf, math.inf
        for step in range(ROUNDS):
            trial = full(precision)
            error, slope = self.error(trial)
            worth = -slope[paid] / cost[paid]
            if float(worth.max()) - error < gap:
                best, value, gap = trial, error, float(worth.max()) - error
            if gap <= GAP * value:
                break
            # Where next to nothing is measured the error bends sharply: what is worth more than it costs may grow.
            precision = np.maximum(trial[paid] * np.sqrt(np.maximum(worth, 0) / error), LEAST)
            if step % 100 == 99:
                try:
                    precision = self._polished(full(precision), cost, paid)
                except _Found as enough:
                    precision = enough.precision
        return best, value, max(gap, 0.0)

    def _polished(self, best: Floats, cost: Floats, paid: Any) -> Floats:
        """Return precisions after sequential quadratic steps on the simplex, where some of them may become 0."""
        at = best[paid]
        unit = self.error(best)[0]

        def relative(part: Floats) -> tuple[float, Floats]:
            precision = np.maximum(part, LEAST) / cost[paid]
            value, slope = self.error(_placed(paid, precision))
            if float((-slope[paid] / cost[paid]).max()) * float(cost[paid] @ precision) <= value * (1 + GAP):
                raise _Found(precision)
            return value / unit, slope[paid] / cost[paid] / unit

        found = minimize(
            relative,
            at * cost[paid],
            jac=True,
            method="SLSQP",
            bounds=[(LEAST, 1.0)] * at.size,
            constraints=[{"type": "eq", "fun": lambda part: part.sum() - 1, "jac": np.ones_like}],
            options={"ftol": 1e-13, "maxiter": 80},
        )
        return np.asarray(np.maximum(found.x, LEAST) / cost[paid])


class ResidualProblem(Problem):
    """The same as a function of the precision of every residual: of a set of axes at a depth."""

    @cached_property
    def residuals(self) -> list[tuple[int, Axes]]:
        return residuals_of(self.query)

    @cached_property
    def _at(self) -> tuple[list[int], list[int]]:
        return [self._sets.index(axes) for _, axes in self.residuals], [depth for depth, _ in self.residuals]

    def measured(self, precision: Floats) -> Floats:
        """Return with which precision the coordinates of every set of axes are measured at each depth."""
        found = np.zeros((len(self._sets), len(self.query.keep)))
        found[self._at] = precision
        return found

    def _slopes(self, slopes: Floats) -> Floats:
        return np.asarray(slopes[self._at])


def _placed(paid: Any, precision: Floats) -> Floats:
    result = np.full(paid.size, np.inf)
    result[paid] = precision
    return result
