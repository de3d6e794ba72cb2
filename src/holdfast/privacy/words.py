"""A guarantee in plain words, for the person who must sign it."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Protocol

from holdfast.queries.neighbours import Neighbours


class Statement(Protocol):
    """What words need of a guarantee: its fields and whether it is void."""

    @property
    def epsilon(self) -> float | None: ...  # noqa: D102
    @property
    def delta(self) -> float: ...  # noqa: D102
    @property
    def rho(self) -> float | None: ...  # noqa: D102
    @property
    def mu(self) -> float | None: ...  # noqa: D102
    @property
    def orders(self) -> str: ...  # noqa: D102
    @property
    def neighbours(self) -> Neighbours: ...  # noqa: D102
    @property
    def scope(self) -> str: ...  # noqa: D102
    @property
    def status(self) -> str: ...  # noqa: D102
    @property
    def because(self) -> str: ...  # noqa: D102
    @property
    def unprotected(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def numerical_delta(self) -> float: ...  # noqa: D102
    @property
    def caveats(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def assumes(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def exact(self) -> bool: ...  # noqa: D102
    @property
    def losses(self) -> tuple[tuple[tuple[int, Fraction, int], ...], ...]: ...  # noqa: D102
    @property
    def records(self) -> int: ...  # noqa: D102
    @property
    def void(self) -> bool: ...  # noqa: D102


#: Figures shown are rounded up to this many digits, so that words never promise more than numbers.
DIGITS = 6

CHANGES = {
    "add-remove": ("one record is added or removed", "up to {k} records are added or removed"),
    "replace-one": (
        "one record is replaced by any other",
        "up to {k} records are each replaced by any other",
    ),
}


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


def describe(guarantee: Statement) -> str:
    """Say what is hidden, how strongly, against what, what is not protected, and on what grounds."""
    sentences = [_hidden(guarantee)]
    if guarantee.void:
        sentences.append("Nothing is promised: epsilon is infinite.")
    else:
        sentences.extend(_strength(guarantee))
    sentences.extend(_scope(guarantee))
    sentences.extend(f"Not protected: {_plain(item)}." for item in guarantee.unprotected)
    if guarantee.assumes:
        held = "; ".join(_plain(item) for item in guarantee.assumes)
        sentences.append(f"It assumes of every possible dataset: {held}.")
    if guarantee.void:
        sentences.append(f"The reason: {_plain(guarantee.because)}.")
    elif guarantee.status == "proved":
        sentences.append(f"This is proved: {_plain(guarantee.because)}.")
    else:
        sentences.append(f"This rests on an estimate and is not proved: {_plain(guarantee.because)}.")
    if not guarantee.void:
        sentences.append(
            "The figure is attained: no smaller one is true."
            if guarantee.exact
            else "The figure is an upper bound; the truth may be better."
        )
    sentences.extend(f"Note: {_plain(item)}." for item in guarantee.caveats)
    return " ".join(sentences)


def _plain(text: str) -> str:
    return text.strip().rstrip(".")


def _hidden(guarantee: Statement) -> str:
    kind, records = guarantee.neighbours.kind, guarantee.records
    one, many = CHANGES.get(kind, (f"one record changes ({kind})", f"up to {{k}} records change ({kind})"))
    change = one if records == 1 else many.format(k=records)
    shared = (
        ", as long as every exactly published figure stays the same" if (guarantee.scope == "invariant-sharing") else ""
    )
    return f"The statement compares what is published before and after {change}{shared}."


def _strength(guarantee: Statement) -> list[str]:
    sentences = []
    if guarantee.epsilon is not None:
        odds = _odds(guarantee.epsilon)
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
        sentences.append(f"Concentrated privacy holds with rho {figure(guarantee.rho)}{where}.")
    if guarantee.mu is not None:
        sentences.append(
            "The two cases are no easier to tell apart than one draw of normal noise shifted by "
            f"{figure(guarantee.mu)} standard deviations (mu)."
        )
    return sentences


def _odds(epsilon: float) -> str:
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
            "It covers every such change, but only the part of the output that the exactly published figures and the "
            "equalities that hold leave open; that part together with the published figures is not covered."
        ]
    if guarantee.scope == "invariant-sharing":
        return ["It says nothing about changes that alter an exactly published figure."]
    return []
