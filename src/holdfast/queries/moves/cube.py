"""Moves of the cells of a cube that keep margins, in closed form.

If t is the smallest number of axes (with two or more values) that no kept margin contains together, a table
with those margins zero changes at least 2**t cells, and the alternating table on t axes changes exactly so
many, by 1 each: 2**(t−1) replacements, and no fewer (docs/theory/difference-sets.md, Proposition 7).
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Bools, Ints
from holdfast.domains import Cube
from holdfast.queries.kinds import Kind, refuse_many
from holdfast.queries.moves.moves import Moves, no_moves
from holdfast.queries.neighbours import REPLACE_ONE, Neighbours
from holdfast.queries.weights import Bound, Weights


def smallest_free_set(shape: tuple[int, ...], keep: Any) -> int | None:
    """Return t, the size of the smallest set of moving axes inside no kept margin; None if there is none."""
    moving = [a for a, size in enumerate(shape) if size > 1]
    margins = [set(axes) for axes in keep]
    for t in range(len(moving) + 1):
        for chosen in combinations(moving, t):
            if not any(set(chosen) <= margin for margin in margins):
                return t
    return None


def cube_moves(n: int, cube_margins: Any, stage: Neighbours, alterable: Bools) -> Moves:
    """Return the moves of the smallest number of replacements, at least those of `stage`, on all n cells."""
    cube = Cube(cube_margins[0])
    if cube.cells != n:
        raise Refused(f"cube_margins must be of a cube with {n} cells, found shape {cube.shape}")
    t = smallest_free_set(cube.shape, cube.margins(cube_margins[1]))
    if t is None or t == 0:
        return no_moves(stage, n, np.flatnonzero(alterable))
    fewest = 2 ** (t - 1)
    records = max(fewest, stage.records)

    def bound(weights: Weights, p: int) -> Bound:
        if records > fewest:  # a difference of `records` replacements, whatever it keeps
            return Bound(_heaviest(weights, 2) * records**p, False)
        return Bound(_heaviest(weights, 2**t), weights.uniform)

    def kinds(which: Ints | None) -> list[Kind]:
        if records > fewest or (which is not None and np.unique(which).size > 1):
            raise refuse_many()
        return [Counter({(1, 0 if which is None else int(which[0])): 2**t})]

    frozen = np.zeros(0, np.int64)
    return Moves(Neighbours(REPLACE_ONE, records), False, False, records == fewest, frozen, n, bound, kinds)


def _heaviest(weights: Weights, count: int) -> Fraction:
    """Return the sum of the `count` largest weights."""
    if weights.which is None:
        return count * weights.values[0]
    times = np.bincount(weights.which, minlength=len(weights.values))
    total = Fraction(0)
    for g in sorted(range(len(weights.values)), key=lambda g: weights.values[g], reverse=True):
        used = min(count, int(times[g]))
        total += used * weights.values[g]
        count -= used
    return total
