"""A forest's outputs sorted for passes over levels: inner outputs breadth-first, leaves grouped by their parents."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from holdfast.domains.breadth_first import breadth_first

Ints = npt.NDArray[np.int64]


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
        start, _, order, _, _ = breadth_first(parents)
        is_leaf = start[1:] == start[:-1]
        leaf_first = is_leaf[order]
        inner, leaves = order[~leaf_first], order[leaf_first]
        # siblings stand together in a breadth-first order, in the order of their parents
        starts = []
        for outputs in (inner, leaves):
            above = parents[outputs]
            counts = np.bincount(above + 1, minlength=parents.size + 1)
            starts.append(np.cumsum(np.concatenate([counts[:1], counts[1:][inner]])))
        return cls(inner, leaves, *starts)
