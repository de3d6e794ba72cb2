"""Integer noise given any equalities, cell after cell, and within bounds by drawing again.

Equalities that can be solved in whole numbers leave free cells, which are drawn in turn: each is a whole number with
the law it would have, given those before, if the rest were normal (`in_turn_steps.py`). For Gaussian noise the ratio of
the law to these offers is bounded, with all but a little of the bound reached, and rejection draws the law itself: this
is proved. Laplace noise is Gaussian with a random variance for each cell; offers of variances and cells together are
made to a chain, whose variances are drawn anew in every step. How long it must run is measured by L-lag couplings
(`noise/convergence.py`) before any data is seen; two copies meet as soon as both accept one offer
(docs/theory/walks.md). With bounds and other inequalities, noise that breaks one is drawn again: the run length stays
public, and a table that leaves too little room is refused; where the held figures leave none enough, at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Refused
from holdfast.conditioning.corners import roomy_table
from holdfast.conditioning.crossed import crossed_table
from holdfast.conditioning.evidence import NEAR_WORDS, Evidence, refuse_rounding
from holdfast.conditioning.in_turn_steps import (
    WORDS,
    Floats,
    Ints,
    Plan,
    log_total,
    offer,
    prepare,
    room_for,
    weigh_mixture,
)
from holdfast.conditioning.problem import Problem, Truth
from holdfast.conditioning.threads import in_threads
from holdfast.constraints.elimination import eliminate
from holdfast.constraints.lattice import rational_basis
from holdfast.noise.convergence import advanced, meeting_times, needed_steps, run_length
from holdfast.noise.spread import Spread, simulated_spread
from holdfast.randomness import Stream, seeded

#: Most outputs, and most operations for the variances of one offer.
MOST_OUTPUTS, MOST_WORK = 2_000, 3e7
#: Largest coefficient with which a free cell enters a solved one.
LARGEST_COEFFICIENT = 2**20
#: Widest noise, as a standard deviation: sums of cells stay exact in doubles, and remainders even.
WIDEST = 2.0**16
#: Fewest dimensions at which bounds are kept by drawing again, draws for each table, and chains that run at once.
FEWEST_BOUNDED, MOST_AGAIN, AT_ONCE = 13, 200, 32
#: Least share of offers within the bounds of the roomiest table with the held figures, and how many are looked at.
LEAST_WITHIN, OFFERS = 0.01, 1_024
#: Largest rate 1/λ of Laplace noise: where noise is narrower, some states are hardly ever left.
LARGEST_RATE = 0.8
#: Least share of offers that are accepted, and how many offers it is measured on: so many chains, so many steps.
LEAST_SHARE, TRIED, TRIED_STEPS = 0.05, 32, 8
#: What is added to the log of the bound on weights, so that rounding never makes an offer weigh more.
SLACK = 1e-6
#: Offers after which a draw is given up; at LEAST_SHARE one in e^500 draws needs more.
MOST_ROUNDS = 10_000
#: Fewest steps of any chain, whatever was measured, and how many times longer a chain runs than any pair was apart.
FEWEST_STEPS, LONGER = 20, 3
#: Steps that a tau must leave room for the rounding of.
USUAL_STEPS = 150
#: Steps after which coupled chains are given up.
MOST_STEPS = 2_000
#: Chains whose states errors are measured on.
WALKS = 200
#: Least variance of a cell: a narrower one is 0 with it, too.
NARROWEST = 1e-6
#: Typical variance of independent noise below which cells are drawn in an order of their own for every offer.
NARROW = 6.0
#: Rounds in which typical variances and the share of each that the equalities take are made to agree.
ROUNDS = 5
#: Numbers made at once.
BATCH = 1 << 20
#: Seed of the measurements: they are public and can be repeated.
SEED = 8

AGAIN_WORDS = "; noise that breaks a bound is drawn again, {most} times at most, which is paid for in this distance"
TOO_RARE = "noise on this table is too rarely within its bounds: use onto(), less noise or fewer bounds"

#: Numbers of steps that were measured before: problems of one law and one set of equalities share theirs.
MEASURED: dict[Any, int] = {}

ROUNDED_WORDS = (
    "the draws are made in doubles: their distance from the law is bounded by the number of operations, and this "
    "delta pays for it"
)


@dataclass(frozen=True, eq=False)
class Layout:
    """Outputs in the order of the compiled offers: free cells, the last one drawn first, and then the solved ones.

    A solved cell is the sum of the free ones times their column of `combination`, (free, solved). Outputs that are not
    listed have no noise.
    """

    cells: Ints
    combination: Floats

    @classmethod
    def of(cls, problem: Problem) -> Layout | None:
        """Solve the equalities in whole numbers; None where pivots of ±1 do not do it."""
        found = eliminate(problem.space.rows)
        if found.units < found.rank:
            return None
        basis = rational_basis(found).toarray()
        if np.abs(basis).max(initial=0) > LARGEST_COEFFICIENT:
            return None
        free = found.free()
        solved = np.setdiff1d(np.flatnonzero((basis != 0).any(axis=1)), free)
        combination = np.ascontiguousarray(basis[solved].T, dtype=np.float64)
        typical, plan = problem.law.variances, room_for(combination)
        prepare(combination, typical[free], typical[solved], True, plan)
        return cls(np.concatenate([free[plan.order], solved]), np.ascontiguousarray(combination[plan.order]))

    @property
    def free(self) -> int:
        """The number of free cells."""
        return len(self.combination)

    def words(self, count: int, stream: Stream) -> npt.NDArray[np.uint64]:
        """Random words for so many offers."""
        return stream.words(count * self.free * WORDS).reshape(count, self.free, WORDS)

    def noise(self, states: npt.NDArray[Any], n: int) -> Ints:
        """States in the order of the outputs."""
        result = np.zeros((len(states), n), dtype=np.int64)
        result[:, self.cells] = states
        return result


def _parts(count: int, each: int) -> list[slice]:
    step = max(1, BATCH // each)
    return [slice(start, min(start + step, count)) for start in range(0, count, step)]


# --- Gaussian noise: rejection -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Rejection:
    """Offers of Gaussian noise, and the log of the largest ratio of their weight to their probability."""

    layout: Layout
    plan: Plan
    halves: Floats
    limit: float

    @classmethod
    def of(cls, layout: Layout, variances: Floats) -> Rejection:
        """Prepare the one law of all offers; each sum over whole numbers is largest where its centre is whole."""
        plan = room_for(layout.combination)
        prepare(layout.combination, variances[: layout.free], variances[layout.free :], False, plan)
        limit = sum(log_total(0.0, width) for width in plan.variances.tolist()) + SLACK
        return cls(layout, plan, 1 / (2 * variances), limit)

    def tried(self, count: int, stream: Stream) -> tuple[Floats, Floats]:
        """So many offers, and the log of the probability with which each is accepted."""
        states, log_weights = np.empty((count, self.halves.size)), np.empty(count)
        words, layout = self.layout.words(count, stream), self.layout

        def work(part: slice) -> None:
            offer(layout.combination, self.plan, self.halves, words[part], states[part], log_weights[part])

        in_threads(work, count, 64)
        if (log_weights > self.limit).any():
            raise Refused("drawing this noise was stopped by rounding: use onto(), or more noise")
        return states, log_weights - self.limit

    def share(self) -> float:
        """About the share of offers that are accepted; it is public."""
        return float(np.exp(self.tried(TRIED * TRIED_STEPS, seeded(SEED))[1]).mean())

    def draw(self, size: int, stream: Stream) -> Floats:
        """Draw so many states."""
        result = np.empty((size, self.halves.size))
        for part in _parts(size, result.shape[1]):
            missing = np.arange(part.start, part.stop)
            for _ in range(MOST_ROUNDS):
                states, log_chances = self.tried(missing.size, stream)
                taken = np.log(stream.uniforms(missing.size)) < log_chances
                result[missing[taken]] = states[taken]
                missing = missing[~taken]
                if not missing.size:
                    break
            else:
                raise Refused("drawing this noise did not end: use onto(), or more noise")
        return result


# --- Laplace noise: a chain --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class MixtureChain:
    """States are the cells of noise; each step draws variances anew and then offers a whole state.

    `rates` are 1/λ; `typical` variances and the share of each, `held`, that the equalities take shape the variances of
    offers: those of one cell would be right if all others had their typical ones. Where noise is `narrow`, cells are
    drawn in an order that depends on the variances.
    """

    layout: Layout
    rates: Floats
    typical: Floats
    held: Floats
    narrow: bool

    @classmethod
    def of(cls, layout: Layout, rates: Floats) -> MixtureChain:
        """Find the typical variances."""
        sizes = 1 / np.sinh(rates)  # the mean of |u| for integer Laplace noise u
        alone = (1 + rates * sizes) / rates**2
        rows = np.concatenate([layout.combination, -np.eye(layout.combination.shape[1])]).T
        typical, held = alone, np.zeros(rates.size)
        for _ in range(ROUNDS):
            held = (rows * np.linalg.solve((rows * typical) @ rows.T, rows)).sum(axis=0) * typical
            held = held.clip(0.0, 1 - 1e-6)
            typical = alone * (1 - held / 2)
        return cls(layout, rates, typical, held, bool(alone.min() < NARROW))

    def _offered_scales(self, count: int, stream: Stream) -> Floats:
        """Variances of independent noise, each kept with a probability that falls like the tilt to the power −1/2."""
        n = self.rates.size
        result = np.empty(count * n)
        missing = np.arange(count * n)
        least, zero = 1 - self.held, np.tanh(self.rates / 2)
        while missing.size:
            place, size = missing % n, missing.size
            rates, chance = self.rates[place], zero[place]
            # All 64 bits of a word: sizes that are rare are as finely told apart as small ones.
            length = -np.log((stream.words(size).astype(np.float64) + 0.5) * 2.0**-64) / rates
            sizes = np.where(stream.uniforms(size) < chance, 0.0, 1 + np.floor(length)) * rates
            scales = _scales(sizes, stream.normals(size), stream.uniforms(size)) / rates**2
            result[missing] = scales = np.maximum(scales, NARROWEST)
            tilt = least[place] + self.held[place] * scales / self.typical[place]
            missing = missing[stream.uniforms(size) ** 2 * tilt >= least[place]]
        return result.reshape(count, n)

    def _weighed(self, states: Floats, scales: Floats, words: npt.NDArray[np.uint64] | None) -> Floats:
        """The log of the weight of states over the probability of offering them; drawn here where there are words."""
        log_weights = np.empty(len(states))
        drawn = words is not None
        given = np.zeros((1, self.layout.free, WORDS), dtype=np.uint64) if words is None else words

        def work(part: slice) -> None:
            mine = given[part] if drawn else given
            weigh_mixture(
                self.layout.combination, scales[part], self.narrow, mine, drawn, states[part], log_weights[part]
            )

        in_threads(work, len(states), 8)
        tilt = 1 - self.held + self.held * scales / self.typical
        return np.asarray(log_weights + 0.5 * np.log(tilt).sum(axis=1))

    def _offers(self, count: int, stream: Stream) -> tuple[Floats, Floats]:
        states = np.empty((count, self.rates.size))
        return states, self._weighed(states, self._offered_scales(count, stream), self.layout.words(count, stream))

    def _taken(self, copies: tuple[Floats, ...], stream: Stream) -> None:
        """Draw the variances of every state anew, and offer one state to all copies of it, with one coin."""
        for part in _parts(len(copies[0]), self.rates.size):
            shape = part.stop - part.start, self.rates.size
            normals, uniforms = stream.normals(shape[0] * shape[1]), stream.uniforms(shape[0] * shape[1])
            offers, offered = self._offers(shape[0], stream)
            coins = np.log(stream.uniforms(shape[0]))
            for states in copies:
                here = states[part]
                scales = _scales(np.abs(here) * self.rates, normals.reshape(shape), uniforms.reshape(shape))
                log_weights = self._weighed(here, np.maximum(scales / self.rates**2, NARROWEST), None)
                taken = coins < offered - log_weights
                here[taken] = offers[taken]

    def start(self, count: int, stream: Stream) -> npt.NDArray[Any]:
        """Offers, made one after the other."""
        return self._offers(count, stream)[0]

    def advance(self, states: npt.NDArray[Any], stream: Stream) -> npt.NDArray[Any]:
        """Offer a state to every chain."""
        self._taken((states,), stream)
        return states

    def advance_coupled(
        self, ahead: npt.NDArray[Any], behind: npt.NDArray[Any], stream: Stream
    ) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Offer the same state to both chains of a pair, with the same coin."""
        self._taken((ahead, behind), stream)
        return ahead, behind

    def share(self) -> float:
        """About the share of offers that are accepted after a few steps; it is public."""
        stream = seeded(SEED)
        states = advanced(self, self.start(TRIED, stream), TRIED_STEPS, stream)
        changed = 0.0
        for _ in range(TRIED_STEPS):
            before = states.copy()
            states = self.advance(states, stream)
            changed += float((states != before).any(axis=1).mean()) / TRIED_STEPS
        return changed


