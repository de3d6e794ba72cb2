"""From records in a data frame to cell counts: the columns of a frame name the places or values of a query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np

from holdfast.arguments import LARGEST, Refused, of_type, one_of
from holdfast.arrays import Ints
from holdfast.domains import Cube, Hierarchy
from holdfast.domains.data_frames import text_of

#: The column that says in which of several categories of a node a record is, by number.
CATEGORY = "category"
#: The column that says in which cell a record is, by number, where cells have no axes.
CELL = "cell"
#: A part of a cell's address: columns, the position of every combination of their texts, and how many there are.
Key = tuple[tuple[str, ...], dict[tuple[str | None, ...], int], int]


def count_cells(
    size: int | None, tree: Hierarchy | None, cube: Cube | None, frame: Any, count: str | None, outside: str
) -> Ints:
    """Count the records of a frame into the cells of a domain; `count` names a column of counted rows."""
    if size is None:
        raise Refused("a query that is known by its sensitivities only has no cells to count records in")
    one_of("outside", outside, ("refuse", "drop"))
    if count is not None:
        of_type("count", count, str)
    records = _read(frame)
    available = records.collect_schema().names()
    keys = _keys(size, tree, cube, available)
    columns = list(dict.fromkeys(column for names, _, _ in keys for column in names))
    wanted = [*columns, *([] if count is None or count in columns else [count])]
    for column in wanted:
        if column not in available:
            raise Refused(f"frame has no column {column!r}: it has {', '.join(map(repr, available))}")
    times = "holdfast_count" + "_" * max(map(len, wanted))
    chosen = records.lazy().select(*wanted).group_by(*wanted).agg(nw.len().alias(times)).collect()
    texts = [[text_of(value) for value in chosen[column].to_list()] for column in columns]
    numbers = [int(number) for number in chosen[times].to_list()]
    if count is not None:
        each = [_whole(value) for value in chosen[count].to_list()]
        if None in each:
            raise Refused(f"count must be a whole number of 0 or more in every row: {_which(records, count)} has none")
        numbers = [int(number) * one for number, one in zip(numbers, each, strict=True) if one is not None]
    if sum(numbers) >= LARGEST:
        raise Refused("count must add up to less than 2**62, which no figure exceeds")
    cells = np.zeros(size, dtype=np.int64)
    for names, number in zip(zip(*texts, strict=True), numbers, strict=True):
        cell = _cell(dict(zip(columns, names, strict=True)), keys)
        if cell is not None:
            cells[cell] += number
        elif outside == "refuse":
            raise Refused("some record names no cell of the query: correct the data, or write outside='drop'")
    return cells


def _read(frame: Any) -> Any:
    try:
        return nw.from_native(frame)
    except TypeError:
        raise Refused(
            f"frame must be a table that narwhals can read, found an object of type {type(frame).__name__}"
        ) from None


def _keys(size: int, tree: Hierarchy | None, cube: Cube | None, available: Sequence[str]) -> list[Key]:
    """How the columns of a frame address the cells of a domain; the last key runs fastest."""
    keys = [] if tree is None else [_leaves(tree, available)]
    if cube is not None:
        return [*keys, *(_numbers(name, length) for name, length in zip(cube.names, cube.shape, strict=True))]
    if tree is None:
        return [_numbers(CELL, size)]
    return keys if size == tree.n_leaves else [*keys, _numbers(CATEGORY, size // tree.n_leaves)]


def _numbers(name: str, size: int) -> Key:
    return (name,), {(str(i),): i for i in range(size)}, size


def _leaves(tree: Hierarchy, available: Sequence[str]) -> Key:
    """Leaves are named by the levels that the frame has, from the lowest one up as far as their names differ."""
    if tree.levels[-1] not in available:
        raise Refused(f"frame needs a column {tree.levels[-1]!r}, which names the lowest places of the hierarchy")
    paths = []
    for leaf in tree.leaves.tolist():
        path = tree.path(leaf)
        paths.append((*path, *(None for _ in range(len(tree.levels) - len(path)))))
    for depth in range(len(tree.levels) - 1, -1, -1):
        used = [d for d in range(depth, len(tree.levels)) if tree.levels[d] in available]
        named = {tuple(path[d] for d in used): i for i, path in enumerate(paths)}
        if len(named) == len(paths):
            return tuple(tree.levels[d] for d in used), named, len(paths)
    raise Refused("frame needs columns of higher levels too, since some places of the hierarchy have the same name")


def _cell(names: dict[str, str | None], keys: Sequence[Key]) -> int | None:
    cell = 0
    for columns, positions, size in keys:
        position = positions.get(tuple(names[column] for column in columns))
        if position is None:
            return None
        cell = cell * size + position
    return cell


def _whole(value: Any) -> int | None:
    text = None if isinstance(value, bool) else text_of(value)
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 20 else None


def _which(records: Any, count: str) -> str:
    """The first row, from 1, whose count is none; rows of a lazy frame have no order."""
    if isinstance(records, nw.LazyFrame):
        return "some row"
    return f"row {1 + [_whole(value) for value in records[count].to_list()].index(None)}"
