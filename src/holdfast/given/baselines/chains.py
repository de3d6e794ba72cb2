"""Markov chains on a hierarchy: the compiled steps of TV Algorithm 1.

A state is the noise of all leaves. A proposal moves every leaf at once by a symmetric step; parents are solved as the
sums of their children; it is accepted with the ratio of the weights, and never when a bound is broken. Below an exact
output one leaf is solved as well, such that the sum stays. Whole noise moves by steps rounded to the nearest whole
number: every combination of −1, 0 and 1 can occur, and these connect all tables within bounds on a hierarchy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from holdfast.arguments import LARGEST
from holdfast.arrays import Floats, Ints, compiled, put
from holdfast.given.problem import Problem, Truth
from holdfast.noise import Independent
from holdfast.randomness import Stream
from holdfast.trees import Forest

#: Random words used at once.
BATCH_WORDS = 1 << 20
#: Cells of equal probability on each side of the normal law that steps are drawn from; a step is uniform in its cell.
CELLS = 1 << 12
#: Where the last cell ends.
LONGEST = 4.0
#: Shortest step of whole noise: a leaf then moves in one proposal of a thousand.
SHORTEST = 0.15
#: The step is kept within e to the power of ∓ this many of its first length while it is tuned.
RANGE = 8.0

EDGES: Floats = np.append(ndtri(0.5 + np.arange(CELLS) / (2 * CELLS)), LONGEST)


class Tree(NamedTuple):
    """What the compiled steps see; outputs in breadth-first order, so that siblings stand together."""

    moving: Ints  # leaves that proposals move
    lengths: Floats  # unit of each one's step
    solved: Ints  # leaves below exact outputs that are minus the sum of the others there
    start: Ints  # solved[k] = −Σ values[others[start[k]:start[k+1]]]
    others: Ints
    inner: Ints  # children before parents
    first: Ints  # children of inner[k]: first[k] … last[k]−1
    last: Ints
    rates: Floats  # −log weight is rate·|u|, or rate·u² where `square`
    square: bool
    whole: bool
    bounded: Ints  # outputs with bounds, and the bounds on their noise
    low: Floats
    high: Floats


@compiled(inner=True, fastmath={"reassoc", "contract"})
def _energy(tree: Tree, values: Floats) -> float:  # pragma: no cover (compiled)
    """Solve everything from the moving leaves; return −log weight, infinite when a bound is broken."""
    for k in range(tree.solved.size):
        total = 0.0
        for i in range(tree.start[k], tree.start[k + 1]):
            total += values[tree.others[i]]
        values[tree.solved[k]] = -total
    for k in range(tree.inner.size):
        total = 0.0
        for v in range(tree.first[k], tree.last[k]):
            total += values[v]
        values[tree.inner[k]] = total
    for k in range(tree.bounded.size):
        value = values[tree.bounded[k]]
        if value < tree.low[k] or value > tree.high[k]:
            return np.inf
    energy = 0.0
    if tree.square:
        for v in range(values.size):
            energy += tree.rates[v] * values[v] * values[v]
    else:
        for v in range(values.size):
            energy += tree.rates[v] * abs(values[v])
    return energy


@compiled
def _settle(tree: Tree, values: Floats, energies: Floats) -> None:  # pragma: no cover (compiled)
    """Halve the moving leaves of each state until all bounds hold; without any noise they do."""
    for c in range(energies.size):
        state = values[c]
        energies[c] = _energy(tree, state)
        tries = 0
        while energies[c] == np.inf:
            tries += 1
            for v in tree.moving:
                half = state[v] / 2 if tries < 64 else 0.0
                state[v] = np.trunc(half) if tree.whole else half
            energies[c] = _energy(tree, state)


@compiled
def _advance(
    tree: Tree,
    values: Floats,
    energies: Floats,
    log_steps: Floats,
    words: npt.NDArray[np.uint64],
    edges: Floats,
    acceptance: float,
    done: int,
    thin: int,
    kept: Floats,
    leaves: Ints,
) -> int:  # pragma: no cover (compiled)
    """Take words.shape[1] steps in every chain; return how many proposals were accepted.

    While `acceptance` is above 0 the step is tuned towards it (Robbins–Monro; `done` steps were tuned before).
    """
    count, steps, width = words.shape
    number = tree.moving.size
    largest = edges.size - 2
    first_step = np.log(2.38 / np.sqrt(number))
    accepted = 0
    proposal = np.zeros(values.shape[1])
    for c in range(count):
        state = values[c]
        put(state, proposal)
        step = np.exp(log_steps[c])
        for t in range(steps):
            for i in range(number):
                word = words[c, t, i]
                cell = np.int64((word >> np.uint64(1)) & np.uint64(largest))
                share = np.float64(word >> np.uint64(13)) * 2.0**-51
                length = step * tree.lengths[i]
                if tree.whole:
                    length = max(length, SHORTEST)
                sign = 1.0 - 2.0 * np.float64(word & np.uint64(1))
                move = sign * length * (edges[cell] + share * (edges[cell + 1] - edges[cell]))
                if tree.whole:
                    move = np.rint(move)
                proposal[tree.moving[i]] = state[tree.moving[i]] + move
            energy = _energy(tree, proposal)
            uniform = (np.float64(words[c, t, width - 1] >> np.uint64(12)) + 0.5) * 2.0**-52
            moved = energy < energies[c] - np.log(uniform)
            if moved:
                energies[c] = energy
                for v in range(state.size):
                    state[v] = proposal[v]
                accepted += 1
            if acceptance > 0:
                change = (moved - acceptance) / (done + t + 1.0) ** 0.6
                log_steps[c] = min(max(log_steps[c] + change, first_step - RANGE), first_step + RANGE)
                step = np.exp(log_steps[c])
            if thin and (t + 1) % thin == 0:
                for i in range(leaves.size):
                    kept[c, t // thin, i] = state[leaves[i]]
    return accepted


@dataclass(frozen=True, eq=False)
class Target:
    """The conditional law that chains aim at."""

    tree: Tree
    order: Ints
    leaves: Ints
    exact: npt.NDArray[np.bool_]
    law: Independent

    @classmethod
    def of(cls, problem: Problem, forest: Forest, truth: Truth) -> Target:
        """Write a problem on a forest out for the compiled steps."""
        (_, start), order = forest.children, forest.order
        low, high = _noise_bounds(problem, forest, truth)
        exact = forest.exact | (low >= high)
        position = np.empty(forest.n, dtype=np.int64)
        position[order] = np.arange(forest.n)
        parents = np.where(forest.parents < 0, -1, position[forest.parents])[order]
        children = np.diff(start)[order]
        ends = np.cumsum(children) + int((parents < 0).sum())
        inner = np.flatnonzero(children)[::-1]
        leaves = np.flatnonzero((children == 0) & ~exact[order])
        variances = problem.law.variances[order]
        low, high = low[order], high[order]
        lengths = np.minimum(np.sqrt(variances), (high - low) / 2)
        solved, others = _solved(parents, exact[order], leaves, lengths)
        moving = np.setdiff1d(leaves, solved)
        bounded = np.flatnonzero((np.isfinite(low) | np.isfinite(high)) & ~exact[order])
        square = problem.law.kind == "gaussian"
        tree = Tree(
            moving,
            lengths[moving],
            solved,
            np.cumsum([0, *map(len, others)], dtype=np.int64),
            np.concatenate([*others, np.empty(0, dtype=np.int64)]),
            np.ascontiguousarray(inner),
            (ends - children)[inner],
            ends[inner],
            _rates(problem.law, square)[order],
            square,
            problem.law.integer,
            bounded,
            low[bounded],
            high[bounded],
        )
        return cls(tree, order, leaves, exact, problem.law.at(order[moving]))

    @property
    def dimension(self) -> int:
        return int(self.tree.moving.size)

    def noise(self, leaves: Floats) -> npt.NDArray[Any]:
        """Noise of all outputs, (size, n), from that of the leaves that are not exact, (size, leaves)."""
        values = np.zeros((len(leaves), self.order.size))
        values[:, self.leaves] = leaves
        for v, first, last in zip(self.tree.inner, self.tree.first, self.tree.last, strict=True):
            values[:, v] = values[:, first:last].sum(axis=1)
        result = np.empty(values.shape, dtype=np.int64 if self.tree.whole else np.float64)
        result[:, self.order] = values
        result[:, self.exact] = 0
        return result


def _rates(law: Independent, square: bool) -> Floats:
    found = [0.0 if scale is None else float(1 / (2 * scale if square else scale)) for scale in law.scale_values]
    return law.of_output(found)


def _noise_bounds(problem: Problem, forest: Forest, truth: Truth) -> tuple[Floats, Floats]:
    """Bounds on the noise, ∓inf for none. A truth that holds leaves room for no noise at all."""
    if problem.law.integer:
        whole = None if truth is None else np.asarray(truth, dtype=np.int64)
        least, most = forest.noise_bounds(problem.system, whole, problem.unit)
        low = np.where(least > -LARGEST, least, -np.inf)
        high = np.where(most < LARGEST, most, np.inf)
    else:
        real_low, real_high = problem.system.real_bounds()
        centre = np.zeros(forest.n) if truth is None else truth
        low, high = real_low / float(problem.unit) - centre, real_high / float(problem.unit) - centre
    return np.minimum(low, 0.0), np.maximum(high, 0.0)


def _solved(parents: Ints, exact: npt.NDArray[np.bool_], leaves: Ints, lengths: Floats) -> tuple[Ints, list[Ints]]:
    """One leaf below each exact output that has free ones, the widest, and the others beside it.

    A leaf belongs to the nearest exact output above it: the noise of all that belong to one adds up to 0.
    """
    nearest = np.full(parents.size, -1, dtype=np.int64)
    for v in range(parents.size):  # parents come before children
        nearest[v] = v if exact[v] else -1 if parents[v] < 0 else nearest[parents[v]]
    solved, others = [], []
    for anchor in np.unique(nearest[leaves]):
        if anchor >= 0:
            group = leaves[nearest[leaves] == anchor]
            widest = group[np.argmax(lengths[group])]
            solved.append(widest)
            others.append(group[group != widest])
    return np.array(solved, dtype=np.int64), others


@dataclass(eq=False)
class Chains:
    """Independent chains with one target: their states, and the step each has been tuned to."""

    target: Target
    values: Floats
    energies: Floats
    log_steps: Floats
    tuned: int = 0

    @classmethod
    def started(cls, target: Target, count: int, stream: Stream) -> Chains:
        """Chains that start at random: leaves from their own law, within their bounds.

        Where bounds above them or on solved leaves are then broken, the noise is halved until all hold.
        """
        tree = target.tree
        values = np.zeros((count, target.order.size))
        values[:, tree.moving] = target.law.draw(count, stream)
        values[:, tree.bounded] = np.clip(values[:, tree.bounded], tree.low, tree.high)
        energies = np.empty(count)
        _settle(tree, values, energies)
        return cls(target, values, energies, np.full(count, np.log(2.38 / np.sqrt(target.dimension))))

    @property
    def step(self) -> float:
        """The step, averaged over chains: a multiple of each leaf's standard deviation or half width."""
        return float(np.exp(self.log_steps.mean()))

    def tune(self, steps: int, stream: Stream, acceptance: float) -> None:
        """Take steps while their length is tuned towards an acceptance rate."""
        self._advance(steps, stream, acceptance, 0)

    def run(self, steps: int, stream: Stream, thin: int = 0) -> tuple[float, Floats]:
        """Take steps; return the acceptance rate, and the leaves of every `thin`-th state, (chains, states, leaves)."""
        return self._advance(steps, stream, 0.0, thin)

    @property
    def leaves(self) -> Floats:
        """The noise of the leaves that are not exact, (chains, leaves)."""
        return self.values[:, self.target.leaves]

    def _advance(self, steps: int, stream: Stream, acceptance: float, thin: int) -> tuple[float, Floats]:
        count, width = len(self.values), self.target.dimension + 1
        most = max(1, BATCH_WORDS // (count * width))
        most = max(thin, most // thin * thin) if thin else most
        kept = np.empty((count, steps // thin if thin else 0, self.target.leaves.size))
        accepted = done = 0
        while done < steps:
            now = min(most, steps - done)
            words = stream.words(count * now * width).reshape(count, now, width)
            part = np.empty((count, now // thin if thin else 0, self.target.leaves.size))
            accepted += _advance(
                self.target.tree,
                self.values,
                self.energies,
                self.log_steps,
                words,
                EDGES,
                acceptance,
                self.tuned,
                thin,
                part,
                self.target.leaves,
            )
            if thin:
                kept[:, done // thin : done // thin + part.shape[1]] = part
            done += now
            if acceptance > 0:
                self.tuned += now
        return accepted / max(1, count * steps), kept
