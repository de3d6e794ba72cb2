"""The law of each output's noise on a small hierarchy: the division of totals, seen from the roots down.

Used for standard errors and quantiles, so doubles are enough; draws do not use this file.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from holdfast.arrays import Floats, Ints
from holdfast.trees.plain.message import NOTHING, Message, TooNarrow
from holdfast.trees.plain.sampler import PlainSampler, Trees

#: Windows hold all but about e^−NEED of every law.
NEED = 40.0
#: Most of a law that may lie beyond its window; otherwise windows are made wider.
LEFT_OUT = 1e-12
#: Cumulative probabilities that miss a level by less have reached it.
TIE = 1e-12

#: The first place and the probabilities of one noise.
Law = tuple[int, Floats]
NONE: Law = (0, np.ones(1))


@dataclass(frozen=True, eq=False)
class PlainMarginals:
    """The laws of the noise of all outputs of a sampler, for the bounds that it has."""

    sampler: PlainSampler

    @cached_property
    def laws(self) -> list[Law]:
        """The law of every output; alike outputs share theirs."""
        wide, wider = replace(self.sampler, need=NEED), 0
        while True:
            try:
                return _laws(wide._trees(wider))
            except TooNarrow:
                wider += 1

    @cached_property
    def variances(self) -> Floats:
        """The variance of every output's noise."""
        return np.array([float(law @ (np.arange(lo, lo + law.size) - _mean(lo, law)) ** 2) for lo, law in self.laws])

    def quantiles(self, p: float) -> Ints:
        """For every output, the smallest place whose cumulative probability reaches p."""
        return np.array([lo + min(int(np.searchsorted(law.cumsum(), p - TIE)), law.size - 1) for lo, law in self.laws])


def _laws(trees: Trees) -> list[Law]:
    """The law of every output, from the roots down."""
    totals: list[Law] = [NONE] * len(trees.pieces)
    known: dict[tuple[int, int], tuple[Law, Law]] = {}
    for i in trees.roots:
        message = trees.pieces[i].message
        known.setdefault((0, id(message)), (_normal(message.lo, message.values, _whole(message)), NONE))
        totals[i] = known[0, id(message)][0]
    result = [NONE] * trees.n
    for i in range(len(trees.pieces) - 1, -1, -1):
        piece = trees.pieces[i]
        if piece.output >= 0:
            result[piece.output] = totals[i]
        if piece.parts is not None:
            key = id(totals[i]), id(piece.message)
            if key not in known:
                known[key] = _divided(totals[i], piece.message)
            totals[piece.parts[0]], totals[piece.parts[1]] = known[key]
    return result


def _whole(message: Message) -> float:
    tails = sum(end.height * end.ratio / (1 - end.ratio) for end in (message.below, message.above))
    return float(message.values.sum()) + tails


def _mean(lo: int, law: Floats) -> float:
    return float(law @ np.arange(lo, lo + law.size))


def _normal(lo: int, weights: Floats, whole: float) -> Law:
    """The law with these weights; their window must hold nearly the whole."""
    total = float(weights.sum())
    if whole - total > LEFT_OUT * whole:
        raise TooNarrow
    return lo, weights / total


def _divided(total: Law, message: Message) -> tuple[Law, Law]:
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
