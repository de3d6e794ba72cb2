"""A hierarchy cut into pieces, two of which are put together at a time.

A *parcel* is up to 64 leaves of one parent; a *pair* is two pieces with one total. Pairs without an output of their own
stand between a parent and its many children, so no message is ever made of more than two. Pieces that are alike (same
own law and bounds, same leaves or same two pieces) are of one *kind* and share one message. Children come before
parents in every array.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from holdfast.arguments import LARGEST
from holdfast.arrays import BORROWED, Array, Ints, compiled, only_read
from holdfast.trees.shape.forest import Forest

#: Most leaves in a parcel: all its partial messages fit into the second cache together.
MOST_LEAVES = 64
#: No bound.
NONE_LOW, NONE_HIGH = np.int64(-LARGEST), np.int64(LARGEST)
#: Places of the three sizes that grow: of pieces, kinds and placed leaves.
PIECES, KINDS, PLACED = 0, 1, 2


class Pieces(NamedTuple):
    """Arrays over pieces, over kinds of pieces, and over leaves in the order of their parcels."""

    # Pieces: kind, the two pieces below (−1: none), the output whose noise is its total (−1: none), leaves of a parcel.
    kind: Ints
    left: Ints
    right: Ints
    output: Ints
    first: Ints
    members: Ints
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

    @property
    def parcel_of_leaf(self) -> Ints:
        """The parcel of every leaf."""
        parcels = np.flatnonzero(self.left < 0)  # they stand in the order of their leaves
        return np.repeat(parcels, self.members[parcels])

    def parcels_at(self, places: Ints) -> Ints:
        """The parcels of leaves at some places."""
        parcels = np.flatnonzero(self.left < 0)
        return parcels[self.first[parcels].searchsorted(places, "right") - 1]

    def by_height(self) -> list[Ints]:
        """The pieces of each height, alike parcels together."""
        height = self.height[self.kind]
        order = np.argsort(height, kind="stable")
        ends = np.searchsorted(height[order], np.arange(int(height.max(initial=0)) + 2))
        levels = [order[ends[h] : ends[h + 1]] for h in range(ends.size - 1)]
        levels[0] = levels[0][np.argsort(self.kind[levels[0]], kind="stable")]
        return levels

    def trees(self, levels: list[Ints]) -> Ints:
        """The root of every piece, for the pieces by height."""
        of_piece = np.arange(self.size)
        for level in levels[:0:-1]:
            for part in (self.left[level], self.right[level]):
                of_piece[part[part >= 0]] = of_piece[level[part >= 0]]
        return of_piece

    def at_roots(self, of_output: Array) -> Array:
        """What is known of outputs for the pieces whose total is free and that of a root; 0 for all others."""
        free = np.flatnonzero(self.root == 1)
        alone = self.leaves[np.minimum(self.first[free], self.leaves.size - 1)]  # a root without children has no output
        result = np.zeros(self.size, dtype=of_output.dtype)
        result[free] = of_output[np.where(self.output[free] >= 0, self.output[free], alone)]
        return result

    def of_outputs(self, of_piece: Ints, outputs: int) -> Ints:
        """What is known of pieces for so many outputs, −1 where the noise is 0."""
        of_output = np.full(outputs, -1)
        shown = np.flatnonzero(self.output >= 0)
        of_output[self.output[shown]] = of_piece[shown]
        of_output[self.leaves] = of_piece[self.parcel_of_leaf]
        return of_output


def cut(
    forest: Forest, law: Ints, bounds: tuple[Ints, Ints] | None, leaf_kind: Ints, ends: tuple[Ints, Ints]
) -> Pieces:
    """Cut a forest into pieces; `law` is −1 where an output is not measured, and bounds are on noise and hold 0.

    `ends` are the bounds of each kind of leaf, ∓2**62 where messages know of none.
    """
    leaves = int(forest.is_leaf.sum())
    parcels = leaves // MOST_LEAVES + forest.n - leaves + int((forest.parents < 0).sum())
    room = 2 * (parcels + forest.n - leaves) + 1
    made = _empty(room, forest.n, int(leaf_kind.max(initial=0)))
    tree, sizes = (forest.parents, *forest.children), np.zeros(3, dtype=np.int64)
    table = np.full(1 << (2 * room - 1).bit_length(), -1)
    low, high = (only_read(np.empty(0, np.int64)),) * 2 if bounds is None else bounds
    free = int(np.count_nonzero(forest.is_leaf & ~forest.exact))
    several = ends[0].size > 2 or 0 < np.count_nonzero(leaf_kind) < free  # outputs that are no free leaves have kind 0
    used = _Room(table, low.copy(), high.copy(), np.zeros(forest.n, np.int64), np.empty(room, np.int64))
    _cut(tree, forest.order, forest.exact, law, low, high, (leaf_kind, *ends, bool(several)), made, sizes, used)
    cutoff = np.repeat(sizes, [7, 9, 2]).tolist()
    return Pieces(*(np.ascontiguousarray(a[:size]) for a, size in zip(made, cutoff, strict=True)))


def _empty(room: int, leaves: int, kind: int) -> Pieces:
    """Room for so many pieces and leaves; leaves have one kind. Memory that stays 0 is not taken."""
    of_leaves = np.empty(leaves, dtype=np.int64), np.full(leaves, kind) if kind else np.zeros(leaves, dtype=np.int64)
    return Pieces._make([*(np.zeros(room, dtype=np.int64) for _ in range(16)), *of_leaves])


@compiled(inner=True, **BORROWED)
def _mixed(h: Any, value: Any) -> Any:
    """Mix a number into a hash (the finaliser of MurmurHash3)."""
    h = np.uint64(h) ^ (np.uint64(value) + np.uint64(0x9E3779B97F4A7C15) + (np.uint64(h) << np.uint64(6)))
    h ^= h >> np.uint64(33)
    h *= np.uint64(0xFF51AFD7ED558CCD)
    h ^= h >> np.uint64(33)
    h *= np.uint64(0xC4CEB9FE1A85EC53)
    return h ^ (h >> np.uint64(33))


@compiled(inner=True)
def _by_kind(values: Any, keys: Any, first: Any, last: Any) -> None:
    """Sort values[first:last] by the keys of the values, in place: insertion, and merging beyond 64."""
    if last - first <= 64:
        _inserted(values, keys, first, last)
        return
    part = values[first:last].copy()
    order = np.argsort(keys[part], kind="mergesort")
    for i in range(part.size):
        values[first + i] = part[order[i]]


@compiled(inner=True, **BORROWED)
def _inserted(values: Any, keys: Any, first: Any, last: Any) -> None:
    """Sort values[first:last] by the keys of the values, in place, one after the other."""
    one: Any = np.uint64(1)  # unsigned: signed places are checked each time
    for i in range(np.uint64(first + 1), np.uint64(last)):
        value = values[i]
        key = keys[value]
        j: Any = i
        while j > np.uint64(first) and keys[values[j - one]] > key:
            values[j] = values[j - one]
            j -= one
        values[j] = value


@compiled(inner=True, **BORROWED)
def _frequent_first(leaves: Any, leaf_kind: Any, first: Any, last: Any) -> None:
    """Move the most frequent kind of a sorted parcel to its front; the others keep their order."""
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
    _reverse(leaves, first, best)
    _reverse(leaves, best, best + best_count)
    _reverse(leaves, first, best + best_count)


@compiled(inner=True, **BORROWED)
def _reverse(values: Any, first: Any, last: Any) -> None:
    """Turn values[first:last] round, in place."""
    for i in range((last - first) // 2):
        values[first + i], values[last - 1 - i] = values[last - 1 - i], values[first + i]


@compiled(inner=True, **BORROWED)
def _plus(a: Any, b: Any, endless: Any) -> Any:
    """A sum of two bounds; one that is too large for a number is none."""
    if a == endless or b == endless:
        return endless
    return min(a + b, endless) if endless > 0 else max(a + b, endless)


@compiled(inner=True, **BORROWED)
def _gathered(v: Any, tree: Any, exact: Any, piece_of: Any, leaves: Any, sizes: Any, stack: Any) -> Any:
    """Place the free leaves of an output, and put the pieces of its inner children on the stack; return how many."""
    _, children, start = tree
    inner = 0
    if start[v] == start[v + 1]:
        leaves[sizes[PLACED]] = v
        sizes[PLACED] += 1
    for i in range(start[v], start[v + 1]):
        c = children[i]
        if exact[c]:
            continue
        if start[c] == start[c + 1]:
            leaves[sizes[PLACED]] = c
            sizes[PLACED] += 1
        elif piece_of[c] > 0:
            stack[inner] = piece_of[c] - 1
            inner += 1
    return inner


@compiled(inner=True, **BORROWED)
def _reached(v: Any, tree: Any, exact: Any, least: Any, most: Any) -> Any:
    """The least and the largest sum of the noise of an output's children that bounds allow."""
    _, children, start = tree
    low, high = np.int64(0), np.int64(0)
    for i in range(start[v], start[v + 1]):
        if not exact[children[i]]:
            low = _plus(low, least[children[i]], NONE_LOW)
            high = _plus(high, most[children[i]], NONE_HIGH)
    return low, high


