"""How far the error of a weighted sum reaches, from its characteristic function φ (docs/theory/error-bars.md).

The law of an error is looked at around a circle, where it is a sum over φ at multiples of one frequency. Errors that
are all multiples of one *step* have a finite sum; where all weights are one step, φ falls, and what follows a faint
term is faint. Other errors have a normal part added, BLUR times smaller than themselves, which makes all but some terms
faint. Where even that is too much work Chernoff's limit is left, which also says how large a circle must be.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import optimize, special

from holdfast.arrays import Floats

#: What the circle may add to a probability, as a share of it, and what is faint.
SHARE, FAINT = 1e-3, 1e-4
#: Frequencies asked for at a time, and most of them before errors are blurred.
ROUND, MOST = 16, 240
#: Standard errors in that of the normal part, and the margins that are tried, in its own.
BLUR, MARGINS = 12.0, np.arange(1.0, 4.25, 0.25)
#: Less than how often a normal part lies within the lowest margin on one side.
LEFT = 0.83
#: Most terms of errors that are blurred.
MOST_BLURRED = 2_000
#: Slopes of Chernoff's limit lie between these, over the error and over the largest weight; and how near the best.
SLOPES, CLOSE, GOLDEN = (1e-3, 1e3), 0.05, (math.sqrt(5) - 1) / 2
#: The least probability that sums of doubles tell.
LEAST = 1e-8
#: Weights that miss a multiple of the smallest one by less, as a share of it, are multiples.
NEAR = 1e-9

#: φ at some frequencies; None where that is too much work.
Phi = Callable[[Floats], Floats | None]


@dataclass(frozen=True, eq=False)
class Characteristic:
    """`of(weights, frequencies)`: the mean of e^{iωx} of x = Σ weights·noise, which is whole times `unit`.

    Real, since laws are symmetric; None where that is too much work. `at_leaves(weights)`: weights of the leaves alone
    that have the same sum; where all of them are 0 or of one size w and none below 0, φ falls up to π/w, and other
    signs make it smaller. `tilted(weights, t)`: log E e^{tx} or more. `lattice`: the noise is whole. `blur`: how many
    times smaller than the error the normal part is that is added where that is needed.
    """

    of: Callable[[Floats, Floats], Floats | None]
    at_leaves: Callable[[Floats], Floats]
    tilted: Callable[[Floats, float], float]
    unit: float = 1.0
    lattice: bool = True
    blur: float = BLUR

    def times(self, unit: float) -> Characteristic:
        return Characteristic(
            lambda weights, frequencies: self.of(weights, frequencies * unit),
            self.at_leaves,
            lambda weights, slope: self.tilted(weights, slope * unit),
            self.unit * unit,
            self.lattice,
            self.blur,
        )


@dataclass(frozen=True, eq=False)
class Sums:
    """Independent weighted sums together: their characteristic functions and weights, and the standard error of all.

    *Law:* symmetric.
    """

    parts: Sequence[tuple[Characteristic, Floats]]
    error: float

    def least_reach(self, tail: float) -> float | None:
        """How far they reach on either side, but for 2·`tail` of the time.

        None where weights are no multiples of the smallest one, or where φ is faint too late or too much work.
        """
        if self.error == 0 or tail < LEAST:
            return None if self.error else 0.0
        if not all(law.lattice for law, _ in self.parts) or (step := _step(self._leaves)) is None:
            return None
        falls = None if same_size(self._leaves) is None else self._fallen
        return _on_steps(self._phi, falls, self._around(tail), step, tail)

    def wide_reach(self, tail: float) -> float | None:
        """The same or a little more, for all weights; None where φ is too much work."""
        if self.error == 0 or tail < LEAST:
            return None if self.error else 0.0
        blur = self.error / min(law.blur for law, _ in self.parts)
        return _blurred(self._phi, self._around(LEFT * tail, blur), blur, tail)

    def proved_reach(self, tail: float, blur: float = 0.0) -> float:
        """Chernoff's limit: P(x ≥ q) ≤ E e^{tx}·e^{−tq} for every t > 0. Wide; infinite where nothing is known.

        With a `blur` it is that of x + z, z normal and independent with this standard error.
        """
        if self.error == 0:
            return 0.0
        ends = self.error, float(np.abs(self._leaves).max())
        low, high = math.log(SLOPES[0] / max(ends)), math.log(SLOPES[1] / min(ends))

        def limit(place: float) -> float:
            slope = math.exp(place)
            tilted = (slope * blur) ** 2 / 2 + sum(law.tilted(weights, slope) for law, weights in self.parts)
            return (tilted - math.log(tail)) / slope

        inner = [high - (high - low) * GOLDEN, low + (high - low) * GOLDEN]
        limits = [limit(place) for place in inner]
        best = min(limits)
        while high - low > CLOSE:  # every slope gives a limit; with one valley the best is between these
            if limits[0] <= limits[1]:
                high, inner[1], limits[1] = inner[1], inner[0], limits[0]
                inner[0] = high - (high - low) * GOLDEN
                limits[0] = limit(inner[0])
            else:
                low, inner[0], limits[0] = inner[0], inner[1], limits[1]
                inner[1] = low + (high - low) * GOLDEN
                limits[1] = limit(inner[1])
            best = min(best, *limits)
        return best

    @cached_property
    def _leaves(self) -> Floats:
        return np.concatenate([law.at_leaves(weights) * law.unit for law, weights in self.parts])

    def _around(self, tail: float, blur: float = 0.0) -> float:
        """Farther than they reach, and than what may be forgotten lies: this comes around the circle."""
        return self.proved_reach((1 - 2 * SHARE) * tail, blur) + self.proved_reach(SHARE * tail / 2, blur)

    def _phi(self, frequencies: Floats) -> Floats | None:
        result = np.ones(frequencies.size)
        for law, weights in self.parts:
            found = law.of(weights, frequencies)
            if found is None:
                return None
            result *= found
        return result

    def _fallen(self, frequency: float) -> float:
        """The largest φ from this frequency on, up to that of the step, where leaves agree in size."""
        result = 1.0
        for law, weights in self.parts:
            leaves = law.at_leaves(weights)
            some = weights if (leaves >= 0).all() or (leaves <= 0).all() else np.abs(leaves)
            values = law.of(some, np.array([frequency]))
            result *= 1.0 if values is None else float(values[0])
        return result


def _sizes(weights: Floats) -> Floats:
    return np.unique(np.abs(weights[weights != 0]))


def same_size(weights: Floats) -> float | None:
    """The size of all weights but those that are 0; None where they differ."""
    sizes = _sizes(weights)
    return float(sizes[0]) if sizes.size and sizes[-1] - sizes[0] <= NEAR * sizes[0] else None


def _step(weights: Floats) -> float | None:
    """The smallest weight; None where one is no multiple of it."""
    sizes = _sizes(weights)
    multiples = sizes / sizes[0]
    return float(sizes[0]) if (np.abs(multiples - np.rint(multiples)) <= NEAR).all() else None


def _on_steps(
    phi: Phi, falls: Callable[[float], float] | None, around: float, step: float, tail: float
) -> float | None:
    """The least multiple of a step; `falls`: the largest φ from a frequency on, where that is known."""
    if not math.isfinite(around):
        return None
    half = math.ceil(around / step / 2)
    if falls is None and half > MOST:
        return None
    size = 2 * half + 1  # places around the circle; terms come in pairs
    base = 2 * math.pi / (size * step)
    terms, faint = np.zeros(0), FAINT * tail / max(1.0, math.log(half) / 10)
    while terms.size < half:
        if falls is not None and terms.size and abs(terms[-1]) < faint:
            if falls(base * terms.size) < faint:
                break
            falls = None
        places: Floats = np.arange(terms.size + 1, min(terms.size + ROUND, half) + 1, dtype=np.float64)
        more = phi(np.asarray(base * places)) if terms.size < MOST else None
        if more is None:
            return None
        terms = np.concatenate([terms, more])
    turns = np.arange(1, terms.size + 1) * (math.pi / size)
    terms = terms / np.sin(turns)

    def within(places: int) -> float:
        odd = 2 * places + 1
        return float((odd + 2 * terms @ np.sin(odd * turns)) / size)

    low, high = -1, half
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if 1 - within(middle) <= (2 - 2 * SHARE) * tail else (middle, high)
    return high * step


def _blurred(phi: Phi, around: float, blur: float, tail: float) -> float | None:
    """A limit for all errors e: e + z with normal z is beyond q − p whenever e is beyond q and z above −p."""
    if not math.isfinite(around):
        return None
    base = 2 * math.pi / around
    count = math.ceil(math.sqrt(-2 * math.log(FAINT * tail)) / (blur * base))
    frequencies: Floats = np.asarray(base * np.arange(1, count + 1, dtype=np.float64))
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
