"""The up-pass that makes messages and the down-pass that draws totals, compiled, over ranges of kinds or pieces.

Going up, the message of a parcel is that of all its leaves, and that of a pair is the sum of its two parts; then each
gets its own weight and bounds. Going down, roots are drawn, totals of pairs are divided, and totals of parcels are
divided over their leaves. Threads fill disjoint ranges. A draw that doubles do not decide is left open for exact.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.arguments import LARGEST
from holdfast.arrays import BORROWED, compiled
from holdfast.trees.messages.choices import UNDECIDED, choose_leaf, choose_part, choose_total
from holdfast.trees.messages.parcels import TESTED, asked, plus, prefixes, put
from holdfast.trees.steps.ends import HIGH, LEANING, LOW, ROUNDING, TRIMS, finish, trimmed, weigh
from holdfast.trees.steps.joining import BESIDE, add_piece, extended

#: Messages are summed where terms far out fall at least so fast.
SUMMED = 1 - 1e-9


@compiled(inline="always")
def leaf_excess(weights: Any) -> Any:
    """How far the weights of leaves, as they are tabled, may be above the true ones."""
    return 2 * ROUNDING * (weights.shape[1] + 4)


@compiled(**BORROWED)
def parcel_messages(parcels: Any, pieces: Any, outlook: Any, inside: Any, to: Any) -> Any:
    """Make the messages of parcels; return how many failed."""
    failed = 0
    scratch = inside.scratch
    for k in parcels:
        p = pieces.example[k]
        kinds = pieces.leaf_kind[pieces.first[p] : pieces.first[p] + pieces.members[p]]
        spare = asked(k, pieces, outlook)
        last, _, good = prefixes(inside, kinds, outlook.below[k], outlook.rest[k], outlook.hold[k], spare[0], spare[1])
        if not good:
            failed += 1
            continue
        head = scratch.offset[last]
        span = (scratch.lo[last], scratch.hi[last])
        values = scratch.values[head : head + span[1] - span[0] + 1]
        ends = (pieces.lowest[k], pieces.highest[k])
        tilts = (outlook.tilt[k], outlook.tilt[k])
        errors = (scratch.error[last], 0.0, scratch.swerve[last])
        if not _own(k, pieces, inside.kit, values, span, errors, ends, spare, tilts, to):
            failed += 1
        to.slack[k] += TESTED * _inner(inside, kinds, last)
    return failed


@compiled(inner=True, **BORROWED)
def _inner(inside: Any, kinds: Any, last: Any) -> Any:
    """How far all messages inside a parcel, and its leaves, may together be above what they stand for."""
    kit, blocks, slots, scratch, _ = inside
    result = kinds.size * leaf_excess(kit.weights)
    for c in range(1, kinds.size - last):
        result += blocks.excess[slots[kinds[0], c]]
    for step in range(last + 1):
        result += scratch.excess[step]
    return result


@compiled(inner=True)
def _own(
    k: Any, pieces: Any, kit: Any, values: Any, span: Any, errors: Any, ends: Any, spare: Any, tilts: Any, to: Any
) -> Any:
    """Give a message its own weight and bounds and put it on the shelf.

    `errors` are that of all steps so far, that of the last one, and the swerve of what is below; `ends` are those that
    the totals cannot exceed, `spare` is the window that is asked for; `tilts` are the tilt that is added now, and all
    of it.
    """
    first, final = max(span[0], pieces.low[k], spare[0]), min(span[1], pieces.high[k], spare[1])
    if first > final:
        return False
    # copy: the prefixes of a parcel are needed as they are
    own = values[first - span[0] : final - span[0] + 1].copy()
    law = pieces.law[k]
    added = weigh(own, first, final, law, kit.laplace, kit.rate[law] if law >= 0 else 0.0, tilts[0])
    chosen = finish(own, first, final, ends[0], ends[1], errors[0] + added, errors[2])
    if chosen[-1] == 0.0:
        return False
    put(to, k, own, first, chosen, tilts[1], errors[0] + added, errors[1] + added)
    return True


@compiled(**BORROWED)
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


@compiled(inner=True, **BORROWED)
def _leans(one: Any, other: Any, s: Any) -> Any:
    """Σ of the terms at s times how far they lie in the tails of f and of g: what an error of the ratio counts for.

    The mean of that distance above (below) a window grows (falls) with s, so it is largest at an end of the result.
    """
    f, f_lo, f_hi, f_first, f_last = one
    g, g_lo, g_hi, g_first, g_last = other
    far_f, far_g = 0.0, 0.0
    for a in range(max(f_lo, s - g_hi), min(f_hi, s - g_lo) + 1):
        term = f[a - f_lo] * g[s - a - g_lo]
        far_f += term * max(f_first - a, a - f_last, 0)
        far_g += term * max(g_first - (s - a), (s - a) - g_last, 0)
    return far_f, far_g


@compiled(inner=True, **BORROWED)
def _trusted(first: Any, final: Any, start: Any, out: Any, one: Any, other: Any, swerves: Any) -> Any:
    """Keep to totals that hardly use tails without room; return these and an error.

    `one` and `other` are values, window, and the window without such tails.
    """
    error = 0.0
    for side in range(2):
        added = 0.0
        for turn in range(TRIMS):
            s = final if side else first
            far_f, far_g = _leans(one, other, s)
            added = 1.1 * (swerves[0] * far_f + swerves[1] * far_g) / out[s - start]
            if added <= LEANING * (swerves[0] + swerves[1]) or final - first < 16:
                break
            first, final = trimmed(first, final, side, turn)
        error += added
    return first, final, error


@compiled(**BORROWED)
def pair_messages(pairs: Any, pieces: Any, outlook: Any, kit: Any, to: Any) -> Any:
    """Make the messages of pairs; return how many failed."""
    failed = 0
    for k in pairs:
        a, b = pieces.kind_left[k], pieces.kind_right[k]
        if not to.error[a] < np.inf or (b >= 0 and not to.error[b] < np.inf):
            failed += 1
        elif b < 0:
            failed += 0 if _only_child(k, a, pieces, outlook, kit, to) else 1
        else:
            failed += 0 if _two_children(k, a, b, pieces, outlook, kit, to) else 1
    return failed


@compiled(inner=True)
def _only_child(k: Any, a: Any, pieces: Any, outlook: Any, kit: Any, to: Any) -> Any:
    """Make the message of a pair that has one part; return whether this went well."""
    # one place of each tail is the place to spare; the window stays within that of the only child
    lowest, highest = pieces.lowest[k], pieces.highest[k]
    f = to.values[to.offset[a] : to.offset[a] + to.hi[a] - to.lo[a] + 1]
    wide, lo, hi = extended(f, to.lo[a], to.hi[a], to.r_lo[a], to.r_hi[a], 1)
    ends = (lowest if lowest >= to.lo[a] else -LARGEST, highest if highest <= to.hi[a] else LARGEST)
    tilts = (outlook.tilt[k] - to.tilt[a], outlook.tilt[k])
    errors = (to.error[a], 0.0, to.swerve[a])
    return _own(k, pieces, kit, wide[BESIDE:], (lo, hi), errors, ends, asked(k, pieces, outlook), tilts, to)


@compiled(inner=True)
def _two_children(k: Any, a: Any, b: Any, pieces: Any, outlook: Any, kit: Any, to: Any) -> Any:
    """Make the message of a pair; return whether this went well."""
    first, final = asked(k, pieces, outlook)
    f = to.values[to.offset[a] : to.offset[a] + to.hi[a] - to.lo[a] + 1]
    g = to.values[to.offset[b] : to.offset[b] + to.hi[b] - to.lo[b] + 1]
    extra_a, extra_b = (to.hi[b] - to.lo[b]) // 2 + 16, (to.hi[a] - to.lo[a]) // 2 + 16
    wide, lo, hi = extended(f, to.lo[a], to.hi[a], to.r_lo[a], to.r_hi[a], extra_a)
    other, other_lo, other_hi = extended(g, to.lo[b], to.hi[b], to.r_lo[b], to.r_hi[b], extra_b)
    fresh = retilted(other[BESIDE:], other_lo, other_hi, to.tilt[a] - to.tilt[b])
    steeper = np.exp(to.tilt[a] - to.tilt[b])  # where one part goes up and the other down without end, there is no sum
    if not max(to.r_hi[a] * (to.r_lo[b] / steeper), to.r_lo[a] * (to.r_hi[b] * steeper)) < SUMMED:
        return False
    first = max(first, plus(pieces.lowest[a], pieces.lowest[b], -LARGEST), pieces.low[k])
    final = min(final, plus(pieces.highest[a], pieces.highest[b], LARGEST), pieces.high[k])
    if first > final:
        return False
    out = np.empty(final - first + 1)
    start = first
    one, both = (wide, lo, hi, to.hard[a]), (other, other_lo, other_hi, to.hard[b])
    first, final, added = add_piece(one, both, out, first, final)
    if first > final:
        return False
    fresh += added
    error = to.error[a] + to.error[b] + fresh
    if to.leaning[a] or to.leaning[b]:
        tails = (
            wide[BESIDE:],
            lo,
            hi,
            to.lo[a] if to.leaning[a] & LOW else lo,
            to.hi[a] if to.leaning[a] & HIGH else hi,
        )
        b_lo = to.lo[b] if to.leaning[b] & LOW else other_lo
        b_hi = to.hi[b] if to.leaning[b] & HIGH else other_hi
        swerves = (to.swerve[a], to.swerve[b])
        first, final, added = _trusted(
            first, final, start, out, tails, (other[BESIDE:], other_lo, other_hi, b_lo, b_hi), swerves
        )
        error += added
    # such tails, as far as they were written out, are log-concave to a few percent
    if not to.swerve[a] * extra_a + to.swerve[b] * extra_b < 0.2:
        return False
    out = out[first - start : final - start + 1]
    span, ends = (first, final), (pieces.lowest[k], pieces.highest[k])
    tilts = (outlook.tilt[k] - to.tilt[a], outlook.tilt[k])
    errors = (error, fresh, to.swerve[a] + to.swerve[b])
    return _own(k, pieces, kit, out, span, errors, ends, span, tilts, to)


@compiled(**BORROWED)
def part_start(left_mean: Any, share: Any, centre: Any, s: Any, low: Any, high: Any) -> Any:
    """Where the choice of a left part begins: near its mean given the total."""
    return min(max(np.int64(np.rint(left_mean + share * (s - centre))), low), high)


@compiled(**BORROWED)
def draw_pairs(
    some: Any, pieces: Any, outlook: Any, shelf: Any, totals: Any, words: Any, inflation: Any, open_pieces: Any,
    terms: Any,
) -> Any:  # fmt: skip
    """Divide the totals of pairs, for every row of totals; return how many divisions stay open."""
    count = 0
    kind, left, right = pieces.kind, pieces.left, pieces.right
    left_mean, share, centre = outlook.left_mean, outlook.share, outlook.centre
    for i in range(some.size):
        p = some[i]
        k = kind[p]
        a, b = left[p], right[p]
        if b < 0:
            for row in range(totals.shape[1]):
                totals[a, row] = totals[p, row]
            continue
        ka, kb = kind[a], kind[b]
        f = shelf.values[shelf.offset[ka] : shelf.offset[ka] + shelf.hi[ka] - shelf.lo[ka] + 1]
        g = shelf.values[shelf.offset[kb] : shelf.offset[kb] + shelf.hi[kb] - shelf.lo[kb] + 1]
        one = (f, shelf.lo[ka], shelf.hi[ka], shelf.hard[ka])
        other = (g, shelf.lo[kb], shelf.hi[kb], shelf.hard[kb])
        tilt = shelf.tilt[kb] - shelf.tilt[ka]
        slack = inflation * 4 * ROUNDING
        for row in range(totals.shape[1]):
            s = totals[p, row]
            low, high = max(one[1], s - other[2]), min(one[2], s - other[1])
            start = part_start(left_mean[k], share[k], centre[k], s, low, high)
            part = choose_part(one, other, tilt, s, start, words[p, row], slack, terms)
            if part == UNDECIDED:
                open_pieces[count, 0], open_pieces[count, 1] = row, p
                count += 1
                if count == open_pieces.shape[0]:
                    return -1
                continue
            totals[a, row], totals[b, row] = part, s - part
    return count


@compiled(**BORROWED)
def leaf_start(laplace: Any, s: Any, share: Any, low: Any, high: Any) -> Any:
    """Where the choice of a leaf's noise begins: 0 for Laplace, its share of the total for Gaussian noise."""
    return min(max(np.int64(0) if laplace else np.int64(np.rint(share * s)), low), high)


