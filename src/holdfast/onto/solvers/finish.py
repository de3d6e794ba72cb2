"""From a solver's doubles to whole steps that satisfy everything exactly.

Moves are rounded to steps and cut to their bounds; what then misses an equality by a few steps is put back, in whole
numbers, on outputs that have room: along a forest of a network, or on a basis of the columns.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg, sparse

from holdfast.arguments import LARGEST
from holdfast.arrays import Floats, Ints
from holdfast.constraints.system.rows import products
from holdfast.exact.whole_rows import WholeRows
from holdfast.onto.grid.grid import MOST_FINER, MOST_REDUCED, Task
from holdfast.onto.network_flows import Arcs, cheapest_moves, send, send_along_forest

#: Room, in steps, that an output must have on both sides to take part, largest first.
ROOM = (1 << 22, 1 << 14, 1 << 8, 1 << 4, 1)
#: A cut output is within this many steps of its bound; rows that solvers leave this near count as tight.
NEAR = 1 << 6
#: Columns looked at for a basis, at first, as a multiple of the rows.
WIDTH = 4
#: Largest number of entries of a dense matrix made here.
MOST_ENTRIES = 1 << 26


def rounded(task: Task, real: Floats) -> Ints:
    """Real moves to the nearest steps within bounds."""
    near = np.rint(np.clip(real, -4e18, 4e18)).astype(np.int64)
    return np.asarray(np.clip(near, task.low, task.high))


def finish_network(task: Task, arcs: Arcs, real: Floats) -> Ints | None:
    """Whole moves next to real ones on a network; None where there are none.

    Where no forest has room, as little as possible is added to the rounded moves, in all: many steps go at once, where
    the cheapest squares would take steps of the grid one by one.
    """
    moves = rounded(task, real)
    lacking = balances(task, arcs, moves)
    if not lacking.any():
        return moves
    for room in ROOM:
        tried = moves.copy()
        if send_along_forest(arcs.tail, arcs.head, lacking.copy(), tried, task.low, task.high, room):
            return tried
    added = np.zeros_like(moves)
    ends, alike = (arcs.tail, arcs.head, arcs.order, arcs.starts), np.ones(moves.size)
    low, high = task.low - moves, task.high - moves
    sent = send(*ends, lacking, alike, low, high, True, added, np.zeros(lacking.size))
    return moves + added if sent else None


def balances(task: Task, arcs: Arcs, moves: Ints) -> Ints:
    missing = (task.gap - products(task.shape.rows, moves[:, None])[:, 0]) * arcs.signs
    return np.append(missing, -missing.sum()).astype(np.int64)


def cheapest_on_network(
    task: Task, arcs: Arcs, prices: Floats, coin: int, *, absolute: bool
) -> tuple[Ints | None, Floats]:
    """The cheapest whole moves on a network and their prices, started from `prices` of the rows; ties by the coin."""
    at_nodes = np.append(prices * arcs.signs, 0.0)
    moves = np.zeros(task.start.size, dtype=np.int64)
    weights = task.shape.weights
    cheapest_moves(arcs.tail, arcs.head, at_nodes, weights, task.low, task.high, absolute, np.uint64(coin >> 1), moves)
    lacking = balances(task, arcs, moves)
    ends = (arcs.tail, arcs.head, arcs.order, arcs.starts)
    sent = send(*ends, lacking, weights, task.low, task.high, absolute, moves, at_nodes)
    return (moves if sent else None), (at_nodes[:-1] - at_nodes[-1]) * arcs.signs


def finish(task: Task, real: Floats) -> tuple[Task, Ints] | None:
    """Whole moves next to real ones for any rows, on the task's grid or a finer one; None where none are found."""
    near = rounded(task, real)
    for moves in (_snapped(task, near), near):
        found = _repaired(task, moves)
        if found is not None:
            return found
    return None


