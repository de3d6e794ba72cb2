"""Records that must change together, by a bounded search among all multisets of a few records.

Let K be the least number of records of an allowed change that alters the answer. A change with a given row p → q that
alters the answer has at least K records, and with two more replacements (p → q and a way back) there always is one: so
each pair needs K, K + 1 or K + 2 replacements, and the least number of records of *any* allowed change with p → q that
alters the answer is the one that is asked for (docs/theory/what-can-change.md, Proposition 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb
from typing import Any

import flint
import numpy as np
from scipy.sparse import csc_array, hstack

from holdfast.arrays import Ints
from holdfast.queries.columns import Columns, equal_columns
from holdfast.queries.together.together import Column, Groups, Together, distinct_pairs, told

#: Multisets of records of one size that are listed at most; a larger list is not searched.
MOST_MULTISETS = 60_000
#: The most cells (with different answers) that are searched.
MOST_KINDS = 340


@dataclass(frozen=True, eq=False)
class Found:
    """How many records the row p → q needs: `needed[p, q]`, 0: never, −1: more than `beyond`, or never."""

    needed: Ints
    exact: dict[int, bool]
    beyond: int


def search(signature: Columns, answer: Columns, adds: bool, identity: bool) -> Found:
    """Search the changes among cells with these signatures and (different) answers, one column each."""
    count = answer.shape[1]
    needed = np.zeros((count, count), np.int64)
    off = ~np.eye(count, dtype=bool)
    if not alters(signature, answer, adds):
        return Found(needed, {}, 0)
    extra = 4 if adds else 2
    least, size, lists = 0, 0, _Multisets(signature, answer)
    while True:
        size += 1
        shapes = [(a, size - a) for a in range(size + 1)] if adds else [(size, size)]
        if any(lists.too_many(part) for shape in shapes for part in shape):
            size -= 1
            break
        for ins, outs in shapes:
            if lists.mark(needed, ins, outs, size) and not least:
                least = size
        if least and (size >= least + extra - 1 or (needed[off] > 0).all()):
            break
    left = off & (needed == 0)
    sure = dict.fromkeys(range(least + extra - 1, least + extra + 1), identity)
    if not adds:
        sure[least + 1] = True
        sure[least + 2] = identity or least == 1
    if not least:
        needed[left] = -1
        return Found(needed, {}, size)
    needed[left] = least + extra
    sure[least + extra] = sure.get(least + extra, True) and size >= least + extra - 1
    return Found(needed, sure, 0)


def alters(signature: Columns, answer: Columns, adds: bool) -> bool:
    """Whether some change of any number of records keeps the signatures and alters the answer, exactly.

    It does unless every output is a rational combination of what is kept: whole multiples of a rational change are
    changes too.
    """
    kept = signature.toarray().tolist()
    if not adds:
        kept.append([1] * answer.shape[1])
    both = kept + answer.toarray().tolist()
    if not kept:
        return bool(answer.nnz)
    return bool(flint.fmpz_mat(both).rank() > flint.fmpz_mat(kept).rank())


@dataclass(frozen=True, eq=False)
class _Multisets:
    """Multisets of cells by size, with what they add."""

    signature: Columns
    answer: Columns

    def too_many(self, size: int) -> bool:
        """Whether there are too many of a size to list."""
        return comb(self.answer.shape[1] + size - 1, size) > MOST_MULTISETS

    def mark(self, needed: Ints, ins: int, outs: int, size: int) -> bool:
        """Write `size` for every row p → q of an allowed change that puts `ins` and takes `outs` and alters the answer.

        Only where nothing is written yet. Return whether there is such a change at all.
        """
        first, second = self._listed(ins), self._listed(outs)
        one = csc_array(hstack([_indicator(first, self.answer.shape[1]), _indicator(second, self.answer.shape[1])]))
        kept = equal_columns(csc_array(self.signature @ one))
        seen = equal_columns(csc_array(self.answer @ one))
        split = len(first)
        order_in, order_out = (np.argsort(part, kind="stable") for part in (kept[:split], kept[split:]))
        shared = np.intersect1d(kept[:split], kept[split:])
        any_found = False
        for label in shared.tolist():
            a = order_in[slice(*np.searchsorted(kept[:split], [label, label + 1], sorter=order_in))]
            b = order_out[slice(*np.searchsorted(kept[split:], [label, label + 1], sorter=order_out))]
            answers_in, answers_out = seen[:split][a], seen[split:][b]
            if (answers_in == answers_in[0]).all() and (answers_out == answers_in[0]).all():
                continue
            any_found = True
            if ins and outs:
                _write(needed, _answers_of(first[a], answers_in), _answers_of(second[b], answers_out), size)
        return any_found

    def _listed(self, size: int) -> Ints:
        count = self.answer.shape[1]
        listed = list(combinations_with_replacement(range(count), size))
        return np.array(listed, np.int64).reshape(len(listed), size)


def _indicator(multisets: Ints, count: int) -> csc_array[Any]:
    number, size = multisets.shape
    place = (multisets.ravel(), np.repeat(np.arange(number), size))
    return csc_array((np.ones(multisets.size, np.int64), place), shape=(count, number))


def _answers_of(multisets: Ints, answers: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the cells in the multisets, one answer of each, and how many different ones it has."""
    pairs = distinct_pairs(multisets.ravel(), np.repeat(answers, multisets.shape[1]))
    cells, start, number = np.unique(pairs[0], return_index=True, return_counts=True)
    return cells, pairs[1][start], number


def _write(needed: Ints, ins: tuple[Ints, Ints, Ints], outs: tuple[Ints, Ints, Ints], size: int) -> None:
    """Mark the rows from a cell taken to a cell put whose multisets differ in the answer."""
    to, put, puts = ins
    come, took, takes = outs
    alike = (takes[:, None] == 1) & (puts[None, :] == 1) & (took[:, None] == put[None, :])
    place = np.ix_(come, to)
    block = needed[place]
    needed[place] = np.where((block == 0) & ~alike & (come[:, None] != to[None, :]), size, block)


def of_columns(kind: str, found: Found, kinds: Ints, columns: tuple[Column, ...]) -> tuple[Together, ...]:
    """Return what the values of columns need, each pair the least over its cells; kinds[j] is the cell's place."""
    return tuple(_of_column(kind, found, kinds, column) for column in columns)


def _of_column(kind: str, found: Found, kinds: Ints, column: Column) -> Together:
    used = (kinds >= 0) & (column.codes >= 0)
    present = np.unique(column.codes[used])
    number = np.searchsorted(present, column.codes[used])
    most = np.iinfo(np.int64).max
    chosen = distinct_pairs(number, kinds[used])
    rows = np.full((present.size, found.needed.shape[1]), most)
    weight = np.where(found.needed == 0, most, np.where(found.needed < 0, most - 1, found.needed))
    np.minimum.at(rows, chosen[0], weight[chosen[1]])
    table = np.full((present.size, present.size), most)
    np.minimum.at(table.T, chosen[0], rows.T[chosen[1]])
    table = np.where(table == most, 0, np.where(table == most - 1, -1, table))
    members = tuple(np.array([value]) for value in present)
    nothing = np.zeros(len(members), np.int64)
    return told(column, kind, Groups(members, nothing, table, nothing), found.exact, found.beyond)