@compiled(inner=True, **BORROWED)
def _alike(made: Any, k: Any, p: Any, parts: Any, own: Any, of_leaf: Any) -> Any:
    """Whether a piece, whose parts have these kinds, is of kind k."""
    leaf_kind, several = of_leaf[0], of_leaf[3]
    if made.kind_left[k] != parts[0] or made.kind_right[k] != parts[1]:
        return False
    if made.law[k] != own[0] or made.low[k] != own[1] or made.high[k] != own[2]:
        return False
    head, other = made.first[p], made.first[made.example[k]]
    if made.members[made.example[k]] != made.members[p]:
        return False
    for j in range(made.members[p] if several else 0):
        if leaf_kind[made.leaves[head + j]] != leaf_kind[made.leaves[other + j]]:
            return False
    return True


@compiled(inner=True, **BORROWED)
def _note_kind(made: Any, k: Any, p: Any, parts: Any, own: Any, of_leaf: Any) -> None:
    """Write down a new kind, with its first piece as the example."""
    leaf_kind, leaf_low, leaf_high, _ = of_leaf
    lo, hi, height = np.int64(0), np.int64(0), np.int64(0)
    for j in range(made.first[p], made.first[p] + made.members[p]):
        lo = _plus(lo, leaf_low[leaf_kind[made.leaves[j]]], NONE_LOW)
        hi = _plus(hi, leaf_high[leaf_kind[made.leaves[j]]], NONE_HIGH)
    for part in parts:
        if part >= 0:
            lo = _plus(lo, made.lowest[part], NONE_LOW)
            hi = _plus(hi, made.highest[part], NONE_HIGH)
            height = max(height, 1 + made.height[part])
    made.kind_left[k], made.kind_right[k], made.example[k], made.height[k] = parts[0], parts[1], p, height
    made.law[k], made.low[k], made.high[k] = own
    made.lowest[k], made.highest[k] = max(lo, own[1]), min(hi, own[2])


