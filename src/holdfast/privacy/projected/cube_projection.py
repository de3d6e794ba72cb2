"""Projection of cells of a cube on the tables whose listed margins are zero, in closed form.

The projector is Σ over the sets S of axes inside no listed margin of ⊗_{a∈S}(I − J/n_a) ⊗_{a∉S} J/n_a, so the
entry of Π e_i at cell x depends only on the axes on which x agrees with i
(docs/theory/difference-sets.md, Proposition 6).
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

#: 6**axes exact terms are summed for pairs of cells; beyond this many axes a numerical projector is asked.
MOST_AXES = 6


def cube_norm(shape: tuple[int, ...], keep: Any, norm: float, adds: bool) -> Fraction:
    """Return max ‖Π d‖_p over one-record differences of the cells (its square for p = 2), exactly."""
    entry = _entries(shape, [set(axes) for axes in keep])
    axes = range(len(shape))
    if adds:
        options = [[(True, False, 1), (False, False, size - 1)] for size in shape]
        return _norm([(entry, _EMPTY)], options, norm, shape)
    best = Fraction(0)
    for differ in product([False, True], repeat=len(shape)):
        if not any(differ) or any(d and shape[a] < 2 for a, d in zip(axes, differ, strict=True)):
            continue
        options = [
            [(True, False, 1), (False, True, 1), (False, False, shape[a] - 2)]
            if differ[a]
            else [(True, True, 1), (False, False, shape[a] - 1)]
            for a in axes
        ]
        best = max(best, _norm([(entry, entry)], options, norm, shape))
    return best


_EMPTY: dict[int, int] = {}


def _norm(
    pair: list[tuple[dict[int, int], dict[int, int]]],
    options: list[list[tuple[bool, bool, int]]],
    norm: float,
    shape: tuple[int, ...],
) -> Fraction:
    """Return the norm of first(x) − second(x) over all cells x, counted by how x agrees with either cell."""
    first, second = pair[0]
    total = 0
    for choice in product(*options):
        times = math.prod(count for _, _, count in choice)
        if times == 0:
            continue
        here = first[_bits(agree for agree, _, _ in choice)]
        there = second[_bits(agree for _, agree, _ in choice)] if second else 0
        change = abs(here - there)
        total = max(total, change) if norm == np.inf else total + times * change ** int(norm)
    cells = math.prod(shape)
    return Fraction(total, cells**2 if norm == 2 else cells)


def _bits(flags: Any) -> int:
    return sum(1 << a for a, flag in enumerate(flags) if flag)


def _entries(shape: tuple[int, ...], keep: list[set[int]]) -> dict[int, int]:
    """Return cells·(Π e_i)(x) for every set of axes (as bits) on which x agrees with i."""
    axes = range(len(shape))
    outside = []
    for chosen in product([False, True], repeat=len(shape)):
        members = {a for a in axes if chosen[a]}
        if not any(members <= margin for margin in keep):
            outside.append(members)
    entries = {}
    for agree in product([False, True], repeat=len(shape)):
        factor = [shape[a] * agree[a] - 1 for a in axes]
        entries[_bits(agree)] = sum(math.prod(factor[a] for a in members) for members in outside)
    return entries
