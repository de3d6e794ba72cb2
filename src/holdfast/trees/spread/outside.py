"""What lies outside a piece, as a function of its total, and from it the laws of totals and of leaves: compiled.

The law of a piece's total is its message times its outside. Below a pair, O_a(u) = Σ_r M_b(r)·w(u+r)·O(u+r): the
outside of one part is made of the other part's message, the pair's own weight and the pair's outside. Used for standard
errors and quantiles, so doubles are enough; every visit says how much of a variance may lie beyond the windows that it
used.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from holdfast.arrays import Floats, Ints, compiled
from holdfast.compiler import put
from holdfast.trees.messages.parcels import prefixes
from holdfast.trees.messages.passes import retilted
from holdfast.trees.plain.marginals import TIE
from holdfast.trees.steps.ends import HIGH, LOW, weigh

#: Terms of a sum, and ends of a law, are left out below these shares of the sum and of the largest probability.
NEGLIGIBLE = 1e-16
FAINT = 1e-18
#: Leaves are first looked for where their own weight is above e^−44.
REACH = 44.0
#: Terms of one sum in a convolution.
_BLOCK = 64


class Ways(NamedTuple):
    """Kinds of pieces as compiled code wants them, and the guesses that messages inside parcels were made with."""

    law: Ints
    left: Ints
    right: Ints
    first: Ints  # of the leaves of an example
    members: Ints
    leaf_kind: Ints
    asked_lo: Ints
    asked_hi: Ints
    slope: Floats
    rest: Floats
    bend: Floats
    lowest: Ints
    highest: Ints


class Found(NamedTuple):
    """What is found of every law; one wanted law is kept as it is, its first place and its size in `window`."""

    levels: Floats
    variance: Floats
    quantile: Ints
    wanted: int
    kept: Floats
    window: Ints


@compiled(inner=True, fastmath={"reassoc", "contract", "nsz"})
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


@compiled(inner=True)
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
def _one_more(term: Any, y: Any, m: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """The four sums of `four_dots` with one term more; m is the place of its factor in the first sum."""
    return a + term * y[m], b + term * y[m - 1], c + term * y[m - 2], d + term * y[m - 3]


@compiled(inline="always")
def _last_of(count: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """The last of the first 1, 2, 3 or 4 of four numbers."""
    return a if count == 1 else (b if count == 2 else (c if count == 3 else d))


@compiled(inline="always")
def _put_four(out: Any, i: Any, count: Any, a: Any, b: Any, c: Any, d: Any) -> None:
    """Put the first 1, 2, 3 or 4 of four numbers into `out`, from place i on."""
    out[i] = a
    if count > 1:
        out[i + 1] = b
    if count > 2:
        out[i + 2] = c
    if count > 3:
        out[i + 3] = d


@compiled(inner=True)
def correlate(f: Any, f_lo: Any, g: Any, g_lo: Any, out: Any, lo: Any) -> None:
    """out(u) = Σ_r g(r)·f(u+r) for log-concave f and g.

    Four places at a time. The law of u+r given u moves up with u, so the range of terms that count is followed.
    """
    f_hi, g_hi, hi = f_lo + f.size - 1, g_lo + g.size - 1, lo + out.size - 1
    padded = np.zeros(g.size + 6)  # g between three zeros on either side
    put(g, padded[3:])
    first, last = f_lo, f_hi
    for u in range(lo, hi + 1, 4):
        t = min(u + 3, hi)
        start, stop = max(f_lo, u + g_lo), min(f_hi, t + g_hi)
        if start > stop:
            out[u - lo : t - lo + 1] = 0.0
            continue
        first = min(max(first, start), stop)
        last = max(min(last + 4, stop), first)
        j = 3 + first - u - g_lo  # the place of g(first − u); that of g(first − u − d) is d before it
        a, b, c, d = four_dots(f, first - f_lo, padded, j - 3, last - first + 1)
        top = _last_of(t - u + 1, a, b, c, d)
        while last < stop and f[last - f_lo] * padded[3 + last - t - g_lo] > NEGLIGIBLE * top:
            last += 1
            term, m = f[last - f_lo], 3 + last - u - g_lo
            a, b, c, d = _one_more(term, padded, m, a, b, c, d)
            top = _last_of(t - u + 1, a, b, c, d)
        _put_four(out, u - lo, t - u + 1, a, b, c, d)
        # leave out what will not count in the next group either
        limit = 0.1 * NEGLIGIBLE * top
        while last > first and f[last - f_lo] * padded[3 + last - t - g_lo] < limit:
            last -= 1
        while first < last and f[first - f_lo] * padded[3 + first - t - g_lo] < limit:
            first += 1


@compiled(inner=True)
def _scaled(values: Any) -> None:
    """Scale to a largest value of 1, in place."""
    largest = 0.0
    for i in range(values.size):
        largest = max(largest, values[i])
    if largest > 0.0:
        for i in range(values.size):
            values[i] /= largest


@compiled(inner=True)
def _shown(values: Any) -> Any:
    """The range of places whose values are not faint."""
    largest = 0.0
    for i in range(values.size):
        largest = max(largest, values[i])
    first, last = 0, values.size - 1
    while first < last and values[first] < FAINT * largest:
        first += 1
    while last > first and values[last] < FAINT * largest:
        last -= 1
    return first, last


@compiled(inner=True)
def _beyond(end: Any, before: Any, distance: Any, variance: Any) -> Any:
    """How much of a variance lies beyond an end of a window, if probabilities go on falling as there."""
    if end < 1e-100:
        return 0.0
    if not end < before:
        return np.inf
    ratio = end / before
    far = abs(distance) + 1 / (1 - ratio)
    return end * ratio / (1 - ratio) * far * far / variance


@compiled(inner=True)
def _tell(values: Any, lo: Any, hard: Any, law: Any, found: Any) -> Any:
    """Note variance and quantiles of a law; return how much of the variance may lie beyond its soft ends."""
    n = values.size
    total, mean = 0.0, 0.0
    for i in range(n):
        total += values[i]
        mean += i * values[i]
    if not (total > 0.0 and total < np.inf):
        return np.inf
    mean /= total
    variance, running = 0.0, 0.0
    for i in range(n):
        variance += (i - mean) ** 2 * values[i]
    variance /= total
    found.variance[law] = variance
    found.quantile[law, :] = lo + n - 1
    reached = np.zeros(found.levels.size, np.bool_)
    for i in range(n):
        running += values[i] / total
        for level in range(reached.size):
            if not reached[level] and running >= found.levels[level] - TIE:
                reached[level] = True
                found.quantile[law, level] = lo + i
    if found.wanted == law:
        found.window[0], found.window[1] = lo, n
        for i in range(n):
            found.kept[i] = values[i] / total
    lost = 0.0
    if not hard & LOW:
        lost += _beyond(values[0] / total, values[min(1, n - 1)] / total, mean, variance)
    if not hard & HIGH:
        lost += _beyond(values[n - 1] / total, values[max(n - 2, 0)] / total, n - 1 - mean, variance)
    return lost


@compiled(inner=True)
def _leaf_weights(lo: Any, hi: Any, rate: Any, laplace: Any) -> Any:
    """A leaf's weights, 1 where they are largest."""
    top = np.float64(min(max(0, lo), hi))
    result = np.empty(hi - lo + 1)
    for i in range(result.size):
        b = np.float64(lo + i)
        result[i] = np.exp(-rate * (abs(b) - abs(top) if laplace else (b - top) * (b + top)))
    return result


