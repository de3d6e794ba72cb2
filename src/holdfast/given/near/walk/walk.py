"""Integer noise given any linear equalities and inequalities: walks on the whole vectors of the null space.

Two-way tables with bounds on cells are walked by whole tables (`walk_rows.py`), everything else along lines
(`walk_steps.py`); both reach every table, which is proved (docs/theory/walks.md). The law of a draw comes near the
conditional law: the walk runs for a number of steps that L-lag couplings put within tau of it, by an estimate
(`noise/convergence.py`). That number is fixed before confidential data is seen: without inequalities the law of the
noise is public; with them it is measured at public tables, and the worst counts. Draws are the last states of
independent walks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arguments import LARGEST, Refused
from holdfast.arrays import Array, Bools, Floats, Ints, Shared, kept
from holdfast.constraints.system.crossed import crossed_table
from holdfast.evidence import Evidence
from holdfast.given.near.public_tables import public_tables
from holdfast.given.near.two_way.rows_in_turn import TAIL, Table, Windows, widest_window
from holdfast.given.near.two_way.typical import Typical, rounded, typical
from holdfast.given.near.walk.moves import found_moves
from holdfast.given.near.walk.rows import FAR as FREE
from holdfast.given.near.walk.rows import RowChain, tightened, tilted
from holdfast.given.near.walk.steps import CUT, FAR, Moves, walk, walk_coupled
from holdfast.given.problem import Problem, Truth
from holdfast.given.tau import NEAR_WORDS, refuse_rounding
from holdfast.noise.convergence import PILOTS, advanced, worst_run_length
from holdfast.noise.spread import Spread, simulated_spread
from holdfast.randomness import Stream, seeded

#: Most outputs, and most dimensions along lines: beyond, coupled walks hardly ever meet.
MOST_OUTPUTS, MOST_DIMENSIONS = 10_000, 60
#: Steps along lines after which coupled walks are given up: by their number, and by the terms that a pilot run sums.
MOST_STEPS, MOST_TERMS = 1_000, 3e8
#: Least share of states within bounds at every public table, and walks that it is measured on.
LEAST_INSIDE, WALKS = 0.05, 200
#: Widest noise, as a standard deviation: the work for one step grows with it, for whole tables with its square.
WIDEST_LINES, WIDEST_ROWS = 2.0**12, 60.0
#: Most weights of whole tables, 1 GiB: their windows may have to be as wide as this for some data.
MOST_WEIGHTS = 2**27
#: How often windows are laid anew around what was found within them, and the move, in scales, at which they stay.
MOST_MOVES, NEARLY_STILL = 8, 2.0
#: Tables of fewer rows are looked at with wide windows first.
FEW_ROWS = 8
#: Fewest steps of any walk, whatever was measured.
FEWEST_STEPS = 20
#: Steps that a tau must leave room for the rounding of: along lines, and by whole tables.
USUAL_LINES, USUAL_ROWS = 1_000, 50
#: How much flatter the law is from which walks start, and steps taken there.
FLATTER, FIRST_STEPS = 0.25, 20
#: Random words made at once.
BATCH_WORDS = 1 << 20
#: Seed of the measurements: they are public and can be repeated.
SEED = 6

#: Numbers of steps that were measured before: tables of one shape, law and bounds share theirs.
MEASURED = Shared(64)

PROBED_WORDS = (
    "; the law depends on the data here, so that was measured at public tables and may differ at the true one"
)
CUT_WORDS = "; windows are laid where the bounds push the noise, and what lies beyond is estimated, too"
TOO_RARE = "the walk is too rarely within these bounds: use onto(), or ask for fewer bounds"


def refusal(problem: Problem) -> str:
    """Say why this way cannot draw a problem; empty if it can."""
    system, law = problem.system, problem.law
    if not law.integer or system.branches:
        return "method 'walk' draws integer noise given equalities and inequalities, and no unions"
    if None in law.laws:
        return "method 'walk' needs noise on every output: measure them all"
    widest = float(np.sqrt(law.variances.max(initial=0.0)))
    if law.n > MOST_OUTPUTS:
        return f"method 'walk' takes up to {MOST_OUTPUTS} outputs that depend on each other, found {law.n}"
    if _row_cells(problem) is not None:
        return ""
    if problem.space.dimension > MOST_DIMENSIONS:
        return (
            f"method 'walk' takes equalities that leave up to {MOST_DIMENSIONS} dimensions free, found "
            f"{problem.space.dimension}, because coupled walks on more hardly ever meet: use onto()"
        )
    if widest > WIDEST_LINES:
        return "method 'walk' takes noise with a standard deviation up to 4096: use more epsilon, or onto()"
    return ""


def accepts(problem: Problem) -> bool:
    """Whether integer noise has equalities of few dimensions, or is on a two-way table, with or without bounds."""
    return not refusal(problem)


def evidence(problem: Problem) -> Evidence:
    """What the couplings are asked for; a draw is refused where they do not give it."""
    probed = PROBED_WORDS if problem.depends_on_data else ""
    probed += CUT_WORDS if problem.depends_on_data and _row_cells(problem) is not None else ""
    return Evidence(problem.tau, False, NEAR_WORDS.format(tau=problem.tau) + probed)


def least_tau(problem: Problem) -> float:
    """What rounding allows in a usual number of steps, twice."""
    return 2 * (USUAL_LINES if _row_cells(problem) is None else USUAL_ROWS) * _rounding(problem)


def _row_cells(problem: Problem) -> Ints | None:
    """The cells of a two-way table that is walked by whole tables, no more rows than columns; None: along lines."""
    n, wide = problem.law.n, float(np.sqrt(problem.law.variances.max(initial=0.0))) > WIDEST_ROWS
    if wide or 2 * n * widest_window(*_window_scale(problem), n) > MOST_WEIGHTS:
        return None
    found = crossed_table(problem.system)
    return found if found is None or len(found) <= found.shape[1] else np.ascontiguousarray(found.T)


def _rounding(problem: Problem) -> float:
    """What rounding and the tails that are left out add to the distance in one step, at most (docs/theory/walks.md)."""
    n, widest = problem.law.n, 1 + float(np.sqrt(problem.law.variances.max(initial=0.0)))
    cells = _row_cells(problem)
    if cells is not None:
        return n * (12 * (2 * widest_window(*_window_scale(problem), n) + 4) * 2.0**-53 + 4 * TAIL)
    # A line has less than 40 terms per standard deviation, each e to a sum of n parts that is n to n + 37 in size.
    each = (100 * widest + (37 + 2 * n) * (n + 2)) * 2.0**-53 + 2 * widest * CUT
    within = 2 / LEAST_INSIDE if problem.depends_on_data else 1.0
    return problem.space.dimension * each * within


def draw(problem: Problem, truth: Truth, size: int, stream: Stream) -> Array:
    """Draw noise, (size, n), such that truth + noise satisfies the system; each row from a walk of its own."""
    if problem.space.dimension == 0:
        return np.zeros((size, problem.law.n), dtype=np.int64)
    cells = _row_cells(problem)
    if cells is not None:
        table = np.zeros(problem.law.n, dtype=np.int64) if truth is None else np.asarray(truth, dtype=np.int64)
        chain = _row_chain(problem, cells, table)
        states = advanced(chain, chain.start(size, stream), _row_steps(problem, cells), stream)
        noise = np.empty((size, problem.law.n), dtype=np.int64)
        noise[:, cells.ravel()] = np.rint(states[:, :-1])
        return noise
    lines, steps = _lines(problem, truth)
    noise = np.empty((size, problem.law.n), dtype=np.int64)
    missing = np.arange(size)
    while missing.size:  # giving up would tell about the data
        states = advanced(lines, lines.start(missing.size, stream), steps, stream)
        inside = lines.inside(states)
        noise[missing[inside]] = states[inside, : problem.law.n]
        missing = missing[~inside]
    return noise


def spread(problem: Problem) -> Spread | None:
    """Measured on states of long walks, a few steps apart; None where data matter."""
    if problem.depends_on_data:
        return None

    def states(size: int) -> Array:
        lines, steps = _lines(problem, None)
        stream, apart = seeded(SEED), max(1, steps // 8)
        running = advanced(lines, lines.start(WALKS, stream), steps, stream)
        kept = []
        for _ in range(-(-size // WALKS)):
            running = advanced(lines, running, apart, stream)
            kept.append(running[:, : problem.law.n].copy())
        return np.concatenate(kept)[:size]

    if _row_cells(problem) is not None or problem.space.dimension == 0:
        return simulated_spread(lambda size: draw(problem, None, size, seeded(SEED)))
    return simulated_spread(states, chains=WALKS)


# --- whole tables ------------------------------------------------------------------------------------------------


def _rates(problem: Problem) -> Floats:
    power = 1.0 if problem.law.kind == "laplace" else 0.5
    return problem.law.of_output([power / float(scale or 1) for scale in problem.law.scale_values])


def _window_scale(problem: Problem) -> tuple[float, bool]:
    """The largest λ or σ², and whether it is σ²."""
    widest, gaussian = float(1 / _rates(problem).min()), problem.law.kind == "gaussian"
    return widest / 2 if gaussian else widest, gaussian


def _row_chain(problem: Problem, cells: Ints, table: Ints) -> RowChain:
    """The chain of whole tables at this table of true values; windows lie where bounds push the noise."""
    low, high = problem.system.integer_bounds(problem.unit)
    low = np.where(low > -LARGEST, low - table, -FAR)[cells]
    high = np.where(high < LARGEST, high - table, FAR)[cells]
    low, high = tightened(low, high)
    rates, (scale, gaussian) = _rates(problem)[cells], _window_scale(problem)
    if not problem.system.has_bounds:  # what is proved of free cells holds (docs/theory/walks.md, Proposition 3)
        sizes, centre = Windows.of(scale, gaussian, *cells.shape), np.zeros(cells.shape, dtype=np.int64)
        reaches = np.full(cells.shape, sizes.core)
        return RowChain(_tilted(problem, rates, (low, high), (sizes, reaches), centre, np.zeros(len(cells)))[0], centre)
    found, usual = typical(rates, gaussian, low, high, FREE), widest_window(scale, gaussian, cells.size)
    centre = np.zeros(cells.shape, dtype=np.int64)
    for turn in range(MOST_MOVES):
        # Sums of few cells are not normal: where columns are short, what is typical is only a start.
        wide = turn == 0 and len(cells) < FEW_ROWS
        centre = centre if wide else rounded(found.means)
        most = max(usual, MOST_WEIGHTS // (2 * cells.size)) if wide else usual
        windows = Windows.around(found, centre, scale, gaussian, most)
        proposals, inner = _tilted(problem, rates, (low, high), windows, centre, found.tilts)
        moved = np.abs(inner.means).max(initial=0.0)
        found = inner._replace(means=inner.means + centre)
        if not wide and moved < NEARLY_STILL * scale ** (0.5 if gaussian else 1.0):
            break
    return RowChain(proposals, centre)


def _tilted(
    problem: Problem,
    rates: Floats,
    bounds: tuple[Ints, Ints],
    windows: tuple[Windows, Ints],
    centre: Ints,
    tilts: Floats,
) -> tuple[Table, Typical]:
    """Weights of noise less its centre, within bounds and windows, and rows that sum to 0 in the mean."""
    (low, high), (sizes, reaches), (scale, gaussian) = bounds, windows, _window_scale(problem)
    places = np.arange(-int(reaches.max()), int(reaches.max()) + 1)
    noise = places + centre[:, :, None]
    inside = (noise >= low[:, :, None]) & (noise <= high[:, :, None]) & (np.abs(places) <= reaches[:, :, None])
    energies = rates[:, :, None] * (noise**2 if gaussian else np.abs(noise))
    least = np.where(inside, energies, np.inf).min(axis=2, keepdims=True)
    weights = np.where(inside, np.exp(np.minimum(least - energies, 0.0)), 0.0)
    steepest = 2 / math.sqrt(2 * scale) if gaussian else 2 / scale
    return tilted(weights, sizes, steepest, -centre.sum(axis=0), tilts)


def _row_steps(problem: Problem, cells: Ints) -> int:
    """The number of steps of chains of whole tables; it depends on public things only."""
    low, high = problem.system.integer_bounds(problem.unit)
    key = (
        problem.law.kind,
        _rates(problem)[cells].tobytes(),
        low[cells].tobytes(),
        high[cells].tobytes(),
        cells.shape,
        problem.tau,
    )

    def measured() -> int:
        chains = [_row_chain(problem, cells, table) for table in _row_probes(problem, cells)]
        steps = max(FEWEST_STEPS, worst_run_length(chains, problem.chain_tau, seeded(SEED)).steps)
        refuse_rounding(problem.tau, _rounding(problem), steps)
        return steps

    return MEASURED.get(key, measured)


def _row_probes(problem: Problem, cells: Ints) -> list[Ints]:
    """Public tables at which the chain is measured.

    Nearly empty, sparse, even, far from all bounds, and two on which bounds push most: large cells on the diagonal, or
    in one row and one column, among empty ones.
    """
    low, high = problem.system.integer_bounds(problem.unit)
    if not problem.system.has_bounds:
        return [np.zeros(problem.law.n, dtype=np.int64)]
    rows, columns = cells.shape
    diagonal = (np.arange(columns)[None, :] % rows == np.arange(rows)[:, None]).astype(np.int64)
    words = seeded(SEED).words(2 * cells.size).reshape(2, rows, columns)
    sparse_table = np.where(words[0] % np.uint64(5) == 0, words[1] % np.uint64(20), 0).astype(np.int64)
    far = np.full(cells.shape, int(10 * np.sqrt(problem.law.variances.max())) + 1, dtype=np.int64)
    large = widest_window(*_window_scale(problem), cells.size)
    crossing = (np.arange(rows)[:, None] == 0) | (np.arange(columns)[None, :] == 0)
    pushed = (large * diagonal, large * crossing.astype(np.int64))
    found = []
    for above in (diagonal, sparse_table, np.ones(cells.shape, dtype=np.int64), far, *pushed):
        base = np.where(low > -LARGEST, low, np.where(high < LARGEST, high - far.max(), 0))
        table = base.copy()
        table[cells] += above
        found.append(np.minimum(table, high))
    return found


# --- lines -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LineChain:
    """States are the noise of all outputs and the slack of every inequality; a step is one move per dimension."""

    moves: Moves
    hot: Moves
    origin: Ints
    sweep: int

    @classmethod
    def of(cls, problem: Problem, found: sparse.csr_array, table: Ints) -> LineChain:
        """Walk with these moves at this table of true values; slacks are coordinates without weight."""
        system, n = problem.system, problem.law.n
        low, high = system.integer_bounds(problem.unit)
        low, high = np.where(low > -LARGEST, low - table, -FAR), np.where(high < LARGEST, high - table, FAR)
        A, least = system.integer_inequalities(problem.unit)
        slacks: Any = found @ A.T  # the types of stacked matrices take mypy 20 seconds
        extended = sparse.csr_array(sparse.hstack([found, slacks], format="csr"))
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
        return cls(
            moves,
            moves._replace(rates=moves.rates * FLATTER, soft=moves.soft * FLATTER),
            origin,
            problem.space.dimension,
        )

    def inside(self, states: Array) -> Bools:
        """Which states are within all bounds."""
        return np.asarray(((states >= self.moves.low) & (states <= self.moves.high)).all(axis=1))

    def start(self, count: int, stream: Stream) -> Array:
        """Walks that took some steps in a flatter law."""
        states = np.tile(self.origin, (count, 1))
        for _ in range(FIRST_STEPS):
            self._step(self.hot, states, stream)
        return states

    def advance(self, states: Array, stream: Stream) -> Array:
        """One move per dimension from every state."""
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


def _parts(count: int, each: int) -> list[slice]:
    step = max(1, BATCH_WORDS // each)
    return [slice(start, min(start + step, count)) for start in range(0, count, step)]


def _most_steps(problem: Problem) -> int:
    """Steps after which coupled walks are given up: a line has some 50 terms per standard deviation of the noise."""
    widest = 1 + float(np.sqrt(problem.law.variances.max()))
    terms = 100 * PILOTS * problem.space.dimension * widest
    return int(min(MOST_STEPS, max(20, MOST_TERMS / terms)))


@kept
def _public_lines(problem: Problem) -> tuple[LineChain, int]:
    """The walk, and its number of steps, where the law does not depend on the truth."""
    chain = LineChain.of(problem, found_moves(problem), np.zeros(problem.law.n, dtype=np.int64))
    steps = worst_run_length([chain], problem.chain_tau, seeded(SEED), most=_most_steps(problem)).steps
    refuse_rounding(problem.tau, _rounding(problem), max(FEWEST_STEPS, steps))
    return chain, max(FEWEST_STEPS, steps)


def _lines(problem: Problem, truth: Truth) -> tuple[LineChain, int]:
    """The walk at this truth, and its number of steps."""
    if not problem.depends_on_data:
        return _public_lines(problem)
    table, found, stream = np.asarray(truth, dtype=np.int64), found_moves(problem), seeded(SEED)
    chains = [LineChain.of(problem, found, probe) for probe in public_tables(problem, problem.space.rows @ table)]
    # A law within τp/2 of another is within τ of it given an event of probability p or more.
    steps = worst_run_length(chains, problem.chain_tau * LEAST_INSIDE / 2, stream, most=_most_steps(problem)).steps
    refuse_rounding(problem.tau, _rounding(problem), max(FEWEST_STEPS, steps))
    for chain in chains:
        if chain.inside(advanced(chain, chain.start(WALKS, stream), steps, stream)).mean() < 2 * LEAST_INSIDE:
            raise Refused(TOO_RARE)
    return LineChain.of(problem, found, table), max(FEWEST_STEPS, steps)
