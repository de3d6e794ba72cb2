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

from holdfast.arrays import compiled

#: Relative rounding of one operation, with room for a fused or reordered one.
ROUNDING = 2.3e-16
#: Terms of a sum are left out where they are provably below this share of it.
NEGLIGIBLE = 1e-13
#: Places where more than this share may be left out are cut off a result.
LEFT_OUT = 1e-12
#: Values below this, relative to the largest, are cut off a message.
FAINT = 1e-140
#: Most places that are given up so that a tail ratio can be chosen freely.
GIVE_UP = 24
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

#: Terms of one sum in a convolution.
_BLOCK = 64


@compiled(fastmath={"reassoc", "contract", "nsz"})
def _four_dots(x: Any, i: Any, y: Any, j: Any, count: Any) -> Any:
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    three, two, one = np.uint64(3), np.uint64(2), np.uint64(1)
    for k in range(count):
        value = x[i + k]
        a += value * y[j + k + three]
        b += value * y[j + k + two]
        c += value * y[j + k + one]
        d += value * y[j + k]
    return a, b, c, d


@compiled
def four_dots(x: Any, i: Any, y: Any, j: Any, count: Any) -> Any:
    """Σ x[i+k]·y[j+k+3−d] over k < count, for d = 0, 1, 2, 3, in sums of 64 terms whose order is free.

    Places instead of slices, and unsigned: slices are counted, and signed places checked, each time.
    """
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for start in range(0, count, _BLOCK):
        more_a, more_b, more_c, more_d = _four_dots(
            x, np.uint64(i + start), y, np.uint64(j + start), np.uint64(min(_BLOCK, count - start))
        )
        a += more_a
        b += more_b
        c += more_c
        d += more_d
    return a, b, c, d


