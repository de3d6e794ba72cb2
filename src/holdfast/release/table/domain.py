"""The public shape of a table: how records are addressed, which outputs there are, and what the spec's names mean."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Bools, Ints
from holdfast.domains import Cube, Hierarchy
from holdfast.queries import Query
from holdfast.queries.areas.area_margins import AreaMargins
from holdfast.release.spec.places import At
from holdfast.release.spec.spec import Spec
from holdfast.release.spec.table import TableSpec
from holdfast.release.storage.coded import Texts
from holdfast.release.table.area_names import AreaNames

#: A name, a path, or a mapping, as the spec reads them.
Item = str | tuple[str, ...] | dict[str, tuple[str, ...]]
#: Columns that every released file has; a column of the domain must not be called so.
RESERVED = ("level", "value", "low", "high")
#: What the names of the axes of a margin are joined by, and what is no axis but a sum over axes.
BETWEEN, SUMS = " × ", ("total", "cells")
#: What stands between a level and a margin of it, and what the cells are called where margins are listed.
INSIDE, ALL_CELLS = ": ", ("all", "cells")


@dataclass(frozen=True, eq=False)
class Key:
    """One part of a cell's address: columns of the records, and the position that their values stand for.

    `values` holds one array of texts per column; entry i of each belongs to position i. `missing` and `outside` are
    the positions of records without a value and of those with another one; None: there is no such position.
    """

    columns: tuple[str, ...]
    values: tuple[Texts, ...]
    missing: int | None
    outside: int | None

    @cached_property
    def size(self) -> int:
        """The number of positions."""
        return int(self.values[0].size)

    @cached_property
    def positions(self) -> dict[tuple[str, ...], int]:
        """The position of every combination of values."""
        return {names: i for i, names in enumerate(zip(*(texts.tolist() for texts in self.values), strict=True))}


@dataclass(frozen=True, eq=False)
class Layout:
    """A table's query, the keys that address its cells (the last one runs fastest) and the names of its outputs.

    `asked` is what the spec says about it, and `at` where. Of linked tables `parts` are the layouts of each, by which
    records are counted; `counted` says which values of the last keys a part counts, None: it has no such keys. `labels`
    are names for people of the codes in some columns.
    """

    spec: Spec
    asked: TableSpec
    at: At
    query: Query
    keys: tuple[Key, ...]
    names: tuple[str, ...]
    columns: Mapping[str, Texts]
    levels: tuple[str, ...]
    level_of: Ints
    parts: tuple[Layout, ...] = ()
    counted: Bools | None = None
    labels: dict[str, dict[str, str]] = field(default_factory=dict)

    @cached_property
    def tree(self) -> Hierarchy | None:
        """The hierarchy, if this is one."""
        return self.query.tree

    @cached_property
    def areas(self) -> AreaMargins | None:
        """The query, if it asks margins of a cube in every area of a hierarchy."""
        return self.query if isinstance(self.query, AreaMargins) else None

    @cached_property
    def in_parts(self) -> AreaNames | None:
        """The names of a table that is written in parts, which are made there; None: it is one file."""
        return self.columns if isinstance(self.columns, AreaNames) else None

    @cached_property
    def places(self) -> Hierarchy | None:
        """The hierarchy that addresses the cells, alone or with what divides its places."""
        return self.query.domain[0]

    @cached_property
    def by(self) -> int:
        """Categories per node of a hierarchy."""
        return 1 if self.tree is None else self.query.n // self.tree.n

    # --- what the names in the spec mean ------------------------------------------------------------------------

    def figure(self, item: Item, at: At) -> Ints | tuple[int, ...]:
        """Return the nodes of a hierarchy, or the axes of a margin, that a name or a list of names means."""
        if isinstance(item, dict):
            raise at.refuse("found a mapping: {LEVEL: MARGIN} goes with a hierarchy and a cube together")
        return self._axes(item, at) if self.tree is None else self._nodes(item, at)

    def in_areas(self, item: Item, at: At) -> tuple[Ints, tuple[int, ...] | None]:
        """Return the areas that an item means, and the margin of each; None: all that are measured there."""
        assert self.areas is not None
        if not isinstance(item, dict):
            return self._nodes(item, at), None
        if len(item) != 1:
            raise at.refuse("name one level or place and its margin, such as {county: [sex, age]}")
        ((place, margin),) = item.items()
        listed = margin[0] if len(margin) == 1 else margin
        return self._nodes(place, at[place]), axes_of(listed, self.areas.table, at[place])

    def _nodes(self, item: str | tuple[str, ...], at: At) -> Ints:
        tree = self.places
        assert tree is not None
        if isinstance(item, tuple):
            if not item:
                raise at.refuse("a path needs at least one name, found none")
            from_root = item if self.asked.root in (None, item[0]) else (str(self.asked.root), *item)
            try:
                return np.array([tree.find(*from_root)], dtype=np.int64)
            except Refused as refusal:
                raise at.refuse(str(refusal), found=" / ".join(item)) from None
        if item in tree.levels:
            return tree.nodes_at(item)
        found = np.flatnonzero(tree.names == item).astype(np.int64)
        if found.size == 0:
            options = dict.fromkeys([*tree.levels, *tree.names.tolist()])
            raise at.refuse(f"no level or node is called {item!r}", item, options)
        if found.size > 1:
            sentence = (
                f"{found.size} nodes are called {item!r}: give the path, such as {list(tree.path(int(found[0])))}"
            )
            raise at.refuse(sentence, found=item)
        return found

    def _axes(self, item: str | tuple[str, ...], at: At) -> tuple[int, ...]:
        assert self.query.cube is not None
        return axes_of(item, self.query.cube, at)

    def outputs(self, item: Item, at: At) -> Ints:
        """Return the outputs that a level, node, path or margin means."""
        if self.areas is not None:
            nodes, axes = self.in_areas(item, at)
            return np.sort(np.concatenate([np.zeros(0, np.int64), *self._of_areas(nodes, axes, at)]))
        found = self.figure(item, at)
        if self.tree is not None:
            assert isinstance(found, np.ndarray)
            return (found[:, None] * self.by + np.arange(self.by)).ravel()
        return self.margin_outputs(tuple(found), at)

    def _of_areas(self, nodes: Ints, axes: tuple[int, ...] | None, at: At) -> list[Ints]:
        """The outputs of some areas, of all their margins or of one that is measured."""
        query = self.areas
        assert query is not None
        found = []
        for group, (_, kept) in enumerate(query.groups):
            mine = np.isin(query.places[group][0], nodes)
            if mine.any() and axes in (None, kept):
                found.append(query.outputs(group)[mine].ravel())
        if not found:
            what = "nothing" if axes is None else f"no margin {query.table.margin_name(axes)!r}"
            raise at.refuse(f"{what} is measured there", allowed=self.levels)
        return found

    def margin_outputs(self, axes: tuple[int, ...], at: At) -> Ints:
        """Return the outputs of a margin that is among the outputs."""
        name = self.margin_name(axes)
        if name not in self.levels:
            raise at.refuse(f"the margin {name!r} is not among the outputs", name, self.levels)
        return np.flatnonzero(self.level_of == self.levels.index(name)).astype(np.int64)

    def margin_name(self, axes: tuple[int, ...]) -> str:
        """Return the name of a margin by its axes."""
        assert self.query.cube is not None
        return self.query.cube.margin_name(axes)

    def level(self, name: str, at: At) -> str:
        """Return the level or margin that a key of `shares` means; `sex, age` stands for `sex × age`."""
        tidy = name if self.tree is not None or name in self.levels else BETWEEN.join(_parts(name))
        if tidy not in self.levels:
            raise at.refuse(f"there is no level or margin {name!r}", name, self.levels)
        return tidy

    def by_level(self, numbers: Mapping[str, Any], at: At, *, divide: bool = False) -> dict[str, Fraction]:
        """Return numbers for levels or margins of the outputs by their names.

        In areas a number for a level counts for every margin of it, or is divided over them, and numbers can be given
        for its margins one by one.
        """
        found: dict[str, Fraction] = {}
        for name, value in numbers.items():
            if self.areas is None:
                if isinstance(value, Mapping):
                    raise at[name].refuse("margins of a level go with a hierarchy and a cube together")
                found[self.level(name, at[name])] = Fraction(value)
                continue
            levels = self.areas.hierarchy.levels
            if name not in levels:
                raise at[name].refuse(f"there is no level {name!r}", name, levels)
            inside = f"{name}{INSIDE}"
            mine = [level for level in self.levels if level.startswith(inside)]
            if not mine:
                raise at[name].refuse(f"nothing is measured at the level {name!r}", name)
            if not isinstance(value, Mapping):
                found |= dict.fromkeys(mine, Fraction(value) / (len(mine) if divide else 1))
                continue
            for margin, number in value.items():
                axes = axes_of(_parts(margin), self.areas.table, at[name][margin])
                level = inside + self.areas.table.margin_name(axes)
                if level not in mine:
                    own = [each.removeprefix(inside) for each in mine]
                    raise at[name][margin].refuse(f"the margin {margin!r} is not measured at {name!r}", margin, own)
                found[level] = Fraction(number)
        return found

    def cells(self, item: str | tuple[str, ...] | dict[str, tuple[str, ...]], at: At) -> Bools:
        """Return which cells a node, a path, or values of columns mean."""
        if not isinstance(item, dict):
            if self.places is not None:
                inside = int(np.prod([key.size for key in self.keys[1:]], dtype=np.int64))
                return np.repeat(_leaves_below(self.places, self._nodes(item, at)), inside)
            if len(self.names) > 1:
                sentence = "cells of a cube are named by their columns, such as {sex: F, age: [child, teen]}"
                raise at.refuse(sentence, found=item)
            item = {self.names[0]: (item,) if isinstance(item, str) else item}
        result = np.ones([key.size for key in self.keys], dtype=bool)
        for column, values in item.items():
            axis, chosen = self._chosen(column, values, at)
            result &= chosen.reshape([-1 if a == axis else 1 for a in range(len(self.keys))])
        return result.ravel()

    def _chosen(self, column: str, values: tuple[str, ...], at: At) -> tuple[int, Bools]:
        tree = self.places
        if tree is not None and column in tree.levels:
            labels, axis = tree.names[tree.nodes_at(column)], 0
        else:
            named = self.asked.axes if tree is not None else self.names
            if column not in named:
                options = [*(tree.levels if tree is not None else ()), *named]
                raise at[column].refuse(f"the table has no column {column!r}", column, options)
            axis = named.index(column) + (tree is not None)
            labels = self.keys[axis].values[-1]
        for value in values:
            if value not in labels:
                raise at[column].refuse(f"{column!r} has no value {value!r}", value, labels.tolist())
        chosen = np.isin(labels.astype(str), list(values))
        if tree is not None and column in tree.levels:
            chosen = _leaves_below(tree, tree.nodes_at(column)[chosen])
        return axis, chosen


def axes_of(item: str | tuple[str, ...], cube: Cube, at: At) -> tuple[int, ...]:
    """Return the axes that a margin keeps: an axis, a list of them, total or cells."""
    listed, names = (item,) if isinstance(item, str) else item, cube.all_names
    if len(listed) == 1 and listed[0] not in names:
        if listed[0] == SUMS[0]:
            return ()
        if listed[0] in ALL_CELLS:
            return tuple(range(len(cube.shape)))
    for name in listed:
        if name not in names:
            raise at.refuse(f"there is no axis {name!r}", name, [*names, *SUMS])
    chosen = sorted({names.index(name) for name in listed}, key=cube.own)
    for one, other in pairwise(chosen):
        if cube.own(one) == cube.own(other):
            sentence = f"{names[one]!r} and {names[other]!r} are one column: keep one of them in a margin"
            raise at.refuse(sentence, found=names[other])
    return tuple(chosen)


def _parts(name: str) -> tuple[str, ...]:
    """The axes in the name of a margin, between which ×, a comma or * stands."""
    return tuple(part.strip() for part in re.split(r"[×,*]", name))


def _leaves_below(tree: Hierarchy, nodes: Ints) -> Bools:
    """Which leaves lie at or below the nodes, in the order of `leaves`."""
    marked = np.zeros(tree.n, dtype=bool)
    marked[nodes] = True
    for d in range(1, len(tree.levels)):
        level = tree.order[tree.level_start[d] : tree.level_start[d + 1]]
        marked[level] |= marked[tree.parents[level]]
    return marked[tree.leaves]
