"""Choosing a method: every method that holds what was asked, at the same total guarantee, and its expected errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Refused
from holdfast.mechanism.mechanism import Mechanism
from holdfast.mechanism.published.linear import possible as can_have_error_bars
from holdfast.privacy import Guarantee
from holdfast.queries.co_changes.by_column import CoChanges
from holdfast.release.facts.table import ComparedMethod
from holdfast.release.job.errors import Errors, errors
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
from holdfast.release.table.exactly import Derived
from holdfast.release.table.holding import Holding
from holdfast.release.table.shape import Layout
from holdfast.release.table.wording import REAL, in_words_of_the_spec

#: Simulated errors are equal when they agree to this many digits.
DIGITS = 2
#: So much of the least expected error a method with error bars may have and is chosen before one without.
WORTH_ERROR_BARS = 1.02
ESTIMATE = "its statement is an estimate and not proved: write method: {} to accept that"
NUMERICAL = "its statement has a delta for numerical error, and only epsilon is asked: ask for a delta too"
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

    def methods(self, law: str) -> tuple[str, ...]:
        asked = self.layout.asked.method
        return suited(self.problem, law) if asked == "auto" else asked_for(asked, law)


@dataclass(frozen=True, eq=False)
class Compared:
    """One method in a comparison: its errors at the same guarantee as the others, or why it is out of the question.

    `last_resort`: its statement is an estimate, or has a delta that was not asked for; it is compared because no other
    method is left. `error_bars`: whether its tables can have them; None where it is out of the question.
    """

    method: str
    noise: str
    errors: Errors | None = None
    refused: str | None = None
    chosen: bool = False
    last_resort: bool = False
    error_bars: bool | None = None

    @property
    def fact(self) -> ComparedMethod:
        """The comparison as a certificate has it."""
        measured, known = self.errors, self.errors is not None and not math.isinf(self.errors.score)
        names = ("method", "noise", "chosen", "last_resort", "refused", "error_bars")
        return ComparedMethod(
            **{name: getattr(self, name) for name in names},
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


def choose_among(choice: Choice, laws: Sequence[str], target: Target) -> tuple[tuple[Compared, ...], Mechanism]:
    """Return the comparison, with the chosen method marked, and its calibrated mechanism.

    The choice looks at the spec and public guesses only: the least mean over levels of the expected absolute error, all
    methods calibrated to the same total guarantee; one that can have error bars (THEORY H10) before one that cannot, if
    it has less than 2 % more. Where there is nothing to choose, no errors are measured.
    """
    pairs = [(law, method) for law in laws for method in choice.methods(law) if fits(method, law)]
    pairs = pairs or [(law, method) for law in laws for method in choice.methods(law)]  # each says why it does not
    several = len(pairs) > 1
    compared: list[Compared] = []
    mechanisms: list[Mechanism | None] = []
    weaker_ones: dict[int, Mechanism] = {}
    for law, method in pairs:
        try:
            mechanism = made(method, choice.problem.noise(law, method), choice.problem)
            fitted = calibrated(mechanism, choice.problem.scope, target(mechanism))
            weaker = _weaker_than_asked(choice, counted(fitted, choice.problem.scope))
            found = _errors(choice, fitted, method) if several and weaker is None else None
        except Refused as refusal:
            reason = in_words_of_the_spec(choice.layout, str(refusal))
            compared.append(Compared(method, law, refused=reason))
            mechanisms.append(None)
        else:
            if weaker is not None:
                weaker_ones[len(compared)] = fitted
            compared.append(Compared(method, law, found, None if weaker is None else weaker.format(method)))
            mechanisms.append(fitted if weaker is None else None)
    if not any(mechanisms):
        _take_weaker(choice, compared, mechanisms, weaker_ones)
    ranks = [_rank(each, mechanism, choice.problem.scope) for each, mechanism in zip(compared, mechanisms, strict=True)]
    compared = [
        each if mechanism is None else replace(each, error_bars=can_have_error_bars(mechanism))
        for each, mechanism in zip(compared, mechanisms, strict=True)
    ]
    best = _with_error_bars(compared, ranks, ranks.index(min(ranks)))
    chosen = mechanisms[best]
    if chosen is None:
        raise _none(choice, [(each.method, each.refused or "") for each in compared])
    compared[best] = replace(compared[best], chosen=True)
    return tuple(compared), chosen


def _errors(choice: Choice, fitted: Mechanism, method: str) -> Errors:
    return errors(choice.layout, choice.problem, fitted, method, choice.guess, choice.more)


def _weaker_than_asked(choice: Choice, statement: Guarantee) -> str | None:
    """Say why `auto` leaves a method out that can be drawn, unless none is left; refuse a δ that was not asked for."""
    asked = choice.layout.spec.privacy
    if statement.delta and asked.epsilon is not None and asked.delta is None:
        raise Refused(NUMERICAL)
    return ESTIMATE if choice.layout.asked.method == "auto" and statement.status != "proved" else None


def _take_weaker(
    choice: Choice, compared: list[Compared], mechanisms: list[Mechanism | None], weaker_ones: dict[int, Mechanism]
) -> None:
    """Let methods in after all that promise a little less than asked, where no other method is left."""
    for i, fitted in weaker_ones.items():
        each = compared[i]
        try:
            found = _errors(choice, fitted, each.method)
        except Refused as refusal:
            compared[i] = replace(each, refused=in_words_of_the_spec(choice.layout, str(refusal)))
        else:
            compared[i], mechanisms[i] = replace(each, errors=found, refused=None, last_resort=True), fitted


def _rank(each: Compared, mechanism: Mechanism | None, scope: str) -> tuple[bool, bool, float, bool, float]:
    """Sort by what can be drawn, what no data can defeat, expected error; equal errors by the stronger statement."""
    if mechanism is None:
        return True, True, np.inf, True, np.inf
    score = 0.0 if each.errors is None else each.errors.score
    whole_orders = counted(mechanism, scope).orders == "integer"
    return False, lists_tables(mechanism), float(f"{score:.{DIGITS}g}"), whole_orders, score


def _with_error_bars(compared: list[Compared], ranks: list[tuple[bool, bool, float, bool, float]], best: int) -> int:
    """The best method, or the best of those that can have error bars and are hardly worse."""
    if compared[best].error_bars is not False:
        return best
    worth = WORTH_ERROR_BARS * ranks[best][-1]
    others = [
        rank
        for each, rank in zip(compared, ranks, strict=True)
        if each.error_bars and rank[:2] <= ranks[best][:2] and rank[-1] <= worth
    ]
    return ranks.index(min(others)) if others else best


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
