"""Error targets: whether a plan meets the errors that are accepted or wanted, and at which budget and split it would.

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
from typing import Any

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Floats, kept
from holdfast.mechanism.mechanism import Mechanism
from holdfast.mechanism.noise_source import Plain
from holdfast.pictures import number
from holdfast.release.job.errors import TABLES, Errors
from holdfast.release.job.job import Job
from holdfast.release.job.methods import Problem
from holdfast.release.job.sharing import descended
from holdfast.release.job.table import Table
from holdfast.release.spec.sections import MOST_ASKED
from holdfast.release.spec.spec import Spec

#: Digits of an amount that is found, and how often a plan is made for it at most.
DIGITS, ROUNDS = 3, 12
#: The least amount that is looked at, how near to the least sufficient one the answer comes, and how far a step goes
#: beyond the amount that a law of proportion proposes, so that both sides close in.
LEAST, NEAR, BEYOND = 1e-3, 1.01, 1.004
#: Figures beyond which the standard errors of tables without a hierarchy take too long for a page that answers at once.
LARGEST = 4_000
#: Steps of the search for a split.
SEARCHED = 160


# --- errors that are accepted at most -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Acceptance:
    """One error of `accept` beside the one that the plan has. An infinite `reached`: nobody can tell it."""

    table: str
    level: str
    error: Decimal
    confidence: Decimal | None
    reached: float

    @property
    def met(self) -> bool:
        return self.reached <= self.error

    def as_mapping(self) -> dict[str, Any]:
        return {
            "table": self.table,
            "level": self.level,
            "error": float(self.error),
            "confidence": _float(self.confidence),
            "reached": None if self.reached == float("inf") else self.reached,
            "met": self.met,
        }

    def __str__(self) -> str:
        if self.reached == float("inf"):
            return f"{self.level}: nobody can tell its errors without a guess, and at most {self.error:f} is accepted"
        if self.confidence is None:
            found = f"off by {number(self.reached)} on average"
        else:
            found = f"{number(float(self.confidence) * 100)} in 100 figures are within {number(self.reached)}"
        return f"{self.level}: {found}, at most {self.error:f} is accepted: {'met' if self.met else 'not met'}"


@dataclass(frozen=True)
class Accepted:
    """What a spec accepts, and the least budget at which all of it would be met, where that was looked for."""

    each: tuple[Acceptance, ...]
    parameter: str
    amount: Decimal | None = None

    @property
    def met(self) -> bool:
        return all(one.met for one in self.each)

    @property
    def remedy(self) -> str:
        if self.amount is None:
            return f"no {self.parameter} is known at which these methods meet all of it"
        return f"at {self.parameter} {self.amount:f} all of it would be met"

    def as_mapping(self) -> dict[str, Any]:
        return {
            "met": self.met,
            "levels": [one.as_mapping() for one in self.each],
            "would_be_met_at": None if self.amount is None else {self.parameter: float(self.amount)},
        }


@kept
def judged(table: Table) -> tuple[Acceptance, ...]:
    """What a spec accepts of a table beside what its plan has; the errors are measured once."""
    laid, at = table.layout, table.layout.at["accept"]
    if not laid.asked.accept:
        return ()
    levels, found = table.errors.levels, []
    for name, one in laid.asked.accept.items():
        level = levels[laid.levels.index(laid.level(name, at[name]))]
        reached = level.within(_float(one.confidence))
        found.append(Acceptance(table.name, level.name, one.error, one.confidence, reached))
    return tuple(found)


def accepted(job: Job) -> Accepted | None:
    """Judge a plan by what its spec accepts, and look for a budget where it is not met; None: nothing is said."""
    found = Accepted(tuple(one for table in job.tables for one in judged(table)), parameter_of(job.spec))
    if not found.each:
        return None
    return found if found.met else Accepted(found.each, found.parameter, least_amount(job, _wishes(job)))


def _wishes(job: Job) -> list[Wish]:
    return [
        Wish(t, table.layout.levels.index(one.level), float(one.error), _float(one.confidence))
        for t, table in enumerate(job.tables)
        for one in judged(table)
    ]


def _float(number: Decimal | None) -> float | None:
    return None if number is None else float(number)


def refuse_unmet(job: Job) -> None:
    """Refuse a job whose errors would be larger than its spec accepts."""
    found = accepted(job)
    if found is not None and not found.met:
        missed = "; ".join(str(one) for one in found.each if not one.met)
        place = job.tables[0].layout.at["accept"] if len(job.tables) == 1 else job.spec.at["tables"]
        raise place.refuse(f"the errors would be larger than is accepted ({missed}); {found.remedy}")


# --- the least budget -----------------------------------------------------------------------------------------------


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


def least_amount(job: Job, wishes: Sequence[Wish], tables: int = TABLES) -> Decimal | None:
    """The least budget, to three digits, at which the methods of a job meet what is wanted; None: no budget does.

    Errors fall as the noise does, which is in proportion to 1/ε, or 1/√ρ: this proposes amounts, and each is judged by
    the errors of its own plan.
    """
    spec, methods = job.spec, [table.chosen.method for table in job.tables]
    power = 2.0 if parameter_of(spec) == "rho" else 1.0

    def too_large(amount: float) -> float:
        try:
            made = Job.from_spec(at_amount(spec, Decimal(repr(amount)), methods))
            return excess([table.errors_on(tables) for table in made.tables], wishes)
        except Refused:
            return math.nan  # so much is asked that no noise is left, or so little that it cannot be drawn

    start = float(getattr(spec.privacy, parameter_of(spec)))
    return _searched(too_large, start, power)


def _searched(too_large: Callable[[float], float], start: float, power: float) -> Decimal | None:
    """Find the least amount where something that falls as amount^(−1/power) is 1 or less, by narrowing both sides."""
    below, above, amount = LEAST, None, start
    tried = set()
    for _ in range(ROUNDS):
        amount = rounded_up(min(max(amount, LEAST), MOST_ASKED))
        if amount in tried:
            break
        tried.add(amount)
        here = too_large(amount)
        if not math.isfinite(here) or (here > 1 and amount >= MOST_ASKED):
            return None
        if here <= 1:
            above = amount
        else:
            below = amount
        if above is not None and above <= below * NEAR:
            break
        proposed = amount * here**power * (BEYOND if here > 1 else 1 / BEYOND)
        inside = below < proposed < (above or math.inf)
        amount = proposed if inside else math.sqrt(below * (above or MOST_ASKED))
    return None if above is None else Decimal(repr(above)).normalize()


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
