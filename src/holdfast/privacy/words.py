"""A guarantee in plain words, for the person who must sign it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Protocol

from holdfast.queries.neighbours import Neighbours


@dataclass(frozen=True)
class Persons:
    """Whom a statement is about where a person may have several records: a column's values, each with so many."""

    column: str
    records: int


@dataclass(frozen=True)
class Learnable:
    """Whether somebody can learn a column of the records: whether a statement covers all of it, and the answer."""

    column: str
    covered: bool
    answer: str


class Statement(Protocol):
    """What words need of a guarantee: its fields and whether it is void."""

    @property
    def epsilon(self) -> float | None: ...
    @property
    def delta(self) -> float: ...
    @property
    def rho(self) -> float | None: ...
    @property
    def mu(self) -> float | None: ...
    @property
    def orders(self) -> str: ...
    @property
    def neighbours(self) -> Neighbours: ...
    @property
    def scope(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def because(self) -> str: ...
    @property
    def unprotected(self) -> tuple[str, ...]: ...
    @property
    def numerical_delta(self) -> float: ...
    @property
    def caveats(self) -> tuple[str, ...]: ...
    @property
    def assumes(self) -> tuple[str, ...]: ...
    @property
    def exact(self) -> bool: ...
    @property
    def losses(self) -> tuple[tuple[tuple[int, Fraction, int], ...], ...]: ...
    @property
    def records(self) -> int: ...
    @property
    def void(self) -> bool: ...
    @property
    def unit(self) -> Persons | None: ...
    @property
    def columns(self) -> tuple[Learnable, ...]: ...


#: Figures shown are rounded up to this many digits, so that words never promise more than numbers.
DIGITS = 6


def whom(statement: Statement) -> str:
    """Name who or what changes: one record, or one person with all records of theirs, or several."""
    unit, records = statement.unit, statement.records
    if unit is None or records % unit.records:
        return "one record" if records == 1 else f"up to {records} records"
    persons = records // unit.records
    named = f"one {unit.column}" if persons == 1 else f"up to {persons} persons (values of {unit.column!r})"
    return named if unit.records == 1 else f"{named}, whatever their records,"


def change(statement: Statement) -> str:
    """Say what changes between the two datasets that a statement compares."""
    who = whom(statement)
    many = who.startswith("up to")
    if statement.neighbours.adds:
        return f"{who} {'are' if many else 'is'} added or removed"
    return f"{who} {'are each' if many else 'is'} replaced by any other"


def figure(value: float, digits: int = DIGITS) -> str:
    """Write a number with a few digits, rounded up; a short decimal that names this very double stays."""
    if math.isinf(value):
        return "infinity"
    context = Context(prec=digits, rounding=ROUND_CEILING)
    shortest = Decimal(repr(value))
    short = len(shortest.normalize().as_tuple().digits) <= digits
    rounded = (shortest if short else context.create_decimal(Decimal(value))).normalize()
    if rounded == 0:
        return "0"
    return f"{rounded:f}" if Decimal("1e-4") <= rounded < Decimal("1e9") else f"{rounded:e}"


def describe(guarantee: Statement, *, columns: bool = True, figures: bool = True) -> str:
    """Say what is hidden, how strongly, against what, what is not protected, and on what grounds.

    `columns`: also whether somebody can learn each column; `figures`: also which figures are not protected.
    """
    sentences = [_hidden(guarantee), *(learnt(guarantee) if columns else ())]
    if guarantee.void:
        sentences.append("Nothing is promised: epsilon is infinite.")
    else:
        sentences.extend(_strength(guarantee))
    sentences.extend(_scope(guarantee))
    sentences.extend(f"Not protected: {_plain(item)}." for item in guarantee.unprotected if figures)
    sentences.extend(assumed(guarantee))
    sentences.append(grounds(guarantee))
    if not guarantee.void:
        sentences.append(
            "The figure is attained: no smaller one is true."
            if guarantee.exact
            else "The figure is an upper bound; the truth may be better."
        )
    sentences.extend(f"Note: {_plain(item)}." for item in guarantee.caveats)
    return " ".join(sentences)


def assumed(guarantee: Statement) -> list[str]:
    held = "; ".join(_plain(item) for item in guarantee.assumes)
    return [f"It assumes of every possible dataset: {held}."] if held else []


def grounds(guarantee: Statement) -> str:
    known = "This is proved" if guarantee.status == "proved" else "This rests on an estimate and is not proved"
    return f"{'The reason' if guarantee.void else known}: {_plain(guarantee.because)}."


def _plain(text: str) -> str:
    return text.strip().rstrip(".")


def learnt(guarantee: Statement, together: Mapping[str, str] = MappingProxyType({})) -> list[str]:
    """Say of every column whether somebody can learn it, those of one answer together.

    `together`: how many records must change together before a column can take another value, where that is known.
    """
    answers: dict[str, list[str]] = {}
    for row in guarantee.columns:
        needed = f"; {together[row.column]}" if together.get(row.column) else ""
        answers.setdefault(f"{row.answer}{needed}", []).append(row.column)
    told = (f"{', '.join(named)}: {answer}." for answer, named in answers.items())
    return [f"{words[:1].upper()}{words[1:]}" for words in told]


def _hidden(guarantee: Statement) -> str:
    sharing = guarantee.scope == "invariant-sharing"
    shared = ", as long as every exactly published figure stays the same" if sharing else ""
    compared = "he statement compares what is published before and after"
    if guarantee.unit is None:
        return f"T{compared} {change(guarantee)}{shared}."
    first, done = whom(guarantee).rstrip(","), change(guarantee).removeprefix(whom(guarantee))
    they = "these persons" if first.startswith("up to") else f"the {guarantee.unit.column}"
    return f"{first[:1].upper()}{first[1:]}: t{compared} {they}{done}{shared}."


def _strength(guarantee: Statement) -> list[str]:
    sentences = []
    if guarantee.epsilon is not None:
        odds = factor(guarantee.epsilon)
        subspace = guarantee.scope == "subspace"
        what = "values of the part of the output that is covered" if subspace else "outcomes"
        against = "looked at by itself" if subspace else "whatever else a reader knows or computes"
        if guarantee.delta == 0:
            sentences.append(
                f"Epsilon is {figure(guarantee.epsilon)}: such a change moves the probability of any set of "
                f"{what} by a factor of at most {odds}, {against}."
            )
        else:
            sentences.append(
                f"Epsilon is {figure(guarantee.epsilon)} with delta {figure(guarantee.delta)}: such a change moves the "
                f"probability of any set of {what} by a factor of at most "
                f"{odds}, plus at most {figure(guarantee.delta)}, {against}."
            )
    if guarantee.numerical_delta:
        sentences.append(f"Of this delta, {figure(guarantee.numerical_delta)} pays for numerical error.")
    if guarantee.rho is not None:
        where = " at whole Rényi orders from 2 on" if guarantee.orders == "integer" else ""
        sentences.append(f"Rho is {figure(guarantee.rho)}{where} (concentrated privacy): less hides more.")
    if guarantee.mu is not None:
        sentences.append(
            f"Mu is {figure(guarantee.mu)}: before and after are no easier to tell apart than two bell curves whose "
            f"middles lie {figure(guarantee.mu)} standard deviations apart."
        )
    return sentences


def factor(epsilon: float) -> str:
    """Write e to the ε for people, rounded up: two digits of what is beyond 1, or three of what is large."""
    if epsilon >= 700:
        return f"e to the {figure(epsilon)}"
    odds = Decimal(math.nextafter(math.exp(epsilon), math.inf))
    large = odds >= 10
    context = Context(prec=3 if large else 2, rounding=ROUND_CEILING)
    return figure(float(context.create_decimal(odds if large else odds - 1) + (0 if large else 1)))


def _scope(guarantee: Statement) -> list[str]:
    if guarantee.scope == "subspace":
        return [
            "It covers every such change, but only the noisy part of what is published: what is left open by the "
            "exactly published figures and by the sums that must hold. It does not cover the noisy part and the exact "
            "figures together."
        ]
    if guarantee.scope == "invariant-sharing":
        return ["It promises nothing about changes that alter an exactly published figure."]
    return []
