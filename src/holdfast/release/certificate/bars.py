"""Check values, intervals, noisy answers, records and accepted errors: that the files can be what is certified."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.release.certificate.certificate import TableCertificate
from holdfast.release.certificate.naming import sums_of
from holdfast.release.certificate.sums import TOLERANCE, Values
from holdfast.release.storage.parts import part_names, read_table
from holdfast.release.storage.reading import quoted_name, rows_of, session
from holdfast.release.storage.tables import MEASUREMENTS, Columns, label_column, missing, rows_named, texts

#: Each yields a sentence for everything that it finds wrong.
Findings = Iterator[str]


def value_findings(value: Any, table: TableCertificate) -> Findings:
    """Say what is wrong with values, of all rows or of some."""
    if missing(value).any():
        yield f"{table.parquet} has empty values"
    if value.dtype != (np.int64 if table.holds.whole else np.float64):
        yield f"the values of {table.parquet} are not {'whole numbers' if table.holds.whole else 'real numbers'}"
    elif not np.isfinite(value).all():
        yield f"{table.parquet} has values that are not finite"


def interval_findings(values: Values, columns: Columns, table: TableCertificate) -> Findings:
    """Say what is wrong with the intervals of a table."""
    own = [row for figure in table.holds.exact for rows in figure.rows if len(rows) == 1 for row in rows]
    yield from ends_findings(values, columns["low"], columns["high"], table.interval.basis, own)


def ends_findings(values: Values, low: Any, high: Any, basis: str | None, own: Any) -> Findings:
    """Say what is wrong with the ends of intervals on this basis; `own` are the rows of exact figures."""
    if basis is None:
        if not (missing(low).all() and missing(high).all()):
            yield "intervals are given although nothing certifies them"
        return
    if basis != "bounds" and (missing(low).any() or missing(high).any()):
        yield "intervals are missing"
        return
    ends = [
        np.ma.filled(np.ma.asarray(end, dtype=np.float64), empty) for end, empty in ((low, -np.inf), (high, np.inf))
    ]
    if not (ends[0] <= ends[1]).all():
        yield "an interval ends before it begins"
    if not ((ends[0][own] == values[own]) & (ends[1][own] == values[own])).all():
        yield "the interval of an exact figure is not the figure"
    if basis == "bounds" and not ((ends[0] <= values) & (values <= ends[1])).all():
        yield "a value lies outside the limits that are certain"


def label_findings(columns: Columns, table: TableCertificate) -> Findings:
    """Say which codes do not have one label each."""
    for name in table.labels:
        codes, labels = texts(columns[name]), texts(columns[label_column(name)])
        pairs = set(zip(codes.tolist(), labels.tolist(), strict=True))
        if len(pairs) != len(set(codes.tolist())) or any((code is None) != (label is None) for code, label in pairs):
            yield f"a code in {name} has no label, or two"


def derived_findings(values: Values, columns: Columns, table: TableCertificate) -> Findings:
    """Say which rows behind the outputs are not the sums of these that their names say."""
    if table.rows == table.outputs:
        return
    sums = sums_of(table, columns)
    found = np.asarray(sums @ values[: table.outputs])
    there = values[table.outputs :]
    room = 0.0 if values.dtype.kind == "i" else TOLERANCE * np.maximum(1.0, np.abs(there))
    wrong = np.flatnonzero(np.abs(found - there) > room)
    if wrong.size:
        yield f"row {table.outputs + wrong[0]} is not the sum that its names say"


def measurement_findings(folder: Path, table_columns: Columns, table: TableCertificate) -> Findings:
    """Say what is wrong with the noisy answers beside a table: with their names, their numbers or their copy."""
    name, copy = str(table.measurements), str(table.measurements_csv)
    columns, listed = (read_table(folder, each, table.parts) for each in (name, copy))
    if tuple(columns) != (*table.columns, *MEASUREMENTS):
        yield f"{name} does not have the columns {', '.join(MEASUREMENTS)}"
        return
    rows = rows_named(columns, table_columns, table.columns)
    if any(missing(columns[each]).any() for each in MEASUREMENTS):
        yield f"{name} has empty entries"
    elif (rows < 0).any() or len(np.unique(rows)) != len(rows):
        yield f"{name} speaks of rows that the table does not have"
    elif not (np.asarray(columns["standard_deviation"]) >= 0).all():
        yield f"{name} has standard deviations below 0"
    if tuple(listed) != (*table.columns, "standard_deviation", "count"):
        yield f"{copy} does not have the certified columns"
    elif [float(text) for text in listed["count"].tolist()] != np.asarray(columns["value"], dtype=np.float64).tolist():
        yield f"{copy} has other counts than {name}"


def record_findings(folder: Path, values: Values, columns: Columns, table: TableCertificate) -> Findings:
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


def accepted_findings(tables: Sequence[TableCertificate], spec: Mapping[str, Any]) -> Findings:
    """Say where an error is larger than accepted, is not that of its level, or is not what the spec accepts."""
    asked = spec.get("tables")
    if not isinstance(asked, list) or len(asked) != len(tables):
        yield "the published spec has other tables"
        return
    for table, wanted in zip(tables, asked, strict=True):
        said = [_limit(each.error, each.confidence) for each in table.accepted]
        found = wanted.get("accept") or {} if isinstance(wanted, Mapping) else {}
        if said != [_limit(each.get("error"), each.get("confidence")) for each in found.values()]:
            yield f"the errors of {table.name} that were put to the test are not those that the spec accepts"
        levels = {level.level: level for level in table.noise_by_level}
        for each in table.accepted:
            if each.level not in levels:
                yield f"there is no level {each.level} whose errors could be accepted"
            elif Fraction(each.reached) > Fraction(Decimal(each.error)):
                yield f"the errors of {each.level} are larger than accepted"
            elif each.confidence is None and not _same(each.reached, levels[each.level].expected_absolute_error):
                yield f"the mean error of {each.level} is not the one that the plan had"


def _limit(error: Any, confidence: Any) -> tuple[Decimal, Decimal | None]:
    return Decimal(str(error)), None if confidence is None else Decimal(str(confidence))


def _same(reached: float, planned: float | None) -> bool:
    """Whether two means of the same errors agree, however they were added up."""
    return planned is not None and math.isclose(reached, planned, rel_tol=1e-9)
