"""How much one household changes several tables at once: the rows that it has in each, tied by what every one obeys.

A household has at most so many rows of each table, all in one leaf, and its rows obey the ties: weights of the rows
that add up to 0. Rows whose weights are alike are of one *class*; how many rows of each class a household has is all
that the ties ask. Given these numbers, the largest squared change puts rows of one class into one cell (the sum of
squares is convex), and rows of two classes agree on a margin where any two of their cells do: a bound, attained where
all their cells do or none (docs/theory/linked.md, Proposition 1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import comb

import numpy as np

from holdfast.arrays import Ints

#: Lists of rows by class up to which all are looked at; beyond, ties are left out, which only raises the bound.
MOST_LISTED = 200_000
Axes = tuple[int, ...]
#: What a table's rows add to the ties, with the largest change of that table; and whether it is attained.
Reach = dict[tuple[int, ...], Fraction]


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows that one household can have in one table: at most `most`, with these weights, (ties, cells)."""

    shape: tuple[int, ...]
    weights: Ints
    most: int

    @cached_property
    def axes(self) -> Axes:
        table = self.weights.reshape(-1, *self.shape)
        return tuple(a for a in range(len(self.shape)) if np.ptp(table, axis=1 + a).any())

    @cached_property
    def classes(self) -> tuple[Ints, list[Ints]]:
        """The distinct weights, (classes, ties), and the cells of each on the axes that matter, (cells, axes)."""
        if not len(self.weights):
            return np.zeros((1, 0), np.int64), [np.zeros((1, 0), np.int64)]
        kept = tuple(slice(None) if a in self.axes else slice(0, 1) for a in range(len(self.shape)))
        table = self.weights.reshape(-1, *self.shape)[(slice(None), *kept)].reshape(len(self.weights), -1)
        points = np.array(list(np.ndindex(*(self.shape[a] for a in self.axes))), np.int64).reshape(table.shape[1], -1)
        found, which = np.unique(table.T, axis=0, return_inverse=True)
        return found, [points[which.ravel() == c] for c in range(len(found))]

    @cached_property
    def lists(self) -> Ints | None:
        """All numbers of rows of each class, (lists, classes); None where there are too many."""
        classes = len(self.classes[0])
        if comb(classes + self.most, classes) > MOST_LISTED:
            return None
        return np.array(list(_at_most(self.most, classes)), np.int64)

    def placed(self, numbers: Ints) -> Ints:
        """Return cells that hold so many rows of each class, all of a class in one."""
        cells = np.zeros(self.shape, np.int64)
        for many, points in zip(numbers.tolist(), self.classes[1], strict=True):
            point = dict(zip(self.axes, points[0].tolist(), strict=True))
            cells[tuple(point.get(a, 0) for a in range(len(self.shape)))] += many
        return cells.ravel()

    def agree(self, axes: Axes) -> tuple[Ints, bool]:
        """Which classes have cells that agree on some axes, and whether that is so for all their cells or for none."""
        places = [self.axes.index(a) for a in axes if a in self.axes]
        points = [np.unique(each[:, places], axis=0) for each in self.classes[1]]
        some = np.eye(len(points), dtype=np.int64)
        sure = True
        for i, j in product(range(len(points)), repeat=2):
            if i != j:
                both = {*map(tuple, points[i].tolist())} & {*map(tuple, points[j].tolist())}
                some[i, j] = bool(both)
                sure &= not both or (len(points[i]) == 1 and len(points[j]) == 1)
        return some, sure

    def reach(self, weights: Mapping[Axes, Fraction], p: int) -> tuple[Reach, bool]:
        """Return for every sum of the ties the largest Σ weight·Σ|change|^p, weights by the axes of margins."""
        lists = self.lists
        assert lists is not None
        merged: dict[Axes, Fraction] = {}
        for axes, weight in weights.items():
            kept = tuple(a for a in axes if a in self.axes)
            merged[kept] = merged.get(kept, Fraction(0)) + weight
        sizes, exact = [], True
        for axes in merged:
            if p == 1:
                sizes.append(lists.sum(axis=1))
                continue
            some, sure = self.agree(axes)
            sizes.append(((lists @ some) * lists).sum(axis=1))
            exact &= sure
        sums = lists @ self.classes[0]
        distinct = np.unique(np.column_stack([sums, *sizes]), axis=0).tolist()
        best: Reach = {}
        for row in distinct:
            key, size = tuple(row[: sums.shape[1]]), row[sums.shape[1] :]
            value = sum((weight * int(many) for weight, many in zip(merged.values(), size, strict=True)), Fraction(0))
            best[key] = max(best.get(key, value), value)
        return best, exact


