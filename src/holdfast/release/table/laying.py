"""Laying a table out: from the spec and its public files to keys, outputs and their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from holdfast.arguments import Refused
from holdfast.domains import Cube, Hierarchy
from holdfast.onto.areas.steps import refuse_too_many_cells
from holdfast.queries import Query, counts, margins
from holdfast.queries.areas.area_margins import AreaMargins
from holdfast.release.spec.places import At
from holdfast.release.spec.sections import Handling
from holdfast.release.spec.spec import Spec
from holdfast.release.spec.table import AREAS, LINKED, TableSpec
from holdfast.release.storage.coded import Texts
from holdfast.release.table import area_names
from holdfast.release.table.area_names import AreaNames, ancestors
from holdfast.release.table.domain import ALL_CELLS, BETWEEN, INSIDE, RESERVED, SUMS, Key, Layout, axes_of
from holdfast.release.table.linking import TABLE, joined
from holdfast.release.table.public import PublicFiles, labels_of

#: Memory of one figure with up to five names at the peak of a release, and of each further name, as measured
#: (docs/reference/command.md).
FIGURE_BYTES, NAME_BYTES = 2000, 200
#: Outputs that get a name in one piece, for messages and statements.
MOST_NAMED = 1_000_000
#: Memory of one figure in areas at the peak of a release whose table is written in parts, as measured.
PART_BYTES = 95
#: Figures of the largest table of margins in areas, and of the largest linked tables together.
MOST_FIGURES, MOST_LINKED = 400_000_000, 20_000_000


def layout(spec: Spec, asked: TableSpec, at: At, files: PublicFiles) -> Layout:
    """Read a table's public domain and lay its outputs out."""
    taken = dict.fromkeys(RESERVED, "which the released files use")
    if asked.kind != "hierarchy":
        taken |= dict.fromkeys(SUMS, "which means a sum of cells")
    if asked.kind in (AREAS, LINKED):
        taken |= dict.fromkeys(ALL_CELLS, "which means the cells")
    if asked.kind == LINKED:
        taken[TABLE] = "which names the linked table"
    for key in ("root", "hierarchy", "categories", "histogram", "cube", "recode"):
        listed = getattr(asked, key) or ()
        for column in (listed,) if isinstance(listed, str) else listed:
            reason = taken.get(column.lower())
            if reason is None and BETWEEN in column and asked.kind in ("cube", AREAS):
                reason = f"since {BETWEEN.strip()} stands between the axes of a margin"
            if reason is None and INSIDE in column and asked.kind == AREAS:
                reason = f"since {INSIDE.strip()} stands between a level and its margin"
            if reason is not None:
                what = "the root" if key == "root" else "a column"
                sentence = f"{what} must not be called {column!r}, {reason}: rename it"
                raise at[key].refuse(sentence, found=column)
            taken[column.lower()] = "which is taken already, in whatever case"
    ways = {"hierarchy": _hierarchy, AREAS: _areas, LINKED: _linked}
    laid = ways.get(asked.kind, _cube)(spec, asked, at, files)
    return replace(laid, labels=labels_of(spec, asked, files, laid.columns)) if spec.data.labels else laid


def _places(spec: Spec, asked: TableSpec, at: At, files: PublicFiles) -> tuple[Hierarchy, list[Key]]:
    """Read the hierarchy of a table, and the keys of a place and of what divides it."""
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
    keys += [_key(spec, (column,), (files.values(column, here),)) for column in asked.axes]
    return tree, keys


def _hierarchy(spec: Spec, asked: TableSpec, at: At, files: PublicFiles) -> Layout:
    tree, keys = _places(spec, asked, at, files)
    by = int(np.prod([key.size for key in keys[1:]], dtype=np.int64))
    columns = {"level": np.array(tree.levels, dtype=object)[tree.depth]} | ancestors(tree)
    columns = {name: np.repeat(texts, by) for name, texts in columns.items()}
    points = np.unravel_index(np.tile(np.arange(by), tree.n), [key.size for key in keys[1:]] or [1])
    for column, key, point in zip(asked.categories, keys[1:], points, strict=False):
        columns[column] = key.values[0][point]
    query = _named(counts(tree, by), columns) if by > 1 else counts(tree)
    names = asked.hierarchy or ()
    return Layout(spec, asked, at, query, tuple(keys), names, columns, tree.levels, np.repeat(tree.depth, by))


