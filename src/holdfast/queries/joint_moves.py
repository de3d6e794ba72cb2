"""Listing the moves of several records that keep all invariants, by matching sums of signatures.

A move takes records out of the cells of a multiset B and puts records into those of a multiset A with equal
sums of signatures. Sums are matched by a linear hash modulo 2**64 and then checked exactly, so the list is
complete (equal sums have equal hashes) and holds nothing else.
"""

from __future__ import annotations

from itertools import combinations_with_replacement
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csc_array, hstack

from holdfast.queries.columns import Columns, equal_columns
from holdfast.queries.neighbours import Neighbours

Ints = npt.NDArray[np.int64]

#: Multisets that are listed and matches that are followed up; beyond either, None is returned.
MOST_MULTISETS = 3_000_000
MOST_MATCHES = 1_000_000


def joint_moves(signature: Columns, columns: Columns, neighbours: Neighbours) -> Columns | None:
    """Return all distinct non-zero differences of at most `records` changes with zero signature, up to sign.

    signature, columns: of the allowed cells with distinct columns. None if there are too many to list.
    """
    k, count = neighbours.records, columns.shape[1]
    if columns.dtype.kind != "i":  # sums of doubles are rounded, so what is listed would not be exact
        return None
    if comb(count + k - 1, k) * k > MOST_MULTISETS or (neighbours.adds and k > 4):
        return None
    hashes = _hash(signature)
    if neighbours.adds:
        shapes = [(a, b) for b in range(k // 2 + 1) for a in range(max(b, 1), k - b + 1)]
    else:
        shapes = [(k, k)]  # fewer replacements are those in which A and B share cells
    found: list[Columns] = []
    for a, b in shapes:
        ins, outs = _multisets(count, a), _multisets(count, b)
        matched = _matches(hashes[ins].sum(axis=1), hashes[outs].sum(axis=1), a == b)
        if matched is None:
            return None
        move = _signed(ins[matched[0]], count) - _signed(outs[matched[1]], count)
        difference = csc_array(columns @ move)
        change = csc_array(signature @ move)
        difference.eliminate_zeros()
        change.eliminate_zeros()
        good = (np.diff(change.indptr) == 0) & (np.diff(difference.indptr) > 0)
        found.append(_one_sign(difference[:, np.flatnonzero(good)]))
    both = csc_array(hstack(found, format="csc"))
    classes = equal_columns(both)
    return both[:, np.unique(classes, return_index=True)[1]]


def _hash(signature: Columns) -> npt.NDArray[np.uint64]:
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


def _matches(
    left: npt.NDArray[np.uint64], right: npt.NDArray[np.uint64], same: bool
) -> tuple[Ints, Ints] | None:
    """Return the index pairs with equal hashes (i < j if both sides are the same list)."""
    order = np.argsort(right, kind="stable")
    low = np.searchsorted(right[order], left, "left")
    high = np.searchsorted(right[order], left, "right")
    times = (high - low).astype(np.int64)
    if times.sum() - (left.size if same else 0) > MOST_MATCHES * (2 if same else 1):
        return None
    first = np.repeat(np.arange(left.size), times)
    within = np.arange(first.size) - np.repeat(np.cumsum(times) - times, times)
    second = order[np.repeat(low, times) + within]
    chosen = first < second if same else np.ones(first.size, bool)
    return first[chosen], second[chosen]


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