def _scales(sizes: Floats, normals: Floats, coins: Floats) -> Floats:
    """Variances of normal noise, given its sizes, that make it Laplace noise of scale 1 (see gibbs_steps.py)."""
    half = 0.5 * normals**2
    larger = sizes + half + np.sqrt(2 * sizes * half + half**2)
    return np.where(coins * (larger + sizes) < larger, larger, sizes**2 / np.maximum(larger, 1e-300))


# --- the way -----------------------------------------------------------------------------------------------------


def _found(problem: Problem) -> Rejection | MixtureChain | None:
    kept: dict[str, Any] = problem.__dict__
    if "_in_turn" not in kept:
        kept["_in_turn"] = _made(problem)
    found: Rejection | MixtureChain | None = kept["_in_turn"]
    return found


def _made(problem: Problem) -> Rejection | MixtureChain | None:
    law, system = problem.law, problem.system
    if not law.integer or system.branches or None in law.laws or law.n > MOST_OUTPUTS:
        return None
    space = problem.space
    if problem.depends_on_data and (space.dimension < FEWEST_BOUNDED or crossed_table(system) is not None):
        return None
    small = space.rank > 0 and space.dimension > 0 and space.dimension * space.rank**2 <= MOST_WORK
    if not small or float(np.sqrt(law.variances.max())) > WIDEST:
        return None
    layout = Layout.of(problem)
    if layout is None:
        return None
    scales = np.array([float(scale or 1) for scale in law.scale_values])
    each = scales[np.zeros(law.n, dtype=np.int64) if law.which is None else law.which][layout.cells]
    if law.kind == "laplace" and 1 / each.min() > LARGEST_RATE:
        return None
    made = Rejection.of(layout, each) if law.kind == "gaussian" else MixtureChain.of(layout, 1 / each)
    return made if made.share() >= LEAST_SHARE else None


