"""Kinds of difference: how often each (size of change, group of output) occurs, largest kinds only.

For independent noise the loss law of a difference d depends on the multiset of (|d_i|, group of i) alone.
One kind dominates another when every change of the other can be paired with a change at least as large in the
same group: for log-concave noise the larger shift is then the more distinguishable one in every coordinate
(docs/theory/difference-sets.md, Proposition 5), so dominated kinds never decide a guarantee and are dropped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Ints
from holdfast.queries.columns import Columns

Kind = Counter[tuple[int, int]]

#: Distinct kinds beyond this number are not compared with each other; a guarantee then comes from ρ.
MOST_KINDS = 20_000


def refuse_many() -> Refused:
    """Return the refusal for queries with too many kinds of difference to list."""
    return Refused(
        f"kinds must be few enough to list, but this query has more than {MOST_KINDS} kinds of difference "
        "or too many pairs of cells; use the bound by largest() instead"
    )


def kinds_of_columns(columns: Columns, which: Ints | None) -> set[frozenset[tuple[tuple[int, int], int]]]:
    """Return the distinct non-empty multisets of (|entry|, group) over the columns."""
    if columns.dtype.kind != "i":
        raise Refused("kinds must be asked of a query with whole-number answers; give the workload a grid")
    tidy = columns.copy()
    tidy.eliminate_zeros()
    if tidy.nnz == 0:
        return set()
    size = np.abs(tidy.data).astype(np.int64)
    group = np.zeros(size.size, np.int64) if which is None else which[tidy.indices]
    pairs, code = np.unique(np.stack([size, group]), axis=1, return_inverse=True)
    column = np.repeat(np.arange(tidy.shape[1]), np.diff(tidy.indptr))
    key, count = np.unique(column * pairs.shape[1] + code.ravel(), return_counts=True)
    owner = key // pairs.shape[1]
    found: set[frozenset[tuple[tuple[int, int], int]]] = set()
    # Columns of equal length in (pair, count) form are compared as rows of an array, so that Python sees
    # each distinct multiset once only.
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    lengths = np.diff(np.append(starts, owner.size))
    for k in np.unique(lengths):
        places = starts[lengths == k][:, None] + np.arange(k)
        rows = np.unique(np.hstack([key[places] % pairs.shape[1], count[places]]), axis=0)
        if len(found) + len(rows) > MOST_KINDS:
            raise refuse_many()
        for row in rows:
            found.add(
                frozenset(
                    ((int(pairs[0, code]), int(pairs[1, code])), int(times))
                    for code, times in zip(row[:k], row[k:], strict=True)
                )
            )
    return found


def maximal(kinds: Iterable[frozenset[tuple[tuple[int, int], int]]]) -> list[Kind]:
    """Return the kinds that no other dominates, as counters, in a fixed order."""
    distinct = sorted({kind for kind in kinds if kind}, key=sorted, reverse=True)
    if not distinct:
        return []
    groups = sorted({(group, size) for kind in distinct for (size, group), _ in kind})
    place = {pair: i for i, pair in enumerate(groups)}
    counts = np.zeros((len(distinct), len(groups)), np.int64)
    for i, kind in enumerate(distinct):
        for (size, group), times in kind:
            counts[i, place[group, size]] = times
    # tail[i, (g, s)] = how many changes of kind i in group g are at least s; domination is then entrywise.
    tail = counts.copy()
    for j in range(len(groups) - 2, -1, -1):
        if groups[j][0] == groups[j + 1][0]:
            tail[:, j] += tail[:, j + 1]
    order = np.argsort(-tail.sum(axis=1), kind="stable")
    kept: list[int] = []
    rows = np.empty_like(tail)
    for i in order:
        if not (rows[: len(kept)] >= tail[i]).all(axis=1).any():
            rows[len(kept)] = tail[i]
            kept.append(int(i))
    return [Counter(dict(distinct[i])) for i in sorted(kept)]
