"""Cells of many areas that add the same to exact figures, without writing out what every cell adds to every output.

Rows of exact figures that stay inside one group of outputs (one margin at one depth) see of a cell only its output in
that group. So what a cell adds to all rows is told by one label per group, the column of the rows at that output, and
two cells add the same exactly where all their labels are equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array

from holdfast.arrays import Bools, Ints
from holdfast.queries.co_changes.signatures import Signatures
from holdfast.queries.columns import Columns


@dataclass(frozen=True, eq=False)
class AreaSignatures(Signatures):
    """Signatures whose matrix is made for one cell of every class alone."""

    rows: Any = None
    query: Any = None

    def distinct(self) -> Columns:
        """Return one signature for each class of the allowed cells."""
        found, first = np.unique(self.classes, return_index=True)
        cells = first[found >= 0]
        outputs, owners = self.query.outputs_of(cells)
        ones = np.ones(outputs.size, np.int64)
        columns = csc_array((ones, (outputs, owners)), shape=(self.query.n, cells.size))
        result = csc_array(self.rows @ columns)
        result.eliminate_zeros()
        return result


def area_signatures(query: Any, rows: Any, mask: Bools | None) -> AreaSignatures | None:
    """Return the classes of cells that add the same to these rows; None where a row spans several groups."""
    given = csr_array(rows)
    group = query.level_of[given.indices]
    begin = given.indptr[:-1][np.diff(given.indptr) > 0]
    if (np.minimum.reduceat(group, begin) != np.maximum.reduceat(group, begin)).any() if begin.size else False:
        return None
    columns = csc_array(given)
    label, count = _labels(columns)
    tree, above = query.hierarchy, query.paths()
    combined = np.zeros((tree.n_leaves, query.table.cells), np.int64)
    bound = 1
    for g, (depth, axes) in enumerate(query.groups):
        outputs = query.outputs(g)
        mine = label[outputs]
        if not mine.any():
            continue
        place = np.full(tree.n, -1, np.int64)
        place[query.places[g][0]] = np.arange(len(outputs))
        at = np.where(above[depth] >= 0, place[above[depth]], -1)
        found = np.where((at >= 0)[:, None], mine[at], 0)[:, query.table.margin_index(axes)]
        if bound * (count + 1) >= 2**62:
            combined = _renumbered(combined)
            bound = int(combined.max()) + 1
        combined = combined * (count + 1) + found
        bound *= count + 1
    classes = _renumbered(combined).ravel()
    if mask is not None:
        classes[~mask] = -1
    return AreaSignatures(csc_array((given.shape[0], 0)), classes, given, query)


def _renumbered(values: Ints) -> Ints:
    """Number different values ≥ 0 from 0 on; 0, which no row sees, stays 0 and is nothing else's number."""
    return np.asarray(np.unique(np.append(values, 0), return_inverse=True)[1].ravel()[:-1].reshape(values.shape))


def _labels(columns: Any) -> tuple[Ints, int]:
    """Number the different columns of the rows at each output, 0 where no row sees it."""
    label = np.zeros(columns.shape[1], np.int64)
    numbers: dict[tuple[bytes, bytes], int] = {}
    for output in np.flatnonzero(np.diff(columns.indptr)).tolist():
        at = slice(columns.indptr[output], columns.indptr[output + 1])
        key = (columns.indices[at].tobytes(), columns.data[at].tobytes())
        label[output] = numbers.setdefault(key, len(numbers) + 1)
    return label, len(numbers)


@dataclass(frozen=True, eq=False)
class Spans:
    """Of every class of cells, which axes and which depths tell some of its cells apart."""

    query: Any
    classes: Ints

    @cached_property
    def _ordered(self) -> tuple[Ints, Ints]:
        """Allowed cells, those of a class together, and where each class begins."""
        order = np.argsort(self.classes, kind="stable")
        order = order[np.searchsorted(self.classes[order], 0) :]
        first = np.flatnonzero(np.diff(self.classes[order], prepend=-1))
        return order, first

    @cached_property
    def apart(self) -> tuple[Bools, Bools, Ints, Ints]:
        """Whether axes, (classes, axes), and depths, (classes, depths), differ; the deepest leaf; class numbers."""
        query, (order, first) = self.query, self._ordered
        leaf, cell = np.divmod(order, query.table.cells)
        numbers = self.classes[order[first]] if first.size else np.zeros(0, np.int64)

        def differs(values: Ints) -> Bools:
            return np.asarray(np.minimum.reduceat(values, first) != np.maximum.reduceat(values, first))

        if not first.size:
            none = np.zeros((0, 0), bool)
            return none, none, numbers, numbers
        points = query.table.coordinates(np.arange(query.table.cells))
        values = (query.table.groups(a)[points[:, query.table.own(a)]] for a in range(len(query.table.sizes)))
        axes = np.stack([differs(each[cell]) for each in values], axis=1)
        depths = np.stack([differs(above[leaf]) for above in query.paths()], axis=1)
        tree = query.hierarchy
        deepest = np.maximum.reduceat(tree.depth[tree.leaves][leaf], first)
        return axes, depths, deepest, numbers

    def split(self, depth: int, kept: tuple[int, ...]) -> Bools:
        """Tell for each class whether some of its cells count in different outputs of a group."""
        axes, depths, _, _ = self.apart
        return depths[:, depth] | axes[:, list(kept)].any(axis=1) if len(axes) else np.zeros(0, bool)

    def touched(self) -> Bools:
        """Tell which outputs a pair of cells of one class changes."""
        query, (order, first) = self.query, self._ordered
        result = np.zeros(query.n, bool)
        sizes = np.diff(np.append(first, order.size))
        known: dict[bytes, Bools] = {}
        for g, (depth, kept) in enumerate(query.groups):
            split = self.split(depth, kept)
            key = split.tobytes()
            if key not in known:
                cells = np.zeros(query.cells, np.int64)
                cells[order[np.repeat(split, sizes)]] = 1
                known = {key: query.totals(cells) > 0}  # one at a time: it is large
            outputs = query.outputs(g)
            result[outputs] = known[key][outputs]
        return result

    def patterns(self) -> list[dict[int, int]]:
        """How often at most a pair of cells of one class changes each group, for every pattern of classes."""
        axes, depths, deepest, _ = self.apart
        if not len(axes):
            return []
        kinds = np.unique(np.concatenate([axes, depths, deepest[:, None]], axis=1).astype(np.int64), axis=0)
        found = []
        for kind in kinds:
            moving, parted, most = kind[: axes.shape[1]], kind[axes.shape[1] : -1], int(kind[-1])
            times = {
                g: 2
                for g, (depth, kept) in enumerate(self.query.groups)
                if depth <= most and (parted[depth] or moving[list(kept)].any())
            }
            found.append(times)
        return found