@compiled(inner=True)
def _tell_leaf(t: Any, t_lo: Any, r: Any, r_lo: Any, r_hard: Any, q: Any, kit: Any, law: Any, found: Any) -> Any:
    """The law of a leaf: its own weight times Σ_y r(y)·t(b+y), r the message of the other leaves of its parcel."""
    rate = kit.rate[kit.leaf_law[q]]
    t_hi, r_hi = t_lo + t.size - 1, r_lo + r.size - 1
    possible_lo, possible_hi = max(kit.leaf_low[q], t_lo - r_hi), min(kit.leaf_high[q], t_hi - r_lo)
    if possible_lo > possible_hi:
        return np.inf
    near = np.int64(REACH / rate if kit.laplace else np.sqrt(REACH / rate)) + 3
    lo, hi = max(possible_lo, -near), min(possible_hi, near)
    for attempt in range(2):
        if lo > hi or attempt == 1:
            lo, hi = possible_lo, possible_hi
        own = _leaf_weights(lo, hi, rate, kit.laplace)
        values = np.empty(own.size)
        correlate(t, t_lo, r, r_lo, values, lo)
        for i in range(own.size):
            values[i] *= own[i]
        hard = (LOW if lo == possible_lo else 0) | (HIGH if hi == possible_hi else 0)
        lost = _tell(values, lo, hard, law, found)
        if lost < FAINT * 1e4:
            break
    if r_hard == LOW | HIGH:
        return lost
    # the ends of the window of the other leaves together, as likely as these are
    total = values.sum()
    two = np.empty(2)
    for side in range(2):
        if r_hard & (HIGH if side else LOW):
            continue
        place = r_hi - 1 if side else r_lo
        correlate(t, t_lo, own, lo, two, place)
        one, other = two[0] * r[place - r_lo] / total, two[1] * r[place + 1 - r_lo] / total
        end, before = (other, one) if side else (one, other)
        lost += _beyond(end, before, place - (r_lo + r_hi) / 2, max(found.variance[law], 1e-9))
    return lost


