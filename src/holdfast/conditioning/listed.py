"""Narrow integer noise in few dimensions: list all that is not too unlikely, and draw from the list exactly.

The whole vectors z of the null space have weights e^{−q(z)}, q(z) = Σ|z_i|/λ_i or Σz_i²/2σ_i². All with q(z) within a
radius are listed; what lies beyond weighs at most tau, by a proved bound (docs/theory/walks.md). No noise at all weighs
1 and is always allowed. So the law cut to the list is within tau of the law itself, and stays so within bounds and
other inequalities, whatever the table. The list is public; what a table leaves of it is looked up when it is there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import highspy
import numpy as np
import numpy.typing as npt
from flint import arb, ctx

from holdfast.arguments import Refused
from holdfast.conditioning.evidence import Evidence
from holdfast.conditioning.listed_steps import Floats, Ints, Short, times_chosen, within_norm, within_squares
from holdfast.conditioning.problem import Problem, Truth
from holdfast.constraints.solver import quiet_solver
from holdfast.noise import Independent
from holdfast.noise.comparison import Comparison
from holdfast.noise.precision import ball
from holdfast.noise.spread import Spread, simulated_spread
from holdfast.randomness import Stream, seeded

#: Most outputs and dimensions, and the largest entry of a lattice basis.
MOST_OUTPUTS, MOST_DIMENSIONS, LARGEST_ENTRY = 400, 20, 2**20
#: Most vectors in a list, numbers that they take, and nodes of the search for them.
MOST_VECTORS, MOST_NUMBERS, MOST_VISITS = 2_000_000, 2**24, 20_000_000
#: A bound on the number of vectors beyond which no search is begun, and one for the distance that is tried first.
MOST_HOPED, FEW_HOPED = 1e9, 1e7
#: Largest coordinate of a vector.
LARGEST_STEP = 2.0**28
#: Most different weights.
MOST_SHELLS = 20_000
#: The distance that is tried first: it costs next to nothing.
TINY = 1e-12
#: Bases of the dimensions that the bound is shared out to, for each cell that one of them could do without.
SHARES = 8
#: A prime: what is independent modulo it is independent.
PRIME = 2**31 - 1
#: Linear forms per depth of the search at most, directions they are looked for in, and how much one must gain.
MOST_FORMS, DIRECTIONS, GAIN = 48, 80, 1.05
#: By what share the radius is enlarged, so that rounding never makes it too small.
SLACK = 1e-9
#: Rows of a list looked at together.
ROWS = 1 << 16
#: Seed of what is simulated before data is seen.
SEED = 9

#: Lists that were made before, and how many of these are kept: problems of one law and one lattice share theirs.
LISTS: dict[Any, List | None] = {}
MOST_LISTS = 4

WORDS = (
    "noise is drawn exactly from a list of all that is not too unlikely: what is left out weighs no more than this "
    "distance, which is proved, and this delta pays for it"
)


# --- how far the list must reach ---------------------------------------------------------------------------------


def cell_shares(basis: Ints, widths: Floats) -> Floats | None:
    """How often each output is among d independent ones, over many such choices, each of outputs seldom chosen before.

    Any two vectors of the lattice differ at such a choice of outputs. None where too few were found independent.
    """
    n, dimension = basis.shape
    count = SHARES * -(-n // dimension)
    times = times_chosen(basis % PRIME, widths, count, PRIME)
    return times / count if times.sum() == count * dimension else None


def log_sums(gaussian: bool, rates: Floats, shares: Floats, parts: Floats) -> Floats:
    """Bounds on the log of Σ_z e^{−s·q(z)} for each s in parts: Σ_i x_i log Σ_u e^{−s·q_i(u)/x_i}, x the shares."""
    used = shares > 0
    slopes = parts[:, None] * rates[used] / shares[used]
    if gaussian:
        # Σ_u e^{−au²} ≤ 1 + 2e^{−a} + ∫_1^∞ 2e^{−au²} du, and ≤ 1 + √(π/a).
        with np.errstate(over="ignore"):
            near = 1 + 2 * np.exp(-slopes) * (1 + 1 / (2 * slopes))
        logs = np.log(np.minimum(near, 1 + np.sqrt(np.pi / slopes)))
    else:
        logs = -np.log(np.tanh(slopes / 2))
    return np.asarray(logs @ shares[used])


def needed_radius(gaussian: bool, rates: Floats, shares: Floats, tau: float) -> float:
    """A radius beyond which all weights together are at most tau: they are ≤ e^{−(1−s)·radius}·Σ_z e^{−s·q(z)}."""
    parts = np.arange(1, 100) / 100
    radii = (log_sums(gaussian, rates, shares, parts) - math.log(tau)) / (1 - parts)
    return float(radii.min()) * (1 + SLACK) + SLACK


def log_most(gaussian: bool, rates: Floats, shares: Floats, radius: float) -> float:
    """A bound on the log of the number of vectors within a radius: at most e^{s·radius}·Σ_z e^{−s·q(z)}."""
    parts = np.geomspace(1e-3, 10, 200)
    return float((log_sums(gaussian, rates, shares, parts) + parts * radius).min())


# --- the search --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Search:
    """A lattice basis, and a bound on its coordinates: |t_j| ≤ reach·Σ|z_i| for z = basis·t."""

    basis: Ints
    rates: Floats
    reach: float

    @classmethod
    def of(cls, basis: Ints, rates: Floats) -> Search | None:
        """Invert the basis; None where that is not certain in doubles."""
        inverse = np.linalg.pinv(basis.astype(np.float64))
        if np.abs(inverse @ basis - np.eye(basis.shape[1])).sum(axis=1).max() > 1e-6:
            return None
        return cls(basis, rates, 2 * float(np.abs(inverse).max()))

    def within(self, gaussian: bool, radius: float) -> Short | None:
        """The coordinates of all vectors within a radius; None where there are too many."""
        largest = math.sqrt(radius / self.rates.min()) if gaussian else radius / self.rates.min()
        most_steps = self.reach * self.basis.shape[0] * largest
        if most_steps > LARGEST_STEP:
            return None
        dimension = self.basis.shape[1]
        found = np.empty((_room(dimension), dimension), dtype=np.int32)
        if gaussian:
            factor, error = self._factor()
            count = within_squares(factor, radius + error * most_steps**2 + SLACK, found, MOST_VISITS)
        else:
            cuts, limits = np.zeros((dimension, MOST_FORMS, dimension)), np.full((dimension, MOST_FORMS), radius)
            for depth in range(dimension):
                forms, errors = self.linear_forms(depth)
                cuts[depth, : len(forms), : depth + 1] = forms
                limits[depth, : len(forms)] = radius * (1 + SLACK) + errors * most_steps
            count = within_norm(self.basis, self.rates, radius, cuts, limits, found, MOST_VISITS)
        return None if count < 0 else found[:count].copy()

    def linear_forms(self, depth: int) -> tuple[Floats, Floats]:
        """Forms y of the coordinates up to a depth with y·t ≤ Σ rates·|z|, and what each may see of a later coordinate.

        A form is that of weights w with |w_i| ≤ rates_i whose sum Σ w_i z_i does not depend on the later coordinates,
        up to rounding; a linear program finds the largest in a direction.
        """
        known, later = self.basis[:, : depth + 1].astype(np.float64), self.basis[:, depth + 1 :].astype(np.float64)
        directions = seeded(depth).normals(DIRECTIONS * (depth + 1)).reshape(DIRECTIONS, depth + 1)
        directions /= (self.rates[:, None] * np.abs(known)).sum(axis=0)
        directions[0, :depth] = 0.0  # bounds the last coordinate whatever the others are
        solver = _program(later, self.rates)
        forms, errors = np.zeros((0, depth + 1)), []
        for direction in directions:
            solver.changeColsCost(len(known), np.arange(len(known), dtype=np.int32), known @ direction)
            solver.run()
            weights = np.clip(np.array(solver.getSolution().col_value), -self.rates, self.rates)
            form = weights @ known
            if form @ direction > GAIN * np.abs(forms @ direction).max(initial=0.0):
                forms = np.vstack([forms, form])
                errors.append(float(np.abs(weights @ later).sum()))
            if len(forms) == MOST_FORMS:
                break
        return forms, np.array(errors)

    def _factor(self) -> tuple[Floats, float]:
        """A lower triangular F with |F t|² = Σ rates·z², and how far off a product of two coordinates may be in it."""
        scaled = self.basis * np.sqrt(self.rates)[:, None]
        upper: Floats = np.linalg.qr(scaled[:, ::-1])[1]
        factor = np.ascontiguousarray(upper[::-1, ::-1])
        squares = scaled.T @ scaled
        error = np.abs(factor.T @ factor - squares) + 1e-15 * len(scaled) * np.sqrt(np.outer(*[squares.diagonal()] * 2))
        return factor, 2 * float(error.sum())


def _room(dimension: int) -> int:
    """How many vectors a list may hold."""
    return min(MOST_VECTORS, MOST_NUMBERS // dimension)


def _program(later: Floats, rates: Floats) -> Any:
    """The largest Σ c_i w_i over |w_i| ≤ rates_i with later·w = 0, for costs c still to be set."""
    solver = quiet_solver(presolve="off")
    n = len(rates)
    solver.addVars(n, -rates, rates)
    for column in later.T:
        filled = np.flatnonzero(column)
        solver.addRow(0.0, 0.0, filled.size, filled.astype(np.int32), column[filled])
    solver.changeObjectiveSense(highspy.ObjSense.kMaximize)
    return solver


# --- the list ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Shells:
    """Classes of vectors of one weight e^{−exponent} each, so many in each: a law on classes, exactly."""

    exponents: list[Fraction]
    counts: list[int]
    _sums: dict[int, list[arb]] = field(default_factory=dict, repr=False)

    @property
    def size(self) -> int | None:
        """Number of classes."""
        return len(self.counts)

    def at(self, k: int) -> arb:
        """Enclose the probability of the first k classes."""
        sums = self._partial()
        return arb(0) if k == 0 else arb(1) if k == len(sums) else sums[k - 1] / sums[-1]

    def run(self) -> Iterator[arb]:
        """Enclose the cumulative probabilities in turn, without the last."""
        sums = self._partial()
        for partial in sums[:-1]:
            yield partial / sums[-1]

    def _partial(self) -> list[arb]:
        bits = int(ctx.prec)
        if bits not in self._sums:
            running, sums = arb(0), []
            for exponent, count in zip(self.exponents, self.counts, strict=True):
                running = running + count * (-ball(exponent)).exp()
                sums.append(running)
            self._sums[bits] = sums
        return self._sums[bits]


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

    def draw(self, size: int, stream: Stream, allowed: npt.NDArray[np.bool_] | None = None) -> Ints:
        """Draw so many from those that are allowed: first the shell, then one of its vectors, all alike."""
        if allowed is None:
            places, counts = None, np.diff(self.starts)
        else:
            places = np.flatnonzero(allowed)
            counts = np.diff(np.searchsorted(places, self.starts))
        filled = np.flatnonzero(counts)
        shells = Shells([self.exponents[k] for k in filled.tolist()], counts[filled].tolist())
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
    which = np.zeros(law.n, dtype=np.int64) if law.which is None else law.which
    laplace = law.kind == "laplace"
    rates = [Fraction(1, 1 if laplace else 2) / Fraction(scale or 1) for scale in law.scale_values]
    shell, exponents = np.zeros(len(steps), dtype=np.int64), [Fraction(0)]
    for k, rate in enumerate(rates):
        cells = basis[which == k].T
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
        which = b"" if law.which is None else law.which.tobytes()
        key = law.kind, tuple(law.scale_values), which, self.basis.tobytes(), self.distance
        if key in (lists := LISTS.copy()):  # another thread may clear them
            return lists[key]
        found = self._made()
        if len(LISTS) >= MOST_LISTS:
            LISTS.clear()
        LISTS[key] = found
        return found

    def _made(self) -> List | None:
        search = Search.of(self.basis, self.rates)
        steps = None if search is None else search.within(self.law.kind == "gaussian", self.radius)
        return None if steps is None else _shells(self.law, self.basis, steps, self.distance)


def _aim(problem: Problem) -> Aim | None:
    kept: dict[str, Any] = problem.__dict__
    if "_aim" not in kept:
        kept["_aim"] = _found(problem)
    found: Aim | None = kept["_aim"]
    return found


def _found(problem: Problem) -> Aim | None:
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
    scales = np.array([float(scale or 1) for scale in law.scale_values])
    each = scales[np.zeros(law.n, dtype=np.int64) if law.which is None else law.which]
    rates = 1 / (2 * each) if gaussian else 1 / each
    shares = cell_shares(basis, 1 / rates)
    if shares is None:
        return None
    for distance in sorted({min(TINY, problem.tau), problem.tau}):
        radius = needed_radius(gaussian, rates, shares, distance)
        most = math.exp(min(log_most(gaussian, rates, shares, radius), 700.0))
        aim = Aim(law, basis, rates, radius, distance, len(scales) == 1 and most < _room(basis.shape[1]))
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


def draw(problem: Problem, truth: Truth, size: int, stream: Stream) -> npt.NDArray[Any]:
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
