"""Where confidential records come from: which kind of source reads what the spec names, or what was passed on.

No message here repeats what the engine says about a source: it may quote records.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from holdfast.arguments import Refused
from holdfast.release.records.frames import opened_frame, removed
from holdfast.release.records.rows import Rows
from holdfast.release.records.source import Source
from holdfast.release.records.spark import Cluster, spark_frame
from holdfast.release.spec.spec import Spec
from holdfast.release.storage.reading import CSV, PARQUET, files_of, quoted_name, quoted_text, rows_of

FILES = (PARQUET, *CSV)
DATABASES = (".duckdb", ".db")


@contextmanager
def opened(engine: duckdb.DuckDBPyConnection, spec: Spec, source: Any) -> Iterator[Source]:
    """Open the records of a spec, or others instead; whatever was made for them goes when this ends."""
    try:
        yield _file(engine, spec) if source is None else _passed(engine, source)
    finally:
        removed(engine)
        engine.execute(f"DETACH DATABASE IF EXISTS {_alias(engine)}")


def _passed(engine: duckdb.DuckDBPyConnection, source: Any) -> Source:
    if isinstance(source, (str, Path)):
        raise Refused("source must be a data frame; a file is named in the spec, under data.source")
    frame = spark_frame(source)
    return opened_frame(engine, source) if frame is None else Cluster(engine, frame)


def _file(engine: duckdb.DuckDBPyConnection, spec: Spec) -> Source:
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
    return Rows(engine, rows_of(path), ordered=True)


def _database(engine: duckdb.DuckDBPyConnection, spec: Spec, path: Path) -> Source:
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
    return Rows(engine, f"{alias}.{quoted_name(table)}")


def _alias(engine: duckdb.DuckDBPyConnection) -> str:
    """The name of a session's database file: sessions of one process share the engine."""
    return f"holdfast_source_{id(engine)}"
