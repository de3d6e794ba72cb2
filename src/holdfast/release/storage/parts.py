"""A table in parts: a folder of files alike, each with some of its rows, which carry their numbers in the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.release.storage.reading import Unreadable
from holdfast.release.storage.tables import Columns, read_column, read_csv, read_parquet

#: The column before all others that says which row of the table a row of a part is, from 0.
ROW = "row"
OTHER_ROWS = "its parts do not have every row once"


def part_names(name: str, parts: int) -> list[str]:
    """The files of a table or its noisy answers in a release: one of its own name, or as many parts in a folder."""
    return [f"{name}/{number:05d}{Path(name).suffix}" for number in range(parts)] or [name]


def read_table(folder: Path, name: str, parts: int, rows: int | None = None) -> Columns:
    """Read a table from Parquet, or from CSV as texts by the end of its name, in the order of its rows.

    `rows`: how many there are, each once; None: some of them are there.
    """
    read: Callable[[list[Path]], Columns] = read_csv if name.endswith(".csv") else read_parquet
    found = read([folder / each for each in part_names(name, parts)])
    return in_order(found, rows) if parts else found


class PartColumns(Mapping[str, Any]):
    """The columns of a table whose parts follow each other, each read when it is first asked for."""

    def __init__(self, folder: Path, name: str, parts: int, columns: Sequence[str]) -> None:
        self._paths = [folder / each for each in part_names(name, parts)]
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


def in_order(columns: Columns, rows: int | None) -> Columns:
    """Rows of parts in the order of the table, without their numbers; unreadable where these are not what they say."""
    numbers: Any = np.ma.asarray(columns.get(ROW, np.empty(0)))
    if numbers.dtype.kind == "O" and all(str(text).isdecimal() and len(str(text)) < 19 for text in numbers.tolist()):
        numbers = numbers.astype(np.int64)
    if numbers.dtype.kind != "i" or np.ma.getmaskarray(numbers).any() or next(iter(columns)) != ROW:
        raise Unreadable(OTHER_ROWS)
    order = np.argsort(numbers, kind="stable")
    found = np.asarray(numbers)[order]
    if (np.diff(found) < 1).any() or (rows is not None and not np.array_equal(found, np.arange(rows))):
        raise Unreadable(OTHER_ROWS)
    return {name: column[order] for name, column in columns.items() if name != ROW}