def largest(tables: tuple[Rows, ...], weights: tuple[Mapping[Axes, Fraction], ...], p: int) -> tuple[Fraction, bool]:
    """Return the largest Σ weight·Σ|change|^p over all households, and whether it is attained.

    weights: for each table, by the axes that a margin keeps.
    """
    if any(each.lists is None for each in tables):
        total = (sum(by.values(), Fraction(0)) * each.most**p for each, by in zip(tables, weights, strict=True))
        return sum(total, Fraction(0)), False
    together: Reach = {(0,) * len(tables[0].weights): Fraction(0)}
    exact = True
    for each, by in zip(tables, weights, strict=True):
        alone, sure = each.reach(by, p)
        exact &= sure
        joined: Reach = {}
        for (before, value), (more, also) in product(together.items(), alone.items()):
            key = tuple(a + b for a, b in zip(before, more, strict=True))
            joined[key] = max(joined.get(key, Fraction(0)), value + also)
        together = joined
    return together[(0,) * len(tables[0].weights)], exact


def least_rows(tables: Iterable[Rows], counted: Rows | None = None) -> dict[tuple[int, ...], int] | None:
    """Return every sum of the ties that rows of the tables have, with the least rows of one table that go with it.

    None where there are too many lists.
    """
    together: dict[tuple[int, ...], int] | None = None
    for each in tables:
        if each.lists is None:
            return None
        rows = each.lists.sum(axis=1) if each is counted else np.zeros(len(each.lists), np.int64)
        alone: dict[tuple[int, ...], int] = {}
        for total, many in zip(map(tuple, (each.lists @ each.classes[0]).tolist()), rows.tolist(), strict=True):
            alone[total] = min(alone.get(total, many), many)
        if together is None:
            together = alone
            continue
        joined: dict[tuple[int, ...], int] = {}
        for (before, many), (more, also) in product(together.items(), alone.items()):
            total = tuple(a + b for a, b in zip(before, more, strict=True))
            joined[total] = min(joined.get(total, many + also), many + also)
        together = joined
    return together


def largest_households(tables: tuple[Rows, ...], most: int) -> list[tuple[Ints, ...]]:
    """Return some of the households with most rows, each as the cells of every table, rows of a class in one cell."""
    if any(each.lists is None for each in tables):
        return []
    found: dict[tuple[int, ...], list[tuple[Ints, ...]]] = {(0,) * len(tables[0].weights): [()]}
    for each in tables:
        assert each.lists is not None
        order = np.argsort(-each.lists.sum(axis=1), kind="stable")
        sums = (each.lists @ each.classes[0])[order].tolist()
        joined: dict[tuple[int, ...], list[tuple[Ints, ...]]] = {}
        for (before, made), (row, more) in product(found.items(), zip(order.tolist(), sums, strict=True)):
            key = tuple(a + b for a, b in zip(before, more, strict=True))
            kept = joined.setdefault(key, [])
            kept += [(*rows, each.placed(each.lists[row])) for rows in made[: max(most - len(kept), 0)]]
        found = joined
    ranked = sorted(found[(0,) * len(tables[0].weights)], key=lambda rows: -sum(int(own.sum()) for own in rows))
    return [rows for rows in ranked if any(own.any() for own in rows)][:most]


def _at_most(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Yield all lists of so many whole numbers ≥ 0 that add up to at most the total."""
    if parts == 0:
        yield ()
        return
    for first in range(total + 1):
        for rest in _at_most(total - first, parts - 1):
            yield (first, *rest)
