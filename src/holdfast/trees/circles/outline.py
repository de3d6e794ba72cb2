"""A forest as the messages see it: inner nodes with few children each, all of them leaves or all of them inner.

Outputs whose noise is always 0 are left out, and so are outputs that nothing measures or bounds: their children belong
to the output above, or are roots. Bounds that follow from those of the children are dropped. Where a node has leaves
and inner children, or very many children, some of them are put below a node of their own, which nothing measures. None
of this changes the law.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from holdfast.arguments import LARGEST
from holdfast.arrays import Array, Bools, Floats, Ints
from holdfast.trees.shape.forest import Forest

#: Most leaves, and most inner nodes, below one node: tries of a division grow with the root of their number.
MOST_LEAVES, MOST_INNER = 64, 24


class Cuts(NamedTuple):
    """Outputs without children here that have some elsewhere, and the ends of these children's sums (∓2**62: none)."""

    at: Bools
    least: Ints
    largest: Ints


@dataclass(frozen=True, eq=False)
class Outline:
    """Inner nodes 0, 1, …, parents before children and siblings together, and leaves grouped by their parents.

    `output` is −1 for nodes that stand for no output; `fixed` nodes are exact outputs: the total of their children is 0
    and they have no parent. `law` is −1 where nothing is measured. Children of node k: inner nodes
    inner_start[k] … inner_start[k+1] − 1 or leaves leaf_start[k] … leaf_start[k+1] − 1; inner nodes before the first
    inner_start are roots; nodes with neither are cut off from their children. Level d holds nodes levels[d] …
    levels[d+1] − 1.
    Outputs in `alone` are leaves that are roots.
    """

    output: Ints
    parent: Ints
    law: Ints
    low: Ints
    high: Ints
    fixed: Bools
    inner_start: Ints
    leaf_start: Ints
    levels: Ints
    leaf_output: Ints
    leaf_law: Ints
    leaf_low: Ints
    leaf_high: Ints
    alone: Ints

    @property
    def size(self) -> int:
        """The number of inner nodes."""
        return int(self.parent.size)

    @property
    def has_leaves(self) -> Bools:
        """Whether the children of a node are leaves."""
        return np.diff(self.leaf_start) > 0

    def parents_at(self, d: int) -> tuple[Ints, Ints]:
        """The nodes of a level whose children are leaves, and those whose children are inner nodes."""
        some = np.arange(self.levels[d], self.levels[d + 1])
        leafy, inner = (start[some + 1] > start[some] for start in (self.leaf_start, self.inner_start))
        return some[leafy], some[inner]

    @cached_property
    def tree(self) -> Ints:
        """The tree of every inner node: 0, 1, … by their roots."""
        result = np.cumsum(self.parent < 0) - 1
        for first, last in pairwise(self.levels[1:].tolist()):
            below = slice(first, last)
            result[below] = np.where(self.parent[below] >= 0, result[self.parent[below]], result[below])
        return result

    @property
    def trees(self) -> int:
        """The number of trees; leaves that are roots are the last of them."""
        return int((self.parent < 0).sum()) + self.alone.size

    @cached_property
    def output_tree(self) -> tuple[Ints, Ints]:
        """The outputs that are leaves and have noise, those that are roots last, and the tree of each."""
        inner = int((self.parent < 0).sum())
        return (
            np.concatenate([self.leaf_output, self.alone]),
            np.concatenate([self.tree[self.leaf_parent], inner + np.arange(self.alone.size)]),
        )

    @property
    def leaf_parent(self) -> Ints:
        """The node above each leaf."""
        return np.repeat(np.arange(self.size), np.diff(self.leaf_start))


