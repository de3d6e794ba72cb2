"""Metropolis–Hastings on a hierarchy (TV Algorithm 1): the papers' baseline, used only when it is asked for.

The law of a draw comes near the conditional law but is not it, and nothing measures how near: no statement holds for
such draws, and they are for studies (`simulate`). Every draw is the last state of a chain of its own, so draws are
independent: the chain starts at random, tunes its step and then runs with it until the start should be forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from holdfast.arguments import Refused, whole
from holdfast.arrays import Array, Floats
from holdfast.given.baselines.chains import BATCH_WORDS, Chains, Target
from holdfast.given.problem import Problem, Truth
from holdfast.noise.spread import Spread, simulated_spread
from holdfast.randomness import Stream, seeded
from holdfast.trees import Forest

UNMEASURED = (
    "method 'metropolis' makes no statement: its draws come from a Markov chain that only comes near its law, and "
    "nothing measures how near; it is for studies, with simulate(): leave method out for a release"
)
#: Share of proposals accepted that the step is tuned to (Roberts, Gelman and Gilks 1997).
ACCEPTANCE = 0.234
#: Steps in which a chain tunes its step, and steps it takes afterwards, for each leaf that moves freely. On a city of
#: 270 nodes some 23 steps per leaf make one effective draw, so the start is forgotten to about e^−17 there.
TUNING, BURN_IN = 100, 200
#: Least number of either.
FEWEST = 200
#: Most outputs: a draw takes some seconds there, and its time grows with the square of their number.
MOST_OUTPUTS = 1_000
#: Widest noise in whole numbers; sums of it stay whole as doubles.
WIDEST = 2.0**36


def refusal(problem: Problem) -> str:
    """Say why this way cannot draw a problem; empty if it can."""
    forest = Forest.of(problem.system)
    if forest is None:
        return (
            "method 'metropolis' draws hierarchies, given consistent() together with exact or fixed outputs and "
            "bounds: leave method out for other constraints"
        )
    if forest.n > MOST_OUTPUTS:
        return (
            f"method 'metropolis' takes hierarchies of up to {MOST_OUTPUTS} outputs, because its time grows with "
            f"their square, found {forest.n}: leave method out"
        )
    wide = problem.law.variances[forest.is_leaf & ~forest.exact]
    if np.isinf(wide).any():
        return "method 'metropolis' needs noise on every leaf that is not exact: measure the leaves, or fix them"
    if problem.law.integer and (wide > WIDEST**2).any():
        return "method 'metropolis' takes integer noise of scales up to 2**36: use a larger epsilon or integer=False"
    return ""


def accepts(problem: Problem) -> bool:
    """Whether the system is a hierarchy of moderate size and every free leaf is measured."""
    return not refusal(problem)


def target_of(problem: Problem, truth: Truth) -> Target:
    """The conditional law of a problem that this way accepts, as chains see it."""
    forest = Forest.of(problem.system)
    assert forest is not None
    return Target.of(problem, forest, truth)


def _lengths(target: Target) -> tuple[int, int]:
    return max(FEWEST, TUNING * target.dimension), max(FEWEST, BURN_IN * target.dimension)


def warmed(target: Target, count: int, stream: Stream, acceptance: float = ACCEPTANCE) -> Chains:
    """Chains that have tuned their step and forgotten their start."""
    tuning, burn_in = _lengths(target)
    chains = Chains.started(target, count, stream)
    chains.tune(tuning, stream, acceptance)
    chains.run(burn_in, stream)
    return chains


def draw(problem: Problem, truth: Truth, size: int, stream: Stream) -> Array:
    """Draw noise for the whole hierarchy at once, (size, n), from `size` independent chains.

    Law: near that of independent noise given that parents equal the sum of their children, exact and fixed outputs have
    no noise, and every bound holds. What must hold, holds exactly (real noise adds up to the rounding of doubles).
    """
    target = target_of(problem, truth)
    leaves = np.zeros((size, target.leaves.size))
    if target.dimension:
        together = max(1, BATCH_WORDS // ((target.dimension + 1) * sum(_lengths(target))))
        for start in range(0, size, together):
            count = min(together, size - start)
            leaves[start : start + count] = warmed(target, count, stream).leaves
    return target.noise(leaves)


def spread(problem: Problem) -> Spread | None:
    """Errors measured on states of one long chain, as many steps apart as leaves move; None where data matter."""
    if problem.depends_on_data:
        return None
    target = target_of(problem, None)

    def states(size: int) -> Array:
        if not target.dimension:
            return target.noise(np.zeros((size, target.leaves.size)))
        stream, thin = seeded(0), target.dimension
        _, kept = warmed(target, 1, stream).run(size * thin, stream, thin)
        return target.noise(kept[0])

    return simulated_spread(states, chains=1)


@dataclass(frozen=True, eq=False)
class Diagnostics:
    """What several chains tell about their convergence. It is evidence and proves nothing.

    `steps` are those of each chain after tuning and burn-in. `effective` and `r_hat` have one entry per leaf that is
    not exact: effective number of draws in all chains together, and the split R-hat.
    """

    chains: int
    steps: int
    step: float
    acceptance: float
    effective: Floats
    r_hat: Floats

    @classmethod
    def of(cls, chains: Chains, steps: int, acceptance: float, states: Floats) -> Diagnostics:
        """Look at the states, (chains, states, leaves), that chains kept over so many steps."""
        return cls(len(states), steps, chains.step, acceptance, effective_draws(states), split_r_hat(states))

    @property
    def least_effective(self) -> float:
        return float(self.effective.min())

    @property
    def median_effective(self) -> float:
        return float(np.median(self.effective))

    @property
    def steps_per_draw(self) -> float:
        return self.chains * self.steps / self.least_effective if self.least_effective else np.inf

    def __str__(self) -> str:
        return (
            f"{self.chains} chains of {self.steps} steps, {self.acceptance:.0%} accepted with step {self.step:.3g}; "
            f"effective draws: least {self.least_effective:,.0f}, median {self.median_effective:,.0f} "
            f"({self.steps_per_draw:,.0f} steps each); R-hat at most {self.r_hat.max():.3f}"
        )


def diagnose(
    problem: Problem,
    truth: Truth,
    stream: Stream,
    *,
    chains: int = 4,
    steps: int | None = None,
    acceptance: float = ACCEPTANCE,
) -> Diagnostics:
    """Run several chains and look at them. With bounds the result depends on the truth: use a public guess.

    `steps` are those of each chain after tuning and burn-in; None takes 1,000 for each leaf that moves freely.
    """
    if reason := refusal(problem):
        raise Refused(reason)
    target = target_of(problem, truth)
    dimension = target.dimension
    if not dimension:
        raise Refused("what must hold leaves no leaf free, so there is no chain to look at: ask for less to be exact")
    thin = max(1, dimension // 4)
    asked = 1_000 * dimension if steps is None else whole("steps", steps, at_least=8 * thin)
    running = warmed(target, whole("chains", chains, at_least=2), stream, acceptance)
    return Diagnostics.of(running, asked, *running.run(asked, stream, thin))


def effective_draws(states: Floats) -> Floats:
    """Effective number of draws of each coordinate, states of shape (chains, states, coordinates).

    Geyer's initial monotone sequence on autocovariances averaged over chains; 0 for a coordinate that never moves.
    """
    count, length, coordinates = states.shape
    result = np.zeros(coordinates)
    for j in range(coordinates):
        centred = states[:, :, j] - states[:, :, j].mean(axis=1, keepdims=True)
        power = np.abs(np.fft.rfft(centred, 2 * length)) ** 2
        covariances = np.fft.irfft(power, axis=1)[:, :length].mean(axis=0)
        if covariances[0] <= 0:
            continue
        even = length // 2 * 2
        pairs = covariances[0:even:2] + covariances[1:even:2]
        negative = np.flatnonzero(pairs <= 0)
        pairs = np.minimum.accumulate(pairs[: negative[0]] if negative.size else pairs)
        result[j] = count * length / max(2 * pairs.sum() / covariances[0] - 1, 1e-3)
    return result


def split_r_hat(states: Floats) -> Floats:
    """Split R-hat of each coordinate: 1 when halves of chains agree; infinite when they stand still apart."""
    half = states.shape[1] // 2
    halves = np.concatenate([states[:, :half], states[:, half : 2 * half]])
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = halves.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.sqrt((half - 1) / half + between / within)
    return np.where(within > 0, ratio, np.where(between > 0, np.inf, 1.0))
