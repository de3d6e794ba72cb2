"""Counts on a hierarchy: one record adds 1 to its leaf and to every ancestor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csc_array, csr_array

from holdfast.arguments import Refused
from holdfast.arrays import Array, Bools, Ints
from holdfast.domains import Cube, Hierarchy
from holdfast.domains.hierarchy import sums_of_children
from holdfast.queries.columns import Columns
from holdfast.queries.exact_weights import Bound, Weights
from holdfast.queries.kinds import Kind, maximal
from holdfast.queries.linear_query import Query
from holdfast.queries.margin_counts import margins
from holdfast.queries.neighbours import Neighbours

Numbers = Array


def path_sums(tree: Hierarchy, by: int, weight: Numbers) -> Numbers:
    """Return for each output (node·by + category) the sum of the weights from its root down to it."""
    sums = weight.reshape(tree.n, by).copy()
    for d in range(1, len(tree.levels)):
        nodes = tree.order[tree.level_start[d] : tree.level_start[d + 1]]
        sums[nodes] += sums[tree.parents[nodes]]
    return sums.reshape(-1)


def meeting_paths(
    tree: Hierarchy, by: int, weight: Numbers, classes: Ints | None
) -> Iterator[tuple[int, Numbers, Numbers]]:
    """Yield (depth of meeting, heaviest, second heaviest) wherever two cells of one class meet.

    Paths are measured from below the meeting node down to the leaf; depth −1 stands for cells in different
    trees or categories, whose paths do not meet. classes: one per cell (leaf-major), −1 for cells left out;
    None puts all cells in one class.
    """
    place = np.empty(tree.n, np.int64)  # breadth-first position: siblings stand together
    place[tree.order] = np.arange(tree.n)
    leaf_output = (tree.leaves[:, None] * by + np.arange(by)).ravel()
    label = np.zeros(leaf_output.size, np.int64) if classes is None else classes
    most = int(label.max(initial=-1)) + 1
    cells = np.flatnonzero(label >= 0)
    cells = cells[np.argsort(tree.depth[leaf_output[cells] // by], kind="stable")]
    depth = tree.depth[leaf_output[cells] // by]
    ends = np.searchsorted(depth, np.arange(len(tree.levels) + 1))
    output, owner, value = leaf_output[:0], label[:0], weight[:0]
    for d in range(len(tree.levels) - 1, -1, -1):
        new = cells[ends[d] : ends[d + 1]]
        output = np.concatenate([output, leaf_output[new]])
        owner = np.concatenate([owner, label[new]])
        value = np.concatenate([value, weight[leaf_output[new]]])
        if output.size == 0:
            continue
        if d == 0:
            key = owner
        else:
            above = tree.parents[output // by]
            key = (place[above] * by + output % by) * most + owner
        order = np.argsort(key, kind="stable")
        key, value, owner, output = key[order], value[order], owner[order], output[order]
        starts = np.flatnonzero(np.diff(key, prepend=-1))
        first, second, paired = two_largest(value, starts)
        if paired.any():
            yield d - 1, first[paired], second[paired]
        if d > 0:
            kept = output[starts]
            output = tree.parents[kept // by] * by + kept % by
            owner, value = owner[starts], first + weight[output]


def two_largest(value: Numbers, starts: Ints) -> tuple[Numbers, Numbers, Bools]:
    """Return for each run of values its largest, its second largest, and whether it has two."""
    sizes = np.diff(np.append(starts, value.size))
    first = np.maximum.reduceat(value, starts)
    is_first = np.asarray(value == np.repeat(first, sizes), dtype=bool)
    places = np.where(is_first, np.arange(value.size), value.size)
    rest = value.copy()
    rest[np.minimum.reduceat(places, starts)] = -1  # weights are ≥ 0, so −1 stands for "none"
    return first, np.maximum.reduceat(rest, starts), sizes > 1


#: Entries of the largest matrix of columns that is built; closed forms on the tree need none of it.
MOST_COLUMN_ENTRIES = 2**29


@dataclass(frozen=True, eq=False, repr=False)
class TreeCounts(Query):
    """Counts of k categories at every node; outputs node-major (node·k + category), cells leaf-major."""

    hierarchy: Hierarchy
    by: int
    table: Cube | None = None  # whose cells the categories are

    @property
    def cells(self) -> int:
        return self.hierarchy.n_leaves * self.by

    @property
    def tree(self) -> Hierarchy:
        return self.hierarchy

    @property
    def domain(self) -> tuple[Hierarchy, Cube | None]:
        return self.hierarchy, self.table

    @property
    def levels(self) -> Mapping[str, int]:
        return {name: d for d, name in enumerate(self.hierarchy.levels)}

    @cached_property
    def level_of(self) -> Ints:
        return np.repeat(self.hierarchy.depth, self.by)

    @cached_property
    def labels(self) -> npt.NDArray[np.object_]:
        """The path of each output's node, with its category if there are several."""
        tree = self.hierarchy
        paths: list[str] = [""] * tree.n
        for v in tree.order.tolist():
            above = int(tree.parents[v])
            paths[v] = str(tree.names[v]) if above < 0 else f"{paths[above]} / {tree.names[v]}"
        if self.by > 1:
            cells: Iterable[Any] = range(self.by) if self.table is None else margins(self.table).labels
            paths = [f"{path} [{cell}]" for path in paths for cell in cells]
        return np.array(paths, dtype=object)

    @cached_property
    def columns(self) -> Columns:
        """Column (leaf, category): 1 on the leaf's path in that category."""
        tree, by = self.hierarchy, self.by
        length = np.repeat(tree.depth[tree.leaves] + 1, by)
        start = np.concatenate([[0], np.cumsum(length)])
        if start[-1] > MOST_COLUMN_ENTRIES:
            raise Refused(f"columns must have at most 2**29 entries, but the paths of this tree have {start[-1]}")
        index = np.empty(start[-1], np.int64)
        node = np.repeat(tree.leaves, by)
        category = np.tile(np.arange(by), tree.n_leaves)
        cell = np.arange(node.size)
        for step in range(len(tree.levels)):  # from the leaf upwards; paths end at different steps
            index[start[cell + 1] - 1 - step] = node * by + category
            node = tree.parents[node]
            on = node >= 0
            node, category, cell = node[on], category[on], cell[on]
        return csc_array((np.ones(index.size, np.int64), index, start), shape=(self.n, self.cells))

    def consistency(self) -> csr_array[Any]:
        """Return one row per inner node and category: the node minus the sum of its children is 0."""
        return sums_of_children(self.hierarchy.parents, self.by)

    def _answer(self, cells: Ints) -> Ints:
        return self.hierarchy.sum_up(cells.reshape(-1, self.by)).ravel()

    def _cell_shapes(self) -> list[tuple[int, ...]]:
        shapes: list[tuple[int, ...]] = [(self.cells,)]
        leaves = self.hierarchy.n_leaves
        return [*shapes, (leaves, self.by), *([] if self.table is None else [(leaves, *self.table.shape)])]

    def single(self, weights: Weights, p: int, mask: Bools | None) -> Bound:
        """Return the heaviest path to an allowed cell."""
        del p  # a path's entries are 1
        weight, denominator = weights.per_output(2 * len(self.hierarchy.levels))
        sums = path_sums(self.hierarchy, self.by, weight).reshape(-1, self.by)[self.hierarchy.leaves].ravel()
        chosen = sums if mask is None else sums[mask]
        return Bound(Fraction(int(chosen.max()) if chosen.size else 0, denominator), True)

    def pair(self, weights: Weights, p: int, classes: Ints | None) -> Bound:
        """Return the heaviest pair of paths of one class, without their common part."""
        del p
        weight, denominator = weights.per_output(2 * len(self.hierarchy.levels))
        best = 0
        for _, first, second in meeting_paths(self.hierarchy, self.by, weight, classes):
            best = max(best, int((first + second).max()))
        return Bound(Fraction(best, denominator), True)

    def single_kinds(self, which: Ints | None, mask: Bools | None) -> list[Kind]:
        """Return the maximal kinds of paths: by depth alone where the groups follow the levels."""
        group = self._group_of_level(which)
        if group is None:
            return super().single_kinds(which, mask)
        depth = np.repeat(self.hierarchy.depth[self.hierarchy.leaves], self.by)
        deepest = int((depth if mask is None else depth[mask]).max(initial=-1))
        return maximal([_levels_kind(group, [range(deepest + 1)])])

    def pair_kinds(self, which: Ints | None, classes: Ints | None) -> list[Kind]:
        """Return the maximal kinds of pairs of paths, by depths alone where the groups follow the levels."""
        group = self._group_of_level(which)
        if group is None:
            return super().pair_kinds(which, classes)
        steps = np.ones(self.n, np.int64)
        found: set[tuple[int, int, int]] = set()
        for depth, first, second in meeting_paths(self.hierarchy, self.by, steps, classes):
            code = np.unique(first * (len(group) + 1) + second)  # no path is longer than there are levels
            found |= {(depth + 1, *divmod(int(both), len(group) + 1)) for both in code}
        return maximal(_levels_kind(group, [range(d, d + a), range(d, d + b)]) for d, a, b in found)

    def _group_of_level(self, which: Ints | None) -> Ints | None:
        """Return each level's group, or None where the groups do not follow the levels."""
        count = len(self.hierarchy.levels)
        if which is None:
            return np.zeros(count, np.int64)
        group = which[self.hierarchy.order[self.hierarchy.level_start[:-1]] * self.by]
        return group if bool((group[self.level_of] == which).all()) else None

    def _widest(self, relation: Neighbours) -> Fraction:
        return Fraction(1 if relation.adds or self.cells > 1 else 0)


def _levels_kind(group: Ints, parts: Iterable[range]) -> frozenset[tuple[tuple[int, int], int]]:
    times: Kind = Counter((1, int(group[d])) for part in parts for d in part)
    return frozenset(times.items())
