"""The best division of a Gaussian budget over the levels and margins of a query, and how far it is from any other way.

Wanted: the least Σ weight × squared error of the outputs after best linear estimation. For every set S of axes the
error is that of a hierarchy of scalars (residuals.py), so it and its derivatives come from passes over classes of alike
nodes. It is convex in the precisions p and f(cp) = f(p)/c. So with costs c_g per unit of precision and Σ c_g p_g = 1 no
other division has less than 2f(p) − max_g(−∂f/∂p_g)/c_g: the gap that is measured. (THEORY §10, H7.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from scipy import optimize as _optimize

from holdfast.arguments import Refused, one_of, rational, shown
from holdfast.arrays import Floats, Ints
from holdfast.domains import Cube, Hierarchy
from holdfast.queries import Neighbours, Query
from holdfast.queries.areas.area_equalities import Axes, known_sets, knows
from holdfast.queries.areas.area_margins import AreaMargins
from holdfast.queries.areas.tree_counts import TreeCounts
from holdfast.queries.identity import CellCounts
from holdfast.queries.margin_counts import MarginCounts
from holdfast.trees.normal import grains
from holdfast.trees.normal.bound import least_error
from holdfast.trees.normal.classes import Classes
from holdfast.trees.normal.residuals import scalar_forest

minimize: Any = _optimize.minimize
#: What shares can make least.
SQUARES, MEAN, WORST = MINIMISE = ("sum of squares", "mean relative error", "worst relative error")
#: The gap that is reached, as a part of the error.
GAP = 5e-7
#: Small steps after the large ones until then.
ROUNDS = 500
#: Mixtures of groups that are tried for the worst of them, and the part of its error at which that is enough.
WORST_ROUNDS, WORST_GAP = 60, 1e-4
#: Mixtures of kinds of pairs that are tried where several may be dearest.
MIXTURES = 20
#: The least part of the budget that a group gets: what is not worth measuring is measured with next to nothing.
LEAST = 1e-9
_FAR: Any = {"maxiter": 100, "maxfun": 150, "ftol": 1e-15, "gtol": 1e-10, "maxcor": 30}
#: The share of a figure that costs nothing, where all others together have 1.
FREE = 10**6


class _Found(Exception):
    """Precisions with so small a gap that no further step is needed."""

    def __init__(self, precision: Floats) -> None:
        super().__init__()
        self.precision = precision


@dataclass(frozen=True)
class Split:
    """Shares of a budget for `gaussian(query, rho=…, shares=split.shares)`. Made by `best_shares`.

    Args:
        shares: the part of every level (or margin of a level).
        squared_error: the weighted sum of squared errors at μ = 1 after best linear estimation; where relative errors
            are made least, their mean or largest, for one record in all.
        gap: how much less any other shares could have at most.
        lower_bound: what no Gaussian mechanism at all goes below.

    Example:
        >>> import holdfast as hf
        >>> split = hf.best_shares(hf.counts(hf.Hierarchy.from_parents([-1, 0, 0])))
        >>> split.lower_bound <= split.squared_error
        True
    """

    shares: Mapping[Any, Fraction]
    squared_error: float
    gap: float
    lower_bound: float


def best_shares(
    query: Query, weights: Mapping[Any, Any] | None = None, neighbours: Any = "add-remove", *, minimise: str = SQUARES
) -> Split:
    """Divide a Gaussian budget over the levels and margins of a query so that the weighted squared error is least.

    Args:
        query: `counts` of a hierarchy, with or without attributes.
        weights: {level or (level, margin): weight of the squared error of each of its outputs}, 0 where none is given;
            None: all outputs alike.
        neighbours: what a release protects; with "replace-one" the total of all is free.
        minimise: "sum of squares"; or, squared errors relative to the square of the mean figure of a level and margin,
            their weighted "mean relative error" over levels and margins, or the "worst relative error" among them.

    Guarantee:
        `squared_error` is attained by the shares, and no Gaussian mechanism goes below `lower_bound` (THEORY H7).

    Example:
        >>> import holdfast as hf
        >>> query = hf.counts(hf.Hierarchy.from_parents([-1, 0, 0, 0, 0]))
        >>> split = hf.best_shares(query)
        >>> hf.gaussian(query, rho=0.5, shares=split.shares).guarantee.rho
        0.5
    """
    asked = _in_areas(query)
    relation = Neighbours.of(neighbours)
    one_of("minimise", minimise, MINIMISE)
    wanted = np.ones(len(asked.groups))
    if weights is not None:
        wanted = _read(query, weights, wanted.size)
    if minimise != SQUARES:
        # All figures of a group sum up to the same total T, so their mean is T over their number.
        wanted = wanted * asked.sizes * [nodes.size for nodes, _ in asked.places]
    if minimise == MEAN:
        wanted = wanted / (wanted > 0).sum()
    problem = Problem(asked, wanted)
    costs = _costs(asked, relation)
    precision, error, gap, problem = (
        _worst(problem, costs) if minimise == WORST else (*_cheapest(problem, costs), problem)
    )
    cost = costs.max(axis=0)
    keys = list(query.levels or {"all": 0})
    if isinstance(query, AreaMargins):
        keys = [(asked.hierarchy.levels[depth], axes) for depth, axes in asked.groups]  # type: ignore[misc]
    shares = {key: Fraction(FREE) if c == 0 else Fraction(p) for key, p, c in zip(keys, precision, cost, strict=True)}
    lower = least_error(asked, problem.wanted_by_set(), relation)
    return Split(shares, error, gap, min(lower, error))


@dataclass(frozen=True, eq=False)
class Problem:
    """The weighted squared error of a query's outputs as a function of the precision of each group."""

    query: AreaMargins
    wanted: Floats

    @cached_property
    def _sets(self) -> list[Axes]:
        return known_sets(self.query.table, self.query.keep)

    @cached_property
    def _forests(self) -> list[tuple[Ints, Classes]]:
        """The sets of axes that are known at the same depths, with the classes of their common hierarchy of scalars."""
        query = self.query
        rows: dict[tuple[bool, ...], list[int]] = {}
        for row, axes in enumerate(self._sets):
            rows.setdefault(tuple(knows(query.table, query.keep, axes)), []).append(row)
        found = []
        for known, mine in rows.items():
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
        """How many coordinates each set of axes has."""
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

    def wanted_by_set(self) -> dict[Axes, Floats]:
        """Return for every set of axes the weight that is wanted at each depth."""
        return dict(zip(self._sets, self.by_depth(self.wanted), strict=True))

    def error(self, precision: Floats) -> tuple[float, Floats]:
        """Return the weighted squared error and its derivatives."""
        measured, asked = self.by_depth(precision), self.by_depth(self.wanted)
        value, slopes = 0.0, np.zeros_like(measured)
        for rows, classes in self._forests:
            part, by_depth = classes.error(measured[rows], asked[rows])
            value += float(self._count[rows] @ part)
            slopes[rows] = self._count[rows][:, None] * by_depth
        return value, (self._holds * (slopes @ self._depth.T)).sum(axis=0)

    def parts(self, precision: Floats) -> Floats:
        """Return what the error of each group adds to the weighted squared error."""
        measured, found = self.by_depth(precision), np.zeros(self.wanted.size)
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


