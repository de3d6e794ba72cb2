"""Rows of a census that follow each other, written as one part of its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.arrays import Floats, Ints
from holdfast.release.storage.tables import (
    FIGURES,
    MEASUREMENTS,
    ROW,
    Coded,
    Columns,
    label_column,
    write_csv,
    write_repeated,
    write_table,
)


@dataclass(frozen=True, eq=False)
class Run:
    """The number of the first row, names, values, ends of intervals, and what is written beside them.

    `labels`: what codes are called, by column. `records`: the columns of synthetic records. `noisy`: answers with their
    standard deviations, infinite where nothing was measured.
    """

    first: int
    named: Mapping[str, Coded]
    values: Any
    ends: Floats
    labels: Mapping[str, Mapping[str, str]]
    records: Sequence[str] | None
    noisy: tuple[Any, Floats] | None

    @property
    def columns(self) -> Columns:
        rows = {ROW: np.arange(self.first, self.first + len(self.values))}
        names = {name: each.column for name, each in self.named.items()}
        return rows | names | dict(zip(FIGURES, (self.values, *self.ends.T), strict=True)) | self._label_columns

    def write(self, paths: Sequence[Path]) -> None:
        """Write the table, noisy answers and records, where there are any, each to Parquet and CSV."""
        left = list(paths)
        write_table(self.columns, left.pop(0), left.pop(0))
        if self.noisy is not None:
            answers, spread = self.noisy
            kept = np.flatnonzero(np.isfinite(spread))
            named = {ROW: self.first + kept}
            measured = zip(MEASUREMENTS, (answers[kept], spread[kept]), strict=True)
            write_table({**named, **dict(measured)}, left.pop(0))
            write_csv({**named, MEASUREMENTS[1]: spread[kept], "count": answers[kept]}, left.pop(0))
        if self.records is not None:
            listed = [self.named[name] for name in self.records]
            told = np.flatnonzero(np.logical_and.reduce([each.told for each in listed]))
            cells: Ints = told[self.values[told] > 0]
            record = {name: each.texts[each.codes[cells]] for name, each in zip(self.records, listed, strict=True)}
            write_repeated(record, self.values[cells], *left)

    @property
    def _label_columns(self) -> Columns:
        """The columns of labels, empty where a row is a sum over the codes."""
        found: Columns = {}
        for column, of in self.labels.items():
            codes = self.named[column]
            said = np.array([None if code is None else of[code] for code in codes.texts.tolist()], dtype=object)
            found[label_column(column)] = said[codes.codes]
        return found
