"""Check synthetic records from the files alone: counted again, they are the table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.release.certificate.certificate import TableCertificate
from holdfast.release.certificate.sums import Values
from holdfast.release.storage.parts import part_names
from holdfast.release.storage.reading import quoted_name, rows_of, session
from holdfast.release.storage.tables import Columns, missing, texts


def record_findings(folder: Path, values: Values, columns: Columns, table: TableCertificate) -> Iterator[str]:
    """Say where synthetic records do not count to the cells of their table."""
    wanted: dict[tuple[Any, ...], int] = {}
    named = [texts(columns[name]) for name in table.record_columns]
    for row in _cells(columns, table).tolist():
        if values[row]:
            wanted[tuple(str(each[row]) for each in named)] = int(values[row])
    for written in (str(table.records), str(table.records_csv)):
        paths = [folder / name for name in part_names(written, table.parts)]
        with session() as connection:
            found = connection.execute(f"SELECT * FROM {rows_of(paths, ',', '')} LIMIT 0").description or []
            if [each[0] for each in found] != table.record_columns:
                yield f"{written} does not have the certified columns"
                continue
            names = ", ".join(quoted_name(name) for name in table.record_columns)
            rows = connection.execute(
                f"SELECT {names}, count(*) FROM {rows_of(paths, ',', '')} GROUP BY ALL"
            ).fetchall()
        if {tuple(map(str, row[:-1])): row[-1] for row in rows} != wanted:
            yield f"the records of {written} do not count to the table"


def _cells(columns: Columns, table: TableCertificate) -> Any:
    """The rows of the lowest level, or of the margin with all axes: those in which every column has a name.

    Of linked tables: every place, and every axis of the row's own table.
    """
    foreign = {name for each in table.linked for name in each.axes}
    full = np.ones(table.rows, dtype=bool)
    for name in table.record_columns:
        if name not in foreign:
            full &= ~missing(columns[name])
    for each in table.linked:
        own = np.asarray(columns["table"]).astype(str) == each.name
        for name in each.axes:
            full &= ~own | ~missing(columns[name])
    return np.flatnonzero(full)
