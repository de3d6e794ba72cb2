"""Integer Gaussian noise given any equalities: the Gaussian law on the whole vectors of the null space, exactly.

Law: P(u) ∝ e^{−Q(u)/2}, Q(u) = Σ u_i²/σ_i², on N ∩ Zⁿ. Draws come from a form R that is rounded (`LatticeForm`) and
made smaller by ROOM, such that R ≤ Q for all vectors, which is proved in balls; each is kept with probability
e^{−(Q(u) − R(u))/2}, in fractions where doubles do not decide (docs/theory/lattice-gaussian.md, §3).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb, arb_mat
from scipy import linalg

from holdfast.arguments import Refused
from holdfast.arrays import Array, Floats, Ints, kept
from holdfast.given.problem import Problem, Truth
from holdfast.noise.draws.gaussian_draws import COIN_BITS, coin
from holdfast.noise.draws.lattice_form import BITS, LatticeForm
from holdfast.noise.precision import ball, working_precision
from holdfast.noise.spread import FEWEST, Spread, simulated_quantiles
from holdfast.randomness import Stream, seeded

#: Most outputs and dimensions that rows connect: the lattice is reduced within seconds there.
MOST_OUTPUTS, MOST_DIMENSIONS = 4_000, 400
#: By what share the rounded form is made smaller: of 400 dimensions it costs one draw in a hundred.
ROOM = Fraction(1, 2**14)
#: Bits of the balls that prove it.
PRECISION = 128


@dataclass(frozen=True, eq=False)
class Offers:
    """A form that is nowhere above that of the noise, and the group and 1/σ² of every output."""

    form: LatticeForm
    which: Ints
    rates: tuple[Fraction, ...]

    @classmethod
    def of(cls, problem: Problem) -> Offers | None:
        """Reduce the lattice and round its form; None where the form is too uneven, or too few draws would be kept."""
        law = problem.law
        rates = tuple(1 / Fraction(scale or 1) for scale in law.scale_values)
        which = law.complete.astype(np.int64)
        basis = problem.space.lattice_basis().toarray().astype(np.int64)
        weighed = basis * np.sqrt([float(rate) for rate in rates])[which][:, None]
        triangle = np.asarray(linalg.qr(weighed, mode="r")[0][: basis.shape[1]], dtype=np.float64)
        try:
            found = LatticeForm.whitened(basis, triangle)
            smaller = found.times(1 - ROOM)
            smaller.refuse_slow()
        except Refused:
            return None
        return cls(smaller, which, rates) if _below(found, which, rates) else None

    def draw(self, size: int, stream: Stream) -> Ints:
        noise = np.empty((size, len(self.form.basis)), dtype=np.int64)
        missing = np.arange(size)
        while missing.size:
            places = self.form.drawn_coordinates(missing.size, stream)
            vectors = places @ self.form.basis.T
            kept = self._kept(vectors, self.form.steps(places.T), stream)
            noise[missing[kept]] = vectors[kept]
            missing = missing[~kept]
        return noise

    def _kept(self, vectors: Ints, steps: Ints, stream: Stream) -> Array:
        """Toss a coin of probability e^{−(Q − R)/2} for every vector; terms are positive, so errors are relative."""
        sizes = vectors.astype(np.float64) ** 2 @ np.array([float(rate) for rate in self.rates])[self.which]
        offered = np.array([float(weight) for weight in self.form.weights]) @ (steps * 2.0**-BITS) ** 2
        margin = (vectors.shape[1] + len(steps) + 16) * 2.0**-52 * (sizes + offered)
        exponents = (sizes - offered) / 2
        values = (stream.words(len(vectors)) >> np.uint64(64 - COIN_BITS)).astype(np.int64)
        uniform = values * 2.0**-COIN_BITS
        close = 2.0**-40
        kept = uniform + 2.0**-COIN_BITS <= np.exp(-np.maximum(exponents + margin, 0.0)) * (1 - close)
        open_coins = ~kept & (uniform < np.exp(np.minimum(margin - exponents, 0.0)) * (1 + close))
        for row in np.flatnonzero(open_coins):
            kept[row] = coin(self._exponent(vectors[row], steps[:, row]), int(values[row]), COIN_BITS, stream)
        return np.asarray(kept)

    def _exponent(self, vector: Ints, steps: Ints) -> Fraction:
        """(Q − R)/2, exactly."""
        squares = zip(self.which.tolist(), vector.tolist(), strict=True)
        return (sum((self.rates[k] * u * u for k, u in squares), Fraction(0)) - self.form.settled(steps)) / 2


def _below(form: LatticeForm, which: Ints, rates: tuple[Fraction, ...]) -> bool:
    """Whether (1 − ROOM)·|V k|²_D ≤ Q(B k) for all k: V⁻ᵀ G V⁻¹, scaled by D, is I up to ROOM in its largest row."""
    size = form.dimension
    with working_precision(PRECISION):
        gram = arb_mat(size, size)
        for k, rate in enumerate(rates):
            own = form.basis[which == k]
            if int(np.abs(own).sum(axis=0).max(initial=0)) * int(np.abs(own).max(initial=0)) >= 2**62:
                return False
            gram += arb_mat([[int(x) for x in row] for row in (own.T @ own).tolist()]) * ball(rate)
        unit = [[arb(int(x)) * arb(2) ** -BITS for x in row] for row in form.upper.tolist()]
        roots = [1 / ball(weight).sqrt() for weight in form.weights]
        for i in range(size):
            unit[i][i] = arb(1)
        scaled = arb_mat(unit).inv() * arb_mat(
            [[roots[i] if i == j else arb(0) for j in range(size)] for i in range(size)]
        )
        apart = (scaled.transpose() * gram * scaled - arb_mat(np.eye(size, dtype=int).tolist())).tolist()
        return all(sum((abs(x) for x in row), arb(0)) <= ball(ROOM) for row in apart)


@kept
def _offers(problem: Problem) -> Offers | None:
    law = problem.law
    if problem.depends_on_data or not law.integer or law.kind != "gaussian" or None in law.laws:
        return None
    if not 0 < problem.space.dimension <= MOST_DIMENSIONS or not 0 < law.n <= MOST_OUTPUTS:
        return None
    return Offers.of(problem)


def accepts(problem: Problem) -> bool:
    """Whether the noise is integer Gaussian, nothing but equalities holds, and draws are often kept."""
    return _offers(problem) is not None


def draw(problem: Problem, truth: Truth, size: int, stream: Stream) -> Array:
    del truth  # the law does not depend on it
    offers = _offers(problem)
    assert offers is not None
    return offers.draw(size, stream)


def spread(problem: Problem) -> Spread:
    """Standard errors of the form, which those of the law do not exceed; quantiles from simulated draws."""
    offers = _offers(problem)
    assert offers is not None
    factor: Floats = offers.form.factor
    return Spread(
        np.sqrt((factor**2).sum(axis=1)),
        lambda weights: float(((weights @ factor) ** 2).sum()),
        simulated_quantiles(lambda: offers.draw(FEWEST, seeded(0))),
        measured=True,
    )
