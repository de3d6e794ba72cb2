"""What is public about the rows of a table that is written in parts, piece by piece."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Floats, Ints
from holdfast.mechanism.published.error_bars import certain
from holdfast.mechanism.published.linear import measured_deviations
from holdfast.release.certificate.certificate import CONFIDENCE
from holdfast.release.job.table import Table
from holdfast.release.pieces.cut import Piece
from holdfast.release.pieces.parts import Sheet
from holdfast.release.pieces.whole import Pieces
from holdfast.release.storage.parts import ROW

NO_TOTALS = (
    "engine: spark writes neither totals over categories nor synthetic records yet: leave out categories or records, "
    "or engine: spark"
)


@dataclass(frozen=True, eq=False)
class Sheets:
    """The sheet of a whole table, from which those of pieces are cut; `measured`: how reaches are known, if at all."""

    names: Mapping[str, Any]
    low: Floats
    high: Floats
    reach: Floats | None
    own: bool
    whole: bool
    deviations: Floats | None
    measured: bool | None

    @classmethod
    def of(cls, table: Table, pieces: Pieces, truth: Ints) -> Sheets:
        """Gather names, limits and reaches; of the truth only exact figures are looked at, which are published."""
        mechanism = pieces.mechanism
        assert mechanism.held is not None
        whole = bool(mechanism.base.law.integer and mechanism.base.unit == 1)
        low, high = certain(mechanism.held, truth, whole=whole)
        found, spread = pieces.errors
        reach = None
        if spread is not None:
            tail = (1 - CONFIDENCE) / 2
            reach = np.maximum(np.abs(spread.quantiles(tail)), np.abs(spread.quantiles(1 - tail)))
        deviations = measured_deviations(mechanism) if pieces.noisy_are_published else None
        own = found is mechanism or spread is None
        measured = None if spread is None else spread.measured
        return cls(table.layout.columns, low, high, reach, own, whole, deviations, measured)

    def sheet(self, piece: Piece) -> Sheet:
        """The sheet of a piece."""
        at = piece.outputs[: piece.own]
        reach, deviations = (None if each is None else each[at] for each in (self.reach, self.deviations))
        names = {name: texts[at] for name, texts in self.names.items()}
        return Sheet(names, self.low[at], self.high[at], reach, self.own, self.whole, deviations)


def refuse_unwritten(table: Table) -> None:
    """Refuse what tasks do not write."""
    if table.derived is not None or table.layout.spec.written.records:
        raise Refused(NO_TOTALS)
    if any(name.lower() == ROW for name in table.layout.columns):
        raise Refused(f"engine: spark numbers the rows of its parts in a column {ROW!r}: rename the one of the table")
