"""Walks on the whole vectors of a null space: the compiled steps.

A move v is chosen at random and the state u becomes u + t·v, with t drawn from its conditional law: weight
Π w_i(u_i + t·v_i). Bounds are soft: a state beyond a bound is allowed, and each unit costs a factor e^−soft, so a
lattice basis connects all states; a draw is kept when it is within bounds. The law is log-concave in t; it is summed
from its mode outwards until terms fall below CUT of the largest. Two walks are coupled by taking the same move,
shifting one line so that the states are nearest, and drawing the two positions by a maximal coupling; walks on one
line meet at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holdfast.arrays import Floats, Ints, Words, compiled, put

#: Terms below this share of the largest are left out: a draw along a line is that near to its law for each term.
CUT = 1e-16
#: No bound.
FAR = 2**62


class Moves(NamedTuple):
    """What the compiled steps see: moves one after the other, and the law and bounds of each coordinate."""

    starts: Ints  # move k has entries starts[k] … starts[k+1] − 1
    places: Ints
    values: Ints
    rates: Floats  # −log weight is rate·|u|, or rate·u² where `square`; 0 for a coordinate without weight
    square: bool
    low: Ints  # bounds on the noise, ∓FAR for none
    high: Ints
    soft: float  # what each unit beyond a bound adds to −log weight


@compiled(inner=True)
def _energy(moves: Moves, state: Ints, k: int, t: int) -> float:  # pragma: no cover (compiled)
    energy = 0.0
    for e in range(moves.starts[k], moves.starts[k + 1]):
        i = moves.places[e]
        place = state[i] + t * moves.values[e]
        value = np.float64(place)
        energy += moves.rates[i] * (value * value if moves.square else abs(value))
        if place < moves.low[i]:
            energy += moves.soft * np.float64(moves.low[i] - place)
        elif place > moves.high[i]:
            energy += moves.soft * np.float64(place - moves.high[i])
    return energy


@compiled(inner=True)
def _mode(moves: Moves, state: Ints, k: int) -> int:  # pragma: no cover (compiled)
    """The t of least energy: it lies between the places where single terms stop falling, and the energy is convex."""
    first, last = FAR, -FAR
    for e in range(moves.starts[k], moves.starts[k + 1]):
        i, v = moves.places[e], moves.values[e]
        if moves.rates[i] > 0:
            zero = -(state[i] // v)
            first, last = min(first, zero - 1), max(last, zero + 1)
        for bound in (moves.low[i], moves.high[i]):
            if -FAR < bound < FAR:
                zero = (bound - state[i]) // v
                first, last = min(first, zero - 1), max(last, zero + 1)
    while first < last:
        middle = first + (last - first) // 2
        if _energy(moves, state, k, middle + 1) < _energy(moves, state, k, middle):
            first = middle + 1
        else:
            last = middle
    return first


@compiled(inner=True)
def line(moves: Moves, state: Ints, k: int) -> tuple[int, Floats]:  # pragma: no cover (compiled)
    """The law of t on the line of move k: its first value, and probabilities."""
    mode = _mode(moves, state, k)
    lowest = _energy(moves, state, k, mode)
    sides = np.empty((2, 64))
    counts = (0, 0)
    total = 1.0
    for side in range(2):
        step, count = 2 * side - 1, 0
        while True:
            weight = np.exp(lowest - _energy(moves, state, k, mode + step * (count + 1)))
            if weight < CUT:
                break
            if count == sides.shape[1]:
                wider = np.empty((2, 2 * count))
                for other in range(2):
                    put(sides[other], wider[other])
                sides = wider
            sides[side, count] = weight
            total += weight
            count += 1
        counts = (count, counts[1]) if side == 0 else (counts[0], count)
    law = np.empty(counts[0] + 1 + counts[1])
    for t in range(counts[0]):
        law[t] = sides[0, counts[0] - 1 - t] / total
    law[counts[0]] = 1.0 / total
    for t in range(counts[1]):
        law[counts[0] + 1 + t] = sides[1, t] / total
    return mode - counts[0], law


@compiled(inner=True)
def _uniform(word: np.uint64) -> float:  # pragma: no cover (compiled)
    return (np.float64(word >> np.uint64(11)) + 0.5) * 2.0**-53


@compiled(inner=True)
def _pick(law: Floats, uniform: float) -> int:  # pragma: no cover (compiled)
    total, found = 0.0, 0
    for t in range(law.size):
        if law[t] > 0:
            total, found = total + law[t], t
            if total > uniform:
                break
    return found


@compiled(inner=True)
def _go(moves: Moves, state: Ints, k: int, t: int) -> None:  # pragma: no cover (compiled)
    for e in range(moves.starts[k], moves.starts[k + 1]):
        state[moves.places[e]] += t * moves.values[e]


@compiled
def walk(moves: Moves, states: Ints, words: Words) -> None:  # pragma: no cover (compiled)
    """Take words.shape[1] moves from every state, two words each."""
    count = np.uint64(moves.starts.size - 1)
    for c in range(states.shape[0]):
        for m in range(words.shape[1]):
            k = int(words[c, m, 0] % count)
            start, law = line(moves, states[c], k)
            _go(moves, states[c], k, start + _pick(law, _uniform(words[c, m, 1])))


@compiled(inner=True)
def _shift(moves: Moves, ahead: Ints, behind: Ints, k: int) -> int:  # pragma: no cover (compiled)
    """The number s for which behind + s·v is nearest to ahead, by the weights of its coordinates."""
    inner = norm = 0.0
    for e in range(moves.starts[k], moves.starts[k + 1]):
        i = moves.places[e]
        inner += moves.rates[i] * moves.values[e] * (ahead[i] - behind[i])
        norm += moves.rates[i] * moves.values[e] * moves.values[e]
    return int(np.rint(inner / norm))


@compiled
def walk_coupled(moves: Moves, ahead: Ints, behind: Ints, words: Words) -> None:  # pragma: no cover (compiled)
    """Take words.shape[1] coupled moves from every pair, four words each."""
    count = np.uint64(moves.starts.size - 1)
    for c in range(ahead.shape[0]):
        for m in range(words.shape[1]):
            k = int(words[c, m, 0] % count)
            one, law = line(moves, ahead[c], k)
            two, other = line(moves, behind[c], k)
            shift = one + _shift(moves, ahead[c], behind[c], k) - two
            t = _pick(law, _uniform(words[c, m, 1]))
            _go(moves, ahead[c], k, one + t)
            # The same place after the shift, if the other law has it with enough weight; otherwise its residual.
            place = t + shift
            if 0 <= place < other.size and _uniform(words[c, m, 2]) * law[t] <= other[place]:
                _go(moves, behind[c], k, two + place)
                continue
            total = 0.0
            for s in range(other.size):
                same = s - shift
                other[s] = max(0.0, other[s] - (law[same] if 0 <= same < law.size else 0.0))
                total += other[s]
            place = _pick(other, _uniform(words[c, m, 3]) * total)
            _go(moves, behind[c], k, two + place)
