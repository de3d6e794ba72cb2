"""Weighted sums of outputs' noise on a hierarchy: variance and characteristic function (docs/theory/plain-trees.md).

What the outputs at and below a total contribute has a law when the total is t, of which something goes up with the
messages: a total t is A and t − A with the weights of its two parts' messages. Of the *moments* the mean is that of the
parts' means, and the variance the mean of the parts' variances and the variance of their means; of the *phases* the
mean of e^{iωx} is that of the parts' products. Below one weight what is contributed is a multiple of t, and nothing has
to be computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from scipy import fft

from holdfast.arrays import Array, Floats
from holdfast.trees.plain.laws import law_of_root
from holdfast.trees.plain.message import NOTHING, Message, TooNarrow
from holdfast.trees.plain.table import Trees

#: Sums of more products come from transforms; and sums that are smaller than this share of the largest are not told
#: from it, since these do not hold them.
WIDE, FAINT = 5e5, 1e-17
#: Frequencies that go up together.
ROUND = 16


def in_rounds(frequencies: Array) -> list[Array]:
    """Some frequencies at a time."""
    return np.split(frequencies, range(ROUND, frequencies.size, ROUND))


class Share(NamedTuple):
    """What is contributed when the total is t: slope·t and what is bent, rows on the window of the total's message.

    Nothing is bent where no weights below the total differ.
    """

    slope: float
    bent: Array | None = None


class Way(Protocol):
    """What of a weighted sum goes up with the messages."""

    def divided(self, message: Message, parts: tuple[Message, Message], first: Share, second: Array | None) -> Array:
        """What is bent of a total that is divided, over the slope of the second part; the first share's is over it."""

    def of_root(self, message: Message, share: Share) -> Array:
        """What is found at a total that nothing is above."""

    def of_nothing(self, message: Message, share: Share) -> Array:
        """What is found at a total that is always 0."""

    def of_straight(self, message: Message, slopes: Floats, counts: Floats) -> Array:
        """What is found at so many roots of one kind with each slope, below which nothing is bent."""

    def together(self, found: Array, more: Array, count: int) -> Array:
        """What is found, and so many times more, independent of it."""


def of_sum(trees: Trees, weights: Floats, way: Way, nothing: Array) -> Array:
    """What a way finds of Σ weights·noise; doubles are enough."""
    shares: list[Share] = []
    known: dict[object, Share] = {}  # alike totals share theirs
    for piece in trees.pieces:
        own = float(weights[piece.output]) if piece.output >= 0 else 0.0
        below = () if piece.parts is None else (shares[piece.parts[0]], shares[piece.parts[1]])
        key = (id(piece.message), own, *map(id, below))
        if key not in known:
            known[key] = joined(way, piece.message, own, *below) if below else Share(own)
        shares.append(known[key])
    found = nothing
    for i in trees.roots:
        found = way.together(found, way.of_root(trees.pieces[i].message, shares[i]), 1)
    for i in trees.fixed:
        found = way.together(found, way.of_nothing(trees.pieces[i].message, shares[i]), 1)
    return found


def joined(way: Way, message: Message, own: float, first: Share, second: Share) -> Share:
    """The share of a total from those of its two parts and the weight of its own output."""
    assert message.parts is not None
    a, b = message.parts
    if a is NOTHING or b is NOTHING:
        inner, part = (second, b) if a is NOTHING else (first, a)
        start, size = message.lo - part.lo, message.values.size
        return Share(own + inner.slope, None if inner.bent is None else inner.bent[:, start : start + size])
    if first.bent is None and second.bent is None and first.slope == second.slope:
        return Share(own + first.slope)
    # What both have in common is the total's; the narrower part keeps the difference, which stays small.
    if a.values.size > b.values.size:
        a, b, first, second = b, a, second, first
    over = Share(first.slope - second.slope, first.bent)
    return Share(own + second.slope, way.divided(message, (a, b), over, second.bent))


@dataclass(frozen=True)
class Moments:
    """The variance; what is bent are the mean and the variance of what is contributed."""

    def divided(self, message: Message, parts: tuple[Message, Message], first: Share, second: Array | None) -> Array:
        """See Way."""
        a, b = parts
        met = Meeting.of(message, a, b)
        line = None if first.slope == 0 else first.slope * np.arange(a.lo, a.hi + 1.0)
        p = [None if x is None else met.cut(x) for x in _moments(a.values, line, first.bent)]
        q = [None if x is None else met.padded(x) for x in _moments(b.values, None, second)]

        def sums(i: int, j: int) -> Floats | float:
            x, y = p[i], q[j]
            return 0.0 if x is None or y is None else _met(y, x)

        whole = _not_faint(np.asarray(sums(0, 0)))
        mean = (sums(1, 0) + sums(0, 1)) / whole
        square = (sums(2, 0) + 2 * sums(1, 1) + sums(0, 2)) / whole
        return np.stack([mean, np.maximum(square - mean * mean, 0.0)])

    def of_root(self, message: Message, share: Share) -> Array:
        """See Way."""
        lo, law = law_of_root(message)
        mean = share.slope * np.arange(lo, lo + law.size, dtype=np.float64)
        if share.bent is None:
            return np.asarray(law @ (mean - law @ mean) ** 2)
        mean += share.bent[0]
        return np.asarray(law @ (share.bent[1] + (mean - law @ mean) ** 2))

    def of_nothing(self, message: Message, share: Share) -> Array:
        """See Way."""
        return np.asarray(0.0 if share.bent is None else share.bent[1, -message.lo])

    def of_straight(self, message: Message, slopes: Floats, counts: Floats) -> Array:
        """See Way."""
        return np.asarray(counts @ slopes**2 * self.of_root(message, Share(1.0)))

    def together(self, found: Array, more: Array, count: int) -> Array:
        """See Way."""
        return np.asarray(found + count * more)


