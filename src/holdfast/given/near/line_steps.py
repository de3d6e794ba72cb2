"""The compiled steps of Gibbs sampling along directions of a null space, each drawn from its exact law on the line.

A state is held by free coordinates c; all coordinates (outputs, and the left-hand sides of inequalities) are w = B·c.
On the line w + t·v Laplace noise has a density that is exponential between the places where outputs cross 0, and
Gaussian noise a normal one; bounds cut both. Draws are quantiles, so that tails are as fine as the middle.

Two copies move along the same directions. Along those of the basis, each of which changes one free coordinate, that
coordinate is coupled maximally where the two laws are near each other; everything else uses common quantiles, which
brings the copies together.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from holdfast.arrays import Floats, Ints, compiled
from holdfast.noise.draws.normals import log_tail, quantile_of_log_tail, quantile_of_tail

#: Laws whose middles differ by less than this share of the width of their middle halves, divided by the number of free
#: coordinates, are coupled maximally: then all of them succeed together with some luck.
NEAR = 2.0
#: Tries for what a maximal coupling leaves over; laws so near each other that more are needed hardly ever come to it.
MOST_TRIES = 100_000


class Lines(NamedTuple):
    """What the compiled steps see. The first directions are the basis: direction k changes free coordinate k alone."""

    start: Ints  # direction k: entries start[k] … start[k+1]−1
    place: Ints  # coordinates that move, and by how much
    value: Floats
    free_start: Ints  # free coordinates that move, and by how much
    free_place: Ints
    free_value: Floats
    rates: Floats  # of each coordinate: −log weight is rate·|w|, or rate·w²/2 where `square`; 0 for none
    square: bool
    low: Floats  # bounds on each coordinate
    high: Floats


@compiled(inline="always")
def next_word(seed: Any) -> np.uint64:  # pragma: no cover (compiled)
    """The next word of SplitMix64, good enough to measure run lengths with; draws never use it."""
    seed[0] += np.uint64(0x9E3779B97F4A7C15)
    z = seed[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compiled
def _pieces(a: Lines, w: Any, k: int, room: Any) -> tuple[int, float]:  # pragma: no cover (compiled)
    """Describe the law on line k: room[0] places, [1] energies, [2] slopes after them, [3] masses; their number, log Z.

    For Gaussian noise room[0] holds the bounds in standard units, room[1] the middle and the deviation.
    """
    low, high = -np.inf, np.inf
    for p in range(a.start[k], a.start[k + 1]):
        i, v = a.place[p], a.value[p]
        first, last = (a.low[i] - w[i]) / v, (a.high[i] - w[i]) / v
        if v < 0:
            first, last = last, first
        low, high = max(low, first), min(high, last)
    low, high = min(low, 0.0), max(high, 0.0)
    if a.square:
        precision, pull = 0.0, 0.0
        for p in range(a.start[k], a.start[k + 1]):
            i, v = a.place[p], a.value[p]
            precision += a.rates[i] * v * v
            pull -= a.rates[i] * v * w[i]
        middle, deviation = pull / precision, 1.0 / math.sqrt(precision)
        room[0, 0], room[0, 1] = (low - middle) / deviation, (high - middle) / deviation
        room[1, 0], room[1, 1] = middle, deviation
        return 2, _log_mass(room[0, 0], room[0, 1]) + math.log(deviation)
    count, slope = 1, 0.0
    room[0, 0] = low
    for p in range(a.start[k], a.start[k + 1]):
        i, v = a.place[p], a.value[p]
        rate = a.rates[i] * abs(v)
        if rate == 0.0:
            continue
        at = -w[i] / v
        if at <= low:
            slope += rate
        else:
            slope -= rate
            if at < high:  # insertion keeps the places in order; room[3] holds the change of the slope meanwhile
                q = count
                while q > 1 and room[0, q - 1] > at:
                    room[0, q], room[3, q] = room[0, q - 1], room[3, q - 1]
                    q -= 1
                room[0, q], room[3, q] = at, 2.0 * rate
                count += 1
    room[0, count] = high
    # Energies are counted from the lowest place: the slope rises, so it is where the slope turns positive.
    room[2, 0] = slope
    for q in range(1, count):
        room[2, q] = room[2, q - 1] + room[3, q]
    best = 0
    while best < count and room[2, best] < 0.0 and best + 1 <= count and room[0, best + 1] < np.inf:
        best += 1
    room[1, best] = 0.0
    for q in range(best, count):
        room[1, q + 1] = room[1, q] + room[2, q] * (room[0, q + 1] - room[0, q]) if room[0, q + 1] < np.inf else np.inf
    for q in range(best - 1, -1, -1):
        room[1, q] = room[1, q + 1] - room[2, q] * (room[0, q + 1] - room[0, q]) if room[0, q] > -np.inf else np.inf
    total = 0.0
    for q in range(count):
        room[3, q] = _piece_mass(room[1, q], room[1, q + 1], room[2, q], room[0, q + 1] - room[0, q])
        total += room[3, q]
    return count, math.log(total) if total > 0.0 else -np.inf


@compiled(inline="always")
def _piece_mass(first: float, last: float, slope: float, width: float) -> float:  # pragma: no cover (compiled)
    """∫ e^{−energy} over a piece on which the energy goes from first to last."""
    if abs(slope) * width < 1e-9:
        return width * math.exp(-first)
    if slope > 0.0:
        return math.exp(-first) * -math.expm1(first - last) / slope
    return math.exp(-last) * math.expm1(last - first) / slope


@compiled(inner=True)
def _log_mass(low: float, high: float) -> float:  # pragma: no cover (compiled)
    """log P(low < Z < high)."""
    if low > 0.0:
        first, last = log_tail(low), log_tail(high) if high < np.inf else -np.inf
    elif high < 0.0:
        first, last = log_tail(-high), log_tail(-low) if low > -np.inf else -np.inf
    else:
        return math.log1p(-0.5 * math.erfc(-low * math.sqrt(0.5)) - 0.5 * math.erfc(high * math.sqrt(0.5)))
    return first + math.log(-math.expm1(last - first)) if last < first else -np.inf


@compiled(inner=True)
def _standard(low: float, high: float, share: float) -> float:  # pragma: no cover (compiled)
    """The place between low and high below which a standard normal law cut to them has this share."""
    if low > 0.0:
        first, last = log_tail(low), log_tail(high) if high < np.inf else -np.inf
        found = quantile_of_log_tail(first + math.log1p(share * math.expm1(last - first)))
    elif high < 0.0:
        first, last = log_tail(-high), log_tail(-low) if low > -np.inf else -np.inf
        found = -quantile_of_log_tail(first + math.log1p((1.0 - share) * math.expm1(last - first)))
    else:
        below, above = 0.5 * math.erfc(-low * math.sqrt(0.5)), 0.5 * math.erfc(high * math.sqrt(0.5))
        tail = below + share * (1.0 - below - above)
        if tail < 0.5:
            found = -quantile_of_tail(tail)
        else:
            found = quantile_of_tail(max(above + (1.0 - share) * (1.0 - below - above), 1e-300))
    return min(max(found, low), high)


@compiled
def _quantile(a: Lines, room: Any, count: int, share: float) -> float:  # pragma: no cover (compiled)
    """The t below which the law on a line has this share."""
    if a.square:
        if not room[0, 0] < room[0, 1]:
            return 0.0
        return room[1, 0] + room[1, 1] * _standard(room[0, 0], room[0, 1], share)
    total = 0.0
    for q in range(count):
        total += room[3, q]
    if not total > 0.0:
        return 0.0
    left = share * total
    q = 0
    while q < count - 1 and left > room[3, q]:
        left -= room[3, q]
        q += 1
    if room[3, q] <= 0.0:
        return room[0, q] if room[0, q] > -np.inf else room[0, q + 1]
    part = min(left / room[3, q], 1.0)
    first, last, slope = room[0, q], room[0, q + 1], room[2, q]
    if abs(slope) * (last - first) < 1e-9:
        return first + part * (last - first)
    if slope > 0.0:
        rest = math.expm1(-slope * (last - first)) if last < np.inf else -1.0
        found = first - math.log1p(max(part * rest, -1.0 + 1e-16)) / slope
    else:
        rest = math.expm1(slope * (last - first)) if first > -np.inf else -1.0
        found = last - math.log1p(max((1.0 - part) * rest, -1.0 + 1e-16)) / slope
    return min(max(found, first), last)


@compiled
def _log_density(a: Lines, room: Any, count: int, log_total: float, t: float) -> float:  # pragma: no cover (compiled)
    if a.square:
        place = (t - room[1, 0]) / room[1, 1]
        if place < room[0, 0] or place > room[0, 1]:
            return -np.inf
        return -0.5 * place * place - 0.9189385332046727 - log_total
    if t < room[0, 0] or t > room[0, count]:
        return -np.inf
    q = 0
    while q < count - 1 and t > room[0, q + 1]:
        q += 1
    if room[0, q] > -np.inf:
        energy = room[1, q] + room[2, q] * (t - room[0, q])
    else:
        energy = room[1, q + 1] + room[2, q] * (t - room[0, q + 1])
    return -energy - log_total


@compiled(inline="always")
def _move(a: Lines, w: Any, free: Any, k: int, t: float) -> None:  # pragma: no cover (compiled)
    for p in range(a.start[k], a.start[k + 1]):
        w[a.place[p]] += t * a.value[p]
    for p in range(a.free_start[k], a.free_start[k + 1]):
        free[a.free_place[p]] += t * a.free_value[p]


@compiled(inner=True)
def _spread_out(a: Lines, free: Any, w: Any) -> None:  # pragma: no cover (compiled)
    """w = B·c from the free coordinates: equal ones give equal doubles."""
    w[:] = 0.0
    for k in range(free.size):
        for p in range(a.start[k], a.start[k + 1]):
            w[a.place[p]] += free[k] * a.value[p]


@compiled(inline="always")
def _uniform(word: np.uint64) -> float:  # pragma: no cover (compiled)
    return (np.float64(word >> np.uint64(12)) + 0.5) * 2.0**-52


@compiled
def advance(a: Lines, states: Any, words: Any) -> None:  # pragma: no cover (compiled)
    """Take words.shape[1] steps with every row of free coordinates; words (count, steps, directions)."""
    directions, dimension = a.start.size - 1, states.shape[1]
    w, room = np.empty(a.rates.size), np.empty((4, _longest(a) + 2))
    for c in range(states.shape[0]):
        for t in range(words.shape[1]):
            _spread_out(a, states[c], w)
            for j in range(directions):
                k = (j + dimension) % directions  # the basis comes last
                count, _ = _pieces(a, w, k, room)
                _move(a, w, states[c], k, _quantile(a, room, count, _uniform(words[c, t, j])))


@compiled(inner=True)
def _longest(a: Lines) -> int:  # pragma: no cover (compiled)
    found = 1
    for k in range(a.start.size - 1):
        found = max(found, a.start[k + 1] - a.start[k])
    return found


@compiled
def advance_coupled(a: Lines, first: Any, second: Any, words: Any) -> None:  # pragma: no cover (compiled)
    """Take one step with every pair of rows, coupled; words (count, directions + 1), the last one a seed."""
    directions, dimension = a.start.size - 1, first.shape[1]
    longest = _longest(a) + 2
    w, other = np.empty(a.rates.size), np.empty(a.rates.size)
    room, more = np.empty((4, longest)), np.empty((4, longest))
    seed = np.empty(1, np.uint64)
    for c in range(first.shape[0]):
        seed[0] = words[c, directions]
        mine, yours = first[c], second[c]
        _spread_out(a, mine, w)
        _spread_out(a, yours, other)
        same = True
        for k in range(dimension):
            same = same and mine[k] == yours[k]
        for j in range(directions):
            k = (j + dimension) % directions
            count, log_total = _pieces(a, w, k, room)
            number, log_sum = _pieces(a, other, k, more)
            share = _uniform(words[c, j])
            t = _quantile(a, room, count, share)
            if same or k >= dimension or not _close(a, room, count, more, number, mine[k] - yours[k], NEAR / dimension):
                _move(a, w, mine, k, t)
                _move(a, other, yours, k, _quantile(a, more, number, share))
                continue
            here, there = mine[k], yours[k]
            moved = here + t
            limit = math.log(_uniform(next_word(seed)))
            if limit + _log_density(a, room, count, log_total, t) <= _log_density(
                a, more, number, log_sum, moved - there
            ):
                _move(a, w, mine, k, t)
                _move(a, other, yours, k, moved - there)
                mine[k] = yours[k] = moved
                continue
            s = 0.0
            for _ in range(MOST_TRIES):
                s = _quantile(a, more, number, _uniform(next_word(seed)))
                limit = math.log(_uniform(next_word(seed)))
                if limit + _log_density(a, more, number, log_sum, s) > _log_density(
                    a, room, count, log_total, there + s - here
                ):
                    break
            _move(a, w, mine, k, t)
            _move(a, other, yours, k, s)


@compiled(inner=True)
def _close(a: Lines, room: Any, count: int, more: Any, number: int, apart: float, near: float) -> bool:
    # pragma: no cover (compiled)
    """Whether two laws of one free coordinate, its values `apart` now, are near each other."""
    width = _quantile(a, room, count, 0.75) - _quantile(a, room, count, 0.25)
    wide = _quantile(a, more, number, 0.75) - _quantile(a, more, number, 0.25)
    middle = _quantile(a, room, count, 0.5) - _quantile(a, more, number, 0.5) + apart
    return abs(middle) <= near * max(width, wide) and max(width, wide) <= 2.0 * min(width, wide)