def _placed(paid: Any, precision: Floats) -> Floats:
    result = np.full(paid.size, np.inf)
    result[paid] = precision
    return result


def _cheapest(problem: Problem, costs: Floats) -> tuple[Floats, float, float]:
    """Return precisions, their error at a true cost of 1, and how much less there could be at most.

    The cost is that of the dearest kind of pair. Every mixture of the kinds costs no more, so the optimum for a mixture
    is a lower bound, and for the best mixture the optimum itself: kinds that turn out dearer get more weight.
    """
    mixture = np.full(len(costs), 1 / len(costs))
    best, error, least = None, math.inf, -math.inf
    for _ in range(1 if len(costs) == 1 else MIXTURES):
        found, value, gap = problem.solved(mixture @ costs)
        paid = np.where(costs > 0, costs * np.where(np.isinf(found), 0.0, found), 0.0).sum(axis=1)
        paid[(costs[:, np.isinf(found)] > 0).any(axis=1)] = math.inf
        least = max(least, value - gap)
        if best is None or value * paid.max() < error:
            best, error = found, value * float(paid.max())
        if error - least <= 10 * GAP * error:
            break
        mixture = mixture * np.minimum(paid, 4.0) ** 2
        mixture = mixture / mixture.sum()
    assert best is not None
    return best, error, max(error - least, 0.0)


