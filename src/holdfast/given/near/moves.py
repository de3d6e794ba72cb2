"""Moves of a walk on the whole vectors of a null space.

They hold a lattice basis, so they make every whole vector of the null space. More of them let a walk forget its start
sooner.
"""

from __future__ import annotations

import itertools

import numpy as np
from scipy import sparse

from holdfast.arrays import Ints
from holdfast.constraints.system.crossed import crossed_table
from holdfast.given.problem import Problem

#: Moves that are enough: sums and differences of moves are added up to this number.
ENOUGH = 1_500
#: Swaps of a two-way table are all used up to this number of them.
MOST_SWAPS = 100_000
#: Rounds in which sums and differences are looked at.
ROUNDS = 3


def found_moves(problem: Problem) -> sparse.csr_array:
    """Moves (moves, n) that make every whole vector of the null space: swaps, or a lattice basis with sparse sums."""
    cells = crossed_table(problem.system)
    if cells is not None:
        rows, columns = cells.shape
        if rows * (rows - 1) * columns * (columns - 1) // 4 <= MOST_SWAPS:
            return swaps(cells, problem.law.n)
    return enriched(sparse.csr_array(problem.space.lattice_basis().T))


def swaps(cells: Ints, n: int) -> sparse.csr_array:
    """Every 2×2 swap of a two-way table of outputs."""
    rows, columns = cells.shape
    a, b = np.array(list(itertools.combinations(range(rows), 2))).T
    c, d = np.array(list(itertools.combinations(range(columns), 2))).T
    corners = [(a, c), (b, d), (a, d), (b, c)]
    places = np.stack([cells[i[:, None], j[None, :]].ravel() for i, j in corners], axis=1)
    values = np.tile(np.array([1, 1, -1, -1], dtype=np.int64), len(places))
    return sparse.csr_array((values, places.ravel(), 4 * np.arange(len(places) + 1)), shape=(len(places), n))


def enriched(basis: sparse.csr_array) -> sparse.csr_array:
    """The basis, and sums and differences of moves that share a coordinate and are not longer than its longest."""
    known: dict[bytes, Ints] = {}

    def add(vector: Ints) -> bool:
        filled = np.flatnonzero(vector)
        if filled.size == 0:
            return False
        vector = vector // np.gcd.reduce(vector[filled]) * np.sign(vector[filled[0]])
        key = vector.tobytes()
        if key in known:
            return False
        known[key] = vector
        return True

    for vector in basis.toarray():
        add(np.asarray(vector, dtype=np.int64))
    longest = max((np.count_nonzero(vector) for vector in known.values()), default=0)
    fresh = list(known.values())
    for _ in range(ROUNDS):
        found = []
        everything = np.array(list(known.values()))
        for vector in fresh:
            touching = everything[(everything[:, vector != 0] != 0).any(axis=1)]
            for other in np.concatenate([touching + vector, touching - vector]):
                if len(known) >= ENOUGH:
                    break
                if np.count_nonzero(other) <= longest and add(other):
                    found.append(known[next(reversed(known))])
        fresh = found
        if not fresh or len(known) >= ENOUGH:
            break
    return sparse.csr_array(np.array(list(known.values())).reshape(len(known), basis.shape[1]))
