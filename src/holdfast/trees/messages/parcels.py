"""The messages inside parcels of leaves: of alike leaves together, then of one leaf more at a time; compiled.

Messages are stored one after the other in one array; `Shelf` holds where each stands, its window, its tail ratios, its
hard ends, the ends whose ratio is by definition the last one, its tilt and its relative error. `Kit` holds what is
known of leaves and laws. Messages inside a parcel have no tilt, and they are made again where they are needed: only
those of alike leaves, which many parcels start with, are kept.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from holdfast.arguments import LARGEST
from holdfast.arrays import BORROWED, Floats, Ints, compiled
from holdfast.trees.messages.pieces import MOST_LEAVES
from holdfast.trees.messages.responses import between
from holdfast.trees.messages.windows import MOST_DECAY, reach, within
from holdfast.trees.steps.ends import ROUNDING, ends, finish
from holdfast.trees.steps.leaf import kept, leaf_onto

#: Shares of a parcel's variance at which it is guessed how far its first leaves together stray.
_SHARES = (0.08, 0.33, 0.67, 0.95)
#: A message is above what it stands for, up to a constant, by at most so many times the error of its last step; and
#: 1 − c is at most so many times that.
EXCESS, TESTED = 4.1, 2.1


class Shelf(NamedTuple):
    """Messages that stand one after the other in `values`."""

    values: Floats
    offset: Ints
    lo: Ints
    hi: Ints
    r_lo: Floats
    r_hi: Floats
    hard: Ints
    leaning: Ints  # ends without room
    tilt: Floats
    error: Floats  # how far it may be from a log-concave function
    swerve: Floats  # how much further for each place beyond an end without room
    excess: Floats  # how far it may be above what it stands for, up to a constant, inside its window
    slack: Floats  # bounds 1 − ∏c over it and, for a parcel, all that is inside
    scale: Floats


class Kit(NamedTuple):
    """What is known of leaves and laws: weights of 0, 1, 2, … by law, rates, kinds of leaves and their responses."""

    weights: Floats
    laplace: bool
    rate: Floats
    leaf_law: Ints
    leaf_low: Ints
    leaf_high: Ints
    grid: Floats
    unit: float
    leaf_mean: Floats
    leaf_variance: Floats
    leaf_steep: Floats


def empty_shelf(lengths: Ints) -> Shelf:
    """An empty shelf for messages of so many places."""
    n = lengths.size
    offset = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    whole = [np.zeros(n, dtype=np.int64) for _ in range(4)]
    real = [np.zeros(n) for _ in range(7)]
    return Shelf(np.empty(int(offset[-1])), offset, whole[0], whole[1], real[0], real[1], whole[2], whole[3], real[2],
                 np.full(n, np.inf), *real[3:])  # fmt: skip


@compiled(inline="always")
def plus(a: Any, b: Any, endless: Any) -> Any:
    """The sum of two ends; there is none where one of them has none."""
    return endless if a == endless or b == endless else a + b


class Inside(NamedTuple):
    """What messages inside parcels are made with and of.

    The laws and leaves, blocks of alike leaves on their shelf, where each (kind, count) of them stands, room for the
    messages inside one parcel, and how rarely totals may lie beyond their windows.
    """

    kit: Kit
    blocks: Shelf
    slots: Ints
    scratch: Shelf
    need: float


@compiled(inner=True, **BORROWED)
def put(to: Any, i: Any, values: Any, start: Any, ends: Any, tilt: Any, error: Any, fresh: Any) -> None:
    """Put a message, those places of values that begin at `start` which `finish` chose, on a shelf.

    `error` is that of all steps so far, `fresh` that of the last one.
    """
    lo, hi, r_lo, r_hi, hard, leaning, swerve, scale = ends
    head = to.offset[i]
    for s in range(lo, hi + 1):
        to.values[head + s - lo] = values[s - start]
    to.lo[i], to.hi[i], to.r_lo[i], to.r_hi[i] = lo, hi, r_lo, r_hi
    to.hard[i], to.leaning[i], to.tilt[i], to.scale[i] = hard, leaning, tilt, scale
    to.error[i], to.swerve[i], to.excess[i] = error, swerve, EXCESS * (fresh + ROUNDING)
    to.slack[i] = TESTED * to.excess[i]


@compiled(**BORROWED)
def asked(k: Any, pieces: Any, outlook: Any) -> Any:
    """The window that is asked of a kind's message, with a place to spare at each soft end."""
    lo, hi = outlook.low[k], outlook.high[k]
    return lo - (1 if lo > pieces.lowest[k] else 0), hi + (1 if hi < pieces.highest[k] else 0)


