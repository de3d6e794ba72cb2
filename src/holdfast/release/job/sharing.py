"""How a table's budget is divided over its levels and margins: as the spec says, or as the least error asks.

Gaussian noise: the error after best linear estimation is convex in the shares, and its least value is found with a gap
(THEORY H7). Laplace noise on a hierarchy, and exact figures: the errors of best linear estimation, which take no time,
are searched first, from a grid of divisions; from there the search goes on by the errors of the conditional law, which
are computed exactly from its messages, and seldom.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
from scipy import optimize as _optimize

from holdfast.arguments import Refused
from holdfast.arrays import Floats
from holdfast.domains.intervals import output_parents
from holdfast.queries import Neighbours
from holdfast.queries.areas.area_margins import AreaMargins
from holdfast.release.job.methods import Problem, calibrated, made
from holdfast.release.spec.table import MEAN, SQUARES
from holdfast.release.table.shape import Layout
from holdfast.trees.normal.residuals import Residuals
from holdfast.trees.normal.split import FREE, best_shares, linear_parts

minimize: Any = _optimize.minimize
#: Shares are fractions of this many parts, and at least one: nothing that is asked for stays unmeasured.
PARTS = 10**6
#: A level that costs nothing has so many times the share of all others: whole noise of far less could not be weighed.
AMPLE = 10
#: Divisions of the grid at most; steps of the search by linear errors, and by those of the conditional law, with the
#: first step of each and how near to each other the last ones are, relative to their error.
GRID, NEAR_STEPS, STEPS, STEP, END = 30, 200, 30, 0.2, 1e-4
#: The least share of a level that is tried: what is measured next to nothing has messages without end.
LEAST = 0.02


def shares_of(laid: Layout, problem: Problem, law: str) -> dict[str, Fraction] | None:
    """Return the share of every level or margin by its name; None: all outputs alike. `problem` has no shares yet."""
    asked, at = laid.asked, laid.at["shares"]
    if laid.parts:
        return _among_linked(laid, problem, law)
    if asked.shares is None:
        return _below_exact_totals(laid, problem)
    if len(laid.levels) == 1:
        raise at.refuse("shares divide the budget over levels or margins, and this table has only one")
    if isinstance(asked.shares, str):
        return _best(laid, problem, law)
    shares = laid.by_level(asked.shares, at, divide=True)
    if not any(shares.values()):
        raise at.refuse("every share is 0, so nothing would be measured: give one level or margin more")
    if isinstance(laid.query, AreaMargins):
        untold = Residuals(laid.query, tuple(float(shares.get(level, 0)) for level in laid.levels)).untold
        if untold is not None:
            raise at.refuse(f"nothing that is measured tells {untold}: give it, or what determines it, a share")
    return shares


def _below_exact_totals(laid: Layout, problem: Problem) -> dict[str, Fraction] | None:
    """Nothing is measured above exact totals over categories, unless shares are given; None: all outputs alike.

    What is above them is the sum of what is below, and then a hierarchy is left (trees/shape/under_totals.py).
    """
    if laid.tree is None or laid.by == 1 or problem.equal is None:
        return None
    rows = problem.equal.system(laid.query.n).invariants.A
    sizes = np.diff(rows.indptr)
    parents = np.append(output_parents(laid.tree.parents, laid.by), -1)
    above, over = parents[rows.indices[np.repeat(sizes > 1, sizes)]], np.zeros(len(laid.levels), dtype=bool)
    while (above := np.unique(above[above >= 0])).size:
        over[laid.level_of[above]] = True
        above = parents[above]
    if not over.any():
        return None
    return {level: Fraction(int(not unmeasured)) for level, unmeasured in zip(laid.levels, over, strict=True)}


def residual_shares(laid: Layout, neighbours: Neighbours) -> dict[Any, Fraction] | None:
    """Return the share of every residual; None: all alike."""
    if laid.asked.shares is None:
        return None
    try:
        found = best_shares(laid.query, _weights(laid), neighbours, minimise=laid.asked.minimise, residuals=True)
    except Refused as refusal:
        raise laid.at["shares"].refuse(str(refusal)) from None
    return dict(found.shares)


def _among_linked(laid: Layout, problem: Problem, law: str) -> dict[str, Fraction]:
    """Return the shares of all linked tables: the budget of each by its `share`, divided inside it as it says.

    The share of a margin counts for its precision; a household changes it by the square of its most rows.
    """
    found: dict[str, Fraction] = {}
    for name, part in zip((laid.asked.linked or {}), laid.parts, strict=True):
        asked = (laid.asked.linked or {})[name]
        inside = None
        if len(part.levels) > 1:
            inside = shares_of(part, replace(problem, query=part.query, equal=None, unequal=None), law)
        own = inside or dict.fromkeys(part.levels, Fraction(1))
        total = sum(own.values(), Fraction(0)) * asked.most**2 / Fraction(asked.share or 1)
        found |= {f"{name}: {level}": share / total for level, share in own.items()}
    return found


def linear_shares(laid: Layout, neighbours: Neighbours) -> dict[str, Fraction]:
    """The best shares for Gaussian noise and best linear estimation, in no time (H7); near the best for other noise."""
    return _named(laid, _linear(laid, _weights(laid), neighbours))


def _weights(laid: Layout) -> dict[str, Fraction] | None:
    if laid.asked.weights is None:
        return None
    weights = laid.by_level(laid.asked.weights, laid.at["weights"])
    if not any(weights.values()):
        raise laid.at["weights"].refuse("every weight is 0: give one level or margin more")
    return weights


def _linear(laid: Layout, weights: dict[str, Fraction] | None, neighbours: Neighbours) -> Floats:
    try:
        split = best_shares(laid.query, weights, neighbours, minimise=laid.asked.minimise)
    except Refused as refusal:
        raise laid.at["shares"].refuse(str(refusal)) from None
    return np.array([float(value) for value in split.shares.values()])


def _best(laid: Layout, problem: Problem, law: str) -> dict[str, Fraction]:
    weights = _weights(laid)
    linear = _linear(laid, weights, problem.neighbours)
    exact = problem.equal is not None and problem.equal.has_invariants
    if law == "gaussian" and not (exact and laid.tree is not None):
        return _named(laid, linear)
    if laid.tree is None:
        sentence = "the best shares are known for hierarchies, and for other tables with gaussian noise: ask for rho"
        raise laid.at["shares"].refuse(sentence)
    given = {} if weights is None else {level: float(weight) for level, weight in weights.items()}
    wanted = np.array([given.get(level, 0.0 if given else 1.0) for level in laid.levels])
    parts = linear_parts(laid.query)

    def near(shares: Floats) -> float:
        return _of_levels(laid, wanted, parts(shares**2 if law == "laplace" else shares))

    found, _ = searched(lambda shares: _error(laid, problem, law, wanted, shares), np.minimum(linear, 1.0), near)
    return _named(laid, found)


def _named(laid: Layout, shares: Floats) -> dict[str, Fraction]:
    """Shares by the names of the levels; what costs nothing is measured almost exactly."""
    paid = shares < FREE
    whole = np.maximum(np.rint(PARTS * shares / shares[paid].sum()), 1).astype(np.int64)
    return {
        level: Fraction(int(part), PARTS) if costs else Fraction(AMPLE)
        for level, part, costs in zip(laid.levels, whole, paid, strict=True)
    }


def _of_levels(laid: Layout, wanted: Floats, squares: Floats) -> float:
    """What is made least, from the sum of the squared errors of every level."""
    if laid.asked.minimise == SQUARES:
        return float(wanted @ squares)
    relative = wanted * squares * np.bincount(laid.level_of, minlength=len(laid.levels))
    return float(relative.sum() if laid.asked.minimise == MEAN else relative.max())


def _error(laid: Layout, problem: Problem, law: str, wanted: Floats, shares: Floats) -> float:
    """What is made least, at a total of 1 for one record, far from every bound; infinite where it has no law."""
    divided, much = problem.divided(_named(laid, shares)).free, problem.neighbours.records
    for method in ("given", "onto"):
        try:
            whole = made(method, divided.noise(law, method), divided)
            fitted = calibrated(whole, divided.scope, {"epsilon": much} if law == "laplace" else {"rho": 1})
            squares = np.bincount(laid.level_of, fitted.standard_error() ** 2, minlength=len(laid.levels))
        except Refused:
            continue
        return _of_levels(laid, wanted, squares.astype(np.float64))
    return math.inf


def searched(
    error: Callable[[Floats], float], start: Floats, near: Callable[[Floats], float] | None = None
) -> tuple[Floats, float]:
    """Return shares with the least error that is found, and this error.

    Never more than that of `start` and of every division of a grid; with `near`, which stands for the error and takes
    no time, than that of the divisions which it finds best.
    """
    tried = [_not_too_small(start), *grid(start.size)]
    if near is not None:
        first = min(tried, key=near)
        tried = [tried[0], first, descended(near, first, NEAR_STEPS)[0]]
    errors = [error(shares) for shares in tried]
    best, least = tried[int(np.argmin(errors))], min(errors)
    if not math.isfinite(least):
        raise Refused("no division of the budget has errors that are known before data is read: write shares")
    return descended(error, best, STEPS, least)


def descended(
    error: Callable[[Floats], float], start: Floats, steps: int, least: float | None = None
) -> tuple[Floats, float]:
    """Go on from shares, with this error, to better ones, in the logarithms of their ratios (Nelder and Mead)."""
    best = _not_too_small(start)
    lowest = error(best) if least is None else least

    def of_logarithms(point: Floats) -> float:
        nonlocal best, lowest
        shares = _not_too_small(np.exp(np.append(point, 0.0) - np.append(point, 0.0).max()))
        found = error(shares)
        if found < lowest:
            best, lowest = shares, found
        return found

    at = np.log(best[:-1]) - np.log(best[-1])
    simplex = np.vstack([at, at + STEP * np.eye(at.size)])
    options = {"maxfev": steps, "xatol": STEP / 5, "fatol": END * lowest, "initial_simplex": simplex}
    minimize(of_logarithms, at, method="Nelder-Mead", options=options)
    return best, lowest


def _not_too_small(shares: Floats) -> Floats:
    """Shares of 1 in all, LEAST or more (but for the common factor)."""
    floored = np.maximum(shares / shares.sum(), LEAST)
    return np.asarray(floored / floored.sum())


def grid(count: int) -> list[Floats]:
    """All divisions into equal parts among `count` levels, each with at least one; as many parts as GRID allows."""
    parts = count
    while math.comb(parts, count - 1) <= GRID:
        parts += 1
    cuts = combinations(range(1, parts), count - 1)
    return [np.diff([0, *each, parts]) / parts for each in cuts]
