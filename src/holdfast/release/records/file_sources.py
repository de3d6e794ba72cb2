"""Records in files: Parquet, CSV and TSV read by the engine, Arrow and workbooks by their own libraries, databases.

A folder means all files below it of the first of these kinds that it has, with what the names of its folders say
(year=2022) as columns of texts.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import narwhals as nw
import numpy as np

from holdfast.arguments import Refused
from holdfast.domains.data_frames import text_of
from holdfast.release.records.databases import PIECE, opened_sqlite, origin_in_duckdb
from holdfast.release.records.sources import Asked, Place, Rows, Source, fetched, held, unused
from holdfast.release.spec.origin import LAZY, Origin, of_rows
from holdfast.release.spec.spec import Spec
from holdfast.release.storage.argus import lowest_cells
from holdfast.release.storage.engine import (
    CSV,
    PARQUET,
    files_of,
    header_of,
    quoted_name,
    quoted_text,
    rows_of,
    scratch,
)

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
    if place.query is not None and end not in DATABASES:
        raise place.refuse("a query asks a database, and files are read whole: leave it out", "query")
    if end in DATABASES or end in WORKBOOK or end in ARGUS:
        if len(files) > 1:
            raise place.refuse(f"the source {place.called} means several files, and of this kind one is read")
        if end in WORKBOOK:
            return _workbook(place, files[0])
        if end in ARGUS:
            return _argus(place, files[0])
        return opened_sqlite(place, files[0]) if begins(files[0], SQLITE) else _duckdb(place, files[0])
    if end in ARROW:
        return _arrow(place, files)
    if end in CSV:
        _refuse_twice(place, header_of(files[0])[1])
    words = rows_of(files, hive=_parts(place, files))
    return Rows(place.engine, words, ordered=True, origin=of_rows(place.spec))


def _files(place: Place) -> list[Path]:
    """The files that are meant: of a folder those of the first kind that it has, without what begins with . or _."""
    if not os.path.isdir(place.path):
        found = files_of(place.path)
        if not all(os.path.isfile(path) for path in found if os.path.exists(path)):
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
    above = place.path if os.path.isdir(place.path) else Path(str(place.path).split("*", 1)[0]).parent
    return all(any("=" in part for part in file.relative_to(above).parts[:-1]) for file in files)


def begins(file: Path, words: bytes) -> bool:
    with file.open("rb") as content:
        return content.read(len(words)) == words


def _refuse_twice(place: Place, names: Sequence[str]) -> None:
    """Which name is not said: a record may stand where names should."""
    if any(times > 1 for name, times in Counter(names).items() if name):
        raise place.refuse("two columns of the records have the same name: give each its own")


# --- databases in a file -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Apart:
    """Rows of an engine of their own, which are counted there."""

    engine: duckdb.DuckDBPyConnection
    rows: Rows
    origin: Origin

    def kinds(self) -> Mapping[str, str]:
        return self.rows.kinds()

    def counted(self, asked: Asked) -> str:
        names = [f"t{i}" for i in range(len(asked.columns))]
        counted = self.rows.engine.execute(f"FROM {self.rows.counted(asked)}")
        return fetched(self.engine, names, "n", iter(lambda: counted.fetchmany(PIECE), []))

    def uncounted(self, count: str) -> None:
        """Rows of a database have no order."""


def _duckdb(place: Place, file: Path) -> Apart:
    """Attach the file, for reading, to an engine of its own that reads nothing else: a view may name any file."""
    if place.query is not None:
        raise place.refuse("a DuckDB file is read by table: make a view of the query there, and name it", "query")
    folder = Path(tempfile.mkdtemp(dir=scratch()))
    place.ending.callback(shutil.rmtree, folder, ignore_errors=True)
    alone = {"autoload_known_extensions": False, "python_enable_replacements": False}
    engine = duckdb.connect(config={"temp_directory": str(folder), **alone})
    place.ending.callback(engine.close)
    try:
        engine.execute(f"ATTACH '{quoted_text(str(file))}' AS source (READ_ONLY)")
        engine.execute("SET enable_external_access = false")
        engine.execute("SET lock_configuration = true")
        rows = engine.execute("SELECT table_name FROM duckdb_tables() WHERE database_name = 'source'").fetchall()
        views = engine.execute("SELECT view_name FROM duckdb_views() WHERE database_name = 'source' AND NOT internal")
        names = sorted(row[0] for row in [*rows, *views.fetchall()])
    except duckdb.Error:
        raise place.refuse(f"{file.name!r} is not a DuckDB file that can be opened") from None
    table = named(place, "DuckDB file", names)
    try:
        engine.execute(f"FROM source.{quoted_name(table)} LIMIT 0")
    except duckdb.PermissionException:
        sentence = f"the view {table!r} reads other files, which a source must not: make a table of them"
        raise place.refuse(sentence, "table") from None
    except duckdb.Error:
        sentence = f"the view {table!r} does not fit the tables behind it any more: make it again"
        raise place.refuse(sentence, "table") from None
    origin = origin_in_duckdb(place, engine, "source", table)
    return Apart(place.engine, Rows(engine, f"source.{quoted_name(table)}"), origin)


# --- other libraries -----------------------------------------------------------------------------------------------


def _arrow(place: Place, files: Sequence[Path]) -> Rows:
    try:
        from pyarrow import ArrowException, dataset
    except ModuleNotFoundError:
        raise Refused("reading Arrow files needs pyarrow, which is not installed: install holdfast[pyarrow]") from None
    try:
        content = dataset.dataset([str(file) for file in files], format="ipc")
        for piece in content.to_batches():  # lengths and places in a damaged file lead the engine out of its memory
            piece.validate(full=True)
    except (ArrowException, OSError, ValueError):
        raise place.refuse(f"the source {place.called} cannot be read: an Arrow or Feather file is needed") from None
    _refuse_twice(place, content.schema.names)
    return held(place.engine, content, of_rows(place.spec))


def _workbook(place: Place, file: Path) -> Rows:
    try:
        from openpyxl import load_workbook
    except ModuleNotFoundError:
        raise Refused("reading a workbook needs openpyxl, which is not installed: install holdfast[excel]") from None
    try:
        book = load_workbook(file, read_only=True, data_only=True)
        place.ending.callback(book.close)
        rows = iter(list(book[named(place, "workbook", book.sheetnames)].iter_rows(values_only=True)))
    except Refused:
        raise
    except Exception:  # whatever the library raises may quote records
        raise place.refuse(f"the workbook {place.called} cannot be read") from None
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
    return held(place.engine, columns, of_rows(place.spec))


def _argus(place: Place, file: Path) -> Rows:
    """Cells of a table of τ-ARGUS that are no sums of others: each stands for as many records as data.count says."""
    if place.spec.data.count is None:
        raise place.refuse("a table of τ-ARGUS holds figures: data.count must name its column of counts")
    try:
        columns = lowest_cells(file)
    except Refused as error:
        raise place.refuse(str(error)) from None
    texts = {name: np.array([*column, ""], dtype=object)[:-1] for name, column in columns.items()}
    return held(place.engine, texts, of_rows(place.spec))


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


# --- Records in data frames of any library that narwhals reads: in memory, or lazy and counted in their own engine

#: How many records a row of a grouped frame stands for.
TIMES = "holdfast_count"
#: Types that are not texts, in the words of the engine.
KINDS = (
    ((nw.Float32, nw.Float64), "DOUBLE"),
    (nw.Decimal, "DECIMAL"),
    (nw.Boolean, "BOOLEAN"),
    (nw.Binary, "BLOB"),
    (nw.Struct, "STRUCT"),
    ((nw.List, nw.Array), "VARCHAR[]"),
)


def opened_frame(engine: duckdb.DuckDBPyConnection, spec: Spec, source: Any, ending: ExitStack) -> Source:
    """Read nothing yet; say what cannot be read."""
    with _told():
        try:
            frame = nw.from_native(source)
            return Frame(engine, frame, ending, of_rows(spec, LAZY if isinstance(frame, nw.LazyFrame) else None))
        except TypeError:
            raise Refused(
                f"source must be a data frame that narwhals can read, found an object of type {type(source).__name__}"
            ) from None


@dataclass(frozen=True)
class Frame:
    """A frame, of which only the columns that matter are read.

    A lazy one counts its distinct values in its own engine, so that only these come here. Where persons' records are
    limited, whole records are needed: the frame's engine writes them to a private file.
    """

    engine: duckdb.DuckDBPyConnection
    frame: nw.DataFrame[Any] | nw.LazyFrame[Any]
    ending: ExitStack
    origin: Origin

    def kinds(self) -> Mapping[str, str]:
        with _told():
            return {name: self._kind(name, dtype) for name, dtype in self.frame.collect_schema().items()}

    def counted(self, asked: Asked) -> str:
        """Group by everything that matters, the counts of rows included."""
        if asked.persons is not None:
            return self._whole().counted(asked)
        columns = list(asked.grouping)
        with _told():
            chosen = self.frame.select(*columns)
            if isinstance(chosen, nw.DataFrame):
                return self._held(chosen).counted(asked)
            times = unused(TIMES, columns)
            grouped = self._held(chosen.group_by(*columns).agg(nw.len().alias(times)).collect())
            return Rows(self.engine, grouped.words, times).counted(asked)

    def uncounted(self, count: str) -> int | None:
        if isinstance(self.frame, nw.LazyFrame):
            return None
        with _told():
            return self._held(self.frame.select(count)).uncounted(count)

    def _kind(self, name: str, dtype: Any) -> str:
        """The type of a column; what an object is only its values tell."""
        if dtype == nw.Object and isinstance(self.frame, nw.DataFrame):
            with suppress(Exception):  # what cannot be read at all is refused when it is asked for
                return self._held(self.frame.select(name)).kinds()[name]
        found = (kind for known, kind in KINDS if isinstance(dtype, known))
        return "BIGINT" if dtype.is_integer() else next(found, "VARCHAR")

    def _held(self, frame: nw.DataFrame[Any]) -> Rows:
        return held(self.engine, frame.to_arrow())

    def _whole(self) -> Rows:
        """Let a lazy frame write its records, so that memory need not hold them.

        A cluster would write to disks of its own, where nobody removes them: its records are fetched.
        """
        with _told():
            if isinstance(self.frame, nw.DataFrame):
                return self._held(self.frame)
            if not (self.frame.implementation.is_polars() or self.frame.implementation.is_duckdb()):
                return self._held(self.frame.collect())
            # A writer that is late, after an error, does not find the folder any more.
            folder = scratch() / f"records-{id(self.engine)}"
            folder.mkdir()
            self.ending.callback(shutil.rmtree, folder, ignore_errors=True)
            self.frame.sink_parquet(str(folder / "records.parquet"))
            return Rows(self.engine, rows_of(folder / "records.parquet"))


@contextmanager
def _told() -> Iterator[None]:
    """Say in one sentence what the frame's library says, which may quote records."""
    try:
        yield
    except (Refused, duckdb.Error):
        raise
    except nw.exceptions.DuplicateError:
        raise Refused("two columns of the records have the same name: give each its own") from None
    except ModuleNotFoundError:
        raise Refused("reading a data frame needs pyarrow, which is not installed: install holdfast[pyarrow]") from None
    except Exception:
        raise Refused("the data frame cannot be read: a column of mixed types must be cast to texts first") from None