@compiled(inner=True)
def parcel_outlook(kit: Any, kinds: Any, slopes: Any, rest: Any, bend: Any, need: Any, lows: Any, highs: Any) -> Any:
    """Guess where the total of a parcel's first leaves lies, for each number of them; return how many are alike.

    Alike parcels in several places are pulled by several slopes: the windows hold those of the least and the largest.
    """
    base = _outlook_at(kit, kinds, slopes[0], rest, bend, need, lows, highs)
    if slopes[1] - slopes[0] > 1e-2 / kit.unit:
        others, ends = np.empty(kinds.size), np.empty(kinds.size)
        _outlook_at(kit, kinds, slopes[1], rest, bend, need, others, ends)
        for j in range(kinds.size):
            lows[j], highs[j] = min(lows[j], others[j]), max(highs[j], ends[j])
    return base


@compiled(inner=True)
def _outlook_at(kit: Any, kinds: Any, slope: Any, rest: Any, bend: Any, need: Any, lows: Any, highs: Any) -> Any:
    """As `parcel_outlook`, for one slope."""
    grid, leaf_mean, leaf_variance, leaf_steep = kit.grid, kit.leaf_mean, kit.leaf_variance, kit.leaf_steep
    count = kinds.size
    base = 1
    while base < count and kinds[base] == kinds[0]:
        base += 1
    mean, variance, steep, hardest = 0.0, 0.0, np.inf, 0.0
    i = min(max(np.searchsorted(grid, slope) - 1, 0), grid.size - 2)
    step = grid[i + 1] - grid[i]
    part = min(max((slope - grid[i]) / step, 0.0), 1.0)
    more, spread = 0.0, 0.0
    for j in range(count):
        q = kinds[j]
        if j == 0 or kinds[j - 1] != q:
            more, spread = between(
                leaf_mean[q, i], leaf_mean[q, i + 1], leaf_variance[q, i], leaf_variance[q, i + 1], part, step
            )
            spread = max(spread, 1e-2)
            steep, hardest = min(steep, leaf_steep[q]), max(hardest, leaf_steep[q])
        mean += more
        variance += spread
        lows[j], highs[j] = mean, variance
    rising, falling = np.empty(3), np.empty(3)  # how the first leaves together bend
    rising[:] = max(steep - slope, 0.02 * steep)
    falling[:] = max(steep + slope, 0.02 * steep)
    rising[1], falling[1] = 1.0, 1.0
    # leaves not yet added and everything outside: the softer gives way
    above, under = bend[0].copy(), bend[1].copy()
    above[0], above[2] = min(above[0], falling[0]), min(above[2], falling[2])
    under[0], under[2] = min(under[0], rising[0]), min(under[2], rising[2])
    ups, downs = np.empty(len(_SHARES)), np.empty(len(_SHARES))
    for k in range(len(_SHARES)):
        v = variance * _SHARES[k]
        other = variance - v + rest
        ups[k] = reach(v, rising, 0.0, other, above, 0.0, need) + 3
        downs[k] = reach(v, falling, 0.0, other, under, 0.0, need) + 3
    most = MOST_DECAY / hardest if kit.laplace else np.inf
    k = 0
    for j in range(count):
        mean, share = lows[j], highs[j] / variance
        while k < len(_SHARES) - 2 and share > _SHARES[k + 1]:
            k += 1
        part = min(max((share - _SHARES[k]) / (_SHARES[k + 1] - _SHARES[k]), 0.0), 1.0)
        # kept to what doubles hold, but never empty
        lows[j] = mean - min(downs[k] + part * (downs[k + 1] - downs[k]), max(most + mean, 4.0))
        highs[j] = mean + min(ups[k] + part * (ups[k + 1] - ups[k]), max(most - mean, 4.0))
    return base


@compiled(inner=True, **BORROWED)
def _reached(kit: Any, q: Any, variance: Any, lo: Any, hi: Any) -> Any:
    """Keep a window to 20σ, and to sums whose last leaf is within its table of Gaussian weights with 8σ to spare.

    `variance` is that of the leaves together, without bounds.
    """
    if kit.laplace:
        return lo, hi
    own = 0.5 / kit.rate[kit.leaf_law[q]]
    spare = kit.weights.shape[1] - 1 - 8.0 * np.sqrt(own * max(1 - own / variance, 0.0))
    most = np.int64(min(spare * variance / own, 20 * np.sqrt(variance) + 2))
    return (max(lo, -most), min(hi, most)) if lo < most and hi > -most else (lo, hi)


