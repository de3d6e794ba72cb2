"""What is published exactly: levels, nodes and margins, with the outputs behind every figure, and rows besides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arguments import Refused
from holdfast.arrays import Bools, Ints
from holdfast.constraints import Constraint
from holdfast.release.facts.table import Figure
from holdfast.release.spec.places import At
from holdfast.release.spec.rules import Exactly
from holdfast.release.storage.tables import Texts
from holdfast.release.table.rules import added, exact_rows, not_implied, sums_of_rows, titled
from holdfast.release.table.shape import Axes, Item, Layout

#: Tables without places that have more rows than this are described by their names alone, not row by row.
MOST_LISTED = 10_000


def exactly(layout: Layout, items: list[tuple[Item | Exactly, At]]) -> tuple[Constraint, list[Figure]]:
    """Return the invariant of what is published exactly, and the figures: names, and the outputs behind each."""
    sums, figures = [], list[Figure]()
    few = layout.places is not None or layout.query.n <= MOST_LISTED
    for item, at in items:
        name, nodes, axes = layout.kind.exact(layout, item, at)
        _refuse_recoded(layout, nodes, axes, at)
        if layout.places is None and name in [figure.figure for figure in figures]:
            raise Refused(f"the margin {name!r} is named twice as exact: name it once")
        here = at["of"] if isinstance(item, Exactly) else at
        matrix = _as_they_are(layout, nodes, here) if axes is None else sums_to(layout, nodes, axes, here)
        rows = np.split(matrix.indices, matrix.indptr[1:-1]) if few else []
        names = None if axes is None or layout.cube is None else [layout.cube.all_names[a] for a in axes]
        figures.append(Figure(figure=name, axes=names, rows=[each.tolist() for each in rows]))
        sums.append(matrix)
    every = sparse.csr_array(sparse.vstack(sums, format="csr"))
    constraint = exact_rows(layout.query, [None if each.axes is None else tuple(each.axes) for each in figures], every)
    kept = constraint.parts[0].rows
    assert kept is not None
    single = layout.tree is not None and every.nnz == every.shape[0]
    listed = [rows for figure in figures for rows in figure.rows]
    outputs = [[row] for row in np.unique(every.indices).tolist()] if single else listed
    if len(outputs) == every.shape[0]:
        outputs = [outputs[row] for row in not_implied(layout.query, every).tolist()]
    texts = [_in_common(layout, each) for each in outputs]
    return (titled(constraint, texts) if len(texts) == kept.count else constraint), figures


def _as_they_are(layout: Layout, nodes: Ints | None, at: At) -> Any:
    outputs = layout.measured(nodes, None, at)
    return sparse.csr_array(
        (np.ones(outputs.size, np.int64), outputs, np.arange(outputs.size + 1)), shape=(outputs.size, layout.query.n)
    )


def sums_to(layout: Layout, nodes: Ints | None, axes: Axes, at: At) -> Any:
    """Return the 0/1 rows that sum outputs to a margin of places, depth by depth, from the smallest that tells it."""
    cube = layout.cube
    assert cube is not None
    depths = [0] if layout.places is None else (np.unique(layout.places.depth[nodes]) + 1).tolist()
    parts = []
    for depth in depths:
        holding = [
            level
            for level, margin in enumerate(layout.margins)
            if margin.places == depth and cube.tells(layout.kept[level], axes)
        ]
        if not holding:
            where = "the margins that are measured" if layout.places is None else f"what is measured at {depth!r}"
            there = "to them"
            if layout.places is not None:
                where, there = f"what is measured at {layout.places.levels[depth - 1]!r}", "there"
            name = cube.margin_name(axes)
            sentence = f"the margin {name!r} does not follow from {where}: add it {there}"
            raise at.refuse(sentence, name, layout.levels)
        level = min(holding, key=lambda each: (len(layout.kept[each]), layout.rows(each).shape[1]))
        mine = slice(None) if nodes is None else np.isin(layout.nodes(level), nodes)
        parts.append(added(layout.rows(level)[mine], cube.within(layout.kept[level], axes), layout.query.n))
    return sparse.csr_array(sparse.vstack(parts, format="csr"))


def _refuse_recoded(layout: Layout, nodes: Ints | None, axes: Axes | None, at: At) -> None:
    """Refuse exact groups of values: what they tell beside other tables is written down by columns of the records."""
    cube = layout.cube
    if cube is None or not layout.asked.recode:
        return
    depths = set() if nodes is None or layout.places is None else set((layout.places.depth[nodes] + 1).tolist())
    there = (kept for kept, margin in zip(layout.kept, layout.margins, strict=True) if margin.places in depths)
    coarse = [a for each in (there if axes is None else [axes]) for a in each if a >= len(cube.shape)]
    if coarse:
        name, own = cube.all_names[coarse[0]], cube.names[cube.own(coarse[0])]
        sentence = f"exact figures are of columns of the records: name a margin with {own!r} in place of {name!r}"
        raise at.refuse(sentence, found=name)


def _in_common(layout: Layout, outputs: list[int]) -> str:
    """The name of an exact figure: that of its output, or the names that the outputs which add up to it share."""
    if len(outputs) == 1:
        return str(layout.query.labels[outputs[0]])
    first = (texts[outputs] for name, texts in layout.columns.items() if name != "level")
    return " / ".join(str(texts[0]) for texts in first if texts[0] is not None and (texts == texts[0]).all()) or "total"


# --- rows that are written besides the outputs ------------------------------------------------------------------------


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
        rows = zip(*(texts.tolist() for name, texts in self.columns.items() if name != "level"), strict=True)
        return [" / ".join(str(text) for text in row if text is not None) or "total" for row in rows]


def derived(layout: Layout, exact: Sequence[Figure]) -> Derived | None:
    """Return the rows that are written besides the outputs; None where there are none.

    They are exact margins that are not measured, and where categories divide places the totals of all places.
    """
    sums = [figure for figure in exact if figure.axes is not None and figure.figure not in layout.levels]
    if not layout.kind.adds_rows or not (sums or layout.by > 1):
        return None
    parts, n = [], layout.query.n
    if layout.tree is not None:
        nodes = layout.tree.n
        known = np.zeros(nodes, dtype=bool)
        known[[rows[0] // layout.by for figure in sums if not figure.axes for rows in figure.rows]] = True
        totals = sparse.csr_array(
            (np.ones(n, np.int64), np.arange(n), np.arange(nodes + 1) * layout.by), shape=(nodes, n)
        )
        titles = tuple(f"{level}, total" for level in layout.levels)
        parts.append(Derived(_names(layout, totals, []), totals, known, titles, layout.tree.depth))
        sums = [figure for figure in sums if figure.axes]
    for figure in sums:
        axes, cube = list(figure.axes or ()), layout.cube
        assert cube is not None
        rows = (
            sums_of_rows(figure.rows, layout.query.n)
            if figure.rows
            else sums_to(layout, None, cube.axes(axes), layout.at)
        )
        columns = _names(layout, rows, axes)
        if layout.tree is None:
            columns["level"][:] = figure.figure
        count = rows.shape[0]
        parts.append(Derived(columns, rows, np.ones(count, bool), (figure.figure,), np.zeros(count, np.int64)))
    first = np.cumsum([0, *(len(part.titles) for part in parts)])
    return Derived(
        {name: np.concatenate([part.columns[name] for part in parts]) for name in layout.columns},
        sparse.vstack([part.sums for part in parts], format="csr"),
        np.concatenate([part.exact for part in parts]),
        tuple(title for part in parts for title in part.titles),
        np.concatenate([part.group_of + start for part, start in zip(parts, first[:-1], strict=True)]),
    )


def _names(layout: Layout, sums: Any, axes: Sequence[str]) -> dict[str, Texts]:
    """The names of sums of outputs: their places, and these axes."""
    first = sums.indices[sums.indptr[:-1]]
    columns = {name: texts[first].copy() for name, texts in layout.columns.items()}
    for name in layout.cube.all_names if layout.cube is not None else ():
        if name not in axes:
            columns[name][:] = None
    return columns
