"""Cheapest whole moves on a network with convex costs: successive shortest paths from optimal prices.

At any prices each arc takes its cheapest whole move by itself, which keeps all reduced costs at 0 or above; what is
then out of balance is sent along shortest paths, many at a time, and distances are added to the prices. Every step
keeps the reduced costs, so the end is the *global* optimum and its prices prove it
(docs/theory/update-in-general.md). Starting from the prices of the real problem, few units are left to send. With equal
weights prices and costs are whole numbers in doubles, and nothing is rounded.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arguments import LARGEST
from holdfast.arrays import Ints, compiled, kept, put
from holdfast.onto.grid.grid import Shape
from holdfast.trees.shape.ties import tie_hash

NONE = np.int64(LARGEST)
#: Numbers up to which nothing is compiled.
SMALL = 5_000
#: Reduced costs below this share of what cancels in them are 0; whole costs are never touched by it.
ROUNDING = 1e-14


@compiled(inner=True)
def _rise(weight, move, absolute):  # type: ignore[no-untyped-def]
    """What one step more costs."""
    if absolute:
        return weight if move >= 0 else -weight
    return weight * (2.0 * move + 1.0)


@compiled(inner=True)
def _stretch(move, up, absolute):  # type: ignore[no-untyped-def]
    """How many steps cost the same."""
    if not absolute:
        return np.int64(1)
    if up:
        return NONE if move >= 0 else -move
    return NONE if move <= 0 else move


@compiled(beyond=SMALL)
def cheapest_moves(tail, head, prices, weights, low, high, absolute, coin, moves):  # type: ignore[no-untyped-def]
    """Fill in each arc's cheapest whole move at these prices; of two equally cheap ones the hash decides."""
    for i in range(moves.size):
        c = prices[head[i]] - prices[tail[i]]
        if absolute:
            move = np.int64(0)
        else:
            middle = np.floor(c / (2.0 * weights[i]))
            move = np.int64(min(max(middle, -4.0e18), 4.0e18))
        move = min(max(move, low[i]), high[i])
        while move < high[i]:
            rise = _rise(weights[i], move, absolute)
            if rise > c or (rise == c and (absolute or tie_hash(np.uint64(i) ^ coin) & np.uint64(1) == np.uint64(0))):
                break
            move = high[i] if absolute and move >= 0 else move + min(_stretch(move, True, absolute), high[i] - move)
        while move > low[i]:
            fall = _rise(weights[i], move - 1, absolute)
            if fall <= c:
                break
            move = low[i] if absolute and move <= 0 else move - min(_stretch(move, False, absolute), move - low[i])
        moves[i] = move


@compiled(beyond=SMALL)
def send(tail, head, order, starts, lacking, weights, low, high, absolute, moves, prices):  # type: ignore[no-untyped-def]
    """Balance all nodes at least cost; return whether everything could be sent.

    `lacking` has one entry per node (below 0: too much) and adds up to 0. `moves` and `prices` are changed.
    """
    nodes = lacking.size
    distance = np.empty(nodes)
    done = np.empty(nodes, np.bool_)
    while True:
        _send_freely(tail, head, order, starts, lacking, weights, low, high, absolute, moves, prices)
        queue = [(0.0, np.int64(0))]
        queue.pop()
        distance[:], done[:] = np.inf, False
        for source in np.flatnonzero(lacking < 0):
            distance[source] = 0.0
            heapq.heappush(queue, (0.0, source))
        if len(queue) == 0:
            return True
        found = False
        reached = 0.0
        while len(queue) > 0:
            reached, node = heapq.heappop(queue)
            if done[node] or reached > distance[node]:
                continue
            done[node] = True
            if lacking[node] > 0:
                found = True
                break
            for k in range(starts[node], starts[node + 1]):
                i = order[k]
                other = head[i] if tail[i] == node else tail[i]
                if not done[other]:
                    cost = _reduced(tail, weights, low, high, absolute, moves, prices, i, node, other)
                    if reached + cost < distance[other]:
                        distance[other] = reached + cost
                        heapq.heappush(queue, (distance[other], np.int64(other)))
        if not found:
            return False
        prices += np.minimum(distance, reached)


