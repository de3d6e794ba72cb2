"""Which of three ways says how many records must change together: the margins of a cube, classes of cells, a search."""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Ints
from holdfast.domains import Cube
from holdfast.queries.columns import equal_columns
from holdfast.queries.linear_query import Query
from holdfast.queries.margin_counts import MarginCounts
from holdfast.queries.moves.signatures import Signatures, independent, signatures
from holdfast.queries.neighbours import Neighbours
from holdfast.queries.together.classes import Classes, classes_together
from holdfast.queries.together.cube import complete_margins, cube_together
from holdfast.queries.together.search import MOST_KINDS, of_columns, search
from holdfast.queries.together.together import Column, Groups, Together, distinct_pairs, told

#: Rows up to which it is looked whether they are the margins of a cube.
MOST_ROWS = 200_000


def records_together(
    query: Query, rows: Any, neighbours: Any, columns: tuple[Column, ...], allowed: Any = None
) -> tuple[Together, ...]:
    """Return for each column how many records must change together while rows @ answer stays (THEORY §12).

    rows: everything that is kept, all rows of complete margins among them. allowed: which cells can hold records.
    """
    if query.cells is None:
        raise Refused("query must have known columns for a count of the records that change together")
    relation = Neighbours.of(neighbours)
    mask = query.mask(allowed)
    found = signatures(rows, query.columns, mask)
    columns = tuple(Column(each.name, np.where(found.classes < 0, -1, each.codes), each.values) for each in columns)
    closed = _of_cube(query, found, mask, relation)
    if closed is not None and all(each.name in closed for each in columns):
        least = min((k for k in closed.values() if k is not None), default=0)
        # Where margins are asked, one more than the least suffices, and fewer may (what-can-change, Proposition 3),
        # unless the least is one record: alone it cannot change a column of a kept margin.
        alone = least == (2 if relation.adds else 1)
        bounds = {} if query.identity or alone else {k: k == least for k in closed.values() if k is not None}
        return tuple(_same_for_all(each, relation, closed[each.name], bounds) for each in columns)
    kinds = _kinds(query, found)
    used = np.unique(kinds[kinds >= 0], return_index=True)[1]
    cells = np.flatnonzero(kinds >= 0)[used]
    # Classes take it that cells differ in the answer from each other and, where records come and go, from none.
    counted = not relation.adds or bool((np.diff(query.columns.indptr)[cells] > 0).all())
    distinct = counted and cells.size == np.count_nonzero(kinds >= 0)
    alone = independent(found.distinct())
    classes = _classes(found, kinds, relation, alone)
    if not (alone and distinct) and cells.size <= MOST_KINDS and query.columns.dtype.kind == "i":
        result = search(found.matrix[:, cells], query.columns[:, cells], relation.adds, query.identity)
        return of_columns(relation.kind, result, kinds, columns)
    if distinct and classes.settles:
        return classes_together(relation.kind, classes, columns)
    return tuple(_not_decided(each, relation) for each in columns)


def _kinds(query: Query, found: Signatures) -> Ints:
    """A number for each cell that exactly the cells with equal answers share; −1: it cannot hold records."""
    used = found.classes >= 0
    if query.identity or query.tree is not None:
        return np.where(used, np.cumsum(used) - 1, -1)
    kinds = equal_columns(query.columns)
    numbered = np.full(kinds.size, -1, np.int64)
    numbered[used] = np.unique(kinds[used], return_inverse=True)[1].ravel()
    return numbered


def _classes(found: Signatures, kinds: Ints, relation: Neighbours, alone: bool) -> Classes:
    """The classes of cells; under add-remove a row that is not there belongs to those of signature 0."""
    used = found.classes >= 0
    count = int(found.classes.max(initial=0)) + 1
    pairs = distinct_pairs(found.classes[used], kinds[used])
    number = np.bincount(pairs[0], minlength=count)
    if relation.adds:
        number[0] += 1
    return Classes(found.classes, number > 1, 0 if relation.adds else None, alone)


def _of_cube(query: Query, found: Signatures, mask: Any, relation: Neighbours) -> dict[str, int | None] | None:
    """The records that each axis needs, where all cells are possible and complete margins are kept."""
    cube = query.cube
    if cube is None and query.identity:
        cube = Cube((query.n,))
    if cube is None or cube.recoded or mask is not None or found.matrix.shape[0] > MOST_ROWS:
        return None
    if not query.identity and not isinstance(query, MarginCounts):
        return None
    kept = complete_margins(cube, found.matrix)
    if not kept:
        return None
    asked = (tuple(range(len(cube.shape))),) if not isinstance(query, MarginCounts) else query.keep
    needed = cube_together(cube.shape, kept, asked)
    if needed is None:
        return None
    times = 2 if relation.adds else 1  # a kept margin keeps the number of records: as many come as go
    return {name: None if k is None else k * times for name, k in zip(cube.names, needed, strict=True)}


def _same_for_all(column: Column, relation: Neighbours, records: int | None, exact: dict[int, bool]) -> Together:
    values = np.unique(column.codes[column.codes >= 0])
    needed = np.full(1, records or 0, np.int64)
    return told(column, relation.kind, Groups((values,), needed, None, needed), exact)


def _not_decided(column: Column, relation: Neighbours) -> Together:
    values = np.unique(column.codes[column.codes >= 0])
    needed = np.full(1, -1, np.int64)
    return told(column, relation.kind, Groups((values,), needed, None, needed), beyond=1)