@compiled
def block_windows(kit: Any, pieces: Any, parcels: Any, outlook: Any, need: Any, lo: Any, hi: Any) -> Any:
    """Widen the windows of blocks, (leaf kind, count), to what parcels that start with them ask; return the widest."""
    lows, highs = np.empty(MOST_LEAVES), np.empty(MOST_LEAVES)
    widest = 0.0
    for k in parcels:
        p = pieces.example[k]
        kinds = pieces.leaf_kind[pieces.first[p] : pieces.first[p] + pieces.members[p]]
        base = parcel_outlook(kit, kinds, outlook.below[k], outlook.rest[k], outlook.hold[k], need, lows, highs)
        for j in range(base, kinds.size):
            widest = max(widest, highs[j] - lows[j])
        q = kinds[0]
        lowest, highest = np.int64(0), np.int64(0)
        for c in range(1, base + 1):
            lowest = plus(lowest, kit.leaf_low[q], -LARGEST)
            highest = plus(highest, kit.leaf_high[q], LARGEST)
            a, b = within(lows[c - 1], highs[c - 1], lowest, highest)
            a, b = _reached(kit, q, c * 0.5 / kit.rate[kit.leaf_law[q]], a, b)
            lo[q, c] = min(lo[q, c], a)
            hi[q, c] = max(hi[q, c], b)
    return widest


@compiled(inline="always")
def _room(room: Any, lo: Any, hi: Any, first: Any, final: Any) -> Any:
    """The same room or a larger one, enough for `add_leaf`."""
    size = max(hi, final + 1) - min(lo, first) + 1
    return room if room.size >= 3 * size else np.empty(4 * size)


@compiled
def make_blocks(kit: Any, q: Any, lo: Any, hi: Any, slots: Any, to: Any) -> Any:
    """Make the messages of 1, 2, … leaves of one kind; return whether all windows could be made."""
    powers = kit.weights[kit.leaf_law[q]]
    longest = powers.size - 1
    lowest, highest = kit.leaf_low[q], kit.leaf_high[q]
    last = -1
    room = np.empty(0)
    for c in range(1, MOST_LEAVES + 1):
        i = slots[q, c]
        if i < 0:
            return True
        first = lo[q, c] - (1 if lo[q, c] > lowest else 0)
        final = hi[q, c] + (1 if hi[q, c] < highest else 0)
        if c == 1:
            first, final = max(first, -longest), min(final, longest)
            values = np.empty(final - first + 1)
            for b in range(first, final + 1):
                values[b - first] = powers[abs(b)]
            error = fresh = ROUNDING * (2 + longest)
            swerve = 0.0
        else:
            head = to.offset[last]
            f = to.values[head : head + to.hi[last] - to.lo[last] + 1]
            values = np.empty(final - first + 1)
            room = _room(room, to.lo[last], to.hi[last], first, final)
            message = (f, to.lo[last], to.hi[last], to.r_lo[last], to.r_hi[last])
            leaf = (powers, kit.leaf_low[q], kit.leaf_high[q])
            first, final, fresh = leaf_onto(kit.laplace, leaf, message, to.hard[last], values, first, final, room)
            error, swerve = to.error[last] + fresh, to.swerve[last]
            if to.leaning[last]:
                start = first
                first, final, added = kept(kit, q, message, to.leaning[last], values, first, final)
                error += added * swerve
                values = values[first - start : final - start + 1].copy()
        chosen = finish(values, first, final, lowest, highest, error, swerve)
        if chosen[-1] == 0.0:
            return False
        put(to, i, values, first, chosen, 0.0, error, fresh)
        last = i
        lowest = plus(lowest, kit.leaf_low[q], -LARGEST)
        highest = plus(highest, kit.leaf_high[q], LARGEST)
    return True


@compiled
def prefixes(inside: Any, kinds: Any, slopes: Any, rest: Any, bend: Any, final_lo: Any, final_hi: Any) -> Any:
    """Make the messages of a parcel's first leaves: the block of its first kind, then one leaf more at a time.

    They stand in the scratch room from 0 on, the last with the asked window. Return how many, how many leaves the first
    has, and whether all went well, which needs enough room.
    """
    kit, blocks, slots, _, need = inside
    count = kinds.size
    lows, highs = np.empty(MOST_LEAVES), np.empty(MOST_LEAVES)
    base = parcel_outlook(kit, kinds, slopes, rest, bend, need, lows, highs)
    # room for `add_leaf` on any of the windows together
    i = slots[kinds[0], base]
    least = min(np.int64(np.floor(lows[base - 1 : count].min())), blocks.lo[i], final_lo)
    most = max(np.int64(np.ceil(highs[base - 1 : count].max())), blocks.hi[i], final_hi)
    places = 3 * (most - least + 12)
    while True:
        last, good = _one_by_one(inside, kinds, base, (lows, highs), (final_lo, final_hi), np.empty(places))
        if good < 2:
            return last, base, good == 1
        places *= 2