@compiled(inner=True)
def _tell_parcel(t: Any, t_lo: Any, k: Any, first_law: Any, ways: Any, inside: Any, found: Any) -> Any:
    """The laws of a parcel's leaves, one for each kind; t is its outside times its own weight."""
    kit, blocks, slots, scratch, _ = inside
    kinds = ways.leaf_kind[ways.first[k] : ways.first[k] + ways.members[k]]
    count = kinds.size
    base = 1
    while base < count and kinds[base] == kinds[0]:
        base += 1
    lost = 0.0
    if base < count:
        lo = ways.asked_lo[k] - (1 if ways.asked_lo[k] > ways.lowest[k] else 0)
        hi = ways.asked_hi[k] + (1 if ways.asked_hi[k] < ways.highest[k] else 0)
        _, _, good = prefixes(inside, kinds, ways.slope[k], ways.rest[k], ways.bend[k], lo, hi)
        if not good:
            return np.inf
        law = first_law
        for j in range(1, count):
            law += 1 if kinds[j] != kinds[j - 1] else 0
        for j in range(count - 1, base - 1, -1):
            q, step = kinds[j], j - base
            r_lo, r_hi = scratch.lo[step], scratch.hi[step]
            r = scratch.values[scratch.offset[step] : scratch.offset[step] + r_hi - r_lo + 1]
            if j == count - 1 or kinds[j + 1] != q:
                lost = max(lost, _tell_leaf(t, t_lo, r, r_lo, scratch.hard[step], q, kit, law, found))
                law -= 1
            # what lies outside the leaves before this one
            b_lo, b_hi = max(kit.leaf_low[q], t_lo - r_hi), min(kit.leaf_high[q], t_lo + t.size - 1 - r_lo)
            if b_lo > b_hi:
                return np.inf
            own = _leaf_weights(b_lo, b_hi, kit.rate[kit.leaf_law[q]], kit.laplace)
            before = np.empty(r.size)
            correlate(t, t_lo, own, b_lo, before, r_lo)
            start, stop = _shown(before * r)
            t, t_lo = before[start : stop + 1], r_lo + start
            _scaled(t)
    q = kinds[0]
    if base == 1:
        return max(lost, _tell_leaf(t, t_lo, np.ones(1), np.int64(0), LOW | HIGH, q, kit, first_law, found))
    i = slots[q, base - 1]
    r = blocks.values[blocks.offset[i] : blocks.offset[i] + blocks.hi[i] - blocks.lo[i] + 1]
    return max(lost, _tell_leaf(t, t_lo, r, blocks.lo[i], blocks.hard[i], q, kit, first_law, found))