@compiled(inner=True, **BORROWED)
def _kind_of(made: Any, sizes: Any, table: Any, p: Any, own: Any, of_leaf: Any) -> Any:
    """The kind of a piece, an old one where one is alike; `table` finds kinds by a hash."""
    leaf_kind, several = of_leaf[0], of_leaf[3]
    a, b = made.left[p], made.right[p]
    parts = (made.kind[a] if a >= 0 else np.int64(-1), made.kind[b] if b >= 0 else np.int64(-1))
    h = _mixed(_mixed(_mixed(_mixed(_mixed(1, parts[0] + 2), parts[1] + 2), own[0] + 2), own[1]), own[2])
    h = _mixed(h, made.members[p])
    for j in range(made.first[p], made.first[p] + made.members[p] if several else 0):
        h = _mixed(h, leaf_kind[made.leaves[j]] + 1)
    slot = np.int64(h & np.uint64(table.size - 1))
    while table[slot] >= 0:
        if _alike(made, table[slot], p, parts, own, of_leaf):
            return table[slot]
        slot = (slot + 1) & (table.size - 1)
    k = sizes[KINDS]
    sizes[KINDS] += 1
    table[slot] = k
    _note_kind(made, k, p, parts, own, of_leaf)
    return k


@compiled(inner=True, **BORROWED)
def _piece(made: Any, sizes: Any, table: Any, parts: Any, span: Any, own: Any, output: Any, of_leaf: Any) -> Any:
    """Make a piece of two others, or of the leaves in a span; return it."""
    p = sizes[PIECES]
    sizes[PIECES] += 1
    made.left[p], made.right[p] = parts
    made.first[p], made.members[p] = span
    made.output[p] = output
    made.kind[p] = _kind_of(made, sizes, table, p, own, of_leaf)
    return p


