"""What cells add to exact figures, and which outputs some of them change: by columns, or without them in areas."""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.arrays import Bools, Ints
from holdfast.queries.areas.area_classes import Spans, area_signatures
from holdfast.queries.areas.area_margins import AreaMargins
from holdfast.queries.columns import row_extremes
from holdfast.queries.linear_query import Query
from holdfast.queries.moves.signatures import Signatures, signatures


def signatures_of(query: Query, rows: Any, mask: Bools | None) -> Signatures:
    """Return what each allowed cell adds to rows on the outputs, and the cells that add the same."""
    found = area_signatures(query, rows, mask) if are_many(query) else None
    return signatures(rows, query.columns, mask) if found is None else found


def touched_by_one(query: Query, chosen: Bools) -> Bools:
    """Return which outputs some chosen cell adds to."""
    if isinstance(query, AreaMargins) and are_many(query):
        return np.asarray(query.totals(chosen.astype(np.int64)) > 0)
    touched = np.zeros(query.n, bool)
    touched[query.columns[:, np.flatnonzero(chosen)].indices] = True
    return touched


def touched_by_pairs(query: Query, classes: Ints) -> Bools:
    """Return which rows of W are not constant within some class ≥ 0."""
    if are_many(query):
        return Spans(query, classes).touched()
    touched = np.zeros(query.n, bool)
    cells = np.flatnonzero(classes >= 0)
    if cells.size == 0:
        return touched
    part = query.columns[:, cells].tocoo()
    label = classes[cells]
    high, low, (row, group, count) = row_extremes(part.row.astype(np.int64), label[part.col], part.data, query.n)
    size = np.bincount(label)
    touched[row[(count < size[group]) | (high != low)]] = True
    return touched


def are_many(query: Query) -> bool:
    """Whether a query has margins in so many areas that its columns are not written out."""
    return isinstance(query, AreaMargins) and query.many_sums is not None
