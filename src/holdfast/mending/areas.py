"""Large crossed tables as areas with margins: one hierarchy, and other columns of one total each.

Such a table is what `counts(tree, by=shape, keep=all margins)` answers, in another order, and `onto` has a way for it
that takes millions of figures.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from holdfast.arrays import Ints
from holdfast.domains import Hierarchy
from holdfast.mending.figures import Figures
from holdfast.mending.reading.classification import Classification
from holdfast.queries import counts

#: Figures up to which the nearest crossed table is found by paths on a network, where the sums are one.
MOST_PATHS = 30_000


def as_areas(figures: Figures) -> tuple[Any, Ints] | None:
    """The query that a table answers, and for each of its outputs the figure it is; None where it is no such table."""
    crossed = [column for column, each in enumerate(figures.classifications) if each.sums]
    if not figures.complete or len(crossed) < 2 or len(crossed) < len(figures.names):
        return None
    trees = figures.classifications
    if any(len(each.parents) != 1 for each in trees) or figures.n != int(np.prod([float(each.n) for each in trees])):
        return None
    tree = max(crossed, key=lambda column: trees[column].n)
    others = [column for column in crossed if column != tree]
    if any(_root(trees[column]) is None for column in others):
        return None
    shape = tuple(trees[column].n - 1 for column in others)
    keep = [axes for size in range(len(shape) + 1) for axes in combinations(range(len(shape)), size)]
    query = counts(Hierarchy.from_parents(trees[tree].parents[0]), by=shape, keep=keep)
    if query.n != figures.n:
        return None
    return query, _order(figures, tree, others, keep)


def _root(each: Classification) -> int | None:
    """The label that all others add to; None where there are several levels or totals."""
    (above,) = each.parents
    roots = np.flatnonzero(above < 0)
    return int(roots[0]) if roots.size == 1 and (np.delete(above, roots[0]) == roots[0]).all() else None


def _order(figures: Figures, tree: int, others: list[int], keep: list[tuple[int, ...]]) -> Ints:
    """For each output of the query the figure it is: nodes in order, in each its margins, in C order inside."""
    axes = []
    for column in others:
        label, root = figures.places[:, column], _root(figures.classifications[column])
        assert root is not None
        axes.append(np.where(label == root, -1, label - (label > root)))
    sizes = [figures.classifications[column].n - 1 for column in others]
    each_node = int(np.prod([size + 1 for size in sizes]))
    output = figures.places[:, tree] * each_node
    start = 0
    for margin in keep:
        inside = np.ones(figures.n, dtype=bool)
        at = np.zeros(figures.n, dtype=np.int64)
        for axis, coordinate in enumerate(axes):
            inside &= (coordinate >= 0) == (axis in margin)
        for axis in margin:
            at = at * sizes[axis] + axes[axis]
        output[inside] += start + at[inside]
        start += int(np.prod([sizes[axis] for axis in margin]))
    order = np.empty(figures.n, dtype=np.int64)
    order[output] = np.arange(figures.n)
    return order
