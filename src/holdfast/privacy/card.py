"""A statement as a card for notebooks: how much, about whom, at which odds, and what it leaves out."""

from __future__ import annotations

from holdfast.pictures import card, rows_of
from holdfast.privacy.odds import amounts, in_hundred
from holdfast.privacy.words import CHANGES, Statement


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


def card_of(statement: Statement) -> str:
    """Return the card."""
    return card("Guarantee", heading(statement), rows_of(promise_rows(statement)))
