"""One part of a table in runs, as it lies in a release: numbers, and names as codes, which take little memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import duckdb
import numpy as np

from holdfast.release.storage.coded import Coded
from holdfast.release.storage.parts import ROW
from holdfast.release.storage.reading import header_of, quoted_name, rows_of, session
from holdfast.release.storage.tables import Columns

#: How CSV says that nothing stands there.
EMPTY = ", nullstr = '', allow_quoted_nulls = false"


def kinds_of(path: Path) -> dict[str, str]:
    """The columns of a file, and what the engine says they hold."""
    with session() as engine:
        return {row[0]: str(row[1]) for row in engine.execute(f"DESCRIBE FROM {rows_of([path])}").fetchall()}


def read_part(path: Path, names: Sequence[str]) -> tuple[dict[str, Coded], Columns]:
    """Read a part: the columns of names as codes, and all others as they are; what is empty is masked."""
    with session() as engine:
        rows, found = rows_of([path]), {}
        for i, name in enumerate(names):
            some = f"SELECT DISTINCT {quoted_name(name)} FROM {rows} WHERE {quoted_name(name)} IS NOT NULL"
            engine.execute(f"CREATE OR REPLACE TEMP TYPE names_{i} AS ENUM ({some})")
            listed = engine.execute(f"SELECT unnest(enum_range(NULL::names_{i}))::VARCHAR").fetchall()
            found[name] = np.array([None, *(text for (text,) in listed)], dtype=object)
        coded = ", ".join(
            f"coalesce(enum_code({quoted_name(name)}::names_{i})::INTEGER + 1, 0) AS {quoted_name(name)}"
            for i, name in enumerate(names)
        )
        instead = f"REPLACE ({coded})" if names else ""
        columns = dict(engine.execute(f"SELECT * {instead} FROM {rows}").fetchnumpy())
    return {name: Coded(found[name], np.asarray(columns.pop(name))) for name in names}, columns


def other_copy(
    parquet: Path, csv: Path, kinds: Mapping[str, str], called: str, of: Mapping[str, str] = MappingProxyType({})
) -> Iterator[str]:
    """Say where a CSV file with these columns is no copy of a Parquet file, which calls some of them otherwise."""
    with session() as engine:
        _, header = header_of(csv, ",")
        if header != list(kinds):
            yield f"{called} has other columns or another number of rows"
            return
        differs = [
            f"TRY_CAST(c.{quoted_name(name)} AS {kind}) IS DISTINCT FROM p.{quoted_name(of.get(name, name))}"
            for name, kind in kinds.items()
        ]
        counted = ", ".join(f"count_if({each})" for each in differs)
        both = f"{rows_of([parquet])} p POSITIONAL JOIN {rows_of([csv], ',', EMPTY)} c"
        wrong = engine.execute(f"SELECT {counted} FROM {both}").fetchone() or ()
    for name, count in zip(kinds, wrong, strict=True):
        if count:
            yield f"{called} has other entries in the column {name}"


def other_records(table: Path, records: Path, names: Sequence[str], called: str) -> Iterator[str]:
    """Say whether synthetic records do not count to the cells of a part of their table."""
    with session() as engine:
        found = engine.execute(f"SELECT * FROM {rows_of([records], ',')} LIMIT 0").description or []
        if [each[0] for each in found] != list(names):
            yield f"{called} does not have the certified columns"
            return
        listed = ", ".join(quoted_name(name) for name in names)
        full = " AND ".join(f"{quoted_name(name)} IS NOT NULL" for name in names)
        cells = f"SELECT {listed}, value FROM {rows_of([table])} WHERE {full} AND value <> 0"
        counted = f"SELECT {listed}, count(*) AS value FROM {rows_of([records], ',')} GROUP BY ALL"
        two = f"(({cells}) EXCEPT ALL ({counted})) UNION ALL (({counted}) EXCEPT ALL ({cells}))"
        if engine.execute(f"SELECT 1 FROM ({two}) LIMIT 1").fetchone() is not None:
            yield f"the records of {called} do not count to the table"


def numbered(columns: Columns, first: int, last: int | None) -> bool:
    """Whether rows carry the numbers from `first` on, all of them, or some below `last` in their order."""
    rows = np.ma.asarray(columns.get(ROW, np.empty(0)))
    if rows.dtype.kind != "i" or np.ma.getmaskarray(rows).any():
        return False
    numbers = np.asarray(rows)
    if last is None:
        return bool((numbers == np.arange(first, first + numbers.size)).all())
    return bool((np.diff(numbers) > 0).all() and (numbers >= first).all() and (numbers < last).all())


#: What goes wrong where a file is not what its name says.
UNREADABLE = (duckdb.Error, OSError)
