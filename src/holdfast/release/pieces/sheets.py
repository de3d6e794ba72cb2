"""What is public about the rows of a table that is written in parts, piece by piece."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arguments import Refused
from holdfast.arrays import Bools, Floats, Ints
from holdfast.mechanism.published.error_bars import certain
from holdfast.mechanism.published.linear import measured_deviations, sum_reach
from holdfast.release.facts.table import CONFIDENCE
from holdfast.release.job.table import Table
from holdfast.release.pieces.parts import Sheet
from holdfast.release.pieces.whole import Pieces
from holdfast.release.storage.tables import ROW
from holdfast.release.table.public import label_columns

NO_TOTALS = (
    "engine: spark shares the categories of this table out among several tasks, none of which could write totals over "
    "them: use fewer categories, or leave out engine: spark"
)


@dataclass(frozen=True, eq=False)
class Sheets:
    """The sheet of a whole table, from which those of pieces are cut; `measured`: how reaches are known, if at all.

    `sums` are the rows behind the outputs, piece by piece, and `starts` where those of each piece begin, the top first.
    """

    names: Mapping[str, Any]
    labels: dict[str, dict[str, str]]
    low: Floats
    high: Floats
    reach: Floats | None
    own: bool
    whole: bool
    deviations: Floats | None
    measured: bool | None
    records: tuple[str, ...] | None
    outputs: int
    sums: Any
    known: Bools
    order: Ints
    starts: Ints

    @classmethod
    def of(cls, table: Table, pieces: Pieces, truth: Ints) -> Sheets:
        """Gather names, limits and reaches; of the truth only exact figures are looked at, which are published."""
        mechanism, n, more = pieces.mechanism, pieces.mechanism.query.n, table.derived
        assert mechanism.held is not None
        whole = bool(mechanism.base.law.integer and mechanism.base.unit == 1)
        low, high = certain(mechanism.held, truth, whole=whole)
        found, spread = pieces.errors
        sums = sparse.csr_array((0, n), dtype=np.int64) if more is None else sparse.csr_array(more.sums)
        reach = None
        if spread is not None:
            tail = (1 - CONFIDENCE) / 2
            reach = np.maximum(np.abs(spread.quantiles(tail)), np.abs(spread.quantiles(1 - tail)))
        names: Mapping[str, Any] = table.layout.columns
        if more is not None:
            names = {name: np.concatenate([texts, more.columns[name]]) for name, texts in names.items()}
            low, high = np.concatenate([low, sums @ low]), np.concatenate([high, sums @ high])
            if reach is not None and spread is not None and found is not None:
                reach = np.concatenate([reach, sum_reach(spread, found.noise, sums, CONFIDENCE)])
        owner = owners(pieces, sums)
        order = np.argsort(owner, kind="stable")
        starts = np.searchsorted(owner[order], np.arange(-1, pieces.cut.count + 1))
        known = np.concatenate([np.zeros(n, dtype=bool), table.standing.as_in_the_data[n:]])
        deviations = measured_deviations(mechanism) if pieces.noisy_are_published else None
        records = table.record_columns if table.layout.spec.written.records else None
        own, measured = found is mechanism or spread is None, None if spread is None else spread.measured
        ends = (names, table.layout.labels, low, high, reach)
        return cls(*ends, own, whole, deviations, measured, records, n, sums, known, order, starts)

    @property
    def around_estimates(self) -> bool:
        """Whether intervals stand around estimates, which are then made too."""
        return self.reach is not None and not self.own

    def sheet(self, own: Ints, first: int, behind: int) -> Sheet:
        """The sheet of outputs that belong to some pieces, from the number of the first one, which may be TOP, on."""
        more = self.order[self.starts[first + 1] : self.starts[behind + 1]]
        part, sorter = self.sums[more], np.argsort(own) if more.size else np.arange(own.size)
        columns = sorter[np.searchsorted(own, part.indices, sorter=sorter)]  # every output of a sum is one of these
        sums = sparse.csr_array((part.data, columns, part.indptr), shape=(more.size, own.size))
        at = np.concatenate([own, self.outputs + more])
        reach = None if self.reach is None else self.reach[at]
        deviations = None if self.deviations is None else self.deviations[own]
        names = {name: texts[at] for name, texts in self.names.items()}
        told = self.low[at], self.high[at], reach, self.own, self.whole, deviations, self.records
        return Sheet(at, names, label_columns(self.labels, names), sums, self.known[at], *told)


def owners(pieces: Pieces, sums: Any) -> Ints:
    """The piece to which each of the rows behind the outputs belongs; refused where one belongs to several."""
    own = pieces.cut.piece_of(sums.indices)
    starts = sums.indptr[:-1]
    if not starts.size:
        return np.empty(0, dtype=np.int64)
    first, last = np.minimum.reduceat(own, starts), np.maximum.reduceat(own, starts)
    if (first != last).any():
        raise Refused(NO_TOTALS)
    return np.asarray(first)


def refuse_unwritten(table: Table, pieces: Pieces) -> None:
    """Refuse what tasks do not write."""
    if table.derived is not None:
        owners(pieces, sparse.csr_array(table.derived.sums))
    if any(name.lower() == ROW for name in table.layout.columns):
        raise Refused(f"engine: spark numbers the rows of its parts in a column {ROW!r}: rename the one of the table")
