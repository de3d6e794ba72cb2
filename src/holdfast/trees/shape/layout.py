"""A forest's outputs sorted for passes over levels: inner outputs breadth-first, leaves grouped by their parents."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from holdfast.arrays import Ints
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


def _split(order: Ints, counts: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Tell inner outputs and leaves apart; siblings stand together in `order`, in the order of their parents."""
    is_inner = counts[order + 1] > 0
    inner = order[is_inner]
    ends = counts[0] + np.concatenate([[0], np.cumsum(counts[inner + 1])])
    inner_start = np.concatenate([[0], np.cumsum(is_inner)])[ends]
    return inner, order[~is_inner], inner_start, ends - inner_start
