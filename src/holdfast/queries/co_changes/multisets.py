"""Changes of a few records, listed: what is put into the cells of one multiset and taken from those of another.

A change keeps everything that must stay if both multisets add the same to it, which is decided in whole numbers. Two
questions are answered from one list: which differences of the answer there are (`joint_moves`), and how many records
it takes until a row can go from one cell to another (`records_of_rows`).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb
from typing import NamedTuple

import flint
import numpy as np
from scipy.sparse import csc_array, hstack

from holdfast.arrays import Ints
from holdfast.queries.columns import Columns, equal_columns
from holdfast.queries.neighbours import Neighbours

#: Moves of more records than this are bounded, not listed.
MOST_RECORDS = 4
#: Multisets that are matched (beyond, nothing is listed) and matches that are followed up (beyond, a part).
MOST_MULTISETS, MOST_MATCHES = 8_000_000, 500_000
#: Multisets of one size that are listed when rows are followed; a larger list is not searched.
MOST_FOLLOWED = 60_000


@dataclass(frozen=True, eq=False)
class Matched:
    """All multisets of cells of two sizes, one a row, with labels that exactly those of equal signatures share."""

    put: Ints
    taken: Ints
    labels: tuple[Ints, Ints]

    @classmethod
    def of(cls, signature: Columns, sizes: tuple[int, int]) -> Matched:
        put = _multisets(signature.shape[1], sizes[0])
        taken = put if sizes[0] == sizes[1] else _multisets(signature.shape[1], sizes[1])
        return cls(put, taken, _labels(signature, put, taken))

    def pairs(self) -> tuple[Ints, Ints, bool]:
        """Return places of multisets put and taken that match, one of each two signs, and whether they are all."""
        left, right = self.labels
        order = np.argsort(right, kind="stable")
        low = np.searchsorted(right, left, "left", sorter=order)
        times = (np.searchsorted(right, left, "right", sorter=order) - low).astype(np.int64)
        same = self.put is self.taken
        every = int((times - same).sum()) <= MOST_MATCHES
        if not every:  # an evenly spread part of those that have a partner, a few partners each
            times = np.minimum(times, 4 + same)
            some = np.flatnonzero(times > same)
            spread = some[:: 1 + int(times.sum()) // max(1, MOST_MATCHES)]
            times = np.where(np.isin(np.arange(left.size), spread), times, 0)
        first = np.repeat(np.arange(left.size), times)
        within = np.arange(first.size) - np.repeat(np.cumsum(times) - times, times)
        second = order[np.repeat(low, times) + within]
        chosen = first < second if same else np.ones(first.size, bool)
        return first[chosen], second[chosen], every


def _multisets(count: int, size: int) -> Ints:
    if size < 2:
        return np.arange(count)[:, None] if size else np.zeros((1, 0), np.int64)
    if size == 2:
        return np.stack(np.triu_indices(count), axis=1).astype(np.int64)
    return np.array(list(combinations_with_replacement(range(count), size)), dtype=np.int64)


def _labels(columns: Columns, put: Ints, taken: Ints) -> tuple[Ints, Ints]:
    """Number the sums of columns over the multisets: equal numbers for exactly the equal sums."""
    count = columns.shape[1]
    if put is taken:
        labels = equal_columns(csc_array(columns @ _indicator(put, count)))
        return labels, labels
    both = hstack([_indicator(put, count), _indicator(taken, count)], format="csc")
    labels = equal_columns(csc_array(columns @ both))
    return labels[: len(put)], labels[len(put) :]


def _indicator(multisets: Ints, count: int) -> Columns:
    number, size = multisets.shape
    place = (multisets.ravel(), np.repeat(np.arange(number), size))
    return csc_array((np.ones(multisets.size, np.int64), place), shape=(count, number))


class Listing(NamedTuple):
    """Distinct non-zero differences as columns, up to sign, and whether they are all there are."""

    moves: Columns
    complete: bool


def joint_moves(signature: Columns, columns: Columns, neighbours: Neighbours) -> Listing:
    """Return the non-zero differences of at most `records` changes with zero signature.

    signature, columns: of the allowed cells with distinct columns.
    """
    k, count = neighbours.records, columns.shape[1]
    whole = columns.dtype.kind == "i"  # sums of doubles are rounded, so what is listed would not be exact
    if not whole or k > MOST_RECORDS or comb(count + k - 1, k) * k > MOST_MULTISETS:
        return Listing(columns[:, :0], False)
    # Sizes (a, b) put and taken; fewer replacements than k are those in which the multisets share cells.
    sizes = [(a, b) for b in range(k // 2 + 1) for a in range(max(b, 1), k - b + 1)]
    listed, complete = [], True
    for shape in sizes if neighbours.adds else [(k, k)]:
        sets = Matched.of(signature, shape)
        first, second, every = sets.pairs()
        complete = complete and every
        difference = columns @ (_indicator(sets.put[first], count) - _indicator(sets.taken[second], count))
        listed.append(_one_sign(csc_array(difference)))
    both = csc_array(hstack(listed, format="csc"))
    classes = equal_columns(both)
    kept, place = np.unique(classes, return_index=True)
    return Listing(both[:, place[kept > 0]], complete)


def _one_sign(columns: Columns) -> Columns:
    """Return the columns with the sign that makes their first entry positive."""
    columns.eliminate_zeros()
    columns.sort_indices()
    lengths = np.diff(columns.indptr)
    sign = np.ones(columns.shape[1], np.int64)
    sign[lengths > 0] = np.sign(columns.data[columns.indptr[:-1][lengths > 0]])
    columns.data *= np.repeat(sign, lengths)
    return columns


@dataclass(frozen=True, eq=False)
class RowRecords:
    """How many records the row p → q needs: `needed[p, q]`, 0: never, −1: more than `beyond`, or never."""

    needed: Ints
    exact: dict[int, bool]
    beyond: int


def records_of_rows(signature: Columns, answer: Columns, adds: bool, identity: bool) -> RowRecords:
    """Search the changes among cells with these signatures and (different) answers, one column each.

    Let K be the least number of records of an allowed change that alters the answer. With two more replacements (p → q
    and a way back) one with the row p → q is among them: so each row needs K, K + 1 or K + 2 replacements, and the
    least number of records of *any* allowed change with p → q that alters the answer is the one that is asked for
    (docs/theory/what-can-change.md, Proposition 1).
    """
    count = answer.shape[1]
    needed = np.zeros((count, count), np.int64)
    off = ~np.eye(count, dtype=bool)
    if not alters(signature, answer, adds):
        return RowRecords(needed, {}, 0)
    extra, least, size = 4 if adds else 2, 0, 0
    while comb(count + size, size + 1) <= MOST_FOLLOWED:
        size += 1
        for shape in [(a, size - a) for a in range(size + 1)] if adds else [(size, size)]:
            if _marked(needed, Matched.of(signature, shape), answer, size) and not least:
                least = size
        if least and (size >= least + extra - 1 or (needed[off] > 0).all()):
            break
    left = off & (needed == 0)
    if not least:
        needed[left] = -1
        return RowRecords(needed, {}, size)
    sure = dict.fromkeys(range(least + extra - 1, least + extra + 1), identity)
    if not adds:
        sure |= {least + 1: True, least + 2: identity or least == 1}
    needed[left] = least + extra
    sure[least + extra] = sure[least + extra] and size >= least + extra - 1
    return RowRecords(needed, sure, 0)


def alters(signature: Columns, answer: Columns, adds: bool) -> bool:
    """Whether some change of any number of records keeps the signatures and alters the answer, exactly.

    It does unless every output is a rational combination of what is kept: whole multiples of a rational change are
    changes too.
    """
    kept = signature.toarray().tolist() + ([] if adds else [[1] * answer.shape[1]])
    if not kept:
        return bool(answer.nnz)
    return bool(flint.fmpz_mat(kept + answer.toarray().tolist()).rank() > flint.fmpz_mat(kept).rank())


def _marked(needed: Ints, sets: Matched, answer: Columns, size: int) -> bool:
    """Write `size` for every row p → q of an allowed change that alters the answer, where nothing is written yet.

    Return whether there is such a change at all.
    """
    (kept_in, kept_out), (seen_in, seen_out) = sets.labels, _labels(answer, sets.put, sets.taken)
    order_in, order_out = np.argsort(kept_in, kind="stable"), np.argsort(kept_out, kind="stable")
    any_change = False
    for label in np.intersect1d(kept_in, kept_out).tolist():
        a = order_in[slice(*np.searchsorted(kept_in, [label, label + 1], sorter=order_in))]
        b = order_out[slice(*np.searchsorted(kept_out, [label, label + 1], sorter=order_out))]
        if (seen_in[a] == seen_in[a[0]]).all() and (seen_out[b] == seen_in[a[0]]).all():
            continue
        any_change = True
        if sets.put.size and sets.taken.size:
            to, put, puts = _answers_of(sets.put[a], seen_in[a])
            come, took, takes = _answers_of(sets.taken[b], seen_out[b])
            # The rows from a cell taken to a cell put whose multisets differ in the answer.
            alike = (takes[:, None] == 1) & (puts[None, :] == 1) & (took[:, None] == put[None, :])
            block = needed[np.ix_(come, to)]
            new = (block == 0) & ~alike & (come[:, None] != to[None, :])
            needed[np.ix_(come, to)] = np.where(new, size, block)
    return any_change


def _answers_of(multisets: Ints, answers: Ints) -> tuple[Ints, Ints, Ints]:
    pairs = distinct_pairs(multisets.ravel(), np.repeat(answers, multisets.shape[1]))
    cells, start, number = np.unique(pairs[0], return_index=True, return_counts=True)
    return cells, pairs[1][start], number


def distinct_pairs(first: Ints, second: Ints) -> Ints:
    """Return the different pairs of two lists of numbers ≥ 0, as two rows, sorted."""
    width = int(second.max(initial=0)) + 1
    if (int(first.max(initial=0)) + 1) * width < 2**62:
        keys = np.sort(first.astype(np.int64) * width + second)
        keys = keys[np.diff(keys, prepend=-1) > 0]
        return np.stack([keys // width, keys % width])
    return np.unique(np.stack([first, second]), axis=1)
