"""Changes of a few records, listed: what is put into the cells of one multiset and taken from those of another.

A change keeps everything that must stay if both multisets add the same to it, which is decided in whole numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb
from typing import NamedTuple

import numpy as np
from scipy.sparse import csc_array, hstack

from holdfast.arrays import Ints
from holdfast.queries.columns import Columns, equal_columns
from holdfast.queries.neighbours import Neighbours

#: Moves of more records than this are bounded, not listed.
MOST_RECORDS = 4
#: Multisets that are matched (beyond, nothing is listed) and matches that are followed up (beyond, a part).
MOST_MULTISETS, MOST_MATCHES = 8_000_000, 500_000


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