@compiled(inner=True)
def _reduced(tail, weights, low, high, absolute, moves, prices, i, node, other):  # type: ignore[no-untyped-def]
    """What one step along arc i from node to other costs above the prices: 0 or more; infinite where it is full."""
    if tail[i] == node:
        if moves[i] >= high[i]:
            return np.inf
        cost = _rise(weights[i], moves[i], absolute)
    else:
        if moves[i] <= low[i]:
            return np.inf
        cost = -_rise(weights[i], moves[i] - 1, absolute)
    gain = prices[other] - prices[node]
    left = cost - gain
    return left if left > ROUNDING * (abs(cost) + abs(prices[other]) + abs(prices[node])) else 0.0


@compiled(inner=True)
def _send_freely(tail, head, order, starts, lacking, weights, low, high, absolute, moves, prices):  # type: ignore[no-untyped-def]
    """Send as much as possible along arcs that cost nothing at these prices: blocking flows on levels (Dinic)."""
    nodes = lacking.size
    level = np.empty(nodes, np.int64)
    queue = np.empty(nodes, np.int64)
    at = np.empty(nodes, np.int64)
    path = np.empty(nodes, np.int64)
    while True:
        count = 0
        level[:] = -1
        for source in np.flatnonzero(lacking < 0):
            level[source] = 0
            queue[count] = source
            count += 1
        first, end = 0, nodes + 1
        while first < count:
            node = queue[first]
            first += 1
            if level[node] >= end:
                break
            if lacking[node] > 0:
                end = level[node]
                break
            for k in range(starts[node], starts[node + 1]):
                i = order[k]
                other = head[i] if tail[i] == node else tail[i]
                if level[other] < 0 and (
                    _reduced(tail, weights, low, high, absolute, moves, prices, i, node, other) == 0.0
                ):
                    level[other] = level[node] + 1
                    queue[count] = other
                    count += 1
        if end > nodes:
            return
        put(starts[:-1], at)
        for source in np.flatnonzero(level == 0):
            node, depth = source, 0
            while lacking[source] < 0:
                if lacking[node] > 0:
                    _send_one(tail, head, path, depth, lacking, low, high, absolute, moves, source, node)
                    node, depth = source, 0
                    continue
                ahead = -1
                while at[node] < starts[node + 1]:
                    i = order[at[node]]
                    other = head[i] if tail[i] == node else tail[i]
                    if level[other] == level[node] + 1 and (
                        _reduced(tail, weights, low, high, absolute, moves, prices, i, node, other) == 0.0
                    ):
                        ahead = other
                        break
                    at[node] += 1
                if ahead >= 0:
                    path[depth] = order[at[node]]
                    depth += 1
                    node = ahead
                elif depth == 0:
                    break
                else:  # a dead end: step back and try the next arc there
                    depth -= 1
                    i = path[depth]
                    node = tail[i] if head[i] == node else head[i]
                    at[node] += 1


@compiled(inner=True)
def _send_one(tail, head, path, depth, lacking, low, high, absolute, moves, source, target):  # type: ignore[no-untyped-def]
    """Send along a path as much as costs the same."""
    amount = min(lacking[target], -lacking[source])
    node = source
    for k in range(depth):
        i = path[k]
        if tail[i] == node:
            amount = min(amount, high[i] - moves[i], _stretch(moves[i], True, absolute))
            node = head[i]
        else:
            amount = min(amount, moves[i] - low[i], _stretch(moves[i], False, absolute))
            node = tail[i]
    lacking[source] += amount
    lacking[target] -= amount
    node = source
    for k in range(depth):
        i = path[k]
        if tail[i] == node:
            moves[i] += amount
            node = head[i]
        else:
            moves[i] -= amount
            node = tail[i]


# Equalities that are the balances of a network: every output is an arc between two rows, or a row and the ground.
#
# So it is where each output occurs in at most two rows, with coefficients ±1, and the rows can be given signs such that
# it enters one and leaves the other: two crossed margins, trees, two hierarchies over the same leaves, one sum. Then
# whole right-hand sides and bounds have whole solutions next to real ones, and whole steps can be sent along paths.


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


@compiled(beyond=SMALL)
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
