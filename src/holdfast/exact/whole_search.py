"""Whole points of small systems, or a proof that there are none, by branch and bound in rationals.

Each node is the allowed real point nearest to one inside; a node without any is proved to be empty (`dual_steps`).
Branches are made on whole coordinates in which what is allowed is nearly round (`Slices`). The search ends after a
given number of nodes, never after a time.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from holdfast.exact.inside import Cut, Inside, Slices, with_cuts
from holdfast.exact.nearest_rational import ExactRows, nearest

#: Nodes of one search: the least, the most, and that many entries of rows in all nodes together.
LEAST_NODES, MOST_NODES, MOST_ENTRIES = 60, 2_000, 400_000


def whole_in(rows: ExactRows, nodes: int | None = None) -> tuple[list[int] | None, bool]:
    """Return (point, False) for a whole point, (None, True) if there is none, (None, False) if that stays open."""
    n = rows.C.ncols()
    first = nearest(rows, np.ones(n), [Fraction(0)] * n)
    inside = None if first is None else Inside.of(rows, first.point, 1)
    slices = None if inside is None else Slices.of(rows, inside, inside.point)
    if inside is None or slices is None:
        return None, True
    if nodes is None:
        nodes = min(MOST_NODES, max(LEAST_NODES, MOST_ENTRIES // (n * max(rows.count, 1))))
    waiting: list[list[Cut]] = [[]]
    for _ in range(nodes):
        if not waiting:
            break
        cuts = waiting.pop()
        found = nearest(with_cuts(rows, cuts), np.ones(n), inside.point)
        if found is None:
            continue
        pair = slices.cuts(found.point)
        if pair is None:
            return [int(x) for x in found.point], False
        waiting += [[*cuts, cut] for cut in pair]
    return None, not waiting