def _worst(problem: Problem, costs: Floats) -> tuple[Floats, float, float, Problem]:
    """Return precisions whose largest part of the error is least, that part, how much less it could be at most, and
    the problem of a mixture of the parts that shows it.

    No division has a largest part below the least error of a mixture of the parts. What is above the mean gets more
    weight, what is below less.
    """
    mixture = (problem.wanted > 0) / (problem.wanted > 0).sum()
    best, error, least, shown = None, math.inf, -math.inf, problem
    power = 1.0
    for _ in range(WORST_ROUNDS):
        mixed = replace(problem, wanted=problem.wanted * mixture)
        found, value, gap = _cheapest(mixed, costs)
        scale = value / max(mixed.error(found)[0], 1e-300)  # to a true cost of 1
        parts = problem.parts(found) * scale
        if value - gap > least:
            least, shown = value - gap, mixed
        worst = float(parts.max())
        if worst < error:
            best, error = found, worst
        else:
            power /= 2
        if error - least <= WORST_GAP * error or power < 1e-3:
            break
        mixture = mixture * (np.maximum(parts, 1e-9 * worst) / worst) ** power
        mixture = mixture / mixture.sum()
    assert best is not None
    return best, error, max(error - least, 0.0), shown


def _costs(asked: AreaMargins, relation: Neighbours) -> Floats:
    """Return what a unit of precision of each group costs in μ², one row for each kind of pair that may be dearest."""
    count = len(asked.groups)
    if relation.adds:
        return np.full((1, count), float(relation.records) ** 2)
    rows = []
    for kind in asked.kinds(asked.level_of, Neighbours("replace-one")):
        each = np.zeros(count)
        for (_, group), times in kind.items():
            each[group] += times
        rows.append(each * relation.records**2)
    return np.array(rows) if rows else np.zeros((1, count))


def _read(query: Query, weights: Any, count: int) -> Floats:
    if not isinstance(weights, Mapping) or not weights:
        raise Refused(f"weights must map levels or (level, margin) to numbers, found {shown(weights)}")
    found = np.zeros(count)
    for key, value in weights.items():
        number = rational("a weight", value)
        if number < 0:
            raise Refused(f"a weight must not be negative, found {float(number)!r}")
        found[query.level_number("weights", key)] = float(number)
    if not found.any():
        raise Refused("weights must give at least one level more than 0")
    return found


def _in_areas(query: Query) -> AreaMargins:
    """Return a query of a hierarchy, of margins or of cells as margins in the areas of a hierarchy."""
    if isinstance(query, AreaMargins):
        return query
    if isinstance(query, TreeCounts):
        table = query.table or Cube(query.by)
        whole = (tuple(range(len(table.shape))),)
        return AreaMargins(query.n, query.hierarchy, table, (whole,) * len(query.hierarchy.levels))
    one = Hierarchy.from_parents([-1])
    if isinstance(query, MarginCounts):
        return AreaMargins(query.n, one, query.table, (query.keep,))
    if isinstance(query, CellCounts):
        table = query.table or Cube(query.n)
        return AreaMargins(query.n, one, table, ((tuple(range(len(table.shape))),),))
    raise Refused("query must be counts of a hierarchy, margins or a histogram: others have no levels to divide among")
