"""What must hold by the numbers of rows: exactly for whole numbers, else within 1e-9 of the size of the figures."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from holdfast.release.standalone_verifier.reading import Json
from holdfast.release.standalone_verifier.sums import NEAR, unequal

Findings = Iterator[str]
Values = Sequence[Any]
BEYOND = "the certificate speaks of rows that the table does not have"


def room_of(sizes: Sequence[Any]) -> Fraction:
    """How far real numbers of such sizes may miss; whole numbers not at all."""
    if all(isinstance(size, int) for size in sizes):
        return Fraction(0)
    return Fraction(NEAR) * max([Fraction(1), *(abs(Fraction(size)) for size in sizes)])


def within(values: Values, rows: Sequence[int], low: str | None, high: str | None) -> Findings:
    whole = not rows or isinstance(values[rows[0]], int)
    for text, sign, side in ((low, 1, "below"), (high, -1, "above")):
        if text is None:
            continue
        least: Any = sign * Fraction(text) - (0 if whole else room_of([float(Fraction(text))]))
        least = -(-least.numerator // least.denominator) if whole else float(least)  # whole numbers pass it by steps
        for row in rows:
            if sign * values[row] < least:
                yield f"row {row} is {side} {text}"
                break


def bounds(values: Values, told: Json) -> Findings:
    for each in told["bounds"]:
        yield from within(values, each["rows"], each["low"], each["high"])


def orders(values: Values, told: Json) -> Findings:
    """Check that ordered values never fall."""
    for chain in told["orders"]:
        room = room_of([values[row] for row in chain])
        for before, after in itertools.pairwise(chain):
            if values[after] < values[before] and Fraction(values[before]) - Fraction(values[after]) > room:
                yield f"row {after} is below row {before}"


def linear(values: Values, told: Json) -> Findings:
    """Check weighted sums, added in fractions, which lose nothing."""
    for number, each in enumerate(told["linear"], 1):
        if len(each["weights"]) != len(each["rows"]):
            yield f"the weighted sum {number} does not have one weight per row"
            continue
        terms = [Fraction(w) * Fraction(values[row]) for w, row in zip(each["weights"], each["rows"], strict=True)]
        whole = all(isinstance(values[row], int) for row in each["rows"])
        total, room = sum(terms, Fraction(0)), Fraction(0) if whole else room_of([0.0, *terms])
        if each["low"] is not None and total < Fraction(each["low"]) - room:
            yield f"the weighted sum {number} is below {each['low']}"
        if each["high"] is not None and total > Fraction(each["high"]) + room:
            yield f"the weighted sum {number} is above {each['high']}"


def signs(values: Values, told: Json) -> Findings:
    """Check that no value is negative."""
    if told["nonnegative"]:
        yield from within(values, range(len(values)), "0", None)


def either(values: Values, told: Json) -> Findings:
    """Look for a side on which nothing is wrong, for every union."""
    for number, sides in enumerate(told["either"], 1):
        wrong = [next(side_wrong(values, side), None) for side in sides]
        if None not in wrong:
            yield f"no side of the union {number} holds ({'; '.join(map(str, wrong))})"


def side_wrong(values: Values, side: Json) -> Findings:
    if not (side["nonnegative"] or side["bounds"] or side["orders"] or side["linear"]):
        yield "a side has no rules"
    for rule in (signs, bounds, orders, linear):
        yield from rule(values, side)


def impossible(values: Values, told: Json) -> Findings:
    """Check that cells which cannot be are 0."""
    yield from within(values, told["impossible"], "0", "0")


def listed_sums(values: Values, told: Json) -> Findings:
    """Check the sums that are listed by row numbers."""
    listed = told["sums"] if isinstance(told["sums"], list) else []
    for row, parts in listed:
        if unequal([values[row]], (values[part] for part in parts)):
            yield f"row {row} is not the sum of its parts"


def counts(values: Values, told: Json) -> Findings:
    for figure in told["exact"]:
        for rows in figure["rows"]:
            own = [values[row] for row in rows]
            near = round(sum(own)) if own else -1
            if near < 0 or unequal([near], own):
                yield f"the exact figure {figure['figure']} is not a count"


def rows_told(told: Json) -> Iterator[int]:
    """Every row of which rules, sums and exact figures speak."""
    for part in (told, *itertools.chain(*told["either"])):
        for each in (*part["bounds"], *part["linear"]):
            yield from each["rows"]
        for chain in part["orders"]:
            yield from chain
    yield from told["impossible"]
    for figure in told["exact"]:
        yield from itertools.chain(*figure["rows"])
    for row, parts in told["sums"] if isinstance(told["sums"], list) else ():
        yield row
        yield from parts


#: What is checked by the numbers of rows alone.
BY_ROWS = {
    "signs": signs,
    "bounds": bounds,
    "orders": orders,
    "linear rules": linear,
    "either": either,
    "impossible": impossible,
}
