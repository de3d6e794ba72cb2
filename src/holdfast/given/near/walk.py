"""Integer noise given any linear equalities and inequalities: walks along lines among the whole vectors of N.

The walk reaches every table, which is proved, and comes near the conditional law, by an estimate
(docs/theory/walks.md). Without inequalities the law of the noise is public; with them the length of walks is measured
at public tables, and the worst counts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arguments import LARGEST, Refused
from holdfast.arrays import Array, Bools, Floats, Ints
from holdfast.evidence import Evidence
from holdfast.exact.solver import linear_program, solved
from holdfast.given.near import coupled_chains as chains
from holdfast.given.near.coupled_chains import SEED, Run, measured_steps
from holdfast.given.near.two_way import crossed_table
from holdfast.given.near.walk_steps import CUT, FAR, Moves, walk, walk_coupled
from holdfast.given.problem import Problem, Truth
from holdfast.noise.convergence import PILOTS, advanced
from holdfast.noise.spread import Spread
from holdfast.randomness import Stream, seeded

#: Most outputs and dimensions: beyond, coupled walks hardly ever meet.
MOST_OUTPUTS, MOST_DIMENSIONS = 10_000, 60
#: Steps after which coupled walks are given up: by their number, and by the terms that a pilot run sums.
MOST_STEPS, MOST_TERMS = 1_000, 3e8
#: Least share of states within bounds at every public table, and walks that it is measured on.
LEAST_INSIDE, WALKS = 0.05, 200
#: Widest noise, as a standard deviation: the work for one step grows with it.
WIDEST = 2.0**12
#: Steps that a tau must leave room for the rounding of.
USUAL_STEPS = 1_000
#: How much flatter the law is from which walks start, and steps taken there.
FLATTER, FIRST_STEPS = 0.25, 20
#: Random words made at once.
BATCH_WORDS = 1 << 20

TOO_RARE = "the walk is too rarely within these bounds: use onto(), or ask for fewer bounds"


def refusal(problem: Problem) -> str:
    """Say why this way cannot draw a problem; empty if it can."""
    system, law = problem.system, problem.law
    if not law.integer or system.branches:
        return "method 'walk' draws integer noise given equalities and inequalities, and no unions"
    if None in law.laws:
        return "method 'walk' needs noise on every output: measure them all"
    if law.n > MOST_OUTPUTS:
        return f"method 'walk' takes up to {MOST_OUTPUTS} outputs that depend on each other, found {law.n}"
    if problem.space.dimension > MOST_DIMENSIONS:
        return (
            f"method 'walk' takes equalities that leave up to {MOST_DIMENSIONS} dimensions free, found "
            f"{problem.space.dimension}, because coupled walks on more hardly ever meet: use onto()"
        )
    if float(np.sqrt(law.variances.max(initial=0.0))) > WIDEST:
        return "method 'walk' takes noise with a standard deviation up to 4096: use more epsilon, or onto()"
    return ""


def accepts(problem: Problem) -> bool:
    return not refusal(problem)


def evidence(problem: Problem) -> Evidence:
    return chains.evidence(problem)


def least_tau(problem: Problem) -> float:
    """What rounding allows in a usual number of steps, twice."""
    return 2 * USUAL_STEPS * _rounding(problem)


def _rounding(problem: Problem) -> float:
    """What rounding and the tails that are left out add to the distance in one step, at most (docs/theory/walks.md)."""
    n, widest = problem.law.n, 1 + float(np.sqrt(problem.law.variances.max(initial=0.0)))
    # A line has less than 40 terms per standard deviation, each e to a sum of n parts that is n to n + 37 in size.
    each = (100 * widest + (37 + 2 * n) * (n + 2)) * 2.0**-53 + 2 * widest * CUT
    within = 2 / LEAST_INSIDE if problem.depends_on_data else 1.0
    return problem.space.dimension * each * within


def draw(problem: Problem, truth: Truth, size: int, stream: Stream) -> Array:
    """Draw noise, (size, n), such that truth + noise satisfies the system; each row from a walk of its own."""
    if problem.space.dimension == 0:
        return np.zeros((size, problem.law.n), dtype=np.int64)
    return _run(problem, truth).draw(size, stream)


def spread(problem: Problem) -> Spread | None:
    if problem.depends_on_data:
        return None
    if problem.space.dimension == 0:
        none = np.zeros(problem.law.n)
        return Spread(none, lambda weights: 0.0 * float(weights.sum()), lambda p: none * p)
    return _run(problem, None).spread()


@dataclass(frozen=True, eq=False)
class LineChain:
    """States are the noise of all outputs and the slack of every inequality; a step is one move per dimension."""

    moves: Moves
    hot: Moves
    origin: Ints
    sweep: int

    @classmethod
    def of(cls, problem: Problem, along: sparse.csr_array, table: Ints) -> LineChain:
        """Walk with these moves at this table of true values; slacks are coordinates without weight."""
        system, n = problem.system, problem.law.n
        low, high = system.integer_bounds(problem.unit)
        low, high = np.where(low > -LARGEST, low - table, -FAR), np.where(high < LARGEST, high - table, FAR)
        A, least = system.integer_inequalities(problem.unit)
        slacks: Any = along @ A.T  # the types of stacked matrices take mypy 20 seconds
        extended = sparse.csr_array(sparse.hstack([along, slacks], format="csr"))
        extended.eliminate_zeros()
        origin = np.concatenate([np.zeros(n, dtype=np.int64), A @ table - least])
        moves = Moves(
            extended.indptr.astype(np.int64),
            extended.indices.astype(np.int64),
            extended.data.astype(np.int64),
            np.concatenate([_rates(problem), np.zeros(least.size)]),
            problem.law.kind == "gaussian",
            np.concatenate([low, np.zeros(least.size, dtype=np.int64)]),
            np.concatenate([high, np.full(least.size, FAR)]),
            math.log(4.0 * (n + least.size)),
        )
        flatter = moves._replace(rates=moves.rates * FLATTER, soft=moves.soft * FLATTER)
        return cls(moves, flatter, origin, problem.space.dimension)

    def inside(self, states: Array) -> Bools:
        return np.asarray(((states >= self.moves.low) & (states <= self.moves.high)).all(axis=1))

    def start(self, count: int, stream: Stream) -> Array:
        """Walks that took some steps in a flatter law."""
        states = np.tile(self.origin, (count, 1))
        for _ in range(FIRST_STEPS):
            self._step(self.hot, states, stream)
        return states

    def advance(self, states: Array, stream: Stream) -> Array:
        self._step(self.moves, states, stream)
        return states

    def _step(self, moves: Moves, states: Array, stream: Stream) -> None:
        for part in _parts(len(states), 2 * self.sweep):
            count = part.stop - part.start
            walk(moves, states[part], stream.words(count * self.sweep * 2).reshape(count, self.sweep, 2))

    def advance_coupled(self, ahead: Array, behind: Array, stream: Stream) -> tuple[Array, Array]:
        """The same moves from both states of every pair."""
        for part in _parts(len(ahead), 4 * self.sweep):
            count = part.stop - part.start
            words = stream.words(count * self.sweep * 4).reshape(count, self.sweep, 4)
            walk_coupled(self.moves, ahead[part], behind[part], words)
        return ahead, behind


def _rates(problem: Problem) -> Floats:
    power = 1.0 if problem.law.kind == "laplace" else 0.5
    return problem.law.of_output([power / float(scale or 1) for scale in problem.law.scale_values])


def _parts(count: int, each: int) -> list[slice]:
    step = max(1, BATCH_WORDS // each)
    return [slice(start, min(start + step, count)) for start in range(0, count, step)]


def _most_steps(problem: Problem) -> int:
    """Steps after which coupled walks are given up: a line has some 50 terms per standard deviation of the noise."""
    widest = 1 + float(np.sqrt(problem.law.variances.max()))
    terms = 100 * PILOTS * problem.space.dimension * widest
    return int(min(MOST_STEPS, max(20, MOST_TERMS / terms)))


def _run(problem: Problem, truth: Truth) -> Run:
    """The walk at this truth, for a number of steps that depends on public things only."""
    n, along = problem.law.n, found_moves(problem)
    table = np.zeros(n, dtype=np.int64) if truth is None else np.asarray(truth, dtype=np.int64)
    held = np.asarray(problem.space.rows @ table, dtype=np.int64)
    # A law within τp/2 of another is within τ of it given an event of probability p or more.
    tau = problem.chain_tau * (LEAST_INSIDE / 2 if problem.depends_on_data else 1)

    def probes() -> list[LineChain]:
        if not problem.depends_on_data:
            return [LineChain.of(problem, along, np.zeros(n, dtype=np.int64))]
        return [LineChain.of(problem, along, probe) for probe in public_tables(problem, held)]

    seen = LineChain.of(problem, along, np.zeros(n, dtype=np.int64)).moves
    parts = (seen.starts, seen.places, seen.values, seen.rates, seen.low, seen.high)
    key = (*(part.tobytes() for part in parts), seen.square, held.tobytes() if problem.depends_on_data else b"")
    chain = LineChain.of(problem, along, table)
    inside, check = (chain.inside, _often_inside) if problem.depends_on_data else (None, None)
    most, rounding = _most_steps(problem), _rounding(problem)
    steps = measured_steps(key, probes, problem, tau, rounding=rounding, most=most, check=check)
    return Run(chain, steps, lambda states: states[:, :n], inside)


def _often_inside(probes: Sequence[Any], steps: int) -> None:
    """Refuse walks that are rarely within bounds at some public table."""
    for chain in probes:
        stream = seeded(SEED)
        if chain.inside(advanced(chain, chain.start(WALKS, stream), steps, stream)).mean() < 2 * LEAST_INSIDE:
            raise Refused(TOO_RARE)


#: Moves that are enough: sums and differences of moves are added up to this number.
ENOUGH = 1_500
#: Swaps of a two-way table are all used up to this number of them.
MOST_SWAPS = 100_000
#: Rounds in which sums and differences are looked at.
ROUNDS = 3


def found_moves(problem: Problem) -> sparse.csr_array:
    """Moves (moves, n) that make every whole vector of the null space: swaps, or a lattice basis with sparse sums."""
    cells = crossed_table(problem.system)
    if cells is not None:
        rows, columns = cells.shape
        if rows * (rows - 1) * columns * (columns - 1) // 4 <= MOST_SWAPS:
            return swaps(cells, problem.law.n)
    return enriched(sparse.csr_array(problem.space.lattice_basis().T))


def swaps(cells: Ints, n: int) -> sparse.csr_array:
    """Every 2×2 swap of a two-way table of outputs."""
    rows, columns = cells.shape
    a, b = np.array(list(itertools.combinations(range(rows), 2))).T
    c, d = np.array(list(itertools.combinations(range(columns), 2))).T
    corners = [(a, c), (b, d), (a, d), (b, c)]
    places = np.stack([cells[i[:, None], j[None, :]].ravel() for i, j in corners], axis=1)
    values = np.tile(np.array([1, 1, -1, -1], dtype=np.int64), len(places))
    return sparse.csr_array((values, places.ravel(), 4 * np.arange(len(places) + 1)), shape=(len(places), n))


def enriched(basis: sparse.csr_array) -> sparse.csr_array:
    """The basis, and sums and differences of moves that share a coordinate and are not longer than its longest."""
    known: dict[bytes, Ints] = {}

    def add(vector: Ints) -> bool:
        filled = np.flatnonzero(vector)
        if filled.size == 0:
            return False
        vector = vector // np.gcd.reduce(vector[filled]) * np.sign(vector[filled[0]])
        key = vector.tobytes()
        if key in known:
            return False
        known[key] = vector
        return True

    for vector in basis.toarray():
        add(np.asarray(vector, dtype=np.int64))
    longest = max((np.count_nonzero(vector) for vector in known.values()), default=0)
    fresh = list(known.values())
    for _ in range(ROUNDS):
        found = []
        everything = np.array(list(known.values()))
        for vector in fresh:
            touching = everything[(everything[:, vector != 0] != 0).any(axis=1)]
            for other in np.concatenate([touching + vector, touching - vector]):
                if len(known) >= ENOUGH:
                    break
                if np.count_nonzero(other) <= longest and add(other):
                    found.append(known[next(reversed(known))])
        fresh = found
        if not fresh or len(known) >= ENOUGH:
            break
    return sparse.csr_array(np.array(list(known.values())).reshape(len(known), basis.shape[1]))


#: How many corners are looked for, and nodes of branch and bound and steps of the simplex method for each: amounts of
#: work and no time, since they decide what is measured, and with it how long walks are and whether they are refused.
CORNERS, NODES, STEPS = 4, 500, 200_000
NO_TABLE = "no public table was found at which the walk can be measured: use onto(), or ask for fewer constraints"


def public_tables(problem: Problem, held: Ints) -> list[Ints]:
    """A few different whole tables with these held figures, at corners of what bounds and inequalities allow."""
    system, n = problem.system, problem.law.n
    low, high = system.integer_bounds(problem.unit)
    equal = problem.space.rows
    # A cell is pulled towards a bound it has, so that every program has an end.
    words = seeded(CORNERS).uniforms(CORNERS * n).reshape(CORNERS, n)
    pull = np.where(low > -LARGEST, 1.0, 0.0) - np.where(high < LARGEST, 1.0, 0.0)
    both = (low > -LARGEST) & (high < LARGEST)
    found: dict[bytes, Ints] = {}
    for costs in np.where(both, 2 * words - 1, words * pull):
        values = solved(_program(problem, held, costs, whole=True, mip_max_nodes=NODES))
        if values is not None and np.abs(values).max(initial=0.0) < 2.0**53:
            table = np.rint(values).astype(np.int64)
            if np.array_equal(equal @ table, held) and system.holds(table, problem.unit):
                found[table.tobytes()] = table
    if not found:
        raise Refused(NO_TABLE)
    return list(found.values())


def _program(problem: Problem, held: Ints, costs: Any, **options: Any) -> Any:
    """The tables with these held figures, the values of `problem.space.rows`, within bounds and inequalities."""
    low, high = problem.system.integer_bounds(problem.unit)
    more, limits = problem.system.integer_inequalities(problem.unit)
    ends = np.where(low > -LARGEST, low, -np.inf), np.where(high < LARGEST, high, np.inf)
    sides = np.append(held, limits), np.append(held, np.full(limits.size, np.inf))
    A = sparse.vstack([problem.space.rows, more], format="csr")
    return linear_program(A, costs, ends, sides, simplex_iteration_limit=STEPS, **options)
