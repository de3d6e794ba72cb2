"""The public shape of a table: how records are addressed, which figures there are, and what the spec's names mean.

The figures of every table are margins of a cube in the places of a hierarchy: a hierarchy alone has a cube of one cell
in each place, a cube alone has one place, and linked tables are several such tables after each other. What is still
particular to a kind of table is what a `Kind` says, one file each under `kinds`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
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
from holdfast.release.facts import LinkedTable, Margin, Sum
from holdfast.release.spec.places import At
from holdfast.release.spec.rules import Exactly
from holdfast.release.spec.spec import Spec
from holdfast.release.spec.table import TableSpec
from holdfast.release.storage.tables import Texts
from holdfast.release.table.area_names import AreaNames, distinct
from holdfast.release.table.public import PublicFiles

#: A name, a path, or a mapping, as the spec reads them.
Item = str | tuple[str, ...] | dict[str, tuple[str, ...]]
Axes = tuple[int, ...]
#: Columns that every released file has; a column of the domain must not be called so.
RESERVED = ("level", "value", "low", "high")
#: What the names of the axes of a margin are joined by, and what is no axis but a sum over axes.
BETWEEN, SUMS = " × ", ("total", "cells")
#: What stands between a level and a margin of it, and what the cells are called where margins are listed.
INSIDE, ALL_CELLS = ": ", ("all", "cells")
MAPPED = "found a mapping: {LEVEL: MARGIN} goes with a hierarchy and a cube together"


class Kind(ABC):
    """What is particular to one kind of table. A new kind is one file with one of these, listed in `laying`."""

    name: str
    #: Whether margins are measured inside levels, so that rules, shares and weights name {LEVEL: MARGIN}.
    nested = False
    #: Whether sums of figures that are exact are written as further rows.
    adds_rows = True
    #: Whether a record is a household with all its rows.
    of_households = False

    @abstractmethod
    def lay_out(self, spec: Spec, asked: TableSpec, at: At, files: PublicFiles) -> Layout:
        """Read the public domain and lay the outputs out."""

    @abstractmethod
    def query(self, tree: Hierarchy | None, cubes: Sequence[Cube], margins: Sequence[Margin], by: int) -> Query:
        """Return what is asked of the records: margins of cubes, one per linked table, or `by` cells everywhere."""

    def linked(self, query: Any, tables: Sequence[LinkedTable]) -> Any:
        """Return the query of several tables that are tied, from those of each."""
        del tables
        return query

    def reserved(self) -> dict[str, str]:
        """Return names that no column may have, with the reason."""
        return {}

    @abstractmethod
    def exact(self, layout: Layout, item: Item | Exactly, at: At) -> tuple[str, Ints | None, Axes | None]:
        """Return what exact figures are called, their places (None: there are none) and margin (None: as they are)."""

    def sums(self, layout: Layout) -> Any:
        """Return the sums that hold as certificates write them: listed, or told by the names of the rows."""
        del layout
        return {"parents": True}

    def ties(self, query: Any) -> list[Sum]:
        """Return the sums of rows that ties make 0."""
        del query
        return []

    def refuse_unheld(self, layout: Layout, account: Mapping[str, Any], impossible: Bools | None) -> None:
        """Refuse rules that tables of this kind cannot hold, or that would determine figures unseen."""
        del layout, account, impossible

    def shared_out(self, layout: Layout) -> int:
        """Return the number of cells that are shared out over all places, which take memory."""
        del layout
        return 0


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
        return int(self.values[0].size)

    @cached_property
    def positions(self) -> dict[tuple[str, ...], int]:
        return {names: i for i, names in enumerate(zip(*(texts.tolist() for texts in self.values), strict=True))}


@dataclass(frozen=True, eq=False)
class Layout:
    """A table's query, the keys that address its cells (the last one runs fastest) and the names of its outputs.

    `asked` is what the spec says about it, and `at` where. `margins` say what the outputs of each level are, and `cube`
    has their axes. Of linked tables `parts` are the layouts of each, by which records are counted; `counted` says which
    values of the last keys a part counts, None: it has no such keys. `labels` are names for people of the codes in some
    columns.
    """

    kind: Kind
    spec: Spec
    asked: TableSpec
    at: At
    query: Query
    keys: tuple[Key, ...]
    names: tuple[str, ...]
    columns: Mapping[str, Texts]
    levels: tuple[str, ...]
    level_of: Ints
    margins: tuple[Margin, ...]
    cube: Cube | None = None
    parts: tuple[Layout, ...] = ()
    counted: Bools | None = None
    labels: dict[str, dict[str, str]] = field(default_factory=dict)

    @cached_property
    def tree(self) -> Hierarchy | None:
        """The hierarchy, if nothing but its places, each alike divided, is counted."""
        return self.query.tree

    @cached_property
    def in_parts(self) -> AreaNames | None:
        """Names that are made where the table is written, in parts; None: it is one file."""
        return self.columns if isinstance(self.columns, AreaNames) else None

    @cached_property
    def places(self) -> Hierarchy | None:
        """The hierarchy that addresses the cells, alone or with what divides its places."""
        return self.query.domain[0]

    @cached_property
    def by(self) -> int:
        return 1 if self.tree is None else self.query.n // self.tree.n

    @cached_property
    def kept(self) -> tuple[Axes, ...]:
        names = () if self.cube is None else self.cube.all_names
        return tuple(tuple(names.index(axis) for axis in margin.axes) for margin in self.margins)

    def nodes(self, level: int) -> Ints:
        """The places of a level, increasing; one where there is no hierarchy."""
        if self.places is None:
            return np.zeros(1, dtype=np.int64)
        return self.places.nodes_at(self.margins[level].places - 1)

    def rows(self, level: int) -> Ints:
        """The outputs of a level, (places, entries)."""
        return np.flatnonzero(self.level_of == level).reshape(self.nodes(level).size, -1).astype(np.int64)

    def tells(self, kept: Axes, axes: Axes) -> bool:
        return self.cube is None or self.cube.tells(kept, axes)

    # --- what the names in the spec mean ------------------------------------------------------------------------

    def meaning(self, item: Item, at: At) -> tuple[Ints | None, Axes | None]:
        """Return the places that an item means, None where there are none, and the margin there; None: all of them."""
        if self.places is None:
            if isinstance(item, dict):
                raise at.refuse(MAPPED)
            assert self.cube is not None
            return None, axes_of(item, self.cube, at)
        if not isinstance(item, dict):
            return self._nodes(self.places, item, at), None
        if not self.kind.nested:
            raise at.refuse(MAPPED)
        if len(item) != 1:
            raise at.refuse("name one level or place and its margin, such as {county: [sex, age]}")
        ((place, margin),) = item.items()
        listed = margin[0] if len(margin) == 1 else margin
        assert self.cube is not None
        return self._nodes(self.places, place, at[place]), axes_of(listed, self.cube, at[place])

    def _nodes(self, tree: Hierarchy, item: str | tuple[str, ...], at: At) -> Ints:
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
        nodes = np.flatnonzero(tree.names == item).astype(np.int64)
        if nodes.size == 0:
            options = dict.fromkeys([*tree.levels, *tree.names.tolist()])
            raise at.refuse(f"no level or node is called {item!r}", item, options)
        if nodes.size > 1:
            path = list(tree.path(int(nodes[0])))
            raise at.refuse(f"{nodes.size} nodes are called {item!r}: give the path, such as {path}", found=item)
        return nodes

    def outputs(self, item: Item, at: At) -> Ints:
        return self.measured(*self.meaning(item, at), at)

    def measured(self, nodes: Ints | None, axes: Axes | None, at: At) -> Ints:
        """Return the outputs of some places, of all their margins or of one that is measured."""
        chosen = np.zeros(self.query.n, dtype=bool)
        for level in (level for level, kept in enumerate(self.kept) if axes in (None, kept)):
            mine = slice(None) if nodes is None else np.isin(self.nodes(level), nodes)
            chosen[self.rows(level)[mine]] = True
        if chosen.any():
            return np.flatnonzero(chosen).astype(np.int64)
        name = "" if axes is None or self.cube is None else self.cube.margin_name(axes)
        if self.places is None:
            raise at.refuse(f"the margin {name!r} is not among the outputs", name, self.levels)
        raise at.refuse(f"{f'no margin {name!r}' if name else 'nothing'} is measured there", allowed=self.levels)

    def level(self, name: str, at: At) -> str:
        """Return the level or margin that a key of `shares` means; `sex, age` stands for `sex × age`."""
        tidy = name if self.tree is not None or name in self.levels else BETWEEN.join(_axis_names(name))
        if tidy not in self.levels:
            raise at.refuse(f"there is no level or margin {name!r}", name, self.levels)
        return tidy

    def by_level(self, numbers: Mapping[str, Any], at: At, *, divide: bool = False) -> dict[str, Fraction]:
        """Return numbers for levels or margins of the outputs by their names.

        Where margins are nested in levels, a number for a level counts for every margin of it, or is divided over them,
        and numbers can be given for its margins one by one.
        """
        found: dict[str, Fraction] = {}
        for name, value in numbers.items():
            if not self.kind.nested:
                if isinstance(value, Mapping):
                    raise at[name].refuse("margins of a level go with a hierarchy and a cube together")
                found[self.level(name, at[name])] = Fraction(value)
                continue
            assert self.places is not None
            assert self.cube is not None
            if name not in self.places.levels:
                raise at[name].refuse(f"there is no level {name!r}", name, self.places.levels)
            inside = f"{name}{INSIDE}"
            mine = [level for level in self.levels if level.startswith(inside)]
            if not mine:
                raise at[name].refuse(f"nothing is measured at the level {name!r}", name)
            if not isinstance(value, Mapping):
                found |= dict.fromkeys(mine, Fraction(value) / (len(mine) if divide else 1))
                continue
            for margin, number in value.items():
                level = inside + self.cube.margin_name(axes_of(_axis_names(margin), self.cube, at[name][margin]))
                if level not in mine:
                    own = [each.removeprefix(inside) for each in mine]
                    raise at[name][margin].refuse(f"the margin {margin!r} is not measured at {name!r}", margin, own)
                found[level] = Fraction(number)
        return found

    def cells(self, item: Item, at: At) -> Bools:
        """Return which cells a node, a path, or values of columns mean."""
        if not isinstance(item, dict):
            if self.places is not None:
                inside = int(np.prod([key.size for key in self.keys[1:]], dtype=np.int64))
                return np.repeat(_leaves_below(self.places, self._nodes(self.places, item, at)), inside)
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

    # --- single figures by their public names ---------------------------------------------------------------------

    def figures(self, item: Item, at: At) -> Ints:
        """Return the outputs that an item means, in order: one, or all that have these values in these columns."""
        if not isinstance(item, dict):
            if self.places is not None or (item == SUMS[0] and SUMS[0] in self.levels):
                return self.outputs(item, at)
            if len(self.names) > 1:
                sentence = "figures of a cube are named by their columns, such as {sex: F, age: child}"
                raise at.refuse(sentence, found=item)
            item = {self.names[0]: (item,) if isinstance(item, str) else item}
        options = [name for name in self.columns if name != "level"]
        for column, values in item.items():
            if column not in options:
                raise at[column].refuse(f"the table has no column {column!r}", column, options)
            known = set(map(str, distinct(self.columns, column)))
            for value in values:
                if value not in known:
                    raise at[column].refuse(f"{column!r} has no value {value!r}", value, sorted(known))
        if not item:
            raise at.refuse("found no columns: name at least one, such as {sex: F}")
        chosen = self.level_of == self._level_with(set(item), at)
        for column, values in item.items():
            chosen &= np.isin(self.columns[column].astype(str), list(values))
        outputs = np.flatnonzero(chosen).astype(np.int64)
        if not outputs.size:
            raise at.refuse("no figure has these values together")
        return outputs

    def _level_with(self, columns: set[str], at: At) -> int:
        """The level at which the columns end, with the margin that has them, and no others if there is one."""
        places = () if self.places is None else self.places.levels
        deep = max((d for d, level in enumerate(places, 1) if level in columns), default=len(places))
        here = [level for level, margin in enumerate(self.margins) if margin.places == deep]
        axes = () if self.cube is None else tuple(a for a, name in enumerate(self.cube.all_names) if name in columns)
        own = [level for level in here if set(self.kept[level]) == set(axes)]
        holding = own or [level for level in here if self.tells(self.kept[level], axes)]
        if len(holding) != 1:
            names = [self.levels[level] for level in holding] or list(self.levels)
            how_many = len(holding) or "no"
            sentence = f"{how_many} margins have these columns: name all columns of one of {', '.join(names)}"
            raise at.refuse(sentence)
        return holding[0]

    def chains(self, items: tuple[Item, ...], at: At) -> Ints:
        """Return chains of outputs, one per row, from the smallest figure to the largest."""
        if len(items) == 1 and isinstance(items[0], str) and items[0] in self.names and self.places is None:
            column = items[0]
            items = tuple({column: (str(value),)} for value in self.keys[self.names.index(column)].values[-1])
        if len(items) < 2:
            sentence = "an order needs at least two figures, or one column of a histogram or cube, found one"
            raise at.refuse(sentence, found=items[0] if items else None)
        chains = [self.figures(item, at[i]) for i, item in enumerate(items)]
        for i, chain in enumerate(chains):
            if chain.size != chains[0].size:
                sentence = f"means {chain.size} figures and the first entry {chains[0].size}: name as many in each"
                raise at[i].refuse(sentence)
        return np.stack(chains, axis=1)


def axes_of(item: str | tuple[str, ...], cube: Cube, at: At) -> Axes:
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


def _axis_names(name: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in re.split(r"[×,*]", name))


def _leaves_below(tree: Hierarchy, nodes: Ints) -> Bools:
    """Which leaves lie at or below the nodes, in the order of `leaves`."""
    marked = np.zeros(tree.n, dtype=bool)
    marked[nodes] = True
    for d in range(1, len(tree.levels)):
        level = tree.order[tree.level_start[d] : tree.level_start[d + 1]]
        marked[level] |= marked[tree.parents[level]]
    return marked[tree.leaves]
