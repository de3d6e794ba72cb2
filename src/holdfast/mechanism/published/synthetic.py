"""Synthetic records: one row for every one that a whole table counts. Post-processing, and free (THEORY §10)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Refused
from holdfast.arrays import Ints
from holdfast.domains import Cube, Hierarchy
from holdfast.queries import Query
from holdfast.queries.areas.area_margins import AreaMargins
from holdfast.queries.areas.area_places import NO_CELLS
from holdfast.queries.areas.linked import LinkedCounts
from holdfast.queries.areas.tree_counts import TreeCounts
from holdfast.queries.margin_counts import MarginCounts

NOT_COUNTS = (
    "records need whole numbers of 0 or more that add up: ask for nonnegative and consistent, and whole numbers"
)


def cell_outputs(query: Query) -> Ints:
    """The outputs that are the cells themselves, in the order of the cells; refused where some are not asked for."""
    if query.tree is not None:
        by = query.n // query.tree.n
        return (query.tree.leaves[:, None] * by + np.arange(by)).ravel()
    if query.identity:
        return np.arange(query.n)
    if isinstance(query, AreaMargins):
        return query.cell_outputs
    if isinstance(query, LinkedCounts):
        return np.concatenate([part.cell_outputs + s for part, s in zip(query.parts, query.starts, strict=False)])
    if isinstance(query, MarginCounts):
        for start, axes in zip(query.offsets.tolist(), query.keep, strict=True):
            if axes == tuple(range(len(query.table.shape))):
                return start + np.arange(query.cells)
    raise Refused(NO_CELLS)


def cells_of(query: Query, values: npt.NDArray[Any]) -> Ints:
    """The count of every cell of a published table; refused where records cannot count to the table exactly."""
    cells = values[cell_outputs(query)]
    if values.dtype.kind != "i" or (values < 0).any() or (query.answer(_listed(query, cells)) != values).any():
        raise Refused(NOT_COUNTS)
    return np.asarray(cells, dtype=np.int64)


def _listed(query: Query, cells: Ints) -> Any:
    """Cells as a query is asked for their answer: by name where there are several tables."""
    if not isinstance(query, LinkedCounts):
        return cells
    ends = np.cumsum([part.cells for part in query.parts])[:-1]
    return dict(zip(query.names, np.split(cells, ends), strict=True))


def named_cells(query: Query) -> dict[str, npt.NDArray[Any]]:
    """The columns that name a cell: the levels of a hierarchy and its category, the axes of a cube, or a number.

    Cells of linked tables have a column `table` too, and nothing on the axes of the others.
    """
    if isinstance(query, LinkedCounts):
        named = [named_cells(part) for part in query.parts]
        sizes = [part.cells for part in query.parts]
        columns = {"table": np.repeat(np.array(query.names, dtype=object), sizes)}
        for name in dict.fromkeys(name for each in named for name in each):
            listed = zip(named, sizes, strict=True)
            none = (each.get(name, np.full(size, None)).astype(object) for each, size in listed)
            columns[name] = np.concatenate(list(none))
        return columns
    if isinstance(query, (TreeCounts, AreaMargins)):
        return _names_of_areas(query.hierarchy, query.table, query.cells // query.hierarchy.n_leaves)
    cube = query.cube
    if cube is None:
        return {"cell": np.arange(query.n)}
    points = cube.coordinates(np.arange(cube.cells))
    return {name: points[:, a] for a, name in enumerate(cube.names)}


def _names_of_areas(tree: Hierarchy, table: Cube | None, by: int) -> dict[str, npt.NDArray[Any]]:
    node = tree.leaves
    path = {}
    for depth in range(len(tree.levels) - 1, -1, -1):
        here = np.array([tree.names[v] if tree.depth[v] == depth else None for v in node], dtype=object)
        path[tree.levels[depth]] = np.repeat(here, by)
        node = np.where(tree.depth[node] == depth, tree.parents[node], node)
    whole = len(tree.levels) > 1 and (tree.parents < 0).sum() == 1  # a root that all records have says nothing
    columns = {level: path[level] for level in tree.levels[1 if whole else 0 :]}
    if by > 1 or table is not None:
        cells = table or Cube(by, ["category"])
        points = np.tile(cells.coordinates(np.arange(by)), (tree.n_leaves, 1))
        columns |= {name: points[:, a] for a, name in enumerate(cells.names)}
    return columns