def outline(
    forest: Forest,
    law: Ints,
    low: Ints,
    high: Ints,
    most: tuple[int, int] = (MOST_LEAVES, MOST_INNER),
    cuts: Cuts | None = None,
    kept: Bools | None = None,
) -> Outline:
    """Sort a forest's outputs, each with a law's number (−1: not measured) and bounds on its noise (∓2**62: none).

    Those in `kept` have nodes of their own though nothing may measure or bound them.
    """
    parents, exact, n = forest.parents, forest.exact, forest.n
    order, depth = forest.order, forest.depth
    starts = np.searchsorted(depth[order], np.arange(int(depth.max(initial=-1)) + 2))
    levels = [order[a:b] for a, b in pairwise(starts)]
    leaf = np.asarray(forest.is_leaf)
    # Outputs with noise: not exact, and with a child that has some unless they are leaves.
    noisy, active_below = ~exact & leaf, np.zeros(n + 1, dtype=np.int64)
    low_below, high_below = np.zeros(n + 1), np.zeros(n + 1)
    if cuts is not None:
        leaf = leaf & ~cuts.at
        active_below[:-1] = cuts.at
        low_below[:-1][cuts.at] = np.where(cuts.least > -LARGEST, cuts.least, -np.inf)[cuts.at]
        high_below[:-1][cuts.at] = np.where(cuts.largest < LARGEST, cuts.largest, np.inf)[cuts.at]
    least, largest = np.where(low > -LARGEST, low, -np.inf), np.where(high < LARGEST, high, np.inf)
    for level in levels[::-1]:
        inner = level[~leaf[level]]
        noisy[inner] = ~exact[inner] & (active_below[inner] > 0)
        least[inner] = np.maximum(least[inner], low_below[inner])
        largest[inner] = np.minimum(largest[inner], high_below[inner])
        some = level[noisy[level]]
        above = parents[some]
        np.add.at(active_below, above, 1)
        np.add.at(low_below, above, least[some])
        np.add.at(high_below, above, largest[some])
    has_low, has_high = low > -LARGEST, high < LARGEST
    has_low[~leaf] &= low[~leaf] > low_below[:-1][~leaf]
    has_high[~leaf] &= high[~leaf] < high_below[:-1][~leaf]
    fixed = exact & ~leaf & (active_below[:-1] > 0)
    spliced = noisy & ~leaf & (law < 0) & ~has_low & ~has_high
    if kept is not None:
        spliced &= ~kept
    above = np.where(parents >= 0, parents, -1)
    for level in levels[1:]:
        below = above[level]
        through = spliced[below]
        above[level[through]] = above[below[through]]
    above[fixed] = -1
    there = (noisy & ~spliced) | fixed
    alone = np.flatnonzero(there & leaf & (above < 0))
    inner, leaves = np.flatnonzero(there & ~leaf), np.flatnonzero(there & leaf & (above >= 0))
    number = np.full(n, -1, dtype=np.int64)
    number[inner] = np.arange(inner.size)
    parent = np.where(above[inner] >= 0, number[above[inner]], -1)
    leaf_parent = number[above[leaves]]
    leaves, leaf_parent, parent = _grouped_leaves(leaves, leaf_parent, parent, (low, high), most[0])
    reach = np.concatenate([least[inner], np.bincount(leaf_parent, least[leaves], parent.size)[inner.size :]])
    parent = _grouped_inner(parent, most[1], reach)
    return _sorted(
        parent,
        leaf_parent,
        _with_more(inner, parent.size, -1),
        (law, np.where(has_low, low, -LARGEST), np.where(has_high, high, LARGEST)),
        _with_more(fixed[inner], parent.size, False),
        leaves,
        alone,
    )


def _with_more(values: Array, size: int, value: object) -> Array:
    return np.concatenate([values, np.full(size - values.size, value)])


