"""Released tables as files: Parquet and CSV with the same rows, written and read by DuckDB."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from holdfast.arrays import Bools, Ints
from holdfast.release.standalone_verifier.reading import names_of
from holdfast.release.storage.engine import quoted_name, quoted_text, rows_of, session
from holdfast.release.storage.files import sync_file

# --- a column of names as codes, which take little memory, and the hash of such columns ------------------------------

Texts = npt.NDArray[np.object_]


class Coded(NamedTuple):
    """A column of names: the distinct ones, None among them, and which of them each row has."""

    texts: Texts
    codes: Ints

    @property
    def column(self) -> Texts:
        return self.texts[self.codes]

    @property
    def told(self) -> Bools:
        return np.array([text is not None for text in self.texts], dtype=bool)[self.codes]

    def at(self, rows: Ints) -> Coded:
        """Some rows, whose names are numbered in the order in which they first occur."""
        codes = self.codes[rows]
        place = np.full(self.texts.size, codes.size)
        place[codes[::-1]] = np.arange(codes.size - 1, -1, -1)
        used = np.argsort(place)[: int((place < codes.size).sum())]
        number = np.zeros(self.texts.size, np.int64)
        number[used] = np.arange(used.size)
        return Coded(self.texts[used], number[codes])


def hash_names(found: Any, name: str, column: Coded) -> None:
    """Put a column of a part into the hash of a domain: its names as they first occur, and the codes of its rows."""
    texts, codes = column.at(np.arange(column.codes.size))
    found.update(json.dumps([name, texts.tolist()], ensure_ascii=False, separators=(",", ":")).encode())
    found.update(codes.astype("<u4").tobytes())


# --- A table in parts: a folder of files alike, each with some of its rows, which carry their numbers in the table

#: The column before all others that says which row of the table a row of a part is, from 0.
ROW = "row"


def read_table(folder: Path, name: str, parts: int) -> Columns:
    """Read a table, or its noisy answers, in the order of its rows."""
    found = read_parquet([folder / each for each in names_of(name, parts)])
    if not parts:
        return found
    order = np.argsort(found.pop(ROW), kind="stable")
    return {name: column[order] for name, column in found.items()}


class PartColumns(Mapping[str, Any]):
    """The columns of a table whose parts follow each other, each read when it is first asked for."""

    def __init__(self, folder: Path, name: str, parts: int, columns: Sequence[str]) -> None:
        self._paths = [folder / each for each in names_of(name, parts)]
        self._names, self._read = tuple(columns), dict[str, Any]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._read:
            self._read[name] = read_column(self._paths, name)
        return self._read[name]


#: The columns that follow the names of a row: the released value and its interval.
FIGURES = ("value", "low", "high")
#: The ends of the interval, and below which doubles hold every whole number.
ENDS, EXACT = FIGURES[1:], 2.0**53
#: How the column that holds the labels of another begins and ends: with its name, and with this.
LABEL = "_label"
#: The columns that follow the names of a row of the noisy answers: what was measured, and its standard deviation.
MEASUREMENTS = ("value", "standard_deviation")

Columns = dict[str, npt.NDArray[Any]]
#: Columns that may be read when they are asked for.
Named = Mapping[str, npt.NDArray[Any]]


def in_unit(steps: Any, unit: Fraction) -> Any:
    """Numbers of steps in the unit of a column: whole ones stay whole where a step is."""
    if unit.denominator == 1:
        return steps if unit == 1 else steps * unit.numerator
    return steps * unit.numerator / unit.denominator


def in_steps(values: npt.NDArray[Any], unit: Fraction, *, whole: bool) -> npt.NDArray[Any]:
    """The same the other way round; `whole`: they are whole numbers of steps."""
    if unit == 1:
        return values
    found = values * unit.denominator / unit.numerator
    return np.rint(found).astype(np.int64) if whole else found


def label_column(column: str) -> str:
    """The name of the column that holds the labels of another; it follows the figures."""
    return f"{column}{LABEL}"


def write_table(columns: Mapping[str, npt.NDArray[Any]], parquet: Path, csv: Path | None = None) -> None:
    """Write columns of one length to Parquet, and to CSV if asked; durable when this returns."""
    with session() as connection:
        # Texts are taken as texts, whatever they look like and however late the first one comes.
        connection.execute("SET pandas_analyze_sample = 0")
        connection.register("columns_of_table", dict(columns))
        connection.execute(f"COPY columns_of_table TO {_text(parquet)} (FORMAT parquet)")
        if csv is not None:  # from the file, whose texts are the engine's own: they are taken from Python once
            chosen = f"SELECT * {_in_digits(columns)} FROM {rows_of([parquet])}"
            connection.execute(f"COPY ({chosen}) TO {_text(csv)} (FORMAT csv, HEADER, DELIMITER ',')")
    for path in (parquet, csv):
        if path is not None:
            sync_file(path)


def _in_digits(columns: Mapping[str, npt.NDArray[Any]]) -> str:
    """Let CSV write columns of whole numbers as 3950, not 3950.0, where doubles hold each of them exactly."""
    real = {name: column[np.isfinite(column)] for name, column in columns.items() if column.dtype.kind == "f"}
    whole = [name for name, known in real.items() if name in ENDS and not (known % 1).any()]
    whole = [name for name in whole if (np.abs(real[name]) < EXACT).all()]
    found = ", ".join(f"CAST({quoted_name(name)} AS BIGINT) AS {quoted_name(name)}" for name in whole)
    return f"REPLACE ({found})" if found else ""


def write_csv(columns: Mapping[str, npt.NDArray[Any]], path: Path) -> None:
    """Write columns of one length to CSV alone; durable when this returns."""
    with session() as connection:
        connection.execute("SET pandas_analyze_sample = 0")
        connection.register("columns_of_table", dict(columns))
        connection.execute(f"COPY columns_of_table TO {_text(path)} (FORMAT csv, HEADER, DELIMITER ',')")
    sync_file(path)


def write_repeated(columns: Mapping[str, npt.NDArray[Any]], times: npt.NDArray[np.int64], *paths: Path) -> None:
    """Write every row so many times, in order, to Parquet or CSV by the name of the file; durable when this returns."""
    names = ", ".join(quoted_name(name) for name in columns)
    with session() as connection:
        connection.execute("SET pandas_analyze_sample = 0")
        connection.register("cells", {**columns, "times": times})
        for path in paths:
            form = "FORMAT parquet" if path.suffix == ".parquet" else "FORMAT csv, HEADER, DELIMITER ','"
            each = f"SELECT {names} FROM (SELECT {names}, unnest(range(times)) FROM cells)"
            connection.execute(f"COPY ({each}) TO {_text(path)} ({form})")
            sync_file(path)


def read_parquet(path: Path | Sequence[Path]) -> Columns:
    """Read the columns of a table, or of its parts one after the other; what is empty is masked."""
    return _read(path, "")


def read_column(paths: Sequence[Path], name: str) -> npt.NDArray[Any]:
    """Read one column of a table's parts, one after the other; what is empty is masked."""
    with session() as connection:
        found = connection.execute(f"SELECT {quoted_name(name)} AS found FROM {rows_of(paths)}").fetchnumpy()
    return (
        np.ma.asarray(found["found"]) if isinstance(found["found"], np.ma.MaskedArray) else np.asarray(found["found"])
    )