@compiled(inner=True, **BORROWED)
def _one_by_one(inside: Any, kinds: Any, base: Any, windows: Any, asked_for: Any, room: Any) -> Any:
    """The messages of `prefixes`; return the last one, and 1 if all went well, 0 if not, 2 where room was too small."""
    kit, blocks, slots, to, _ = inside
    count = kinds.size
    lows, highs = windows
    i = slots[kinds[0], base]
    head = blocks.offset[i]
    chosen = (
        blocks.lo[i], blocks.hi[i], blocks.r_lo[i], blocks.r_hi[i], blocks.hard[i], blocks.leaning[i], blocks.swerve[i],
        blocks.scale[i],
    )  # fmt: skip
    values = blocks.values[head : head + blocks.hi[i] - blocks.lo[i] + 1]
    put(to, 0, values, blocks.lo[i], chosen, 0.0, blocks.error[i], 0.0)
    to.excess[0] = blocks.excess[i]
    # fields by name: a tuple's field that is read in a loop is counted as used and unused again each time
    values, offsets, los, his, hards, leanings = to.values, to.offset, to.lo, to.hi, to.hard, to.leaning
    r_los, r_his, errors, swerves, excesses = to.r_lo, to.r_hi, to.error, to.swerve, to.excess
    leaf_low, leaf_high, leaf_law, rate, laplace = kit.leaf_low, kit.leaf_high, kit.leaf_law, kit.rate, kit.laplace
    law = leaf_law[kinds[0]]
    powers = kit.weights[law]
    lowest, highest = np.int64(0), np.int64(0)
    for _ in range(base):
        lowest = plus(lowest, leaf_low[kinds[0]], -LARGEST)
        highest = plus(highest, leaf_high[kinds[0]], LARGEST)
    variance = base * 0.5 / rate[law]
    lo, hi, r_lo, r_hi, hard, leaning = los[0], his[0], r_los[0], r_his[0], hards[0], leanings[0]
    error, swerve = errors[0], swerves[0]
    place = hi - lo + 1
    head = np.int64(0)
    for j in range(base, count):
        q = kinds[j]
        step = j - base
        if leaf_law[q] != law:
            law = leaf_law[q]
            powers = kit.weights[law]
        lowest = plus(lowest, leaf_low[q], -LARGEST)
        highest = plus(highest, leaf_high[q], LARGEST)
        if j == count - 1:
            first, final = asked_for
        else:
            first, final = within(lows[j], highs[j], lowest, highest)
        if not laplace:
            variance += 0.5 / rate[law]
            first, final = _reached(kit, q, variance, first, final)
        first, final = first - (1 if first > lowest else 0), final + (1 if final < highest else 0)
        if place + final - first + 1 > values.size:
            return step, 0
        if 3 * (max(hi, final + 1) - min(lo, first) + 1) > room.size:
            return step, 2
        f = values[head : head + hi - lo + 1]
        out = values[place : place + final - first + 1]
        message, leaf = (f, lo, hi, r_lo, r_hi), (powers, leaf_low[q], leaf_high[q])
        first, final, fresh = leaf_onto(laplace, leaf, message, hard, out, first, final, room)
        more = 0.0
        if leaning:
            start = first
            first, final, more = kept(kit, q, message, leaning, out, first, final)
            place += first - start
        error += fresh + more * swerve
        out = values[place : place + final - first + 1]
        lo, hi, r_lo, r_hi, hard, leaning, swerve, good = ends(out, first, final, lowest, highest, error, swerve)
        if good == 0.0:
            return step, 0
        step += 1
        head = place + lo - first
        place += final - first + 1
        los[step], his[step], r_los[step], r_his[step] = lo, hi, r_lo, r_hi
        hards[step], leanings[step], errors[step], swerves[step], offsets[step] = hard, leaning, error, swerve, head
        excesses[step] = EXCESS * (fresh + ROUNDING)
        to.tilt[step], to.scale[step] = 0.0, 1.0
    return count - base, 1
