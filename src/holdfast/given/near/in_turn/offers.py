"""Offers of whole noise given equalities, made cell after cell, and how they become draws of the law.

Gaussian noise is drawn by rejection, Laplace noise by a chain that draws variances anew in every step
(docs/theory/walks.md). The compiled steps are in `in_turn_steps.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Array, Floats, Ints, Words
from holdfast.exact.elimination import eliminate
from holdfast.exact.lattice import rational_basis
from holdfast.given.near.in_turn.steps import WORDS, Plan, log_total, offer, prepare, room_for, weigh_mixture
from holdfast.given.problem import Problem
from holdfast.noise.convergence import advanced
from holdfast.randomness import Stream, seeded
from holdfast.workers import in_threads

#: Largest coefficient with which a free cell enters a solved one.
LARGEST_COEFFICIENT = 2**20
#: How many offers the share of accepted ones is measured on: so many chains, so many steps.
TRIED, TRIED_STEPS = 32, 8
#: What is added to the log of the bound on weights, so that rounding never makes an offer weigh more.
SLACK = 1e-6
#: Offers after which a draw is given up; where one in twenty is accepted one in e^500 draws needs more.
MOST_ROUNDS = 10_000
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

    def words(self, count: int, stream: Stream) -> Words:
        """Random words for so many offers."""
        return stream.words(count * self.free * WORDS).reshape(count, self.free, WORDS)

    def noise(self, states: Array, n: int) -> Ints:
        """States in the order of the outputs."""
        result = np.zeros((len(states), n), dtype=np.int64)
        result[:, self.cells] = states
        return result


def _parts(count: int, each: int) -> list[slice]:
    step = max(1, BATCH // each)
    return [slice(start, min(start + step, count)) for start in range(0, count, step)]


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

    def least_share(self) -> float:
        """The share of offers that are accepted, at least: all noise weighs at least 1 and at least Π √(2πv_j).

        Both are proved after Proposition 5 (docs/theory/walks.md).
        """
        volume = 0.5 * float(np.log(2 * math.pi * self.plan.variances).sum())
        return math.exp(max(0.0, volume) - self.limit - SLACK)

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

    def _weighed(self, states: Floats, scales: Floats, words: Words | None) -> Floats:
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

    def start(self, count: int, stream: Stream) -> Array:
        """Offers, made one after the other."""
        return self._offers(count, stream)[0]

    def advance(self, states: Array, stream: Stream) -> Array:
        """Offer a state to every chain."""
        self._taken((states,), stream)
        return states

    def advance_coupled(self, ahead: Array, behind: Array, stream: Stream) -> tuple[Array, Array]:
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
