"""Choosing a method: every method that holds what was asked, at the same total guarantee, and its expected errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Refused
from holdfast.mechanism.mechanism import Mechanism
from holdfast.mechanism.published.linear_estimates import possible as can_have_error_bars
from holdfast.queries.co_changes.by_column import CoChanges
from holdfast.release.facts import ComparedMethod
from holdfast.release.job.errors import COMPARED, NUMBERS, Errors, errors, simulated_tables
from holdfast.release.job.kept_errors import kept
from holdfast.release.job.methods import (
    NO_NOISE,
    Problem,
    asked_for,
    calibrated,
    counted,
    fits,
    lists_tables,
    made,
    suited,
)
from holdfast.release.table.holding import Derived, Holding
from holdfast.release.table.shape import Layout
from holdfast.release.table.wording import REAL, in_words_of_the_spec

#: Simulated errors are equal when they agree to this many digits.
DIGITS = 2
#: So much of the least expected error a method with error bars may have and is chosen before one without.
WORTH_ERROR_BARS = 1.02
#: Of two simulated errors the larger may be the better one within so many standard errors of their difference.
UNSURE = 3
#: What a table's statement must meet, given the uncalibrated mechanism.
Target = Callable[[Mechanism], dict[str, Fraction]]


@dataclass(frozen=True, eq=False)
class Choice:
    """A table whose method is to be chosen."""

    layout: Layout
    problem: Problem
    holding: Holding
    guess: npt.NDArray[np.int64] | None
    together: tuple[CoChanges, ...] = ()
    more: Derived | None = None
    #: What is public about the job, where errors are kept from plan to release.
    public: str | None = None

    def methods(self, law: str) -> tuple[str, ...]:
        asked = self.layout.asked.method
        return suited(self.problem, law) if asked == "auto" else asked_for(asked, law)


@dataclass(eq=False)
class Tried:
    """One method in a comparison: its mechanism at the guarantee of the others; `refused`: why it cannot be chosen."""

    method: str
    noise: str
    mechanism: Mechanism | None = None
    errors: Errors | None = None
    refused: str | None = None

    def fact(self, chosen: Tried) -> ComparedMethod:
        measured, known = self.errors, self.errors is not None and not math.isinf(self.errors.score)
        return ComparedMethod(
            method=self.method,
            noise=self.noise,
            chosen=self is chosen,
            refused=self.refused,
            error_bars=None if self.mechanism is None else can_have_error_bars(self.mechanism),
            expected_absolute_error=measured.score if measured is not None and known else None,
            per_level=list(measured.absolute) if measured is not None and known else None,
            basis=None if measured is None else measured.basis,
        )


def choose(choice: Choice, law: str) -> Mechanism:
    """Return the first method that promises something, at any scale."""
    refusals = []
    for method in choice.methods(law):
        try:
            mechanism = made(method, choice.problem.noise(law, method), choice.problem)
            counted(mechanism, choice.problem.scope)
        except Refused as refusal:
            refusals.append((method, in_words_of_the_spec(choice.layout, str(refusal))))
        else:
            return mechanism
    raise _none(choice, refusals)


def choose_among(
    choice: Choice, laws: Sequence[str], target: Target
) -> tuple[tuple[ComparedMethod, ...], Mechanism, Errors | None]:
    """Return the comparison, with the chosen method marked, its calibrated mechanism, and its errors if measured.

    The choice looks at the spec and public guesses only: the least mean over levels of the expected absolute error, all
    methods calibrated to the same total guarantee; one that can have error bars (THEORY H10) before one that cannot, if
    it has less than 2 % more. Where there is nothing to choose, no errors are measured. Few tables compare; more are
    simulated for the chosen method, and where few leave open which is better.
    """
    pairs = [(law, method) for law in laws for method in choice.methods(law) if fits(method, law)]
    pairs = pairs or [(law, method) for law in laws for method in choice.methods(law)]  # each says why it does not
    tried = [_tried(choice, law, method, target) for law, method in pairs]
    if len(pairs) > 1:
        _measure(choice, tried)
    drawn = [
        (_rank(each, each.mechanism, choice.problem.scope), number, each.mechanism)
        for number, each in enumerate(tried)
        if each.mechanism is not None and each.refused is None
    ]
    if not drawn:
        raise _none(choice, [(each.method, each.refused or "") for each in tried])
    rank, number, chosen = min(drawn, key=lambda one: one[:2])
    if not can_have_error_bars(chosen):  # the best of those that can, if it is hardly worse
        worth = WORTH_ERROR_BARS * rank[-1]
        others = [one for one in drawn if can_have_error_bars(one[2]) and one[0][0] <= rank[0] and one[0][-1] <= worth]
        rank, number, chosen = min(others, key=lambda one: one[:2], default=(rank, number, chosen))
    _measure_more(choice, tried[number])
    return tuple(each.fact(tried[number]) for each in tried), chosen, tried[number].errors


def _tried(choice: Choice, law: str, method: str, target: Target) -> Tried:
    one = Tried(method, law)
    try:
        mechanism = made(method, choice.problem.noise(law, method), choice.problem)
        one.mechanism = calibrated(mechanism, choice.problem.scope, target(mechanism))
    except Refused as refusal:
        one.refused = in_words_of_the_spec(choice.layout, str(refusal))
        if choice.layout.asked.method == "auto":
            one.refused = one.refused.partition("; otherwise write method")[0]
    return one


def _measure(choice: Choice, tried: list[Tried]) -> None:
    """Measure the errors of all methods that could be the best, and better of those that few tables leave open."""
    for each in tried:
        each.refused = each.refused or _never_better(choice, each, tried)
        if each.mechanism is not None and each.refused is None:
            each.errors = _measured(choice, each, each.mechanism, COMPARED)
    known = [(each, each.errors) for each in tried if each.errors is not None and each.errors.tables]
    for each, measured in known:
        _, best = min(known, key=lambda one: one[1].score)
        if measured.score - best.score <= UNSURE * math.hypot(measured.uncertain, best.uncertain):
            _measure_more(choice, each)


def _measure_more(choice: Choice, one: Tried) -> None:
    """Measure the errors of a method on more tables, where more are simulated than compare."""
    mechanism, known = one.mechanism, one.errors
    if mechanism is None or known is None or not known.tables:
        return
    if known.tables < simulated_tables(choice.layout, mechanism, NUMBERS):
        one.errors = _measured(choice, one, mechanism, NUMBERS)


def _never_better(choice: Choice, one: Tried, tried: list[Tried]) -> str | None:
    """Why a method need not be simulated: far from every bound another has no larger error; None if that is not known.

    There topdown and bluedown are linear estimates from the noise of onto, which is the best one; and given has the law
    of given-then-onto, of noise that is as large at least.
    """
    better = {"topdown": "onto", "bluedown": "onto", "given": "given-then-onto"}.get(one.method)
    other = next((each for each in tried if (each.method, each.noise) == (better, one.noise)), None)
    if choice.guess is not None or choice.problem.unequal is None or other is None or choice.problem.is_union:
        return None
    if one.mechanism is None or other.mechanism is None:
        return None
    less, more = (each.base.law.variances for each in (other.mechanism, one.mechanism))
    alike = np.asarray(less).shape == np.asarray(more).shape and bool((np.asarray(less) <= np.asarray(more)).all())
    return f"not simulated: far from bounds its error is never less than that of {better}" if alike else None


def _measured(choice: Choice, one: Tried, mechanism: Mechanism, numbers: int) -> Errors:
    """Measure the errors of a method on tables with so many numbers."""
    shown = choice.layout, choice.problem, mechanism, one.method, choice.guess, choice.more
    measure = partial(errors, *shown, numbers=numbers)
    if choice.public is None:
        return measure()
    return kept(f"{choice.public} {choice.layout.asked.name!r} {one.method} {one.noise} {numbers}", measure)


def _rank(each: Tried, mechanism: Mechanism, scope: str) -> tuple[bool, float, bool, float]:
    """Sort by what no data can defeat, then expected error; equal errors by the stronger statement."""
    score = 0.0 if each.errors is None else each.errors.score
    whole_orders = counted(mechanism, scope).orders == "integer"
    return lists_tables(mechanism), float(f"{score:.{DIGITS}g}"), whole_orders, score


def _none(choice: Choice, refusals: list[tuple[str, str]]) -> Refused:
    """Say why no method will do, each reason once."""
    laid = choice.layout
    methods: dict[str, list[str]] = {}
    for method, reason in refusals:
        methods.setdefault(reason, []).append(method)
    sentence = next(iter(methods))
    if len(methods) > 1:
        reasons = "; ".join(f"{', '.join(dict.fromkeys(each))}: {reason}" for reason, each in methods.items())
        sentence = f"no method holds everything that is asked ({reasons})"
    if laid.asked.numbers == "whole" and "integer" in sentence and REAL not in sentence:
        sentence += f"; {REAL} in the table allows values that are not whole"
    if NO_NOISE in methods:
        return laid.spec.at["privacy"].refuse(NO_NOISE)
    key = "hold" if laid.asked.method == "auto" and laid.asked.hold else "method"
    return laid.at[key].refuse(sentence, found=laid.asked.method)
