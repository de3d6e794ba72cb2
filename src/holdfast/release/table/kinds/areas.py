"""Margins of a cube in every area of a hierarchy, as many at each level as the spec says: a census."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Bools, Ints
from holdfast.domains import Cube, Hierarchy
from holdfast.onto.areas.steps import refuse_too_many_cells
from holdfast.queries import Query, counts
from holdfast.queries.areas.area_margins import AreaMargins
from holdfast.queries.areas.rules import Rules
from holdfast.release.facts import Margin
from holdfast.release.spec.places import At
from holdfast.release.spec.rules import Exactly
from holdfast.release.spec.spec import Spec
from holdfast.release.spec.table import TableSpec
from holdfast.release.table import area_names
from holdfast.release.table.area_names import AreaNames
from holdfast.release.table.holding import sums_of_rows
from holdfast.release.table.kinds.cube import refuse_implied
from holdfast.release.table.kinds.domain import MOST_NAMED, cube_of, margins_of, named, own_names, places_of, values_of
from holdfast.release.table.public import PublicFiles
from holdfast.release.table.shape import ALL_CELLS, INSIDE, SUMS, Axes, Item, Kind, Layout

#: Figures of the largest table of margins in areas, and figures up to which a program holds any rule.
MOST_FIGURES, MOST_SOLVED = 400_000_000, 300


class Areas(Kind):
    """Margins of a cube at every node of some levels."""

    name = "areas"
    nested = True
    adds_rows = False

    def reserved(self) -> dict[str, str]:
        cells = dict.fromkeys(ALL_CELLS, "which means the cells")
        return dict.fromkeys(SUMS, "which means a sum of cells") | cells

    def lay_out(self, spec: Spec, asked: TableSpec, at: At, files: PublicFiles) -> Layout:
        tree, keys = places_of(spec, asked, at, files)
        cube = cube_of(asked, at, keys[1:])
        kept: dict[str, list[Axes]] = {}
        for level, listed in (asked.measure or {}).items():
            here = at["measure"][level]
            if level not in tree.levels:
                raise here.refuse(f"there is no level {level!r}", level, tree.levels)
            kept[level] = margins_of(listed, here, cube, each=listed != (ALL_CELLS[0],))
        try:
            query: Any = counts(tree, cube, kept)
            if asked.numbers == "whole" and spec.engine == "local":  # a cluster shares out one stretch at a time
                refuse_too_many_cells(query)
        except Refused as refusal:
            raise at["measure"].refuse(str(refusal)) from None
        refuse_too_many(query.n, MOST_FIGURES, at["measure"])
        names = AreaNames(query, values_of(asked, cube, keys[1:]))
        in_parts = query.n > area_names.MOST_IN_A_FILE or spec.engine == "spark"
        columns = names if in_parts else dict(names)
        margins = tuple(
            Margin(places=depth + 1, axes=[cube.all_names[a] for a in axes], table=None) for depth, axes in query.groups
        )
        called = query
        if query.n <= MOST_NAMED:
            paths = {level: columns[level] for level in tree.levels}
            called = named(query, paths | own_names(cube, columns), titled=cube.all_names)
        levels = tuple(query.levels)
        return Layout(
            *(self, spec, asked, at, called, tuple(keys), asked.hierarchy or (), columns, levels, query.level_of),
            *(margins, cube),
        )

    def query(self, tree: Hierarchy | None, cubes: Sequence[Cube], margins: Sequence[Margin], by: int) -> Query:
        (cube,), kept = cubes, dict[str, list[Axes]]()
        assert tree is not None
        for margin in margins:
            kept.setdefault(tree.levels[margin.places - 1], []).append(cube.axes(margin.axes))
        return counts(tree, cube, kept)

    def exact(self, layout: Layout, item: Item | Exactly, at: At) -> tuple[str, Ints | None, Axes | None]:
        if isinstance(item, Exactly):
            raise at["by"].refuse("by is for hierarchies with categories: write {LEVEL: MARGIN} here")
        nodes, axes = layout.meaning(item, at)
        if not isinstance(item, dict):
            return item if isinstance(item, str) else " / ".join(item), nodes, axes
        assert layout.cube is not None
        return f"{next(iter(item))}{INSIDE}{layout.cube.margin_name(axes or ())}", nodes, axes

    def refuse_unheld(self, layout: Layout, account: Mapping[str, Any], impossible: Bools | None) -> None:
        """Refuse also rules that only a program holds, in tables for which that would take hours."""
        refuse_implied(layout, account, impossible)
        asked = [rule for rule in ("exact", "bounds", "orders", "linear", "either") if account[rule]]
        real = layout.asked.numbers == "real"
        bounded = (
            account["nonnegative"]
            or any(account[rule] for rule in ("bounds", "orders", "either"))
            or any(each.high is None for each in account["linear"])
        )
        if not asked or (real and not bounded) or layout.query.n <= MOST_SOLVED:
            return
        if not real and account["nonnegative"] and account["consistent"]:
            hard = ["orders", "either", *(["linear"] if _crosses(layout, account) else [])]
            asked = [rule for rule in asked if rule in hard]
        if asked:
            raise Refused(
                f"in areas of a hierarchy with a cube, tables of more than {MOST_SOLVED} figures hold exact figures, "
                "bounds and sums of figures of one margin of one area, in whole numbers, beside consistent and "
                f"nonnegative, and this one has {layout.query.n:,}: leave the other rules out, measure less, or write "
                "numbers: real and no bounds"
            )

    def shared_out(self, layout: Layout) -> int:
        assert layout.places is not None
        assert layout.cube is not None
        areas = layout.places.n if layout.spec.engine == "local" else layout.places.n_leaves  # whose counts are held
        return areas * layout.cube.cells


def _crosses(layout: Layout, account: Mapping[str, Any]) -> bool:
    """Whether a weighted sum is not one of figures of one margin of one area, each once."""
    areas: Any = layout.query
    assert isinstance(areas, AreaMargins)
    none = np.zeros(1, np.int64)
    return any(
        Rules.of_rows(areas, sums_of_rows([each.rows], areas.n), none, none) is None
        or any(Fraction(weight) != 1 for weight in each.weights)
        for each in account["linear"]
    )


def refuse_too_many(figures: int, most: int, at: At) -> None:
    """Refuse tables that one process does not make."""
    if figures > most:
        sentence = (
            f"{figures:,} figures are more than one process makes, {most:,}: measure fewer margins at the lowest "
            "level, or make one release for each place of an upper level"
        )
        raise at.refuse(sentence)
