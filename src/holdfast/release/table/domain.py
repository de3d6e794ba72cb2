"""The public shape of a table: how records are addressed, which outputs there are, and what the spec's names mean."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Bools, Ints
from holdfast.domains import Cube, Hierarchy
from holdfast.queries import Query, counts, margins
from holdfast.release.spec.places import At
from holdfast.release.spec.sections import Handling
from holdfast.release.spec.spec import Spec, TableSpec
from holdfast.release.table.public import PublicFiles, Texts

#: Columns that every released file has; a column of the domain must not be called so.
RESERVED = ("level", "value", "low", "high")
#: What the names of the axes of a margin are joined by, and what is no axis but a sum over axes.
BETWEEN, SUMS = " × ", ("total", "cells")
#: Outputs that get a name in one piece, for messages and statements.
MOST_NAMED = 1_000_000


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

    `asked` is what the spec says about it, and `at` where.
    """

    spec: Spec
    asked: TableSpec
    at: At
    query: Query
    keys: tuple[Key, ...]
    names: tuple[str, ...]
    columns: dict[str, Texts]
    levels: tuple[str, ...]
    level_of: Ints

    @cached_property
    def tree(self) -> Hierarchy | None:
        """The hierarchy, if this is one."""
        return self.query.tree

    @cached_property
    def by(self) -> int:
        """Categories per node of a hierarchy."""
        return 1 if self.tree is None else self.query.n // self.tree.n

    # --- what the names in the spec mean ------------------------------------------------------------------------

    def figure(self, item: str | tuple[str, ...], at: At) -> Ints | tuple[int, ...]:
        """Return the nodes of a hierarchy, or the axes of a margin, that a name or a list of names means."""
        return self._axes(item, at) if self.tree is None else self._nodes(item, at)

    def _nodes(self, item: str | tuple[str, ...], at: At) -> Ints:
        tree = self.tree
        assert tree is not None
        if isinstance(item, tuple):
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
        if item == "total" and "total" not in self.names:
            return ()
        if item == "cells" and "cells" not in self.names:
            return tuple(range(len(self.names)))
        listed = (item,) if isinstance(item, str) else item
        for name in listed:
            if name not in self.names:
                raise at.refuse(f"there is no axis {name!r}", name, [*self.names, "total"])
        return tuple(sorted({self.names.index(name) for name in listed}))

    def outputs(self, item: str | tuple[str, ...], at: At) -> Ints:
        """Return the outputs that a level, node, path or margin means."""
        found = self.figure(item, at)
        if self.tree is not None:
            assert isinstance(found, np.ndarray)
            return (found[:, None] * self.by + np.arange(self.by)).ravel()
        return self.margin_outputs(tuple(found), at)

    def margin_outputs(self, axes: tuple[int, ...], at: At) -> Ints:
        """Return the outputs of a margin that is among the outputs."""
        name = self.margin_name(axes)
        if name not in self.levels:
            raise at.refuse(f"the margin {name!r} is not among the outputs", name, self.levels)
        return np.flatnonzero(self.level_of == self.levels.index(name)).astype(np.int64)

    def margin_name(self, axes: tuple[int, ...]) -> str:
        """Return the name of a margin by its axes."""
        return " × ".join(self.names[a] for a in axes) or "total"

    def level(self, name: str, at: At) -> str:
        """Return the level or margin that a key of `shares` means; `sex, age` stands for `sex × age`."""
        tidy = " × ".join(part.strip() for part in re.split(r"[×,*]", name)) if self.tree is None else name
        if tidy not in self.levels:
            raise at.refuse(f"there is no level or margin {name!r}", name, self.levels)
        return tidy

    def cells(self, item: str | tuple[str, ...] | dict[str, tuple[str, ...]], at: At) -> Bools:
        """Return which cells a node, a path, or values of columns mean."""
        if not isinstance(item, dict):
            if self.tree is not None:
                return np.repeat(_leaves_below(self.tree, self._nodes(item, at)), self.by)
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
        tree = self.tree
        if tree is not None and column in tree.levels:
            labels, axis = tree.names[tree.nodes_at(column)], 0
        else:
            named = self.asked.categories if tree is not None else self.names
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


