"""The sums that a query keeps by itself, as rows that are written out only when someone asks for them.

A census has tens of millions of figures, and the rows by which they agree would fill memory many times. Whether a
table adds up is told by the query, from the cells; a statement about its data needs none of these rows, since every
record keeps them (A·W = 0). They stand in front of the other rows of a system.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arrays import Bools
from holdfast.constraints.system.rows import TOLERANCE, Names, Rows, stacked


def written(rows: Rows) -> Rows:
    return rows.others if isinstance(rows, OwnSums) else rows


def apart(rows: Rows, columns: Any) -> tuple[Bools, Rows]:
    """Tell which columns of (n, size) miss sums that are not written out, and return the other rows."""
    none = np.zeros(columns.shape[1], dtype=bool)
    return (rows.missed(columns) if isinstance(rows, OwnSums) else none), written(rows)


def in_front(parts: Sequence[Rows], n: int) -> Rows:
    """Return the rows of several systems one after the other, sums that are not written out in front of the others."""
    own = next((rows for rows in parts if isinstance(rows, OwnSums)), None)
    if own is None:
        return stacked(parts, n)
    return OwnSums(own.query, own.own, stacked([rows for rows in parts if rows is not own], n))


class OwnSums(Rows):
    """All equalities of a query's answers, `count` of them, and `others` behind them."""

    def __init__(self, query: Any, count: int, others: Rows | None = None) -> None:
        object.__setattr__(self, "query", query)
        object.__setattr__(self, "own", count)
        object.__setattr__(self, "others", Rows.none(query.n) if others is None else others)
        sums = ("consistency of the margins in areas", np.zeros((count, 0), np.int64))
        object.__setattr__(self, "names", Names((sums, *self.others.names.blocks)))
        zero = np.zeros(count, np.int64)  # read, and never written: it takes no memory
        object.__setattr__(self, "b", np.concatenate([zero, self.others.b]) if self.others.count else zero)

    query: Any
    own: int
    others: Rows

    @cached_property
    def A(self) -> sparse.csr_array:  # noqa: N802
        own = sparse.csr_array(self.query.consistency())
        return sparse.csr_array(sparse.vstack([own, self.others.A], format="csr")) if self.others.count else own

    @property
    def count(self) -> int:
        return self.own + self.others.count

    def widened(self, n: int) -> Rows:
        assert n == self.query.n
        return self

    def missed(self, columns: Any) -> Bools:
        """Tell for each table, a column of (n, size), whether it does not add up: exact for whole numbers."""
        found = []
        for values in columns.T:
            expected = self.query.totals(values[self.query.cell_outputs])
            if values.dtype.kind == "i":
                found.append(bool((expected != values).any()))
            else:
                slack = TOLERANCE * np.maximum(np.abs(expected) + np.abs(values), 1.0)
                found.append(bool((np.abs(expected - values) > slack).any()))
        return np.array(found, dtype=bool)
