"""The engine that counts confidential records: started once per process, watched where somebody looks."""

from __future__ import annotations

import atexit
import csv
import ctypes
import glob
import gzip
import os
import re
import shutil
import tempfile
import threading
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import duckdb

from holdfast.arguments import Refused
from holdfast.progress import PAUSE, Progress, heard
from holdfast.system import after_fork_in_child, close_folder, is_mine, is_open, lock, open_folder

# --- a private folder for what does not fit into memory. It goes with its process, or else with the next one ---------
# A process keeps its folder locked as long as it lives, also when it is killed: a folder that can be locked belongs to
# nobody, and is removed.

PREFIX = "holdfast-scratch-"


def scratch_folder() -> Path:
    """Make a folder that only this user can read; it is removed when the process ends."""
    process = os.getpid()
    place = os.environ.get("TMPDIR") or tempfile.gettempdir()
    for abandoned in Path(place).glob(f"{PREFIX}*"):
        with suppress(OSError):  # of another user, or gone meanwhile
            _remove(abandoned)
    while True:
        try:
            folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
        except OSError:
            sentence = "cannot be written: set TMPDIR to a folder for what does not fit into memory"
            raise Refused(f"{place!r} {sentence}") from None
        try:
            held = open_folder(folder)
        except FileNotFoundError:
            continue  # taken for abandoned before it was opened
        with suppress(BlockingIOError):
            lock(held)
            if is_open(held, folder):
                break
        os.close(held)  # another process took it for abandoned before it was locked

    def end() -> None:
        if os.getpid() == process:  # a forked process must leave the folder of its parent alone
            shutil.rmtree(folder, ignore_errors=True)
            close_folder(held, folder)

    atexit.register(end)
    return folder


def _remove(folder: Path) -> None:
    """Remove a folder of this user that no process has locked."""
    held = open_folder(folder, follow=False)
    try:
        if is_mine(os.fstat(held)):
            lock(held)
            shutil.rmtree(folder)
    finally:
        close_folder(held, folder)


def counting_session() -> duckdb.DuckDBPyConnection:
    """Return a new session of the engine; what it makes is its own and goes with it."""
    return _started(os.getpid())[0].cursor()


def scratch() -> Path:
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


# --- how the engine reads files: by their names and headers alone, never by what the rows look like ------------------
# A reader that guesses separators, quotes or the header from the rows would let one record change how all others are
# read, and would take a record for the names of columns.

#: Ends of the names of files of rows.
PARQUET, CSV = ".parquet", (".csv", ".csv.gz", ".tsv", ".tsv.gz")
#: What can stand between the values of a CSV file; the header says which one does.
SEPARATORS = ",;\t|"
#: What a text must look like to be a count: 12, +12 and 12.0 do.
WHOLE_TEXT = r"\+?[0-9]{1,19}(\.0*)?"
#: Characters of a header at most.
LONGEST = 1 << 20


class Unreadable(OSError):
    """A file is not what its name says."""


def session() -> duckdb.DuckDBPyConnection:
    """Return a new session of the engine that reads public and released files, in the order of their rows."""
    return _engine_of(os.getpid()).cursor()


@cache
def _engine_of(process: int) -> duckdb.DuckDBPyConnection:
    """Start the engine once per process: that takes longer than reading a file. What was read is not kept."""
    engine = duckdb.connect(config={"enable_external_file_cache": False})
    lasting(engine, process)
    return engine


def lasting(engine: duckdb.DuckDBPyConnection, process: int) -> None:
    """Keep an engine until its process ends; a forked one leaves it alone, since the engine's threads are not there."""
    after_fork_in_child(lambda: ctypes.pythonapi.Py_IncRef(ctypes.py_object(engine)))
    atexit.register(lambda: engine.close() if os.getpid() == process else None)


def files_of(path: Path) -> list[Path]:
    """Return the file with this very name, or else those that the pattern means."""
    return [path] if os.path.exists(path) else [Path(name) for name in sorted(glob.glob(str(path)))]