def _leaves_below(tree: Hierarchy, nodes: Ints) -> Bools:
    """Which leaves lie at or below the nodes, in the order of `leaves`."""
    marked = np.zeros(tree.n, dtype=bool)
    marked[nodes] = True
    for d in range(1, len(tree.levels)):
        level = tree.order[tree.level_start[d] : tree.level_start[d + 1]]
        marked[level] |= marked[tree.parents[level]]
    return marked[tree.leaves]


def layout(spec: Spec, asked: TableSpec, at: At, files: PublicFiles) -> Layout:
    """Read a table's public domain and lay its outputs out."""
    taken = dict.fromkeys(RESERVED, "which the released files use")
    if asked.kind != "hierarchy":
        taken |= dict.fromkeys(SUMS, "which means a sum of cells")
    for key in ("root", "hierarchy", "categories", "histogram", "cube"):
        listed = getattr(asked, key) or ()
        for column in (listed,) if isinstance(listed, str) else listed:
            reason = taken.get(column.lower())
            if reason is None and BETWEEN in column and asked.kind == "cube":
                reason = f"since {BETWEEN.strip()} stands between the axes of a margin"
            if reason is not None:
                what = "the root" if key == "root" else "a column"
                sentence = f"{what} must not be called {column!r}, {reason}: rename it"
                raise at[key].refuse(sentence, found=column)
            taken[column.lower()] = "which is taken already, in whatever case"
    return _hierarchy(spec, asked, at, files) if asked.kind == "hierarchy" else _cube(spec, asked, at, files)


def _hierarchy(spec: Spec, asked: TableSpec, at: At, files: PublicFiles) -> Layout:
    levels, here, domain = asked.hierarchy or (), at["hierarchy"], spec.at["data"]["domain"]
    if spec.data.domain is None:
        raise here.refuse("a hierarchy needs data.domain, a public file with one row per lowest place")
    rows = {level: files.column(spec.data.domain, level, domain, here) for level in levels}
    if rows[levels[0]].size == 0:
        raise domain.refuse(f"the file {spec.data.domain!r} has no rows")
    for level, texts in rows.items():
        empty = np.flatnonzero(texts == None)  # noqa: E711
        if empty.size:
            sentence = f"row {empty[0] + 1} of {spec.data.domain!r} has no {level!r}: every row names every level"
            raise domain.refuse(sentence)
    _refuse_repeated(spec, asked, rows)
    tree = Hierarchy.from_frame({level: texts.tolist() for level, texts in rows.items()}, levels, asked.root)
    used = levels if asked.match == "path" else levels[-1:]
    keys = [_key(spec, used, tuple(rows[level] for level in used))]
    keys += [_key(spec, (column,), (files.values(column, here),)) for column in asked.categories]
    by = int(np.prod([key.size for key in keys[1:]], dtype=np.int64))
    columns = {"level": np.array(tree.levels, dtype=object)[tree.depth]} | _ancestors(tree)
    columns = {name: np.repeat(texts, by) for name, texts in columns.items()}
    points = np.unravel_index(np.tile(np.arange(by), tree.n), [key.size for key in keys[1:]] or [1])
    for column, key, point in zip(asked.categories, keys[1:], points, strict=False):
        columns[column] = key.values[0][point]
    query = _named(counts(tree, by), columns) if by > 1 else counts(tree)
    return Layout(spec, asked, at, query, tuple(keys), levels, columns, tree.levels, np.repeat(tree.depth, by))


def _named(query: Query, columns: dict[str, Texts]) -> Query:
    """Give the outputs their public names; very large tables keep their numbers."""
    if query.n > MOST_NAMED:
        return query
    rows = zip(*(texts.tolist() for name, texts in columns.items() if name != "level"), strict=True)
    labels = [" / ".join(text for text in row if text is not None) or "total" for row in rows]
    return query.named(np.array(labels, dtype=object))


