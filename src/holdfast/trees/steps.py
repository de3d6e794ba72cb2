"""Compiled steps on messages in doubles, with proved bounds on the relative error.

A message is a positive log-concave function on the whole numbers. It is stored on a window lo, …, hi, and beyond an end
it *is* geometric: M(hi)·r^d, with r between the function's own next ratio and its last one. So every stored message is
again log-concave, it bounds from above what was computed from the messages below it, and inside its window the two are
equal. Draws from such messages are proposals; one is rejected, with the right probability, only if it leaves a window.
Windows thus cost time when they are badly chosen, never exactness. An end is *hard* where the function is 0 beyond it.
Every step adds positive terms only, so rounding is a small relative error. Proofs: docs/theory/exact-trees.md.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

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
#: Messages with a larger relative error are refused: bounds hold room for the square of an error up to this.
MOST_ERROR = 1e-4
#: Share of the total that one relative error in each of two numbers may move; above 2 for squares of errors.
TWICE = 2.1
#: The largest share of a sum that is taken away from it, and what is not taken away because it hardly counts.
CUT_OFF = 0.9
HARDLY = 1e-17
#: Numbers below this are not told from 0, since the smallest doubles have few digits.
SMALLEST = 1e-290
#: Weights that reach further above that in the middle of a window are refused.
LARGEST_FACTOR = 1e280
#: No bound on a leaf.
ENDLESS = 2**62
#: What a draw returns that the error bounds do not decide.
UNDECIDED = np.iinfo(np.int64).min
#: Codes of hard ends, and of ends whose ratio is by definition the true last ratio of the window.
LOW, HIGH = 1, 2

#: Terms of one sum in a convolution.
_BLOCK = 64
_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}
_INLINE: dict[str, Any] = {**_OPTIONS, "inline": "always"}
_CHAINS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy", "fastmath": {"contract"}}
_SUMS: dict[str, Any] = {"cache": True, "nogil": True, "fastmath": {"reassoc", "contract", "nsz"}}


@numba.njit(**_SUMS)
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


@numba.njit(**_OPTIONS)
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


@numba.njit(**_INLINE)
def tail_ratio(following: Any, edge: Any, before: Any, error: Any) -> Any:
    """The ratio beyond an end, and whether it is defined as the true last ratio (no room between the two)."""
    last, upcoming = edge / before, following / edge
    room = 2.25 * error + 1e-14
    if upcoming * (1 + room) < last * (1 - room):
        return np.sqrt(upcoming * last), False
    return last, True


@numba.njit(**_CHAINS)
def _runs(room: Any, size: Any, alpha: Any, rising: Any, falling: Any, far_up: Any, far_down: Any) -> Any:
    """With x = room[:size], put Σ α^j·x[i−j] over j ≥ 0 into room[size + i], Σ α^j·x[i+j] into room[2·size + i].

    Given are these sums beyond the ends; `far` is the sum of the terms times j at the last place.
    """
    down = np.uint64(size)
    for i in range(np.uint64(size)):  # unsigned: signed places are checked
        down -= np.uint64(1)
        far_up = alpha * (far_up + rising)
        rising = rising * alpha + room[i]
        room[np.uint64(size) + i] = rising
        far_down = alpha * (far_down + falling)
        falling = falling * alpha + room[down]
        room[np.uint64(2 * size) + down] = falling
    return rising, falling, far_up, far_down


@numba.njit(**_CHAINS)
def _put(out: Any, count: Any, x: Any, start: Any) -> None:
    """out = x from a place on."""
    for i in range(np.uint64(count)):
        out[i] = x[np.uint64(start) + i]


@numba.njit(**_CHAINS)
def _add(out: Any, first: Any, last: Any, factor: Any, x: Any, start: Any) -> None:
    """Add factor times x, from a place on, to out[first:last]."""
    for i in range(np.uint64(max(last - first, 0))):
        out[np.uint64(first) + i] += factor * x[np.uint64(start) + i]


@numba.njit(**_OPTIONS)
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
    rising, falling, far_up, far_down = _runs(
        room, size, alpha, tail_up, tail_down, tail_up * q_lo / (1 - q_lo), tail_down * q_hi / (1 - q_hi)
    )
    if not (rising < np.inf and falling < np.inf):
        return np.inf  # doubles do not hold the sums
    # noise of 0 and more
    above = 0.0
    if b_hi == 0:
        _put(out, count, room, shift)
    else:
        top = shift + count - 1
        cut = 0.0 if q_lo < 1.0 else 1.0
        if b_hi < ENDLESS and q_lo < 1.0:  # the share that the bound cuts off is largest at the last place
            end = top - b_hi - 1
            cut = powers[b_hi] * alpha * (room[size + end] if end >= 0 else tail_up * r_lo ** np.float64(-1 - end))
            whole = room[size + top]
            cut = cut / whole if whole >= SMALLEST else 1.0
        if cut <= CUT_OFF:
            _put(out, count, room, size + shift)
            above = _recursion(far_up, rising, size + q_lo / (1 - q_lo))
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
        elif b_hi == ENDLESS:
            return np.inf  # the sum has no end
        else:
            mirrored = np.empty(3 * (top + 1))
            mirrored[: top + 1] = room[: top + 1][::-1]
            summed = mirrored[:count].copy()
            above = _window(mirrored, 0, top + 1, powers, b_hi, r_lo, summed, count)
            out[:count] = summed[::-1]
    # noise below 0
    below = 0.0
    if b_lo < 0:
        n = -b_lo
        cut = 0.0 if q_hi < 1.0 else 1.0
        if n < ENDLESS and q_hi < 1.0:  # largest at the first place
            end = shift + 1 + n
            cut = powers[n] * (room[2 * size + end] if end < size else tail_down * r_hi ** np.float64(end - size))
            whole = room[2 * size + shift + 1]
            cut = cut / whole if whole >= SMALLEST else 1.0
        if cut <= CUT_OFF:
            _add(out, 0, count, alpha, room, 2 * size + shift + 1)
            below = _recursion(far_down, falling, size + q_hi / (1 - q_hi))
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
        elif n == ENDLESS:
            return np.inf
        else:
            below = _window(room, shift, size, powers, n, r_hi, out, count)
    # np.maximum: where one of them is not a number, neither is the error
    return ROUNDING * (10.0 + (lo - first) + (final - hi) + np.maximum(above, below)) + 1e-15


@numba.njit(**_INLINE)
def _recursion(far: Any, run: Any, most: Any) -> Any:
    """Roundings of the last sum of a recursion: three for each time that a term was multiplied, on average.

    `most` bounds that average; it serves where doubles do not hold the last sum.
    """
    return 1.5 * (far / run if run >= SMALLEST else most) + 2.0


@numba.njit(**_CHAINS)
def _put_sum(room: Any, to: Any, x: Any, factor: Any, y: Any, count: Any) -> None:
    """room[to + i] = room[x + i] + factor·room[y + i]."""
    to, x, y = np.uint64(to), np.uint64(x), np.uint64(y)
    for i in range(np.uint64(count)):
        room[to + i] = room[x + i] + factor * room[y + i]


@numba.njit(**_OPTIONS)
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
            sums = np.empty(n + 1)
            sums[0] = 0.0
            for m in range(1, n + 1):
                sums[m] = (sums[m - 1] + 1.0) * q
            for i in range(top, stop - 1, -1):
                out[i] += edge * powers[size - 1 - i] * sums[i + n - size + 1]
            roundings += 2 * mean + 6.0
    return roundings


@numba.njit(**_OPTIONS)
def _beyond(end: Any, before: Any) -> Any:
    """Bound the sum of log-concave terms beyond an end by a geometric series from the last two terms."""
    if end < 1e-290:
        return 1e-280
    if not end < 0.999 * before:
        return np.inf
    ratio = end / before
    return 2 * end * ratio / (1 - ratio)  # twice: the terms have errors up to MOST_ERROR


@numba.njit(**_OPTIONS)
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


@numba.njit(**_OPTIONS)
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
        top = a if t == s else (b if t == s + 1 else (c if t == s + 2 else d))
        summed = last
        edge = f[last - f_lo] * mirrored[3 + g_hi - t + last]
        inner = f[last - 1 - f_lo] * mirrored[3 + g_hi - t + last - 1] if first < last else edge
        while last < stop and (edge > NEGLIGIBLE * top or 2 * edge * edge > 0.25 * LEFT_OUT * top * (inner - edge)):
            last += 1
            inner, edge = edge, f[last - f_lo] * mirrored[3 + g_hi - t + last]
            term, m = f[last - f_lo], 3 + g_hi - s + last
            a += term * mirrored[m]
            b += term * mirrored[m - 1]
            c += term * mirrored[m - 2]
            d += term * mirrored[m - 3]
            top = a if t == s else (b if t == s + 1 else (c if t == s + 2 else d))
        out[s - lo] = a
        if t > s:
            out[s + 1 - lo] = b
        if t > s + 1:
            out[s + 2 - lo] = c
        if t > s + 2:
            out[s + 3 - lo] = d
        # what the sums hold is first … last; what they leave out is below `first` at s and above `last` at t, and
        # where g's own ends are reached, also below at t and above at s
        left_out = 0.0
        if not ((first == f_lo and f_hard & LOW) or (first == s - g_hi and g_hard & HIGH)):
            end = max(first, s - g_hi)
            before = f[end + 1 - f_lo] * mirrored[3 + g_hi - s + end + 1] if end < last else 0.0
            left_out += _beyond(f[end - f_lo] * mirrored[3 + g_hi - s + end], before) / a
        if not ((last == f_hi and f_hard & HIGH) or (last == t - g_lo and g_hard & LOW)):
            end = min(last, t - g_lo)
            before = f[end - 1 - f_lo] * mirrored[3 + g_hi - t + end - 1] if first < end else 0.0
            left_out += _beyond(f[end - f_lo] * mirrored[3 + g_hi - t + end], before) / top
        end = t - g_hi
        if first < end <= last and not g_hard & HIGH:
            before = f[end + 1 - f_lo] * mirrored[3 + g_hi - t + end + 1] if end < last else 0.0
            left_out += _beyond(f[end - f_lo] * mirrored[3 + g_hi - t + end], before) / top
        end = s - g_lo
        if first <= end < last and not g_hard & LOW:
            before = f[end - 1 - f_lo] * mirrored[3 + g_hi - s + end - 1] if first < end else 0.0
            left_out += _beyond(f[end - f_lo] * mirrored[3 + g_hi - s + end], before) / a
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
        limit, least = 0.05 * LEFT_OUT * top, 0.1 * NEGLIGIBLE * top
        edge = f[last - f_lo] * mirrored[3 + g_hi - t + last]
        while last > first:
            inner = f[last - 1 - f_lo] * mirrored[3 + g_hi - t + last - 1]
            if edge > least or 2 * edge * inner > limit * (inner - edge):
                break
            last, edge = last - 1, inner
        edge = f[first - f_lo] * mirrored[3 + g_hi - t + first]
        while first < last:
            inner = f[first + 1 - f_lo] * mirrored[3 + g_hi - t + first + 1]
            if edge > least or 2 * edge * inner > limit * (inner - edge):
                break
            first, edge = first + 1, inner
    return good_lo, good_hi, worst + ROUNDING / 2 * (_BLOCK + longest // _BLOCK + single + 56)


@numba.njit(**_OPTIONS)
def excess(
    f: Any, f_lo: Any, f_hi: Any, f_first: Any, f_last: Any, g: Any, g_lo: Any, g_hi: Any, g_first: Any, g_last: Any,
    s: Any,
) -> Any:  # fmt: skip
    """Σ of the terms at s times how far they lie in the tails of f and of g: what an error of the ratio counts for.

    The mean of that distance above (below) a window grows (falls) with s, so it is largest at an end of the result.
    """
    far_f, far_g = 0.0, 0.0
    for a in range(max(f_lo, s - g_hi), min(f_hi, s - g_lo) + 1):
        term = f[a - f_lo] * g[s - a - g_lo]
        far_f += term * max(f_first - a, a - f_last, 0)
        far_g += term * max(g_first - (s - a), (s - a) - g_last, 0)
    return far_f, far_g


@numba.njit(**_OPTIONS)
def leaf_excess(
    f: Any, lo: Any, hi: Any, r: Any, up: Any, powers: Any, laplace: Any, b_lo: Any, b_hi: Any, s: Any
) -> Any:
    """As `excess`, for the upper or lower tail of f and one leaf; a bound."""
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


@numba.njit(**_OPTIONS)
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


@numba.njit(**_OPTIONS)
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


@numba.njit(**_OPTIONS)
def finish(values: Any, lo: Any, hi: Any, lowest: Any, highest: Any, error: Any) -> Any:
    """Choose the stored window inside a computed one, with a place to spare at each soft end, and the tail ratios.

    The values are scaled by a power of two to a largest value near 1. Return lo, hi, the two ratios, hard ends, ends
    whose ratio is by definition the last one, and that power of two; 0 if there is no such window.
    """
    start = lo
    largest = 0.0
    for s in range(lo, hi + 1):
        largest = max(largest, values[s - start])
    if not (largest > SMALLEST and largest < np.inf and error < MOST_ERROR):
        return lo, hi, 0.0, 0.0, 0, 0, 0.0
    faint = max(FAINT * largest, SMALLEST)
    first, last = lo, hi
    while values[first - start] < faint:
        first += 1
    while values[last - start] < faint:
        last -= 1
    scale = 2.0 ** -np.floor(np.log2(largest))
    for s in range(first, last + 1):
        values[s - start] *= scale
    hard, defined = 0, 0
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
        return lo, hi, 0.0, 0.0, hard, 0, 0.0
    # an end that leaves room for a ratio is worth a few places
    give_up = min(GIVE_UP, (hi - lo) // 8)
    if not hard & LOW:
        best = lo
        for at in range(lo - start, lo + give_up - start + 1):
            r_lo, plain = tail_ratio(values[at - 1], values[at], values[at + 1], error)
            if not plain:
                best = at + start
                break
        if plain:
            r_lo, plain = tail_ratio(values[lo - start - 1], values[lo - start], values[lo - start + 1], error)
        defined |= LOW if plain else 0
        lo = best
    if not hard & HIGH:
        best = hi
        for at in range(hi - start, hi - give_up - start - 1, -1):
            r_hi, plain = tail_ratio(values[at + 1], values[at], values[at - 1], error)
            if not plain:
                best = at + start
                break
        if plain:
            r_hi, plain = tail_ratio(values[hi - start + 1], values[hi - start], values[hi - start - 1], error)
        defined |= HIGH if plain else 0
        hi = best
    return lo, hi, r_lo, r_hi, hard, defined, scale


@numba.njit(**_INLINE)
def ends(values: Any, lo: Any, hi: Any, lowest: Any, highest: Any, error: Any) -> Any:
    """As `finish`, for a message that needs neither scaling nor shortening; the last result is 1, or 0 for failure."""
    hard, defined = 0, 0
    r_lo, r_hi = 0.0, 0.0
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
        return first, last, 0.0, 0.0, hard, 0, 0.0
    if not (values[0] > 1e-200 and values[hi - lo] > 1e-200 and values[(hi - lo) // 2] < 1e250):
        return first, last, 0.0, 0.0, hard, 0, 0.0
    if not hard & LOW:
        r_lo, plain = tail_ratio(values[0], values[1], values[2], error)
        defined |= LOW if plain else 0
    if not hard & HIGH:
        r_hi, plain = tail_ratio(values[hi - lo], values[hi - lo - 1], values[hi - lo - 2], error)
        defined |= HIGH if plain else 0
    return first, last, r_lo, r_hi, hard, defined, 1.0


@numba.njit(**_OPTIONS)
def choose_leaf(
    f: Any, lo: Any, powers: Any, low: Any, high: Any, s: Any, start: Any, total: Any, word: Any, slack: Any
) -> Any:
    """Draw a leaf's noise b with weight powers[|b|]·f(s−b), in the order start, start+1, start−1, … from low to high.

    `total` is the sum of all weights; it and all partial sums are known up to the share `slack` of it. Return
    UNDECIDED where that does not tell on which side of a partial sum the random word lies, or beyond the window.
    """
    if low > high:
        return UNDECIDED
    goal = np.float64(word) * 5.421010862427522e-20 * total
    before = 0.0
    running = f[s - start - lo] * powers[abs(start)]
    if running > goal:
        return start if running - goal > total * (slack + ROUNDING * 17) else UNDECIDED
    turn = min(high - start, start - low)
    b = start
    for d in range(1, turn + 1):
        b = start + d
        before = running
        running += f[s - b - lo] * powers[abs(b)]
        if running > goal:
            break
        b = start - d
        before = running
        running += f[s - b - lo] * powers[abs(b)]
        if running > goal:
            break
    if not running > goal:
        side = 1 if high - start > start - low else -1
        for d in range(turn + 1, max(high - start, start - low) + 1):
            b = start + side * d
            before = running
            running += f[s - b - lo] * powers[abs(b)]
            if running > goal:
                break
    margin = total * (slack + ROUNDING * (2 * abs(b - start) + 17))
    if running - goal > margin and goal - before > margin:
        return b
    return UNDECIDED


@numba.njit(**_OPTIONS)
def choose_part(
    f: Any, f_lo: Any, f_hi: Any, f_hard: Any, g: Any, g_lo: Any, g_hi: Any, g_hard: Any, tilt: Any,
    s: Any, start: Any, word: Any, slack: Any, terms: Any,
) -> Any:  # fmt: skip
    """Draw f's part a of a total s with weight f(a)·g(s−a)·e^{tilt·a}, in the order start, start+1, start−1, …"""
    low, high = max(f_lo, s - g_hi), min(f_hi, s - g_lo)
    if low > high or start < low or start > high:
        return UNDECIDED
    up, down = np.exp(tilt), np.exp(-tilt)
    # terms around the start until they do not count; those left out are bounded as in `add_piece`
    total = f[start - f_lo] * g[s - start - g_lo]
    terms[start - low] = total
    largest = total
    factor = 1.0
    last = start
    while last < high:
        last += 1
        factor *= up
        term = f[last - f_lo] * g[s - last - g_lo] * factor
        terms[last - low] = term
        total += term
        largest = max(largest, term)
        if term < 0.01 * NEGLIGIBLE * largest:
            break
    factor = 1.0
    first = start
    while first > low:
        first -= 1
        factor *= down
        term = f[first - f_lo] * g[s - first - g_lo] * factor
        terms[first - low] = term
        total += term
        largest = max(largest, term)
        if term < 0.01 * NEGLIGIBLE * largest:
            break
    left_out = 0.0
    if not ((first == f_lo and f_hard & LOW) or (first == s - g_hi and g_hard & HIGH)):
        left_out += _beyond(terms[first - low], terms[first + 1 - low] if first < last else 0.0)
    if not ((last == f_hi and f_hard & HIGH) or (last == s - g_lo and g_hard & LOW)):
        left_out += _beyond(terms[last - low], terms[last - 1 - low] if first < last else 0.0)
    if not (total > 1e-250 and left_out < 0.1 * total):
        return UNDECIDED
    slack += left_out / total + ROUNDING * (1 + abs(tilt)) * 2 * (last - first + 16)
    goal = np.float64(word) * 5.421010862427522e-20 * total
    running = 0.0
    turn = 2 * min(last - start, start - first) + 1
    side = 1 if last - start > start - first else -1
    for k in range(last - first + 1):
        if k < turn:
            a = start + (k + 1) // 2 if k & 1 else start - k // 2
        else:
            a = start + side * (k - turn // 2)
        before = running
        running += terms[a - low]
        if running > goal:
            margin = total * (slack + ROUNDING * (k + 16))
            if running - goal <= margin or (k > 0 and goal - before <= margin):
                return UNDECIDED
            return a
    return UNDECIDED


@numba.njit(**_OPTIONS)
def choose_total(f: Any, lo: Any, hi: Any, hard: Any, tilt: Any, start: Any, word: Any, slack: Any, terms: Any) -> Any:
    """Draw a total with weight f(s)·e^{−tilt·s}, in the order start, start+1, start−1, …"""
    ones = np.ones(hi - lo + 1)
    return choose_part(f, lo, hi, hard, ones, -hi, -lo, 0, -tilt, np.int64(0), start, word, slack, terms)
