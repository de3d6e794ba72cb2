"""Axes and their recodings as steps from coarse to fine, in which the contrasts of a table stand in blocks.

An axis with recodings whose groups are all alike in size is a table of its own: the coarsest groups, then parts of a
group, then values of a part. Contrasts along these steps (contrasts.py) compare groups, parts of one group, and values
of one part. So a set S of axes, with a recoding in the place of an axis or the axis itself, has a block of contrasts:
those that S tells and nothing coarser does (docs/theory/areas-and-margins.md, section 6).
"""

from __future__ import annotations

import math

import numpy as np

from holdfast.arrays import Ints
from holdfast.domains import Cube

Axes = tuple[int, ...]


def alike(table: Cube) -> bool:
    return all(each.alike for each in table.recoded)


def _chain(table: Cube, axis: int) -> Axes:
    chain = table.chain(table.own(axis))
    return chain[: chain.index(axis) + 1]


def steps(table: Cube, kept: Axes) -> tuple[int, ...]:
    """Return the sizes of the steps of a margin's axes."""
    found = []
    for axis in kept:
        before = 1
        for each in _chain(table, axis):
            found.append(table.sizes[each] // before)
            before = table.sizes[each]
    return tuple(found)


def order(table: Cube, kept: Axes) -> Ints | None:
    """Return the entries of a margin in the order of its steps; None: they stand so."""
    position = np.zeros(1, np.int64)
    for axis in kept:
        values: list[Ints] = []
        for each in _chain(table, axis):
            group = np.empty(table.sizes[axis], np.int64)
            group[table.groups(axis)] = table.groups(each)
            values.append(group)
        position = (position[:, None] * table.sizes[axis] + np.lexsort(values[::-1])).ravel()
    return None if (np.diff(position) == 1).all() else position


def block(table: Cube, kept: Axes, chosen: Axes) -> tuple[slice, ...]:
    """Return where the contrasts of a set of axes stand in the steps of a margin that tells it."""
    found = []
    for axis in kept:
        chain = _chain(table, axis)
        mine = [chain.index(each) for each in chosen if each in chain]
        last = mine[0] if mine else -1
        found += [
            slice(None) if at < last else slice(1, None) if at == last else slice(0, 1) for at in range(len(chain))
        ]
    return tuple(found)


def held(table: Cube, kept: Axes) -> tuple[slice, ...]:
    """Return where the contrasts of a margin stand in the steps of the cells."""
    found: list[slice] = []
    for axis in range(len(table.shape)):
        mine = [_chain(table, each) for each in kept if table.own(each) == axis]
        told = len(mine[0]) if mine else 0
        found += [slice(None) if at < told else slice(0, 1) for at in range(len(table.chain(axis)))]
    return tuple(found)


def count_of(table: Cube, chosen: Axes) -> int:
    return math.prod(table.rank(axis) for axis in chosen)


def share_of(table: Cube, kept: Axes, chosen: Axes) -> float:
    """Return the squared length of an entry of a margin inside the contrasts of a set of axes."""
    share = 1.0
    for axis in kept:
        mine = [each for each in chosen if table.own(each) == table.own(axis)]
        share *= (table.rank(mine[0]) if mine else 1) / table.sizes[axis]
    return share
