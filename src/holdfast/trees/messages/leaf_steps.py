"""Compiled steps that add one leaf to a message, with proved bounds on the relative error.

A Laplace leaf is added by two recursions, one for noise of 0 and more and one for noise below 0, which the geometric
tails of the message start; what the leaf's bounds cut off is taken away, or the sum is put together without it. A
Gaussian leaf is a short message of its own. What a message is: steps.py. Proofs: docs/theory/exact-trees.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.arrays import BORROWED, compiled
from holdfast.compiler import put
from holdfast.trees.messages.steps import BESIDE, HIGH, LEANING, LOW, ROUNDING, SMALLEST, TRIMS, add_piece, extend

#: The largest share of a sum that is taken away from it, and what is not taken away because it hardly counts.
CUT_OFF = 0.99
HARDLY = 1e-17
#: How many σ a Gaussian leaf is written out first.
NEARLY_ALL = 9.0
#: No bound on a leaf.
ENDLESS = 2**62


@compiled(inner=True, fastmath={"contract"}, **BORROWED)
def _runs(room: Any, size: Any, alpha: Any, rising: Any, falling: Any) -> Any:
    """With x = room[:size], put Σ α^j·x[i−j] over j ≥ 0 into room[size + i], Σ α^j·x[i+j] into room[2·size + i].

    Given are these sums beyond the ends. Four places at a time: only the last one waits for the four before it.
    """
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)  # unsigned: signed ones are checked
    second, third, fourth = alpha * alpha, alpha * alpha * alpha, (alpha * alpha) * (alpha * alpha)
    up, down, whole = np.uint64(size), np.uint64(2 * size), np.uint64(size // 4 * 4)
    for i in range(np.uint64(0), whole, four):
        a = room[i]
        b = room[i + one] + alpha * a
        c = room[i + two] + alpha * b
        d = room[i + three] + alpha * c
        room[up + i] = a + alpha * rising
        room[up + i + one] = b + second * rising
        room[up + i + two] = c + third * rising
        rising = d + fourth * rising
        room[up + i + three] = rising
        j = up - four - i
        d = room[j + three]
        c = room[j + two] + alpha * d
        b = room[j + one] + alpha * c
        a = room[j] + alpha * b
        room[down + j + three] = d + alpha * falling
        room[down + j + two] = c + second * falling
        room[down + j + one] = b + third * falling
        falling = a + fourth * falling
        room[down + j] = falling
    for i in range(whole, up):
        rising = rising * alpha + room[i]
        room[up + i] = rising
        j = up - one - i
        falling = falling * alpha + room[j]
        room[down + j] = falling
    return rising, falling


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
    """Put the sums over noise of 0 and more into `out`; return the roundings, infinite where there is no sum.

    `spread` is the size of the windows together, and how many places of the result begin where; `leaf` holds weights
    and the upper bound; `tail_up` is the sum beyond the end.
    """
    size, count, shift = spread
    powers, b_hi = leaf
    alpha, q_lo = powers[1], powers[1] * r_lo
    if b_hi == 0:
        _put(out, count, room, shift)
        return 0.0
    top = shift + count - 1
    cut = 0.0 if q_lo < 1.0 else 1.0
    if b_hi < ENDLESS and q_lo < 1.0:  # the share that the bound cuts off is largest at the last place
        end = top - b_hi - 1
        cut = powers[b_hi] * alpha * (room[size + end] if end >= 0 else tail_up * r_lo ** np.float64(-1 - end))
        whole = room[size + top]
        cut = cut / whole if whole >= SMALLEST else 1.0
    if cut > CUT_OFF:
        if b_hi == ENDLESS:
            return np.inf  # the sum has no end
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
def _noise_below(out: Any, room: Any, spread: Any, leaf: Any, tail_down: Any, r_hi: Any) -> Any:
    """Add the sums over noise below 0 to `out`, as `_noise_above` puts those above; the bound is counted downwards."""
    size, count, shift = spread
    powers, n = leaf
    alpha, q_hi = powers[1], powers[1] * r_hi
    if n == 0:
        return 0.0
    cut = 0.0 if q_hi < 1.0 else 1.0
    if n < ENDLESS and q_hi < 1.0:  # largest at the first place
        end = shift + 1 + n
        cut = powers[n] * (room[2 * size + end] if end < size else tail_down * r_hi ** np.float64(end - size))
        whole = room[2 * size + shift + 1]
        cut = cut / whole if whole >= SMALLEST else 1.0
    if cut > CUT_OFF:
        return np.inf if n == ENDLESS else _window(room, shift, size, powers, n, r_hi, out, count)
    _add(out, 0, count, alpha, room, 2 * size + shift + 1)
    below = _recursion(room[2 * size + shift + 1], room[shift + 1], size + q_hi / (1 - q_hi))
    if cut > HARDLY:
        factor = powers[n] * alpha
        stop = min(max(size - shift - 1 - n, 0), count)
        _add(out, 0, stop, -factor, room, 2 * size + shift + 1 + n)
        rest = factor * (tail_down * r_hi ** np.float64(shift + 1 + n + stop - size))
        for i in range(stop, count):
            out[i] -= rest
            if rest <= HARDLY * out[i]:
                break
            rest *= r_hi
        below = (below + (n + 8) * cut) * (1 + cut) / (1 - cut)
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
    rising, falling = _runs(room, size, alpha, tail_up, tail_down)
    if not (rising < np.inf and falling < np.inf):
        return np.inf  # doubles do not hold the sums
    spread = (size, count, shift)
    above = _noise_above(out, room, spread, (powers, b_hi), tail_up, r_lo)
    if np.isinf(above):
        return np.inf
    below = _noise_below(out, room, spread, (powers, -b_lo), tail_down, r_hi)
    # np.maximum: where one of them is not a number, neither is the error
    return ROUNDING * (10.0 + (lo - first) + (final - hi) + np.maximum(above, below)) + 1e-15


@compiled(**BORROWED)
def leaf_leans(
    f: Any, lo: Any, hi: Any, r: Any, up: Any, powers: Any, laplace: Any, b_lo: Any, b_hi: Any, s: Any
) -> Any:
    """As `_leans` of passes.py, for the upper or lower tail of f and one leaf; a bound."""
    longest = powers.size - 1
    far, previous = 0.0, 0.0
    term = f[hi - lo] if up else f[0]
    away = s - hi if up else lo - s  # noise that leads to the end of the window, counted outwards
    least, most = (b_lo, b_hi) if up else (-b_hi, -b_lo)
    d = 0
    while True:
        d += 1
        term *= r
        b = away - d
        if b < least or (b < -longest and not laplace):
            return 1.01 * far
        if b > most or (b > longest and not laplace):
            continue
        more = d * term * (powers[abs(b)] if abs(b) <= longest else powers[1] ** np.float64(abs(b)))
        far += more
        if not far < np.inf or d > 1 << 22:
            return np.inf
        # terms are log-concave in d: beyond, they fall at least as fast as here
        ratio = more / previous if previous > 0.0 else 1.0
        if ratio < 1.0 and more * ratio < 1e-2 * far * (1 - ratio):
            return 1.05 * far
        if more == 0.0 and far > 0.0:
            return 1.05 * far
        previous = more


@compiled(inner=True, **BORROWED)
def leaf_onto(laplace: Any, leaf: Any, message: Any, hard: Any, out: Any, out_lo: Any, out_hi: Any, room: Any) -> Any:
    """Convolve a message with one leaf's weights; return where this is right, and the relative error that it adds.

    What is right stands at the front of `out`. `leaf` holds weights and bounds, `message` values, window and ratios.
    """
    powers, low, high = leaf
    f, lo, hi, r_lo, r_hi = message
    if laplace:
        return out_lo, out_hi, add_leaf(f, lo, hi, r_lo, r_hi, powers, low, high, out, out_lo, out_hi, room)
    return _gaussian_onto(leaf, message, hard, out, out_lo, out_hi, room)


@compiled(inner=True)
def _gaussian_onto(leaf: Any, message: Any, hard: Any, out: Any, out_lo: Any, out_hi: Any, room: Any) -> Any:
    """As `leaf_onto`, for a Gaussian leaf."""
    powers, low, high = leaf
    f, lo, hi, r_lo, r_hi = message
    longest = powers.size - 1
    good_lo, good_hi, error = out_lo, out_lo - 1, np.inf
    usual = min(np.int64(NEARLY_ALL * np.sqrt(-0.5 / np.log(powers[1]))) + 4, longest)
    for most in (usual, longest):  # nearly always the first is enough
        b_lo, b_hi = max(low, -most), min(high, most)
        b_hard = (LOW if b_lo == low else 0) | (HIGH if b_hi == high else 0)
        extra = most + max(lo - out_lo, out_hi - hi, 0)
        size, places = hi - lo + 1 + 2 * (extra + BESIDE), b_hi - b_lo + 1 + 2 * BESIDE
        if room.size < size + places:
            room = np.empty(size + places)
        wide, kernel = room[:size], room[size : size + places]
        below, above = extend(f, lo, hi, r_lo, r_hi, extra, wide)
        kernel[:] = 0.0
        for b in range(b_lo, b_hi + 1):
            kernel[BESIDE + b - b_lo] = powers[abs(b)]
        one, other = (kernel, b_lo, b_hi, b_hard), (wide, lo - below, hi + above, hard)
        good_lo, good_hi, error = add_piece(one, other, out, out_lo, out_hi)
        if good_lo == out_lo and good_hi == out_hi:
            break
    if good_lo > good_hi:
        return out_lo, out_hi, np.inf
    if good_lo > out_lo:
        for s in range(good_lo, good_hi + 1):
            out[s - good_lo] = out[s - out_lo]
    return good_lo, good_hi, error


@compiled(inner=True, **BORROWED)
def kept(kit: Any, q: Any, message: Any, leaning: Any, out: Any, first: Any, final: Any) -> Any:
    """Keep to sums that hardly use a tail without room; return them and the mean distance."""
    f, lo, hi, r_lo, r_hi = message
    powers = kit.weights[kit.leaf_law[q]]
    b_lo, b_hi = kit.leaf_low[q], kit.leaf_high[q]
    start = first
    error = 0.0
    for side in range(2):
        if not leaning & (HIGH if side else LOW):
            continue
        added = 0.0
        for _ in range(TRIMS):
            s = final if side else first
            far = leaf_leans(f, lo, hi, r_hi if side else r_lo, side == 1, powers, kit.laplace, b_lo, b_hi, s)
            added = 1.1 * far / out[s - start]
            if added <= LEANING or final - first < 16:
                break
            if side:
                final -= max(4, (final - first) // 32)
            else:
                first += max(4, (final - first) // 32)
        error += added
    return first, final, error
