"""Noise on a hierarchy whose figures side by side have exact totals: that of the trees below them.

What is above the totals is not measured: the law of the rest is that of these trees, and each figure above is a sum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from types import ModuleType

import numpy as np
from scipy import special

from holdfast.arrays import Array, Floats, kept
from holdfast.given.exact import hierarchy
from holdfast.given.exact.normal import gaussian_tree
from holdfast.given.problem import Problem, Truth
from holdfast.noise.error_model import ErrorModel
from holdfast.noise.independent import Independent
from holdfast.noise.inversion import Characteristic, Sums
from holdfast.noise.spread import Spread
from holdfast.randomness import Stream
from holdfast.trees.shape.under_totals import UnderTotals


@dataclass(frozen=True, eq=False)
class Trees:
    """The trees below the totals, the problem on them, and the way that draws it."""

    under: UnderTotals
    problem: Problem
    way: ModuleType


def accepts(problem: Problem) -> bool:
    return _trees(problem) is not None


@kept
def _trees(problem: Problem) -> Trees | None:
    law = problem.law
    if problem.forest is not None:
        return None
    under = UnderTotals.of(problem.system, np.isfinite(law.variances))
    if under is None:
        return None
    totals, laws = under.groups.shape[0], law.at(under.kept)
    which = np.append(laws.complete, np.full(totals, len(laws.laws), dtype=np.int32))
    beside = Independent((*laws.laws, None), which, under.kept.size + totals)
    below = Problem(beside, under.system(problem.system), problem.unit)
    way = next((way for way in (hierarchy, gaussian_tree) if way.accepts(below)), None)
    return None if way is None else Trees(under, below, way)


def draw(problem: Problem, truth: Truth, size: int, stream: Stream) -> Array:
    """Draw noise for all outputs, (size, n), with the law of `hierarchy` or `gaussian_tree` below the totals."""
    trees = _trees(problem)
    assert trees is not None
    below = None if truth is None else trees.under.totalled(np.asarray(truth))
    return trees.under.filled(np.asarray(trees.way.draw(trees.problem, below, size, stream)))


def spread(problem: Problem) -> Spread | None:
    """Errors from those below the totals; a figure above has those of a sum."""
    trees = _trees(problem)
    assert trees is not None
    under, found = trees.under, trees.way.spread(trees.problem)
    if found is None:
        return None
    n = problem.law.n

    def variance_of(weights: Floats) -> float:
        return float(found.variance_of(under.moved(weights)))

    rows = np.zeros((under.above.size, n))
    rows[np.arange(under.above.size), under.above] = 1
    errors = np.empty(n)
    errors[under.kept] = found.standard_errors[: under.kept.size]
    errors[under.above] = [np.sqrt(variance_of(row)) for row in rows]

    @cache
    def reach(tail: float) -> list[float]:
        return [_reach(law, under.moved(row), error, tail) for row, error in each]

    def quantiles(p: float) -> Array:
        places = found.quantiles(p)
        result = np.empty(n, dtype=np.float64)
        result[under.kept] = places[: under.kept.size]
        result[under.above] = np.copysign(reach(min(p, 1 - p)), p - 0.5)
        return result

    law, each = found.characteristic, list(zip(rows, errors[under.above].tolist(), strict=True))
    model = ErrorModel("given", problem.law, lambda: problem.space.rows, problem.law.variances)
    return Spread(errors, variance_of, quantiles, characteristic=_through(under, law, n), model=model)


def _through(under: UnderTotals, law: Characteristic | None, n: int) -> Characteristic | None:
    """The characteristic function of sums over all outputs from that of sums below the totals."""
    if law is None:
        return None

    def at_leaves(weights: Floats) -> Floats:
        result = np.zeros(n)
        result[under.kept] = law.at_leaves(under.moved(weights))[: under.kept.size]
        return result

    return replace(
        law,
        of=lambda weights, frequencies: law.of(under.moved(weights), frequencies),
        at_leaves=at_leaves,
        tilted=lambda weights, slope: law.tilted(under.moved(weights), slope),
    )


def _reach(law: Characteristic | None, weights: Floats, error: float, tail: float) -> float:
    """How far a sum of noise reaches; without a characteristic function the noise is normal."""
    if law is None:
        return float(error * special.ndtri(1 - tail))
    sums = Sums([(law, weights)], error)
    found = sums.least_reach(tail)
    found = sums.wide_reach(tail) if found is None else found
    return sums.proved_reach(tail) if found is None else found
