"""The engine that counts confidential records: started once per process, watched where somebody looks."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import duckdb

from holdfast.progress import PAUSE, Progress, heard
from holdfast.release.storage.reading import lasting
from holdfast.release.storage.scratch import scratch_folder


def counting_session() -> duckdb.DuckDBPyConnection:
    """Return a new session of the engine; what it makes is its own and goes with it."""
    return _started(os.getpid())[0].cursor()


def scratch() -> Path:
    """The private folder to which the engine writes what does not fit into memory."""
    return _started(os.getpid())[1]


@cache
def _started(process: int) -> tuple[duckdb.DuckDBPyConnection, Path]:
    """Start the engine once per process: that takes longer than counting millions of records."""
    folder = scratch_folder()  # registered before the engine, and so removed after it is closed
    engine = duckdb.connect(config={"temp_directory": str(folder), "preserve_insertion_order": False})
    lasting(engine, process)
    return engine, folder


@contextmanager
def watched(engine: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Show how far counting has come, where somebody watches."""
    if not heard():
        yield
        return
    engine.execute("SET enable_progress_bar_print = false")  # the engine only tells, and we show
    engine.execute("SET enable_progress_bar = true")
    done = threading.Event()

    def watch(progress: Progress) -> None:
        shown = 0
        while not done.wait(PAUSE):
            reached = int(engine.query_progress())  # of the statement that runs; −1 where it does not know
            progress.advance(max(0, reached - shown))
            shown = max(shown, reached)

    with Progress("counting", 100) as progress:
        watcher = threading.Thread(target=watch, args=(progress,), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()
