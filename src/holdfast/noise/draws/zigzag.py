"""Symmetric laws on the whole numbers, told in the order 0, −1, 1, −2, 2, …

Such a law is known by its upper tails Q(a) = P(U ≥ a), a ≥ 0. Cumulative probabilities in zigzag order,
distribution function and quantiles all follow from Q, in ball arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
import numpy.typing as npt
from flint import arb

from holdfast.arguments import probability, whole_numbers
from holdfast.arrays import Floats
from holdfast.noise.precision import decided, nearest_double


class Tails(Protocol):
    """The upper tails of a symmetric law on the whole numbers, at the working precision."""

    def at(self, a: int) -> arb:
        """Enclose P(U ≥ a) for a ≥ 0."""

    def run(self) -> Iterator[arb]:
        """Enclose P(U ≥ 0), P(U ≥ 1), … in turn; absolute accuracy is enough."""


@dataclass(frozen=True)
class Zigzag:
    """Cumulative probabilities of a symmetric law in the order 0, −1, 1, −2, 2, … (see `Cumulative`)."""

    tails: Tails

    @property
    def size(self) -> None:
        return

    def at(self, k: int) -> arb:
        """Enclose the probability of the first k symbols.

        The symbols from 2a on are U ≥ a and U ≤ −a−1; those from 2a+1 on are |U| ≥ a+1.
        """
        a, odd = divmod(k, 2)
        return 1 - (2 * self.tails.at(a + 1) if odd else self.tails.at(a) + self.tails.at(a + 1))

    def run(self) -> Iterator[arb]:
        tails = self.tails.run()
        next(tails)  # Q(0) takes part in F_0 = 0 only
        before = next(tails)
        yield 1 - 2 * before  # F_1 = P(U = 0)
        for tail in tails:
            yield 1 - before - tail  # F_2, F_4, …
            yield 1 - 2 * tail  # F_3, F_5, …
            before = tail


def _cdf(tails: Tails, u: int) -> arb:
    return 1 - tails.at(u + 1) if u >= 0 else tails.at(-u)


def cdf(tails: Tails, u: npt.ArrayLike) -> Floats:
    """Return P(U ≤ u) for whole numbers u, each rounded to the nearest double."""
    values = whole_numbers("u", u)
    distinct, places = np.unique(values, return_inverse=True)
    found = [nearest_double(partial(_cdf, tails, int(value))) for value in distinct]
    return np.array(found, dtype=np.float64)[places].reshape(values.shape)


def quantile(tails: Tails, p: object, guess: float) -> int:
    """Return the smallest u with P(U ≤ u) ≥ p, decided with proof; `guess` is where the search starts."""
    target = probability("p", p)

    def reached(u: int) -> bool:
        return decided(partial(_cdf, tails, u), target)

    high = round(guess)
    step = 1
    while not reached(high):
        high, step = high + step, 2 * step
    low = high - 1
    step = 1
    while reached(low):
        high, low, step = low, low - step, 2 * step
    # Now P(U ≤ low) < p ≤ P(U ≤ high).
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high
