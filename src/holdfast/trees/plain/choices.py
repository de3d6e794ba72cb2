"""Choices by random words, exactly by the doubles that messages are (docs/theory/plain-trees.md, section 3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, count

import numpy as np

from holdfast.arrays import Floats, Ints, Words
from holdfast.noise.draws.decisions import Digits, chosen, decided
from holdfast.randomness import Stream
from holdfast.trees.plain.message import NOTHING, UNIT, Alone, Division, Message


def drawn(message: Message, words: Words, more: Callable[[int], Stream]) -> Ints:
    """Draw totals by a message, one for each word; `more(row)` has a row's further digits."""
    tails = sum(end.height * end.ratio / (1 - end.ratio) for end in (message.below, message.above))
    whole = float(message.values.sum()) + tails
    return _chosen(message, None, (message.lo, message.values, whole), words, more)


def divided(message: Message, totals: Ints, words: Words, more: Callable[[int], Stream]) -> Ints:
    """Divide totals between the two parts of their message, one for each word; rows with one total share the work."""
    assert message.parts is not None
    assert message.whole is not None
    a, b = message.parts
    if a is NOTHING or b is NOTHING:
        return np.zeros_like(totals) if a is NOTHING else totals.copy()
    result = np.empty_like(totals)
    order = totals.argsort(kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(totals[order])) + 1):
        total = int(totals[rows[0]])
        low, high = max(a.lo, total - b.hi), min(a.hi, total - b.lo)
        terms, whole = a.values[:0], 1.0
        if low <= high and message.lo <= total <= message.hi:
            start = total - high - b.lo
            terms = a.values[low - a.lo : high - a.lo + 1] * b.values[start : start + high - low + 1][::-1]
            whole = float(message.whole[total - message.lo]) if message.blur is None else _whole(a, b, total)
        found = _chosen(message, total, (low, terms, whole), words[rows], lambda j, rows=rows: more(int(rows[j])))  # type: ignore[misc]
        result[rows] = found
    return result


def _whole(a: Message, b: Message, total: int) -> float:
    """The sum of the weights of all ways to divide a total."""
    first, last = min(a.lo, total - b.hi), max(a.hi, total - b.lo)
    result = float((a.on(first, last) * b.on(total - last, total - first)[::-1]).sum())
    for one, other, far, near in (
        (a.above, b.below, last + 1 - a.hi, b.lo - total + last + 1),
        (a.below, b.above, a.lo - first + 1, total - first + 1 - b.hi),
    ):
        result += one.height * one.ratio**far * other.height * other.ratio**near / (1 - one.ratio * other.ratio)
    return result


def _chosen(
    message: Message, total: int | None, ways: tuple[int, Floats, float], words: Words, more: Callable[[int], Stream]
) -> Ints:
    """Choose one of the places from `low` on with these weights, or beyond the windows, for every word.

    Places inside the windows come first, in their order, then those beyond, nearest first; the first is taken at which
    the sum of their weights passes the random number's share of the whole.
    """
    low, terms, whole = ways
    sums = np.concatenate([[-np.inf], terms.cumsum(), [-np.inf]])
    goals = words * (2.0**-64 * whole)
    places = sums[1:-1].searchsorted(goals, "right")
    margin = whole * (UNIT * (2 * terms.size + 16) + message.excess)
    sure = (sums[places + 1] - goals > margin) & (goals - sums[places] > margin)
    result = low + places
    for j in np.flatnonzero(~sure).tolist():
        exact = Alone(message) if total is None or message.parts is None else Division(*message.parts, total)
        result[j] = decided(
            lambda _, exact=exact: exact.total(),  # type: ignore[misc]
            Digits(int(words[j]), 64, lambda j=j: more(j)),  # type: ignore[misc]
            lambda all_, number, exact=exact: chosen(exact.term, all_, _order(exact.low, exact.high), number),  # type: ignore[misc]
        )
    return result


def _order(low: int, high: int) -> Iterator[int]:
    """Places inside the windows in their order, then those beyond, nearest first."""
    down = low - 1 if low <= high else high
    return chain(range(low, high + 1), (high + 1 + d // 2 if d % 2 == 0 else down - d // 2 for d in count()))
