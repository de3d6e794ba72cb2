"""Laws of whole noise listed on a window, point by point, by code that shares nothing with the samplers."""

import itertools
from fractions import Fraction

import numpy as np

import holdfast as hf

TREE = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1])
UNEVEN = [1, 4, 30]
CROSSED = (2, 3)


def prefix_sums(n):
    return hf.workload(np.tril(np.ones((n, n), dtype=int))), hf.invariant([[0] * (n - 1) + [1]])


CASES = {
    "histogram with total": (hf.histogram(3), hf.invariant([[1, 1, 1]]), {"weights": UNEVEN}),
    "two margins": (
        hf.margins(CROSSED),
        hf.invariant(hf.exact_margins(CROSSED, [(0,), (1,)])),
        {"weights": [1, 2, 9, 1, 1, 1]},
    ),
    "tree with exact root": (hf.counts(TREE), hf.consistent(TREE) & hf.invariant(hf.exact_nodes(TREE, [0])), {}),
    "prefix sums": (*prefix_sums(4), {}),
    "weighted total": (hf.histogram(3), hf.invariant([[1, 2, 1]]), {}),
}


def made(case, neighbours="add-remove", law="optimal", **budget):
    query, constraint, words = CASES[case]
    return hf.extend(
        query, constraint, law=law, neighbours=neighbours, integer=True, **words if law == "optimal" else {}, **budget
    )


def gram(mechanism):
    """The form as a table of fractions in the coordinates of the basis: Uᵀ D U."""
    form = mechanism.source.drawn._form
    size = len(form.weights)
    unit = [[Fraction(int(i == j)) + Fraction(int(form.upper[i, j]), 2**30) for j in range(size)] for i in range(size)]
    rows = range(size)
    return [[sum(form.weights[k] * unit[k][i] * unit[k][j] for k in rows) for j in rows] for i in rows]


def _coordinates(mechanism, vectors):
    basis = mechanism.source.drawn._form.basis
    whole = np.rint(np.linalg.lstsq(basis.astype(float), np.asarray(vectors, dtype=float).T, rcond=None)[0]).astype(int)
    assert np.array_equal(basis @ whole, np.asarray(vectors).T)
    return whole


def exact_form(mechanism, vectors):
    """zᵀΣ⁻¹z/σ² of whole vectors (m, n), in fractions, from the factor that defines the law."""
    table = gram(mechanism)
    size = range(len(table))
    return [
        sum(table[i][j] * k[i] * k[j] for i in size for j in size) for k in _coordinates(mechanism, vectors).T.tolist()
    ]


def near_form(mechanism, vectors):
    """The same in doubles, for many vectors."""
    table = np.array([[float(entry) for entry in row] for row in gram(mechanism)])
    whole = _coordinates(mechanism, vectors)
    return np.einsum("im,ij,jm->m", whole, table, whole)


def listed(mechanism, reach):
    """All points of the lattice in a box, by trying every whole point of the coordinates that determine the others."""
    query, system = mechanism.query, mechanism.held
    rows = np.vstack([system.null_space().rows.toarray(), query.consistency().toarray()])
    free = _free_columns(rows)
    bound = [c for c in range(query.n) if c not in free]
    grid = np.array(list(itertools.product(range(-reach, reach + 1), repeat=len(free))))
    result = np.zeros((len(grid), query.n))
    result[:, free] = grid
    result[:, bound] = -np.linalg.lstsq(rows[:, bound], rows[:, free] @ grid.T, rcond=None)[0].T
    near = np.rint(result)
    return near[np.abs(result - near).max(axis=1) < 1e-9].astype(int)


def _free_columns(rows):
    """Columns whose removal leaves the rank of the rows as it is."""
    kept = list(range(rows.shape[1]))
    free = []
    rank = np.linalg.matrix_rank(rows)
    for c in range(rows.shape[1]):
        others = [k for k in kept if k != c]
        if np.linalg.matrix_rank(rows[:, others]) == rank:
            kept, free = others, [*free, c]
    return free


def shared(mechanism, statement):
    """Every change of the statement's records that keeps all equalities, by listing the whole difference set."""
    changes = mechanism.query.differences(statement.neighbours)
    return changes[(mechanism.held.null_space().rows @ changes.T == 0).all(axis=0)]
