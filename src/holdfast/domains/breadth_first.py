"""Compiled passes over all nodes of a forest: breadth-first order, and sums towards the roots."""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.arrays import Ints, compiled, only_read


def breadth_first(parents: Ints) -> tuple[Ints, Ints, Ints, Ints, int]:
    """Return (start, children, order, depth, reached) of the forest in O(n); the arrays can only be read.

    The children of node v, by increasing id, are ``children[start[v]:start[v + 1]]``. `order` lists the nodes
    breadth-first: roots by increasing id, then their children, and so on, so that siblings stand together.
    Nodes on or below a cycle are never reached: `reached` is then smaller than n.
    """
    start, children, order, depth, reached = _breadth_first(only_read(parents))
    return only_read(start), only_read(children), only_read(order), only_read(depth), reached


@compiled(beyond=20_000)
def _breadth_first(parents: Ints) -> tuple[Ints, Ints, Ints, Ints, int]:  # pragma: no cover (compiled)
    n = parents.size
    start = np.zeros(n + 1, np.int64)
    for v in range(n):
        if parents[v] >= 0:
            start[parents[v] + 1] += 1
    for v in range(n):
        start[v + 1] += start[v]
    children = np.empty(start[n], np.int64)
    free = start[:n].copy()
    order = np.empty(n, np.int64)
    depth = np.full(n, -1, np.int64)
    reached = 0
    for v in range(n):
        p = parents[v]
        if p >= 0:
            children[free[p]] = v
            free[p] += 1
        else:
            order[reached] = v
            depth[v] = 0
            reached += 1
    i = 0
    while i < reached:
        v = order[i]
        for c in range(start[v], start[v + 1]):
            order[reached] = children[c]
            depth[children[c]] = depth[v] + 1
            reached += 1
        i += 1
    return start, children, order, depth, reached


@compiled(beyond=20_000)
def sum_towards_roots(parents: Ints, order: Ints, values: Any, limit: Any) -> int:  # pragma: no cover (compiled)
    """Add every node's row of `values` to its parent's, deepest first, in place.

    Returns -1, or the first node whose sum reaches ±limit: both summands are below the limit, so the sum
    itself cannot have wrapped round when it is looked at.
    """
    for i in range(order.size - 1, -1, -1):
        v = order[i]
        p = parents[v]
        if p >= 0:
            for k in range(values.shape[1]):
                total = values[p, k] + values[v, k]
                if total >= limit or total <= -limit:
                    return p
                values[p, k] = total
    return -1
