"""Continuous noise given equalities and inequalities of any kind: Gibbs along directions of the null space.

Every move is drawn from its exact law on a line and respects every inequality. Directions are a basis of the null space
and sparse sums of its vectors; where the held figures and the bounds leave some inequality no room at all, a basis
of what is left. The chain reaches everything: the set is convex, the basis spans it, and the chain starts within it, at
a public table (at a corner, such as the truth may be, every line could be a point). Every draw is the last state of a
chain of its own. How long chains run is fixed before confidential data is seen: it is
measured by couplings at public tables that share the held figures only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arguments import Refused
from holdfast.arrays import Array, Bools, Floats, Ints, Words
from holdfast.evidence import Evidence
from holdfast.exact.elimination import eliminate
from holdfast.exact.lattice_bases import rational_basis
from holdfast.exact.solver import OPTIMAL, linear_program, solved
from holdfast.given.near import coupled_chains as chains
from holdfast.given.near.coupled_chains import Run, measured_steps
from holdfast.given.near.line_steps import Lines, advance, advance_coupled
from holdfast.given.problem import LEAST_TAU, Problem, Truth
from holdfast.noise.spread import Spread
from holdfast.randomness import Stream, seeded
from holdfast.workers import in_steps, in_threads, rows_worth_a_thread

#: Most dimensions that rows connect: chains are measured within some minutes there.
MOST_DIMENSIONS = 300
#: Directions for each dimension, and tries to find each of them.
DIRECTIONS, TRIES = 32, 10


def accepts(problem: Problem) -> bool:
    """Whether the law is continuous, few dimensions are free, and measured outputs determine all others."""
    if problem.law.integer or problem.system.branches or problem.space.dimension > MOST_DIMENSIONS:
        return False
    if problem.space.is_zero:
        return False
    basis = _basis(problem.space.rows).toarray()[np.isfinite(problem.law.variances)]
    return bool(np.linalg.matrix_rank(basis) == problem.space.dimension)


def evidence(problem: Problem) -> Evidence:
    return chains.evidence(problem)


def least_tau(problem: Problem) -> float:
    """What doubles allow: statements about continuous noise are proved in real arithmetic, and say so."""
    del problem
    return LEAST_TAU


def draw(problem: Problem, truth: Truth, size: int, stream: Stream) -> Array:
    """Draw noise that makes truth + noise satisfy the system, (size, n), from `size` independent chains."""
    polytope = Polytope.of(problem, truth)
    face = _Face.of(problem, polytope)
    centre = np.zeros(problem.law.n) if truth is None else np.asarray(truth, dtype=np.float64)
    noise = np.zeros((size, problem.law.n))
    if face.dimension:
        noise = _run(problem, polytope, face, centre).draw(size, stream)
    low, high = polytope.low[: problem.law.n] - centre, polytope.high[: problem.law.n] - centre
    return np.clip(noise, np.minimum(low, 0.0), np.maximum(high, 0.0))


def spread(problem: Problem) -> Spread | None:
    """Errors measured on states of long chains; None where they depend on the data."""
    if problem.depends_on_data:
        return None
    polytope = Polytope.of(problem, None)
    return _run(problem, polytope, _Face.of(problem, polytope), np.zeros(problem.law.n)).spread()


def _basis(rows: sparse.csr_array) -> sparse.csc_array:
    """A basis (n, dimension), each vector with a coordinate of its own, where it is 1."""
    found = eliminate(rows)
    basis = rational_basis(found).astype(np.float64)
    own = basis[found.free(), :].diagonal()
    return sparse.csc_array(basis @ sparse.diags_array(1.0 / own, format="csc"))


@dataclass(frozen=True, eq=False)
class _Face:
    """The directions that are free at all, and the law of the noise; the same for all tables with the held figures."""

    basis: sparse.csc_array
    directions: sparse.csr_array  # over outputs and inequalities, (directions, n + inequalities)
    coefficients: sparse.csr_array  # over free coordinates
    rates: Floats
    square: bool
    polytope: Polytope
    free: Ints  # the outputs that are the free coordinates
    inside: Floats | None  # a public table within all bounds that can be slack, where there are bounds

    @classmethod
    def of(cls, problem: Problem, polytope: Polytope) -> _Face:
        """Leave out what cannot move."""
        tight, inside = polytope.interior()
        stuck = tight[: polytope.low.size] | tight[polytope.low.size :]
        everything = sparse.vstack([sparse.eye_array(polytope.n), problem.system.inequalities.A], format="csr")
        rows = sparse.vstack([problem.space.rows, everything[np.flatnonzero(stuck)]], format="csr")
        rows = sparse.csr_array(rows.astype(np.int64))
        basis = _basis(rows)
        free = eliminate(rows).free()
        directions = _enriched(sparse.csr_array(basis.T))
        coefficients = sparse.csr_array(directions[:, free])
        slacks: Any = directions @ polytope.more.T  # the types of stacked matrices take mypy seconds
        wide = sparse.csr_array(sparse.hstack([directions, slacks], format="csr"))
        wide.eliminate_zeros()
        square = problem.law.kind == "gaussian"
        variances = problem.law.variances
        rates = 1 / variances if square else np.sqrt(2 / variances)  # 0 where not measured
        rates = np.concatenate([rates, np.zeros(int(polytope.more.shape[0]))])
        return cls(basis, wide, coefficients, rates, square, polytope, free, inside)

    @property
    def dimension(self) -> int:
        return int(self.basis.shape[1])

    def noise(self, free: Floats) -> Floats:
        """The noise of all outputs, (size, n), from the free coordinates."""
        return np.asarray((self.basis @ free.T).T)

    def chain(self, centre: Floats) -> _Chain:
        """The chain whose law is that of the noise around this table."""
        at = np.concatenate([centre, self.polytope.more @ centre])
        wide, coefficients = self.directions, self.coefficients
        lines = Lines(
            wide.indptr.astype(np.int64),
            wide.indices.astype(np.int64),
            wide.data,
            coefficients.indptr.astype(np.int64),
            coefficients.indices.astype(np.int64),
            coefficients.data,
            self.rates,
            self.square,
            self.polytope.low - at,
            self.polytope.high - at,
        )
        return _Chain(lines, np.zeros(self.dimension) if self.inside is None else (self.inside - centre)[self.free])


def _enriched(basis: sparse.csr_array) -> sparse.csr_array:
    """The basis, then sums of two vectors that cancel a coordinate and are no longer than the longest of the basis."""
    places, values, starts = basis.indices.tolist(), basis.data.tolist(), basis.indptr.tolist()
    vectors = [dict(sorted(zip(places[a:b], values[a:b], strict=True))) for a, b in pairwise(starts)]
    users: dict[int, list[int]] = {}
    for k, vector in enumerate(vectors):
        for place in vector:
            users.setdefault(place, []).append(k)
    longest = max((len(vector) for vector in vectors), default=0)
    known = {_key(vector) for vector in vectors}
    wanted = DIRECTIONS * len(vectors)
    words = iter(seeded(3).words(3 * TRIES * wanted).tolist())
    for _ in range(TRIES * wanted if len(vectors) > 1 else 0):
        first = vectors[next(words) % len(vectors)]
        place = list(first)[next(words) % len(first)]
        second = vectors[users[place][next(words) % len(users[place])]]
        factor = first[place] / second[place]
        made = {j: first.get(j, 0.0) - factor * second.get(j, 0.0) for j in first.keys() | second.keys()}
        made = {j: value for j, value in sorted(made.items()) if abs(value) > 1e-9}
        if not made or len(made) > longest or _key(made) in known:
            continue
        known.add(_key(made))
        for j in made:
            users.setdefault(j, []).append(len(vectors))
        vectors.append(made)
        if len(vectors) >= wanted:
            break
    ends = np.cumsum([0, *map(len, vectors)])
    where = np.array([j for vector in vectors for j in vector], dtype=np.int64)
    entries = np.array([value for vector in vectors for value in vector.values()], dtype=np.float64)
    return sparse.csr_array((entries, where, ends), shape=(len(vectors), basis.shape[1]))


def _key(vector: dict[int, float]) -> tuple[tuple[int, float], ...]:
    lead = next(iter(vector.values()))
    return tuple((j, round(value / lead, 9)) for j, value in vector.items())


def _run(problem: Problem, polytope: Polytope, face: _Face, centre: Floats) -> Run:
    """The chain around a table, for a number of steps that depends on public things only."""
    key = (
        face.square,
        face.rates.tobytes(),
        *(part.tobytes() for part in (face.directions.data, face.directions.indices, face.directions.indptr)),
        polytope.held.tobytes() if problem.depends_on_data else b"",
        polytope.low.tobytes(),
        polytope.high.tobytes(),
    )

    def probes() -> list[_Chain]:
        centres = polytope.corners() if problem.depends_on_data else [np.zeros(polytope.n)]
        return [face.chain(each) for each in centres]

    return Run(face.chain(centre), measured_steps(key, probes, problem, problem.tau), face.noise)


@dataclass(frozen=True, eq=False)
class _Chain:
    """Chains around one table; a chain in the sense of `convergence`. A state is its free coordinates."""

    lines: Lines
    first: Floats

    @property
    def words(self) -> int:
        return int(self.lines.start.size - 1)

    def start(self, count: int, stream: Stream) -> Floats:
        """The noise that leads to a public table within all bounds: from there every line has some length."""
        del stream
        return np.tile(self.first, (count, 1))

    def advance(self, states: Floats, stream: Stream) -> Floats:
        in_steps(partial(_advance_part, self.lines), states, 1, self.words, stream)
        return states

    def advance_coupled(self, ahead: Floats, behind: Floats, stream: Stream) -> tuple[Floats, Floats]:
        """One step of every pair of rows, in place."""
        count = len(ahead)
        words = stream.words(count * (self.words + 1)).reshape(count, self.words + 1)
        rows = rows_worth_a_thread(self.words + 1)
        in_threads(lambda part: advance_coupled(self.lines, ahead[part], behind[part], words[part]), count, rows)
        return ahead, behind


def _advance_part(lines: Lines, states: Floats, words: Words, part: slice) -> None:
    advance(lines, states[part], words[part])


#: A slack below this, relative to the figures, counts as none.
TOLERANCE = 1e-7
#: Public tables at corners.
CORNERS = 4
NO_TABLE = "no public table was found at which the chains can be measured: use onto(), or ask for fewer constraints"


@dataclass(frozen=True, eq=False)
class Polytope:
    """Tables z with A z = held and low ≤ (z, G z) ≤ high: outputs first, then the inequalities that are no bounds."""

    rows: sparse.csr_array
    held: Floats
    more: sparse.csr_array
    low: Floats
    high: Floats

    @classmethod
    def of(cls, problem: Problem, truth: Truth) -> Polytope:
        """Read the held figures from the truth; no truth is needed where nothing but equalities holds."""
        system, unit, n = problem.system, float(problem.unit), problem.law.n
        low, high = system.real_bounds()
        more = system.inequalities
        limits = np.array([float(value) for value in more.b]) / unit
        centre = np.zeros(n) if truth is None else np.asarray(truth, dtype=np.float64)
        return cls(
            problem.space.rows,
            np.asarray(problem.space.rows @ centre, dtype=np.float64),
            sparse.csr_array(more.A.astype(np.float64)),
            np.concatenate([low / unit, limits]),
            np.concatenate([high / unit, np.full(more.count, np.inf)]),
        )

    @property
    def n(self) -> int:
        return int(self.rows.shape[1])

    def _solved(self, costs: Floats, extra: int = 0, pairs: Any = None) -> Floats | None:
        """Minimise costs over the tables (and `extra` numbers from 0 to 1, each at most a slack); None if unsolved."""
        n, g = self.n, int(self.more.shape[0])
        blocks = [sparse.hstack([self.rows, sparse.csr_array((self.rows.shape[0], extra))], format="csr")]
        blocks.append(sparse.hstack([self.more, sparse.csr_array((g, extra))], format="csr"))
        lower, upper = [self.held, self.low[n:]], [self.held, self.high[n:]]
        if extra:
            signs, places, limits = pairs
            both = sparse.vstack([sparse.eye_array(n), self.more], format="csr")[places]
            blocks.append(sparse.hstack([sparse.diags_array(signs) @ both, -sparse.eye_array(extra)], format="csr"))
            lower.append(signs * limits)
            upper.append(np.full(extra, np.inf))
        A = sparse.vstack(blocks, format="csr")
        ends = np.append(self.low[:n], np.zeros(extra)), np.append(self.high[:n], np.ones(extra))
        solver = linear_program(A, costs, ends, (np.concatenate(lower), np.concatenate(upper)))
        values = solved(solver)
        return values if solver.getModelStatus() == OPTIMAL else None

    def interior(self) -> tuple[Bools, Floats | None]:
        """Tell for each bound, low ones first, whether no table has it slack; and a table with all others slack.

        The table is public: it depends on the held figures alone. None where there is no bound.
        """
        limits = np.concatenate([self.low, self.high])
        signs = np.repeat([1.0, -1.0], self.low.size)
        places = np.tile(np.arange(self.low.size), 2)
        open_bounds = np.flatnonzero(np.isfinite(limits))
        size = TOLERANCE * max(1.0, float(np.abs(self.held).max(initial=0.0)))
        tables = []
        while open_bounds.size:
            pairs = signs[open_bounds], places[open_bounds], limits[open_bounds]
            costs = np.concatenate([np.zeros(self.n), -np.ones(open_bounds.size)])
            found = self._solved(costs, open_bounds.size, pairs)
            if found is None:
                raise Refused(NO_TABLE)
            tables.append(found[: self.n])
            slack = found[self.n :] > size
            if not slack.any():
                break
            open_bounds = open_bounds[~slack]
        tight = np.zeros(limits.size, dtype=bool)
        tight[open_bounds] = True
        # Every bound that is not tight is slack in one of the tables, so it is in their mean.
        return tight, np.mean(tables, axis=0) if tables else None

    def corners(self) -> list[Floats]:
        """A few tables at corners, and the one in their middle."""
        low, high = self.low[: self.n], self.high[: self.n]
        shares = seeded(CORNERS).uniforms(CORNERS * self.n).reshape(CORNERS, self.n)
        # An output is pulled towards a bound that it has, so that most programs have an end.
        pull = np.isfinite(low) * 1.0 - np.isfinite(high) * 1.0
        costs = np.where(np.isfinite(low) & np.isfinite(high), 2 * shares - 1, shares * pull)
        found = [table for each in (*costs, np.zeros(self.n)) if (table := self._solved(each)) is not None]
        if not found:
            raise Refused(NO_TABLE)
        return [*found, np.mean(found, axis=0)]
