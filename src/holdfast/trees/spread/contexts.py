"""Where laws of totals differ: a piece's context is its kind, and the context of the pair above it.

Pieces with one context have one law of their total, and alike leaves of parcels with one context have one law too. So
errors are found once for each context, and outputs point at them. Contexts come before those below them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from holdfast.arrays import Ints, compiled
from holdfast.trees.messages.pieces import Pieces


class Contexts(NamedTuple):
    """Arrays over contexts."""

    kind: Ints
    above: Ints  # −1: none
    left: Ints  # the contexts below, −1: none; the same one twice where both pieces are alike
    right: Ints
    size: Ints  # contexts at and below this one
    root: Ints  # as for pieces
    leaf_law: Ints  # the law of the first leaf of a parcel; laws of leaves follow those of totals


def find_contexts(pieces: Pieces, outputs: int) -> tuple[Contexts, Ints, int]:
    """The contexts of a forest, the law of every output, and the number of laws; the last law is that of 0."""
    *arrays, number, laws = _find(
        pieces.kind, pieces.left, pieces.right, pieces.root, pieces.first, pieces.members, pieces.output, pieces.leaves,
        pieces.leaf_kind, pieces.kinds, outputs,
    )  # fmt: skip
    return Contexts(*arrays), number, int(laws)


@compiled
def _find(
    kind: Any, left: Any, right: Any, root: Any, first: Any, count: Any, output: Any, leaves: Any, leaf_kind: Any,
    kinds: Any, outputs: Any,
) -> Any:  # fmt: skip
    n = kind.size
    context = np.full(n, -1, np.int64)
    c_kind = np.empty(n, np.int64)
    c_above = np.empty(n, np.int64)
    c_left = np.full(n, -1, np.int64)
    c_right = np.full(n, -1, np.int64)
    c_root = np.zeros(n, np.int64)
    c_leaf = np.full(n, -1, np.int64)
    tops = np.full((kinds, 3), -1, np.int64)
    found = 0
    for p in range(n - 1, -1, -1):
        k = kind[p]
        if root[p] > 0:
            c = tops[k, root[p]]
            if c < 0:
                c = found
                found += 1
                tops[k, root[p]] = c
                c_kind[c], c_above[c], c_root[c] = k, -1, root[p]
            context[p] = c
        c = context[p]
        a, b = left[p], right[p]
        if a < 0:
            continue
        if c_left[c] < 0:
            c_left[c] = found
            c_kind[found], c_above[found] = kind[a], c
            found += 1
            if b >= 0 and kind[b] == kind[a]:
                c_right[c] = c_left[c]
            elif b >= 0:
                c_right[c] = found
                c_kind[found], c_above[found] = kind[b], c
                found += 1
        context[a] = c_left[c]
        if b >= 0:
            context[b] = c_right[c]
    number = np.full(outputs, -1, np.int64)
    laws = found
    for p in range(n):
        c = context[p]
        if output[p] >= 0:
            number[output[p]] = c
        if left[p] >= 0:
            continue
        fresh = c_leaf[c] < 0
        if fresh:
            c_leaf[c] = laws
        law = c_leaf[c]
        for j in range(first[p], first[p] + count[p]):
            if j > first[p] and leaf_kind[j] != leaf_kind[j - 1]:
                law += 1
            number[leaves[j]] = law
        if fresh:
            laws = law + 1
    for v in range(outputs):
        if number[v] < 0:
            number[v] = laws
    size = np.ones(found, np.int64)
    for c in range(found - 1, -1, -1):
        if c_left[c] >= 0:
            size[c] += size[c_left[c]]
            if c_right[c] >= 0 and c_right[c] != c_left[c]:
                size[c] += size[c_right[c]]
    return (
        c_kind[:found].copy(), c_above[:found].copy(), c_left[:found].copy(), c_right[:found].copy(), size,
        c_root[:found].copy(), c_leaf[:found].copy(), number, laws + 1,
    )  # fmt: skip
