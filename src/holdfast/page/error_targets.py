"""Error targets: at which budget and split a plan would have the errors that are wanted.

Errors at another budget or split are known in no time where bounds are far: they move with the noise as those of the
best linear estimate do, which are known in closed form. So what was measured once is scaled, level by level, by the
ratio of the two; the figures are near and say so, and simulation replaces them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Floats
from holdfast.mechanism.mechanism import Mechanism
from holdfast.mechanism.noise_source import Plain
from holdfast.release.job.errors import Errors
from holdfast.release.job.methods import Problem
from holdfast.release.job.sharing import descended
from holdfast.release.job.table import Table
from holdfast.release.spec.spec import Spec

#: Digits of an amount that is found, and the least amount that is looked at.
DIGITS, LEAST = 3, 1e-3
#: Figures beyond which the standard errors of tables without a hierarchy take too long for a page that answers at once.
LARGEST = 4_000
#: Steps of the search for a split.
SEARCHED = 160


# --- the budget -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Wish:
    """An error that is wanted at a level of a table: of the mean, or of this part of the figures."""

    table: int
    level: int
    error: float
    confidence: float | None = None

    def reached(self, measured: Sequence[Errors]) -> float:
        return measured[self.table].levels[self.level].within(self.confidence)

    def met(self, measured: Sequence[Errors]) -> bool:
        return self.reached(measured) <= self.error


def excess(measured: Sequence[Errors], wishes: Sequence[Wish]) -> float:
    """How many times too large the errors are, where they are farthest from what is wanted."""
    return max(wish.reached(measured) / wish.error for wish in wishes)


def parameter_of(spec: Spec) -> str:
    """What a spec asks for: epsilon or rho."""
    return "rho" if spec.privacy.epsilon is None else "epsilon"


def at_amount(spec: Spec, amount: Decimal, methods: Sequence[str]) -> Spec:
    privacy = spec.privacy.model_copy(update={parameter_of(spec): amount})
    tables = tuple(t.model_copy(update={"method": m}) for t, m in zip(spec.tables, methods, strict=True))
    return spec.model_copy(update={"privacy": privacy, "tables": tables})


def rounded_up(amount: float) -> float:
    return float(Context(prec=DIGITS, rounding=ROUND_CEILING).create_decimal(Decimal(amount)))


# --- the best split --------------------------------------------------------------------------------------------------


def level_errors(table: Table) -> Floats | None:
    """The standard error of every level (root mean square) after best linear estimation; None where it is not known."""
    return _of(table, Mechanism(Plain(table.mechanism.base)), table.problem)


def scaled(measured: Errors, before: Floats, now: Floats) -> Errors:
    """What was measured where levels had the standard errors `before`, brought to where they have those of `now`."""
    factors = np.divide(now, before, out=np.ones_like(now), where=before > 0)
    levels = (level.times(float(factor)) for level, factor in zip(measured.levels, factors, strict=True))
    return replace(measured, levels=tuple(levels))


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
    table: Table, measured: Errors, judged: Callable[[Errors], float] | None = None
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

    def badness(shares: Floats) -> float:
        parts = {
            name: Fraction(part).limit_denominator(10**4) for name, part in zip(names, shares.tolist(), strict=True)
        }
        found = errors_of(replace(table.problem, shares=parts))
        if found is None:
            return math.inf
        then = scaled(measured, reference, found)
        return then.score if judged is None else judged(then)

    given = table.problem.shares
    first = np.ones(len(names)) if given is None else np.array([float(given.get(name, 0)) for name in names])
    return _in_hundredths(names, descended(badness, first, SEARCHED)[0])


def _in_hundredths(names: Sequence[str], shares: Floats) -> Mapping[str, Fraction]:
    """Whole hundredths that add up to 1: the largest remainders are rounded up."""
    parts = shares * 100
    whole = np.maximum(np.floor(parts), 1).astype(int)
    for i in np.argsort(whole - parts)[: max(100 - int(whole.sum()), 0)]:
        whole[i] += 1
    return {name: Fraction(int(part), 100) for name, part in zip(names, whole, strict=True)}
