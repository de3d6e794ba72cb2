"""The up-pass that makes messages and the down-pass that draws totals, compiled, over ranges of kinds or pieces.

Messages are stored one after the other in one array; `Shelf` holds where each stands, its window, its tail ratios, its
hard ends, the ends whose ratio is by definition the last one, its tilt and its relative error. Threads fill disjoint
ranges. A draw that the error bounds do not decide is left open for `undecided.py`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from holdfast.trees.outlook import MOST_DECAY, between, reach
from holdfast.trees.pieces import MOST_LEAVES
from holdfast.trees.steps import (
    HIGH,
    LOW,
    ROUNDING,
    TWICE,
    UNDECIDED,
    add_leaf,
    add_piece,
    choose_leaf,
    choose_part,
    choose_total,
    ends,
    excess,
    extended,
    finish,
    leaf_excess,
    retilted,
    weigh,
)

#: How often some places are cut off an end of a message that would lean on a tail known inexactly.
TRIMS = 12
#: Shares of a parcel's variance at which it is guessed how far its first leaves together stray.
_SHARES = (0.08, 0.33, 0.67, 0.95)
_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}
_INLINE: dict[str, Any] = {**_OPTIONS, "inline": "always"}
Ints = npt.NDArray[np.int64]
Reals = npt.NDArray[np.float64]


class Shelf(NamedTuple):
    """Messages that stand one after the other in `values`."""

    values: Reals
    offset: Ints
    lo: Ints
    hi: Ints
    r_lo: Reals
    r_hi: Reals
    hard: Ints
    defined: Ints
    tilt: Reals
    error: Reals
    scale: Reals


class Kit(NamedTuple):
    """What is known of leaves and laws: weights of 0, 1, 2, … by law, rates, kinds of leaves and their responses."""

    weights: Reals
    laplace: bool
    rate: Reals
    leaf_law: Ints
    leaf_low: Ints
    leaf_high: Ints
    grid: Reals
    unit: float
    leaf_mean: Reals
    leaf_variance: Reals
    leaf_steep: Reals


def shelf(lengths: Ints) -> Shelf:
    """An empty shelf for messages of so many places."""
    n = lengths.size
    offset = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    whole = [np.zeros(n, dtype=np.int64) for _ in range(4)]
    real = [np.zeros(n) for _ in range(4)]
    return Shelf(np.empty(int(offset[-1])), offset, whole[0], whole[1], real[0], real[1], whole[2], whole[3], real[2],
                 np.full(n, np.inf), real[3])  # fmt: skip


@numba.njit(**_INLINE)
def _plus(a: Any, b: Any, endless: Any) -> Any:
    return endless if a == endless or b == endless else a + b


@numba.njit(**_OPTIONS)
def _put(to: Any, i: Any, values: Any, start: Any, lo: Any, hi: Any, r_lo: Any, r_hi: Any, hard: Any, defined: Any,
         tilt: Any, error: Any, scale: Any) -> None:  # fmt: skip
    head = to.offset[i]
    for s in range(lo, hi + 1):
        to.values[head + s - lo] = values[s - start]
    to.lo[i], to.hi[i], to.r_lo[i], to.r_hi[i] = lo, hi, r_lo, r_hi
    to.hard[i], to.defined[i], to.tilt[i], to.error[i], to.scale[i] = hard, defined, tilt, error, scale


@numba.njit(**_OPTIONS)
def _leaf_onto(laplace: Any, powers: Any, low: Any, high: Any, f: Any, lo: Any, hi: Any, r_lo: Any, r_hi: Any,
               hard: Any, out: Any, out_lo: Any, out_hi: Any, room: Any) -> Any:  # fmt: skip
    """Convolve a message with one leaf's weights; return where this is right, and the relative error that it adds.

    What is right stands at the front of `out`.
    """
    if laplace:
        return out_lo, out_hi, add_leaf(f, lo, hi, r_lo, r_hi, powers, low, high, out, out_lo, out_hi, room)
    longest = powers.size - 1
    b_lo, b_hi = max(low, -longest), min(high, longest)
    kernel = np.empty(b_hi - b_lo + 1)
    for b in range(b_lo, b_hi + 1):
        kernel[b - b_lo] = powers[abs(b)]
    b_hard = (LOW if b_lo == low else 0) | (HIGH if b_hi == high else 0)
    good_lo, good_hi, error = out_lo, out_lo - 1, np.inf
    for extra in (min(hi - lo + 8, 2 * longest), longest + max(lo - out_lo, out_hi - hi, 0)):
        wide, wide_lo, wide_hi = extended(f, lo, hi, r_lo, r_hi, extra)
        good_lo, good_hi, error = add_piece(
            kernel, b_lo, b_hi, b_hard, wide, wide_lo, wide_hi, hard, out, out_lo, out_hi
        )
        if good_lo == out_lo and good_hi == out_hi:
            break
    if good_lo > good_hi:
        return out_lo, out_hi, np.inf
    for s in range(good_lo, good_hi + 1):
        out[s - good_lo] = out[s - out_lo]
    return good_lo, good_hi, error


@numba.njit(**_OPTIONS)
def _kept(kit: Any, q: Any, f: Any, lo: Any, hi: Any, r_lo: Any, r_hi: Any, defined: Any, out: Any, first: Any,
          final: Any) -> Any:  # fmt: skip
    """Keep to sums that hardly use a tail whose ratio is not a double; return them and the factor of the error."""
    powers = kit.weights[kit.leaf_law[q]]
    b_lo, b_hi = kit.leaf_low[q], kit.leaf_high[q]
    start = first
    error = 0.0
    for side in range(2):
        if not defined & (HIGH if side else LOW):
            continue
        added = 0.0
        for _ in range(TRIMS):
            s = final if side else first
            far = leaf_excess(f, lo, hi, r_hi if side else r_lo, side == 1, powers, kit.laplace, b_lo, b_hi, s)
            added = TWICE * far / out[s - start]
            if added <= 0.02 or final - first < 16:
                break
            if side:
                final -= max(4, (final - first) // 32)
            else:
                first += max(4, (final - first) // 32)
        error += added
    return first, final, error


@numba.njit(**_OPTIONS)
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


@numba.njit(**_OPTIONS)
def _outlook_at(kit: Any, kinds: Any, slope: Any, rest: Any, bend: Any, need: Any, lows: Any, highs: Any) -> Any:
    """As `parcel_outlook`, for one slope."""
    grid, leaf_mean, leaf_variance, leaf_steep, unit = (
        kit.grid, kit.leaf_mean, kit.leaf_variance, kit.leaf_steep, kit.unit
    )  # fmt: skip
    count = kinds.size
    base = 1
    while base < count and kinds[base] == kinds[0]:
        base += 1
    mean, variance, steep, hardest = 0.0, 0.0, np.inf, 0.0
    i = min(max(np.searchsorted(grid, slope) - 1, 0), grid.size - 2)
    part = min(max((slope - grid[i]) / (grid[i + 1] - grid[i]), 0.0), 1.0)
    more, spread = 0.0, 0.0
    for j in range(count):
        q = kinds[j]
        if j == 0 or kinds[j - 1] != q:
            more = between(leaf_mean[q, i], leaf_mean[q, i + 1], part, unit)
            spread = max(between(leaf_variance[q, i], leaf_variance[q, i + 1], part, unit * unit), 1e-2)
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


@numba.njit(**_INLINE)
def _asked(low: Any, high: Any, lowest: Any, highest: Any) -> Any:
    """A window within the possible totals, four places wide where there are as many."""
    lo = min(max(np.int64(np.floor(low)), lowest), max(highest - 3, lowest))
    hi = max(min(np.int64(np.ceil(high)), highest), min(lowest + 3, highest))
    return lo, hi


@numba.njit(**_OPTIONS)
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


@numba.njit(**_OPTIONS)
def block_windows(
    kit: Any, pieces_first: Any, pieces_count: Any, leaf_kind: Any, example: Any, parcels: Any,
    below: Any, rest: Any, bend: Any, need: Any, lo: Any, hi: Any, endless: Any,
) -> Any:  # fmt: skip
    """Widen the windows of blocks, (leaf kind, count), to what parcels that start with them ask; return the widest."""
    lows, highs = np.empty(MOST_LEAVES), np.empty(MOST_LEAVES)
    widest = 0.0
    for k in parcels:
        p = example[k]
        kinds = leaf_kind[pieces_first[p] : pieces_first[p] + pieces_count[p]]
        base = parcel_outlook(kit, kinds, below[k], rest[k], bend[k], need, lows, highs)
        for j in range(base, kinds.size):
            widest = max(widest, highs[j] - lows[j])
        q = kinds[0]
        lowest, highest = np.int64(0), np.int64(0)
        for c in range(1, base + 1):
            lowest = _plus(lowest, kit.leaf_low[q], -endless)
            highest = _plus(highest, kit.leaf_high[q], endless)
            a, b = _asked(lows[c - 1], highs[c - 1], lowest, highest)
            a, b = _reached(kit, q, c * 0.5 / kit.rate[kit.leaf_law[q]], a, b)
            lo[q, c] = min(lo[q, c], a)
            hi[q, c] = max(hi[q, c], b)
    return widest


@numba.njit(**_INLINE)
def _room(room: Any, lo: Any, hi: Any, first: Any, final: Any) -> Any:
    """The same room or a larger one, enough for `add_leaf`."""
    size = max(hi, final + 1) - min(lo, first) + 1
    return room if room.size >= 3 * size else np.empty(4 * size)


@numba.njit(**_OPTIONS)
def make_blocks(kit: Any, q: Any, lo: Any, hi: Any, slots: Any, to: Any, endless: Any) -> Any:
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
            error = 2 * ROUNDING
        else:
            head = to.offset[last]
            f = to.values[head : head + to.hi[last] - to.lo[last] + 1]
            values = np.empty(final - first + 1)
            room = _room(room, to.lo[last], to.hi[last], first, final)
            first, final, error = _leaf_onto(
                kit.laplace, powers, kit.leaf_low[q], kit.leaf_high[q], f, to.lo[last], to.hi[last], to.r_lo[last],
                to.r_hi[last], to.hard[last], values, first, final, room,
            )  # fmt: skip
            error += to.error[last]
            if to.defined[last]:
                start = first
                first, final, added = _kept(
                    kit, q, f, to.lo[last], to.hi[last], to.r_lo[last], to.r_hi[last], to.defined[last], values,
                    first, final,
                )  # fmt: skip
                error += added * (to.error[last] + ROUNDING)
                values = values[first - start : final - start + 1].copy()
        s_lo, s_hi, r_lo, r_hi, hard, defined, scale = finish(values, first, final, lowest, highest, error)
        if scale == 0.0:
            return False
        _put(to, i, values, first, s_lo, s_hi, r_lo, r_hi, hard, defined, 0.0, error, scale)
        last = i
        lowest = _plus(lowest, kit.leaf_low[q], -endless)
        highest = _plus(highest, kit.leaf_high[q], endless)
    return True


@numba.njit(**_OPTIONS)
def prefixes(
    kit: Any, kinds: Any, slopes: Any, rest: Any, bend: Any, need: Any, final_lo: Any, final_hi: Any, blocks: Any,
    slots: Any, to: Any, endless: Any,
) -> Any:  # fmt: skip
    """Make the messages of a parcel's first leaves: the block of its first kind, then one leaf more at a time.

    They stand on the shelf `to` from 0 on, the last with the asked window. Return how many, how many leaves the first
    has, and whether all went well. The shelf must have room; see `parcel_room`.
    """
    count = kinds.size
    lows, highs = np.empty(MOST_LEAVES), np.empty(MOST_LEAVES)
    base = parcel_outlook(kit, kinds, slopes, rest, bend, need, lows, highs)
    i = slots[kinds[0], base]
    head = blocks.offset[i]
    _put(
        to, 0, blocks.values[head : head + blocks.hi[i] - blocks.lo[i] + 1], blocks.lo[i], blocks.lo[i], blocks.hi[i],
        blocks.r_lo[i], blocks.r_hi[i], blocks.hard[i], blocks.defined[i], 0.0, blocks.error[i], blocks.scale[i],
    )  # fmt: skip
    # fields by name: a tuple's field that is read in a loop is counted as used and unused again each time
    values, offsets, los, his, hards, defineds = to.values, to.offset, to.lo, to.hi, to.hard, to.defined
    r_los, r_his, errors = to.r_lo, to.r_hi, to.error
    leaf_low, leaf_high, leaf_law, rate, laplace = kit.leaf_low, kit.leaf_high, kit.leaf_law, kit.rate, kit.laplace
    law = leaf_law[kinds[0]]
    powers = kit.weights[law]
    # room for `add_leaf` on any of the windows together
    least = min(np.int64(np.floor(lows[base - 1 : count].min())), los[0], final_lo)
    most = max(np.int64(np.ceil(highs[base - 1 : count].max())), his[0], final_hi)
    room = np.empty(3 * (most - least + 12))
    lowest, highest = np.int64(0), np.int64(0)
    for _ in range(base):
        lowest = _plus(lowest, leaf_low[kinds[0]], -endless)
        highest = _plus(highest, leaf_high[kinds[0]], endless)
    variance = base * 0.5 / rate[law]
    lo, hi, r_lo, r_hi, hard, defined, error = los[0], his[0], r_los[0], r_his[0], hards[0], defineds[0], errors[0]
    place = hi - lo + 1
    head = np.int64(0)
    for j in range(base, count):
        q = kinds[j]
        step = j - base
        if leaf_law[q] != law:
            law = leaf_law[q]
            powers = kit.weights[law]
        lowest = _plus(lowest, leaf_low[q], -endless)
        highest = _plus(highest, leaf_high[q], endless)
        if j == count - 1:
            first, final = final_lo, final_hi
        else:
            first, final = _asked(lows[j], highs[j], lowest, highest)
        if not laplace:
            variance += 0.5 / rate[law]
            first, final = _reached(kit, q, variance, first, final)
        first, final = first - (1 if first > lowest else 0), final + (1 if final < highest else 0)
        if place + final - first + 1 > values.size:
            return step, base, False
        if 3 * (max(hi, final + 1) - min(lo, first) + 1) > room.size:
            room = np.empty(4 * (max(hi, final + 1) - min(lo, first) + 1))
        f = values[head : head + hi - lo + 1]
        out = values[place : place + final - first + 1]
        first, final, added = _leaf_onto(
            laplace, powers, leaf_low[q], leaf_high[q], f, lo, hi, r_lo, r_hi, hard, out, first, final, room
        )
        added += error
        if defined:
            start = first
            first, final, more = _kept(kit, q, f, lo, hi, r_lo, r_hi, defined, out, first, final)
            added += more * (error + ROUNDING)
            place += first - start
        error = added
        out = values[place : place + final - first + 1]
        lo, hi, r_lo, r_hi, hard, defined, good = ends(out, first, final, lowest, highest, error)
        if good == 0.0:
            return step, base, False
        step += 1
        head = place + lo - first
        place += final - first + 1
        los[step], his[step], r_los[step], r_his[step] = lo, hi, r_lo, r_hi
        hards[step], defineds[step], errors[step], offsets[step] = hard, defined, error, head
        to.tilt[step], to.scale[step] = 0.0, 1.0
    return count - base, base, True


@numba.njit(**_OPTIONS)
def parcel_messages(
    kit: Any, parcels: Any, pieces_first: Any, pieces_count: Any, leaf_kind: Any, example: Any, law: Any, low: Any,
    high: Any, lowest: Any, highest: Any, ask_lo: Any, ask_hi: Any, tilt: Any, below: Any, rest: Any, bend: Any,
    need: Any, blocks: Any, slots: Any, scratch: Any, to: Any, endless: Any,
) -> Any:  # fmt: skip
    """Make the messages of parcels; return how many failed."""
    failed = 0
    for k in parcels:
        p = example[k]
        kinds = leaf_kind[pieces_first[p] : pieces_first[p] + pieces_count[p]]
        spare_lo = ask_lo[k] - (1 if ask_lo[k] > lowest[k] else 0)
        spare_hi = ask_hi[k] + (1 if ask_hi[k] < highest[k] else 0)
        last, _, good = prefixes(
            kit, kinds, below[k], rest[k], bend[k], need, spare_lo, spare_hi, blocks, slots, scratch, endless
        )
        if not good:
            failed += 1
            continue
        head = scratch.offset[last]
        values = scratch.values[head : head + scratch.hi[last] - scratch.lo[last] + 1]
        if not _own(
            values, scratch.lo[last], scratch.hi[last], scratch.error[last], law[k], kit, low[k], high[k], lowest[k],
            highest[k], spare_lo, spare_hi, tilt[k], tilt[k], k, to,
        ):  # fmt: skip
            failed += 1
    return failed


@numba.njit(**_OPTIONS)
def _own(
    values: Any, lo: Any, hi: Any, error: Any, law: Any, kit: Any, low: Any, high: Any, lowest: Any, highest: Any,
    spare_lo: Any, spare_hi: Any, change: Any, tilt: Any, k: Any, to: Any,
) -> Any:  # fmt: skip
    """Give a message its own weight and bounds and put it on the shelf; the values are changed."""
    first, final = max(lo, low, spare_lo), min(hi, high, spare_hi)
    if first > final:
        return False
    # copy: the prefixes of a parcel are needed as they are
    own = values[first - lo : final - lo + 1].copy()
    error += weigh(own, first, final, law, kit.laplace, kit.rate[law] if law >= 0 else 0.0, change)
    s_lo, s_hi, r_lo, r_hi, hard, defined, scale = finish(own, first, final, lowest, highest, error)
    if scale == 0.0:
        return False
    _put(to, k, own, first, s_lo, s_hi, r_lo, r_hi, hard, defined, tilt, error, scale)
    return True


@numba.njit(**_OPTIONS)
def pair_messages(
    kit: Any, pairs: Any, kind_left: Any, kind_right: Any, law: Any, low: Any, high: Any, lowest: Any, highest: Any,
    ask_lo: Any, ask_hi: Any, tilt: Any, to: Any, endless: Any,
) -> Any:  # fmt: skip
    """Make the messages of pairs; return how many failed."""
    failed = 0
    for k in pairs:
        a, b = kind_left[k], kind_right[k]
        f = to.values[to.offset[a] : to.offset[a] + to.hi[a] - to.lo[a] + 1]
        if not to.error[a] < np.inf or (b >= 0 and not to.error[b] < np.inf):
            failed += 1
            continue
        first = ask_lo[k] - (1 if ask_lo[k] > lowest[k] else 0)
        final = ask_hi[k] + (1 if ask_hi[k] < highest[k] else 0)
        if b < 0:
            # one place of each tail is the place to spare; the window stays within that of the only child
            wide, lo, hi = extended(f, to.lo[a], to.hi[a], to.r_lo[a], to.r_hi[a], 1)
            good = _own(
                wide, lo, hi, to.error[a], law[k], kit, low[k], high[k],
                lowest[k] if lowest[k] >= to.lo[a] else -endless, highest[k] if highest[k] <= to.hi[a] else endless,
                first, final, tilt[k] - to.tilt[a], tilt[k], k, to,
            )  # fmt: skip
            failed += 0 if good else 1
            continue
        g = to.values[to.offset[b] : to.offset[b] + to.hi[b] - to.lo[b] + 1]
        extra_a, extra_b = (to.hi[b] - to.lo[b]) // 2 + 16, (to.hi[a] - to.lo[a]) // 2 + 16
        wide, lo, hi = extended(f, to.lo[a], to.hi[a], to.r_lo[a], to.r_hi[a], extra_a)
        other, other_lo, other_hi = extended(g, to.lo[b], to.hi[b], to.r_lo[b], to.r_hi[b], extra_b)
        error = to.error[a] + to.error[b]
        error += retilted(other, other_lo, other_hi, to.tilt[a] - to.tilt[b])
        reach_lo = _plus(lowest[a], lowest[b], -endless)
        reach_hi = _plus(highest[a], highest[b], endless)
        first, final = max(first, reach_lo, low[k]), min(final, reach_hi, high[k])
        out = np.empty(max(final - first + 1, 1))
        if first > final:
            failed += 1
            continue
        start = first
        first, final, added = add_piece(
            wide, lo, hi, to.hard[a], other, other_lo, other_hi, to.hard[b], out, first, final
        )
        if first > final:
            failed += 1
            continue
        error += added
        if to.defined[a] or to.defined[b]:
            # the ratio of such a tail is known up to the message's error: keep to totals that hardly use it
            known = to.error[a] + to.error[b]
            a_lo, a_hi = to.lo[a] if to.defined[a] & LOW else lo, to.hi[a] if to.defined[a] & HIGH else hi
            b_lo = to.lo[b] if to.defined[b] & LOW else other_lo
            b_hi = to.hi[b] if to.defined[b] & HIGH else other_hi
            for side in range(2):
                for _ in range(TRIMS):
                    s = final if side else first
                    far_a, far_b = excess(wide, lo, hi, a_lo, a_hi, other, other_lo, other_hi, b_lo, b_hi, s)
                    added = (to.error[a] + ROUNDING) * far_a + (to.error[b] + ROUNDING) * far_b
                    added *= TWICE / out[s - start]
                    if added <= 0.02 * known or final - first < 16:
                        break
                    if side:
                        final -= max(4, (final - first) // 32)
                    else:
                        first += max(4, (final - first) // 32)
                error += added
        out = out[first - start : final - start + 1]
        # the tails of such messages, as far as they were written out, are known to a few percent
        unsure = (to.error[a] * extra_a if to.defined[a] else 0.0) + (to.error[b] * extra_b if to.defined[b] else 0.0)
        good = unsure < 0.05 and _own(
            out, first, final, error, law[k], kit, low[k], high[k], lowest[k], highest[k], first, final,
            tilt[k] - to.tilt[a], tilt[k], k, to,
        )  # fmt: skip
        failed += 0 if good else 1
    return failed


@numba.njit(**_OPTIONS)
def part_start(left_mean: Any, share: Any, centre: Any, s: Any, low: Any, high: Any) -> Any:
    """Where the choice of a left part begins: near its mean given the total."""
    return min(max(np.int64(np.rint(left_mean + share * (s - centre))), low), high)


@numba.njit(**_OPTIONS)
def draw_pairs(
    pieces: Any, kind: Any, left: Any, right: Any, shelf_: Any, left_mean: Any, share: Any, centre: Any,
    totals: Any, words: Any, inflation: Any, open_pieces: Any, room: Any,
) -> Any:  # fmt: skip
    """Divide the totals of pairs, for every row of totals; return how many divisions stay open."""
    count = 0
    terms = np.empty(room)
    for i in range(pieces.size):
        p = pieces[i]
        k = kind[p]
        a, b = left[p], right[p]
        if b < 0:
            for row in range(totals.shape[1]):
                totals[a, row] = totals[p, row]
            continue
        ka, kb = kind[a], kind[b]
        f = shelf_.values[shelf_.offset[ka] : shelf_.offset[ka] + shelf_.hi[ka] - shelf_.lo[ka] + 1]
        g = shelf_.values[shelf_.offset[kb] : shelf_.offset[kb] + shelf_.hi[kb] - shelf_.lo[kb] + 1]
        slack = TWICE * inflation * (shelf_.error[ka] + shelf_.error[kb])
        for row in range(totals.shape[1]):
            s = totals[p, row]
            low, high = max(shelf_.lo[ka], s - shelf_.hi[kb]), min(shelf_.hi[ka], s - shelf_.lo[kb])
            start = part_start(left_mean[k], share[k], centre[k], s, low, high)
            part = choose_part(
                f, shelf_.lo[ka], shelf_.hi[ka], shelf_.hard[ka], g, shelf_.lo[kb], shelf_.hi[kb], shelf_.hard[kb],
                shelf_.tilt[kb] - shelf_.tilt[ka], s, start, words[p, row], slack, terms,
            )  # fmt: skip
            if part == UNDECIDED:
                open_pieces[count, 0], open_pieces[count, 1] = row, p
                count += 1
                if count == open_pieces.shape[0]:
                    return -1
                continue
            totals[a, row], totals[b, row] = part, s - part
    return count


@numba.njit(**_OPTIONS)
def leaf_start(laplace: Any, s: Any, share: Any, low: Any, high: Any) -> Any:
    """Where the choice of a leaf's noise begins: 0 for Laplace, its share of the total for Gaussian noise."""
    return min(max(np.int64(0) if laplace else np.int64(np.rint(share * s)), low), high)


