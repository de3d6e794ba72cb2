"""Equalities that are the balances of a network: every output is an arc between two rows, or a row and the ground.

So it is where each output occurs in at most two rows, with coefficients ±1, and the rows can be given signs such that
it enters one and leaves the other: two crossed margins, trees, two hierarchies over the same leaves, one sum. Then
whole right-hand sides and bounds have whole solutions next to real ones, and whole steps can be sent along paths.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arrays import Ints, compiled, kept
from holdfast.onto.grid.grid import Shape


@dataclass(frozen=True, eq=False)
class Arcs:
    """Output i carries its value from node `tail[i]` to node `head[i]`; the ground is the node after the last row.

    Row r times `signs[r]` is what enters node r less what leaves it. Arcs at each node stand in `order`, from
    `starts[node]` on.
    """

    tail: Ints
    head: Ints
    signs: Ints
    order: Ints
    starts: Ints

    @property
    def nodes(self) -> int:
        """The number of nodes, the ground included."""
        return int(self.signs.size) + 1


@kept
def arcs_of(shape: Shape) -> Arcs | None:
    """Read a network from a problem; None where the equalities are not one."""
    columns = shape.columns
    count, n = columns.shape
    uses = np.diff(columns.indptr)
    if uses.max(initial=0) > 2 or (np.abs(columns.data) != 1).any():
        return None
    signs = np.zeros(count, dtype=np.int64)
    pairs = columns.indptr[:-1][uses == 2]
    first, second = columns.indices[pairs], columns.indices[pairs + 1]
    opposite = -columns.data[pairs] * columns.data[pairs + 1]
    if not _signed(count, first, second, opposite, signs):
        return None
    tail, head = np.full(n, count, dtype=np.int64), np.full(n, count, dtype=np.int64)
    rows, output = columns.indices.astype(np.int64), np.repeat(np.arange(n), uses)
    enters = columns.data * signs[rows] > 0
    head[output[enters]] = rows[enters]
    tail[output[~enters]] = rows[~enters]
    ends = np.concatenate([tail, head])
    order = np.argsort(ends, kind="stable") % n
    starts = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=count + 1))])
    return Arcs(tail, head, signs, order.astype(np.int64), starts.astype(np.int64))


@compiled(inner=True)
def _root(above, node):  # type: ignore[no-untyped-def]
    while above[node] != node:
        above[node] = above[above[node]]
        node = above[node]
    return node


def _signed(count: int, first: Any, second: Any, relation: Any, signs: Ints) -> bool:
    """Give every row a sign such that signs[first]·signs[second] = relation; False where none exist."""
    distinct = np.unique(np.column_stack([first, second, relation]), axis=0) if first.size else np.zeros((0, 3))
    links = sparse.coo_array(
        (distinct[:, 2].astype(np.int64), (distinct[:, 0], distinct[:, 1])), shape=(count, count)
    ).tocsr()
    links = sparse.csr_array(links + links.T)
    for root in range(count):
        if signs[root]:
            continue
        signs[root], waiting = 1, [root]
        while waiting:
            node = waiting.pop()
            at = slice(links.indptr[node], links.indptr[node + 1])
            for other, sign in zip(links.indices[at].tolist(), links.data[at].tolist(), strict=True):
                if not signs[other]:
                    signs[other] = signs[node] * sign
                    waiting.append(other)
    if first.size == 0:
        return True
    return bool((signs[first] * signs[second] == relation).all())


@compiled
def send_along_forest(tail, head, lacking, moves, low, high, slack):  # type: ignore[no-untyped-def]
    """Change moves of arcs with this much slack so that every node gets what it lacks; return whether that worked.

    A spanning forest of such arcs is built, and what nodes lack is sent along it from the leaves on. `lacking` has one
    entry per node and adds up to 0; it is used up.
    """
    nodes = lacking.size
    above = np.arange(nodes)
    chosen = np.empty(nodes, np.int64)
    count = 0
    for i in range(tail.size):
        if count == nodes - 1:
            break
        if moves[i] - low[i] >= slack and high[i] - moves[i] >= slack and tail[i] != head[i]:
            a, b = _root(above, tail[i]), _root(above, head[i])
            if a != b:
                above[a] = b
                chosen[count] = i
                count += 1
    degree = np.zeros(nodes, np.int64)
    links = np.zeros(nodes, np.int64)  # the exclusive or of the arcs at a node: at a leaf, its only arc
    for k in range(count):
        i = chosen[k]
        for node in (tail[i], head[i]):
            degree[node] += 1
            links[node] ^= i
    for first in range(nodes):
        node = first
        while degree[node] == 1:
            i = links[node]
            other = head[i] if tail[i] == node else tail[i]
            amount = lacking[node]
            moves[i] += amount if head[i] == node else -amount
            lacking[other] += amount
            lacking[node] = 0
            degree[node] = 0
            degree[other] -= 1
            links[other] ^= i
            node = other
    for node in range(nodes):
        if lacking[node] != 0:
            return False
    for k in range(count):
        i = chosen[k]
        if moves[i] < low[i] or moves[i] > high[i]:
            return False
    return True
