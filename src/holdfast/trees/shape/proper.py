"""Whether noise on a hierarchy has a law at all: no direction may be left that measures, bounds and equalities ignore.

Where an output is measured or exact, noise that nothing else limits must vanish on it. Going up, each output's noise
may thus be left free to grow without end: not at all, upwards, downwards or both ways. Two children of one output
whose freedoms can cancel leave a direction of which nothing measured takes notice, and so does freedom at a root.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from holdfast.domains.breadth_first import breadth_first, levels


def endless(
    parents: npt.NDArray[np.int64],
    stopped: npt.NDArray[np.bool_],
    low: npt.NDArray[np.bool_],
    high: npt.NDArray[np.bool_],
) -> tuple[int, ...]:
    """Return outputs whose noise nothing limits: two that can cancel, or one at a root; empty if there are none.

    stopped: measured and exact outputs; low, high: outputs with a lower and an upper bound.
    """
    start, _, order, _, _ = breadth_first(parents)
    leaf = np.diff(start) == 0
    # By parent: the first and the last child that is free upwards, and downwards (both ways counts as both).
    upward, downward = np.full((2, 2, parents.size), -1, dtype=np.int64)
    for level in reversed(levels(start, order)):
        measured = stopped[level]
        ups = level[~measured & (leaf[level] | (upward[0, level] >= 0)) & ~high[level]]
        downs = level[~measured & (leaf[level] | (downward[0, level] >= 0)) & ~low[level]]
        roots = [each[parents[each] < 0] for each in (ups, downs)]
        if any(each.size for each in roots):
            return (int(np.concatenate(roots)[0]),)
        for ends, free in ((upward, ups), (downward, downs)):
            ends[0, parents[free[::-1]]], ends[1, parents[free]] = free[::-1], free
        others = upward[:, parents[downs]]
        bad = np.flatnonzero((others[0] >= 0) & (others != downs).any(axis=0))
        if bad.size:
            first, last = others[:, bad[-1]].tolist()
            child = int(downs[bad[-1]])
            return (last if first == child else first, child)
    return ()
