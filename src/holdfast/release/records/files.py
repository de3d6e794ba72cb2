"""Records in files: Parquet, CSV and TSV read by the engine, Arrow and workbooks by their own libraries, databases.

A folder means all files below it of the first of these kinds that it has, with what the names of its folders say
(year=2022) as columns of texts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from holdfast.arguments import Refused
from holdfast.domains.names import text_of
from holdfast.release.records.databases import opened_sqlite
from holdfast.release.records.rows import Rows, held
from holdfast.release.records.source import Place, Source
from holdfast.release.storage.argus import lowest_cells
from holdfast.release.storage.reading import CSV, PARQUET, files_of, header_of, quoted_name, quoted_text, rows_of

ARROW = (".arrow", ".feather", ".ipc")
WORKBOOK = (".xlsx",)
ARGUS = (".tab",)
DATABASES = (".duckdb", ".sqlite", ".sqlite3", ".db")
#: What the names of files of records end in.
ENDS = (PARQUET, *CSV, *ARROW, *WORKBOOK, *ARGUS, *DATABASES)
SQLITE = b"SQLite format 3\0"


def opened_files(place: Place) -> Source:
    """Open a file, the files of a folder, or those that a pattern means."""
    files = _files(place)
    if not files:
        raise place.refuse(f"there is no file {place.called}", found=None if place.hidden else place.text)
    (end, *others) = {next((end for end in ENDS if file.name.endswith(end)), "") for file in files}
    if others:
        raise place.refuse(f"the files {place.called} are of several kinds: name those of one kind by a pattern")
    if not end:
        raise place.refuse(f"the source {place.called} must end in one of {', '.join(ENDS)}")
    if end in DATABASES or end in WORKBOOK or end in ARGUS:
        if len(files) > 1:
            raise place.refuse(f"the source {place.called} means several files, and of this kind one is read")
        if end in WORKBOOK:
            return _workbook(place, files[0])
        if end in ARGUS:
            return _argus(place, files[0])
        return opened_sqlite(place, files[0]) if _begins(files[0], SQLITE) else _duckdb(place, files[0])
    if end in ARROW:
        return _arrow(place, files)
    if end in CSV:
        _refuse_twice(place, header_of(files[0])[1])
    return Rows(place.engine, rows_of(files, hive=_parts(place, files)), ordered=True)


def _files(place: Place) -> list[Path]:
    """The files that are meant: of a folder those of the first kind that it has, without what begins with . or _."""
    if not place.path.is_dir():
        found = files_of(place.path)
        if not all(path.is_file() for path in found if path.exists()):
            raise place.refuse(f"the source {place.called} is no plain file: name a file of records")
        return found
    below = [path for path in sorted(place.path.rglob("*")) if path.is_file()]
    seen = [path for path in below if not any(part[0] in "._" for part in path.relative_to(place.path).parts)]
    kinds = ((PARQUET,), CSV, ARROW)
    chosen = next(filter(None, ([path for path in seen if path.name.endswith(kind)] for kind in kinds)), None)
    if chosen is None:
        raise place.refuse(f"the folder {place.called} has no files that end in {PARQUET}, {', '.join(CSV + ARROW)}")
    return chosen


def _parts(place: Place, files: Sequence[Path]) -> bool:
    """Whether the names of folders below the source's own are columns: year=2022."""
    above = place.path if place.path.is_dir() else Path(str(place.path).split("*", 1)[0]).parent
    return all(any("=" in part for part in file.relative_to(above).parts[:-1]) for file in files)


def _begins(file: Path, words: bytes) -> bool:
    with file.open("rb") as content:
        return content.read(len(words)) == words


def _refuse_twice(place: Place, names: Sequence[str]) -> None:
    """Which name is not said: a record may stand where names should."""
    if any(times > 1 for name, times in Counter(names).items() if name):
        raise place.refuse("two columns of the records have the same name: give each its own")


# --- databases in a file -------------------------------------------------------------------------------------------