def first_rows(paths: Sequence[Path], count: int) -> Columns:
    with session() as connection:
        return dict(connection.execute(f"SELECT * FROM {rows_of(paths)} LIMIT {count}").fetchnumpy())


def read_csv(path: Path | Sequence[Path]) -> Columns:
    """Read the same as the texts they are written as; what is empty is masked."""
    return _read(path, ", nullstr = '', allow_quoted_nulls = false")


def other_entries(columns: Columns, copy: Columns, name: str) -> Iterator[str]:
    """Say where a copy of columns, whose entries may be texts, has other entries."""
    if list(copy) != list(columns) or any(len(copy[each]) != len(columns[each]) for each in columns):
        yield f"{name} has other columns or another number of rows"
        return
    for each, column in columns.items():
        empty = missing(column)
        if (missing(copy[each]) != empty).any():
            yield f"{name} has other entries in the column {each}"
            continue
        there, here = np.asarray(copy[each])[~empty], np.asarray(column)[~empty]
        try:
            same = (there.astype(here.dtype) == here).all()
        except ValueError:
            same = False
        if not same:
            yield f"{name} has other entries in the column {each}"


def _read(path: Path | Sequence[Path], options: str) -> Columns:
    with session() as connection:
        return dict(connection.execute(f"SELECT * FROM {rows_of(path, ',', options)}").fetchnumpy())


def missing(column: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    return np.ma.getmaskarray(np.ma.asarray(column))


def rows_named(columns: Named, table: Named, names: Sequence[str]) -> npt.NDArray[np.int64]:
    """The row of a table that has the same names, for every row of other columns; −1 where there is none."""
    there, here = (
        list(zip(*(np.ma.filled(np.ma.asarray(found[name], dtype=object), None) for name in names), strict=True))
        for found in (table, columns)
    )
    place = {row: number for number, row in enumerate(there)}
    return np.array([place.get(row, -1) for row in here], dtype=np.int64)


def _text(path: Path) -> str:
    return f"'{quoted_text(str(path))}'"


def texts(column: npt.NDArray[Any]) -> npt.NDArray[np.object_]:
    """A column of names as texts, None where it is empty."""
    found: npt.NDArray[np.object_] = np.ma.filled(np.ma.asarray(column, dtype=object), None)
    found[missing(column)] = None
    return found
