"""Metropolis–Hastings on a hierarchy (TV Algorithm 1): the papers' baseline, used only when it is asked for.

A state is the whole noise of all leaves. A proposal moves every leaf at once by a symmetric step, rounded to the
nearest whole number; parents are the sums of their children; it is accepted with the ratio of the weights. The law of a
draw comes near the conditional law but is not it, and nothing measures how near: no statement holds for such draws, and
they are for studies (`simulate`). Every draw is the last state of a chain of its own, which starts at random, tunes its
step and then runs with it until the start should be forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from holdfast.arguments import Refused, whole
from holdfast.arrays import Array, Floats, Ints, compiled, put
from holdfast.given.problem import Problem, Truth
from holdfast.noise import Independent
from holdfast.noise.spread import Spread
from holdfast.randomness import Stream

UNMEASURED = (
    "method 'metropolis' makes no statement: its draws come from a Markov chain that only comes near its law, and "
    "nothing measures how near; it is for studies, with simulate(): leave method out for a release"
)
#: Share of proposals accepted that the step is tuned to (Roberts, Gelman and Gilks 1997).
ACCEPTANCE = 0.234
#: Steps in which a chain tunes its step, and steps it takes afterwards, for each leaf. On a city of 270 nodes some 23
#: steps per leaf make one effective draw, so the start is forgotten to about e^−17 there.
TUNING, BURN_IN = 100, 200
#: Most outputs: a draw takes some seconds there, and its time grows with the square of their number.
MOST_OUTPUTS = 1_000
#: Widest noise; sums of it stay whole as doubles.
WIDEST = 2.0**36
#: Random words used at once.
BATCH_WORDS = 1 << 20
#: Cells of equal probability on each side of the normal law that steps are drawn from, each uniform in itself, and
#: where the last one ends.
CELLS, LONGEST = 1 << 12, 4.0
#: Shortest step: a leaf then moves in one proposal of a thousand.
SHORTEST = 0.15
#: The step is kept within e to the power of ∓ this many of its first length while it is tuned.
RANGE = 8.0
EDGES: Floats = np.append(ndtri(0.5 + np.arange(CELLS) / (2 * CELLS)), LONGEST)


def refusal(problem: Problem) -> str:
    """Say why this way cannot draw a problem; empty if it can."""
    forest = problem.forest
    if forest is None or problem.depends_on_data or forest.exact.any() or not problem.law.integer:
        return (
            "method 'metropolis' draws whole noise on hierarchies given consistent() and nothing else: leave method out"
        )
    if forest.n > MOST_OUTPUTS:
        return (
            f"method 'metropolis' takes hierarchies of up to {MOST_OUTPUTS} outputs, because its time grows with "
            f"their square, found {forest.n}: leave method out"
        )
    wide = problem.law.variances[forest.is_leaf]
    if np.isinf(wide).any():
        return "method 'metropolis' needs noise on every leaf: measure the leaves, or leave method out"
    if (wide > WIDEST**2).any():
        return "method 'metropolis' takes noise of scales up to 2**36: use a larger epsilon, or leave method out"
    return ""


def accepts(problem: Problem) -> bool:
    """Whether the system is a hierarchy of moderate size and every leaf is measured."""
    return not refusal(problem)


class Tree(NamedTuple):
    """What the compiled steps see; outputs in breadth-first order, so that siblings stand together."""

    leaves: Ints
    lengths: Floats  # the standard deviation of each leaf
    inner: Ints  # children before parents
    first: Ints  # children of inner[k]: first[k] … last[k]−1
    last: Ints
    rates: Floats  # −log weight is rate·|u|, or rate·u² where `square`
    square: bool


@compiled(inner=True, fastmath={"reassoc", "contract"})
def _energy(tree: Tree, values: Floats) -> float:  # pragma: no cover (compiled)
    """Sum up the leaves; return −log weight."""
    for k in range(tree.inner.size):
        total = 0.0
        for v in range(tree.first[k], tree.last[k]):
            total += values[v]
        values[tree.inner[k]] = total
    energy = 0.0
    if tree.square:
        for v in range(values.size):
            energy += tree.rates[v] * values[v] * values[v]
    else:
        for v in range(values.size):
            energy += tree.rates[v] * abs(values[v])
    return energy


@compiled
def _advance(
    tree: Tree,
    values: Floats,
    log_steps: Floats,
    words: npt.NDArray[np.uint64],
    edges: Floats,
    acceptance: float,
    done: int,
    thin: int,
    kept: Floats,
) -> int:  # pragma: no cover (compiled)
    """Take words.shape[1] steps in every chain; return how many proposals were accepted.

    While `acceptance` is above 0 the step is tuned towards it (Robbins–Monro; `done` steps were tuned before).
    """
    count, steps, width = words.shape
    number = tree.leaves.size
    largest = edges.size - 2
    first_step = np.log(2.38 / np.sqrt(number))
    accepted = 0
    proposal = np.zeros(values.shape[1])
    for c in range(count):
        state = values[c]
        energy = _energy(tree, state)
        put(state, proposal)
        for t in range(steps):
            step = np.exp(log_steps[c])
            for i in range(number):
                word = words[c, t, i]
                cell = np.int64((word >> np.uint64(1)) & np.uint64(largest))
                share = np.float64(word >> np.uint64(13)) * 2.0**-51
                sign = 1.0 - 2.0 * np.float64(word & np.uint64(1))
                move = sign * (edges[cell] + share * (edges[cell + 1] - edges[cell]))
                place = tree.leaves[i]
                proposal[place] = state[place] + np.rint(max(step * tree.lengths[i], SHORTEST) * move)
            then = _energy(tree, proposal)
            uniform = (np.float64(words[c, t, width - 1] >> np.uint64(12)) + 0.5) * 2.0**-52
            moved = then < energy - np.log(uniform)
            if moved:
                energy = then
                put(proposal, state)
                accepted += 1
            if acceptance > 0:
                change = (moved - acceptance) / (done + t + 1.0) ** 0.6
                log_steps[c] = min(max(log_steps[c] + change, first_step - RANGE), first_step + RANGE)
            if thin and (t + 1) % thin == 0:
                for i in range(number):
                    kept[c, t // thin, i] = state[tree.leaves[i]]
    return accepted


@dataclass(frozen=True, eq=False)
class Target:
    """The conditional law that chains aim at."""

    tree: Tree
    order: Ints
    law: Independent

    @classmethod
    def of(cls, problem: Problem) -> Target:
        """Write a problem that this way accepts out for the compiled steps."""
        forest = problem.forest
        assert forest is not None
        (_, start), order, law = forest.children, forest.order, problem.law
        children = np.diff(start)[order]
        ends = np.cumsum(children) + int((forest.parents < 0).sum())
        inner, leaves = np.flatnonzero(children)[::-1], np.flatnonzero(children == 0)
        square = law.kind == "gaussian"
        rates = [0.0 if scale is None else float(1 / (2 * scale if square else scale)) for scale in law.scale_values]
        tree = Tree(
            leaves,
            np.sqrt(law.variances[order][leaves]),
            np.ascontiguousarray(inner),
            (ends - children)[inner],
            ends[inner],
            law.of_output(rates)[order],
            square,
        )
        return cls(tree, order, law.at(order[leaves]))

    @property
    def dimension(self) -> int:
        return int(self.tree.leaves.size)


@dataclass(eq=False)
class Chains:
    """Independent chains with one target: their states, and the step each has been tuned to."""

    target: Target
    values: Floats
    log_steps: Floats
    tuned: int = 0

    @classmethod
    def started(cls, target: Target, count: int, stream: Stream) -> Chains:
        """Chains that start at random: leaves from their own law."""
        values = np.zeros((count, target.order.size))
        values[:, target.tree.leaves] = target.law.draw(count, stream)
        return cls(target, values, np.full(count, np.log(2.38 / np.sqrt(target.dimension))))

    def run(self, steps: int, stream: Stream, thin: int = 0, acceptance: float = 0.0) -> tuple[float, Floats]:
        """Take steps, tuned towards an acceptance rate above 0; return the rate, and every `thin`-th state's leaves."""
        count, width = len(self.values), self.target.dimension + 1
        most = max(1, BATCH_WORDS // (count * width))
        most = max(thin, most // thin * thin) if thin else most
        kept = np.empty((count, steps // thin if thin else 0, self.target.dimension))
        accepted = done = 0
        while done < steps:
            now = min(most, steps - done)
            words = stream.words(count * now * width).reshape(count, now, width)
            part = np.empty((count, now // thin if thin else 0, self.target.dimension))
            how = (EDGES, acceptance, self.tuned, thin, part)
            accepted += _advance(self.target.tree, self.values, self.log_steps, words, *how)
            if thin:
                kept[:, done // thin : done // thin + part.shape[1]] = part
            done += now
            self.tuned += now if acceptance > 0 else 0
        return accepted / max(1, count * steps), kept


def warmed(target: Target, count: int, stream: Stream, acceptance: float = ACCEPTANCE) -> Chains:
    """Chains that have tuned their step and forgotten their start."""
    chains = Chains.started(target, count, stream)
    chains.run(TUNING * target.dimension, stream, acceptance=acceptance)
    chains.run(BURN_IN * target.dimension, stream)
    return chains


def draw(problem: Problem, truth: Truth, size: int, stream: Stream) -> Array:
    """Draw noise for the whole hierarchy at once, (size, n), from `size` independent chains.

    Law: near that of independent noise given that parents equal the sum of their children, which holds exactly.
    """
    del truth  # the law does not depend on it
    target = Target.of(problem)
    noise = np.empty((size, target.order.size), dtype=np.int64)
    together = max(1, BATCH_WORDS // ((target.dimension + 1) * (TUNING + BURN_IN) * target.dimension))
    for start in range(0, size, together):
        stop = min(start + together, size)
        noise[start:stop, target.order] = warmed(target, stop - start, stream).values
    return noise


def spread(problem: Problem) -> Spread:
    """Nothing is known of the errors of such draws; refused."""
    del problem
    raise Refused(UNMEASURED)


@dataclass(frozen=True, eq=False)
class Diagnostics:
    """What several chains tell about their convergence. It is evidence and proves nothing.

    `effective` and `r_hat` have one entry per leaf: effective number of draws in `steps` steps of all chains, and the
    split R-hat.
    """

    steps: int
    acceptance: float
    effective: Floats
    r_hat: Floats

    @property
    def steps_per_draw(self) -> float:
        least = float(self.effective.min())
        return self.steps / least if least else np.inf


def diagnose(problem: Problem, stream: Stream, *, chains: int = 4, steps: int) -> Diagnostics:
    """Run several chains for so many steps each, after tuning and burn-in, and look at them."""
    if reason := refusal(problem):
        raise Refused(reason)
    target = Target.of(problem)
    thin = max(1, target.dimension // 4)
    running = warmed(target, whole("chains", chains, at_least=2), stream)
    acceptance, states = running.run(whole("steps", steps, at_least=8 * thin), stream, thin)
    return Diagnostics(chains * steps, acceptance, effective_draws(states), split_r_hat(states))


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
