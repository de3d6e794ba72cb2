"""Cases for the tests of noise on a null space, and dense oracles that share no code with the laws."""

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

import holdfast as hf

TREE = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1, 1, 2, 2])
DEEP = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1, 3, 3, 2, 2, 7])
CHAIN = hf.Hierarchy.from_parents([-1, 0, 1, 2, -1, 4, 4])
MARGINS = hf.margins((3, 2, 2), [(), (0,), (0, 1), (1, 2)])
WORKLOAD = np.random.default_rng(1).integers(0, 3, (5, 9))
KINDS = ("add-remove", "replace-one")
GAUSSIAN = ("optimal", "gaussian", "correlated")


def cells(shape, keep):
    return hf.margins(shape), hf.invariant(hf.exact_margins(shape, keep))


def exact(tree, nodes, by=1):
    query = hf.counts(tree, by=by)
    return query, hf.consistent(query) & hf.invariant(hf.exact_nodes(tree, nodes, by=by))


CASES = {
    "total": (hf.histogram(6), hf.invariant(np.ones((1, 6), dtype=int))),
    "two totals": (hf.histogram(6), hf.invariant([[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 1, 0]])),
    "weighted total": (hf.histogram(4), hf.invariant([[1, 2, 3, 1]])),
    "margins of cells": cells((3, 4), [(0,), (1,)]),
    "one margin of cells": cells((2, 3, 2), [(0, 1), (2,)]),
    "consistent margins": (MARGINS, hf.consistent(MARGINS)),
    "consistent margins, one exact": (
        MARGINS,
        hf.consistent(MARGINS) & hf.invariant(np.eye(MARGINS.n, dtype=int)[[1, 2, 3]]),
    ),
    "consistent tree": (hf.counts(TREE), hf.consistent(TREE)),
    "exact root": exact(TREE, [0]),
    "exact level": exact(TREE, [1, 2]),
    "exact node below an open one": exact(DEEP, [3]),
    "exact leaf": exact(DEEP, [4, 2]),
    "open chain beside an exact tree": exact(CHAIN, [4]),
    "categories": exact(TREE, [1], by=2),
    "tree without consistency": (hf.counts(TREE), hf.invariant(hf.exact_nodes(TREE, [0]))),
    "workload": (hf.workload(WORKLOAD), hf.invariant([[1, 1, 0, 0, 0]])),
    "prefix sums": (hf.workload(np.tril(np.ones((8, 8), dtype=int))), hf.invariant([[0] * 7 + [1]])),
}


def budget(law):
    return {"epsilon": 1, "delta": 1e-6} if law in GAUSSIAN else {"epsilon": 1}


def projector(query, constraint):
    """Π_N by a pseudo-inverse."""
    system = constraint.system(query.n)
    rows = np.vstack([system.equalities.A.toarray(), system.invariants.A.toarray()]).astype(float)
    return np.eye(query.n) - np.linalg.pinv(rows) @ rows


def differences(query, constraint, neighbours):
    """Π_N d for every difference, as rows."""
    return query.differences(neighbours) @ projector(query, constraint)


def covariance(mechanism):
    """The covariance of the noise, from the variances of weighted sums."""
    n = mechanism.query.n
    variance = mechanism._spread.variance_of
    single = np.array([variance(row) for row in np.eye(n)])
    result = np.diag(single)
    for i in range(n):
        for j in range(i):
            both = np.zeros(n)
            both[[i, j]] = 1
            result[i, j] = result[j, i] = (variance(both) - single[i] - single[j]) / 2
    return result


def largest_square(sigma, changes):
    """max dᵀΣ⁺d, after checking that every d lies where there is noise."""
    values, vectors = np.linalg.eigh(sigma)
    kept = values > 1e-9 * values[-1]
    coordinates = changes @ vectors
    assert np.abs(coordinates[:, ~kept]).max(initial=0.0) < 1e-7
    return float((coordinates[:, kept] ** 2 / values[kept]).sum(axis=1).max())


def least_sums(left, points):
    """Σt and t of min{Σt : left·t = u, t ≥ 0} for every row u of points, all by one linear program of blocks."""
    basis = np.linalg.svd(left, full_matrices=False)[0]
    basis = basis[:, : np.linalg.matrix_rank(left, tol=1e-9)]  # equalities that depend on others disturb the solver
    blocks = sparse.kron(sparse.eye_array(len(points)), basis.T @ left, format="csr")
    found = linprog(np.ones(left.shape[1] * len(points)), A_eq=blocks, b_eq=(points @ basis).ravel())
    assert found.status == 0
    chosen = found.x.reshape(len(points), -1)
    return chosen.sum(axis=1), chosen


def gauges(columns, pairs, points):
    """‖u‖_K of every row u, for K = conv(± columns), or of the columns' differences, by a linear program."""
    count, left = columns.shape[1], np.hstack([columns, -columns])
    if pairs:
        left = np.vstack([left, np.r_[np.ones(count), -np.ones(count)]])
        points = np.column_stack([points, np.zeros(len(points))])
    return least_sums(left, points)[0] * (0.5 if pairs else 1.0)
