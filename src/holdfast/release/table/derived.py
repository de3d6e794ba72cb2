"""Rows of a released table that are sums of its figures: totals over categories, and exact margins not asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arrays import Bools
from holdfast.release.table.domain import BETWEEN, Layout
from holdfast.release.table.holding import Holding
from holdfast.release.table.public import Texts


@dataclass(frozen=True, eq=False)
class Derived:
    """Further rows: their names, the 0/1 matrix (rows, outputs) that adds them up, and which are exact as they are."""

    columns: dict[str, Texts]
    sums: Any
    exact: Bools


def derived(layout: Layout, holding: Holding) -> Derived | None:
    """Return the rows that are written besides the outputs; None where there are none."""
    if layout.tree is not None:
        return _totals(layout) if layout.by > 1 else None
    if layout.areas is not None:
        return None
    missing = [figure["figure"] for figure in holding.account["exact"] if figure["figure"] not in layout.levels]
    parts = [_margin(layout, name) for name in missing]
    if not parts:
        return None
    columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in layout.columns}
    return Derived(
        columns, sparse.vstack([part.sums for part in parts], format="csr"), np.concatenate([p.exact for p in parts])
    )


def _totals(layout: Layout) -> Derived:
    """Every node of a hierarchy, over all its categories."""
    assert layout.tree is not None
    nodes, by = layout.tree.n, layout.by
    columns = {name: texts[::by].copy() for name, texts in layout.columns.items()}
    for name in layout.asked.categories:
        columns[name][:] = None
    ones = np.ones(nodes * by, dtype=np.int64)
    sums = sparse.csr_array((ones, np.arange(nodes * by), np.arange(nodes + 1) * by), shape=(nodes, nodes * by))
    return Derived(columns, sums, np.zeros(nodes, dtype=bool))


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
    return Derived(columns, sums, np.ones(count, dtype=bool))