@compiled(inline="always")
def one_more(term: Any, y: Any, m: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """The four sums of `four_dots` with one term more; m is the place of its factor in the first sum."""
    return a + term * y[m], b + term * y[m - 1], c + term * y[m - 2], d + term * y[m - 3]


@compiled(inline="always")
def last_of(count: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """The last of the first 1, 2, 3 or 4 of four numbers."""
    return a if count == 1 else (b if count == 2 else (c if count == 3 else d))


@compiled(inline="always")
def put_four(out: Any, i: Any, count: Any, a: Any, b: Any, c: Any, d: Any) -> None:
    """Put the first 1, 2, 3 or 4 of four numbers into `out`, from place i on."""
    out[i] = a
    if count > 1:
        out[i + 1] = b
    if count > 2:
        out[i + 2] = c
    if count > 3:
        out[i + 3] = d


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


@compiled
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
    """A copy of a message with its tails written out, and its window."""
    below = extra if r_lo > 0.0 else 0
    above = extra if r_hi > 0.0 else 0
    result = np.empty(hi - lo + 1 + below + above)
    result[below : below + hi - lo + 1] = f[: hi - lo + 1]
    end = below + hi - lo
    for d in range(1, below + 1):  # a power at every 16th place keeps errors small
        result[below - d] = result[below - d + 1] * r_lo if d & 15 else f[0] * r_lo ** np.float64(d)
    for d in range(1, above + 1):
        result[end + d] = result[end + d - 1] * r_hi if d & 15 else f[hi - lo] * r_hi ** np.float64(d)
    return result, lo - below, hi + above


@compiled
def _left_out(one: Any, other: Any, group: Any, terms: Any, sums: Any) -> Any:
    """Bound the share that sums over the terms first … last leave out, at the places s … t of a group.

    They leave out what is below `first` at s and above `last` at t, and where g's own ends are reached, also below at t
    and above at s. `sums` are those at s and at t.
    """
    f, f_lo, f_hi, f_hard = one
    mirrored, g_lo, g_hi, g_hard = other
    s, t = group
    first, last = terms
    a, top = sums
    left_out = 0.0
    if not ((first == f_lo and f_hard & LOW) or (first == s - g_hi and g_hard & HIGH)):
        end = max(first, s - g_hi)
        before = f[end + 1 - f_lo] * mirrored[3 + g_hi - s + end + 1] if end < last else 0.0
        left_out += beyond(f[end - f_lo] * mirrored[3 + g_hi - s + end], before) / a
    if not ((last == f_hi and f_hard & HIGH) or (last == t - g_lo and g_hard & LOW)):
        end = min(last, t - g_lo)
        before = f[end - 1 - f_lo] * mirrored[3 + g_hi - t + end - 1] if first < end else 0.0
        left_out += beyond(f[end - f_lo] * mirrored[3 + g_hi - t + end], before) / top
    end = t - g_hi
    if first < end <= last and not g_hard & HIGH:
        before = f[end + 1 - f_lo] * mirrored[3 + g_hi - t + end + 1] if end < last else 0.0
        left_out += beyond(f[end - f_lo] * mirrored[3 + g_hi - t + end], before) / top
    end = s - g_lo
    if first <= end < last and not g_hard & LOW:
        before = f[end - 1 - f_lo] * mirrored[3 + g_hi - s + end - 1] if first < end else 0.0
        left_out += beyond(f[end - f_lo] * mirrored[3 + g_hi - s + end], before) / a
    return left_out


@compiled
def _counting(f: Any, f_lo: Any, mirrored: Any, shift: Any, first: Any, last: Any, top: Any) -> Any:
    """The range of terms without those at its ends that hardly count beside their sum."""
    limit, least = 0.05 * LEFT_OUT * top, 0.1 * NEGLIGIBLE * top
    edge = f[last - f_lo] * mirrored[shift + last]
    while last > first:
        inner = f[last - 1 - f_lo] * mirrored[shift + last - 1]
        if edge > least or 2 * edge * inner > limit * (inner - edge):
            break
        last, edge = last - 1, inner
    edge = f[first - f_lo] * mirrored[shift + first]
    while first < last:
        inner = f[first + 1 - f_lo] * mirrored[shift + first + 1]
        if edge > least or 2 * edge * inner > limit * (inner - edge):
            break
        first, edge = first + 1, inner
    return first, last


@compiled
def add_piece(
    f: Any, f_lo: Any, f_hi: Any, f_hard: Any, g: Any, g_lo: Any, g_hi: Any, g_hard: Any, out: Any, lo: Any, hi: Any
) -> Any:
    """out(s) = Σ_a f(a)·g(s−a) for messages with their tails written out; return where this is right, and the error.

    Four places at a time. The law of a given s moves up with s, so the range of terms that count is followed from one
    group of places to the next; what lies below it counts most at the first place, what lies above at the last.
    """
    size = g_hi - g_lo + 1
    mirrored = np.zeros(size + 6)  # g(g_hi), …, g(g_lo) between three zeros on either side
    for i in range(size):
        mirrored[3 + i] = g[size - 1 - i]
    worst = 0.0
    longest, single = 0, 0
    first = f_lo
    last = f_hi
    good_lo, good_hi = hi + 1, lo - 1
    previous = 0.0
    for s in range(lo, hi + 1, 4):
        t = min(s + 3, hi)
        start, stop = max(f_lo, s - g_hi), min(f_hi, t - g_lo)
        if start > stop:
            if good_lo <= good_hi:
                break
            continue
        first = min(max(first, start), stop)
        last = max(min(last + 4, stop), first)
        # the place of g(s − first) in the mirrored array; that of g(s + d − first) is d before it
        j = 3 + g_hi - s + first
        a, b, c, d = four_dots(f, first - f_lo, mirrored, j - 3, last - first + 1)
        top = last_of(t - s + 1, a, b, c, d)
        summed = last
        edge = f[last - f_lo] * mirrored[3 + g_hi - t + last]
        inner = f[last - 1 - f_lo] * mirrored[3 + g_hi - t + last - 1] if first < last else edge
        while last < stop and (edge > NEGLIGIBLE * top or 2 * edge * edge > 0.25 * LEFT_OUT * top * (inner - edge)):
            last += 1
            inner, edge = edge, f[last - f_lo] * mirrored[3 + g_hi - t + last]
            term, m = f[last - f_lo], 3 + g_hi - s + last
            a, b, c, d = one_more(term, mirrored, m, a, b, c, d)
            top = last_of(t - s + 1, a, b, c, d)
        put_four(out, s - lo, t - s + 1, a, b, c, d)
        left_out = _left_out((f, f_lo, f_hi, f_hard), (mirrored, g_lo, g_hi, g_hard), (s, t), (first, last), (a, top))
        if a > 1e-250 and top > 1e-250 and left_out < LEFT_OUT:
            good_lo, good_hi = min(good_lo, s), t
            worst = max(worst, left_out)
            longest = max(longest, last - first + 1)
            single = max(single, last - summed)
        elif a < previous:
            if good_lo <= good_hi:
                break
        else:  # below the mode, where more is left out again: begin anew
            good_lo, good_hi = hi + 1, lo - 1
        previous = top
        # leave out what will not count in the next group either
        first, last = _counting(f, f_lo, mirrored, 3 + g_hi - t, first, last, top)
    return good_lo, good_hi, worst + ROUNDING / 2 * (_BLOCK + longest // _BLOCK + single + 56)


@compiled
def retilted(values: Any, lo: Any, hi: Any, tilt: Any) -> Any:
    """Multiply by e^{tilt·(s − middle)} in place; return the relative error."""
    if tilt == 0.0:
        return 0.0
    middle = (lo + hi) // 2
    if abs(tilt) * (hi - lo) > 1000.0:
        return np.inf
    up, down = np.exp(tilt), np.exp(-tilt)
    factor = 1.0
    for s in range(middle + 1, hi + 1):
        factor *= up
        values[s - lo] *= factor
    factor = 1.0
    for s in range(middle - 1, lo - 1, -1):
        factor *= down
        values[s - lo] *= factor
    return ROUNDING * (4 + abs(tilt)) * (hi - lo + 4)


@compiled
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


@compiled
def _free_end(values: Any, start: Any, end: Any, inwards: Any, give_up: Any, error: Any, swerve: Any) -> Any:
    """The nearest place to an end with room for a tail ratio, that ratio, and False; else the end itself, and True."""
    for at in range(end - start, end - start + inwards * (give_up + 1), inwards):
        ratio, plain = tail_ratio(values[at - inwards], values[at], values[at + inwards], error, swerve)
        if not plain:
            return at + start, ratio, plain
    at = end - start
    ratio, plain = tail_ratio(values[at - inwards], values[at], values[at + inwards], error, swerve)
    return end, ratio, plain


@compiled
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