@compiled
def visit(
    c: Any, outside: Any, contexts: Any, ways: Any, shelf: Any, inside: Any, found: Any, left_out: Any, right_out: Any
) -> Any:
    """Tell the laws of a context and its leaves, and put down the outsides of the two below, on their windows.

    An outside is stored with the opposite of the message's tilt. `right_out` is left alone where both are alike.
    """
    kit = inside.kit
    k = contexts.kind[c]
    lo, hi, law = shelf.lo[k], shelf.hi[k], ways.law[k]
    chances = shelf.values[shelf.offset[k] : shelf.offset[k] + hi - lo + 1] * outside[: hi - lo + 1]
    lost = _tell(chances, lo, shelf.hard[k], c, found)
    start, stop = _shown(chances)
    t, t_lo, t_hi = outside[start : stop + 1].copy(), lo + start, lo + stop
    rate = kit.rate[law] if law >= 0 else 0.0
    a, b = ways.left[k], ways.right[k]
    weigh(t, t_lo, t_hi, law, kit.laplace, rate, shelf.tilt[k] - (shelf.tilt[a] if a >= 0 else 0.0))
    _scaled(t)
    if a < 0:
        return max(lost, _tell_parcel(t, t_lo, k, contexts.leaf_law[c], ways, inside, found))
    f = shelf.values[shelf.offset[a] : shelf.offset[a] + shelf.hi[a] - shelf.lo[a] + 1]
    if b < 0:
        correlate(t, t_lo, np.ones(1), np.int64(0), left_out[: f.size], shelf.lo[a])
        return lost
    g = shelf.values[shelf.offset[b] : shelf.offset[b] + shelf.hi[b] - shelf.lo[b] + 1]
    change = shelf.tilt[a] - shelf.tilt[b]
    other = g.copy()
    retilted(other, shelf.lo[b], shelf.hi[b], change)
    correlate(t, t_lo, other, shelf.lo[b], left_out[: f.size], shelf.lo[a])
    _scaled(left_out[: f.size])
    if contexts.right[c] != contexts.left[c]:
        retilted(t, t_lo, t_hi, change)
        other = f.copy()
        retilted(other, shelf.lo[a], shelf.hi[a], -change)
        correlate(t, t_lo, other, shelf.lo[a], right_out[: g.size], shelf.lo[b])
        _scaled(right_out[: g.size])
    return lost


@compiled
def walk(c: Any, outside: Any, contexts: Any, ways: Any, shelf: Any, inside: Any, found: Any, room: Any) -> Any:
    """Visit a context and all below it, the smaller part first, so that few outsides wait; return the worst loss.

    `room` has a row for each outside that waits.
    """
    waiting = np.empty(room.shape[0], np.int64)
    put(outside, room[0])
    waiting[0] = c
    row = 0
    lost = 0.0
    spare = np.empty(room.shape[1])
    while row >= 0:
        c = waiting[row]
        a, b = contexts.left[c], contexts.right[c]
        swap = b >= 0 and contexts.size[b] > contexts.size[a]
        above = room[row, : shelf.hi[contexts.kind[c]] - shelf.lo[contexts.kind[c]] + 1].copy()
        first, second = (spare, room[row]) if swap else (room[row], spare)
        lost = max(lost, visit(c, above, contexts, ways, shelf, inside, found, first, second))
        if a < 0:
            row -= 1
            continue
        waiting[row] = b if swap else a
        if b >= 0 and b != a:
            row += 1
            waiting[row] = a if swap else b
            put(spare, room[row])
    return lost