def _duckdb(place: Place, file: Path) -> Rows:
    """Attach the file, for reading; sessions of one process share the engine, so each has a name for it."""
    engine, alias = place.engine, f"holdfast_source_{id(place.engine)}"
    if place.query is not None:
        raise place.refuse("a DuckDB file is read by table: make a view of the query there, and name it", "query")
    place.ending.callback(engine.execute, f"DETACH DATABASE IF EXISTS {alias}")
    try:
        engine.execute(f"ATTACH '{quoted_text(str(file))}' AS {alias} (READ_ONLY)")
        rows = engine.execute(f"SELECT table_name FROM duckdb_tables() WHERE database_name = '{alias}'").fetchall()
        views = engine.execute(f"SELECT view_name FROM duckdb_views() WHERE database_name = '{alias}' AND NOT internal")
        names = sorted(row[0] for row in [*rows, *views.fetchall()])
    except duckdb.Error:
        raise place.refuse(f"{file.name!r} is not a DuckDB file that can be opened") from None
    table = named(place, "DuckDB file", names)
    try:
        engine.execute(f"FROM {alias}.{quoted_name(table)} LIMIT 0")
    except duckdb.Error:
        sentence = f"the view {table!r} does not fit the tables behind it any more: make it again"
        raise place.refuse(sentence, "table") from None
    return Rows(engine, f"{alias}.{quoted_name(table)}")


# --- other libraries -----------------------------------------------------------------------------------------------


def _arrow(place: Place, files: Sequence[Path]) -> Rows:
    try:
        from pyarrow import ArrowInvalid, dataset
    except ModuleNotFoundError:
        raise Refused("reading Arrow files needs pyarrow, which is not installed: install holdfast[pyarrow]") from None
    try:
        content = dataset.dataset([str(file) for file in files], format="ipc")
    except (ArrowInvalid, OSError):
        raise place.refuse(f"the source {place.called} cannot be read: an Arrow or Feather file is needed") from None
    _refuse_twice(place, content.schema.names)
    return held(place.engine, content)


def _workbook(place: Place, file: Path) -> Rows:
    try:
        from openpyxl import load_workbook
    except ModuleNotFoundError:
        raise Refused("reading a workbook needs openpyxl, which is not installed: install holdfast[excel]") from None
    try:
        book = load_workbook(file, read_only=True, data_only=True)
    except Exception:  # whatever the library raises may quote records
        raise place.refuse(f"the workbook {place.called} cannot be read") from None
    place.ending.callback(book.close)
    rows = book[named(place, "workbook", book.sheetnames)].iter_rows(values_only=True)
    header = [text_of(value) for value in next(rows, ())]
    while header and header[-1] is None:
        header.pop()
    if not header or None in header:
        raise place.refuse("the first row of a sheet names its columns, and some name is missing")
    names = [str(name) for name in header]
    _refuse_twice(place, names)
    kept = [row[: len(names)] for row in rows if any(value is not None for value in row)]
    columns: dict[str, Any] = {}
    for i, name in enumerate(names):
        columns[name] = np.array([*(text_of(row[i]) if i < len(row) else None for row in kept), ""], dtype=object)[:-1]
    return held(place.engine, columns)


def _argus(place: Place, file: Path) -> Rows:
    """Cells of a table of τ-ARGUS that are no sums of others: each stands for as many records as data.count says."""
    if not place.counted:
        raise place.refuse("a table of τ-ARGUS holds figures: data.count must name its column of counts")
    try:
        columns = lowest_cells(file)
    except Refused as error:
        raise place.refuse(str(error)) from None
    return held(place.engine, {name: np.array([*column, ""], dtype=object)[:-1] for name, column in columns.items()})


def named(place: Place, what: str, names: Sequence[str]) -> str:
    """The table or sheet that the spec names, or the only one."""
    table = place.table
    if table is None and len(names) == 1:
        return names[0]
    if table is None:
        raise place.at.refuse(f"a {what} needs data.table, the name of the table inside it", None, names)
    if table not in names:
        raise place.refuse(f"the {what} has no table {table!r}", "table", table, names)
    return table
