"""Real least squares onto equalities and bounds: Newton's method on the prices of the equalities.

At prices p the best moves are x = cut(v·Aᵀp/2) to their bounds, and prices are right when A x = gap. The function whose
gradient is A x − gap is convex and piecewise quadratic; its curvature is A D Aᵀ with D = v/2 on the outputs that are
not cut: for two crossed margins a graph of their rows, so a table of 200 × 200 takes steps in 399 unknowns. The first
step uses one factorisation that all tables of a problem share.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import lapack
from scipy.sparse import linalg as sparse_linalg

from holdfast.arguments import Refused
from holdfast.arrays import Floats, compiled, kept, put
from holdfast.onto.grid.grid import Shape, Task

#: Up to this many rows the curvature is kept as a dense matrix.
MOST_DENSE = 1_500
#: Rounds before the search is given up, and lengths tried in one round.
MOST_ROUNDS, MOST_TRIALS = 300, 80
#: Conjugate gradients: how near they must come, and after how many products a factorisation is made instead.
NEAR_ENOUGH, MOST_GRADIENTS = 1e-9, 150
#: Added to the curvature, as a share of its diagonal, at least and at most.
RIDGE, MOST_RIDGE = 1e-13, 1e-4
UNFOUND = "the nearest point was not found in doubles: choose nearer weights, or fewer constraints"
#: What is missed counts as nothing below this share of the sizes that cancel in it; as little, where no step helps.
ENOUGH, NEARLY = 1e-13, 1e-10


@compiled
def _curvature(starts, rows, entries, free, matrix):  # type: ignore[no-untyped-def]
    """Add A D Aᵀ to the lower triangle of a matrix; D = `free`, 0 at outputs that are cut."""
    for i in range(free.size):
        if free[i] > 0.0:
            for k in range(starts[i], starts[i + 1]):
                for j in range(starts[i], starts[i + 1]):
                    if rows[j] <= rows[k]:
                        matrix[rows[k], rows[j]] += entries[k] * entries[j] * free[i]


@compiled
def _diagonal(starts, rows, entries, free, result):  # type: ignore[no-untyped-def]
    """The diagonal of A D Aᵀ, added to `result`."""
    for i in range(free.size):
        if free[i] > 0.0:
            for k in range(starts[i], starts[i + 1]):
                result[rows[k]] += entries[k] * entries[k] * free[i]
    return result


@compiled(inner=True)
def _conjugate_gradients(starts, rows, entries, free, diagonal, ridge, right, step):  # type: ignore[no-untyped-def]
    """Solve (A D Aᵀ + ridge) step = right, scaled by the diagonal; return whether it came near enough soon enough."""
    residual = right.copy()
    direction = residual / diagonal
    product = np.empty(right.size)
    size = residual @ direction
    enough = size * NEAR_ENOUGH**2
    for _ in range(MOST_GRADIENTS):
        if size <= enough:
            return True
        put(ridge * direction, product)
        for i in range(free.size):
            if free[i] > 0.0:
                c = 0.0
                for k in range(starts[i], starts[i + 1]):
                    c += entries[k] * direction[rows[k]]
                c *= free[i]
                for k in range(starts[i], starts[i + 1]):
                    product[rows[k]] += entries[k] * c
        length = size / (direction @ product)
        step += length * direction
        residual -= length * product
        scaled = residual / diagonal
        before, size = size, residual @ scaled
        direction = scaled + size / before * direction
    return size <= enough


@compiled
def _slope_at(starts, rows, entries, prices, step, length, spreads, low, high, gap, moves, slope):  # type: ignore[no-untyped-def]
    """Fill in moves and A x − gap at prices + length·step; return the derivative along the step."""
    put(-gap, slope)
    for i in range(moves.size):
        c = 0.0
        for k in range(starts[i], starts[i + 1]):
            c += entries[k] * (prices[rows[k]] + length * step[rows[k]])
        x = min(max(spreads[i] * c, low[i]), high[i])
        moves[i] = x
        for k in range(starts[i], starts[i + 1]):
            slope[rows[k]] += entries[k] * x
    return slope @ step


@compiled
def _search(starts, rows, entries, prices, step, spreads, low, high, gap, before, moves, slope):  # type: ignore[no-untyped-def]
    """A length near the minimum along the step, where the derivative is a tenth of what it was; moves and slope there.

    The derivative rises along the step: the full step is tried first, then the root is enclosed and halved or cut.
    """
    left, at_left, right, at_right = 0.0, before, np.inf, np.inf
    length = 1.0
    for turn in range(MOST_TRIALS):
        found = _slope_at(starts, rows, entries, prices, step, length, spreads, low, high, gap, moves, slope)
        if abs(found) <= 0.1 * abs(before):
            break
        if found < 0.0:
            left, at_left = length, found
        else:
            right, at_right = length, found
        if right == np.inf:
            length *= 8.0
        elif turn % 2 == 0:
            length = left + (right - left) * at_left / (at_left - at_right)
        elif left > 0.0:
            length = np.sqrt(left * right) if right > 4.0 * left else 0.5 * (left + right)
        else:
            length = right / 16.0
    return length


@compiled
def _ridge(diagonal, missed):  # type: ignore[no-untyped-def]
    """What is added to the curvature: a share of its diagonal, or of the mean where no output of a row is free.

    The curvature is 0 along some prices where many outputs are cut; it is raised a little, less and less near the end.
    """
    share, total, count = min(max(0.1 * missed, RIDGE), MOST_RIDGE), 0.0, 0
    for value in diagonal:
        if value > 0.0:
            total += value
            count += 1
    flat = 1e-3 * total / count if count > 0 else 1.0
    return np.where(diagonal > 0.0, share * diagonal, flat)


@compiled
def _rounds(starts, rows, entries, prices, spreads, low, high, gap, moves, slope, size):  # type: ignore[no-untyped-def]
    """Rounds of Newton's method with conjugate gradients.

    Return what is still missed, and whether the next round needs a factorisation.
    """
    missed = np.inf
    for _ in range(MOST_ROUNDS):
        reach = np.ones(gap.size)
        for i in range(moves.size):
            for k in range(starts[i], starts[i + 1]):
                reach[rows[k]] += abs(entries[k] * moves[i])
        put(np.maximum(size, reach), size)
        missed = np.abs(slope / size).max()
        if missed <= ENOUGH:
            return missed, False
        free = np.where((low < moves) & (moves < high), spreads, 0.0)
        diagonal = _diagonal(starts, rows, entries, free, np.zeros(gap.size))
        ridge = _ridge(diagonal, missed)
        step = np.zeros(gap.size)
        if not _conjugate_gradients(starts, rows, entries, free, diagonal + ridge, ridge, -slope, step):
            return missed, True
        before = slope @ step
        if not before < 0.0:
            return missed, False
        length = _search(starts, rows, entries, prices, step, spreads, low, high, gap, before, moves, slope)
        prices += length * step
    return missed, False


def solve(task: Task) -> tuple[Floats, Floats]:
    """Return the real moves with the least Σ w x² and the prices of the equalities. Refuse where they are not found."""
    shape = task.shape
    columns = shape.columns
    csc = (columns.indptr, columns.indices, columns.data.astype(np.float64))
    spreads = 1 / shape.weights
    low, high = task.real_bounds
    gap = task.gap.astype(np.float64)
    moves, slope, size = np.empty(spreads.size), np.empty(gap.size), np.abs(gap) + 1.0
    prices = np.asarray(_unbounded(shape)(gap))
    _slope_at(*csc, prices, prices, 0.0, spreads, low, high, gap, moves, slope)
    for _ in range(MOST_ROUNDS):
        missed, factorise = _rounds(*csc, prices, spreads, low, high, gap, moves, slope, size)
        if not factorise:
            break
        step = _factorised_step(shape, csc, np.where((low < moves) & (moves < high), spreads, 0.0), slope, missed)
        before = float(slope @ step)
        if not before < 0.0:
            break
        prices += _search(*csc, prices, step, spreads, low, high, gap, before, moves, slope) * step
    if missed <= NEARLY:
        return moves, 2 * prices
    raise Refused(UNFOUND)


def _factorised_step(shape: Shape, csc: Any, free: Floats, slope: Floats, missed: float) -> Floats:
    """The step to the minimum of the local quadratic, where conjugate gradients are slow."""
    ridge = _ridge(_diagonal(csc[0], csc[1], csc[2], free, np.zeros(slope.size)), missed)
    if slope.size <= MOST_DENSE:
        matrix = np.zeros((slope.size, slope.size))
        _curvature(csc[0], csc[1], csc[2], free, matrix)
        return _dense_step(matrix, ridge, slope)
    rows = shape.rows.astype(np.float64)
    gram = rows @ sparse.diags_array(free, format="csr") @ rows.T + sparse.diags_array(ridge)
    return np.asarray(-sparse_linalg.splu(sparse.csc_array(gram), options={"SymmetricMode": True}).solve(slope))


def _dense_step(matrix: Floats, ridge: Floats, slope: Floats) -> Floats:
    diagonal, added = np.einsum("ii->i", matrix), ridge
    for _ in range(12):
        diagonal += added
        factor, failed = lapack.dpotrf(matrix.T, lower=0, clean=0)
        if not failed:
            return np.asarray(lapack.dpotrs(factor, -slope, lower=0)[0])
        added = added * 10.0
    raise Refused(UNFOUND)


@kept
def _unbounded(shape: Shape) -> Any:
    """The solution operator of A V Aᵀ, the first step from prices 0 without bounds."""
    scaled = shape.rows.astype(np.float64) @ sparse.diags_array(1 / np.sqrt(shape.weights), format="csr")
    gram = sparse.csc_array(scaled @ scaled.T)
    if gram.shape[0] > MOST_DENSE:
        return sparse_linalg.splu(gram, options={"SymmetricMode": True}).solve
    factor, _ = lapack.dpotrf(gram.toarray(order="F"), lower=0)
    return lambda right: lapack.dpotrs(factor, right, lower=0)[0]
