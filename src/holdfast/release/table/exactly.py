"""What is published exactly: levels, nodes and margins, and the outputs behind every exact figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arguments import Refused
from holdfast.arrays import Ints
from holdfast.constraints import Constraint, exact_margins, exact_nodes, invariant
from holdfast.constraints.system.rows import Names
from holdfast.release.spec.places import At
from holdfast.release.spec.rules import Exactly
from holdfast.release.table.domain import INSIDE, Item, Layout

#: Tables with more rows than this are described by their names alone, not row by row.
MOST_LISTED = 10_000


def exactly(layout: Layout, items: list[tuple[Item | Exactly, At]]) -> tuple[Constraint, list[dict[str, Any]]]:
    """Return the invariant of what is published exactly, and its account: names, and the outputs behind each figure."""
    if layout.areas is not None:
        sums = [_area_rows(layout, item, at) for item, at in items]
        names = [_called(layout, item, at) for item, at in items]
        constraint = invariant(sparse.vstack(sums, format="csr"))
        rows = [[part.indices[a:b].tolist() for a, b in _spans(part)] for part in sums]
        texts = [_area_name(layout, row) for each in rows for row in each]
    elif layout.tree is not None:
        found = [_exact_nodes(layout, item, at) for item, at in items]
        names, rows = [name for name, _ in found], [each for _, each in found]
        outputs = [row for each in rows for row in each]
        if all(len(row) == 1 for row in outputs):
            nodes = np.unique([row[0] // layout.by for row in outputs])
            constraint = invariant(exact_nodes(layout.tree, nodes, layout.by))
            own = np.unique([row[0] for row in outputs])  # the order of the invariant's rows
            texts = [str(layout.query.labels[row]) for row in own]
        else:
            constraint = invariant(sums_of_rows(outputs, layout.query.n))
            texts = [_sum_name(layout, row) for row in outputs]
    else:
        names, rows, constraint = _margins(layout, items)
        texts = [_figure_name(layout, row, name) for each, name in zip(rows, names, strict=True) for row in each]
    part = constraint.parts[0]
    assert part.rows is not None
    if len(texts) == part.rows.count:  # otherwise too many to be listed
        constraint = titled(constraint, texts)
    return constraint, [{"figure": name, "rows": each} for name, each in zip(names, rows, strict=True)]


def titled(constraint: Constraint, texts: list[str]) -> Constraint:
    """Call the rows of a constraint by these names."""
    part = constraint.parts[0]
    assert part.rows is not None
    literal = (text.replace("{", "{{").replace("}", "}}") for text in texts)
    titles = Names(tuple((text, np.zeros((1, 0), dtype=np.int64)) for text in literal))
    return replace(constraint, parts=(replace(part, rows=replace(part.rows, names=titles)),))


def _margins(
    layout: Layout, items: list[tuple[Item | Exactly, At]]
) -> tuple[list[str], list[list[list[int]]], Constraint]:
    """The names of exact margins of a cube, the outputs behind each figure unless there are many, and the invariant."""
    margins = [_axes_of(layout, item, at) for item, at in items]
    for axes, (_, at) in zip(margins, items, strict=True):
        _refuse_recoded(layout, axes, at)
    names = [layout.margin_name(axes) for axes in margins]
    repeated = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if repeated is not None:
        raise Refused(f"the margin {repeated!r} is named twice as exact: name it once")
    cube = layout.query.cube
    assert cube is not None
    sums = [_margin_rows(layout, axes, at) for axes, (_, at) in zip(margins, items, strict=True)]
    if layout.query.identity:
        constraint = invariant(exact_margins(cube.shape, margins))
    else:
        constraint = invariant(sparse.vstack(sums, format="csr"))
    few = layout.query.n <= MOST_LISTED
    rows = [[part.indices[a:b].tolist() for a, b in _spans(part)] if few else [] for part in sums]
    return names, rows, constraint


def _axes_of(layout: Layout, item: Item | Exactly, at: At) -> tuple[int, ...]:
    if isinstance(item, Exactly):
        raise at["by"].refuse("by is for hierarchies with categories: name the axes of the margin in its place")
    return tuple(int(a) for a in layout.figure(item, at))


def _margin_rows(layout: Layout, axes: tuple[int, ...], at: At) -> Any:
    """Return the 0/1 rows that sum outputs to a margin, from the first measured margin that holds it."""
    cube = layout.query.cube
    assert cube is not None
    for m, name in enumerate(layout.levels):
        kept = tuple(cube.all_names.index(part) for part in name.split(" × ")) if name != "total" else ()
        if cube.tells(kept, axes):
            outputs = np.flatnonzero(layout.level_of == m)
            position = cube.within(kept, axes)
            count = int(np.prod([cube.shape[a] for a in axes], dtype=np.int64))
            ones = np.ones(outputs.size, dtype=np.int64)
            return sparse.csr_array((ones, (position, outputs)), shape=(count, layout.query.n))
    sentence = (
        f"the margin {layout.margin_name(axes)!r} does not follow from the margins that are measured: add it to them"
    )
    raise at.refuse(sentence, layout.margin_name(axes), layout.levels)


def _refuse_recoded(layout: Layout, axes: tuple[int, ...], at: At) -> None:
    """Refuse exact groups of values: what they tell beside other tables is written down by columns of the records."""
    cube = layout.query.domain[1]
    assert cube is not None
    coarse = [cube.all_names[a] for a in axes if a >= len(cube.shape)]
    if coarse:
        own = cube.names[cube.own(cube.all_names.index(coarse[0]))]
        sentence = f"exact figures are of columns of the records: name a margin with {own!r} in place of {coarse[0]!r}"
        raise at.refuse(sentence, found=coarse[0])


def _spans(rows: Any) -> list[tuple[int, int]]:
    return list(zip(rows.indptr[:-1].tolist(), rows.indptr[1:].tolist(), strict=True))


def _exact_nodes(layout: Layout, item: Item | Exactly, at: At) -> tuple[str, list[list[int]]]:
    """The name of exact figures of a hierarchy, and the outputs that add up to each: by all categories unless said."""
    if isinstance(item, dict):
        raise at.refuse("found a mapping: {LEVEL: MARGIN} goes with a hierarchy and a cube together")
    figure, here = (item.of, at["of"]) if isinstance(item, Exactly) else (item, at)
    name = figure if isinstance(figure, str) else " / ".join(figure)
    outputs = layout.outputs(figure, here).reshape(-1, layout.by)
    categories = layout.asked.categories
    kept = item.by if isinstance(item, Exactly) else categories
    for category in kept:
        if category not in categories:
            raise at["by"].refuse(f"the table has no category {category!r}", category, list(categories))
    if set(kept) == set(categories):
        return name, [[int(row)] for row in outputs.ravel()]
    part = category_groups(layout, kept)
    sums = [outputs[node, part == each].tolist() for node in range(len(outputs)) for each in range(part.max() + 1)]
    return f"{name} by {', '.join(kept)}" if kept else f"{name}, total", sums


def category_groups(layout: Layout, kept: Sequence[str]) -> Ints:
    """For every combination of categories, the number of that of those that are kept, in their order in the table."""
    sizes = [key.size for key in layout.keys[1:]]
    points = np.unravel_index(np.arange(layout.by), sizes)
    group = np.zeros(layout.by, dtype=np.int64)
    for name, size, point in zip(layout.asked.categories, sizes, points, strict=True):
        if name in kept:
            group = group * size + point
    return group


def sums_of_rows(rows: list[list[int]], n: int) -> Any:
    """A matrix of ones that adds up outputs, one row for each list."""
    ends = np.concatenate([[0], np.cumsum([len(each) for each in rows])])
    indices = np.concatenate([np.array(each, dtype=np.int64) for each in rows])
    return sparse.csr_array((np.ones(indices.size, dtype=np.int64), indices, ends), shape=(len(rows), n))


def _called(layout: Layout, item: Item | Exactly, at: At) -> str:
    """The name of exact figures in areas: of a level or place, and of the margin there."""
    assert layout.areas is not None
    assert not isinstance(item, Exactly)  # refused with its rows
    if not isinstance(item, dict):
        return item if isinstance(item, str) else " / ".join(item)
    axes = layout.in_areas(item, at)[1]
    return f"{next(iter(item))}{INSIDE}{layout.areas.table.margin_name(axes)}"


def _area_rows(layout: Layout, item: Item | Exactly, at: At) -> Any:
    """Return the 0/1 rows of exact figures in areas: all that are measured there, or sums of them to one margin."""
    query = layout.areas
    assert query is not None
    if isinstance(item, Exactly):
        raise at["by"].refuse("by is for hierarchies with categories: write {LEVEL: MARGIN} here")
    nodes, axes = layout.in_areas(item, at)
    if layout.asked.recode:
        asked = (
            [axes]
            if axes is not None
            else [kept for depth, kept in query.groups if depth in query.hierarchy.depth[nodes]]
        )
        for each in asked:
            _refuse_recoded(layout, each, at)
    if axes is None:
        outputs = layout.outputs(item, at)
        whole = np.arange(outputs.size + 1)
        return sparse.csr_array((np.ones(outputs.size, np.int64), outputs, whole), shape=(outputs.size, query.n))
    parts = []
    for depth in np.unique(query.hierarchy.depth[nodes]).tolist():
        holding = [
            g for g, (at_depth, kept) in enumerate(query.groups) if at_depth == depth and query.table.tells(kept, axes)
        ]
        if not holding:
            level, name = query.hierarchy.levels[depth], query.table.margin_name(axes)
            sentence = f"the margin {name!r} does not follow from what is measured at {level!r}: add it there"
            raise at.refuse(sentence, name, layout.levels)
        group = min(holding, key=lambda g: int(query.sizes[g]))
        kept = query.groups[group][1]
        mine = query.outputs(group)[np.isin(query.places[group][0], nodes)]
        index = query.table.within(kept, axes)
        size = int(index.max()) + 1
        row = (np.arange(len(mine))[:, None] * size + index).ravel()
        ones = np.ones(row.size, dtype=np.int64)
        parts.append(sparse.csr_array((ones, (row, mine.ravel())), shape=(len(mine) * size, query.n)))
    return sparse.vstack(parts, format="csr")


def _sum_name(layout: Layout, outputs: list[int]) -> str:
    """The name of a node over some of its categories: what the outputs that add up to it have in common."""
    first = {name: texts[outputs] for name, texts in layout.columns.items() if name != "level"}
    return " / ".join(str(texts[0]) for texts in first.values() if texts[0] is not None and (texts == texts[0]).all())


def _figure_name(layout: Layout, outputs: list[int], name: str) -> str:
    """The name of a cell of a margin: what the outputs that add up to it have in common."""
    axes = [] if name == "total" else name.split(" × ")
    return " / ".join(str(layout.columns[axis][outputs[0]]) for axis in axes) or "total"


def _area_name(layout: Layout, outputs: list[int]) -> str:
    """The name of an exact figure in an area: its own, or the area's with how many figures it sums up."""
    first = str(layout.query.labels[outputs[0]])
    return first if len(outputs) == 1 else f"the sum of {len(outputs)} figures from {first} on"
