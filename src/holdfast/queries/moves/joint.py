"""Listing the moves of several records that keep all invariants, by matching sums of signatures.

A move takes records out of the cells of a multiset B and puts records into those of a multiset A with equal
sums of signatures. Sums are matched by a linear hash modulo 2**64 and then checked exactly, so the list is
complete (equal sums have equal hashes) and holds nothing else.
"""

from __future__ import annotations

from itertools import combinations_with_replacement
from math import comb
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csc_array, hstack

from holdfast.arrays import Ints, Words
from holdfast.queries.columns import Columns, equal_columns
from holdfast.queries.neighbours import Neighbours

#: Moves of more records than this are bounded, not listed.
MOST_RECORDS = 4
#: Multisets that are matched (beyond, nothing is listed) and matches that are followed up (beyond, a part).
MOST_MULTISETS = 8_000_000
MOST_MATCHES = 500_000


class Listing(NamedTuple):
    """Distinct non-zero differences as columns, up to sign, and whether they are all there are."""

    moves: Columns
    complete: bool


def joint_moves(signature: Columns, columns: Columns, neighbours: Neighbours) -> Listing:
    """Return the non-zero differences of at most `records` changes with zero signature.

    signature, columns: of the allowed cells with distinct columns.
    """
    k, count = neighbours.records, columns.shape[1]
    if columns.dtype.kind != "i":  # sums of doubles are rounded, so what is listed would not be exact
        return Listing(columns[:, :0], False)
    if comb(count + k - 1, k) * k > MOST_MULTISETS or k > MOST_RECORDS:
        return Listing(columns[:, :0], False)
    hashes = _hash(signature)
    # Sizes (a, b) of A and B; fewer replacements than k are those in which A and B share cells.
    sizes = [(a, b) for b in range(k // 2 + 1) for a in range(max(b, 1), k - b + 1)]
    shapes = sizes if neighbours.adds else [(k, k)]
    found: list[Columns] = []
    complete = True
    for a, b in shapes:
        ins, outs = _multisets(count, a), _multisets(count, b)
        first, second, every = _matches(hashes[ins].sum(axis=1), hashes[outs].sum(axis=1), a == b)
        complete = complete and every
        move = _signed(ins[first], count) - _signed(outs[second], count)
        difference = csc_array(columns @ move)
        change = csc_array(signature @ move)
        difference.eliminate_zeros()
        change.eliminate_zeros()
        good = (np.diff(change.indptr) == 0) & (np.diff(difference.indptr) > 0)
        found.append(_one_sign(difference[:, np.flatnonzero(good)]))
    both = csc_array(hstack(found, format="csc"))
    classes = equal_columns(both)
    return Listing(both[:, np.unique(classes, return_index=True)[1]], complete)


def _hash(signature: Columns) -> Words:
    # Fixed, well mixed 64-bit factors (the splitmix64 sequence): nothing here is secret or random.
    factors = np.arange(1, signature.shape[0] + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    factors = (factors ^ (factors >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    factors = (factors ^ (factors >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    factors ^= factors >> np.uint64(31)
    hashes = np.zeros(signature.shape[1], np.uint64)
    column = np.repeat(np.arange(signature.shape[1]), np.diff(signature.indptr))
    np.add.at(hashes, column, signature.data.astype(np.int64).view(np.uint64) * factors[signature.indices])
    return hashes


def _multisets(count: int, size: int) -> Ints:
    if size == 0:
        return np.zeros((1, 0), np.int64)
    if size == 1:
        return np.arange(count)[:, None]
    if size == 2:
        return np.stack(np.triu_indices(count), axis=1).astype(np.int64)
    return np.array(list(combinations_with_replacement(range(count), size)), dtype=np.int64)


def _matches(left: Words, right: Words, same: bool) -> tuple[Ints, Ints, bool]:
    """Return index pairs with equal hashes (i < j if both sides are one list) and whether they are all."""
    order = np.argsort(right, kind="stable")
    ordered = right[order]
    if same:  # runs of equal hashes; one of the partners is the multiset itself
        starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        sizes = np.diff(np.append(starts, order.size))
        low, times = np.empty(order.size, np.int64), np.empty(order.size, np.int64)
        low[order], times[order] = np.repeat(starts, sizes), np.repeat(sizes - 1, sizes)
    else:
        low = np.searchsorted(ordered, left, "left")
        times = (np.searchsorted(ordered, left, "right") - low).astype(np.int64)
    every = int(times.sum()) <= MOST_MATCHES
    if not every:  # an evenly spread part of those that have a partner, a few partners each
        times = np.minimum(times, 4)
        some = np.flatnonzero(times)
        spread = some[:: 1 + int(times.sum()) // max(1, MOST_MATCHES)]
        times = np.where(np.isin(np.arange(left.size), spread), times, 0)
    if same:
        times += times > 0
    first = np.repeat(np.arange(left.size), times)
    within = np.arange(first.size) - np.repeat(np.cumsum(times) - times, times)
    second = order[np.repeat(low, times) + within]
    chosen = first < second if same else np.ones(first.size, bool)
    return first[chosen], second[chosen], every


def _signed(multisets: Ints, count: int) -> csc_array[Any]:
    moves, size = multisets.shape
    return csc_array(
        (np.ones(multisets.size, np.int64), (multisets.ravel(), np.repeat(np.arange(moves), size))),
        shape=(count, moves),
    )


def _one_sign(columns: Columns) -> Columns:
    """Return the columns with the sign that makes their first entry positive."""
    tidy = columns.copy()
    tidy.sort_indices()
    if tidy.nnz == 0:
        return tidy
    lengths = np.diff(tidy.indptr)
    sign = np.ones(tidy.shape[1], np.int64)
    sign[lengths > 0] = np.sign(tidy.data[tidy.indptr[:-1][lengths > 0]])
    tidy.data *= np.repeat(sign, lengths)
    return tidy
