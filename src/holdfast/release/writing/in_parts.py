"""A table of a census that is too large for one file, written in parts: runs of whole areas, one after the other.

Names are made where they are written, so that memory holds those of a few parts. Noisy answers are named by the numbers
of their rows. What was written is read again by whoever verifies the release, part by part too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from holdfast.arrays import Floats
from holdfast.mechanism.published.error_bars import ErrorBars
from holdfast.mechanism.published.linear import measured_deviations
from holdfast.mechanism.release import Release
from holdfast.progress import Progress
from holdfast.release.certificate.certificate import CONFIDENCE, Interval, TableCertificate
from holdfast.release.certifying import TableFiles, table_certificate
from holdfast.release.report.figures import SHOWN
from holdfast.release.storage.coded import Coded
from holdfast.release.storage.files import sync_folder
from holdfast.release.storage.parts import ROW, part_names
from holdfast.release.storage.tables import (
    FIGURES,
    MEASUREMENTS,
    Columns,
    first_rows,
    label_column,
    texts,
    write_csv,
    write_repeated,
    write_table,
)
from holdfast.release.table.area_names import AreaNames
from holdfast.release.writing.files import interval_words
from holdfast.workers import in_threads

if TYPE_CHECKING:
    from holdfast.release.job.table import Table
    from holdfast.release.job.unprotected import Unprotected


@dataclass(frozen=True, eq=False)
class InParts:
    """A table that was drawn, and what its parts are cut from."""

    table: Table
    drawn: Release
    names: AreaNames
    files: TableFiles
    place: Path

    @cached_property
    def values(self) -> npt.NDArray[Any]:
        """The values of all rows."""
        whole = self.table.holding.account["whole"]
        return self.drawn.values if whole else self.drawn.values.astype(np.float64)

    @cached_property
    def bars(self) -> ErrorBars | None:
        """What the table tells about the truth; it is not kept with the release, since a census fills memory."""
        return self.drawn.find_error_bars(self.drawn.values, self.drawn.measurements)

    @cached_property
    def reach(self) -> Floats | None:
        """How far intervals reach to either side; None where they are what is certain, or nothing."""
        bars = self.bars
        return None if bars is None or bars.spread is None else bars.reach(CONFIDENCE)

    def interval(self) -> Interval:
        """Say what the ends of intervals mean."""
        bars = self.bars
        if bars is None or bars.spread is None:
            known = bars is not None and bool(np.isfinite(bars.low).any() or np.isfinite(bars.high).any())
            return interval_words(None, known=known, own=False)
        return interval_words(bars.spread.measured, known=True, own=bars.centre is self.drawn.values)

    def ends(self, rows: slice) -> Floats:
        """The ends of the intervals of some rows, not a number where nothing finite is known."""
        bars = self.bars
        if bars is None:
            return np.full((rows.stop - rows.start, 2), np.nan)
        found = np.column_stack([bars.low[rows], bars.high[rows]])
        if self.reach is not None:
            centre, reach = bars.centre[rows], self.reach[rows]
            found = bars.within(centre - reach, centre + reach, *found.T)
        found[np.isinf(found)] = np.nan
        return found

    def write(self, number: int) -> None:
        """Write one part of every file."""
        first, last = self.names.parts[number]
        rows, named = slice(first, last), self.names.of(first, last)
        paths = {name: [self.place / part_names(file, number + 1)[number] for file in two] for name, two in self.pairs}
        columns = {ROW: np.arange(first, last), **{name: each.column for name, each in named.items()}}
        columns |= dict(zip(FIGURES, (self.values[rows], *self.ends(rows).T), strict=True))
        write_table(columns | _labels(self.table.layout.labels, named), *paths["table"])
        if "measurements" in paths:
            assert self.drawn.measurements is not None
            spread = measured_deviations(self.table.mechanism, rows)
            kept = np.flatnonzero(np.isfinite(spread))
            noisy, spread = self.drawn.measurements[rows][kept], spread[kept]
            parquet, csv = paths["measurements"]
            write_table({ROW: first + kept, **dict(zip(MEASUREMENTS, (noisy, spread), strict=True))}, parquet)
            write_csv({ROW: first + kept, MEASUREMENTS[1]: spread, "count": noisy}, csv)
        if "records" in paths:
            listed = [named[name] for name in self.table.record_columns]
            cells = np.flatnonzero(np.logical_and.reduce([each.told for each in listed]))
            cells = cells[self.values[rows][cells] > 0]
            record = {name: named[name].texts[named[name].codes[cells]] for name in self.table.record_columns}
            write_repeated(record, self.values[rows][cells], *paths["records"])

    @property
    def pairs(self) -> list[tuple[str, tuple[str, str]]]:
        """The Parquet and the CSV file of everything that is written."""
        files = self.files
        listed = {
            "table": (files.parquet, files.csv),
            "measurements": (files.measurements, files.measurements_csv),
            "records": (files.records, files.records_csv),
        }
        return [(name, (two[0], two[1])) for name, two in listed.items() if two[0] is not None and two[1] is not None]


def write_in_parts(
    table: Table, drawn: Release, place: Path, prefix: str, determined: Sequence[Unprotected]
) -> tuple[TableCertificate, Columns]:
    """Write a table in parts; return what is certified about it, and columns of its first rows."""
    names = table.layout.in_parts
    assert names is not None
    count = len(names.parts)
    files = TableFiles(f"{prefix}table.parquet", f"{prefix}table.csv", parts=count, runs=True)
    if drawn.measurements is not None:
        noisy = f"{prefix}measurements"
        files = files._replace(measurements=f"{noisy}.parquet", measurements_csv=f"{noisy}.csv")
    if table.layout.spec.written.records:
        files = files._replace(records=f"{prefix}records.parquet", records_csv=f"{prefix}records.csv")
    parts = InParts(table, drawn, names, files, place)
    folders = [place / name for _, pair in parts.pairs for name in pair]
    for folder in folders:
        folder.mkdir(exist_ok=True)
    interval = parts.interval()
    _ = parts.reach  # found once, and not by every thread
    with Progress("writing", count) as progress:

        def write(some: slice) -> None:
            for number in range(some.start, some.stop):
                parts.write(number)
                progress.advance(1)

        in_threads(write, count)
    for folder in folders:
        sync_folder(folder)
    columns = first_rows([place / name for name in part_names(files.parquet, 1)], SHOWN)
    for name in names:
        columns[name] = texts(columns[name])
    return table_certificate(table, drawn.method, interval, files, determined, drawn.ties), columns


def _labels(labels: Mapping[str, Mapping[str, str]], named: Mapping[str, Coded]) -> Columns:
    """The columns of labels, empty where a row is a sum over the codes."""
    found: Columns = {}
    for column, of in labels.items():
        codes = named[column]
        said = np.array([None if code is None else of[code] for code in codes.texts.tolist()], dtype=object)
        found[label_column(column)] = said[codes.codes]
    return found
