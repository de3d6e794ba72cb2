"""Passes over all nodes of a forest: breadth-first order, its levels, and sums towards the roots."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arrays import Ints, only_read, ranges


def breadth_first(parents: Ints) -> tuple[Ints, Ints, Ints, Ints, int]:
    """Return (start, children, order, depth, reached) of the forest; the arrays can only be read.

    The children of node v, by increasing id, are ``children[start[v]:start[v + 1]]``. `order` lists the nodes
    breadth-first: roots by increasing id, then their children, and so on, so that siblings stand together.
    Nodes on or below a cycle are never reached: `reached` is then smaller than n, and their depth is −1.
    """
    n, roots = parents.size, np.flatnonzero(parents < 0)
    counts = np.bincount(parents[parents >= 0], minlength=n)
    start = np.concatenate([[0], np.cumsum(counts)])
    children = np.argsort(parents, kind="stable")[roots.size :]
    depth = np.full(n, -1, dtype=np.int64)
    order: list[Ints] = []
    level = roots
    while level.size:
        depth[level] = len(order)
        order.append(level)
        level = children[ranges(start[level], counts[level])]
    whole = np.concatenate(order) if order else roots
    return only_read(start), only_read(children), only_read(whole), only_read(depth), whole.size


def levels(start: Ints, order: Ints) -> list[Ints]:
    """The nodes of each depth, roots first: `order` lists roots, and then the children of its nodes in turn."""
    result, begin, end = [], 0, order.size - int(start[-1] - start[0])
    while begin < end:
        level = order[begin:end]
        result.append(level)
        begin, end = end, end + int((start[level + 1] - start[level]).sum())
    return result


def families(parents: Ints, nodes: Ints) -> tuple[Ints, Ints]:
    """The parents of nodes, of which siblings stand together, and where the children of each begin."""
    above = parents[nodes]
    first = np.flatnonzero(np.diff(above, prepend=-1))
    return above[first], first


def sum_towards_roots(parents: Ints, start: Ints, order: Ints, values: npt.NDArray[Any], limit: float) -> int:
    """Add every node's row of `values` to its parent's, deepest first, in place.

    Returns -1, or a node whose sum reaches ±limit: below it, sums that left 64 bits on the way are what they should be.
    """
    for level in reversed(levels(start, order)[1:]):
        above, first = families(parents, level)
        below = values[level]
        size = np.add.reduceat(np.abs(below.astype(np.float64)), first) + np.abs(values[above].astype(np.float64))
        ends = np.append(first[1:], level.size)
        for k in np.flatnonzero((size >= limit / 2).any(axis=1)).tolist():
            columns = np.vstack([values[above[k]], below[first[k] : ends[k]]]).T.tolist()
            if any(abs(sum(column)) >= limit for column in columns):
                return int(above[k])
        values[above] += np.add.reduceat(below, first)
    return -1