@compiled(inner=True, **BORROWED)
def _joined(made: Any, sizes: Any, table: Any, stack: Any, counts: Any, own: Any, output: Any, of_leaf: Any) -> Any:
    """Make the parcels of an output's leaves, then put them and its inner pieces together, two and two; give the last.

    `counts` are the parcels, the inner pieces, and where the free leaves begin. Only the last piece has the output's
    own law and bounds.
    """
    parcels, inner, begin = counts
    nothing = (np.int64(-1), NONE_LOW, NONE_HIGH)
    none = np.int64(-1)
    free, total = sizes[PLACED] - begin, parcels + inner
    for i in range(inner - 1, -1, -1):
        stack[parcels + i] = stack[i]
    for i in range(parcels):
        head = begin + free * i // parcels
        size = begin + free * (i + 1) // parcels - head
        if of_leaf[3]:
            _frequent_first(made.leaves, of_leaf[0], head, head + size)
        last = total == 1
        stack[i] = _piece(
            made, sizes, table, (none, none), (head, size), own if last else nothing, output if last else none, of_leaf
        )
    if total == 1 and parcels == 1:
        return stack[0]
    if total > 1:
        _by_kind(stack, made.kind, 0, total)
    while True:
        width = (total + 1) // 2
        for i in range(width):
            a = stack[2 * i]
            b = stack[2 * i + 1] if 2 * i + 1 < total else none
            if b < 0 and width > 1:
                stack[i] = a  # the odd one waits for the next round
                continue
            last = width == 1
            stack[i] = _piece(
                made, sizes, table, (a, b), (np.int64(0), np.int64(0)), own if last else nothing,
                output if last else none, of_leaf,
            )  # fmt: skip
        total = width
        if total == 1:
            return stack[0]


class _Room(NamedTuple):
    """Room that cutting needs besides what it makes."""

    table: Ints  # kinds by a hash, −1 where there is none
    least: Ints  # the noise that bounds at and below an output allow; empty where there are none
    most: Ints
    piece_of: Ints  # one more than the piece whose total is an output's noise; 0: that noise is 0
    stack: Ints  # pieces of one output: at most as many as all parcels and inner outputs


@compiled(**BORROWED)
def _cut(
    tree: Any, order: Any, exact: Any, law: Any, low: Any, high: Any, of_leaf: Any, made: Any, sizes: Any, room: Any
) -> None:
    """Fill `made`, children before parents, and `sizes`: how many pieces, kinds and leaves there are."""
    parents, _, start = tree
    table, least, most, piece_of, stack = room
    bounded = least.size > 0
    for step in range(parents.size - 1, -1, -1):
        v = order[step]
        is_leaf = start[v] == start[v + 1]
        if is_leaf and (parents[v] >= 0 or exact[v]):
            continue  # its parent takes it into a parcel
        begin = sizes[PLACED]
        inner = _gathered(v, tree, exact, piece_of, made.leaves, sizes, stack)
        parcels = (sizes[PLACED] - begin + MOST_LEAVES - 1) // MOST_LEAVES
        if parcels + inner == 0:
            if bounded:
                least[v], most[v] = 0, 0
            continue  # nothing below is free: the noise is 0
        if of_leaf[3]:
            _by_kind(made.leaves, of_leaf[0], begin, sizes[PLACED])
        own, output, bounds = (np.int64(-1), NONE_LOW, NONE_HIGH), np.int64(-1), (NONE_LOW, NONE_HIGH)
        if bounded and not is_leaf:  # a bound that the bounds below imply need not be cut again
            below, above = _reached(v, tree, exact, least, most)
            bounds = (NONE_LOW if below >= low[v] else low[v], NONE_HIGH if above <= high[v] else high[v])
            least[v], most[v] = max(low[v], below), min(high[v], above)
        if not is_leaf and not exact[v]:
            own, output = (np.int64(law[v]), bounds[0], bounds[1]), np.int64(v)
        last = _joined(made, sizes, table, stack, (parcels, inner, begin), own, output, of_leaf)
        if exact[v]:
            made.root[last] = 2
        elif parents[v] < 0:
            made.root[last] = 1
        if not is_leaf and not exact[v]:
            piece_of[v] = last + 1
    for i in range(sizes[PLACED] if of_leaf[3] else 0):  # elsewhere the one kind of all leaves is written already
        made.leaf_kind[i] = of_leaf[0][made.leaves[i]]
