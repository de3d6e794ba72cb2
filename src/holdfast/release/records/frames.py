"""Records in data frames of any library that narwhals reads: in memory, or lazy and counted in their own engine."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import duckdb
import narwhals as nw

from holdfast.arguments import Refused
from holdfast.release.records.rows import Rows, held, unused
from holdfast.release.records.source import Asked, Source
from holdfast.release.storage.engine import scratch
from holdfast.release.storage.reading import rows_of

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


def opened_frame(engine: duckdb.DuckDBPyConnection, source: Any, ending: ExitStack) -> Source:
    """Read nothing yet; say what cannot be read."""
    with _told():
        try:
            return Frame(engine, nw.from_native(source), ending)
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

    def kinds(self) -> Mapping[str, str]:
        """Say it in the words of the engine."""
        with _told():
            return {name: self._kind(name, dtype) for name, dtype in self.frame.collect_schema().items()}

    def counted(self, asked: Asked) -> str:
        """Group by everything that matters, the counts of rows included."""
        if asked.persons is not None:
            return self._whole().counted(asked)
        columns = list(dict.fromkeys([*asked.columns, *([] if asked.count is None else [asked.count])]))
        with _told():
            chosen = self.frame.select(*columns)
            if isinstance(chosen, nw.DataFrame):
                return self._held(chosen).counted(asked)
            times = unused(TIMES, columns)
            grouped = self._held(chosen.group_by(*columns).agg(nw.len().alias(times)).collect())
            return Rows(self.engine, grouped.words, times).counted(asked)

    def uncounted(self, count: str) -> int | None:
        """The rows of a frame in memory have an order."""
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
