"""A cube, or a histogram, which is a cube of one axis: its cells or some of its margins, in no place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arguments import Refused
from holdfast.arrays import Bools, Ints
from holdfast.domains import Cube, Hierarchy
from holdfast.queries import Query, margins
from holdfast.release.facts import Margin
from holdfast.release.spec.places import At
from holdfast.release.spec.rules import Exactly
from holdfast.release.spec.spec import Spec
from holdfast.release.spec.table import TableSpec
from holdfast.release.table.kinds.domain import cube_of, key_of, margins_of, named, own_names, values_of
from holdfast.release.table.public import PublicFiles
from holdfast.release.table.shape import SUMS, Axes, Item, Kind, Layout

#: Entries of the largest table of margins in which impossible cells beside exact figures are followed.
MOST_COMPARED = 2_000_000


class Flat(Kind):
    """Counts of the cells of a cube, or of its margins."""

    def __init__(self, name: str) -> None:
        self.name = name

    def reserved(self) -> dict[str, str]:
        return dict.fromkeys(SUMS, "which means a sum of cells")

    def lay_out(self, spec: Spec, asked: TableSpec, at: At, files: PublicFiles) -> Layout:
        here, names = at[self.name], asked.cube or (str(asked.histogram),)
        keys = tuple(key_of(spec, (column,), (files.values(column, here),)) for column in names)
        cube = cube_of(asked, at, keys)
        kept = [tuple(range(len(names)))] if asked.margins is None else margins_of(asked.margins, at["margins"], cube)
        if not kept:
            raise at["margins"].refuse("at least one margin is needed; leave margins out for the cells")
        told = tuple(Margin(places=0, axes=[cube.all_names[a] for a in axes], table=None) for axes in kept)
        try:
            query = margins(cube, None if asked.margins is None else kept)
        except Refused as refusal:
            raise here.refuse(str(refusal)) from None
        values = values_of(asked, cube, keys)
        levels = tuple(cube.margin_name(axes) for axes in kept)
        sizes = [int(np.prod(cube.margin_shape(axes), dtype=np.int64)) for axes in kept]
        columns = {"level": np.repeat(np.array(levels, dtype=object), sizes)}
        for a, name in enumerate(cube.all_names):
            parts = [
                values[a][cube.within(axes, (a,))] if cube.tells(axes, (a,)) else np.full(size, None, dtype=object)
                for axes, size in zip(kept, sizes, strict=True)
            ]
            columns[name] = np.concatenate(parts).astype(object)
        level_of = np.repeat(np.arange(len(levels)), sizes)
        query = named(query, own_names(cube, columns))
        return Layout(self, spec, asked, at, query, keys, names, columns, levels, level_of, told, cube)

    def query(self, tree: Hierarchy | None, cubes: Sequence[Cube], margins_: Sequence[Margin], by: int) -> Query:
        (cube,) = cubes
        kept = [cube.axes(margin.axes) for margin in margins_]
        return margins(cube, None if kept == [tuple(range(len(cube.shape)))] else kept)

    def exact(self, layout: Layout, item: Item | Exactly, at: At) -> tuple[str, Ints | None, Axes | None]:
        if isinstance(item, Exactly):
            raise at["by"].refuse("by is for hierarchies with categories: name the axes of the margin in its place")
        nodes, axes = layout.meaning(item, at)
        assert layout.cube is not None
        return layout.cube.margin_name(axes or ()), nodes, axes

    def refuse_unheld(self, layout: Layout, account: Mapping[str, Any], impossible: Bools | None) -> None:
        refuse_implied(layout, account, impossible)


def refuse_implied(layout: Layout, account: Mapping[str, Any], impossible: Bools | None) -> None:
    """Refuse exact figures beside impossible cells that tie margins together in ways which no rule of the table has.

    Rows A with A·W = 0 on the possible cells hold for all data. Cells and hierarchies have them all: sums, and outputs
    that are always 0. Margins may have more, and exact figures would determine others unseen.
    """
    query = layout.query
    if not account["exact"] or impossible is None or query.identity:
        return
    possible = np.flatnonzero(~impossible.ravel())
    sums, empty = query.consistency().toarray(), np.array(account["impossible"], dtype=np.int64)
    known = np.vstack([sums, np.eye(query.n)[empty]])
    if query.n * possible.size <= MOST_COMPARED:
        reached = sparse.csr_array(query.columns)[:, possible].toarray()
        if query.n - np.linalg.matrix_rank(reached) <= np.linalg.matrix_rank(known):
            return
    raise Refused(
        "impossible cells beside exact figures can determine other figures where only margins are measured: measure "
        "the cells too, or leave out what is exact or impossible"
    )