def accepts(problem: Problem) -> bool:
    """Whether equalities are solved in whole numbers and offers often accepted; bounds only with many dimensions."""
    return _found(problem) is not None


def evidence(problem: Problem) -> Evidence:
    """Gaussian noise: the proved bound on rounding. Laplace noise: what the couplings are asked for."""
    again = AGAIN_WORDS.format(most=MOST_AGAIN) if problem.depends_on_data else ""
    if problem.law.kind == "laplace":
        return Evidence(problem.tau, False, NEAR_WORDS.format(tau=problem.tau) + again)
    return Evidence(_tries(problem) * _rounding(problem), True, ROUNDED_WORDS + again)


def least_tau(problem: Problem) -> float:
    """What rounding allows in a usual number of steps, twice; the distance of Gaussian noise is proved in any case."""
    if problem.law.kind == "gaussian":
        return 0.0
    return 2 * USUAL_STEPS * _tries(problem) * _rounding(problem)


def _tries(problem: Problem) -> int:
    """How often noise is drawn for one table, at most: the distance adds up over these draws."""
    return MOST_AGAIN if problem.depends_on_data else 1


def _rounding(problem: Problem) -> float:
    """What rounding adds to the distance in one offer or one step of a chain, at most (docs/theory/walks.md)."""
    n, widest = problem.law.n, float(np.sqrt(problem.law.variances.max()))
    offered = n * (2.0**-45 + widest * 2.0**-54)
    return 2 * offered + n * widest * 2.0**-52 if problem.law.kind == "laplace" else offered


