"""A Laplace leaf added to a message in compiled doubles, with a proved bound on the relative error.

Two recursions, one for noise of 0 and more and one for noise below 0, are started by the geometric tails of the message
(ends.py); what the leaf's bounds cut off is taken away, or the sum is put together without it. Proofs:
docs/theory/exact-trees.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.arrays import BORROWED, compiled
from holdfast.compiler import put
from holdfast.trees.steps.ends import ROUNDING, SMALLEST

#: The largest share of a sum that is taken away from it, and what is not taken away because it hardly counts.
CUT_OFF, HARDLY = 0.8, 1e-16
#: No bound on a leaf.
ENDLESS = 2**62


@compiled(inner=True, fastmath={"contract"}, **BORROWED)
def _fall(room: Any, size: Any, stop: Any, alpha: Any, falling: Any) -> Any:
    """With x = room[:size], put T(i) = Σ α^j·x[i+j] over j ≥ 0 into room[2·size + i], from the end down to `stop`.

    Given is this sum beyond the end. Four places at a time: only the last one waits for the four before it.
    """
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)  # unsigned: signed ones are checked
    second, third, fourth = alpha * alpha, alpha * alpha * alpha, (alpha * alpha) * (alpha * alpha)
    down, places = np.uint64(2 * size), np.uint64(size - stop)
    for i in range(np.uint64(0), places // four * four, four):
        j = np.uint64(size) - four - i
        d = room[j + three]
        c = room[j + two] + alpha * d
        b = room[j + one] + alpha * c
        a = room[j] + alpha * b
        room[down + j + three] = d + alpha * falling
        room[down + j + two] = c + second * falling
        room[down + j + one] = b + third * falling
        falling = a + fourth * falling
        room[down + j] = falling
    for i in range(places // four * four, places):
        j = np.uint64(size) - one - i
        falling = falling * alpha + room[j]
        room[down + j] = falling
    return falling


@compiled(inner=True, fastmath={"contract"}, **BORROWED)
def _rise(room: Any, size: Any, alpha: Any, rising: Any, out: Any, count: Any, shift: Any, factor: Any) -> Any:
    """Put U = Σ α^j·x[i−j] over j ≥ 0, plus a factor times T one place further, into `out`, for i from `shift` on.

    Given is U before the first place, returned that at the last; x and T as in `_fall`.
    """
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    second, third, fourth = alpha * alpha, alpha * alpha * alpha, (alpha * alpha) * (alpha * alpha)
    x, above, whole = np.uint64(shift), np.uint64(2 * size + shift + 1), np.uint64(count) // four * four
    for i in range(x):
        rising = rising * alpha + room[i]
    for i in range(np.uint64(0), whole, four):
        a = room[x + i]
        b = room[x + i + one] + alpha * a
        c = room[x + i + two] + alpha * b
        d = room[x + i + three] + alpha * c
        out[i] = a + alpha * rising + factor * room[above + i]
        out[i + one] = b + second * rising + factor * room[above + i + one]
        out[i + two] = c + third * rising + factor * room[above + i + two]
        rising = d + fourth * rising
        out[i + three] = rising + factor * room[above + i + three]
    for i in range(whole, np.uint64(count)):
        rising = rising * alpha + room[x + i]
        out[i] = rising + factor * room[above + i]
    return rising


@compiled(inner=True, fastmath={"contract"}, **BORROWED)
def _put(out: Any, count: Any, x: Any, start: Any) -> None:
    """out = x from a place on."""
    for i in range(np.uint64(count)):
        out[i] = x[np.uint64(start) + i]


@compiled(inner=True, fastmath={"contract"}, **BORROWED)
def _add(out: Any, first: Any, last: Any, factor: Any, x: Any, start: Any) -> None:
    """Add factor times x, from a place on, to out[first:last]."""
    for i in range(np.uint64(max(last - first, 0))):
        out[np.uint64(first) + i] += factor * x[np.uint64(start) + i]


@compiled(inline="always")
def _recursion(run: Any, last: Any, most: Any) -> Any:
    """Roundings of the last sum of a recursion: three for each time that a term was multiplied, on average.

    The sum has log-concave terms, the first of which is `last`; so that average is at most what it is for a geometric
    series with this sum and first term. `most` bounds it too, also where doubles do not hold the sum.
    """
    return 1.5 * (min(most, 1.01 * (run / last - 1.0)) if last >= SMALLEST else most) + 4.0


@compiled(inner=True, fastmath={"contract"}, **BORROWED)
def _put_sum(room: Any, to: Any, x: Any, factor: Any, y: Any, count: Any) -> None:
    """room[to + i] = room[x + i] + factor·room[y + i]."""
    to, x, y = np.uint64(to), np.uint64(x), np.uint64(y)
    for i in range(np.uint64(count)):
        room[to + i] = room[x + i] + factor * room[y + i]


@compiled(inner=True, **BORROWED)
def _window(room: Any, start: Any, size: Any, powers: Any, n: Any, r: Any, out: Any, count: Any) -> Any:
    """With f = room[start:size], add Σ_{1≤j≤n} α^j·f[i+j] to out[i] for i < count; f is geometric beyond its end.

    Sums over 1, 2, 4, … places are doubled, in what follows in `room`, and the sum over n places is put together from
    them: all terms are positive, and each takes part in few additions. What lies beyond the end counts most at the last
    place. Return the roundings.
    """
    alpha = powers[1]
    now, other, both = start, size, 3 * size
    edge = room[size - 1]
    size -= start
    length, done, left = 1, 1, n  # `now` sums over `length` places; places up to `done` − 1 are already added
    while done < size:
        whole = length >= size
        if left & 1 or whole:
            _add(out, 0, min(count, size - done), powers[done], room, now + done)
            done += length
        left >>= 1
        if left == 0 or whole:
            break
        _put_sum(room, other, now, powers[length], now + length, size - length)
        for i in range(size - length, size):
            room[other + i] = room[now + i]
        now, other = other, both - other
        length *= 2
    roundings = 4.0 * np.log2(n + 2.0)
    if r > 0.0:
        # beyond the end: α^{size−1−i}·f[size−1]·(q + q² + … + q^m), q = α·r, m = i + n − size + 1
        q = alpha * r
        stop = max(size - n, 0)
        top = min(size, count) - 1
        mean = min(np.float64(n), 1 / (1 - q)) if q < 1.0 else np.float64(n)  # of the exponents of q, at most
        if abs(1 - q) > 1e-3 and top >= stop:
            last = q ** np.float64(n - (size - 1 - top))
            whole, inverse = q / (1 - q), 1 / q
            share = 0.0
            i = top + 1
            power = 0.0
            while i > stop:
                i -= 1
                if i < top:  # a power that doubles did not hold at the last place may count further down
                    last = last * inverse if last > SMALLEST else q ** np.float64(i + n - size + 1)
                power = powers[size - 1 - i] * whole
                term = edge * (power * (1 - last))
                out[i] += term
                if i == top:
                    share = term / out[i] if out[i] >= SMALLEST else 1.0
                if term < 1e-18 * out[i]:
                    break
            # the roundings of `last`, which count most at the lowest place; |1 − q| > 0.001 bounds what they count for
            counts = edge * (abs(power) * last) / out[i] if out[i] >= SMALLEST else 1.1e3
            roundings += share * (2 * mean + 6.0) + (top - i + 3.0) * counts
        elif top >= stop:
            _even_tail(out, powers, edge, q, (n, size, top, stop))
            roundings += 2 * mean + 6.0
    return roundings


@compiled(inner=True)
def _even_tail(out: Any, powers: Any, edge: Any, q: Any, places: Any) -> None:
    """What lies beyond the end of `_window` where q is nearly 1: powers of q are added up one by one."""
    n, size, top, stop = places
    sums = np.empty(n + 1)
    sums[0] = 0.0
    for m in range(1, n + 1):
        sums[m] = (sums[m - 1] + 1.0) * q
    for i in range(top, stop - 1, -1):
        out[i] += edge * powers[size - 1 - i] * sums[i + n - size + 1]


@compiled(inner=True)
def _mirrored(out: Any, room: Any, size: Any, count: Any, powers: Any, bound: Any, r: Any) -> Any:
    """Put the sums over noise from 0 to a near bound into `out`: those of `_window`, seen from the other side."""
    mirrored = np.empty(3 * size)
    put(room[:size][::-1], mirrored)
    summed = mirrored[:count].copy()
    roundings = _window(mirrored, 0, size, powers, bound, r, summed, count)
    put(summed[::-1], out)
    return roundings


@compiled(inner=True, **BORROWED)
def _noise_above(out: Any, room: Any, spread: Any, leaf: Any, tail_up: Any, r_lo: Any) -> Any:
    """Put the sums over noise from 0 to a bound into `out`; return the roundings, infinite where there is no sum.

    `spread` is the size of the windows together, and how many places of the result begin where; `leaf` holds weights
    and the bound; `tail_up` is the sum beyond the end.
    """
    size, count, shift = spread
    powers, b_hi = leaf
    alpha, q_lo = powers[1], powers[1] * r_lo
    if b_hi == 0:
        _put(out, count, room, shift)
        return 0.0
    top = shift + count - 1
    cut = 1.0
    if q_lo < 1.0:  # the share that the bound cuts off is largest at the last place
        sums = room[size : 2 * size]
        if not _rise(room, size, alpha, tail_up, sums, top + 1, 0, 0.0) < np.inf:
            return np.inf
        end = top - b_hi - 1
        cut = powers[b_hi] * alpha * (sums[end] if end >= 0 else tail_up * r_lo ** np.float64(-1 - end))
        cut = cut / sums[top] if sums[top] >= SMALLEST else 1.0
    if cut > CUT_OFF:
        return _mirrored(out, room, top + 1, count, powers, b_hi, r_lo)
    _put(out, count, room, size + shift)
    above = _recursion(room[size + top], room[top], size + q_lo / (1 - q_lo))
    if cut > HARDLY:
        factor = powers[b_hi] * alpha
        start = min(max(b_hi + 1 - shift, 0), count)
        _add(out, start, count, -factor, room, size + shift + start - b_hi - 1)
        rest = factor * (tail_up * r_lo ** np.float64(b_hi - shift - (start - 1)))
        for i in range(start - 1, -1, -1):
            out[i] -= rest
            if rest <= HARDLY * out[i]:
                break
            rest *= r_lo
        above = (above + (b_hi + 8) * cut) * (1 + cut) / (1 - cut)
    return above


@compiled(inner=True, **BORROWED)
def _share(room: Any, size: Any, place: Any, powers: Any, n: Any, tail_down: Any, r_hi: Any) -> Any:
    """The share of T one place above a place that lies beyond n more: what a bound takes away from noise below 0."""
    end = place + 1 + n
    rest = powers[n] * (room[2 * size + end] if end < size else tail_down * r_hi ** np.float64(end - size))
    whole = room[2 * size + place + 1]
    return rest / whole if whole >= SMALLEST else 1.0


@compiled(inner=True, **BORROWED)
def _first_kept(room: Any, spread: Any, leaf: Any, tail_down: Any, r_hi: Any) -> Any:
    """The first place of the result at which at most `CUT_OFF` is taken away from noise below 0, and that share."""
    size, count, shift = spread
    powers, n = leaf
    if n == 0:
        return 0, 0.0
    if not powers[1] * r_hi < 1.0:
        return count, 1.0
    if n == ENDLESS:
        return 0, 0.0
    cut = _share(room, size, shift, powers, n, tail_down, r_hi)  # it falls from place to place
    if cut <= CUT_OFF:
        return 0, cut
    low, high, least = 0, count, 1.0
    while high - low > 1:
        middle = (low + high) // 2
        cut = _share(room, size, shift + middle, powers, n, tail_down, r_hi)
        if cut <= CUT_OFF:
            high, least = middle, cut
        else:
            low = middle
    return high, least


@compiled(inner=True, **BORROWED)
def _take_away(out: Any, start: Any, stop: Any, rest: Any, r: Any) -> None:
    """Take rest, rest·r, rest·r², … away from places on, until it hardly counts; four at a time."""
    one, two, three = np.uint64(1), np.uint64(2), np.uint64(3)
    fourth = (r * r) * (r * r)
    a, b, c, d = rest, rest * r, rest * (r * r), rest * (r * r * r)
    i, places = np.uint64(start), np.uint64(max(stop - start, 0))
    for _ in range(places // np.uint64(4)):
        last = out[i + three] - d
        out[i], out[i + one], out[i + two], out[i + three] = out[i] - a, out[i + one] - b, out[i + two] - c, last
        if d <= HARDLY * last:
            return
        a, b, c, d = a * fourth, b * fourth, c * fourth, d * fourth
        i += np.uint64(4)
    for j in range(i, np.uint64(max(stop, start))):
        out[j] -= a
        a *= r


@compiled(inner=True, **BORROWED)
def _noise_below(
    out: Any, room: Any, spread: Any, leaf: Any, tail_down: Any, r_hi: Any, near: Any, cut: Any, added: Any
) -> Any:
    """Add the sums over noise below 0, up to a bound that is counted downwards, to `out`; return the roundings.

    From the place `near` on, the share that the bound takes away is at most `cut`; `added` says whether the sums
    without a bound are already there.
    """
    size, count, shift = spread
    powers, n = leaf
    alpha, q_hi = powers[1], powers[1] * r_hi
    if n == 0:
        return 0.0
    below = 0.0
    if near < count:
        if not added:
            _add(out, near, count, alpha, room, 2 * size + shift + near + 1)
        place = shift + near + 1
        below = _recursion(room[2 * size + place], room[place], size + q_hi / (1 - q_hi))
    if cut > HARDLY and near < count:
        factor = powers[n] * alpha
        stop = min(max(size - shift - 1 - n, near), count)
        _add(out, near, stop, -factor, room, 2 * size + shift + near + 1 + n)
        rest = factor * (tail_down * r_hi ** np.float64(shift + 1 + n + stop - size))
        _take_away(out, stop, count, rest, r_hi)
        below = (below + (n + 8) * cut) * (1 + cut) / (1 - cut)
    if near > 0:  # last: it needs the room of the sums
        if n == ENDLESS:
            return np.inf
        end = min(shift + near + n, size)  # beyond, nothing is asked for
        sums = _window(room, shift, end, powers, n, r_hi, out, near)
        below = max(below, sums)
    return below


@compiled(**BORROWED)
def add_leaf(
    f: Any,
    lo: Any,
    hi: Any,
    r_lo: Any,
    r_hi: Any,
    powers: Any,
    b_lo: Any,
    b_hi: Any,
    out: Any,
    out_lo: Any,
    out_hi: Any,
    room: Any,
) -> Any:
    """out(s) = Σ α^{|b|}·f(s−b) over b_lo ≤ b ≤ b_hi (b_lo ≤ 0 ≤ b_hi, ∓2**62: no bound); return the relative error.

    Noise of 0 and more comes from totals at and below s, noise below 0 from those above: one recursion each, which the
    geometric tails start. What a bound cuts off is taken away again where it is at most `CUT_OFF` of the whole; where
    it is more, sums over 1, 2, 4, … places make up the sum over a window (THEORY H2: nothing is subtracted).
    `room` holds three times the places of both windows together, and three more.
    """
    alpha = powers[1]
    # the window and that of the result together, tails written out; one place more above, for noise below 0
    first, final = min(lo, out_lo), max(hi, out_hi + 1)
    size = final - first + 1
    count, shift = out_hi - out_lo + 1, out_lo - first
    for i in range(np.uint64(hi - lo + 1)):
        room[np.uint64(lo - first) + i] = f[i]
    for i in range(lo - first - 1, -1, -1):
        room[i] = room[i + 1] * r_lo
    for i in range(hi + 1 - first, size):
        room[i] = room[i - 1] * r_hi
    q_lo, q_hi = alpha * r_lo, alpha * r_hi
    # sums over all noise of 0 and more, and of 0 and less, beyond the ends and then at every place
    tail_up = room[0] * (r_lo / (1 - q_lo)) if q_lo < 1.0 else 0.0
    tail_down = room[size - 1] * (r_hi / (1 - q_hi)) if q_hi < 1.0 else 0.0
    if not _fall(room, size, shift + 1, alpha, tail_down) < np.inf:
        return np.inf  # doubles do not hold the sums
    for i in range(np.uint64(shift + 1)):  # `_rise` multiplies them by 0, and what was left there may be no number
        room[np.uint64(2 * size) + i] = 0.0
    spread, leaf = (size, count, shift), (powers, -b_lo)
    near, cut = _first_kept(room, spread, leaf, tail_down, r_hi)
    free, together = b_hi == ENDLESS, False
    if free:
        if not q_lo < 1.0:
            return np.inf  # the sum has no end
        together = near == 0 and b_lo < 0
        rising = _rise(room, size, alpha, tail_up, out, count, shift, alpha if together else 0.0)
        above = _recursion(rising, room[shift + count - 1], size + q_lo / (1 - q_lo))
        if not rising < np.inf:
            return np.inf
    else:
        above = _noise_above(out, room, spread, (powers, b_hi), tail_up, r_lo)
        if np.isinf(above):
            return np.inf
    below = _noise_below(out, room, spread, leaf, tail_down, r_hi, near, cut, together)
    # np.maximum: where one of them is not a number, neither is the error
    return ROUNDING * (10.0 + (lo - first) + (final - hi) + np.maximum(above, below)) + 1e-15
