"""Where confidential records come from: files and frames, opened in the engine without copying them.

No message here repeats what the engine says about a source: it may quote records.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb
import narwhals as nw

from holdfast.arguments import Refused
from holdfast.release.spec.spec import Spec
from holdfast.release.storage.engine import scratch
from holdfast.release.storage.reading import CSV, PARQUET, files_of, quoted_name, quoted_text, rows_of

FILES = (PARQUET, *CSV)
DATABASES = (".duckdb", ".db")
#: How many records a row of a grouped frame stands for.
COUNT = "holdfast_count"


def opened(engine: duckdb.DuckDBPyConnection, spec: Spec, source: Any, columns: list[str] | None) -> tuple[str, str]:
    """Make the records known to the engine; return the words that name them in a query, and what counts them.

    `columns` are the ones that are needed; None: all of them (whole records are hashed). A lazy frame is counted in its
    own engine, so that only its distinct values come here; where whole records are needed it writes them to a file.
    """
    if source is None:
        return _file(engine, spec), "count(*)"
    if isinstance(source, (str, Path)):
        raise Refused("source must be a data frame; a file is named in the spec, under data.source")
    try:
        frame = nw.from_native(source)
    except TypeError:
        raise Refused(
            f"source must be a data frame that narwhals can read, found an object of type {type(source).__name__}"
        ) from None
    available = frame.collect_schema().names()
    # Columns that are missing are refused later, with those of files.
    needed = available if columns is None else [column for column in columns if column in available] or available[:1]
    try:
        chosen = frame.select(*needed)
        if not isinstance(chosen, nw.LazyFrame):
            engine.register("records", chosen.to_arrow())
            return "records", "count(*)"
        return (_written(engine, chosen), "count(*)") if columns is None else _grouped(engine, chosen, needed)
    except ModuleNotFoundError:
        raise Refused("reading a data frame needs pyarrow, which is not installed: install holdfast[pyarrow]") from None
    except Exception:  # whatever the frame's library raises may quote records
        raise Refused("the data frame cannot be read: a column of mixed types must be cast to texts first") from None


def _grouped(engine: duckdb.DuckDBPyConnection, frame: nw.LazyFrame[Any], columns: list[str]) -> tuple[str, str]:
    """Let a lazy frame count its distinct values, in its own engine."""
    number = unused(COUNT, columns)
    engine.register("records", frame.group_by(*columns).agg(nw.len().alias(number)).collect().to_arrow())
    return "records", f"sum({number})::BIGINT"


def _written(engine: duckdb.DuckDBPyConnection, frame: nw.LazyFrame[Any]) -> str:
    """Let a lazy frame write its records to a private file, in its own engine, so that memory need not hold them.

    A cluster would write to disks of its own, where nobody removes them: its records are fetched.
    """
    if not (frame.implementation.is_polars() or frame.implementation.is_duckdb()):
        engine.register("records", frame.collect().to_arrow())
        return "records"
    folder = _folder_of(engine)
    folder.mkdir()
    path = folder / "records.parquet"
    frame.sink_parquet(str(path))
    return rows_of(path)


def _file(engine: duckdb.DuckDBPyConnection, spec: Spec) -> str:
    name = spec.data.source
    if name is None:
        raise spec.at["data"].refuse("data.source is missing: name a file of records, or pass a data frame from Python")
    path = spec.resolve(name)
    if not files_of(path):
        raise spec.at["data"]["source"].refuse(f"there is no file {name!r}", found=name)
    if path.name.endswith(DATABASES):
        return _database(engine, spec, path)
    if not path.name.endswith(FILES):
        raise spec.at["data"]["source"].refuse(
            f"the source {name!r} must end in one of {', '.join(FILES + DATABASES)}", found=name
        )
    return rows_of(path)


def _database(engine: duckdb.DuckDBPyConnection, spec: Spec, path: Path) -> str:
    table, alias = spec.data.table, _alias(engine)
    try:
        engine.execute(f"ATTACH '{quoted_text(str(path))}' AS {alias} (READ_ONLY)")
        rows = engine.execute(f"SELECT table_name FROM duckdb_tables() WHERE database_name = '{alias}'").fetchall()
        views = engine.execute(f"SELECT view_name FROM duckdb_views() WHERE database_name = '{alias}' AND NOT internal")
        names = sorted(row[0] for row in [*rows, *views.fetchall()])
    except duckdb.Error:
        raise spec.at["data"]["source"].refuse(f"{path.name!r} is not a DuckDB file that can be opened") from None
    if table is None and len(names) == 1:
        table = names[0]
    if table is None:
        raise spec.at["data"].refuse("a DuckDB file needs data.table, the name of the table inside it", None, names)
    if table not in names:
        raise spec.at["data"]["table"].refuse(f"the DuckDB file has no table {table!r}", table, names)
    return f"{alias}.{quoted_name(table)}"


def unused(name: str, columns: Iterable[str]) -> str:
    """Return a name that no column has, in whatever case."""
    taken = {column.lower() for column in columns}
    while name in taken:
        name += "_"
    return name


def _alias(engine: duckdb.DuckDBPyConnection) -> str:
    """The name of a session's database file: sessions of one process share the engine."""
    return f"holdfast_source_{id(engine)}"


def _folder_of(engine: duckdb.DuckDBPyConnection) -> Path:
    """The private folder of a session: a writer that is late, after an error, does not find it any more."""
    return scratch() / f"records-{id(engine)}"


def closed(engine: duckdb.DuckDBPyConnection, spec: Spec) -> None:
    """Let go of the database file and of the private folder of a session, if there are any."""
    shutil.rmtree(_folder_of(engine), ignore_errors=True)
    if (spec.data.source or "").endswith(DATABASES):
        engine.execute(f"DETACH DATABASE IF EXISTS {_alias(engine)}")