@numba.njit(**_OPTIONS)
def draw_parcels(
    parcels: Any, kind: Any, pieces_first: Any, pieces_count: Any, leaf_kind: Any, leaves: Any, kit: Any, ask_lo: Any,
    ask_hi: Any, lowest: Any, highest: Any, below: Any, rest: Any, bend: Any, need: Any, blocks: Any, slots: Any,
    scratch: Any, totals: Any, words: Any, offset: Any, noise: Any, inflation: Any, open_pieces: Any, endless: Any,
) -> Any:  # fmt: skip
    """Divide the totals of parcels, alike ones together, over their leaves; return how many parcels stay open."""
    count = 0
    made = -1
    base = 0
    rows = totals.shape[1]
    rest_of = np.empty(rows, np.int64)
    is_open = np.empty(rows, np.bool_)
    leaf_low, leaf_high, leaf_law, laplace = kit.leaf_low, kit.leaf_high, kit.leaf_law, kit.laplace
    law = np.int64(0)
    powers = kit.weights[law]
    longest = powers.size - 1
    shelves = (blocks, scratch)
    for i in range(parcels.size):
        p = parcels[i]
        k = kind[p]
        head = pieces_first[p]
        size = pieces_count[p]
        if k != made:
            spare_lo = ask_lo[k] - (1 if ask_lo[k] > lowest[k] else 0)
            spare_hi = ask_hi[k] + (1 if ask_hi[k] < highest[k] else 0)
            _, base, _ = prefixes(
                kit, leaf_kind[head : head + size], below[k], rest[k], bend[k], need, spare_lo, spare_hi, blocks, slots,
                scratch, endless,
            )  # fmt: skip
            made = k
        for row in range(rows):
            rest_of[row] = totals[p, row]
            is_open[row] = False
        for from_base in range(2):
            shelf_ = shelves[1 - from_base]
            values, offsets, los, his, errors, scales = (
                shelf_.values, shelf_.offset, shelf_.lo, shelf_.hi, shelf_.error, shelf_.scale
            )  # fmt: skip
            top, bottom = (min(base, size) - 1, 0) if from_base else (size - 1, base - 1)
            for j in range(top, bottom, -1):
                q = leaf_kind[head + j]
                now, under = (slots[q, j + 1], slots[q, j]) if from_base else (j - base + 1, j - base)
                lo, hi, all_lo, all_hi = los[under], his[under], los[now], his[now]
                if leaf_law[q] != law:
                    law = leaf_law[q]
                    powers = kit.weights[law]
                b_lo, b_hi = max(leaf_low[q], -longest), min(leaf_high[q], longest)
                slack = TWICE * inflation * errors[now]
                for row in range(rows):
                    s = rest_of[row]
                    if is_open[row] or s < all_lo or s > all_hi:
                        is_open[row] = True
                        continue
                    low, high = max(b_lo, s - hi), min(b_hi, s - lo)
                    start = leaf_start(laplace, s, 1.0 / (j + 1), low, high)
                    b = choose_leaf(
                        values, lo - offsets[under], powers, low, high, s, start,
                        values[offsets[now] + s - all_lo] / scales[now], words[offset + head + j, row], slack,
                    )  # fmt: skip
                    if b == UNDECIDED:
                        is_open[row] = True
                        continue
                    noise[leaves[head + j], row] = b
                    rest_of[row] = s - b
        for row in range(rows):
            noise[leaves[head], row] = rest_of[row]
            if is_open[row]:
                open_pieces[count, 0], open_pieces[count, 1] = row, p
                count += 1
                if count == open_pieces.shape[0]:
                    return -1
    return count


