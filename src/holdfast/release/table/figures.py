"""Single figures by their public names: which outputs a node, a path, a value or values of columns mean."""

from __future__ import annotations

import re

import numpy as np

from holdfast.arrays import Ints
from holdfast.queries.areas.area_margins import AreaMargins
from holdfast.release.spec.places import At
from holdfast.release.table.area_names import distinct
from holdfast.release.table.domain import BETWEEN, Item, Layout


def figures(layout: Layout, item: Item, at: At) -> Ints:
    """Return the outputs that an item means, in their order: one, or all that have these values in these columns."""
    if isinstance(item, dict):
        return _with_values(layout, item, at)
    if layout.places is not None:
        return layout.outputs(item, at)
    if item == "total" and "total" in layout.levels:
        return layout.outputs(item, at)
    if len(layout.names) > 1:
        sentence = "figures of a cube are named by their columns, such as {sex: F, age: child}"
        raise at.refuse(sentence, found=item)
    return _with_values(layout, {layout.names[0]: (item,) if isinstance(item, str) else item}, at)


def ordered_outputs(layout: Layout, items: tuple[Item, ...], at: At) -> Ints:
    """Return chains of outputs, one per row, from the smallest figure to the largest."""
    if len(items) == 1 and isinstance(items[0], str) and items[0] in layout.names and layout.places is None:
        column = items[0]
        items = tuple({column: (str(value),)} for value in layout.keys[layout.names.index(column)].values[-1])
    if len(items) < 2:
        sentence = "an order needs at least two figures, or one column of a histogram or cube, found one"
        raise at.refuse(sentence, found=items[0] if items else None)
    chains = [figures(layout, item, at[i]) for i, item in enumerate(items)]
    for i, chain in enumerate(chains):
        if chain.size != chains[0].size:
            sentence = f"means {chain.size} figures and the first entry {chains[0].size}: name as many in each"
            raise at[i].refuse(sentence)
    return np.stack(chains, axis=1)


def _with_values(layout: Layout, item: dict[str, tuple[str, ...]], at: At) -> Ints:
    """Return the outputs of one level or margin with these values in these columns."""
    options = [name for name in layout.columns if name != "level"]
    for column, values in item.items():
        if column not in options:
            raise at[column].refuse(f"the table has no column {column!r}", column, options)
        known = set(map(str, distinct(layout.columns, column)))
        for value in values:
            if value not in known:
                sentence = f"{column!r} has no value {value!r}"
                raise at[column].refuse(sentence, value, sorted(known))
    if not item:
        raise at.refuse("found no columns: name at least one, such as {sex: F}")
    chosen = layout.level_of == _level(layout, set(item), at)
    for column, values in item.items():
        chosen &= np.isin(layout.columns[column].astype(str), list(values))
    found = np.flatnonzero(chosen).astype(np.int64)
    if not found.size:
        raise at.refuse("no figure has these values together")
    return found


def _level(layout: Layout, columns: set[str], at: At) -> int:
    """The level of a hierarchy at which the columns end, or the margin that has them, and no others if there is one."""
    if layout.tree is not None:
        named = [d for d, level in enumerate(layout.levels) if level in columns]
        return max(named, default=len(layout.levels) - 1)
    if layout.areas is not None:
        return _group(layout.areas, columns, at)
    margins = [set(re.split(re.escape(BETWEEN), level)) for level in layout.levels]
    own = [m for m, axes in enumerate(margins) if axes == columns]
    holding = own or [m for m, axes in enumerate(margins) if axes >= columns]
    if len(holding) != 1:
        names = [layout.levels[m] for m in holding] or list(layout.levels)
        sentence = f"{len(holding) or 'no'} margins have these columns: name all columns of one of {', '.join(names)}"
        raise at.refuse(sentence)
    return holding[0]


def _group(query: AreaMargins, columns: set[str], at: At) -> int:
    """The group of margins at the level at which the columns end, with these axes and no others if there is one."""
    places, axes = query.hierarchy.levels, {a for a, name in enumerate(query.table.all_names) if name in columns}
    depth = max((d for d, level in enumerate(places) if level in columns), default=len(places) - 1)
    own = [g for g, (at_depth, kept) in enumerate(query.groups) if at_depth == depth and set(kept) == axes]
    holding = own or [
        g
        for g, (at_depth, kept) in enumerate(query.groups)
        if at_depth == depth and query.table.tells(kept, tuple(axes))
    ]
    if len(holding) != 1:
        names = [name for g, name in enumerate(query.levels) if g in holding or not holding]
        sentence = f"{len(holding) or 'no'} margins have these columns: name all columns of one of {', '.join(names)}"
        raise at.refuse(sentence)
    return holding[0]
