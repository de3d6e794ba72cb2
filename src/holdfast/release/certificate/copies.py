"""Whether the Parquet files of a release hold what its CSV files do, which the rule book reads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb

from holdfast.release.facts.table import TableCertificate
from holdfast.release.storage.engine import header_of, quoted_name, rows_of, session
from holdfast.release.storage.tables import FIGURES, MEASUREMENTS, ROW, label_column, part_names

#: How CSV says that nothing stands there.
EMPTY = ", nullstr = '', allow_quoted_nulls = false"
#: What the engine calls texts, whole numbers and real ones.
TEXT, WHOLE, REAL = "VARCHAR", "BIGINT", "DOUBLE"


def other_copies(folder: Path, table: TableCertificate) -> Iterator[str]:
    """Say where Parquet and CSV differ: in the table, its noisy answers or its synthetic records."""
    row = {ROW: WHOLE} if table.parts else {}
    names = row | dict.fromkeys(table.columns, TEXT)
    figures = dict(zip(FIGURES, (WHOLE if table.holds.whole else REAL, REAL, REAL), strict=True))
    labels = dict.fromkeys(map(label_column, table.labels), TEXT)
    noisy = (row if table.runs else names) | {MEASUREMENTS[1]: REAL, "count": ""}
    for parquet, csv, columns in (
        (table.parquet, table.csv, names | figures | labels),
        (table.measurements, table.measurements_csv, noisy),
        (table.records, table.records_csv, dict.fromkeys(table.record_columns, TEXT)),
    ):
        if (parquet is None) != (csv is None):
            yield f"{parquet or csv} has no copy"
        elif parquet is not None and csv is not None:
            for one, two in zip(part_names(parquet, table.parts), part_names(csv, table.parts), strict=True):
                yield from _other_entries(folder, one, two, columns)


def _other_entries(folder: Path, parquet: str, csv: str, columns: dict[str, str]) -> Iterator[str]:
    """Compare two files with these columns, each of a kind; the counts of noisy answers are values in Parquet."""
    one, two = folder / parquet, folder / csv
    called = {name: MEASUREMENTS[0] if name == "count" else name for name in columns}
    with session() as engine:
        try:
            kinds = {each[0]: str(each[1]) for each in engine.execute(f"DESCRIBE FROM {rows_of([one])}").fetchall()}
        except (duckdb.Error, OSError) as error:
            yield f"{parquet} cannot be read ({type(error).__name__})"
            return
        if sorted(kinds) != sorted(called.values()) or ("count" not in columns and list(kinds) != list(columns)):
            yield f"{parquet} does not have the certified columns"
            return
        for name, kind in columns.items():
            if kinds[called[name]] not in ((kind,) if kind else (WHOLE, REAL)):
                expected = {TEXT: "texts", WHOLE: "whole numbers", REAL: "real numbers"}.get(kind, "numbers")
                yield f"the entries of {name} in {parquet} are not {expected}"
                return
        if header_of(two, ",")[1] != list(columns):
            yield f"{csv} has other columns"
            return
        differs = ", ".join(
            f"count_if(TRY_CAST(c.{quoted_name(name)} AS {kinds[own]}) IS DISTINCT FROM p.{quoted_name(own)})"
            for name, own in called.items()
        )
        both = f"{rows_of([one])} p POSITIONAL JOIN {rows_of([two], ',', EMPTY)} c"
        wrong = engine.execute(f"SELECT {differs} FROM {both}").fetchone() or ()
    for name, count in zip(columns, wrong, strict=True):
        if count:
            yield f"{csv} has other entries in the column {name}"
