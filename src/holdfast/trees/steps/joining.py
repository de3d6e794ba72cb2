"""Two messages joined in compiled doubles: sums of products, with a proved bound on what they leave out.

What a message is: ends.py. Proofs: docs/theory/exact-trees.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.arrays import BORROWED, compiled
from holdfast.trees.steps.ends import HIGH, LOW, ROUNDING

#: Terms are left out of a sum where they are provably below this share of it; places that lose more are cut off.
NEGLIGIBLE, LEFT_OUT = 1e-13, 1e-11
#: Places of a sum that have one range of terms, and that are kept together or else looked at one by one; terms that are
#: added together; and zeros beside a message for all of them.
_GROUP, _PART, _TERMS, BESIDE = 32, 8, 8, 40


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
    """Put end·r, end·r², … from a place on, to one side; powers of r at every 16th place keep errors small."""
    sixteenth = r**16.0 if count > 16 else 1.0
    head = end
    fourth = (r * r) * (r * r)
    for d in range(0, count, 16):
        if d:
            head = head * sixteenth if d % 64 else end * r ** np.float64(d)
        a = head * r
        b = a * r
        c = b * r
        e = c * r
        for i in range(d, min(d + 16, count), 4):  # up to three places too many, which zeros follow
            at = start + side * i
            result[at], result[at + side], result[at + 2 * side], result[at + 3 * side] = a, b, c, e
            a, b, c, e = a * fourth, b * fourth, c * fourth, e * fourth


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
        # one after the other, so that each product is added as it is made
        more = out[o + i] + a * y[j0 + i] + b * y[j1 + i] + c * y[j2 + i] + d * y[j3 + i]
        out[o + i] = more + e * y[j4 + i] + f * y[j5 + i] + g * y[j6 + i] + h * y[j7 + i]


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
    s, wide = lo, _GROUP
    while s <= hi:
        t = min(s + wide - 1, hi)
        first, last = firsts[(s - lo) // _GROUP], lasts[(s - lo) // _GROUP]
        if first > last:
            if good_lo <= good_hi:
                break
            s = t + 1
            continue
        a, top = out[s - lo], out[t - lo]
        longest = max(longest, last - first + 1)
        left_out = np.inf
        if a > 1e-250 and top > 1e-250:
            left_out = _left_out(one, other, (s, t), (first, last), (a, top))
        if left_out < LEFT_OUT:
            good_lo, good_hi = min(good_lo, s), t
            worst = max(worst, left_out)
        elif wide > 1:
            wide = _PART if wide == _GROUP else 1  # some of them may be right
            continue
        elif a < previous:
            if good_lo <= good_hi:
                break
        else:  # below the mode, where more is left out again: begin anew
            good_lo, good_hi = hi + 1, lo - 1
        previous, s = top, t + 1
        if (s - lo) % _PART == 0:
            wide = _PART if (s - lo) % _GROUP else _GROUP
    return good_lo, good_hi, worst + ROUNDING / 2 * (longest + 88)
