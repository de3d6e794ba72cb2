"""The equalities that tie the margins of a cube together, as independent whole rows."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from holdfast.domains import Cube


def margin_equalities(shape: tuple[int, ...], keep: tuple[tuple[int, ...], ...]) -> csr_array[Any]:
    """Return rows A, shape (r, outputs), with A·z = 0 exactly for the z whose margins agree pairwise.

    For every set S of axes that several margins keep, the first of them is compared with each other one on
    its sums over S, at the cells of S with no coordinate 0; the remaining cells follow from smaller sets.
    The rows are independent and there are Σ_margins size − rank(W) of them
    (docs/theory/difference-sets.md, Proposition 4).
    """
    sizes = [math.prod(shape[a] for a in axes) for axes in keep]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    holders: dict[tuple[int, ...], list[int]] = {}
    for m, axes in enumerate(keep):
        for count in range(len(axes) + 1):
            for chosen in combinations(axes, count):
                if all(shape[a] > 1 for a in chosen):
                    holders.setdefault(chosen, []).append(m)
    blocks = [csr_array((0, int(offsets[-1])), dtype=np.int64)]
    for chosen, members in sorted(holders.items(), key=lambda item: (len(item[0]), item[0])):
        if len(members) < 2:
            continue
        first = summed(shape, keep, offsets, members[0], chosen)
        blocks.extend(first - summed(shape, keep, offsets, m, chosen) for m in members[1:])
    return csr_array(vstack(blocks, format="csr", dtype=np.int64))


def summed(
    shape: tuple[int, ...], keep: tuple[tuple[int, ...], ...], offsets: Any, m: int, chosen: tuple[int, ...]
) -> csr_array[Any]:
    """Return the rows that sum margin m to the axes `chosen`, at the cells with no coordinate 0."""
    axes = keep[m]
    width = int(offsets[-1])
    if not axes:
        return csr_array(([1], ([0], [int(offsets[m])])), shape=(1, width), dtype=np.int64)
    part = Cube([shape[a] for a in axes])
    inside = tuple(axes.index(a) for a in chosen)
    target = Cube(part.margin_shape(inside)) if inside else None
    index = part.margin_index(inside)
    kept = np.array([0]) if target is None else np.flatnonzero((target.coordinates(np.arange(target.cells)) > 0).all(1))
    rank = np.full(1 if target is None else target.cells, -1, np.int64)
    rank[kept] = np.arange(kept.size)
    cells = np.flatnonzero(rank[index] >= 0)
    return csr_array(
        (np.ones(cells.size, np.int64), (rank[index[cells]], offsets[m] + cells)), shape=(kept.size, width)
    )
