"""Margins of a cube, stacked: one record adds 1 to one cell of every margin."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csc_array, csr_array

from holdfast.arguments import Refused
from holdfast.arrays import Bools, Ints
from holdfast.domains import Cube
from holdfast.queries.columns import Columns
from holdfast.queries.exact_weights import Bound, Weights
from holdfast.queries.identity import MOST_ASKED, CellCounts
from holdfast.queries.kinds import Kind, maximal
from holdfast.queries.linear_query import Query
from holdfast.queries.margin_equalities import margin_equalities
from holdfast.queries.neighbours import Neighbours

#: How many cells are tried as one end of a pair that differs on every axis, when only some cells are allowed.
TRIED = 64


@dataclass(frozen=True, eq=False, repr=False)
class MarginCounts(Query):
    """The listed margins of a cube, one after the other, each in C order."""

    table: Cube
    keep: tuple[tuple[int, ...], ...]

    @property
    def cells(self) -> int:
        return self.table.cells

    @property
    def cube(self) -> Cube:
        return self.table

    @property
    def levels(self) -> Mapping[str, int]:
        return {self.table.margin_name(axes): m for m, axes in enumerate(self.keep)}

    def level_number(self, name: str, key: object) -> int:
        if isinstance(key, tuple):
            key = self.table.margin_name(key)
        return super().level_number(name, key)

    @cached_property
    def sizes(self) -> Ints:
        return np.array([math.prod(self.table.margin_shape(axes)) for axes in self.keep], dtype=np.int64)

    @cached_property
    def offsets(self) -> Ints:
        return np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(np.int64)

    @cached_property
    def level_of(self) -> Ints:
        return np.repeat(np.arange(len(self.keep)), self.sizes)

    @cached_property
    def labels(self) -> npt.NDArray[np.object_]:
        """The kept coordinates of each output."""
        texts: list[str] = []
        for axes in self.keep:
            names = [self.table.all_names[a] for a in axes]
            texts.extend(
                ", ".join(f"{a}={c}" for a, c in zip(names, point, strict=True)) or "total"
                for point in np.ndindex(*self.table.margin_shape(axes))
            )
        return np.array(texts, dtype=object)

    @cached_property
    def columns(self) -> Columns:
        """Column of a cell: 1 in its place of every margin."""
        count = len(self.keep)
        if self.cells * count > MOST_ASKED:
            raise Refused(f"columns must have at most 2**31 entries, but {count} margins of this cube have more")
        index = np.stack([self.table.margin_index(a) + o for a, o in zip(self.keep, self.offsets, strict=True)], axis=1)
        start = np.arange(self.cells + 1) * count
        return csc_array((np.ones(index.size, np.int64), index.ravel(), start), shape=(self.n, self.cells))

    def consistency(self) -> csr_array[Any]:
        """Return rows that make all margins agree on what they share; none follows from the others."""
        return margin_equalities(self.table, self.keep)

    def _answer(self, cells: Ints) -> Ints:
        if float(cells.astype(np.float64).sum()) >= 2**61:
            raise Refused("cells must have a total below 2**61")
        block = cells.reshape(self.table.shape)
        return np.concatenate([self.table.summed(block, axes) for axes in self.keep])

    def _cell_shapes(self) -> list[tuple[int, ...]]:
        shapes: list[tuple[int, ...]] = [(self.cells,)]
        return shapes if self.table.shape == (self.cells,) else [*shapes, self.table.shape]

    def single(self, weights: Weights, p: int, mask: Bools | None) -> Bound:
        """Return the largest sum of a cell's weights over the margins."""
        group = self._group_of_margin(weights.which)
        if group is None:
            return super().single(weights, p, mask)
        if mask is not None and not mask.any():
            return Bound(Fraction(0), True)
        return Bound(sum((weights.values[g] for g in group), Fraction(0)), True)

    def pair(self, weights: Weights, p: int, classes: Ints | None) -> Bound:
        """Return twice the weights of the margins that two cells can change, where weights follow margins."""
        group = self._group_of_margin(weights.which)
        if group is None:
            return super().pair(weights, p, classes)
        moving = [g for g, axes in zip(group, self.keep, strict=True) if self._moves(axes)]
        most = 2 * sum((weights.values[g] for g in moving), Fraction(0))
        if classes is None or self._some_pair_differs(classes):
            return Bound(most, True)
        listed = super().pair(weights, p, classes)
        return listed if listed.exact or listed.value < most else Bound(most, False)

    def single_kinds(self, which: Ints | None, mask: Bools | None) -> list[Kind]:
        """Return the one kind of a cell, where the groups follow the margins."""
        group = self._group_of_margin(which)
        if group is None:
            return super().single_kinds(which, mask)
        if mask is not None and not mask.any():
            return []
        return maximal([frozenset(Counter((1, g) for g in group).items())])

    def pair_kinds(self, which: Ints | None, classes: Ints | None) -> list[Kind]:
        """Return the kind of two cells that differ on every axis, where the groups follow the margins."""
        group = self._group_of_margin(which)
        if group is None or (classes is not None and not self._some_pair_differs(classes)):
            return super().pair_kinds(which, classes)
        moving = [g for g, axes in zip(group, self.keep, strict=True) if self._moves(axes)]
        return maximal([frozenset(Counter((1, g) for g in [*moving, *moving]).items())])

    def _moves(self, axes: tuple[int, ...]) -> bool:
        return any(self.table.sizes[a] > 1 for a in axes)

    def _some_pair_differs(self, classes: Ints) -> bool:
        """Return whether a pair that differs on every axis of two or more values was found in a class.

        Of recoded axes the coarsest one counts: what differs there differs on finer ones.
        """
        cells = np.flatnonzero(classes >= 0)
        points = self.table.coordinates(cells)[:, [s > 1 for s in self.table.shape]]
        for place, axis in enumerate(a for a, size in enumerate(self.table.shape) if size > 1):
            points[:, place] = self.table.groups(self.table.chain(axis)[0])[points[:, place]]
        return (
            any(
                bool(((points != points[i]).all(axis=1) & (classes[cells] == classes[cells[i]])).any())
                for i in range(min(TRIED, cells.size))
            )
            and points.shape[1] > 0
        )

    def _group_of_margin(self, which: Ints | None) -> list[int] | None:
        if which is None:
            return [0] * len(self.keep)
        group = which[self.offsets]
        return group.tolist() if bool((group[self.level_of] == which).all()) else None

    def _widest(self, relation: Neighbours) -> Fraction:
        return Fraction(1 if relation.adds or any(map(self._moves, self.keep)) else 0)


def margins(shape: int | Sequence[int] | Cube, keep: Iterable[str | Iterable[int | str]] | None = None) -> Query:
    """Ask a cube's cells, or the listed margins, stacked in order.

    Args:
        shape: the cube's, or a `Cube` with names.
        keep: None: all cells; or margins such as [(0, 1), (2,)]. A margin keeps its axes, given by number or name in
            table order, and sums over the others; () is the total.

    Example:
        >>> import holdfast as hf
        >>> hf.margins((2, 2), keep=[(0,), ()]).answer([1, 2, 3, 4]).tolist()
        [3, 7, 10]
    """
    table = shape if isinstance(shape, Cube) else Cube(shape)
    if keep is None:
        if table.cells > MOST_ASKED:
            raise Refused(f"shape must have at most 2**31 cells if every cell is asked, found {table.cells}")
        return CellCounts(table.cells, table)
    chosen = table.margins(keep)
    size = sum(math.prod(table.margin_shape(axes)) for axes in chosen)
    if size > MOST_ASKED:
        raise Refused(f"keep must ask at most 2**31 outputs, found {size}")
    return MarginCounts(size, table, chosen)
