"""Narrow integer noise in few dimensions: list all that is not too unlikely, and draw from the list exactly.

The whole vectors z of the null space have weights e^{−q(z)}, q(z) = Σ|z_i|/λ_i or Σz_i²/2σ_i². All with q(z) within a
radius are listed; what lies beyond weighs at most tau, by a proved bound (docs/theory/walks.md). No noise at all weighs
1 and is always allowed. So the law cut to the list is within tau of the law itself, and stays so within bounds and
other inequalities, whatever the table. The list is public; what a table leaves of it is looked up when it is there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Array, Bools, Floats, Ints, Shared, kept
from holdfast.evidence import Evidence
from holdfast.given.near.listed.search import Search, cell_shares, log_most, needed_radius, room
from holdfast.given.near.listed.steps import Short
from holdfast.given.problem import Problem, Truth
from holdfast.noise import Independent
from holdfast.noise.draws.comparison import Comparison
from holdfast.noise.draws.finite import FiniteLaw
from holdfast.noise.spread import Spread, simulated_spread
from holdfast.randomness import Stream, seeded

#: Most outputs and dimensions, and the largest entry of a lattice basis.
MOST_OUTPUTS, MOST_DIMENSIONS, LARGEST_ENTRY = 400, 20, 2**20
#: A bound on the number of vectors beyond which no search is begun, and one for the distance that is tried first.
MOST_HOPED, FEW_HOPED = 1e9, 1e7
#: Most different weights.
MOST_SHELLS = 20_000
#: The distance that is tried first: it costs next to nothing.
TINY = 1e-12
#: Rows of a list looked at together.
ROWS = 1 << 16
#: Seed of what is simulated before data is seen.
SEED = 9

#: Lists that were made before, and how many of these are kept: problems of one law and one lattice share theirs.
MOST_LISTS = 4
LISTS = Shared(MOST_LISTS)

WORDS = (
    "noise is drawn exactly from a list of all that is not too unlikely: what is left out weighs no more than this "
    "distance, which is proved, and this delta pays for it"
)


@dataclass(frozen=True, eq=False)
class List:
    """All noise within a radius, by its coordinates in a lattice basis, the likeliest first; `starts` of each shell."""

    basis: Ints
    steps: Short
    exponents: list[Fraction]
    starts: Ints
    distance: float

    def noise(self, chosen: Any) -> Ints:
        """The noise at these places in the list."""
        return np.asarray(self.steps[chosen].astype(np.int64) @ self.basis.T)

    def draw(self, size: int, stream: Stream, allowed: Bools | None = None) -> Ints:
        """Draw so many from those that are allowed: first the shell, then one of its vectors, all alike."""
        if allowed is None:
            places, counts = None, np.diff(self.starts)
        else:
            places = np.flatnonzero(allowed)
            counts = np.diff(np.searchsorted(places, self.starts))
        filled = np.flatnonzero(counts)
        shells = FiniteLaw([self.exponents[k] for k in filled.tolist()], counts[filled].tolist())
        which = Comparison.of(shells).draw(size, stream)
        starts = np.concatenate([[0], np.cumsum(counts[filled])])
        chosen = starts[which] + _below(counts[filled][which], stream)
        return self.noise(chosen if places is None else places[chosen])


def _below(limits: Ints, stream: Stream) -> Ints:
    """A whole number from 0 to below each limit, all alike: words beyond a multiple of the limit are drawn again."""
    bounds, result = limits.astype(np.uint64), np.empty(limits.size, dtype=np.int64)
    missing = np.arange(limits.size)
    while missing.size:
        words, bound = stream.words(missing.size), bounds[missing]
        good = words - words % bound <= np.uint64(2**64 - 1) - (bound - np.uint64(1))
        result[missing[good]] = (words % bound)[good]
        missing = missing[~good]
    return result


def _shells(law: Independent, basis: Ints, steps: Short, distance: float) -> List | None:
    """Sort what was found by weight; None where there are too many different ones."""
    laplace = law.kind == "laplace"
    rates = [Fraction(1, 1 if laplace else 2) / Fraction(scale or 1) for scale in law.scale_values]
    shell, exponents = np.zeros(len(steps), dtype=np.int64), [Fraction(0)]
    for k, rate in enumerate(rates):
        cells = basis[law.complete == k].T
        sizes = np.empty(len(steps), dtype=np.int64)
        for part in _parts(len(steps)):
            noise = steps[part].astype(np.int64) @ cells
            sizes[part] = (np.abs(noise) if laplace else noise**2).sum(axis=1)
        most = int(sizes.max()) + 1
        kinds, shell = np.unique(shell * most + sizes, return_inverse=True)
        if len(kinds) > MOST_SHELLS:
            return None
        exponents = [exponents[kind // most] + rate * (kind % most) for kind in kinds.tolist()]
    order = np.array(sorted(range(len(exponents)), key=exponents.__getitem__))
    shell = np.argsort(order)[shell]
    starts = np.concatenate([[0], np.cumsum(np.bincount(shell, minlength=order.size))])
    by_weight = steps[np.argsort(shell, kind="stable")]
    return List(basis, by_weight, [exponents[k] for k in order.tolist()], starts, distance)


def _parts(count: int) -> list[slice]:
    return [slice(start, min(start + ROWS, count)) for start in range(0, count, ROWS)]


# --- the way -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Aim:
    """What is to be listed: a lattice, weights, and a radius with the distance that it leaves.

    `fits` says that the list is certain to be short enough; then it is made when it is needed.
    """

    law: Independent
    basis: Ints
    rates: Floats
    radius: float
    distance: float
    fits: bool

    def listed(self) -> List | None:
        """The list; None where it does not fit."""
        law = self.law
        key = law.kind, tuple(law.scale_values), law.complete.tobytes(), self.basis.tobytes(), self.distance
        return LISTS.get(key, self._made)

    def _made(self) -> List | None:
        search = Search.of(self.basis, self.rates)
        steps = None if search is None else search.within(self.law.kind == "gaussian", self.radius)
        return None if steps is None else _shells(self.law, self.basis, steps, self.distance)


@kept
def _aim(problem: Problem) -> Aim | None:
    """The first aim whose list fits."""
    law = problem.law
    if not law.integer or problem.system.branches or None in law.laws or law.n > MOST_OUTPUTS:
        return None
    if not 0 < problem.space.dimension <= MOST_DIMENSIONS:
        return None
    basis = np.ascontiguousarray(problem.space.lattice_basis().toarray()[:, ::-1], dtype=np.int64)
    if np.abs(basis).max() > LARGEST_ENTRY:
        return None
    gaussian = law.kind == "gaussian"
    each = law.of_output([float(scale or 1) for scale in law.scale_values])
    rates = 1 / (2 * each) if gaussian else 1 / each
    shares = cell_shares(basis, 1 / rates)
    if shares is None:
        return None
    for distance in sorted({min(TINY, problem.tau), problem.tau}):
        radius = needed_radius(gaussian, rates, shares, distance)
        most = math.exp(min(log_most(gaussian, rates, shares, radius), 700.0))
        aim = Aim(law, basis, rates, radius, distance, len(law.laws) == 1 and most < room(basis.shape[1]))
        if aim.fits or (most < (MOST_HOPED if distance == problem.tau else FEW_HOPED) and aim.listed() is not None):
            return aim
    return None


def accepts(problem: Problem) -> bool:
    """Whether integer noise has few dimensions and is so narrow that a list holds all that is not too unlikely."""
    return _aim(problem) is not None


def evidence(problem: Problem) -> Evidence:
    """The proved bound on what is not listed."""
    aim = _aim(problem)
    assert aim is not None
    return Evidence(aim.distance, True, WORDS)


def least_tau(problem: Problem) -> float:
    """Draws from the list are exact: there is no rounding."""
    del problem
    return 0.0


def _list(problem: Problem) -> List:
    aim = _aim(problem)
    found = None if aim is None else aim.listed()
    if found is None:
        raise Refused("noise could not be listed in time here: ask for method='walk', or use onto()")
    return found


def draw(problem: Problem, truth: Truth, size: int, stream: Stream) -> Array:
    """Draw noise such that truth + noise satisfies the system, (size, n)."""
    found = _list(problem)
    if not problem.depends_on_data:
        return found.draw(size, stream)
    table = np.asarray(truth, dtype=np.int64)
    allowed = np.empty(len(found.steps), dtype=bool)
    for part in _parts(allowed.size):
        allowed[part] = problem.system.holds(table + found.noise(part), problem.unit)
    return found.draw(size, stream, allowed)


def spread(problem: Problem) -> Spread | None:
    """Measured on simulated draws; None where data matter."""
    if problem.depends_on_data:
        return None
    return simulated_spread(lambda size: draw(problem, None, size, seeded(SEED)))