def _drawn(problem: Problem, size: int, stream: Stream) -> Ints:
    found = _found(problem)
    assert found is not None
    if isinstance(found, Rejection):
        return found.layout.noise(found.draw(size, stream), problem.law.n)
    steps = _steps(problem, found)
    return found.layout.noise(advanced(found, found.start(size, stream), steps, stream), problem.law.n)


def draw(problem: Problem, truth: Truth, size: int, stream: Stream) -> npt.NDArray[Any]:
    """Draw noise such that truth + noise satisfies the system, (size, n)."""
    if not problem.depends_on_data:
        return _drawn(problem, size, stream)
    table = np.asarray(truth, dtype=np.int64)
    _refuse_without_room(problem, table)
    noise = np.empty((size, problem.law.n), dtype=np.int64)
    missing, tries = np.arange(size), 0
    while missing.size:
        each = min(MOST_AGAIN - tries, -(-AT_ONCE // missing.size))
        if each == 0:
            raise Refused(TOO_RARE)
        found = _drawn(problem, missing.size * each, stream)
        inside = _within(problem, table, found).reshape(missing.size, each)
        first, good = inside.argmax(axis=1), inside.any(axis=1)
        noise[missing[good]] = found.reshape(missing.size, each, -1)[good, first[good]]
        missing, tries = missing[~good], tries + each
    return noise


def _refuse_without_room(problem: Problem, table: Ints) -> None:
    """Refuse where even the roomiest table with the held figures is too rarely within bounds; this is public."""
    rooms: dict[bytes, bool] = problem.__dict__.setdefault("_rooms", {})
    held = (problem.space.rows @ table).tobytes()
    if held not in rooms:
        found, roomy, stream = _found(problem), roomy_table(problem, table), seeded(SEED)
        assert found is not None
        states = found.draw(OFFERS, stream) if isinstance(found, Rejection) else found.start(OFFERS, stream)
        noise = found.layout.noise(states, problem.law.n)
        rooms[held] = roomy is None or bool(_within(problem, roomy, noise, SLACK).mean() >= LEAST_WITHIN)
    if not rooms[held]:
        raise Refused(TOO_RARE)


def _within(problem: Problem, table: npt.NDArray[Any], noise: Ints, slack: float = 0) -> npt.NDArray[np.bool_]:
    """Which rows of noise leave the table within all bounds and inequalities; the equalities hold by themselves."""
    low, high = problem.system.integer_bounds(problem.unit)
    values, rows = table + noise, problem.system.inequalities
    inside = ((values + slack >= low) & (values - slack <= high)).all(axis=1)
    limits = np.array([math.ceil(limit / problem.unit) for limit in rows.b.tolist()], dtype=np.int64)
    return np.asarray(inside & (rows.A @ values.T - limits[:, None] >= -slack).all(axis=0))


def spread(problem: Problem) -> Spread | None:
    """Measured on simulated draws: of Gaussian noise, or states of long chains; None where data matter."""
    if problem.depends_on_data:
        return None
    found = _found(problem)
    assert found is not None
    chain = found

    def states(size: int) -> npt.NDArray[Any]:
        stream = seeded(SEED)
        if isinstance(chain, Rejection):
            return chain.layout.noise(chain.draw(size, stream), problem.law.n)
        running = advanced(chain, chain.start(WALKS, stream), _steps(problem, chain), stream)
        kept = []
        for _ in range(-(-size // WALKS)):
            running = chain.advance(running, stream)
            kept.append(chain.layout.noise(running, problem.law.n))
        return np.concatenate(kept)[:size]

    return simulated_spread(states)


def _steps(problem: Problem, chain: MixtureChain) -> int:
    """The number of steps of the chain; it depends on public things only, and is measured once.

    A second set of pairs must bear the first one out, and none of them may have been apart for a third of the run.
    """
    tau = problem.chain_tau / _tries(problem)
    key = chain.layout.combination.shape, chain.layout.combination.tobytes(), chain.rates.tobytes(), tau
    if key not in MEASURED:
        stream = seeded(SEED)
        found = run_length(chain, tau, stream, most=MOST_STEPS)
        times = meeting_times(chain, found.lag, found.pairs, stream, MOST_STEPS)
        again, longest = needed_steps(times, found.lag, tau), int(times.max()) - found.lag
        steps = max(FEWEST_STEPS, found.steps, again, LONGER * longest)
        refuse_rounding(problem.tau, _tries(problem) * _rounding(problem), steps)
        MEASURED[key] = steps
    return MEASURED[key]
