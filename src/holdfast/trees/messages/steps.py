"""Compiled steps that join two messages, weigh them and choose their tails, with proved bounds on the relative error.

A message is what its doubles say: values on a window lo, …, hi, and beyond an end the series M(hi)·r^d, or 0 beyond a
*hard* end. Up to a constant it is nowhere below the sum over all ways to divide a total between the two messages below,
and inside its window hardly above it: by a share that every step bounds, adding positive terms only. Beyond a soft end
that is so because messages are log-concave up to their errors. Draws from them are proposals that one test makes exact
(exact.py): badly chosen windows cost time, never exactness. Proofs: docs/theory/exact-trees.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.arrays import BORROWED, compiled

#: Relative rounding of one operation, with room for a fused or reordered one.
ROUNDING = 2.3e-16
#: Terms are left out of a sum where they are provably below this share of it; places that lose more are cut off.
NEGLIGIBLE, LEFT_OUT = 1e-13, 1e-11
#: Values below this, relative to the largest, are cut off a message; most places given up for a free tail ratio.
FAINT, GIVE_UP = 1e-140, 24
#: How often some places are cut off an end of a message that would lean on a tail without room.
TRIMS = 12
#: Sums are kept where the mean distance beyond an end without room is at most this.
LEANING = 1e-3
#: Messages that are further from log-concave ones are refused: bounds hold room for the square of such an error.
MOST_ERROR = 1e-4
#: Numbers below this are not told from 0, since the smallest doubles have few digits.
SMALLEST = 1e-290
#: Weights that reach further above that in the middle of a window are refused.
LARGEST_FACTOR = 1e280
#: Codes of hard ends, and of ends without room.
LOW, HIGH = 1, 2
#: Places of a sum that have one range of terms, and that are kept or cut off together; terms that are added together;
#: and zeros beside a message for all of them.
_GROUP, _PART, _TERMS, BESIDE = 32, 8, 8, 40


@compiled(inline="always")
def tail_ratio(following: Any, edge: Any, before: Any, error: Any, swerve: Any) -> Any:
    """The ratio beyond an end, and whether there was no room for the errors between the next ratio and the last one.

    `swerve` is that of the messages below.
    """
    last, upcoming = edge / before, following / edge
    room = 2.25 * error + 2e-15
    lift = 1 + 2.1 * room + swerve
    if upcoming * lift < last * (1 - room):
        return upcoming * lift, False
    return last * lift, True


@compiled(inline="always")
def swerve_of(leaning: Any, error: Any, swerve: Any) -> Any:
    """How far, for each place beyond an end without room, a message may be from a log-concave one."""
    return 7.5 * error + 7e-15 + swerve if leaning else 0.0


@compiled(inner=True, **BORROWED)
def beyond(end: Any, before: Any) -> Any:
    """Bound the sum of log-concave terms beyond an end by a geometric series from the last two terms."""
    if end < 1e-290:
        return 1e-280
    if not end < 0.999 * before:
        return np.inf
    ratio = end / before
    return 2 * end * ratio / (1 - ratio)  # twice: the terms have errors up to MOST_ERROR


@compiled
def extended(f: Any, lo: Any, hi: Any, r_lo: Any, r_hi: Any, extra: Any) -> Any:
    """A copy of a message with its tails written out, BESIDE zeros on both sides, and its window."""
    result = np.empty(hi - lo + 1 + 2 * (extra + BESIDE))
    below, above = extend(f, lo, hi, r_lo, r_hi, extra, result)
    return result, lo - below, hi + above


@compiled(inner=True, **BORROWED)
def extend(f: Any, lo: Any, hi: Any, r_lo: Any, r_hi: Any, extra: Any, result: Any) -> Any:
    """Write a message, its tails and BESIDE zeros on both sides; return the places of the two tails."""
    below = extra if r_lo > 0.0 else 0
    above = extra if r_hi > 0.0 else 0
    middle, end = np.uint64(BESIDE + below), BESIDE + below + hi - lo + 1
    for i in range(np.uint64(hi - lo + 1)):
        result[middle + i] = f[i]
    _tail(result, BESIDE + below - 1, -1, f[0], r_lo, below)
    _tail(result, end, 1, f[hi - lo], r_hi, above)
    for i in range(BESIDE):
        result[i] = result[end + above + i] = 0.0
    return below, above


@compiled(inner=True, **BORROWED)
def _tail(result: Any, start: Any, side: Any, end: Any, r: Any, count: Any) -> None:
    """Put end·r, end·r², … from a place on, to one side; a power of r at every 16th place keeps errors small."""
    for d in range(0, count, 16):
        value = end * r ** np.float64(d)
        for i in range(d, min(d + 16, count)):
            value *= r
            result[start + side * i] = value


@compiled(inner=True, **BORROWED)
def _left_out(one: Any, other: Any, places: Any, terms: Any, sums: Any) -> Any:
    """Bound the share that sums over the terms first … last leave out, at the places s … t.

    They leave out what is below `first` at s and above `last` at t, and where g's own ends are reached, also below at t
    and above at s. `sums` are those at s and at t.
    """
    f_lo, f_hi, f_hard = one[1:]
    g_lo, g_hi, g_hard = other[1:]
    s, t = places
    first, last = terms
    a, top = sums
    left_out = 0.0
    low, high = max(first, s - g_hi), min(last, t - g_lo)
    if not ((low == f_lo and f_hard & LOW) or (low == s - g_hi and g_hard & HIGH)):
        left_out += _beyond(one, other, s, low, 1, last) / a
    if not ((high == f_hi and f_hard & HIGH) or (high == t - g_lo and g_hard & LOW)):
        left_out += _beyond(one, other, t, high, -1, first) / top
    if first < t - g_hi <= last and not g_hard & HIGH:
        left_out += _beyond(one, other, t, t - g_hi, 1, last) / top
    if first <= s - g_lo < last and not g_hard & LOW:
        left_out += _beyond(one, other, s, s - g_lo, -1, first) / a
    return left_out


@compiled(inline="always")
def _term(one: Any, other: Any, s: Any, a: Any) -> Any:
    """The term f(a)·g(s−a), 0 beyond what is written out."""
    # unsigned: signed places are checked each time
    return one[0][np.uint64(a - one[1] + BESIDE)] * other[0][np.uint64(s - a - other[1] + BESIDE)]


@compiled(inner=True, **BORROWED)
def _beyond(one: Any, other: Any, s: Any, end: Any, inwards: Any, stop: Any) -> Any:
    """Bound the terms at s beyond an end of their range, whose other end is `stop`."""
    before = _term(one, other, s, end + inwards) if end != stop else 0.0
    return beyond(_term(one, other, s, end), before)


@compiled(inner=True, **BORROWED)
def _ranges(one: Any, other: Any, lo: Any, hi: Any, first: Any, last: Any) -> None:
    """For each group of places, the first and the last term that may count; they go up with the places.

    The largest term is followed; a range ends where what lies beyond is a small share of it.
    """
    f_lo, f_hi = one[1], one[2]
    g_lo, g_hi = other[1], other[2]
    mode, low, high = f_lo, f_lo, f_lo
    for i in range(first.size):
        s, t = max(lo + i * _GROUP, f_lo + g_lo), min(lo + (i + 1) * _GROUP - 1, hi, f_hi + g_hi)
        if s > t:  # no sum reaches there
            first[i], last[i] = 1, 0
            continue
        start, stop = max(f_lo, s - g_hi), min(f_hi, t - g_lo)
        mode = min(max(mode, start), stop)
        peak = _term(one, other, s, mode)
        while mode < stop:
            following = _term(one, other, s, mode + 1)
            if following < peak:
                break
            mode, peak = mode + 1, following
        limit = 0.1 * LEFT_OUT * peak
        low = min(max(low, start), stop)
        while low + 2 < mode:
            edge, inner = _term(one, other, s, low + 1), _term(one, other, s, low + 2)
            if 2 * edge * edge > limit * (inner - edge):
                break
            low += 1
        # the largest term at t is no smaller than the one at this place
        high = min(max(high, mode), stop)
        limit = 0.1 * LEFT_OUT * _term(one, other, t, mode)
        edge = _term(one, other, t, high)
        while high < stop:
            inner, edge = edge, _term(one, other, t, high + 1)
            high += 1
            if edge < inner and 2 * edge * edge <= limit * (inner - edge):
                break
        first[i], last[i] = low, high


@compiled(inner=True, fastmath={"contract"}, **BORROWED)
def _add_terms(out: Any, o: Any, y: Any, j: Any, count: Any, x: Any, k: Any) -> None:
    """out[o + i] += Σ_m x[k + m]·y[j + i − m] over m < _TERMS, for i < count."""
    a, b, c, d, e, f, g, h = x[k], x[k + 1], x[k + 2], x[k + 3], x[k + 4], x[k + 5], x[k + 6], x[k + 7]
    # unsigned: signed places are checked each time
    o, j0, j1, j2, j3 = np.uint64(o), np.uint64(j), np.uint64(j - 1), np.uint64(j - 2), np.uint64(j - 3)
    j4, j5, j6, j7 = np.uint64(j - 4), np.uint64(j - 5), np.uint64(j - 6), np.uint64(j - 7)
    for i in range(np.uint64(count)):
        low = (a * y[j0 + i] + b * y[j1 + i]) + (c * y[j2 + i] + d * y[j3 + i])
        high = (e * y[j4 + i] + f * y[j5 + i]) + (g * y[j6 + i] + h * y[j7 + i])
        out[o + i] += low + high


@compiled(inner=True, **BORROWED)
def _summed(one: Any, other: Any, out: Any, lo: Any, hi: Any, first: Any, last: Any) -> None:
    """Sum the terms of all groups: some of f at a time, over all places whose range holds one of them."""
    out[: hi - lo + 1] = 0.0
    begin = 0
    while begin < first.size and first[begin] > last[begin]:
        begin += 1
    if begin == first.size:
        return
    end = stop = begin
    while stop < first.size and first[stop] <= last[stop]:
        stop += 1
    for a in range(first[begin], last[stop - 1] + 1, _TERMS):
        while end < stop and first[end] < a + _TERMS:
            end += 1
        while begin < end and last[begin] < a:
            begin += 1
        if begin == end:
            continue
        s = lo + begin * _GROUP
        count = min(end * _GROUP, hi - lo + 1) - begin * _GROUP
        _add_terms(out, s - lo, other[0], s - a - other[1] + BESIDE, count, one[0], a - one[1] + BESIDE)


@compiled
def add_piece(one: Any, other: Any, out: Any, lo: Any, hi: Any) -> Any:
    """out(s) = Σ_a f(a)·g(s−a) for messages with their tails written out; return where this is right, and the error.

    Each is given by what `extended` makes and which ends are hard. The law of a given s moves up with s, so the range
    of terms that count does too; it is chosen for groups of places. What lies below it counts most at a group's first
    place, what lies above at its last.
    """
    groups = (hi - lo) // _GROUP + 1
    firsts, lasts = np.empty(groups, np.int64), np.empty(groups, np.int64)
    _ranges(one, other, lo, hi, firsts, lasts)
    _summed(one, other, out, lo, hi, firsts, lasts)
    worst, previous = 0.0, 0.0
    longest = 0
    good_lo, good_hi = hi + 1, lo - 1
    for s in range(lo, hi + 1, _PART):
        t = min(s + _PART - 1, hi)
        first, last = firsts[(s - lo) // _GROUP], lasts[(s - lo) // _GROUP]
        if first > last:
            if good_lo <= good_hi:
                break
            continue
        a, top = out[s - lo], out[t - lo]
        longest = max(longest, last - first + 1)
        left_out = np.inf
        if a > 1e-250 and top > 1e-250:
            left_out = _left_out(one, other, (s, t), (first, last), (a, top))
        if left_out < LEFT_OUT:
            good_lo, good_hi = min(good_lo, s), t
            worst = max(worst, left_out)
        elif a < previous:
            if good_lo <= good_hi:
                break
        else:  # below the mode, where more is left out again: begin anew
            good_lo, good_hi = hi + 1, lo - 1
        previous = top
    return good_lo, good_hi, worst + ROUNDING / 2 * (longest // 4 + 64)


@compiled(**BORROWED)
def weigh(values: Any, lo: Any, hi: Any, law: Any, laplace: Any, rate: Any, tilt: Any) -> Any:
    """Multiply by an output's own weight and a tilt, up to a factor, in place; return the relative error.

    `rate` is 1/λ or 1/(2σ²). The error is infinite where doubles do not hold the largest weights. Values at the ends
    that they do not hold become 0, and are cut off later.
    """
    if law < 0 and tilt == 0.0:
        return 0.0
    middle = (lo + hi) // 2
    if law >= 0 and not laplace:
        largest = 0.0
        for s in range(lo, hi + 1):
            own = rate * np.float64((s - middle) * (s + middle))
            factor = np.exp(tilt * (s - middle) - own)
            if factor > LARGEST_FACTOR:
                return np.inf
            values[s - lo] *= factor if factor > SMALLEST else 0.0
            if factor > SMALLEST:
                largest = max(largest, abs(own) + abs(tilt * (s - middle)))
        return ROUNDING * (4 * largest + 8)
    own = rate if law >= 0 else 0.0
    # the largest factors are at 0 and at the ends
    most = 0.0
    for s in (lo, min(max(np.int64(0), lo), hi), hi):
        most = max(most, tilt * (s - middle) - own * (abs(s) - abs(middle)))
    if most > np.log(LARGEST_FACTOR):
        return np.inf
    falling_up, rising_up = np.exp(tilt - own), np.exp(tilt + own)
    falling_down, rising_down = np.exp(-tilt - own), np.exp(-tilt + own)
    factor = 1.0
    for s in range(middle + 1, hi + 1):
        factor *= falling_up if s > 0 else rising_up
        values[s - lo] *= factor if factor > SMALLEST else 0.0
    factor = 1.0
    for s in range(middle - 1, lo - 1, -1):
        factor *= falling_down if s < 0 else rising_down
        values[s - lo] *= factor if factor > SMALLEST else 0.0
    return ROUNDING * (6 + 2 * (abs(tilt) + own)) * (hi - lo + 4)


@compiled(inner=True, **BORROWED)
def _free_end(values: Any, start: Any, end: Any, inwards: Any, give_up: Any, error: Any, swerve: Any) -> Any:
    """The nearest place to an end with room for a tail ratio, that ratio, and False; else the end itself, and True."""
    for at in range(end - start, end - start + inwards * (give_up + 1), inwards):
        ratio, plain = tail_ratio(values[at - inwards], values[at], values[at + inwards], error, swerve)
        if not plain:
            return at + start, ratio, plain
    at = end - start
    ratio, plain = tail_ratio(values[at - inwards], values[at], values[at + inwards], error, swerve)
    return end, ratio, plain


@compiled(**BORROWED)
def finish(values: Any, lo: Any, hi: Any, lowest: Any, highest: Any, error: Any, swerve: Any) -> Any:
    """Choose the stored window inside a computed one, with a place to spare at each soft end, and the tail ratios.

    The values are scaled by a power of two to a largest value near 1. Return lo, hi, the two ratios, hard ends, ends
    without room and their swerve, and that power of two; 0 if there is no such window. `swerve` is that of the messages
    below.
    """
    start = lo
    largest = 0.0
    for s in range(lo, hi + 1):
        largest = max(largest, values[s - start])
    if not (largest > SMALLEST and largest < np.inf and error < MOST_ERROR):
        return lo, hi, 0.0, 0.0, 0, 0, 0.0, 0.0
    faint = max(FAINT * largest, SMALLEST)
    first, last = lo, hi
    while values[first - start] < faint:
        first += 1
    while values[last - start] < faint:
        last -= 1
    scale = 2.0 ** -np.floor(np.log2(largest))
    for s in range(first, last + 1):
        values[s - start] *= scale
    hard, leaning = 0, 0
    r_lo, r_hi = 0.0, 0.0
    if first == lowest:
        hard |= LOW
        lo = first
    else:
        lo = first + 1
    if last == highest:
        hard |= HIGH
        hi = last
    else:
        hi = last - 1
    if hi < lo or (hi == lo and hard != LOW | HIGH):
        return lo, hi, 0.0, 0.0, hard, 0, 0.0, 0.0
    # an end that leaves room for a ratio is worth a few places
    give_up = min(GIVE_UP, (hi - lo) // 8)
    if not hard & LOW:
        lo, r_lo, plain = _free_end(values, start, lo, 1, give_up, error, swerve)
        leaning |= LOW if plain else 0
    if not hard & HIGH:
        hi, r_hi, plain = _free_end(values, start, hi, -1, give_up, error, swerve)
        leaning |= HIGH if plain else 0
    return lo, hi, r_lo, r_hi, hard, leaning, swerve_of(leaning, error, swerve), scale


@compiled(inline="always")
def ends(values: Any, lo: Any, hi: Any, lowest: Any, highest: Any, error: Any, swerve: Any) -> Any:
    """As `finish`, for a message that needs neither scaling nor shortening; the last result is 1, or 0 for failure."""
    hard, leaning, r_lo, r_hi = 0, 0, 0.0, 0.0
    first, last = lo, hi
    if first == lowest:
        hard |= LOW
    else:
        first += 1
    if last == highest:
        hard |= HIGH
    else:
        last -= 1
    if last < first or (last == first and hard != LOW | HIGH) or not error < MOST_ERROR:
        return first, last, 0.0, 0.0, hard, 0, 0.0, 0.0
    if not (values[0] > 1e-200 and values[hi - lo] > 1e-200 and values[(hi - lo) // 2] < 1e250):
        return first, last, 0.0, 0.0, hard, 0, 0.0, 0.0
    if not hard & LOW:
        r_lo, plain = tail_ratio(values[0], values[1], values[2], error, swerve)
        leaning |= LOW if plain else 0
    if not hard & HIGH:
        r_hi, plain = tail_ratio(values[hi - lo], values[hi - lo - 1], values[hi - lo - 2], error, swerve)
        leaning |= HIGH if plain else 0
    return first, last, r_lo, r_hi, hard, leaning, swerve_of(leaning, error, swerve), 1.0
