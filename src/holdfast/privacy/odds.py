"""A statement as odds and as a card: how often a reader guesses right which of two neighbouring datasets is true.

Before the release both are equally likely for the reader, who knows everything else. The best guess from the output is
right with probability (1 + TV)/2, TV being the total variation between the two laws of the output, and a statement
bounds it (docs/theory/calibration.md, "Odds in words"):

- (ε, δ): TV ≤ (e^ε − 1 + 2δ)/(e^ε + 1); for δ = 0 the guess is right with probability e^ε/(1 + e^ε) at most;
- μ: TV ≤ 2Φ(μ/2) − 1;
- whole Gaussian noise: TV = δ(0) of its loss law;
- ρ: t = TV has 2t·artanh(t) ≤ ρ, by the Kullback–Leibler divergence in both directions, unless only whole orders are
  proved, and t² ≤ 1 − 4/(e^(2ρ) + 3), by D₂ in both directions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, Context, Decimal

from scipy.special import expit, ndtr, ndtri

from holdfast.pictures import card, number, rows_of, table_of
from holdfast.privacy.losses.integer_gaussian import losses_delta
from holdfast.privacy.words import Statement, assumed, change, describe, factor, figure, grounds, learnt, whom

#: Far more than the error of the functions above in doubles; results are rounded up by it.
MARGIN = 1e-12
#: Figures on the card of a release.
FIRST = 8


def guessed_right(statement: Statement) -> float:
    """Return a bound on the probability of a right guess, between 1/2 and 1, rounded up."""
    bounds = [1.0]
    if statement.epsilon is not None and not statement.void:
        bounds.append(float(expit(statement.epsilon)) + statement.delta * float(expit(-statement.epsilon)))
    if statement.mu is not None:
        bounds.append(float(ndtr(statement.mu / 2)))
    if statement.rho is not None:
        bounds.append((1 + _distance(statement.rho, whole_orders=statement.orders == "integer")) / 2)
    if statement.losses:
        bounds.append((1 + losses_delta(statement.losses, 0)) / 2)
    return min(1.0, min(bounds) + MARGIN)


def _distance(rho: float, *, whole_orders: bool) -> float:
    """The largest total variation between two laws with D_α ≤ αρ in both directions."""
    square = math.exp(min(2 * rho, 700.0)) + 3
    low, high = 0.0, math.sqrt(max(1 - 4 / square, 0.0)) + MARGIN
    if whole_orders or high >= 1:
        return min(high, 1.0)
    for _ in range(60):  # halves what is left of (0, 1) below the spacing of doubles
        middle = (low + high) / 2
        low, high = (middle, high) if 2 * middle * math.atanh(middle) <= rho else (low, middle)
    return high


def in_hundred(statement: Statement) -> int:
    """Return of how many guesses in a hundred at most so many are right, rounded up to a whole number."""
    return math.ceil(100 * guessed_right(statement))


def shift(statement: Statement) -> float | None:
    """Return μ: that of the statement, or the one that follows from ε where δ is 0, rounded up; None where none does.

    The trade-off curve of ε lies above that of μ = 2Φ⁻¹(e^ε/(1 + e^ε)): both are convex, begin and end together, and
    meet at the corner of the first (docs/theory/calibration.md, "Odds in words").
    """
    if statement.mu is not None:
        return statement.mu
    if statement.epsilon is None or statement.delta or statement.void:
        return None
    return -2 * float(ndtri(expit(-statement.epsilon))) * (1 + MARGIN) + MARGIN


def amounts(statement: Statement) -> tuple[tuple[str, str], ...]:
    """Return how strongly changes are hidden, as signs with their figures, rounded up: ε, δ, ρ and μ where known."""
    found = []
    if statement.epsilon is not None:
        found.append(("ε", figure(statement.epsilon)))
        if statement.delta:
            found.append(("δ", figure(statement.delta)))
    if statement.rho is not None:
        found.append(("ρ", figure(statement.rho)))
    mu = shift(statement)
    if mu is not None:
        found.append(("μ", f"{Context(prec=3, rounding=ROUND_CEILING).create_decimal(Decimal(mu)).normalize():f}"))
    return tuple(found)


def meanings(statement: Statement) -> list[str]:
    """Say what each sign of `amounts` means, where it stands."""
    times = factor(statement.epsilon or 0.0)
    said = {
        "ε": f"ε (epsilon): the probability of any result changes by a factor of at most {times}",
        "δ": "δ (delta): and by at most so much besides",
        "ρ": "ρ (rho): what this release adds to the sum over all releases of the same data",
        "μ": "μ (mu): the two cases are no easier to tell apart than bell curves μ standard deviations apart",
    }
    return [f"{said[sign]}." for sign, _ in amounts(statement)] + ["Less hides more."]


def in_words(statement: Statement) -> str:
    """Say of how many guesses in a hundred at most so many are right; true for the scope and the relation as it stands.

    A reader may be quoted these sentences: tests list all pairs of small datasets that they speak of.
    """
    right = f"The guess is right in at most {in_hundred(statement)} of 100 cases; with a coin it would be 50 of 100."
    if statement.status != "proved":
        right += " This rests on an estimate and is not proved."
    one = whom(statement)
    if statement.scope == "all" and one.startswith("one "):
        if statement.neighbours.adds:
            asked = f"guesses whether {one} is in the data. Both cases were equally likely to them before"
        else:
            asked = f"guesses which of two {one} is, having thought both equally likely before"
            right += " The number of records is taken as known."
        return f"Somebody knows everything else in the data, sees the release, and {asked}. {right}"
    shared, seen = "", "the release"
    if statement.scope == "invariant-sharing":
        shared = " that agree in every exactly published figure"
        right += " Nothing is said about versions of the data that differ in an exactly published figure."
    if statement.scope == "subspace":
        seen = "the noisy part of the release alone"
        right += " Nothing is said about this part and the exactly published figures together."
    return (
        f"Take two versions of the data{shared}; one becomes the other when {change(statement)}. Somebody who thought "
        f"both equally likely sees {seen}, and guesses which is the true one. {right}"
    )


def promised(statement: Statement) -> list[str]:
    """Say what a statement promises to somebody who signs it: how strongly, of whom, on what grounds."""
    if statement.void:
        return [describe(statement, columns=False, figures=False)]
    told = [(sign, amount) for sign, amount in amounts(statement) if sign != "μ" or statement.mu is not None]
    strength = ", ".join(f"{sign} = {amount}" for sign, amount in told)
    notes = [f"Note: {words}." for words in statement.caveats]
    return [f"{strength}. {in_words(statement)}", *assumed(statement), grounds(statement), *notes]


# --- cards for notebooks ----------------------------------------------------------------------------------------------


def promise_rows(statement: Statement) -> dict[str, str]:
    """Return what a statement says, short, by heading."""
    scopes = {
        "subspace": "the noisy part of what is published",
        "invariant-sharing": "data that agree in all exact figures",
    }
    return {
        "can somebody learn it?": " ".join(learnt(statement)),
        "hides that": change(statement),
        "right guesses": "" if statement.void else f"at most {in_hundred(statement)} in 100 (a coin: 50)",
        "only for": scopes.get(statement.scope, ""),
        "not protected": "; ".join(statement.unprotected),
        "assumes": "; ".join(statement.assumes),
        "because": statement.because,
        "note": "; ".join(statement.caveats),
    }


def heading(statement: Statement) -> str:
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
    return card("Guarantee", heading(statement), rows_of(promise_rows(statement)))