def _grouped_leaves(
    leaves: Ints, leaf_parent: Ints, parent: Ints, bounds: tuple[Ints, Ints], most: int
) -> tuple[Ints, Ints, Ints]:
    """Put leaves below nodes of their own where they have inner siblings, or where there are too many."""
    size = parent.size
    counts = np.bincount(leaf_parent, minlength=size)
    inner = np.bincount(parent[parent >= 0], minlength=size)
    apart = (counts > most) | ((counts > 0) & (inner > 0))
    if (np.diff(leaf_parent) < 0).any():
        order = np.argsort(leaf_parent, kind="stable")
        leaves, leaf_parent = leaves[order], leaf_parent[order]
    if not apart.any():
        return leaves, leaf_parent, parent
    moved = np.flatnonzero(apart[leaf_parent])
    # Alike leaves stand together, so that groups are of one kind where they can be.
    order = np.lexsort((bounds[1][leaves[moved]], bounds[0][leaves[moved]], leaf_parent[moved]))
    leaves = leaves.copy()
    leaves[moved] = leaves[moved[order]]
    start = np.concatenate([[0], np.cumsum(counts)])
    place = moved - start[leaf_parent[moved]]
    groups = np.where(apart, -(-counts // most), 0)
    group_start = np.concatenate([[0], np.cumsum(groups)])
    own = leaf_parent[moved]
    within = place * groups[own] // counts[own]
    leaf_parent = leaf_parent.copy()
    leaf_parent[moved] = size + group_start[own] + within
    more = np.repeat(np.flatnonzero(apart), groups[apart])
    return leaves, leaf_parent, np.concatenate([parent, more])


def _grouped_inner(parent: Ints, most: int, reach: Floats) -> Ints:
    """Put inner children below nodes of their own, again and again, where there are too many.

    The one whose leaves reach furthest down stays: long circles are then for it, and for one node of all others.
    """
    kept = np.zeros(parent.size, dtype=bool)
    while True:
        size = parent.size
        counts = np.bincount(parent[parent >= 0], minlength=size)
        if counts.max(initial=0) <= most:
            return parent
        many = counts > most
        some = np.flatnonzero((parent >= 0) & many[parent])
        some = some[np.lexsort((reach[some], parent[some]))]
        own = parent[some]
        place = np.arange(some.size) - np.searchsorted(own, own)
        groups = np.where(many, np.where(kept, -(-counts // most), 1), 0)
        group_start = np.concatenate([[0], np.cumsum(groups)])
        parent = np.concatenate([parent, np.repeat(np.flatnonzero(many), groups[many])])
        moved = kept[own] | (place > 0)
        parent[some[moved]] = size + (group_start[own] + place * groups[own] // counts[own])[moved]
        reach = np.concatenate([reach, np.full(parent.size - size, np.inf)])
        kept = np.concatenate([kept, np.ones(parent.size - size, dtype=bool)])


def _sorted(
    parent: Ints,
    leaf_parent: Ints,
    output: Ints,
    known: tuple[Ints, Ints, Ints],
    fixed: Bools,
    leaves: Ints,
    alone: Ints,
) -> Outline:
    """Number inner nodes breadth-first."""
    size = parent.size
    rank = np.full(size, -1, dtype=np.int64)
    level, levels, done = np.flatnonzero(parent < 0), [0], 0
    by_parent = np.argsort(parent, kind="stable")
    start = np.searchsorted(parent[by_parent], np.arange(size + 1))
    order = []
    while level.size:
        order.append(level)
        rank[level] = done + np.arange(level.size)
        done += level.size
        levels.append(done)
        counts = start[level + 1] - start[level]
        places = np.repeat(start[level] - np.cumsum(counts) + counts, counts) + np.arange(int(counts.sum()))
        level = by_parent[places]
    nodes = np.concatenate(order) if order else np.zeros(0, dtype=np.int64)
    above = parent[nodes]
    above = np.where(above >= 0, rank[above], -1)
    inner_counts = np.bincount(above + 1, minlength=size + 1)
    ranked = rank[leaf_parent]
    by_rank = slice(None) if (np.diff(ranked) >= 0).all() else np.argsort(ranked, kind="stable")
    leaves, ranked = leaves[by_rank], ranked[by_rank]
    law, low, high = known
    real = output[nodes] >= 0

    def of(values: Ints, other: int) -> Ints:
        return np.where(real, values[output[nodes]], other)

    return Outline(
        output[nodes],
        above,
        of(law, -1),
        of(low, -LARGEST),
        of(high, LARGEST),
        fixed[nodes].astype(bool),
        np.cumsum(inner_counts),
        np.searchsorted(ranked, np.arange(size + 1)),
        np.array(levels, dtype=np.int64),
        leaves,
        law[leaves],
        low[leaves],
        high[leaves],
        alone,
    )
