"""A gallery of broken mechanisms, each of which promises less loss than it has: faults that were made, and seen.

An auditor that does not catch them is not worth its time. `holdfast.audit.gallery` has them by name; each is made by a
call, `holdfast.audit.gallery["noise_reused"]().audited(seconds=20)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.auditing.auditor import Audit, audit
from holdfast.constraints import System, between, consistent, invariant, nonnegative
from holdfast.domains import Hierarchy
from holdfast.mechanism import gaussian, laplace
from holdfast.privacy import Guarantee, classical_sigma
from holdfast.queries import Neighbours, Query, counts, histogram, workload
from holdfast.randomness import Stream

Values = npt.NDArray[Any]
Draws = Callable[[Values, int, np.random.Generator], Values]

CHAIN = Hierarchy.from_parents([-1, 0])
FORK = Hierarchy.from_parents([-1, 0, 0, 0])


def claim(epsilon: float = 1.0, delta: float = 0.0, neighbours: Any = "add-remove", **more: Any) -> Guarantee:
    return Guarantee(epsilon=epsilon, delta=delta, neighbours=neighbours, because="somebody said so", **more)


@dataclass(frozen=True, eq=False)
class Own:
    """A researcher's mechanism: a way to draw, a query and a claim; what holds for its data, where something does."""

    draws: Draws
    query: Query
    guarantee: Guarantee
    held: System | None = None

    def simulate(self, truth: Any, size: int, rng: Stream) -> Values:
        return self.draws(np.asarray(truth), size, np.random.default_rng(rng.words(4).tolist()))


@dataclass(frozen=True, eq=False)
class Broken:
    """A mechanism, a claim about it that is false, and the pairs that show it where none are searched for."""

    mechanism: Any
    guarantee: Guarantee
    pairs: Any = None

    @classmethod
    def of(cls, draws: Draws, query: Query, guarantee: Guarantee, held: System | None = None) -> Broken:
        return cls(Own(draws, query, guarantee, held), guarantee)

    def audited(self, seconds: float = 60) -> Audit:
        return audit(self.mechanism, self.pairs, seconds, guarantee=self.guarantee)


def geometric(rng: np.random.Generator, scale: float, shape: Any) -> Values:
    share = 1 - math.exp(-1 / scale)
    return rng.geometric(share, shape) - rng.geometric(share, shape)


def wrong_sensitivity() -> Broken:
    """A tree of two levels with the noise of one."""
    query = counts(FORK)
    return Broken.of(lambda truth, size, rng: truth + geometric(rng, 1, (size, truth.size)), query, claim())


def noise_reused() -> Broken:
    """One draw for all cells."""
    return Broken.of(lambda truth, size, rng: truth + geometric(rng, 1, (size, 1)), histogram(5), claim())


def last_cell_without_noise() -> Broken:
    """A loop that ends one too early."""

    def draws(truth: Values, size: int, rng: np.random.Generator) -> Values:
        noise = geometric(rng, 1, (size, truth.size))
        noise[:, -1] = 0
        return truth + noise

    return Broken.of(draws, histogram(4), claim())


def naive_doubles() -> Broken:
    """Laplace noise in doubles by the textbook (Mironov 2012)."""
    return Broken.of(lambda truth, size, rng: truth + rng.laplace(size=(size, truth.size)), histogram(2), claim())


def seed_in_the_code() -> Broken:
    """Every release starts from the same seed."""
    mechanism = lambda truth: truth + geometric(np.random.default_rng(7), 1, truth.shape)  # noqa: E731
    return Broken(mechanism, claim(), [([0, 0], [0, 1])])


def _small_cells(least: int) -> Broken:
    def draws(truth: Values, size: int, rng: np.random.Generator) -> Values:
        return np.where(truth < least, 0, truth + geometric(rng, 1, (size, truth.size)))

    return Broken.of(draws, histogram(4), claim())


def cells_below_three() -> Broken:
    """Cells whose true count is below 3 are published as 0, the others with noise."""
    return _small_cells(3)


def cells_below_ten() -> Broken:
    """Cells whose true count is below 10 are published as 0, the commonest rule of offices."""
    return _small_cells(10)


def windows_around_the_data() -> Broken:
    """Noise cut at a window around the truth, and called pure."""

    def draws(truth: Values, size: int, rng: np.random.Generator) -> Values:
        return truth + np.clip(geometric(rng, 2, (size, truth.size)), -6, 6)

    return Broken.of(draws, histogram(3), claim(0.5))


def price_forgotten() -> Broken:
    """Non-negativity conditioned at the price of the noise alone."""
    base = laplace(histogram(4), epsilon=1)
    return Broken(base.given(nonnegative()), base.guarantee)


def weights_of_a_union_ignored() -> Broken:
    """A union at the price of its dearer side (TV Thm 12, part 2, as printed)."""
    base = laplace(histogram(1), scale=1)
    union = base.given(between(0, 0) | between(1, 1))
    return Broken(union, claim(0.01))


def classical_at_large_epsilon() -> Broken:
    """The papers' σ where it is too small."""
    sigma = classical_sigma(1, 20, Fraction(1, 100))
    return Broken(gaussian(histogram(2), scale=sigma, integer=False), claim(20, 0.01))


def one_record_for_several() -> Broken:
    """The loss of one record printed for three."""
    base = laplace(histogram(3), epsilon=1)
    return Broken(base, replace(base.guarantee, neighbours=Neighbours("add-remove", records=3)))


def signed_leaves() -> Broken:
    """Bounds on leaves that a record can lower, at the price of a unit step."""
    query = workload([[1, -1], [1, -1]])
    base = laplace(query, scale=4, neighbours="replace-one")
    return Broken(base.given(consistent(CHAIN) & nonnegative()), claim(1.2140, neighbours="replace-one"))


def rows_nearly_parallel() -> Broken:
    """A subspace statement from a projection in doubles, which nearly parallel rows had bent: 1.2 is true."""
    rows = invariant([[1, -20000, 2], [1, -19999, 2]])
    right = laplace(histogram(3), scale=1, integer=False).given(rows)
    (statement,) = [each for each in right.guarantees if each.scope == "subspace"]
    return Broken(right, replace(statement, epsilon=1.0524))


#: All of them by name. By listing both laws: those that are a mechanism with a false claim; the others by draws.
GALLERY: dict[str, Callable[[], Broken]] = {
    made.__name__: made
    for made in (
        price_forgotten,
        weights_of_a_union_ignored,
        classical_at_large_epsilon,
        one_record_for_several,
        signed_leaves,
        rows_nearly_parallel,
        wrong_sensitivity,
        noise_reused,
        last_cell_without_noise,
        naive_doubles,
        seed_in_the_code,
        cells_below_three,
        cells_below_ten,
        windows_around_the_data,
    )
}
