"""The nearest table on a hierarchy whose figures side by side have exact totals: that of the trees below the totals.

What is above them is not measured and has no weight, so the nearest point is that of these trees, with its sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from holdfast.arrays import Array, Floats, Ints, kept
from holdfast.noise import Independent
from holdfast.noise.spread import Spread
from holdfast.onto.problem import Problem, Ties
from holdfast.onto.ways.hierarchy import Linear, spread_of
from holdfast.trees.nearest.best_linear import error_variances, error_weights
from holdfast.trees.nearest.nearest import Nearest
from holdfast.trees.shape.under_totals import UnderTotals


@dataclass(frozen=True, eq=False)
class Trees:
    """The trees below the totals, and the rows of `space` in which the totals stand."""

    under: UnderTotals
    nearest: Nearest
    rows: Ints


def accepts(problem: Problem) -> bool:
    """Whether the system is of this kind and no unmeasured leaf is left open."""
    return _trees(problem) is not None


@kept
def _trees(problem: Problem) -> Trees | None:
    under = None if problem.forest is not None else UnderTotals.of(problem.system, np.isfinite(problem.spreads))
    if under is None:
        return None
    spreads = np.append(problem.spreads[under.kept], np.full(under.groups.shape[0], np.inf))
    nearest = Nearest.of(under.parents, under.exact, spreads, absolute=problem.norm == "l1")
    rows, groups = problem.space.rows, under.groups
    place = {tuple(sorted(rows.indices[a:b])): row for row, (a, b) in enumerate(pairwise(rows.indptr))}
    found = np.array([place.get(tuple(sorted(groups.indices[a:b])), -1) for a, b in pairwise(groups.indptr)])
    return Trees(under, nearest, found) if nearest.determined and (found >= 0).all() else None


def image(problem: Problem, noisy: Array, right: Array, ties: Ties = None) -> Array:
    trees = _trees(problem)
    assert trees is not None
    under, totals = trees.under, np.asarray(right)[trees.rows]
    low, high = (np.append(side[under.kept], totals.astype(side.dtype)) for side in problem.bounds(right))
    beside = np.broadcast_to(totals.astype(noisy.dtype), (len(noisy), totals.size))
    return under.filled(trees.nearest.move(np.concatenate([noisy[:, under.kept], beside], axis=1), low, high, ties))


def spread(problem: Problem, law: Independent) -> Spread | None:
    """Errors from those of least squares on the trees below the totals; None where there are bounds."""
    trees = _trees(problem)
    assert trees is not None
    under, n = trees.under, problem.n

    def counted(weights: Floats) -> Floats:
        found = np.zeros(n)
        found[under.kept] = error_weights(trees.nearest, under.moved(weights))[: under.kept.size]
        return found

    def linear(variances: Floats) -> Linear:
        below = np.append(variances[under.kept], np.zeros(under.groups.shape[0]))
        errors = np.empty(n)
        errors[under.kept] = np.sqrt(error_variances(trees.nearest, below)[: under.kept.size])
        errors[under.above] = [(counted(np.eye(1, n, k)[0]) ** 2 @ variances) ** 0.5 for k in under.above.tolist()]
        return errors, counted

    return spread_of(problem, law, image, linear)
