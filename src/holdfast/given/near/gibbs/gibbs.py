"""Continuous Laplace noise given equalities, by block Gibbs sampling on its scale mixture (THEORY §5).

Every draw is the last state of a chain of its own, so draws are independent. How long chains run is measured before any
data is seen, by couplings of the law itself, which does not depend on data. Equal laws, such as those of the many
tables of a cube, are measured once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from scipy import sparse

from holdfast.arrays import Array, Floats, Shared, Words, kept
from holdfast.evidence import Evidence
from holdfast.given.near.gibbs.cholesky import Pattern, pattern_of
from holdfast.given.near.gibbs.steps import WORDS, advance, advance_coupled
from holdfast.given.problem import Problem, Truth
from holdfast.given.tau import LEAST_TAU
from holdfast.noise.convergence import RunLength, run_length
from holdfast.noise.spread import Spread, simulated_spread
from holdfast.randomness import Stream, seeded
from holdfast.workers import BATCH_WORDS, in_steps, in_threads, rows_worth_a_thread

#: Largest number of outputs that rows connect: chains are measured within some minutes there.
MOST_OUTPUTS = 5_000
#: Chains whose states make up the study behind errors.
STUDY_CHAINS = 100
#: Samplers that were made before, with what they measured: problems of one law share theirs.
SAMPLERS = Shared(16)

WORDS_OF_EVIDENCE = (
    "the draws come from block Gibbs chains that run until L-lag couplings of 1,000 pairs put the 99 % limit of their "
    "distance from the law below τ; that is an estimate from the law alone, made before any data is seen"
)


def accepts(problem: Problem) -> bool:
    """Whether the law is continuous Laplace, every output is measured, and only equalities hold."""
    if problem.depends_on_data or problem.law.integer or problem.law.kind != "laplace":
        return False
    measured = None not in problem.law.laws
    return measured and problem.space.rank > 0 and problem.law.n <= MOST_OUTPUTS and sampler_of(problem) is not None


def evidence(problem: Problem) -> Evidence:
    """Within the problem's tau, as couplings estimate."""
    return Evidence(problem.tau, False, WORDS_OF_EVIDENCE)


def least_tau(problem: Problem) -> float:
    """What doubles allow: statements about continuous noise are proved in real arithmetic, and say so."""
    del problem
    return LEAST_TAU


def draw(problem: Problem, truth: Truth, size: int, stream: Stream) -> Array:
    """Draw noise that satisfies every equality, (size, n), from `size` independent chains."""
    del truth  # the law does not depend on it
    sampler = sampler_of(problem)
    assert sampler is not None
    steps = sampler.length.steps
    noise = np.empty((size, problem.law.n))
    together = max(1, BATCH_WORDS // sampler.words)
    for begin in range(0, size, together):
        states = sampler.start(min(together, size - begin), stream)
        noise[begin : begin + together] = sampler.run(states, steps, stream)
    return _finished(problem, noise)


def spread(problem: Problem) -> Spread:
    """Errors measured on the states of long chains."""
    sampler = sampler_of(problem)
    assert sampler is not None
    return sampler.spread.times(_unit(problem))


def _finished(problem: Problem, noise: Floats) -> Floats:
    """Put the scale back, and take away what rounding left of the rows."""
    return np.ascontiguousarray(problem.space.project(noise.T).T) * _unit(problem)


def _scales(problem: Problem) -> Floats:
    return np.sqrt(problem.law.variances / 2)


def _unit(problem: Problem) -> float:
    """The law is scaled such that its largest scale is 1: laws that differ by a factor share one measurement."""
    return float(_scales(problem).max())


@kept
def sampler_of(problem: Problem) -> Sampler | None:
    """Chains for the law of a problem, in units of its largest scale; None where its factors would be too large."""
    rows = sparse.csr_array(problem.space.sound.rows)
    rows.sort_indices()
    scales, tau = _scales(problem) / _unit(problem), problem.tau
    parts = rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data.astype(np.float64), scales

    def made() -> Sampler | None:
        pattern = pattern_of(rows)
        return None if pattern is None else Sampler(pattern, scales, tau)

    return SAMPLERS.get((rows.shape, *(part.tobytes() for part in parts), tau), made)


@dataclass(frozen=True, eq=False)
class Sampler:
    """Chains for one law; a chain in the sense of `convergence`."""

    pattern: Pattern
    scales: Floats
    tau: float

    @property
    def words(self) -> int:
        """Random words for one step of one chain."""
        return WORDS * self.scales.size

    @cached_property
    def length(self) -> RunLength:
        """How long chains run, measured with a public stream."""
        return run_length(self, self.tau, seeded(0))

    @cached_property
    def spread(self) -> Spread:
        """Errors in units of the largest scale, from states one step apart of chains that have run long enough."""

        def states(size: int) -> Floats:
            stream = seeded(1)
            now = self.run(self.start(STUDY_CHAINS, stream), self.length.steps, stream)
            rounds = [self.advance(now, stream).copy() for _ in range(-(-size // STUDY_CHAINS))]
            return np.concatenate(rounds)[:size]

        return simulated_spread(states, chains=STUDY_CHAINS)

    def start(self, count: int, stream: Stream) -> Floats:
        """One step from no noise: every variance is then the square of a normal number."""
        return self.advance(np.zeros((count, self.scales.size)), stream)

    def advance(self, states: Floats, stream: Stream) -> Floats:
        """One step of every row, in place."""
        return self.run(states, 1, stream)

    def run(self, states: Floats, steps: int, stream: Stream) -> Floats:
        """So many steps of every row, in place."""
        in_steps(partial(_advance_part, self), states, steps, self.words, stream)
        return states

    def advance_coupled(self, ahead: Floats, behind: Floats, stream: Stream) -> tuple[Floats, Floats]:
        """One step of every pair of rows, in place."""
        count, n = ahead.shape
        words = stream.words(count * (n + 1)).reshape(count, n + 1)
        in_threads(
            lambda part: advance_coupled(self.pattern, self.scales, ahead[part], behind[part], words[part]), count,
            rows_worth_a_thread(n + 1),
        )  # fmt: skip
        return ahead, behind


def _advance_part(sampler: Sampler, states: Floats, words: Words, part: slice) -> None:
    advance(sampler.pattern, sampler.scales, states[part], words[part])
