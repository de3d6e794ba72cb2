"""A hierarchy: every node of a tree, perhaps divided by categories, which are the cells of a cube in each node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from holdfast.arrays import Ints
from holdfast.domains import Cube, Hierarchy
from holdfast.queries import Query, counts
from holdfast.release.facts import Margin
from holdfast.release.spec.places import At
from holdfast.release.spec.rules import Exactly
from holdfast.release.spec.spec import Spec
from holdfast.release.spec.table import TableSpec
from holdfast.release.table.area_names import ancestors
from holdfast.release.table.kinds.domain import cube_of, named, places_of
from holdfast.release.table.public import PublicFiles
from holdfast.release.table.shape import Axes, Item, Kind, Layout

#: Trees with more outputs than this are described by the names of their rows alone, not sum by sum.
MOST_LISTED = 10_000


class Tree(Kind):
    """Counts at every node of a hierarchy."""

    name = "hierarchy"

    def lay_out(self, spec: Spec, asked: TableSpec, at: At, files: PublicFiles) -> Layout:
        tree, keys = places_of(spec, asked, at, files)
        by = int(np.prod([key.size for key in keys[1:]], dtype=np.int64))
        columns = {"level": np.array(tree.levels, dtype=object)[tree.depth]} | ancestors(tree)
        columns = {name: np.repeat(texts, by) for name, texts in columns.items()}
        points = np.unravel_index(np.tile(np.arange(by), tree.n), [key.size for key in keys[1:]] or [1])
        for column, key, point in zip(asked.categories, keys[1:], points, strict=False):
            columns[column] = key.values[0][point]
        margins = tuple(Margin(places=d + 1, axes=list(asked.categories), table=None) for d in range(len(tree.levels)))
        query = self.query(tree, (), margins, by)
        return Layout(
            *(self, spec, asked, at, named(query, columns) if by > 1 else query, tuple(keys), asked.hierarchy or ()),
            *(columns, tree.levels, np.repeat(tree.depth, by), margins),
            cube_of(asked, at, keys[1:]) if asked.categories else None,
        )

    def query(self, tree: Hierarchy | None, cubes: Sequence[Cube], margins: Sequence[Margin], by: int) -> Query:
        assert tree is not None
        return counts(tree, by)

    def exact(self, layout: Layout, item: Item | Exactly, at: At) -> tuple[str, Ints | None, Axes | None]:
        figure, here = (item.of, at["of"]) if isinstance(item, Exactly) else (item, at)
        nodes, _ = layout.meaning(figure, here)
        name = figure if isinstance(figure, str) else " / ".join(figure)
        categories = layout.asked.categories
        kept = item.by if isinstance(item, Exactly) else categories
        for category in kept:
            if category not in categories:
                raise at["by"].refuse(f"the table has no category {category!r}", category, list(categories))
        if set(kept) == set(categories):
            return name, nodes, None
        axes = tuple(a for a, category in enumerate(categories) if category in kept)
        return f"{name} by {', '.join(kept)}" if kept else f"{name}, total", nodes, axes

    def sums(self, layout: Layout) -> Any:
        tree, by = layout.tree, layout.by
        if tree is None or layout.query.n > MOST_LISTED:
            return super().sums(layout)
        inner = np.flatnonzero(~tree.is_leaf).tolist()
        return [(v * by + c, (tree.children_of(v) * by + c).tolist()) for v in inner for c in range(by)]