def _snapped(task: Task, moves: Ints) -> Ints:
    low = (task.low > -LARGEST) & (moves - np.maximum(task.low, -LARGEST // 2) < NEAR)
    high = (task.high < LARGEST) & (np.minimum(task.high, LARGEST // 2) - moves < NEAR)
    return np.asarray(np.where(low, task.low, np.where(high, task.high, moves)))


def _repaired(task: Task, moves: Ints) -> tuple[Task, Ints] | None:
    """Put back what is missed: equalities, and inequalities that are nearly tight as equalities."""
    shape = task.shape
    over = products(shape.inequalities.A, moves[:, None])[:, 0] - task.least
    tight = np.flatnonzero(over < NEAR)
    for _ in range(8):
        rows = sparse.csr_array(sparse.vstack([shape.rows, shape.inequalities.A[tight]], format="csr"))
        missing = np.concatenate([task.gap, task.least[tight]]) - products(rows, moves[:, None])[:, 0]
        found = _on_a_basis(task, rows, missing, moves) if missing.any() else (task, moves)
        if found is None:
            return None
        finer, result = found
        broken = products(shape.inequalities.A, result[:, None])[:, 0] < finer.least
        if not broken.any():
            return found
        tight = np.union1d(tight, np.flatnonzero(broken))
    return None


def _on_a_basis(task: Task, rows: sparse.csr_array, missing: Ints, moves: Ints) -> tuple[Task, Ints] | None:
    """Change outputs with room such that the rows get what they miss."""
    room = np.minimum(moves - np.maximum(task.low, -LARGEST // 2), np.minimum(task.high, LARGEST // 2) - moves)
    order = np.argsort(-room, kind="stable")
    order = order[room[order] > 0]
    count, width = rows.shape[0], WIDTH * rows.shape[0]
    while order.size and count * min(width, order.size) <= MOST_ENTRIES:
        some = order[:width]
        found = _changed(task, moves, some, _solved(rows[:, some].toarray().astype(np.float64), missing))
        if found is not None:
            return found
        if width >= order.size:
            break
        width *= 4
    some = order[:MOST_REDUCED]
    if not some.size or count > MOST_REDUCED:
        return None
    return _changed(task, moves, some, _solved_in_lattice(rows[:, some].toarray(), missing))


def _changed(task: Task, moves: Ints, some: Ints, solved: tuple[Ints, int] | None) -> tuple[Task, Ints] | None:
    """Moves with some outputs changed, on a grid so many times finer; None where they leave their bounds."""
    if solved is None or solved[1] > task.most_finer:
        return None
    change, parts = solved
    finer = task.finer(parts) if parts > 1 else task
    result = moves * parts
    result[some] += change
    return (finer, result) if ((result >= finer.low) & (result <= finer.high)).all() else None


def _solved(matrix: Floats, missing: Ints) -> tuple[Ints, int] | None:
    """Whole numbers with matrix @ change = missing · parts, on independent columns, and the least such `parts`."""
    _, upper, pivots = linalg.qr(matrix, mode="economic", pivoting=True)
    sizes = np.abs(np.diagonal(upper))
    rank = int((sizes > 1e-9 * sizes[0]).sum())
    basis = matrix[:, pivots[:rank]]
    solution = linalg.lstsq(basis, missing.astype(np.float64))[0]
    change = np.zeros(matrix.shape[1], dtype=np.int64)
    for parts in range(1, MOST_FINER + 1):
        near = np.rint(solution * parts)
        if (basis @ near == missing * parts).all():
            change[pivots[:rank]] = near.astype(np.int64)
            return change, parts
    return None


def _solved_in_lattice(matrix: Ints, missing: Ints) -> tuple[Ints, int] | None:
    """The same with short whole vectors instead of a basis of columns, whose determinant may be large."""
    found = WholeRows.of(matrix.tolist(), matrix.shape[1]).near([int(x) for x in missing])
    if found is None or max(map(abs, found[0]), default=0) >= LARGEST // 2:
        return None
    return np.array(found[0], dtype=np.int64), found[1]
