"""Noise that goes on over periods: that of each is drawn around a centre that the noise before it decides (THEORY H14).

Law: n_t is integer Gaussian of parameter σ²/w_t around c_t = −Σ_{s<t} L_ts n_s, L lower triangular with 1 on its
diagonal. A change of the data by d then moves the centre of what is published in period t by (L d)_t, whatever was
published before, and costs what X = Lᵀ diag(w) L says of d (docs/theory/over-time.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from flint import arb

from holdfast.arguments import Refused
from holdfast.arrays import Floats, Ints
from holdfast.noise.draws.shifted_gaussian import ShiftedGaussian
from holdfast.noise.precision import ball, working_precision
from holdfast.randomness import Stream

#: Entries of L, and weights w, are multiples of 2^−BITS.
BITS = 16
UNIT = 1 << BITS
#: Bounds of σ²/w in a series: below the first whole noise is far from normal, beyond the second sums leave 64 bits.
LEAST, MOST = Fraction(1, 4), Fraction(2) ** 56
#: Bits of the bound on how much wider than σ² whole noise can be: a smaller excess is rounded up to them.
LONGEST = 256
#: Errors of a period are those of whole noise of this many parts finer than their variance, rounded up.
FINE = 1 << 20


@dataclass(frozen=True)
class Factor:
    """How noise hangs together over periods: `rows[t]` has L_t0 … L_t,t−1, `weights` w, both in steps of 2^−BITS."""

    rows: tuple[tuple[int, ...], ...]
    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        lengths = [len(row) for row in self.rows]
        if not self.weights or lengths != list(range(len(self.weights))) or min(self.weights) <= 0:
            raise Refused("a factor has a row and a weight above 0 for every period, each row one entry more")
        if max((abs(each) for row in self.rows for each in row), default=0) > UNIT << 6:
            raise Refused("a factor has entries of at most 64")

    @classmethod
    def of(cls, precision: Floats) -> Factor:
        """The factor of a positive definite matrix X = Lᵀ diag(w) L, rounded; its largest diagonal entry becomes 1."""
        X = np.asarray(precision) / np.diag(precision).max()
        upper = np.linalg.cholesky(X[::-1, ::-1])[::-1, ::-1].T  # of the reversed order: X = BᵀB, B lower triangular
        own = np.diag(upper)
        L = np.rint(UNIT * upper / own[:, None]).astype(np.int64)
        weights = np.maximum(np.rint(UNIT * own**2), 1).astype(np.int64)
        return cls(tuple(tuple(L[t, :t].tolist()) for t in range(len(L))), tuple(weights.tolist()))

    @property
    def periods(self) -> int:
        return len(self.weights)

    @cached_property
    def _lower(self) -> Any:
        """L in steps, of Python's own whole numbers."""
        L = np.zeros((self.periods, self.periods), dtype=object)
        for t, row in enumerate(self.rows):
            L[t, :t], L[t, t] = row, UNIT
        return L

    @cached_property
    def _steps(self) -> Any:
        """X in steps of 2^(−3·BITS)."""
        return self._lower.T @ (np.array(self.weights, dtype=object)[:, None] * self._lower)

    def cost(self, change: Any) -> Fraction:
        """dᵀXd of a change of the data, exactly."""
        d = np.array([Fraction(each) for each in change], dtype=object)
        return Fraction(d @ self._steps @ d) / UNIT**3

    def worst(self, periods: int) -> Fraction:
        """The most that Σ|X_ts| over any so many periods t, s comes to, or a bound on it; exact for 1 and for all.

        A person whose record counts in each of them costs no more (docs/theory/over-time.md, Proposition 2).
        """
        sizes, T = np.abs(self._steps), self.periods
        rows = [sum(sorted(row)[-periods:]) for row in sizes.tolist()]
        by_rows = sum(sorted(rows)[-periods:])
        above = sizes.copy()  # of no later pair that is as far apart
        for i, j in ((i, i + k) for k in reversed(range(T)) for i in reversed(range(T - k))):
            later = [above[i, j + 1]] if j + 1 < T else []
            later += [above[i + 1, j + 1]] if j + 1 < T else []
            above[i, j] = above[j, i] = max([above[i, j], *later])
        return Fraction(min(by_rows, above[:periods, :periods].sum()), UNIT**3)

    @cached_property
    def covariance(self) -> Floats:
        """That of the noise of all periods, in units of σ²: the inverse of X."""
        inverse = np.linalg.inv(np.asarray(self._lower / UNIT, dtype=np.float64))
        return np.asarray((inverse * (UNIT / np.array(self.weights, dtype=np.float64))) @ inverse.T)

    def variance(self, weights: Any) -> Fraction:
        """That of a weighted sum over periods, in units of σ², rounded up."""
        w = np.asarray(weights, dtype=np.float64)
        return Fraction(math.ceil(float(w @ self.covariance @ w) * FINE * (1 - 1e-12)), FINE)

    def of_period(self, t: int) -> Fraction:
        """The variance of the noise of one period, in units of σ²."""
        return self.variance(np.eye(self.periods)[t])

    def refuse_unfit(self, sigma2: Fraction) -> None:
        """Refuse noise that is too small or too large for what is proved of it."""
        least, most = (sigma2 * UNIT / each for each in (max(self.weights), min(self.weights)))
        if not LEAST <= least <= most <= MOST:
            raise Refused("noise over time needs standard deviations from 0.5 to 2^28: ask for more, or for less")

    def draw(self, sigma2: Fraction, count: int, upto: int, stream: Callable[[int], Stream]) -> Ints:
        """Draw the noise of periods 0 … upto of so many figures, (upto + 1, count); `stream(t)` is that of period t."""
        self.refuse_unfit(sigma2)
        noise = np.zeros((upto + 1, count), dtype=np.int64)
        for t in range(upto + 1):
            centres = -(np.array(self.rows[t], dtype=np.int64) @ noise[:t]) if t else noise[0]
            noise[t] = ShiftedGaussian(sigma2 * UNIT / self.weights[t], BITS).draw(centres, stream(t))
        return noise


def wideness(sigma2: Fraction) -> Fraction:
    """A bound on the variance of integer Gaussian noise around any centre, in units of σ², for σ² ≥ 1/4.

    θ(a) = Σ_n e^{−(n−a)²/2σ²} is a constant times h = 1 + 2Σ_j q^{j²} cos 2πja with q = e^{−2π²σ²}; the variance is
    σ² + σ⁴(log h)″, and (log h)″ ≤ |h″|/h. Terms left out are below half of the last one, each half of the one before.
    """
    if sigma2 < LEAST:
        raise Refused("noise over time needs a variance of 1/4 or more")
    with working_precision(128):
        exponent = -2 * arb.pi() ** 2 * ball(sigma2)
        terms = [(exponent * j**2).exp() for j in range(1, 6)]
        mass, curve = 2 * sum(terms, arb(0)), 2 * sum((j**2 * term for j, term in enumerate(terms, 1)), arb(0))
        excess = 4 * arb.pi() ** 2 * ball(sigma2) * (curve + 50 * terms[-1]) / (1 - mass - 2 * terms[-1])
        mantissa, power = (int(part) for part in excess.upper().man_exp())
    return 1 + Fraction(mantissa) * Fraction(2) ** max(power, -LONGEST)