def _areas(spec: Spec, asked: TableSpec, at: At, files: PublicFiles) -> Layout:
    """Lay out margins of a cube in every area of a hierarchy."""
    tree, keys = _places(spec, asked, at, files)
    cube = _coded(asked, at, keys[1:])
    kept: dict[str, list[tuple[int, ...]]] = {}
    for level, listed in (asked.measure or {}).items():
        here = at["measure"][level]
        if level not in tree.levels:
            raise here.refuse(f"there is no level {level!r}", level, tree.levels)
        kept[level] = []
        for i, item in enumerate(listed):
            there = here if listed == (ALL_CELLS[0],) else here[i]
            axes = axes_of(item, cube, there)
            if axes in kept[level]:
                raise there.refuse("this margin is listed twice", found=cube.margin_name(axes))
            kept[level].append(axes)
    try:
        query = counts(tree, cube, kept)
        assert isinstance(query, AreaMargins)
        if asked.numbers == "whole":
            refuse_too_many_cells(query)
    except Refused as refusal:
        raise at["measure"].refuse(str(refusal)) from None
    _refuse_too_many(query.n, MOST_FIGURES, at["measure"])
    names_of = AreaNames(query, [key.values[0] for key in keys[1:]] + _group_names(asked, cube))
    columns = names_of if query.n > area_names.MOST_IN_A_FILE else dict(names_of)
    names = asked.hierarchy or ()
    laid = _named_in_areas(query, columns, tree.levels)
    return Layout(spec, asked, at, laid, tuple(keys), names, columns, tuple(query.levels), query.level_of)


def _refuse_too_many(figures: int, most: int, at: At) -> None:
    if figures > most:
        sentence = (
            f"{figures:,} figures are more than one process makes, {most:,}: measure fewer margins at the lowest "
            "level, or make one release for each place of an upper level"
        )
        raise at.refuse(sentence)


def figure_bytes(layout: Layout) -> int:
    """The memory of one figure at the peak of a release, with its names unless these are made part by part."""
    names = len(layout.columns)
    return PART_BYTES if layout.in_parts is not None else FIGURE_BYTES + NAME_BYTES * max(names - 5, 0)


def _linked(spec: Spec, asked: TableSpec, at: At, files: PublicFiles) -> Layout:
    """Lay out linked tables: each by itself, and then all together."""
    if {rule.rule for rule in asked.hold} != {"consistent", "nonnegative"}:
        raise at["hold"].refuse("linked tables hold consistent and nonnegative, both, and no other rule")
    parts = []
    for name, each in (asked.linked or {}).items():
        own = asked.model_copy(
            update={"name": name, "linked": None, "ties": (), "cube": each.cube, "measure": each.measure}
        )
        for cached in ("kind", "axes", "columns"):
            own.__dict__.pop(cached, None)
        own = own.model_copy(update={"shares": each.shares})
        laid = _areas(spec, own, at["linked"][name], files)
        keys, counted = laid.keys, np.ones(1, bool)
        for column, values in (each.rows or {}).items():
            here = at["linked"][name]["rows"]
            key = _key(spec, (column,), (files.values(column, here),))
            for value in values:
                if value not in key.values[0]:
                    raise here[column].refuse(f"{column!r} has no value {value!r}", value, key.values[0].tolist())
            keys = (*keys, key)
            counted = np.logical_and.outer(counted, np.isin(key.values[0].astype(str), list(values))).ravel()
        parts.append(replace(laid, keys=keys, counted=counted))
    _refuse_too_many(sum(part.query.n for part in parts), MOST_LINKED, at["linked"])
    return joined(spec, asked, at, tuple(parts))


