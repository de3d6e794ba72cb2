"""What must hold in a table by the numbers of its rows: tested exactly for whole numbers, and within 1e-9 for reals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from holdfast.release.certificate.certificate import Bound, Side, Sum, TableCertificate
from holdfast.release.certificate.sums import TOLERANCE, Values, disagreement, first_unequal, totals
from holdfast.release.storage.tables import Columns

Findings = Iterator[str]


def by_rows(values: Values, table: TableCertificate) -> dict[str, Callable[[], Findings]]:
    """What is checked of values by the numbers of their rows alone."""
    holds = table.holds
    return {
        "signs": lambda: _bound(values, None, Fraction(0), None),
        "bounds": lambda: _bounds(values, holds.bounds),
        "orders": lambda: _orders(values, holds.orders),
        "linear rules": lambda: _linear(values, holds.linear),
        "either": lambda: _either(values, holds.either),
        "impossible": lambda: _impossible(values, table),
    }


def _bounds(values: Values, bounds: Sequence[Bound]) -> Findings:
    for bound in bounds:
        low = None if bound.low is None else Fraction(bound.low)
        high = None if bound.high is None else Fraction(bound.high)
        yield from _bound(values, np.array(bound.rows, dtype=np.int64), low, high)


def _bound(values: Values, rows: Any, low: Fraction | None, high: Fraction | None) -> Findings:
    """Compare some rows, None: all, with inclusive limits: exactly for whole numbers, which pass a limit by steps."""
    found, whole = values if rows is None else values[rows], values.dtype.kind == "i"
    if low is not None:
        below = found < (math.ceil(low) if whole else float(low) - TOLERANCE * max(1.0, abs(float(low))))
        if below.any():
            yield f"row {np.argmax(below) if rows is None else rows[np.argmax(below)]} is below {low}"
    if high is not None:
        above = found > (math.floor(high) if whole else float(high) + TOLERANCE * max(1.0, abs(float(high))))
        if above.any():
            yield f"row {np.argmax(above) if rows is None else rows[np.argmax(above)]} is above {high}"


def _orders(values: Values, orders: Sequence[Sequence[int]]) -> Findings:
    for chain in orders:
        found = values[np.array(chain, dtype=np.int64)]
        room = 0 if values.dtype.kind == "i" else TOLERANCE * max(1.0, float(np.abs(found).max()))
        falls = np.diff(found) < -room
        if falls.any():
            first = int(np.argmax(falls))
            yield f"row {chain[first + 1]} is below row {chain[first]}"


def _linear(values: Values, sums: Sequence[Sum]) -> Findings:
    """Add in fractions, which lose nothing."""
    for number, each in enumerate(sums):
        if len(each.rows) != len(each.weights):
            yield f"the weighted sum {number + 1} does not have one weight per row"
            continue
        terms = [Fraction(w) * Fraction(values[row].item()) for row, w in zip(each.rows, each.weights, strict=True)]
        found = sum(terms, Fraction(0))
        size = max([Fraction(1), *map(abs, terms)])
        room = 0 if values.dtype.kind == "i" else Fraction(TOLERANCE) * size
        if each.low is not None and found < Fraction(each.low) - room:
            yield f"the weighted sum {number + 1} is below {each.low}"
        if each.high is not None and found > Fraction(each.high) + room:
            yield f"the weighted sum {number + 1} is above {each.high}"


def _either(values: Values, unions: Sequence[Sequence[Side]]) -> Findings:
    """Look for a side on which nothing is wrong, for every union."""
    for number, sides in enumerate(unions):
        wrong = [next(_side(values, side), None) for side in sides]
        if all(found is not None for found in wrong):
            yield f"no side of the union {number + 1} holds ({'; '.join(map(str, wrong))})"


def _side(values: Values, side: Side) -> Findings:
    if not (side.nonnegative or side.bounds or side.orders or side.linear):
        yield "a side has no rules"
    if side.nonnegative:
        yield from _bound(values, None, Fraction(0), None)
    yield from _bounds(values, side.bounds)
    yield from _orders(values, side.orders)
    yield from _linear(values, side.linear)


def _impossible(values: Values, table: TableCertificate) -> Findings:
    yield from _bound(values, np.array(table.holds.impossible, dtype=np.int64), Fraction(0), Fraction(0))


def exact_findings(values: Values, columns: Columns, table: TableCertificate) -> Findings:
    """Check what a stranger can know of exact figures: they are counts, agree over what they share, and are open."""
    margins = []
    runs = [run for each in table.unprotected for run in each.rows]
    if table.holds.exact and not table.unprotected:
        yield "there are exact figures, and the certificate names nothing that is not protected"
    for figure in table.holds.exact:
        single = [rows[0] for rows in figure.rows if len(rows) == 1]
        if single and not any(first <= row <= last for row in single for first, last in runs):
            yield f"the exact figure {figure.figure} is not among what is not protected"
        if not all(figure.rows):
            yield f"the exact figure {figure.figure} has no rows"
            return
        rows = np.array([row for rows in figure.rows for row in rows], dtype=np.int64)
        group = np.repeat(np.arange(len(figure.rows)), [len(rows) for rows in figure.rows])
        sums, sizes = totals(values[rows], group, len(figure.rows))
        counts = np.rint(sums) if sizes.any() else sums
        if (counts < 0).any() or first_unequal(counts, sums, sizes) is not None:
            yield f"the exact figure {figure.figure} is not a count"
        if rows.size == len(figure.rows):
            margins.append(rows)
    if table.kind == "cube":
        yield from disagreement(values, {name: columns[name] for name in table.columns[1:]}, margins)