def rows_of(path: Path | Sequence[Path], separator: str | None = None, options: str = "", hive: bool = False) -> str:
    """Return the words that name the rows of a file, or of several alike, in a query; the values of CSV are texts.

    `hive`: what the names of folders say (year=2022) are columns of texts too.
    """
    files = files_of(path) if isinstance(path, Path) else path
    listed = ", ".join(f"'{quoted_text(literal(file))}'" for file in files)
    parts = ", hive_partitioning = true, hive_types_autocast = false" if hive else ", hive_partitioning = false"
    if files and files[0].name.endswith(PARQUET):
        return f"read_parquet([{listed}]{parts})"
    headers = {_header(file, separator) for file in files}
    if len(headers) != 1:
        raise Unreadable("the files do not have the same header")
    between, names = headers.pop()
    columns = ", ".join(f"'{quoted_text(name)}': 'VARCHAR'" for name in names)
    dialect = f"auto_detect = false, header = true, delim = '{between}', quote = '\"', escape = '\"'"
    return f"read_csv([{listed}], {dialect}, columns = {{{columns}}}{options}{parts})"


def header_of(file: Path, separator: str | None = None) -> tuple[str, list[str]]:
    """Return the separator of a CSV file and the names in its first line."""
    try:
        with gzip.open(file) if file.name.endswith(".gz") else file.open("rb") as content:
            text = content.readline(LONGEST).decode("utf-8-sig")
            while text.count('"') % 2 and (more := content.readline(LONGEST).decode()):
                text += more
        parts = {
            each: next(csv.reader(text.splitlines(keepends=True), delimiter=each), [])
            for each in separator or SEPARATORS
        }
    except (IsADirectoryError, UnicodeDecodeError, EOFError, zlib.error, gzip.BadGzipFile, csv.Error):
        raise Unreadable("the first line cannot be read") from None
    between = max(parts, key=lambda each: len(parts[each]))
    return between, parts[between]


def _header(file: Path, separator: str | None) -> tuple[str, tuple[str, ...]]:
    """Return the separator of a CSV file and the names of its columns, each once whatever its case."""
    between, written = header_of(file, separator)
    names: dict[str, str] = {}
    for i, name in enumerate(written):
        own = name or f"column{i}"
        while own.lower() in names:
            own += f"_{i}"
        names[own.lower()] = own
    if not names:
        raise Unreadable("there is no header")
    return between, tuple(names.values())


def literal(path: Path) -> str:
    return re.sub(r"([*?\[])", r"[\1]", str(path))


def quoted_text(text: str) -> str:
    return text.replace("'", "''")


def quoted_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def as_text(column: str, kind: str) -> str:
    """Write a column as names: whole numbers without a fraction, nothing for empty texts and missing numbers."""
    if kind.startswith(("FLOAT", "DOUBLE")):
        whole = f"CASE WHEN {column} = trunc({column}) AND abs({column}) < 1e18 THEN CAST({column}::BIGINT AS VARCHAR)"
        return f"CASE WHEN isnan({column}) THEN NULL ELSE {whole} ELSE CAST({column} AS VARCHAR) END END"
    if kind.startswith("DECIMAL"):
        whole = f"CAST(CAST({column} AS HUGEINT) AS VARCHAR)"
        return f"CASE WHEN {column} = trunc({column}) THEN {whole} ELSE CAST({column} AS VARCHAR) END"
    return f"nullif(CAST({column} AS VARCHAR), '')"


def as_person(column: str, kind: str) -> str:
    """Write a column as persons: as names, without blanks around them, and a text such as 1.0 as 1."""
    name = as_text(column, kind)
    if not kind.startswith(("VARCHAR", "ENUM")):
        return name
    bare = f"trim({name}, ' ' || chr(9) || chr(10) || chr(13) || chr(160))"
    whole = f"regexp_replace({bare}, '^([+-]?[0-9]+)[.]0*$', '\\1')"
    return f"nullif(CASE WHEN contains({name}, '.') THEN {whole} ELSE {bare} END, '')"
