"""The best division of a Gaussian budget over the levels and margins of a query, and how far it is from any other way.

Wanted: the least Σ weight × squared error of the outputs after best linear estimation (split_problem.py; THEORY §10,
H7).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from holdfast.arguments import ByLevel, Refused, one_of, rational, shown
from holdfast.arrays import Floats
from holdfast.domains import Cube, Hierarchy
from holdfast.queries import Neighbours, Query, Relation
from holdfast.queries.areas.area_margins import AreaMargins
from holdfast.queries.areas.tree_counts import TreeCounts
from holdfast.queries.identity import CellCounts
from holdfast.queries.margin_counts import MarginCounts
from holdfast.trees.normal import grains
from holdfast.trees.normal.direct import costs as residual_costs
from holdfast.trees.normal.direct import residuals_of
from holdfast.trees.normal.split_problem import GAP, Problem, ResidualProblem

#: What shares can make least.
SQUARES, MEAN, WORST = MINIMISE = ("sum of squares", "mean relative error", "worst relative error")
#: Mixtures of groups that are tried for the worst of them, and the part of its error at which that is enough.
WORST_ROUNDS, WORST_GAP = 60, 1e-4
#: Mixtures of kinds of pairs that are tried where several may be dearest.
MIXTURES = 30
#: The share of a figure that costs nothing, where all others together have 1.
FREE = 10**6


class Shares(dict[Any, Fraction]):
    """Shares by level, or by level and margin; a level is asked for by its name or, as in `query.groups`, its depth."""

    def __init__(self, shares: Mapping[Any, Fraction], levels: Sequence[str]) -> None:
        super().__init__(shares)
        self._levels = tuple(levels)

    def __missing__(self, key: Any) -> Fraction:
        depth, *margin = key if isinstance(key, tuple) else (key,)
        if not isinstance(depth, (int, np.integer)) or not 0 <= depth < len(self._levels):
            raise KeyError(key)
        return self[(self._levels[depth], *margin) if margin else self._levels[depth]]


@dataclass(frozen=True)
class Split:
    """Shares of a budget for `gaussian(query, rho=…, shares=split.shares)`. Made by `best_shares`.

    Args:
        shares: the part of every level (or margin of a level), by the level's name or depth.
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
    query: Query,
    weights: ByLevel | None = None,
    neighbours: Relation = "add-remove",
    *,
    minimise: str = SQUARES,
    residuals: bool = False,
) -> Split:
    """Divide a Gaussian budget over the levels and margins of a query so that the weighted squared error is least.

    Args:
        query: `counts` of a hierarchy, with or without attributes.
        weights: {level or (level, margin): weight of the squared error of each of its outputs}, 0 where none is given;
            None: all outputs alike.
        neighbours: what a release protects; with "replace-one" the total of all is free.
        minimise: "sum of squares"; or, squared errors relative to the square of the mean figure of a level and margin,
            their weighted "mean relative error" over levels and margins, or the "worst relative error" among them.
        residuals: divide it over the residuals, for `gaussian(query, …, residuals=True)`: never more error than shares
            of margins, and on a single cube with add-remove `lower_bound` itself.

    Guarantee:
        `squared_error` is attained by the shares, and no Gaussian mechanism goes below `lower_bound` (THEORY H7).

    Example:
        >>> import holdfast as hf
        >>> query = hf.counts(hf.Hierarchy.from_parents([-1, 0, 0, 0, 0]))
        >>> split = hf.best_shares(query)
        >>> hf.gaussian(query, rho=0.5, shares=split.shares).guarantee.rho
        0.5
    """
    asked = in_areas(query)
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
    problem = ResidualProblem(asked, wanted) if residuals else _problem(asked, wanted)
    costs = np.array(residual_costs(asked, relation), np.float64) if residuals else _costs(asked, relation)
    precision, error, gap, problem = (
        _worst(problem, costs) if minimise == WORST else (*_cheapest(problem, costs), problem)
    )
    cost = costs.max(axis=0)
    if isinstance(problem, ResidualProblem):  # a share is what a record that comes or goes sees
        precision = precision * [
            grains.count_of(asked.table, axes) / asked.table.cells for _, axes in problem.residuals
        ]
    keys = residual_names(query) if residuals else _keys(query, asked)
    shares = {key: Fraction(FREE) if c == 0 else Fraction(p) for key, p, c in zip(keys, precision, cost, strict=True)}
    lower = problem.bound(relation)
    return Split(Shares(shares, asked.hierarchy.levels), error, gap, min(lower, error))


def _keys(query: Query, asked: AreaMargins) -> list[Any]:
    """What levels and margins are called in shares."""
    if isinstance(query, AreaMargins):
        return [(asked.hierarchy.levels[depth], axes) for depth, axes in asked.groups]
    return list(query.levels or {"all": 0})


def residual_names(query: Query) -> list[Any]:
    """What residuals are called in shares: a level with a set of axes; of a query without levels the set alone."""
    asked = in_areas(query)
    listed = residuals_of(asked)
    if isinstance(query, (AreaMargins, TreeCounts)):
        return [(asked.hierarchy.levels[depth], axes) for depth, axes in listed]
    return [axes for _, axes in listed]


def linear_parts(query: Query) -> Callable[[Floats], Floats]:
    """The sum of the squared errors of every level or margin after best linear estimation, from its precisions."""
    asked = in_areas(query)
    return _problem(asked, np.ones(len(asked.groups))).parts


def _problem(asked: AreaMargins, wanted: Floats) -> Problem:
    if not grains.alike(asked.table):
        raise Refused("best shares need recoded axes whose groups are alike in size: give shares")
    return Problem(asked, wanted)


def _cheapest(problem: Problem, costs: Floats) -> tuple[Floats, float, float]:
    """Return precisions, their error at a true cost of 1, and how much less there could be at most.

    The cost is that of the dearest kind of pair. Every mixture of the kinds costs no more, so the optimum for a mixture
    is a lower bound, and for the best mixture the optimum itself: kinds that turn out dearer get more weight.
    """
    costs = _undominated(costs)
    mixture = np.full(len(costs), 1 / len(costs))
    best, error, least, power = None, math.inf, -math.inf, 2.0
    for _ in range(1 if len(costs) == 1 else MIXTURES):
        found, value, gap = problem.solved(mixture @ costs)
        paid = np.where(costs > 0, costs * np.where(np.isinf(found), 0.0, found), 0.0).sum(axis=1)
        paid[(costs[:, np.isinf(found)] > 0).any(axis=1)] = math.inf
        if value - gap > least:
            least = value - gap
        else:
            power /= 2  # the last step was too long
        if best is None or value * paid.max() < error:
            best, error = found, value * float(paid.max())
        if error - least <= 10 * GAP * error:
            break
        mixture = mixture * np.minimum(paid, 4.0) ** power
        mixture = mixture / mixture.sum()
    assert best is not None
    return best, error, max(error - least, 0.0)


def _undominated(costs: Floats) -> Floats:
    """Leave out kinds that cost no more than another one, whatever the precisions are."""
    kept: list[Floats] = []
    for row in costs[np.argsort(-costs.sum(axis=1), kind="stable")]:
        if not any((row <= other).all() for other in kept):
            kept.append(row)
    return np.array(kept)


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


def in_areas(query: Query) -> AreaMargins:
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