@dataclass(frozen=True, eq=False)
class Phases:
    """The characteristic function E e^{iωx} at some ω, real ones or others; what is bent is a row for each."""

    frequencies: Array

    def divided(self, message: Message, parts: tuple[Message, Message], first: Share, second: Array | None) -> Array:
        """See Way."""
        a, b = parts
        met = Meeting.of(message, a, b)
        x = a.values * self._line(first.slope, a.lo, a.values.size)
        if first.bent is not None:
            x *= first.bent
        y = b.values[None, :] if second is None else b.values * second
        whole = _not_faint(_met(met.padded(b.values), met.cut(a.values)))
        length = int(fft.next_fast_len(met.size))
        product = fft.fft(met.padded(y), length) * fft.fft(met.cut(x), length)
        last = met.last - met.first
        found = np.asarray(fft.ifft(product, overwrite_x=True)[:, last : met.size] / whole)
        if self.frequencies.dtype.kind == "f":  # rounding, where the total hardly ever is
            found /= np.maximum(np.abs(found), 1.0)
        return found

    def of_root(self, message: Message, share: Share) -> Array:
        """See Way."""
        lo, law = law_of_root(message)
        phases = self._line(share.slope, lo, law.size)
        return np.asarray((phases if share.bent is None else phases * share.bent) @ law)

    def of_nothing(self, message: Message, share: Share) -> Array:
        """See Way."""
        return np.ones(self.frequencies.size) if share.bent is None else np.asarray(share.bent[:, -message.lo])

    def of_straight(self, message: Message, slopes: Floats, counts: Floats) -> Array:
        """See Way."""
        found = np.ones(self.frequencies.size, dtype=np.complex128)
        for slope, count in zip(slopes.tolist(), counts.tolist(), strict=True):
            found *= self.of_root(message, Share(slope)) ** count
        return found

    def together(self, found: Array, more: Array, count: int) -> Array:
        """See Way."""
        return np.asarray(found * more**count)

    def _line(self, slope: float, lo: int, size: int) -> Array:
        """The phases of slope·t from one place on."""
        return np.exp(1j * slope * np.outer(self.frequencies, np.arange(lo, lo + size)))


class Meeting(NamedTuple):
    """Which of the parts of a total on its window can be: the first part's places, and from where the second's are."""

    first: int
    last: int
    start: int
    size: int

    @classmethod
    def of(cls, message: Message, a: Message, b: Message) -> Meeting:
        """Find them."""
        first, last = max(a.lo, message.lo - b.hi), min(a.hi, message.hi - b.lo)
        if first > last:
            raise TooNarrow
        return cls(first - a.lo, last - a.lo, message.lo - last - b.lo, message.values.size + last - first)

    def cut(self, x: Array) -> Array:
        """Of rows on the first part's window, those places that can be."""
        return x[..., self.first : self.last + 1]

    def padded(self, y: Array) -> Array:
        """Of rows on the second part's window, those that the first ones meet, with 0 beyond."""
        return _padded(y, self.start, self.size)


def convolved(x: Floats, y: Floats) -> Floats:
    """All sums of products; wide ones from transforms."""
    return _met(_padded(y, 1 - x.size, y.size + 2 * x.size - 2), x)


def _met(y: Floats, x: Floats) -> Floats:
    """The same where all of x meets y: the turn of a transform does not reach there."""
    if x.size * (y.size - x.size + 1) <= WIDE:
        return np.convolve(y, x, "valid")
    length = int(fft.next_fast_len(y.size, real=True))
    return np.asarray(fft.irfft(fft.rfft(y, length) * fft.rfft(x, length), length)[x.size - 1 : y.size])


def _not_faint(whole: Floats) -> Floats:
    return np.maximum(whole, max(FAINT * float(whole.max()), 1e-300))


def _moments(values: Floats, line: Floats | None, bent: Array | None) -> list[Floats | None]:
    """A message times 1, the mean and the mean square of what is contributed: a line and what is bent."""
    if bent is None:
        return [values, None, None] if line is None else [values, values * line, values * line * line]
    mean = bent[0] if line is None else bent[0] + line
    return [values, values * mean, values * (mean * mean + bent[1])]


def _padded(values: Array, start: int, size: int) -> Array:
    """So many places from one on, 0 beyond the array."""
    result = np.zeros((*values.shape[:-1], size), dtype=values.dtype)
    first, last = max(start, 0), min(start + size, values.shape[-1])
    result[..., first - start : last - start] = values[..., first:last]
    return result
