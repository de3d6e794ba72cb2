"""A statement as a card for notebooks: how much, about whom, at which odds, and what it leaves out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from holdfast.pictures import card, number, rows_of, table_of
from holdfast.privacy.odds import amounts, in_hundred
from holdfast.privacy.words import CHANGES, Statement

#: Figures on the card of a release.
FIRST = 8


def promise_rows(statement: Statement) -> dict[str, str]:
    """Return what a statement says, short, by heading."""
    one, many = CHANGES[statement.neighbours.kind]
    scopes = {
        "subspace": "the part that exact figures leave open",
        "invariant-sharing": "data that share exact figures",
    }
    return {
        "hides that": one if statement.records == 1 else many.format(k=statement.records),
        "right guesses": "" if statement.void else f"at most {in_hundred(statement)} in 100 (a coin: 50)",
        "only for": scopes.get(statement.scope, ""),
        "not protected": "; ".join(statement.unprotected),
        "assumes": "; ".join(statement.assumes),
        "because": statement.because,
        "note": "; ".join(statement.caveats),
    }


def heading(statement: Statement) -> str:
    """Return how much a statement promises, in signs."""
    if statement.void:
        return "nothing is promised"
    return f"{', '.join(f'{sign} = {amount}' for sign, amount in amounts(statement))} ({statement.status})"


def figures_card(
    name: str,
    rows: Sequence[tuple[str, float, float, float]],
    total: int,
    statement: Statement,
    told: Mapping[str, str],
) -> str:
    """Return a card of the first figures, each with its value and the ends of its interval, of `total` in all."""
    listed = [(each, number(value), _interval(low, high)) for each, value, low, high in rows[:FIRST]]
    more = f"and {total - len(listed):,} more" if total > len(listed) else ""
    table = table_of(("name", "value", "95 % interval"), listed)
    return card("Release", name, table, rows_of({"": more, "promises": heading(statement), **told}))


def _interval(low: float, high: float) -> str:
    if math.isfinite(low) and math.isfinite(high):
        return f"{number(low)} to {number(high)}"
    if math.isfinite(low):
        return f"{number(low)} or more"
    return f"{number(high)} or less" if math.isfinite(high) else "not known"


def card_of(statement: Statement) -> str:
    """Return the card."""
    return card("Guarantee", heading(statement), rows_of(promise_rows(statement)))
