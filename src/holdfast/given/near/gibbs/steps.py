"""The compiled steps of block Gibbs sampling for Laplace noise on a null space (Park and Casella 2008).

A Laplace number of scale 1 is normal with a variance τ that is exponential with mean 2. Given the noise u, the
variances are independent with density (2πτ)^(−1/2)·e^{−(τ−|u|)²/2τ}: with y the square of a standard normal number and
T = |u| + y/2 + √(|u|y + y²/4), τ is T with probability T/(T+|u|) and u²/T otherwise (Michael, Schucany and Haas
1976). Given the variances, the noise is a normal vector on the null space: Z − diag(τ)Aᵀ(A·diag(τ)·Aᵀ)⁻¹AZ.

Two copies are coupled by a maximal coupling of each variance and common normal numbers: where all variances agree, so
does the noise.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from holdfast.arrays import compiled
from holdfast.given.near.gibbs.cholesky import Pattern, correct, factorise
from holdfast.noise.draws.normals import normal

#: Random words for each output in one step.
WORDS = 3
#: Tries for what a maximal coupling leaves over; laws so near each other that more are needed hardly ever come to it.
MOST_TRIES = 100_000


@compiled(inline="always")
def _variance(size: float, bits: np.uint64, more: np.uint64) -> float:  # pragma: no cover (compiled)
    root = normal(bits)
    half = 0.5 * root * root
    larger = size + half + math.sqrt(2.0 * size * half + half * half)
    uniform = (np.float64(more >> np.uint64(12)) + 0.5) * 2.0**-52
    return larger if uniform * (larger + size) < larger else size * size / larger


@compiled(inner=True)
def _noise(a: Pattern, scales: Any, tau: Any, rooms: Any, places: Any, state: Any) -> None:
    # pragma: no cover (compiled)
    """Write the noise that has these variances (in units of scale²); `state` comes in as standard normal numbers."""
    n, r = state.size, a.sum_start.size - 1
    work, right, factor = rooms[:r], rooms[r : 2 * r], rooms[2 * r :]
    used = places[:r]
    for i in range(n):
        tau[i] = max(tau[i], 1e-290) * scales[i] * scales[i]
        state[i] *= math.sqrt(tau[i])
    factorise(a, tau, work, used, factor, places[r:])
    correct(a, tau, factor, places[r:], state, right)


@compiled
def advance(a: Pattern, scales: Any, states: Any, words: Any) -> None:  # pragma: no cover (compiled)
    """Take words.shape[1] steps with every row of states, (count, n), words (count, steps, 3n)."""
    count, n = states.shape
    r = a.sum_start.size - 1
    tau, rooms = np.empty(n), np.zeros(2 * r + a.place_start[-1])
    places = np.empty(r + a.place_start[-1], np.int64)
    for c in range(count):
        state = states[c]
        for t in range(words.shape[1]):
            given = words[c, t]
            for i in range(n):
                tau[i] = _variance(abs(state[i]) / scales[i], given[i], given[n + i])
                state[i] = normal(given[2 * n + i])
            _noise(a, scales, tau, rooms, places, state)


@compiled(inline="always")
def next_word(seed: Any) -> np.uint64:  # pragma: no cover (compiled)
    """The next word of SplitMix64, good enough to measure run lengths with; draws never use it."""
    seed[0] += np.uint64(0x9E3779B97F4A7C15)
    z = seed[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compiled(inline="always")
def _gain(tau: float, here: float, there: float) -> float:  # pragma: no cover (compiled)
    """The log of the ratio of the densities of a variance at sizes `there` and `here`."""
    return (there - here) * (1.0 - (there + here) / (2.0 * tau))


@compiled
def advance_coupled(
    a: Pattern, scales: Any, first: Any, second: Any, words: Any
) -> None:  # pragma: no cover (compiled)
    """Take one step with every pair of rows, coupled; words (count, n + 1): the last one seeds what else is needed."""
    count, n = first.shape
    r = a.sum_start.size - 1
    rooms, places = np.zeros(2 * r + a.place_start[-1]), np.empty(r + a.place_start[-1], np.int64)
    tau, other = np.empty(n), np.empty(n)
    seed = np.empty(1, np.uint64)
    for c in range(count):
        seed[0] = words[c, n]
        for i in range(n):
            here, there = abs(first[c, i]) / scales[i], abs(second[c, i]) / scales[i]
            tau[i] = _variance(here, next_word(seed), next_word(seed))
            log_uniform = math.log((np.float64(next_word(seed) >> np.uint64(12)) + 0.5) * 2.0**-52)
            other[i] = tau[i]
            if log_uniform >= _gain(tau[i], here, there):
                for _ in range(MOST_TRIES):
                    other[i] = _variance(there, next_word(seed), next_word(seed))
                    log_uniform = math.log((np.float64(next_word(seed) >> np.uint64(12)) + 0.5) * 2.0**-52)
                    if log_uniform >= _gain(other[i], there, here):
                        break
            first[c, i] = second[c, i] = normal(words[c, i])
        _noise(a, scales, tau, rooms, places, first[c])
        _noise(a, scales, other, rooms, places, second[c])
