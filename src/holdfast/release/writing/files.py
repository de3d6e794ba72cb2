"""The files of one released table: figures with their intervals, noisy answers, and what every column is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from holdfast.mechanism.published.linear import measured_deviations, sum_intervals
from holdfast.mechanism.published.synthetic import cell_outputs, cells_of
from holdfast.mechanism.release import Release
from holdfast.noise.spread import MISSED
from holdfast.release.certificate.certificate import CONFIDENCE, Certificate, Interval, TableCertificate
from holdfast.release.certifying import TableFiles, table_certificate
from holdfast.release.pieces.drawing import Parts
from holdfast.release.report.figures import SHOWN
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
from holdfast.release.table.public import label_columns
from holdfast.release.table.wording import percent

if TYPE_CHECKING:
    from holdfast.release.job.table import Table
    from holdfast.release.job.unprotected import Unprotected

#: What the columns that name a row are in the data dictionary: one of the domain, and the level.
NAMED_BY = (
    "a name of the public domain, as text; empty where the row is a sum over it; read it as text, never as a formula, "
    "also where it begins with =, +, - or @",
    "the level or margin that the row belongs to",
)
#: Why there are no error bars.
DEPENDS = (
    "the law of the errors depends on the data, so error bars would give something away: low and high are the limits "
    "that are certain, empty where there is none; methods that move noisy answers (onto, given-then-onto) have them"
)


def write_table_files(
    table: Table, drawn: Release, place: Path, prefix: str, determined: Sequence[Unprotected]
) -> tuple[TableCertificate, Columns]:
    """Write the files of a table; return what is certified about it, and its columns."""
    interval, ends = intervals(drawn)
    values = drawn.values if table.holding.account["whole"] else drawn.values.astype(np.float64)
    names = dict(table.layout.columns)
    if table.derived is not None:
        more, limits = _sums(table, drawn, values)
        values, ends = np.concatenate([values, more]), np.concatenate([ends, limits])
        names = {name: np.concatenate([texts, table.derived.columns[name]]) for name, texts in names.items()}
    figures = dict(zip(FIGURES, (values, ends[:, 0], ends[:, 1]), strict=True))
    written = {**names, **figures, **label_columns(table.layout.labels, names)}
    parquet, csv = f"{prefix}table.parquet", f"{prefix}table.csv"
    write_table(written, place / parquet, place / csv)
    measured = _write_measurements(table, drawn, place, f"{prefix}measurements")
    files = TableFiles(parquet, csv, *measured, *_write_records(table, drawn, place, f"{prefix}records"))
    return table_certificate(table, drawn.method, interval, files, determined, drawn.ties), written


def describe_parts(
    table: Table, drawn: Parts, place: Path, prefix: str, determined: Sequence[Unprotected]
) -> tuple[TableCertificate, Columns]:
    """Say what is certified about a table that lies in parts already, and return columns of its first rows."""
    sheets, files = drawn.sheets, TableFiles(f"{prefix}table.parquet", f"{prefix}table.csv", parts=drawn.count)
    if sheets.deviations is not None:
        noisy = f"{prefix}measurements"
        files = files._replace(measurements=f"{noisy}.parquet", measurements_csv=f"{noisy}.csv")
    if sheets.records is not None:
        records = f"{prefix}records"
        files = files._replace(records=f"{records}.parquet", records_csv=f"{records}.csv")
    known = bool(np.isfinite(sheets.low).any() or np.isfinite(sheets.high).any())
    interval = interval_words(sheets.measured, known=known, own=sheets.own)
    columns = first_rows([place / name for name in part_names(files.parquet, drawn.count)], SHOWN)
    for name in table.layout.columns:
        columns[name] = texts(columns[name])
    return table_certificate(table, drawn.method, interval, files, determined, drawn.ties), columns


def _sums(table: Table, drawn: Release, values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.float64]]:
    """The values of rows that are sums of others, and the ends of their intervals; exact figures are known."""
    found, bars = table.derived, drawn.error_bars
    assert found is not None
    sums = found.sums @ values
    sums[found.exact] = np.rint(sums[found.exact])
    ends = np.full((len(sums), 2), np.nan)
    known = table.standing.as_in_the_data[table.layout.query.n :]
    if bars is not None and not known.all():
        ends[~known] = sum_intervals(bars, found.sums[np.flatnonzero(~known)], CONFIDENCE)
        ends[np.isinf(ends)] = np.nan
    ends[known] = sums[known, None]
    return sums, ends


def _write_measurements(table: Table, drawn: Release, place: Path, name: str) -> tuple[str | None, str | None]:
    """Write the draw that may be published beside the table: tidy, and with the counts last for other estimators."""
    if drawn.measurements is None:
        return None, None
    deviations = measured_deviations(table.mechanism)
    rows = np.flatnonzero(np.isfinite(deviations))
    names = {column: texts[rows] for column, texts in table.layout.columns.items()}
    values = drawn.measurements[rows]
    write_table(
        {**names, **dict(zip(MEASUREMENTS, (values, deviations[rows]), strict=True))}, place / f"{name}.parquet"
    )
    write_csv({**names, "standard_deviation": deviations[rows], "count": values}, place / f"{name}.csv")
    return f"{name}.parquet", f"{name}.csv"


def _write_records(table: Table, drawn: Release, place: Path, name: str) -> tuple[str | None, str | None]:
    """Write one synthetic record for every one that the table counts, where the spec asks for them."""
    if not table.layout.spec.written.records:
        return None, None
    counts, outputs = cells_of(table.layout.query, drawn.values), cell_outputs(table.layout.query)
    names = {column: table.layout.columns[column][outputs] for column in table.record_columns}
    write_repeated(names, counts, place / f"{name}.parquet", place / f"{name}.csv")
    return f"{name}.parquet", f"{name}.csv"


def data_package(certificate: Certificate) -> str:
    """Describe every column of the CSV files (Frictionless Data Package): names are texts, so that codes keep zeros."""
    resources = []
    for table in certificate.tables:
        number = "integer" if table.holds.whole else "number"
        names = {column: ("string", NAMED_BY[column == "level"]) for column in table.columns}
        number_of = {ROW: ("integer", "the number of the row in the table, from 0")} if table.parts else {}
        names = number_of | names
        share = f"{percent(table.interval.confidence)} interval: {table.interval.sentence}"
        figures = {
            "value": (number, "the released figure"),
            "low": ("number", f"lower end of the {share}"),
            "high": ("number", "upper end of the same interval"),
        }
        figures |= {label_column(name): ("string", f"what the code in {name} is called") for name in table.labels}
        resources.append(_resource(table.csv, table.parts, f"{table.name}: released figures", names | figures))
        if table.measurements_csv is not None:
            noisy = {
                "standard_deviation": ("number", "standard deviation of the noise in count"),
                "count": ("number", "the noisy answer from which the table was made; it can be negative"),
            }
            named = number_of if table.runs else names
            resources.append(
                _resource(table.measurements_csv, table.parts, f"{table.name}: noisy answers", named | noisy)
            )
        if table.records_csv is not None:
            own = {column: kind for column, kind in names.items() if column in table.record_columns}
            resources.append(_resource(table.records_csv, table.parts, f"{table.name}: synthetic records", own))
    found = {
        "$schema": "https://datapackage.org/profiles/2.0/datapackage.json",
        "name": f"release-{certificate.release}",
        "title": certificate.title,
        "description": str(certificate.statements[0]),
        "created": f"{certificate.deployment.basic.publication_date}T00:00:00Z",
        "resources": resources,
    }
    return json.dumps(found, ensure_ascii=False, indent=1) + "\n"


def _resource(path: str, parts: int, title: str, columns: dict[str, tuple[str, str]]) -> dict[str, Any]:
    fields = [{"name": name, "type": kind, "description": words} for name, (kind, words) in columns.items()]
    return {
        "name": path.removesuffix(".csv").lower(),
        "title": title,
        "path": part_names(path, parts) if parts else path,
        "format": "csv",
        "mediatype": "text/csv",
        "encoding": "utf-8",
        "schema": {"fields": fields, "missingValues": [""]},
    }


def intervals(drawn: Release) -> tuple[Interval, npt.NDArray[np.float64]]:
    """Say what the ends of the intervals mean, and return them, (n, 2), not a number where nothing finite is known."""
    bars = drawn.error_bars
    if bars is None or bars.spread is None:
        ends = np.full((drawn.values.size, 2), np.inf) if bars is None else bars.interval(CONFIDENCE)
        ends[np.isinf(ends)] = np.nan
        return interval_words(None, known=not np.isnan(ends).all(), own=False), ends
    own = bars.centre is drawn.values
    return interval_words(bars.spread.measured, known=True, own=own), bars.interval(CONFIDENCE)


def interval_words(measured: bool | None, *, known: bool, own: bool) -> Interval:
    """Say what intervals are: by a law that was measured or not, None: by what is certain, if anything is `known`."""
    if measured is None:
        return Interval(confidence=CONFIDENCE, basis="bounds" if known else None, sentence=DEPENDS)
    sentence = _sentence(measured=measured, own=own)
    return Interval(confidence=CONFIDENCE, basis="simulation" if measured else "law", sentence=sentence)


def _sentence(*, measured: bool, own: bool) -> str:
    """Say what intervals mean; `own`: they stand around the values themselves."""
    covers = f"each covers its true value with at least {percent(CONFIDENCE)} probability"
    by = "by the law of the noise"
    if measured:
        by = (
            "measured on simulated noise: the ends are widened by the error of the measurement, which may be larger "
            f"once in {1 / MISSED:,.0f} times"
        )
    if own:
        return f"{covers}, {by}; cut to what is certain"
    return (
        f"{covers}, {by}; it stands around the noisy answers behind the table, cut to what is certain, so that a value "
        "which the bounds moved can lie outside"
    )
