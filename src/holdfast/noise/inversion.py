"""How far the error of a weighted sum reaches, from its characteristic function φ (docs/theory/error-bars.md).

The law of an error is looked at around a circle, where it is a sum over φ at multiples of one frequency. Errors that
are all multiples of one *step* have a finite sum, of which those terms count where φ is not faint. Other errors have a
normal part added, BLUR times smaller than themselves, which makes all but some terms faint. Where even that is too much
work, φ at one imaginary frequency gives Chernoff's limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import optimize, special

from holdfast.arrays import Array, Floats

#: What the circle may add to a probability, as a share of it, and what is faint; and the least circle, in weights.
SHARE, FAINT, FAR = 1e-3, 1e-4, 60
#: Frequencies asked for at a time; so many faint ones are the last; and most of them before errors are blurred.
ROUND, LAST, MOST = 16, 3, 240
#: Weights that are at most so many steps return together at few frequencies, which are looked at.
RETURNS = 8
#: Standard errors in that of the normal part, and the margins that are tried, in its own.
BLUR, MARGINS = 12.0, np.arange(1.0, 4.25, 0.25)
#: Errors of single outputs, in that of their sum, that may be tilted; and most terms of errors that are blurred.
SMALL, MOST_BLURRED = 0.03, 1_000
#: The least probability that sums of doubles tell.
LEAST = 1e-8
#: Weights that miss a multiple of the smallest one by less, as a share of it, are multiples.
NEAR = 1e-9

#: φ at some frequencies, real or imaginary; None where that is too much work.
Phi = Callable[[Array], Floats | None]


@dataclass(frozen=True, eq=False)
class Characteristic:
    """`of(weights, frequencies)`: the mean of e^{iωx} of x = Σ weights·noise, which is whole times `unit`.

    Real, since laws are symmetric, also for imaginary ω. None where that is too much work.
    """

    of: Callable[[Floats, Array], Floats | None]
    unit: float = 1.0

    def times(self, unit: float) -> Characteristic:
        """The same noise counted in another unit."""
        return Characteristic(lambda weights, frequencies: self.of(weights, frequencies * unit), self.unit * unit)


@dataclass(frozen=True, eq=False)
class Sums:
    """Independent weighted sums together: their characteristic functions, weights and standard errors of all outputs.

    *Law:* symmetric; beyond x standard errors and FAR times the largest weight at most e^(1−x) of the time, as
    log-concave laws are.
    """

    parts: Sequence[tuple[Characteristic, Floats, Floats]]
    error: float

    def least_reach(self, tail: float) -> float | None:
        """How far they reach on either side, but for 2·`tail` of the time.

        None where weights are no small multiples of the smallest one, or where φ is faint too late or too much work.
        """
        if self.error == 0 or tail < LEAST:
            return None if self.error else 0.0
        step = _step(np.concatenate([weights * law.unit for law, weights, _ in self.parts]))
        return None if step is None else _on_steps(self._phi, self._around(tail), step, tail)

    def wide_reach(self, tail: float) -> float | None:
        """The same or a little more, for all weights; None where φ is too much work."""
        if self.error == 0 or tail < LEAST:
            return None if self.error else 0.0
        found = _blurred(self._phi, self._around(tail), self.error, tail)
        if found is not None:
            return found
        most = max(float(np.abs(weights * errors).max()) for _, weights, errors in self.parts)
        return _tilted(self._phi, self.error, tail) if most <= SMALL * self.error else None

    def _around(self, tail: float) -> float:
        """Farther than they reach, and than what may be forgotten lies: this comes around the circle."""
        most = max(float(np.abs(weights).max() * law.unit) for law, weights, _ in self.parts)
        far = 1 - math.log(SHARE * tail) + min(1 - math.log(2 * tail), (2 * tail) ** -0.5)
        return max(self.error * far, FAR * most)

    def _phi(self, frequencies: Array) -> Floats | None:
        result = np.ones(frequencies.size)
        for law, weights, _ in self.parts:
            found = law.of(weights, frequencies)
            if found is None:
                return None
            result *= found
        return result


def _step(weights: Floats) -> float | None:
    """The smallest weight; None where one is no multiple of it, or too large a one."""
    sizes = np.unique(np.abs(weights[weights != 0])).astype(np.float64)
    multiples = sizes / sizes[0]
    if multiples[-1] > RETURNS + NEAR or (np.abs(multiples - np.rint(multiples)) > NEAR).any():
        return None
    return float(sizes[0])


def _on_steps(phi: Phi, around: float, step: float, tail: float) -> float | None:
    """The least multiple of a step."""
    half = math.ceil(around / step / 2)
    size = 2 * half + 1  # places around the circle; terms come in pairs
    base = 2 * math.pi / (size * step)
    terms = np.zeros(0)
    while terms.size < half and not (terms.size and np.abs(terms[-LAST:]).max() < FAINT * tail):
        more = phi(base * np.arange(terms.size + 1, min(terms.size + ROUND, half) + 1)) if terms.size < MOST else None
        if more is None:
            return None
        terms = np.concatenate([terms, more])
    if terms.size < half:  # faint from here on, if it does not return
        again = np.unique([j / m for m in range(2, RETURNS + 1) for j in range(1, m // 2 + 1)])
        more = phi(2 * math.pi / step * again[again > terms.size / size])
        if more is None or np.abs(more).max() >= FAINT * tail:
            return None
    turns = np.arange(1, terms.size + 1) * (math.pi / size)
    terms = terms / np.sin(turns)

    def within(places: int) -> float:
        odd = 2 * places + 1
        return float((odd + 2 * terms @ np.sin(odd * turns)) / size)

    low, high = -1, half
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if 1 - within(middle) <= (2 - SHARE) * tail else (middle, high)
    return high * step


def _blurred(phi: Phi, around: float, error: float, tail: float) -> float | None:
    """A limit for all errors e: e + z with normal z is beyond q − p whenever e is beyond q and z above −p."""
    blur, base = error / BLUR, 2 * math.pi / around
    count = math.ceil(math.sqrt(-2 * math.log(FAINT * tail)) / (blur * base))
    frequencies = base * np.arange(1, count + 1)
    found = phi(frequencies) if count <= MOST_BLURRED else None
    if found is None:
        return None
    terms = found * np.exp(-((frequencies * blur) ** 2) / 2) / frequencies

    def beyond(q: float) -> float:
        return 1 - (2 * q + 4 * float(terms @ np.sin(frequencies * q))) / around

    def reached(margin: float) -> float:
        allowed = (2 - SHARE) * tail * float(special.ndtr(margin))
        return margin * blur + float(optimize.brentq(lambda q: beyond(q) - allowed, 0.0, around / 2))

    return min(reached(margin) for margin in MARGINS.tolist())


def _tilted(phi: Phi, error: float, tail: float) -> float | None:
    """Chernoff's limit: P(x ≥ q) ≤ E e^{tx}·e^{−tq}, and E e^{tx} = φ(−it); t is the best one for normal x."""
    t = math.sqrt(-2 * math.log(tail)) / error
    found = phi(np.array([-1j * t]))
    return None if found is None else (math.log(float(found[0])) - math.log(tail)) / t
