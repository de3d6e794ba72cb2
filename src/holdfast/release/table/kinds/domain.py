"""Reading the public domain of a table: its places, the keys of its cells, its cube, and the names of its outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from holdfast.arguments import Refused
from holdfast.domains import Cube, Hierarchy
from holdfast.queries import Query
from holdfast.release.spec.places import At
from holdfast.release.spec.sections import Handling
from holdfast.release.spec.spec import Spec
from holdfast.release.spec.table import TableSpec
from holdfast.release.storage.tables import Texts
from holdfast.release.table.public import PublicFiles
from holdfast.release.table.shape import Axes, Key, axes_of

#: Outputs that get a name in one piece, for messages and statements.
MOST_NAMED = 1_000_000


def places_of(spec: Spec, asked: TableSpec, at: At, files: PublicFiles) -> tuple[Hierarchy, list[Key]]:
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
    _refuse_order(here, rows)
    _refuse_repeated(spec, asked, rows)
    tree = Hierarchy.from_frame({level: texts.tolist() for level, texts in rows.items()}, levels, asked.root)
    used = levels if asked.match == "path" else levels[-1:]
    keys = [key_of(spec, used, tuple(rows[level] for level in used))]
    keys += [key_of(spec, (column,), (files.values(column, here),)) for column in asked.axes]
    return tree, keys


def _refuse_order(here: At, rows: dict[str, Texts]) -> None:
    """Refuse levels that stand upside down: each name of one lies in one name of the level that is written below it."""
    sizes = {level: len(set(texts.tolist())) for level, texts in rows.items()}
    order = sorted(rows, key=sizes.__getitem__)
    for coarse, fine in pairwise(order):
        if len(set(zip(rows[fine].tolist(), rows[coarse].tolist(), strict=True))) > sizes[fine]:
            return  # names of the finer level repeat, so that they do not tell which stands above
    wrong = next(((above, below) for above, below in pairwise(rows) if sizes[above] > sizes[below] > 1), None)
    if wrong is not None:
        above, below = wrong
        sentence = (
            f"each {above} lies in one {below}, and not each {below} in one {above}: write the larger places first"
        )
        raise here.refuse(f"{sentence}, hierarchy: [{', '.join(order)}]")


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


def key_of(spec: Spec, columns: tuple[str, ...], values: tuple[Texts, ...]) -> Key:
    """Make a key; the category of missing or foreign values must be one of its values."""

    def position(rule: Handling, key: str) -> int | None:
        category = rule.category.get(columns[-1]) if isinstance(rule.category, dict) else rule.category
        if category is None:
            return None
        found = np.flatnonzero(values[-1] == category)
        if found.size != 1:
            sentence = f"{columns[-1]!r} has no value {category!r}: add it to the public values"
            if not isinstance(rule.category, dict):
                sentence += f", or name one for each column: {{category: {{{columns[-1]}: NAME}}}}"
            raise spec.at["data"][key].refuse(sentence, category, values[-1].tolist())
        return int(found[0])

    names = tuple(spec.data.columns.get(column, column) for column in columns)
    data = spec.data
    return Key(names, values, position(data.nulls, "nulls"), position(data.outside, "outside"))


def cube_of(asked: TableSpec, at: At, keys: Sequence[Key]) -> Cube:
    """The cube of some keys, with its recoded axes."""
    names, found = asked.cube or asked.categories or (str(asked.histogram),), {}
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


def values_of(asked: TableSpec, cube: Cube, keys: Sequence[Key]) -> list[Texts]:
    groups = [np.array(list(asked.recode[each.name].groups), dtype=object) for each in cube.recoded]
    return [*(key.values[0] for key in keys), *groups]


def margins_of(listed: Sequence[str | tuple[str, ...]], at: At, cube: Cube, each: bool = True) -> list[Axes]:
    """Read a list of margins, of which none occurs twice; `each`: whether every one has a place of its own."""
    kept: list[Axes] = []
    for i, item in enumerate(listed):
        axes = axes_of(item, cube, at[i] if each else at)
        if axes in kept:
            raise (at[i] if each else at).refuse("this margin is listed twice", found=cube.margin_name(axes))
        kept.append(axes)
    return kept


def own_names(cube: Cube, columns: Mapping[str, Texts]) -> dict[str, Texts]:
    """The values by which figures are called: a group where the value itself, or a finer one, is not told."""
    found = {name: columns[name] for name in cube.all_names}
    for each in cube.recoded:
        finer = [cube.all_names[a] for a in cube.chain(each.axis) if cube.sizes[a] > each.size]
        told = np.logical_or.reduce([columns[name] != None for name in finer])  # noqa: E711
        found[each.name] = columns[each.name].copy()
        found[each.name][told] = None
    return found


def named(query: Query, columns: Mapping[str, Texts], *, titled: Sequence[str] = ()) -> Query:
    """Give the outputs their public names, in brackets with their columns those of `titled`.

    Very large tables keep their numbers.
    """
    if query.n > MOST_NAMED:
        return query
    plain = zip(*(texts.tolist() for name, texts in columns.items() if name not in ("level", *titled)), strict=True)
    labels = [" / ".join(text for text in row if text is not None) or "total" for row in plain]
    if titled:
        inside = zip(*(columns[name].tolist() for name in titled), strict=True)
        words = (", ".join(f"{n} {t}" for n, t in zip(titled, row, strict=True) if t is not None) for row in inside)
        labels = [f"{label} ({each})" if each else label for label, each in zip(labels, words, strict=True)]
    return query.named(np.array(labels, dtype=object))
