"""Changes of a few records: those a statement is about, found without the library's own difference sets."""

from __future__ import annotations

import itertools

import numpy as np
from scipy import sparse

from holdfast.arguments import Refused
from holdfast.arrays import Ints
from holdfast.constraints import NullSpace, System
from holdfast.queries import Neighbours, Query

#: Cells, or vectors of a basis, that are combined with each other at most.
COMBINED = 40
#: Changes that are kept at most.
KEPT = 48


def records_changed(change: Ints, relation: Neighbours) -> int:
    """How many records a change of cell counts takes; more than any statement allows where it cannot be made."""
    if relation.adds:
        return int(np.abs(change).sum())
    return int(np.abs(change).sum()) // 2 if change.sum() == 0 else np.iinfo(np.int64).max


def kept_rows(query: Query, held: System | None, scope: str, relation: Neighbours) -> sparse.csr_array:
    """Rows on the cells that a change must not alter: known equalities, for some scopes exact figures, the total."""
    rows = []
    if held is not None and not held.branches:
        rows.append(sparse.csr_array(held.equalities.A @ query.columns))
        if scope == "invariant-sharing":
            rows.append(sparse.csr_array(held.invariants.A @ query.columns))
    if not relation.adds:
        rows.append(sparse.csr_array(np.ones((1, int(query.cells or 0)), dtype=np.int64)))
    if not rows:
        return sparse.csr_array((0, int(query.cells or 0)), dtype=np.int64)
    stacked = sparse.csr_array(sparse.vstack(rows, format="csr"))
    stacked.eliminate_zeros()
    return sparse.csr_array(stacked[np.diff(stacked.indptr) > 0])


def changes(query: Query, held: System | None, scope: str, relation: Neighbours, seed: int) -> list[Ints]:
    """Changes of at most so many records that keep what must be kept and alter an answer, some of each size."""
    cells = int(query.cells or 0)
    rows = kept_rows(query, held, scope, relation)
    rng = np.random.default_rng(seed)
    basis = _basis(rows, cells, rng)
    found: dict[bytes, Ints] = {}
    for change in _combined(basis, relation):
        if change.any() and not (rows @ change).any() and (query.columns @ change).any():
            found.setdefault(min(change.tobytes(), (-change).tobytes()), change)
    listed = list(found.values())
    # Those that alter the answers most, and some of the others.
    size = np.array([float(np.abs(query.columns @ change).sum()) for change in listed])
    order = np.argsort(-size, kind="stable")
    first, rest = order[: KEPT // 2], order[KEPT // 2 :]
    chosen = rest if len(listed) <= KEPT else rng.permutation(rest)[: KEPT // 2]
    return [listed[i] for i in [*first.tolist(), *chosen.tolist()]]


def _basis(rows: sparse.csr_array, cells: int, rng: np.random.Generator) -> list[Ints]:
    """Some whole vectors of the null space of the rows, dense."""
    if rows.shape[0] == 0:
        chosen = np.arange(cells) if cells <= COMBINED else _spread(cells, rng)
        return [np.bincount([j], minlength=cells).astype(np.int64) for j in chosen.tolist()]
    vectors: list[Ints] = []
    try:
        basis = NullSpace.of(rows).lattice_basis()
    except Refused:
        basis = sparse.csc_array((cells, 0), dtype=np.int64)
    chosen = np.arange(basis.shape[1]) if basis.shape[1] <= COMBINED else _spread(basis.shape[1], rng)
    vectors = [np.asarray(basis[:, [j]].toarray()).ravel().astype(np.int64) for j in chosen.tolist()]
    # One record less in a cell and one more in another that looks the same to all rows.
    _, alike = np.unique(rows.toarray().T if cells <= 4000 else np.arange(cells), axis=0, return_inverse=True)
    for group in itertools.islice((np.flatnonzero(alike == k) for k in range(int(alike.max()) + 1)), COMBINED):
        if group.size > 1:
            vector = np.zeros(cells, dtype=np.int64)
            vector[group[0]], vector[group[-1]] = -1, 1
            vectors.append(vector)
    return vectors


def _spread(count: int, rng: np.random.Generator) -> Ints:
    """The first few, the last few and some between."""
    between = rng.choice(np.arange(4, count - 4), size=COMBINED - 8, replace=False)
    return np.concatenate([np.arange(4), between, np.arange(count - 4, count)]).astype(np.int64)


def _combined(basis: list[Ints], relation: Neighbours) -> list[Ints]:
    """Multiples of the vectors, and sums and differences of two (multiples alike), of at most so many records."""
    found = []
    pairs = [a + sign * b for a, b in itertools.combinations(basis[:COMBINED], 2) for sign in (1, -1)]
    for vector in [*basis, *pairs]:
        one = records_changed(vector, relation)
        if 0 < one <= relation.records:
            found.append(vector * (relation.records // one))
            if relation.records // one > 1:
                found.append(vector)
    return found
