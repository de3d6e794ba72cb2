"""The variance of a weighted sum of outputs' noise on a small hierarchy (docs/theory/plain-trees.md).

Let the totals become known one after another from the roots down. The mean of the sum changes with each, by amounts
that are uncorrelated, so their variances add up: for a root the variance of f(T), for a total that is divided the mean
over T of Var(f_a(A) + f_b(T − A) | T). Here f(t) is the mean of what the outputs below a total contribute when it is t;
it goes up with the messages. Below one weight f is a straight line and nothing has to be computed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holdfast.arrays import Floats
from holdfast.trees.plain.laws import Law, divided, law_of_root
from holdfast.trees.plain.message import NOTHING, Message
from holdfast.trees.plain.table import Piece, Trees


class Mean(NamedTuple):
    """f(t) = slope·t + rest(t), where `rest` (None: 0) is on the window of the total's message.

    `within` is the variance of what becomes known when the total is divided, given the total; None: 0.
    """

    slope: float
    rest: Floats | None = None
    within: Floats | None = None

    @property
    def straight(self) -> bool:
        """Whether nothing below the total makes a difference."""
        return self.rest is None


def variance_of_sum(trees: Trees, weights: Floats) -> float:
    """The variance of Σ weights·noise; doubles are enough."""
    means = _means(trees, weights)
    laws: dict[int, Law] = {i: (0, np.ones(1)) for i in trees.fixed}
    result = 0.0
    for i in trees.roots:
        message = trees.pieces[i].message
        laws[i] = lo, law = law_of_root(message)
        places = np.arange(lo, lo + law.size, dtype=np.float64)
        found = means[i].slope * places + _at(means[i].rest, message, laws[i])
        result += float(law @ (found - law @ found) ** 2)
    for i in range(len(trees.pieces) - 1, -1, -1):
        piece, mean = trees.pieces[i], means[i]
        if i not in laws or mean.straight or piece.parts is None:
            continue
        laws[piece.parts[0]], laws[piece.parts[1]] = divided(laws[i], piece.message)
        result += float(laws[i][1] @ _at(mean.within, piece.message, laws[i]))
    return result


def _at(values: Floats | None, message: Message, law: Law) -> Floats:
    """What a function on a message's window is on a law's."""
    lo, chances = law
    return np.zeros(chances.size) if values is None else values[lo - message.lo : lo - message.lo + chances.size]


def _means(trees: Trees, weights: Floats) -> list[Mean]:
    """f of every total, the parts' before those of what they are parts of; alike ones share theirs."""
    result: list[Mean] = []
    known: dict[object, Mean] = {}
    for piece in trees.pieces:
        own = float(weights[piece.output]) if piece.output >= 0 else 0.0
        below = () if piece.parts is None else (result[piece.parts[0]], result[piece.parts[1]])
        key = (id(piece.message), own, *map(id, below))
        if key not in known:
            known[key] = _mean(piece, own, below)
        result.append(known[key])
    return result


def _mean(piece: Piece, own: float, below: tuple[Mean, ...]) -> Mean:
    if not below:
        return Mean(own)
    assert piece.message.parts is not None
    a, b = piece.message.parts
    if a is NOTHING or b is NOTHING:
        inner, part = (below[1], b) if a is NOTHING else (below[0], a)
        if inner.rest is None:
            return Mean(own + inner.slope)
        start = piece.message.lo - part.lo
        rest = inner.rest[start : start + piece.message.values.size]
        return Mean(own + inner.slope, rest, np.zeros(rest.size))
    first, second = below
    if first.straight and second.straight and first.slope == second.slope:
        return Mean(own + first.slope)
    # What both have in common is the total's; the narrower part keeps the difference, which stays small.
    slope = first.slope if a.values.size > b.values.size else second.slope
    mean, within = _divided(piece.message, a, b, _over(first, slope, a), _over(second, slope, b))
    return Mean(own + slope, mean, within)


def _over(mean: Mean, slope: float, message: Message) -> Floats:
    """f(t) − slope·t on a window."""
    line = (mean.slope - slope) * np.arange(message.lo, message.hi + 1.0)
    return line if mean.rest is None else line + mean.rest


def _divided(message: Message, a: Message, b: Message, f: Floats, g: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of f(A) + g(t − A) when t is divided, for every t of a window."""
    start = message.lo - a.lo - b.lo

    def sums(x: Floats, y: Floats) -> Floats:
        return np.convolve(x, y)[start : start + message.values.size]

    p, q = a.values, b.values
    whole = np.maximum(sums(p, q), 1e-300)
    mean = (sums(p * f, q) + sums(p, q * g)) / whole
    square = (sums(p * f * f, q) + 2 * sums(p * f, q * g) + sums(p, q * g * g)) / whole
    return mean, np.maximum(square - mean * mean, 0.0)