@compiled(**BORROWED)
def draw_parcels(
    parcels: Any, pieces: Any, outlook: Any, inside: Any, totals: Any, words: Any, noise: Any, inflation: Any,
    open_pieces: Any, rest_of: Any, is_open: Any,
) -> Any:  # fmt: skip
    """Divide the totals of parcels, alike ones together, over their leaves; return how many parcels stay open.

    `rest_of` and `is_open` have room for every row.
    """
    kit, blocks, slots, scratch, _ = inside
    leaf_kind, leaves, offset = pieces.leaf_kind, pieces.leaves, pieces.kind.size
    count = 0
    made = -1
    base = 0
    rows = totals.shape[1]
    leaf_low, leaf_high, leaf_law, laplace = kit.leaf_low, kit.leaf_high, kit.leaf_law, kit.laplace
    law = np.int64(0)
    powers = kit.weights[law]
    longest = powers.size - 1
    shelves = (blocks, scratch)
    for i in range(parcels.size):
        p = parcels[i]
        k = pieces.kind[p]
        head = pieces.first[p]
        size = pieces.members[p]
        if k != made:
            spare_lo, spare_hi = asked(k, pieces, outlook)
            _, base, _ = prefixes(
                inside, leaf_kind[head : head + size], outlook.below[k], outlook.rest[k], outlook.hold[k], spare_lo,
                spare_hi,
            )  # fmt: skip
            made = k
        for row in range(rows):
            rest_of[row] = totals[p, row]
            is_open[row] = False
        for from_base in range(2):
            shelf = shelves[1 - from_base]
            values, offsets, los, his, excesses, scales = (
                shelf.values, shelf.offset, shelf.lo, shelf.hi, shelf.excess, shelf.scale
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
                slack = inflation * excesses[now]
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


@compiled(**BORROWED)
def draw_roots(
    some: Any, pieces: Any, outlook: Any, shelf: Any, totals: Any, words: Any, inflation: Any, open_pieces: Any,
    terms: Any,
) -> Any:  # fmt: skip
    """Draw the totals of pieces that have none above them; return how many stay open."""
    count = 0
    offset = pieces.kind.size + pieces.leaves.size
    for i in range(some.size):
        p = some[i]
        k = pieces.kind[p]
        f = shelf.values[shelf.offset[k] : shelf.offset[k] + shelf.hi[k] - shelf.lo[k] + 1]
        for row in range(totals.shape[1]):
            if pieces.root[p] == 2:
                totals[p, row] = 0
                continue
            start = part_start(outlook.centre[k], 0.0, 0.0, 0, shelf.lo[k], shelf.hi[k])
            s = choose_total(
                f, shelf.lo[k], shelf.hi[k], shelf.hard[k], shelf.tilt[k], start, words[offset + i, row],
                inflation * 4 * ROUNDING, terms,
            )  # fmt: skip
            if s == UNDECIDED:
                open_pieces[count, 0], open_pieces[count, 1] = row, p
                count += 1
                if count == open_pieces.shape[0]:
                    return -1
                continue
            totals[p, row] = s
    return count
