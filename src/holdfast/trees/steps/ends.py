"""What a message is, its own weight and its ends, in compiled doubles with proved bounds on the relative error.

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


@compiled(inline="always")
def trimmed(first: Any, final: Any, side: Any, turn: Any) -> Any:
    """A window without some places at its low (0) or high end (1): few at first, since they may be needed."""
    places = max(1 + turn // 2, (final - first) // 32)
    return (first, final - places) if side else (first + places, final)


@compiled(inner=True, **BORROWED)
def _scaled(values: Any, start: Any, stop: Any, step: Any, factor: Any, by: Any) -> Any:
    """Multiply values from one place to before another by factor·by, factor·by², …; return the last one."""
    for i in range(start, stop, step):
        factor *= by
        values[i] *= factor if factor > SMALLEST else 0.0
    return factor


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
    # places beyond 0, and before it, one after the other: a choice at each place would make both powers there
    turn = min(max(middle, 0), hi) + 1
    factor = _scaled(values, middle + 1 - lo, turn - lo, 1, 1.0, rising_up)
    _scaled(values, turn - lo, hi + 1 - lo, 1, factor, falling_up)
    turn = max(min(middle, 0), lo) - 1
    factor = _scaled(values, middle - 1 - lo, turn - lo, -1, 1.0, rising_down)
    _scaled(values, turn - lo, -1, -1, factor, falling_down)
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
