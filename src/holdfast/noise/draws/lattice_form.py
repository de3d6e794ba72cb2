"""A quadratic form on a lattice by its triangular factor, and exact draws of the Gaussian law it defines.

With z = B k, k whole, the form is |z|² = Σ_i D_i·(k_i + Σ_{j>i} U_ij k_j)², U in steps of 2^−BITS and D rational: what
is rounded are U and D, once, and everything after that is exact. *Law:* P(z) ∝ e^{−|z|²/2σ²} on the lattice B·Z^d.
Coordinates are drawn from the last to the first, each from the integer Gaussian law around the centre that the later
ones leave, and the whole vector is accepted with probability Π θ_i(c_i)/θ_i(0) (Brakerski, Langlois, Peikert, Regev,
Stehlé 2013, Lemma 2.3; docs/theory/lattice-gaussian.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import flint
import numpy as np
from flint import arb
from scipy import linalg

from holdfast.arguments import LARGEST, Refused
from holdfast.arrays import Bools, Floats, Ints
from holdfast.noise.draws.comparison import below
from holdfast.noise.draws.shifted_gaussian import ShiftedGaussian
from holdfast.randomness import Stream

#: Steps of the factor U are 2^−BITS; the weights D keep so many digits.
BITS = 30
#: Digits of U that are compared first with the probability of acceptance.
_COIN_BITS = 53
#: Lattice reduction sees the whitened basis in this many digits.
_REDUCTION_BITS = 24
#: So many vectors that may have the largest form are settled in fractions; beyond, the bound is rounded up.
_MOST_TIES = 64
#: Coordinates drawn at once.
_BATCH = 1 << 21
#: At least so many vectors of a hundred are accepted; below, drawing takes too long.
LEAST_ACCEPTANCE = 0.01
#: Draws so many standard deviations long must fit in 64 bits.
_DEVIATIONS = 64

TOO_WIDE = "this noise is too wide, or these equalities too uneven, for 64 bits: use integer=False"


@dataclass(frozen=True, eq=False)
class LatticeForm:
    """`basis` (n, d) spans the lattice, `upper` (d, d) is U above its diagonal in steps of 2^−BITS, `weights` are D."""

    basis: Ints
    upper: Ints
    weights: tuple[Fraction, ...]

    @classmethod
    def of(cls, basis: Ints, factor: Floats) -> LatticeForm:
        """Round the form zᵀΣ⁻¹z, Σ = F Fᵀ, F (n, d) a factor whose columns span the lattice's space."""
        directions, triangle = linalg.qr(basis.astype(np.float64), mode="economic")
        return cls.whitened(basis, linalg.solve(directions.T @ factor, triangle))

    @classmethod
    def whitened(cls, basis: Ints, whitened: Floats) -> LatticeForm:
        """Round the form |W k|² of the vectors B k, W (m, d) of full rank."""
        change = _reduction(whitened)
        reduced = _product(basis, change.T)
        triangle = linalg.qr(whitened @ change.T, mode="r")[0][: basis.shape[1]]
        diagonal = np.diag(triangle)
        if not (np.abs(diagonal) > 0).all():
            raise Refused(TOO_WIDE)
        upper = np.triu(triangle / diagonal[:, None], 1) * 2.0**BITS
        if np.abs(upper).sum(axis=1).max() >= LARGEST / 2:
            raise Refused(TOO_WIDE)
        weights = tuple(_short(float(value) ** 2) for value in diagonal)
        return cls(reduced, np.rint(upper).astype(np.int64), weights)

    @property
    def dimension(self) -> int:
        return int(self.basis.shape[1])

    def times(self, factor: Fraction) -> LatticeForm:
        return LatticeForm(self.basis, self.upper, tuple(weight * factor for weight in self.weights))

    # --- the form ------------------------------------------------------------------------------------------------

    def coordinates(self, vectors: Ints) -> Ints:
        """Return k (d, m) with B k = vectors (n, m), exactly; vectors that are not in the lattice raise an error."""
        directions, triangle = linalg.qr(self.basis.astype(np.float64), mode="economic")
        found = np.rint(linalg.solve_triangular(triangle, directions.T @ vectors)).astype(np.int64)
        if not np.array_equal(_product(self.basis, found), vectors):
            raise ArithmeticError("a vector does not lie in the lattice, or doubles cannot find its coordinates")
        return found

    def largest(self, coordinates: Ints) -> tuple[Fraction, bool]:
        """Return the largest form over whole coordinates (d, m), never too small, and whether it is attained.

        Doubles find the candidates: every term is at least 0, each sum of d terms has at most d + 8 roundings.
        """
        parts = self.steps(coordinates)
        sizes = np.array([float(weight) for weight in self.weights]) @ parts.astype(np.float64) ** 2
        margin = (self.dimension + 8) * 2.0**-52
        near = np.flatnonzero(sizes >= sizes.max() * (1 - 3 * margin))
        if near.size > _MOST_TIES:
            return Fraction(float(sizes.max()) * (1 + 3 * margin)) / 4**BITS, False
        return max(self.settled(parts[:, j]) for j in near), True

    def steps(self, coordinates: Ints) -> Ints:
        """Return k_i + Σ_{j>i} U_ij k_j in steps of 2^−BITS."""
        self._fits(coordinates)
        return np.asarray((coordinates << BITS) + self.upper @ coordinates)

    def settled(self, steps: Ints) -> Fraction:
        """The form of one vector from its steps, exactly."""
        total = sum((weight * int(y) ** 2 for weight, y in zip(self.weights, steps, strict=True)), Fraction(0))
        return total / 4**BITS

    def _fits(self, coordinates: Ints) -> None:
        if int(np.abs(coordinates).max(initial=0)) * self._widest >= LARGEST:
            raise OverflowError("a draw of noise does not fit: it is 2**62 or more in size")

    @cached_property
    def _widest(self) -> int:
        rows = max(int(row) for row in np.abs(self.upper).sum(axis=1)) + (1 << BITS)
        return max(rows, int(np.abs(self.basis).sum(axis=1).max(initial=0)))

    @cached_property
    def _inverse(self) -> Floats:
        """U⁻¹D^{−1/2}: covariances of the coordinates are this times its transpose."""
        unit = np.eye(self.dimension) + self.upper * 2.0**-BITS
        roots = np.diag([1 / math.sqrt(float(weight)) for weight in self.weights])
        return np.asarray(linalg.solve_triangular(unit, roots, unit_diagonal=True))

    @cached_property
    def factor(self) -> Floats:
        """F (n, d) with Σ = F Fᵀ: covariances of the draws are at most Σ, and nearly Σ for wide noise."""
        return np.asarray(self.basis @ self._inverse)

    # --- draws ---------------------------------------------------------------------------------------------------

    @cached_property
    def _laws(self) -> tuple[ShiftedGaussian, ...]:
        return tuple(ShiftedGaussian(1 / weight, BITS) for weight in self.weights)

    @property
    def acceptance(self) -> float:
        """About the least that the probability of acceptance can be, Σ_z e^{−|z|²/2}/Π θ_i(0).

        The sum is at least 1, and at least Π √(2π/D_i) (its largest term, and that of Poisson's sum).
        """
        room = math.prod(law.room for law in self._laws)
        return max(room, 1 / math.prod(law.mass for law in self._laws))

    def refuse_slow(self) -> None:
        """Refuse before anything is drawn, from the form alone, what would take too long or not fit."""
        if self.acceptance < LEAST_ACCEPTANCE:
            raise Refused(
                "the noise is too small beside whole steps for exact draws in so many directions: ask for more "
                "privacy, or use gaussian(...).given(...)"
            )
        deviation = float(np.sqrt((self._inverse**2).sum(axis=1).max()))
        if _DEVIATIONS * deviation * self._widest >= LARGEST:
            raise Refused(TOO_WIDE)

    def draw(self, size: int, stream: Stream) -> Ints:
        """Draw `size` vectors of the lattice, (size, n), exactly from P(z) ∝ e^{−|z|²/2}."""
        return np.asarray(self.drawn_coordinates(size, stream) @ self.basis.T)

    def drawn_coordinates(self, size: int, stream: Stream) -> Ints:
        """Draw the coordinates k of `size` vectors, (size, d)."""
        self.refuse_slow()
        result = np.empty((size, self.dimension), dtype=np.int64)
        batch = max(1, _BATCH // self.dimension)
        for start in range(0, size, batch):
            left = np.arange(start, min(start + batch, size))
            while left.size:
                drawn, accepted = self._proposed(left.size, stream)
                result[left[accepted]] = drawn[accepted]
                left = left[~accepted]
        return result

    def _proposed(self, size: int, stream: Stream) -> tuple[Ints, Bools]:
        """Coordinates drawn in turn, and which vectors are accepted."""
        drawn = np.zeros((size, self.dimension), dtype=np.int64)
        rests = np.empty((size, self.dimension), dtype=np.int64)
        low, high = np.ones(size), np.ones(size)
        for i in range(self.dimension - 1, -1, -1):
            law = self._laws[i]
            centres = -(drawn[:, i + 1 :] @ self.upper[i, i + 1 :])
            drawn[:, i] = law.draw(centres, stream)
            self._fits(drawn[:, i])
            rests[:, i] = law.parts(centres)[1]
            least, most = law.ratios(rests[:, i])
            low, high = low * least, high * most
        # Products of d doubles move by d roundings, far less than 2^−40, unless they are too small for doubles.
        low, high = low * (1 - 2.0**-40), np.clip(high * (1 + 2.0**-40), 2.0**-900, 1.0)
        values = (stream.words(size) >> np.uint64(64 - _COIN_BITS)).astype(np.int64)
        uniform = values * 2.0**-_COIN_BITS
        accepted = uniform + 2.0**-_COIN_BITS <= low
        for row in np.flatnonzero(~accepted & (uniform < high)):
            accepted[row] = below(partial(self._ratio, rests[row]), int(values[row]), _COIN_BITS, stream)
        return drawn, accepted

    def _ratio(self, rests: Ints) -> arb:
        """Enclose Π θ_i(c_i)/θ_i(0) at the working precision."""
        product = arb(1)
        for law, rest in zip(self._laws, rests, strict=True):
            product = product * law.ratio(int(rest)) if rest else product
        return product


def _short(value: float) -> Fraction:
    mantissa, exponent = math.frexp(value)
    return Fraction(round(mantissa * 2.0**BITS)) * Fraction(2) ** (exponent - BITS)


def _reduction(whitened: Floats) -> Ints:
    """Return whole rows (d, d) of determinant ±1 that turn the basis into one of short, nearly orthogonal vectors."""
    size = len(whitened)
    shortest = float(np.sqrt((whitened**2).sum(axis=0)).min())
    if size == 1 or not shortest > 0:
        return np.eye(size, dtype=np.int64)
    scaled = np.rint(whitened.T / shortest * 2.0**_REDUCTION_BITS)
    if not (np.abs(scaled) < 2.0**62).all():
        raise Refused(TOO_WIDE)
    rows: Any = flint.fmpz_mat([[int(x) for x in row] for row in scaled])
    change = [[int(x) for x in row] for row in rows.lll(transform=True)[1].tolist()]
    if max(abs(x) for row in change for x in row) >= 2**31:
        raise Refused(TOO_WIDE)
    return np.array(change, dtype=np.int64)


def _product(left: Ints, right: Ints) -> Ints:
    """The product of whole matrices; refused where it might not fit in 64 bits."""
    most = int(np.abs(left).sum(axis=1).max(initial=0)) * int(np.abs(right).max(initial=0))
    if most >= LARGEST:
        raise Refused(TOO_WIDE)
    return np.asarray(left @ right)
