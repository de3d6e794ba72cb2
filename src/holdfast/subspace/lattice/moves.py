"""The changes of records that keep every equality, listed one by one: a quadratic form is taken over all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arguments import Refused
from holdfast.arrays import Ints
from holdfast.constraints import NullSpace
from holdfast.privacy import AllDifferences, Differences
from holdfast.queries import Moves, Neighbours, Query
from holdfast.queries.columns import distinct_only, equal_columns
from holdfast.queries.moves.joint import joint_moves
from holdfast.queries.moves.signatures import signatures

#: Numbers in the table of all moves.
MOST_ENTRIES = 3 * 10**7

TOO_MANY = (
    "the changes of records that keep these equalities are too many to list: use gaussian(...).given(...), or "
    "integer=False"
)


def listed_moves(query: Query, space: NullSpace, differences: Differences) -> tuple[Ints, int]:
    """Return all these differences as columns (n, m), one of d and −d each, up to a whole factor.

    The factor is above 1 only where every neighbour keeps the equalities: several records then multiply the norms of
    one by their number (docs/theory/difference-sets.md, Proposition 1).
    """
    relation, factor = differences.neighbours, 1
    if isinstance(differences, AllDifferences) or (isinstance(differences, Moves) and differences.everything):
        relation, factor = Neighbours(relation.kind), relation.records
    columns = query.columns
    cells = np.flatnonzero(distinct_only(columns, np.zeros(columns.shape[1], dtype=np.int64)) >= 0)
    signature = signatures(space.rows, columns, None).matrix
    moves, complete = joint_moves(signature[:, cells], columns[:, cells], relation)
    if not complete or moves.shape[0] * moves.shape[1] > MOST_ENTRIES:
        raise Refused(TOO_MANY)
    return np.asarray(moves.toarray(), dtype=np.int64), factor


def only_pairs(query: Query, space: NullSpace, neighbours: Neighbours) -> bool:
    """Whether the smallest moves are the differences of any two columns: all records add the same to the figures."""
    classes = signatures(space.rows, query.columns, None).classes
    return bool((classes == classes[0]).all() and (classes[0] > 0 or not neighbours.adds))


def open_lattice(query: Query, space: NullSpace, neighbours: Neighbours) -> Ints:
    """Return a lattice basis (n, d) of the whole vectors in N that changes of any number of records can add up to."""
    kept = query.consistency() if neighbours.adds else _never_changed(query)
    rows = sparse.vstack([space.rows, kept], format="csr")
    basis = NullSpace.of(sparse.csr_array(rows)).lattice_basis()
    return np.asarray(basis.toarray(), dtype=np.int64)


def _never_changed(query: Query) -> Any:
    """Whole rows that no replaced record changes: those of consistency, and that of the number of records."""
    columns = query.columns[:, np.unique(equal_columns(query.columns), return_index=True)[1]]
    if columns.shape[0] * columns.shape[1] > MOST_ENTRIES or columns.dtype.kind != "i":
        raise Refused(TOO_MANY)
    first = sparse.hstack([columns[:, [0]]] * (columns.shape[1] - 1), format="csc")
    return NullSpace.of(sparse.csr_array((columns[:, 1:] - first).T)).lattice_basis().T
