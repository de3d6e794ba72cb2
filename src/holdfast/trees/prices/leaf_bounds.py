"""A hierarchy whose leaves have bounds, seen from the price of those bounds: alike leaves, and how many lie below."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arrays import Bools, Floats, Ints, Owner, kept
from holdfast.domains.breadth_first import breadth_first, families, levels

#: Entries of the largest table that is made of leaf counts below outputs, or of candidates and their ancestors.
MOST_ENTRIES = 1 << 23


@dataclass(frozen=True, eq=False)
class LeafBounds(Owner):
    """Outputs in trees whose leaves have bounds: all that the price depends on besides the scales.

    `which` tells which law each output has; `width` is upper minus lower bound of a leaf, infinite where one of them is
    missing or so far away that it does not count; `low` and `high` tell which outputs have a lower and an upper bound;
    `steps` is by how much one record changes a leaf at most (1 for counts).
    """

    parents: Ints
    exact: Bools
    which: npt.NDArray[np.int32]
    width: Floats
    low: Bools
    high: Bools
    steps: Floats

    @cached_property
    def _passed(self) -> tuple[Ints, Ints, Ints, Ints, int]:
        return breadth_first(self.parents)

    @property
    def order(self) -> Ints:
        """Outputs, parents before children, siblings together."""
        return self._passed[2]

    def with_width(self, width: Floats) -> LeafBounds:
        """The same outputs with other widths, kept with what is computed from them."""
        return self if np.array_equal(width, self.width) else self._of_width(width.tobytes())

    @kept
    def _of_width(self, width: bytes) -> LeafBounds:
        return replace(self, width=np.frombuffer(width).copy())

    @cached_property
    def levels(self) -> list[Ints]:
        """The outputs of each depth, roots first, siblings together."""
        return levels(self._passed[0], self.order)

    @cached_property
    def is_leaf(self) -> Bools:
        return np.asarray(np.diff(self._passed[0]) == 0)

    @property
    def depth(self) -> Ints:
        """0 at a root."""
        return self._passed[3]

    @cached_property
    def top(self) -> Ints:
        """The lowest exact output at or above each output; −1 where there is none."""
        result = np.full(self.parents.size, -1, dtype=np.int64)
        for level in self.levels:
            above = self.parents[level]
            result[level] = np.where(self.exact[level], level, np.where(above < 0, -1, result[above]))
        return result

    @cached_property
    def changeable(self) -> Bools:
        """Leaves that records can change while the exact outputs stay as they are."""
        return self.is_leaf & ~self.exact & (self.width >= np.minimum(self.steps, 1)) & (self.steps > 0)

    @cached_property
    def alone(self) -> Bools:
        """Leaves that one record can change alone: no output on their path is exact."""
        return self.changeable & (self.top < 0)

    def summed(self, values: Floats) -> Floats:
        """Each output's sum over the leaves below it, from values that are 0 at inner outputs."""
        sums = values.copy()
        for level in reversed(self.levels[1:]):
            above, first = families(self.parents, level)
            sums[above] += np.add.reduceat(sums[level], first)
        return sums

    @cached_property
    def leaf_class(self) -> Ints:
        """Leaves with the same laws on their path, bounds and steps share a number; −1 at inner outputs."""
        laws = int(self.which.max()) + 1
        path = np.zeros(self.parents.size, np.int64)
        found = 0
        for nodes in self.levels:
            above = np.where(self.parents[nodes] < 0, 0, path[self.parents[nodes]])
            numbers = numbered(above * laws + self.which[nodes])
            path[nodes] = found + numbers
            found += int(numbers.max()) + 1
        result = np.full(self.parents.size, -1, np.int64)
        leaves = np.flatnonzero(self.is_leaf)
        kinds = path[leaves] * 4 + 2 * self.low[leaves] + self.high[leaves]
        for values in (self.width, self.steps):
            numbers = numbered(values[leaves])
            kinds = numbered(kinds * (int(numbers.max()) + 1) + numbers)
        result[leaves] = kinds
        return result

    @cached_property
    def examples(self) -> Ints:
        leaves = np.flatnonzero(self.is_leaf)
        return leaves[np.unique(self.leaf_class[leaves], return_index=True)[1]]

    @cached_property
    def counted(self) -> tuple[Ints, npt.NDArray[np.int32]] | None:
        """The row of each inner output in a table of distinct counts of the leaves below it, by class; and the table.

        A leaf counts below those outputs only that share its `top`. None where the table would be too large.
        """
        inner = np.cumsum(~self.is_leaf) - 1
        rows, classes = int(inner[-1]) + 1, self.examples.size
        if rows * classes > MOST_ENTRIES:
            return None
        together = (self.parents >= 0) & (self.top[self.parents] == self.top)
        leaves = np.flatnonzero(together & self.is_leaf)
        cells = inner[self.parents[leaves]] * classes + self.leaf_class[leaves]
        counts = np.bincount(cells, minlength=rows * classes).astype(np.int32).reshape(rows, classes)
        for level in reversed(self.levels[1:]):
            some = level[together[level] & ~self.is_leaf[level]]
            above, first = families(self.parents, some)
            if some.size:
                counts[inner[above]] += np.add.reduceat(counts[inner[some]], first)
        first, member = alike(counts)
        return np.where(self.is_leaf, -1, member[np.maximum(inner, 0)] if rows else -1), counts[first]

    def classes_below(self, output: int) -> tuple[Ints, Ints]:
        """The classes of the leaves below an inner output that share its `top`, and how many there are of each."""
        if self.counted is not None:
            counts = self.counted[1][self.counted[0][output]]
            present = np.flatnonzero(counts)
            return present, counts[present].astype(np.int64)
        start, children = self._passed[0], self._passed[1]
        nodes, found = np.array([output]), []
        while nodes.size:
            leaves = self.is_leaf[nodes]
            found.append(self.leaf_class[nodes[leaves]])
            nodes = nodes[~leaves]
            sizes = start[nodes + 1] - start[nodes]
            first = np.repeat(start[nodes] - np.cumsum(sizes) + sizes, sizes)
            nodes = children[first + np.arange(first.size)]
            nodes = nodes[self.top[nodes] == self.top[output]]
        present, counts = np.unique(np.concatenate(found), return_counts=True)
        return present, counts.astype(np.int64)


def numbered(values: npt.NDArray[Any]) -> Ints:
    """Number values 0, 1, … so that equal ones have equal numbers."""
    if values.size == 0 or bool((values == values[0]).all()):
        return np.zeros(values.size, np.int64)
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def alike(rows: npt.NDArray[Any]) -> tuple[Ints, Ints]:
    """Return the place of one row of each kind, and each row's kind."""
    wide = np.ascontiguousarray(rows)
    if wide.shape[1] == 1:
        keys: npt.NDArray[Any] = wide[:, 0]
    else:
        keys = wide.view(np.dtype((np.void, wide.dtype.itemsize * wide.shape[1])))[:, 0]
    _, first, member = np.unique(keys, return_index=True, return_inverse=True)
    return first.astype(np.int64), member.astype(np.int64)
