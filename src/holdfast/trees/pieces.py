"""A hierarchy cut into pieces, two of which are put together at a time.

A *parcel* is up to 64 leaves of one parent; a *pair* is two pieces with one total. Pairs without an output of their own
stand between a parent and its many children, so no message is ever made of more than two. Pieces that are alike (same
own law and bounds, same leaves or same two pieces) are of one *kind* and share one message: without bounds a nation has
few kinds, with bounds nearly as many as pieces. Children come before parents in every array.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from holdfast.arguments import LARGEST
from holdfast.trees.forest import Forest, Ints

#: Most leaves in a parcel: all its partial messages fit into the second cache together.
MOST_LEAVES = 64


@dataclass(frozen=True, eq=False)
class Pieces:
    """Arrays over pieces, over kinds of pieces, and over leaves in the order of their parcels."""

    # Pieces: kind, the two pieces below (−1: none), the output whose noise is its total (−1: none), leaves of a parcel.
    kind: Ints
    left: Ints
    right: Ints
    output: Ints
    first: Ints
    count: Ints
    root: Ints  # 0: below another piece; 1: total free; 2: total 0, below an exact output
    # Kinds: the two kinds below, own law (−1: none), bounds on the total, an example piece, how many pairs high.
    kind_left: Ints
    kind_right: Ints
    law: Ints
    low: Ints
    high: Ints
    example: Ints
    height: Ints
    lowest: Ints  # the least and the largest total that bounds below allow; ∓2**62: no end
    highest: Ints
    # Leaves: outputs in parcel order (the most frequent kind of a parcel first), and their kinds.
    leaves: Ints
    leaf_kind: Ints

    @property
    def size(self) -> int:
        """The number of pieces."""
        return int(self.kind.size)

    @property
    def kinds(self) -> int:
        """The number of kinds of pieces."""
        return int(self.example.size)


def cut(forest: Forest, law: Ints, low: Ints, high: Ints, leaf_kind: Ints, ends: tuple[Ints, Ints]) -> Pieces:
    """Cut a forest into pieces.

    `law` is −1 where an output is not measured; bounds are on noise and hold 0; `ends` are the bounds of each kind of
    leaf, ∓2**62 where messages know of none.
    """
    children, start = forest.children
    leaves = int(forest.is_leaf.sum())
    parcels = leaves // MOST_LEAVES + forest.n - leaves + int((forest.parents < 0).sum())
    room = 2 * (parcels + forest.n - leaves) + 1
    found = _cut(forest.parents, children, start, forest.exact, law, low, high, leaf_kind, *ends, room)
    sizes, arrays = found[0], found[1:]
    pieces, kinds, leaves = (int(size) for size in sizes)
    cutoff = [pieces] * 7 + [kinds] * 9 + [leaves] * 2
    return Pieces(*(np.ascontiguousarray(a[:size]) for a, size in zip(arrays, cutoff, strict=True)))


@numba.njit(cache=True, nogil=True)
def _mixed(h: Any, value: Any) -> Any:
    """Mix a number into a hash (the finaliser of MurmurHash3)."""
    h = np.uint64(h) ^ (np.uint64(value) + np.uint64(0x9E3779B97F4A7C15) + (np.uint64(h) << np.uint64(6)))
    h ^= h >> np.uint64(33)
    h *= np.uint64(0xFF51AFD7ED558CCD)
    h ^= h >> np.uint64(33)
    h *= np.uint64(0xC4CEB9FE1A85EC53)
    return h ^ (h >> np.uint64(33))


@numba.njit(cache=True, nogil=True)
def _top_down(parents: Any, children: Any, start: Any) -> Any:
    """Outputs, parents before children."""
    n = parents.size
    order = np.empty(n, np.int64)
    filled = 0
    for v in range(n):
        if parents[v] < 0:
            order[filled] = v
            filled += 1
    done = 0
    while done < filled:
        v = order[done]
        done += 1
        for i in range(start[v], start[v + 1]):
            order[filled] = children[i]
            filled += 1
    return order


@numba.njit(cache=True, nogil=True)
def _by_kind(values: Any, keys: Any, first: Any, last: Any) -> None:
    """Sort values[first:last] by the keys of the values, in place: insertion, and merging beyond 64."""
    if last - first > 64:
        part = values[first:last].copy()
        order = np.argsort(keys[part], kind="mergesort")
        for i in range(part.size):
            values[first + i] = part[order[i]]
        return
    for i in range(first + 1, last):
        value = values[i]
        key = keys[value]
        j = i - 1
        while j >= first and keys[values[j]] > key:
            values[j + 1] = values[j]
            j -= 1
        values[j + 1] = value


@numba.njit(cache=True, nogil=True)
def _frequent_first(leaves: Any, leaf_kind: Any, first: Any, last: Any) -> None:
    """Move the most frequent kind of a sorted parcel to its front."""
    best = first
    best_count = 0
    i = first
    while i < last:
        j = i
        while j < last and leaf_kind[leaves[j]] == leaf_kind[leaves[i]]:
            j += 1
        if j - i > best_count:
            best, best_count = i, j - i
        i = j
    if best == first:
        return
    moved = leaves[best : best + best_count].copy()
    for i in range(best - 1, first - 1, -1):
        leaves[i + best_count] = leaves[i]
    for i in range(best_count):
        leaves[first + i] = moved[i]


@numba.njit(cache=True, nogil=True)
def _plus(a: Any, b: Any, endless: Any) -> Any:
    """A sum of two bounds; one that is too large for a number is none."""
    if a == endless or b == endless:
        return endless
    return min(a + b, endless) if endless > 0 else max(a + b, endless)


@numba.njit(cache=True, nogil=True)
def _cut(
    parents: Any, children: Any, start: Any, exact: Any, law: Any, low: Any, high: Any, leaf_kind: Any,
    leaf_low: Any, leaf_high: Any, room: Any,
) -> Any:  # fmt: skip
    n = parents.size
    none_low, none_high = -np.int64(LARGEST), np.int64(LARGEST)
    kind = np.empty(room, np.int64)
    left = np.empty(room, np.int64)
    right = np.empty(room, np.int64)
    output = np.empty(room, np.int64)
    first = np.zeros(room, np.int64)
    count = np.zeros(room, np.int64)
    root = np.zeros(room, np.int64)
    kind_left = np.empty(room, np.int64)
    kind_right = np.empty(room, np.int64)
    kind_law = np.empty(room, np.int64)
    kind_low = np.empty(room, np.int64)
    kind_high = np.empty(room, np.int64)
    example = np.empty(room, np.int64)
    height = np.empty(room, np.int64)
    lowest = np.empty(room, np.int64)
    highest = np.empty(room, np.int64)
    slots = 1
    while slots < 2 * room:
        slots *= 2
    table = np.full(slots, -1, np.int64)
    leaves = np.empty(n, np.int64)
    reach_low = low.copy()  # the least noise that bounds at and below an output allow
    reach_high = high.copy()
    piece_of = np.full(n, -1, np.int64)  # the piece whose total is an output's noise; −1: that noise is 0
    stack = np.empty(16, np.int64)
    pieces, kinds, placed = 0, 0, 0
    order = _top_down(parents, children, start)
    for step in range(n - 1, -1, -1):
        v = order[step]
        is_leaf = start[v] == start[v + 1]
        if is_leaf and (parents[v] >= 0 or exact[v]):
            continue  # its parent takes it into a parcel
        begin = placed
        inner = 0
        if is_leaf:
            leaves[placed] = v
            placed += 1
        if stack.size < start[v + 1] - start[v] + 16:
            stack = np.empty(2 * (start[v + 1] - start[v]) + 16, np.int64)
        for i in range(start[v], start[v + 1]):
            c = children[i]
            if exact[c]:
                continue
            if start[c] == start[c + 1]:
                leaves[placed] = c
                placed += 1
            elif piece_of[c] >= 0:
                stack[inner] = piece_of[c]
                inner += 1
        free = placed - begin
        parcels = (free + MOST_LEAVES - 1) // MOST_LEAVES
        if parcels + inner == 0:
            reach_low[v], reach_high[v] = 0, 0
            continue  # nothing below is free: the noise is 0
        _by_kind(leaves, leaf_kind, begin, placed)
        # The parcels of v's leaves, then v's inner children, sorted by kind; then two and two together.
        own_law = np.int64(-1) if exact[v] or is_leaf else law[v]
        own_low = none_low if exact[v] or is_leaf else low[v]
        own_high = none_high if exact[v] or is_leaf else high[v]
        own_output = np.int64(-1) if exact[v] or is_leaf else v
        bottom_low, bottom_high = np.int64(0), np.int64(0)
        for i in range(start[v], start[v + 1]):
            if not exact[children[i]]:
                bottom_low = _plus(bottom_low, reach_low[children[i]], none_low)
                bottom_high = _plus(bottom_high, reach_high[children[i]], none_high)
        if not is_leaf:
            reach_low[v], reach_high[v] = max(low[v], bottom_low), min(high[v], bottom_high)
        # A bound that the bounds below imply need not be cut again.
        if bottom_low >= own_low:
            own_low = none_low
        if bottom_high <= own_high:
            own_high = none_high
        total = parcels + inner
        for i in range(inner - 1, -1, -1):
            stack[parcels + i] = stack[i]
        made = 0
        rounds = 0
        current = total
        while True:
            # round 0 makes the parcels, later rounds make pairs; the last piece made is v's own
            width = parcels if rounds == 0 else (current + 1) // 2
            if rounds == 1 and total > 1:
                _by_kind(stack, kind, 0, current)
            for i in range(width):
                if rounds == 0:
                    a, b = np.int64(-1), np.int64(-1)
                    head = begin + free * i // parcels
                    size = begin + free * (i + 1) // parcels - head
                    _frequent_first(leaves, leaf_kind, head, head + size)
                else:
                    a = stack[2 * i]
                    b = stack[2 * i + 1] if 2 * i + 1 < current else np.int64(-1)
                    head, size = 0, 0
                    if b < 0 and width > 1:
                        stack[i] = a  # the odd one waits for the next round
                        continue
                last = width == 1 and (rounds > 0 or total == 1)
                this_law = own_law if last else np.int64(-1)
                this_low = own_low if last else none_low
                this_high = own_high if last else none_high
                p = pieces
                pieces += 1
                left[p], right[p], first[p], count[p] = a, b, head, size
                output[p] = own_output if last else -1
                ka = kind[a] if a >= 0 else np.int64(-1)
                kb = kind[b] if b >= 0 else np.int64(-1)
                h = _mixed(_mixed(_mixed(_mixed(_mixed(1, ka + 2), kb + 2), this_law + 2), this_low), this_high)
                for j in range(head, head + size):
                    h = _mixed(h, leaf_kind[leaves[j]] + 1)
                slot = np.int64(h & np.uint64(slots - 1))
                while True:
                    k = table[slot]
                    if k < 0:
                        k = kinds
                        kinds += 1
                        table[slot] = k
                        kind_left[k], kind_right[k], kind_law[k] = ka, kb, this_law
                        kind_low[k], kind_high[k], example[k] = this_low, this_high, p
                        height[k] = 0 if a < 0 else 1 + max(height[ka], height[kb] if kb >= 0 else 0)
                        lo, hi = np.int64(0), np.int64(0)
                        for j in range(head, head + size):
                            lo = _plus(lo, leaf_low[leaf_kind[leaves[j]]], none_low)
                            hi = _plus(hi, leaf_high[leaf_kind[leaves[j]]], none_high)
                        if ka >= 0:
                            lo = _plus(lo, lowest[ka], none_low)
                            hi = _plus(hi, highest[ka], none_high)
                        if kb >= 0:
                            lo = _plus(lo, lowest[kb], none_low)
                            hi = _plus(hi, highest[kb], none_high)
                        lowest[k] = max(lo, this_low)
                        highest[k] = min(hi, this_high)
                        break
                    same = (
                        kind_left[k] == ka
                        and kind_right[k] == kb
                        and kind_law[k] == this_law
                        and kind_low[k] == this_low
                        and kind_high[k] == this_high
                        and count[example[k]] == size
                    )
                    if same:
                        other = first[example[k]]
                        for j in range(size):
                            if leaf_kind[leaves[head + j]] != leaf_kind[leaves[other + j]]:
                                same = False
                                break
                    if same:
                        break
                    slot = (slot + 1) & (slots - 1)
                kind[p] = k
                stack[i] = p
                made = p
            if rounds == 0:
                rounds = 1
                if total == 1 and parcels == 1:
                    break
                continue
            current = width
            rounds += 1
            if current == 1:
                break
        if exact[v]:
            root[made] = 2
        elif parents[v] < 0:
            root[made] = 1
        if not is_leaf and not exact[v]:
            piece_of[v] = made
    sizes = np.array([pieces, kinds, placed])
    kinds_in_order = np.empty(placed, np.int64)
    for i in range(placed):
        kinds_in_order[i] = leaf_kind[leaves[i]]
    return (
        sizes, kind, left, right, output, first, count, root,
        kind_left, kind_right, kind_law, kind_low, kind_high, example, height, lowest, highest,
        leaves, kinds_in_order,
    )  # fmt: skip
