"""Errors at another budget or split in no time: those that were measured, scaled as the best linear estimate scales.

Far from bounds the errors of a method move with the noise as those of the best linear estimate do, which are known in
closed form. So what was measured once is scaled, level by level, by the ratio of the two; the figures are near and say
so, and simulation replaces them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import optimize as _optimize

from holdfast.arguments import Refused
from holdfast.arrays import Floats
from holdfast.mechanism.mechanism import Mechanism
from holdfast.mechanism.source import Plain
from holdfast.release.job.methods import Problem
from holdfast.release.job.table import Table
from holdfast.release.wanted.outlook import LevelOutlook, Outlook

minimize: Any = _optimize.minimize
#: Figures beyond which the standard errors of tables without a hierarchy take too long for a page that answers at once.
LARGEST = 4_000
#: Steps of the search for a split, and the smallest part of a budget that it gives: what is left out must be said.
SEARCHED, SMALLEST = 160, 0.01


def level_errors(table: Table) -> Floats | None:
    """The standard error of every level (root mean square) after best linear estimation; None where it is not known."""
    return _of(table, Mechanism(Plain(table.mechanism.base)), table.problem)


def scaled(outlook: Outlook, before: Floats, now: Floats) -> Outlook:
    """What was measured where levels had the standard errors `before`, brought to where they have those of `now`."""
    factors = np.divide(now, before, out=np.ones_like(now), where=before > 0)
    levels = (_times(level, float(factor)) for level, factor in zip(outlook.levels, factors, strict=True))
    return replace(outlook, levels=tuple(levels))


def _times(level: LevelOutlook, factor: float) -> LevelOutlook:
    return replace(
        level,
        absolute=level.absolute * factor,
        uncertain=level.uncertain * factor,
        magnitudes=level.magnitudes * factor,
        reach=level.reach * factor,
    )


def _of(table: Table, noise: Mechanism, problem: Problem) -> Floats | None:
    laid = table.layout
    if laid.tree is None and laid.query.n > LARGEST:
        return None
    try:
        extended = table.mechanism.source.law is not None
        free = table.mechanism if extended else noise
        if problem.equal is not None and not extended:
            free = noise.onto(problem.equal, integer=False)  # moved to real values: errors in closed form
        single = free.standard_error() ** 2
    except Refused:
        return None
    count = np.bincount(laid.level_of, minlength=len(laid.levels))
    found = np.sqrt(np.bincount(laid.level_of, single, len(laid.levels)) / count)
    return found if np.isfinite(found).all() else None


def best_split(
    table: Table, outlook: Outlook, judged: Callable[[Outlook], float] | None = None
) -> Mapping[str, Fraction] | None:
    """Divide the budget of a table over its levels so that its errors are judged least; in hundredths.

    Judged by the mean over the levels of their mean absolute errors, unless told otherwise. None where a table has one
    level, or its errors cannot be scaled. Near, not proved: the errors of the split are then measured like any other.
    """
    before, names = level_errors(table), table.layout.levels
    if before is None or len(names) < 2 or table.mechanism.source.law is not None:
        return None

    def errors_of(problem: Problem) -> Floats | None:
        # The noise of a budget of 1 alone: of what it costs to hold bounds and exact figures only ratios matter.
        return _of(table, problem.noise(table.mechanism.base.law.kind, table.chosen.method), problem)

    reference = errors_of(table.problem)
    if reference is None:
        return None

    def badness(logs: Floats) -> float:
        shares = {
            name: Fraction(share).limit_denominator(10**4) for name, share in zip(names, _normal(logs), strict=True)
        }
        found = errors_of(replace(table.problem, shares=shares))
        if found is None:
            return math.inf
        then = scaled(outlook, reference, found)
        return then.score if judged is None else judged(then)

    first = np.log(np.maximum(_shares_of(table), SMALLEST))
    found = minimize(badness, first, method="Nelder-Mead", options={"maxfev": SEARCHED, "xatol": 0.02, "fatol": 1e-6})
    return _in_hundredths(names, _normal(found.x))


def _shares_of(table: Table) -> Floats:
    """The shares of now, which add up to 1; equal ones where none are set."""
    given, names = table.problem.shares, table.layout.levels
    shares = np.ones(len(names)) if given is None else np.array([float(given.get(name, 0)) for name in names])
    return np.asarray(shares / shares.sum())


def _normal(logs: Floats) -> Floats:
    """Shares that add up to 1, none of them below the smallest."""
    weights = np.exp(logs - logs.max())
    shares = np.maximum(weights / weights.sum(), SMALLEST)
    return np.asarray(shares / shares.sum())


def _in_hundredths(names: Sequence[str], shares: Floats) -> Mapping[str, Fraction]:
    """Whole hundredths that add up to 1: the largest remainders are rounded up."""
    parts = shares * 100
    whole = np.maximum(np.floor(parts), 1).astype(int)
    for i in np.argsort(whole - parts)[: max(100 - int(whole.sum()), 0)]:
        whole[i] += 1
    return {name: Fraction(int(part), 100) for name, part in zip(names, whole, strict=True)}
