"""Laws of single totals on a small hierarchy: of a root, and of the two parts of a total whose law is known."""

from __future__ import annotations

import numpy as np

from holdfast.arrays import Floats
from holdfast.trees.plain.message import NOTHING, Message, TooNarrow

#: Most of a law that may lie beyond its window; otherwise windows are made wider.
LEFT_OUT = 1e-12

#: The first place and the probabilities of one noise.
Law = tuple[int, Floats]
NONE: Law = (0, np.ones(1))


def law_of_root(message: Message) -> Law:
    """The law of a total that nothing is above."""
    tails = sum(end.height * end.ratio / (1 - end.ratio) for end in (message.below, message.above))
    return _normal(message.lo, message.values, float(message.values.sum()) + tails)


def mean(law: Law) -> float:
    """The mean of a law."""
    return float(law[1] @ np.arange(law[0], law[0] + law[1].size))


def _normal(lo: int, weights: Floats, whole: float) -> Law:
    """The law with these weights; their window must hold nearly the whole."""
    total = float(weights.sum())
    if whole - total > LEFT_OUT * whole:
        raise TooNarrow
    return lo, weights / total


def divided(total: Law, message: Message) -> tuple[Law, Law]:
    """The laws of the two parts of a total: p(x) = a(x)·Σ_t p(t)·b(t − x)/(a * b)(t)."""
    assert message.parts is not None
    assert message.whole is not None
    a, b = message.parts
    if a is NOTHING or b is NOTHING:
        return (NONE, total) if a is NOTHING else (total, NONE)
    lo, law = total
    if not (message.lo <= lo and lo + law.size - 1 <= message.hi):
        raise TooNarrow
    shares = law / message.whole[lo - message.lo : lo - message.lo + law.size]
    return _part(lo, shares, a, b), _part(lo, shares, b, a)


def _part(lo: int, shares: Floats, own: Message, other: Message) -> Law:
    met = np.convolve(shares, other.values[::-1])  # from lo − other.hi on
    first = lo - other.hi
    start, end = max(own.lo, first), min(own.hi, first + met.size - 1)
    return _normal(start, own.values[start - own.lo : end - own.lo + 1] * met[start - first : end - first + 1], 1.0)
