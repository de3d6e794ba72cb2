"""The equalities that tie the margins of a cube together, as independent whole rows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import product
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from holdfast.domains import Cube


def told_sets(table: Cube, axes: Iterable[int]) -> list[tuple[int, ...]]:
    """Return the sets of axes, and of coarser ones, that a margin tells: each with figures of its own."""
    choices = []
    for a in axes:
        chain = table.chain(table.own(a))
        finer = chain[: chain.index(a) + 1]
        choices.append([(), *((each,) for each in finer if table.rank(each) > 0)])
    return [tuple(a for part in chosen for a in part) for chosen in product(*choices)]


def margin_equalities(table: Cube, keep: tuple[tuple[int, ...], ...]) -> csr_array[Any]:
    """Return rows A, shape (r, outputs), with A·z = 0 exactly for the z whose margins agree pairwise.

    For every set S of axes that several margins tell, the first of them is compared with each other one on
    its sums over S, at the cells of S with no coordinate 0 (of a recoded axis: no coordinate that is the first one in
    its group of the next coarser recoding); the remaining cells follow from smaller sets.
    The rows are independent and there are Σ_margins size − rank(W) of them
    (docs/theory/difference-sets.md, Proposition 4; docs/theory/areas-and-margins.md, section 6).
    """
    sizes = [math.prod(table.sizes[a] for a in axes) for axes in keep]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    holders: dict[tuple[int, ...], list[int]] = {}
    for m, axes in enumerate(keep):
        for chosen in told_sets(table, axes):
            holders.setdefault(chosen, []).append(m)
    blocks = [csr_array((0, int(offsets[-1])), dtype=np.int64)]
    for chosen, members in sorted(holders.items(), key=lambda item: (len(item[0]), item[0])):
        if len(members) < 2:
            continue
        first = summed(table, keep, offsets, members[0], chosen)
        blocks.extend(first - summed(table, keep, offsets, m, chosen) for m in members[1:])
    return csr_array(vstack(blocks, format="csr", dtype=np.int64))


def summed(
    table: Cube, keep: tuple[tuple[int, ...], ...], offsets: Any, m: int, chosen: tuple[int, ...]
) -> csr_array[Any]:
    """Return the rows that sum margin m to the axes `chosen`, at the cells with no coordinate 0."""
    index = table.within(keep[m], chosen)
    compared = np.ones([table.sizes[a] for a in chosen], bool)
    for place, a in enumerate(chosen):
        below = table.below(a)
        group = np.zeros(table.sizes[a], np.int64)
        if below is not None:
            group[table.groups(a)] = table.groups(below)
        later = np.ones(table.sizes[a], bool)
        later[np.unique(group, return_index=True)[1]] = False
        compared &= later.reshape([-1 if other == place else 1 for other in range(len(chosen))])
    kept = np.flatnonzero(compared)
    rank = np.full(compared.size, -1, np.int64)
    rank[kept] = np.arange(kept.size)
    cells = np.flatnonzero(rank[index] >= 0)
    return csr_array(
        (np.ones(cells.size, np.int64), (rank[index[cells]], offsets[m] + cells)),
        shape=(kept.size, int(offsets[-1])),
    )
