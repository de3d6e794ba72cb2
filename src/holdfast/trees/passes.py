"""The up-pass that makes messages and the down-pass that draws totals, compiled, over ranges of kinds or pieces.

Going up, the message of a parcel is that of all its leaves, and that of a pair is the sum of its two parts; then each
gets its own weight and bounds. Going down, roots are drawn, totals of pairs are divided, and totals of parcels are
divided over their leaves. Threads fill disjoint ranges. A draw that the error bounds do not decide is left open for
undecided.py.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from holdfast.trees.choices import UNDECIDED, choose_leaf, choose_part, choose_total
from holdfast.trees.parcels import plus, prefixes, put
from holdfast.trees.steps import (
    HIGH,
    LOW,
    ROUNDING,
    TRIMS,
    TWICE,
    add_piece,
    excess,
    extended,
    finish,
    retilted,
    weigh,
)

_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}


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
    put(to, k, own, first, s_lo, s_hi, r_lo, r_hi, hard, defined, tilt, error, scale)
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
        reach_lo = plus(lowest[a], lowest[b], -endless)
        reach_hi = plus(highest[a], highest[b], endless)
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
    pieces: Any, kind: Any, left: Any, right: Any, shelf: Any, left_mean: Any, share: Any, centre: Any,
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
        f = shelf.values[shelf.offset[ka] : shelf.offset[ka] + shelf.hi[ka] - shelf.lo[ka] + 1]
        g = shelf.values[shelf.offset[kb] : shelf.offset[kb] + shelf.hi[kb] - shelf.lo[kb] + 1]
        slack = TWICE * inflation * (shelf.error[ka] + shelf.error[kb])
        for row in range(totals.shape[1]):
            s = totals[p, row]
            low, high = max(shelf.lo[ka], s - shelf.hi[kb]), min(shelf.hi[ka], s - shelf.lo[kb])
            start = part_start(left_mean[k], share[k], centre[k], s, low, high)
            part = choose_part(
                f, shelf.lo[ka], shelf.hi[ka], shelf.hard[ka], g, shelf.lo[kb], shelf.hi[kb], shelf.hard[kb],
                shelf.tilt[kb] - shelf.tilt[ka], s, start, words[p, row], slack, terms,
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
            shelf = shelves[1 - from_base]
            values, offsets, los, his, errors, scales = (
                shelf.values, shelf.offset, shelf.lo, shelf.hi, shelf.error, shelf.scale
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
    pieces: Any, kind: Any, root: Any, shelf: Any, centre: Any, totals: Any, words: Any, offset: Any, inflation: Any,
    open_pieces: Any, room: Any,
) -> Any:  # fmt: skip
    """Draw the totals of pieces that have none above them; return how many stay open."""
    count = 0
    terms = np.empty(room)
    for i in range(pieces.size):
        p = pieces[i]
        k = kind[p]
        f = shelf.values[shelf.offset[k] : shelf.offset[k] + shelf.hi[k] - shelf.lo[k] + 1]
        for row in range(totals.shape[1]):
            if root[p] == 2:
                totals[p, row] = 0
                continue
            start = part_start(centre[k], 0.0, 0.0, 0, shelf.lo[k], shelf.hi[k])
            s = choose_total(
                f, shelf.lo[k], shelf.hi[k], shelf.hard[k], shelf.tilt[k], start, words[offset + i, row],
                TWICE * inflation * shelf.error[k], terms,
            )  # fmt: skip
            if s == UNDECIDED:
                open_pieces[count, 0], open_pieces[count, 1] = row, p
                count += 1
                if count == open_pieces.shape[0]:
                    return -1
                continue
            totals[p, row] = s
    return count
