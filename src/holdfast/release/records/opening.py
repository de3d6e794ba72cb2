"""Where confidential records come from: which kind of source reads what the spec names, or what was passed on.

No message here repeats what an engine says about a source: it may quote records, or what is secret in an address.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import duckdb

from holdfast.arguments import Refused
from holdfast.release.records.databases import opened_database
from holdfast.release.records.files import opened_files
from holdfast.release.records.frames import opened_frame
from holdfast.release.records.source import Place, Source
from holdfast.release.records.spark import Cluster, spark_frame
from holdfast.release.spec.data import SECRET, Elsewhere
from holdfast.release.spec.spec import Spec


@contextmanager
def opened(engine: duckdb.DuckDBPyConnection, spec: Spec, source: Any) -> Iterator[Source]:
    """Open the records of a spec, or others instead; whatever was made for them goes when this ends."""
    with ExitStack() as ending:
        place = _place(engine, spec, source, ending)
        frame = spark_frame(source)
        if frame is not None:
            yield Cluster(engine, frame)
        elif place is None:
            yield opened_frame(engine, source, ending)
        elif "://" in place.text:
            yield opened_database(place)
        else:
            yield opened_files(place)


def _expanded(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError:
        raise Refused(f"{str(path)!r} names the home of a user who is not here: write the whole path") from None


def _place(engine: duckdb.DuckDBPyConnection, spec: Spec, source: Any, ending: ExitStack) -> Place | None:
    """What is named by a text: in the spec or elsewhere, or passed on; None for a frame."""
    data, at, counted = spec.data, spec.at["data"], spec.data.count is not None
    if isinstance(source, (str, Path)):
        path = str(source) if "://" in str(source) else str(_expanded(Path(source)).absolute())
        hidden = SECRET.search(str(source)) is not None
        return Place(engine, at, path, Path(path), data.table, data.query, ending, counted, hidden)
    if source is not None:
        return None
    if data.source is None:
        raise at.refuse("data.source is missing: name a file of records, or pass a data frame from Python")
    if isinstance(data.source, Elsewhere):
        text = data.source.read(at["source"])
        return Place(engine, at, text, spec.resolve(text), data.table, data.query, ending, counted, hidden=True)
    return Place(engine, at, data.source, spec.resolve(data.source), data.table, data.query, ending, counted)
