"""The two heaviest leaf paths that meet at each node: the diameter of a hierarchy, within classes of cells.

The difference of two cells (leaf a, category c) and (leaf b, category c') changes, when c = c', exactly the
nodes on the two paths below the lowest common ancestor; when c ≠ c', or the trees differ, both whole paths
(docs/theory/difference-sets.md, Proposition 3). A pass from the deepest level up keeps for each (output,
class) the heaviest path down to a cell of that class and joins the two heaviest where paths meet.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from holdfast.arrays import Array, Bools, Ints
from holdfast.domains import Hierarchy

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
