"""A forest's outputs sorted for passes over levels: inner outputs breadth-first, leaves grouped by their parents."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from holdfast.arrays import Ints, compiled
from holdfast.domains.breadth_first import breadth_first


@dataclass(frozen=True, eq=False)
class Layout:
    """Inner outputs by number k = 0, 1, …, parents before children, and leaves by number j.

    `inner[k]` and `leaves[j]` are the outputs themselves. The children of inner output k are the leaves
    leaf_start[k] … leaf_start[k+1]−1 and the inner outputs inner_start[k] … inner_start[k+1]−1. The leaves before
    leaf_start[0] and the inner outputs before inner_start[0] are roots.
    """

    inner: Ints
    leaves: Ints
    inner_start: Ints
    leaf_start: Ints

    @classmethod
    def of(cls, parents: Ints) -> Layout:
        """Sort the outputs of a forest, given each output's parent (−1 at roots)."""
        return cls(*_split(*sorted_outputs(parents)))


def sorted_outputs(parents: Ints) -> tuple[Ints, Ints]:
    """List a forest's outputs breadth-first, and count the roots and then each output's children."""
    counts = np.bincount(parents + 1, minlength=parents.size + 1)
    if (parents[1:] >= parents[:-1]).all():  # numbered breadth-first, as most hierarchies are
        return np.arange(parents.size), counts
    return breadth_first(parents)[2], counts


@compiled(beyond=20_000)
def _split(order: Ints, counts: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Tell inner outputs and leaves apart; siblings stand together in `order`, in the order of their parents."""
    size = 0
    for k in range(1, counts.size):
        size += counts[k] > 0
    inner, leaves = np.empty(size, np.int64), np.empty(order.size - size, np.int64)
    inner_start, leaf_start = np.empty(size + 1, np.int64), np.empty(size + 1, np.int64)
    i, j, last = 0, 0, counts[0]
    for k in range(size + 1):
        while i + j < last:
            v = order[i + j]
            if counts[v + 1] > 0:
                inner[i] = v
                i += 1
            else:
                leaves[j] = v
                j += 1
        inner_start[k], leaf_start[k] = i, j
        if k < size:
            last += counts[inner[k] + 1]
    return inner, leaves, inner_start, leaf_start
