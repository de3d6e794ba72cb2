"""The variance of a weighted sum of outputs' noise on a hierarchy (docs/theory/plain-trees.md).

What the outputs at and below a total contribute has a mean and a variance when the total is t. Both go up with the
messages: a total t is A and t − A with the weights of its two parts' messages, so the mean is that of the parts' means,
and the variance is the mean of the parts' variances and the variance of their means. Below one weight the mean is a
straight line and the variance 0, and nothing has to be computed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import fft

from holdfast.arrays import Floats
from holdfast.trees.plain.laws import law_of_root
from holdfast.trees.plain.message import NOTHING, Message, TooNarrow
from holdfast.trees.plain.table import Trees

#: Sums of more products come from transforms; and sums that are smaller than this share of the largest are not told
#: from it, since these do not hold them.
WIDE, FAINT = 5e5, 1e-17


class Share(NamedTuple):
    """What is contributed when the total is t: slope·t + rest(t) in the mean, and its variance.

    Both arrays are on the window of the total's message; None: 0.
    """

    slope: float
    rest: Floats | None = None
    variance: Floats | None = None

    @property
    def straight(self) -> bool:
        """Whether nothing below the total makes a difference."""
        return self.rest is None


def variance_of_sum(trees: Trees, weights: Floats) -> float:
    """The variance of Σ weights·noise; doubles are enough."""
    shares: list[Share] = []
    known: dict[object, Share] = {}  # alike totals share theirs
    for piece in trees.pieces:
        own = float(weights[piece.output]) if piece.output >= 0 else 0.0
        below = () if piece.parts is None else (shares[piece.parts[0]], shares[piece.parts[1]])
        key = (id(piece.message), own, *map(id, below))
        if key not in known:
            known[key] = joined(piece.message, own, *below) if below else Share(own)
        shares.append(known[key])
    free = sum(of_root(trees.pieces[i].message, shares[i]) for i in trees.roots)
    return free + sum(of_nothing(trees.pieces[i].message, shares[i]) for i in trees.fixed)


def of_root(message: Message, share: Share) -> float:
    """The variance of what is contributed at and below a total that nothing is above."""
    lo, law = law_of_root(message)
    mean = share.slope * np.arange(lo, lo + law.size, dtype=np.float64)
    if share.rest is None or share.variance is None:
        return float(law @ (mean - law @ mean) ** 2)
    mean += share.rest
    return float(law @ (share.variance + (mean - law @ mean) ** 2))


def of_nothing(message: Message, share: Share) -> float:
    """The variance of what is contributed below a total that is always 0."""
    return 0.0 if share.variance is None else float(share.variance[-message.lo])


def joined(message: Message, own: float, first: Share, second: Share) -> Share:
    """The share of a total from those of its two parts and the weight of its own output."""
    assert message.parts is not None
    a, b = message.parts
    if a is NOTHING or b is NOTHING:
        inner, part = (second, b) if a is NOTHING else (first, a)
        if inner.rest is None or inner.variance is None:
            return Share(own + inner.slope)
        start, size = message.lo - part.lo, message.values.size
        return Share(own + inner.slope, inner.rest[start : start + size], inner.variance[start : start + size])
    if first.straight and second.straight and first.slope == second.slope:
        return Share(own + first.slope)
    # What both have in common is the total's; the narrower part keeps the difference, which stays small.
    if a.values.size > b.values.size:
        a, b, first, second = b, a, second, first
    return Share(own + second.slope, *_divided(message, (a, b), (_over(first, second.slope, a), second[1:])))


#: Mean and variance on a window; None: 0.
_Two = tuple[Floats | None, Floats | None]


def _over(share: Share, slope: float, message: Message) -> _Two:
    """Mean − slope·t, and the variance."""
    if share.slope == slope:
        return share[1:]
    line = (share.slope - slope) * np.arange(message.lo, message.hi + 1.0)
    return line if share.rest is None else line + share.rest, share.variance


def _divided(message: Message, parts: tuple[Message, Message], shares: tuple[_Two, _Two]) -> tuple[Floats, Floats]:
    """Mean and variance of what both parts contribute when t is divided, for every t of a window."""
    a, b = parts
    first, last = max(a.lo, message.lo - b.hi), min(a.hi, message.hi - b.lo)  # of the parts that can be
    if first > last:
        raise TooNarrow
    start = message.lo - last - b.lo  # the other parts from here on, with 0 beyond their window
    size = message.values.size + last - first
    p = [None if x is None else x[first - a.lo : last - a.lo + 1] for x in _moments(a, *shares[0])]
    q = [None if x is None else _padded(x, start, size) for x in _moments(b, *shares[1])]

    def sums(i: int, j: int) -> Floats | float:
        x, y = p[i], q[j]
        return 0.0 if x is None or y is None else _met(y, x)

    whole = np.asarray(sums(0, 0))
    whole = np.maximum(whole, max(FAINT * float(whole.max()), 1e-300))
    mean = (sums(1, 0) + sums(0, 1)) / whole
    square = (sums(2, 0) + 2 * sums(1, 1) + sums(0, 2)) / whole
    return np.asarray(mean), np.maximum(square - mean * mean, 0.0)


def convolved(x: Floats, y: Floats) -> Floats:
    """All sums of products; wide ones from transforms."""
    return _met(_padded(y, 1 - x.size, y.size + 2 * x.size - 2), x)


def _met(y: Floats, x: Floats) -> Floats:
    """The same where all of x meets y: the turn of a transform does not reach there."""
    if x.size * (y.size - x.size + 1) <= WIDE:
        return np.convolve(y, x, "valid")
    length = int(fft.next_fast_len(y.size, real=True))
    return np.asarray(fft.irfft(fft.rfft(y, length) * fft.rfft(x, length), length)[x.size - 1 : y.size])


def _moments(message: Message, mean: Floats | None, variance: Floats | None) -> list[Floats | None]:
    """A message times 1, the mean and the mean square of what is contributed."""
    values = message.values
    if mean is None:
        return [values, None, None if variance is None else values * variance]
    square = mean * mean if variance is None else mean * mean + variance
    return [values, values * mean, values * square]


def _padded(values: Floats, start: int, size: int) -> Floats:
    """So many places from one on, 0 beyond the array."""
    result = np.zeros(size)
    first, last = max(start, 0), min(start + size, values.size)
    result[first - start : last - start] = values[first:last]
    return result