@numba.njit(**_OPTIONS)
def draw_roots(
    pieces: Any, kind: Any, root: Any, shelf_: Any, centre: Any, totals: Any, words: Any, offset: Any, inflation: Any,
    open_pieces: Any, room: Any,
) -> Any:  # fmt: skip
    """Draw the totals of pieces that have none above them; return how many stay open."""
    count = 0
    terms = np.empty(room)
    for i in range(pieces.size):
        p = pieces[i]
        k = kind[p]
        f = shelf_.values[shelf_.offset[k] : shelf_.offset[k] + shelf_.hi[k] - shelf_.lo[k] + 1]
        for row in range(totals.shape[1]):
            if root[p] == 2:
                totals[p, row] = 0
                continue
            start = part_start(centre[k], 0.0, 0.0, 0, shelf_.lo[k], shelf_.hi[k])
            s = choose_total(
                f, shelf_.lo[k], shelf_.hi[k], shelf_.hard[k], shelf_.tilt[k], start, words[offset + i, row],
                TWICE * inflation * shelf_.error[k], terms,
            )  # fmt: skip
            if s == UNDECIDED:
                open_pieces[count, 0], open_pieces[count, 1] = row, p
                count += 1
                if count == open_pieces.shape[0]:
                    return -1
                continue
            totals[p, row] = s
    return count
