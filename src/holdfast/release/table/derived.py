"""Rows of a released table that are sums of its figures: totals over categories, and exact margins not asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arrays import Bools, Ints
from holdfast.release.storage.coded import Texts
from holdfast.release.table.domain import BETWEEN, Layout
from holdfast.release.table.exactly import sums_of_rows
from holdfast.release.table.holding import Holding


@dataclass(frozen=True, eq=False)
class Derived:
    """Further rows: their names, the 0/1 matrix (rows, outputs) that adds them up, and which are exact as they are.

    `titles` name groups of such rows, as levels do with outputs, and `group_of` says of which group each is.
    """

    columns: dict[str, Texts]
    sums: Any
    exact: Bools
    titles: tuple[str, ...]
    group_of: Ints

    @property
    def labels(self) -> list[str]:
        """A name in one piece for every row."""
        rows = zip(*(texts.tolist() for name, texts in self.columns.items() if name != "level"), strict=True)
        return [" / ".join(str(text) for text in row if text is not None) or "total" for row in rows]


def derived(layout: Layout, holding: Holding) -> Derived | None:
    """Return the rows that are written besides the outputs; None where there are none."""
    figures = holding.account["exact"]
    if layout.tree is not None:
        if layout.by == 1:
            return None
        sums = [each for each in figures if any(len(rows) > 1 for rows in each["rows"])]
        parts = [_totals(layout, [rows for each in sums for rows in each["rows"] if len(rows) == layout.by])]
        parts += [_by_some(layout, each) for each in sums if any(len(rows) < layout.by for rows in each["rows"])]
    elif layout.areas is not None:
        return None
    else:
        parts = [_margin(layout, each["figure"]) for each in figures if each["figure"] not in layout.levels]
    return _joined(layout, parts) if parts else None


def _joined(layout: Layout, parts: Sequence[Derived]) -> Derived:
    first = np.cumsum([0, *(len(part.titles) for part in parts)])
    return Derived(
        {name: np.concatenate([part.columns[name] for part in parts]) for name in layout.columns},
        sparse.vstack([part.sums for part in parts], format="csr"),
        np.concatenate([part.exact for part in parts]),
        tuple(title for part in parts for title in part.titles),
        np.concatenate([part.group_of + start for part, start in zip(parts, first[:-1], strict=True)]),
    )


def _totals(layout: Layout, exact: Sequence[Sequence[int]]) -> Derived:
    """Every node of a hierarchy, over all its categories; `exact`: the outputs of those that are exact."""
    assert layout.tree is not None
    nodes, by = layout.tree.n, layout.by
    columns = {name: texts[::by].copy() for name, texts in layout.columns.items()}
    for name in layout.asked.categories:
        columns[name][:] = None
    ones = np.ones(nodes * by, dtype=np.int64)
    sums = sparse.csr_array((ones, np.arange(nodes * by), np.arange(nodes + 1) * by), shape=(nodes, nodes * by))
    known = np.zeros(nodes, dtype=bool)
    known[[rows[0] // by for rows in exact]] = True
    return Derived(columns, sums, known, tuple(f"{level}, total" for level in layout.levels), layout.tree.depth)


def _by_some(layout: Layout, figure: dict[str, Any]) -> Derived:
    """Exact figures of nodes by some of their categories."""
    rows = figure["rows"]
    first = np.array([each[0] for each in rows], dtype=np.int64)
    columns = {name: texts[first].copy() for name, texts in layout.columns.items()}
    for name in layout.asked.categories:
        several = [len(set(layout.columns[name][each].tolist())) > 1 for each in rows]
        columns[name][several] = None
    return Derived(
        columns,
        sums_of_rows(rows, layout.query.n),
        np.ones(len(rows), dtype=bool),
        (figure["figure"],),
        np.zeros(len(rows), dtype=np.int64),
    )


def _margin(layout: Layout, name: str) -> Derived:
    """An exact margin, from the first level or margin that holds its axes."""
    axes = [] if name == "total" else name.split(BETWEEN)
    level = next(i for i, kept in enumerate(layout.levels) if set(axes) <= set(kept.split(BETWEEN)))
    outputs = np.flatnonzero(layout.level_of == level)
    keys = [layout.keys[layout.names.index(axis)] for axis in axes]
    shape = [key.size for key in keys]
    count = int(np.prod(shape, dtype=np.int64))
    position = np.zeros(outputs.size, dtype=np.int64)
    for axis, key in zip(axes, keys, strict=True):
        place = {text: i for i, text in enumerate(key.values[-1].tolist())}
        position = position * key.size + np.array([place[text] for text in layout.columns[axis][outputs]])
    ones = np.ones(outputs.size, dtype=np.int64)
    sums = sparse.csr_array((ones, (position, outputs)), shape=(count, layout.query.n))
    columns: dict[str, Texts] = {column: np.full(count, None, dtype=object) for column in layout.columns}
    columns["level"][:] = name
    points = np.unravel_index(np.arange(count), shape) if shape else ()
    for axis, key, point in zip(axes, keys, points, strict=True):
        columns[axis] = key.values[-1][point]
    return Derived(columns, sums, np.ones(count, dtype=bool), (name,), np.zeros(count, dtype=np.int64))