def _refuse_repeated(spec: Spec, asked: TableSpec, rows: dict[str, Texts]) -> None:
    """Refuse a place that is listed twice, and a lowest place that lies in two others."""
    leaf = list(rows)[-1]
    first: dict[Any, int] = {}
    paths = list(zip(*(texts.tolist() for texts in rows.values()), strict=True))
    for i, path in enumerate(paths):
        before = first.setdefault(path if asked.match == "path" else path[-1], i)
        if before == i:
            continue
        if paths[before] == path:
            sentence = (
                f"rows {before + 1} and {i + 1} of {spec.data.domain!r} both name {' / '.join(path)!r}: leave one out "
                f"if they are the same place, or else name a column that tells them apart, such as a code, "
                f"after {leaf!r} in hierarchy"
            )
            raise spec.at["data"]["domain"].refuse(sentence, found=" / ".join(path))
        sentence = (
            f"{leaf} {path[-1]!r} lies in both {' / '.join(paths[before][:-1])!r} and {' / '.join(path[:-1])!r}, so it "
            "does not say where a record belongs: correct the file, or write match: path if records name every level"
        )
        raise spec.at["data"]["domain"].refuse(sentence, found=path[-1])


def _ancestors(tree: Hierarchy) -> dict[str, Texts]:
    """Each node's ancestor at every level (itself at its own), None below it."""
    above: dict[str, Texts] = {}
    for d, level in enumerate(tree.levels):
        node = np.where(tree.depth == d, np.arange(tree.n), -1)
        for deeper in range(d + 1, len(tree.levels)):
            nodes = tree.order[tree.level_start[deeper] : tree.level_start[deeper + 1]]
            node[nodes] = node[tree.parents[nodes]]
        above[level] = tree.names[node]
        above[level][node < 0] = None
    return above


def _cube(spec: Spec, asked: TableSpec, at: At, files: PublicFiles) -> Layout:
    here = at[asked.kind]
    names = asked.cube or (str(asked.histogram),)
    keys = tuple(_key(spec, (column,), (files.values(column, here),)) for column in names)
    kept = None if asked.margins is None else _margins(asked.margins, at["margins"], names)
    try:
        cube = Cube([key.size for key in keys], names)
        query = margins(cube, kept)
    except Refused as refusal:
        raise here.refuse(str(refusal)) from None
    listed = kept or [tuple(range(len(names)))]
    columns: dict[str, list[Any]] = {name: [] for name in ("level", *names)}
    for axes in listed:
        points = np.indices([keys[a].size for a in axes]).reshape(len(axes), -1) if axes else np.zeros((0, 1), int)
        columns["level"].append(np.full(points.shape[1], cube.margin_name(axes), dtype=object))
        for a, name in enumerate(names):
            texts = keys[a].values[0][points[axes.index(a)]] if a in axes else np.full(points.shape[1], None)
            columns[name].append(texts)
    levels = tuple(cube.margin_name(axes) for axes in listed)
    sizes = [texts.size for texts in columns["level"]]
    joined = {name: np.concatenate(parts).astype(object) for name, parts in columns.items()}
    level_of = np.repeat(np.arange(len(levels)), sizes)
    return Layout(spec, asked, at, _named(query, joined), keys, names, joined, levels, level_of)


def _margins(asked: tuple[tuple[str, ...], ...], at: At, names: tuple[str, ...]) -> list[tuple[int, ...]]:
    kept: list[tuple[int, ...]] = []
    for i, margin in enumerate(asked):
        for name in margin:
            if name not in names:
                raise at[i].refuse(f"there is no axis {name!r}", name, names)
        axes = tuple(sorted({names.index(name) for name in margin}))
        if axes in kept:
            raise at[i].refuse("this margin is listed twice", found=" × ".join(margin))
        kept.append(axes)
    if not kept:
        raise at.refuse("at least one margin is needed; leave margins out for the cells")
    return kept


def _key(spec: Spec, columns: tuple[str, ...], values: tuple[Texts, ...]) -> Key:
    """Make a key; the category of missing or foreign values must be one of its values."""

    def position(rule: Handling, key: str) -> int | None:
        if rule.category is None:
            return None
        found = np.flatnonzero(values[-1] == rule.category)
        if found.size != 1:
            sentence = f"{columns[-1]!r} has no value {rule.category!r}: add it to the public values"
            raise spec.at["data"][key].refuse(sentence, rule.category, values[-1].tolist())
        return int(found[0])

    names = tuple(spec.data.columns.get(column, column) for column in columns)
    data = spec.data
    return Key(names, values, position(data.nulls, "nulls"), position(data.outside, "outside"))
