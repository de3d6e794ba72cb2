"""Recoded axes of a table: the cube of its columns with groups of their values, and how figures are called by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from holdfast.arguments import Refused
from holdfast.domains import Cube
from holdfast.release.spec.places import At
from holdfast.release.spec.table import TableSpec
from holdfast.release.table.domain import Key
from holdfast.release.table.public import Texts


def coded(asked: TableSpec, at: At, keys: Sequence[Key]) -> Cube:
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


def group_names(asked: TableSpec, cube: Cube) -> list[Texts]:
    """The names of the groups of every recoded axis."""
    return [np.array(list(asked.recode[each.name].groups), dtype=object) for each in cube.recoded]


def own_names(cube: Cube, columns: Mapping[str, Texts]) -> dict[str, Texts]:
    """The values by which figures are called: a group where the value itself, or a finer one, is not told."""
    found = {name: columns[name] for name in cube.all_names}
    for each in cube.recoded:
        finer = [cube.all_names[a] for a in cube.chain(each.axis) if cube.sizes[a] > each.size]
        told = np.logical_or.reduce([columns[name] != None for name in finer])  # noqa: E711
        found[each.name] = columns[each.name].copy()
        found[each.name][told] = None
    return found