def _coded(asked: TableSpec, at: At, keys: Sequence[Key]) -> Cube:
    """The cube of some keys, with its recoded axes."""
    names, found = asked.cube or (str(asked.histogram),), {}
    for name, each in asked.recode.items():
        here = at["recode"][name]["groups"]
        own = keys[names.index(each.of)].values[-1].tolist()
        group_of = {value: group for group, values in enumerate(each.groups.values()) for value in values}
        for value in group_of:
            if value not in own:
                raise here.refuse(f"{each.of!r} has no value {value!r}", value, own)
        for value in own:
            if value not in group_of:
                raise here.refuse(f"the value {value!r} of {each.of!r} is in no group: put it into one", found=value)
        found[name] = (each.of, [group_of[value] for value in own])
    try:
        return Cube([key.size for key in keys], names, recoded=found)
    except Refused as refusal:
        raise at["recode" if found else "cube" if asked.cube else "histogram"].refuse(str(refusal)) from None


def _group_names(asked: TableSpec, cube: Cube) -> list[Texts]:
    """The names of the groups of every recoded axis."""
    return [np.array(list(asked.recode[each.name].groups), dtype=object) for each in cube.recoded]


def _own_names(cube: Cube, columns: Mapping[str, Texts]) -> dict[str, Texts]:
    """The values by which figures are called: a group where the value itself, or a finer one, is not told."""
    found = {name: columns[name] for name in cube.all_names}
    for each in cube.recoded:
        finer = [cube.all_names[a] for a in cube.chain(each.axis) if cube.sizes[a] > each.size]
        told = np.logical_or.reduce([columns[name] != None for name in finer])  # noqa: E711
        found[each.name] = columns[each.name].copy()
        found[each.name][told] = None
    return found


def _named_in_areas(query: AreaMargins, columns: Mapping[str, Texts], levels: tuple[str, ...]) -> Query:
    """Name an output by its path and, for the values of the cube, by column and value."""
    if query.n > MOST_NAMED:
        return query
    paths = zip(*(columns[level].tolist() for level in levels), strict=True)
    labels = [" / ".join(text for text in path if text is not None) for path in paths]
    inside = zip(*(texts.tolist() for texts in _own_names(query.table, columns).values()), strict=True)
    named = (
        ", ".join(f"{axis} {text}" for axis, text in zip(query.table.all_names, texts, strict=True) if text is not None)
        for texts in inside
    )
    texts = [f"{label} ({words})" if words else label for label, words in zip(labels, named, strict=True)]
    return query.named(np.array(texts, dtype=object))


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


def _cube(spec: Spec, asked: TableSpec, at: At, files: PublicFiles) -> Layout:
    here = at[asked.kind]
    names = asked.cube or (str(asked.histogram),)
    keys = tuple(_key(spec, (column,), (files.values(column, here),)) for column in names)
    cube = _coded(asked, at, keys)
    kept = None if asked.margins is None else _margins(asked.margins, at["margins"], cube)
    try:
        query = margins(cube, kept)
    except Refused as refusal:
        raise here.refuse(str(refusal)) from None
    listed = kept or [tuple(range(len(names)))]
    values = [key.values[0] for key in keys] + _group_names(asked, cube)
    columns: dict[str, list[Any]] = {name: [] for name in ("level", *cube.all_names)}
    for axes in listed:
        size = int(np.prod(cube.margin_shape(axes), dtype=np.int64))
        columns["level"].append(np.full(size, cube.margin_name(axes), dtype=object))
        for a, name in enumerate(cube.all_names):
            told = cube.tells(axes, (a,))
            columns[name].append(values[a][cube.within(axes, (a,))] if told else np.full(size, None))
    levels = tuple(cube.margin_name(axes) for axes in listed)
    sizes = [texts.size for texts in columns["level"]]
    joined = {name: np.concatenate(parts).astype(object) for name, parts in columns.items()}
    level_of = np.repeat(np.arange(len(levels)), sizes)
    return Layout(spec, asked, at, _named(query, _own_names(cube, joined)), keys, names, joined, levels, level_of)


def _margins(asked: tuple[tuple[str, ...], ...], at: At, cube: Cube) -> list[tuple[int, ...]]:
    kept: list[tuple[int, ...]] = []
    for i, margin in enumerate(asked):
        axes = axes_of(margin, cube, at[i])
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
