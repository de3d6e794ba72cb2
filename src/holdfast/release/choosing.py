"""Choosing a method: every method that holds what was asked, at the same total guarantee, and its expected errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Refused
from holdfast.mechanism import Mechanism
from holdfast.release.domain import Layout
from holdfast.release.errors import Errors, errors
from holdfast.release.holding import Holding
from holdfast.release.methods import Problem, calibrated, counted, lists_tables, made, suited
from holdfast.release.wording import REAL, in_words_of_the_spec

#: Simulated errors are equal when they agree to this many digits.
DIGITS = 2
#: What a table's statement must meet, given the uncalibrated mechanism.
Target = Callable[[Mechanism], dict[str, Fraction]]


@dataclass(frozen=True, eq=False)
class Choice:
    """A table whose method is to be chosen."""

    layout: Layout
    problem: Problem
    holding: Holding
    guess: npt.NDArray[np.int64] | None

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that come into question."""
        asked = self.layout.asked.method
        return suited(self.problem) if asked == "auto" else (asked,)


@dataclass(frozen=True, eq=False)
class Compared:
    """One method in a comparison: its errors at the same guarantee as the others, or why it is out of the question."""

    method: str
    noise: str
    errors: Errors | None = None
    refused: str | None = None
    chosen: bool = False

    def as_mapping(self) -> dict[str, Any]:
        """Return plain values."""
        found = None if self.errors is None or math.isinf(self.errors.score) else self.errors
        return {
            "method": self.method,
            "noise": self.noise,
            "chosen": self.chosen,
            "refused": self.refused,
            "expected_absolute_error": None if found is None else found.score,
            "per_level": None if found is None else list(found.absolute),
            "basis": None if self.errors is None else self.errors.basis,
        }


def choose(choice: Choice, law: str) -> Mechanism:
    """Return the first method that promises something, at any scale."""
    refusals = []
    for method in choice.methods:
        try:
            mechanism = made(method, choice.problem.noise(law), choice.problem)
            counted(mechanism, choice.problem.scope)
        except Refused as refusal:
            refusals.append((method, in_words_of_the_spec(choice.layout, str(refusal))))
        else:
            return mechanism
    raise _none(choice, refusals)


def choose_among(choice: Choice, laws: Sequence[str], target: Target) -> tuple[tuple[Compared, ...], Mechanism]:
    """Return the comparison, with the chosen method marked, and its calibrated mechanism.

    The choice looks at the spec and public guesses only: the least mean over levels of the expected absolute error, all
    methods calibrated to the same total guarantee. Where there is nothing to choose, no errors are measured.
    """
    several = len(choice.methods) * len(laws) > 1
    compared: list[Compared] = []
    mechanisms: list[Mechanism | None] = []
    for law in laws:
        for method in choice.methods:
            try:
                mechanism = made(method, choice.problem.noise(law), choice.problem)
                fitted = calibrated(mechanism, choice.problem.scope, target(mechanism))
                _refuse_estimate(choice, fitted, method)
                found = errors(choice.layout, choice.problem, fitted, method, choice.guess) if several else None
            except Refused as refusal:
                reason = in_words_of_the_spec(choice.layout, str(refusal))
                compared.append(Compared(method, law, refused=reason))
                mechanisms.append(None)
            else:
                compared.append(Compared(method, law, found))
                mechanisms.append(fitted)
    ranks = [_rank(each, mechanism, choice.problem.scope) for each, mechanism in zip(compared, mechanisms, strict=True)]
    best = ranks.index(min(ranks))
    chosen = mechanisms[best]
    if chosen is None:
        raise _none(choice, [(each.method, each.refused or "") for each in compared])
    compared[best] = replace(compared[best], chosen=True)
    return tuple(compared), chosen


def _refuse_estimate(choice: Choice, mechanism: Mechanism, method: str) -> None:
    """Leave a method out whose statement is not proved, unless the spec asks for this very method."""
    if choice.layout.asked.method == "auto" and counted(mechanism, choice.problem.scope).status != "proved":
        raise Refused(f"its statement is an estimate and not proved: write method: {method} to accept that")


def _rank(each: Compared, mechanism: Mechanism | None, scope: str) -> tuple[bool, bool, float, bool, float]:
    """Sort by what can be drawn, what no data can defeat, expected error; equal errors by the stronger statement."""
    if mechanism is None:
        return True, True, np.inf, True, np.inf
    score = 0.0 if each.errors is None else each.errors.score
    whole_orders = counted(mechanism, scope).orders == "integer"
    return False, lists_tables(mechanism), float(f"{score:.{DIGITS}g}"), whole_orders, score


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
    key = "hold" if laid.asked.method == "auto" and laid.asked.hold else "method"
    return laid.spec.error(laid.place(key), sentence, found=laid.asked.method)
