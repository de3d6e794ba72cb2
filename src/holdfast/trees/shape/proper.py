"""Whether noise on a hierarchy has a law at all: no direction may be left that measures, bounds and equalities ignore.

Where an output is measured or exact, noise that nothing else limits must vanish on it. Going up, each output's noise
may thus be left free to grow without end: not at all, upwards, downwards or both ways. Two children of one output
whose freedoms can cancel leave a direction of which nothing measured takes notice, and so does freedom at a root.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arrays import compiled
from holdfast.domains.breadth_first import breadth_first


def endless(
    parents: npt.NDArray[np.int64],
    stopped: npt.NDArray[np.bool_],
    low: npt.NDArray[np.bool_],
    high: npt.NDArray[np.bool_],
) -> tuple[int, ...]:
    """Return outputs whose noise nothing limits: two that can cancel, or one at a root; empty if there are none.

    stopped: measured and exact outputs; low, high: outputs with a lower and an upper bound.
    """
    order = breadth_first(parents)[2]
    first, second = _search(parents, order, stopped, low, high)
    return tuple(int(v) for v in (first, second) if v >= 0)


@compiled(beyond=20_000)
def _search(parents: Any, order: Any, stopped: Any, low: Any, high: Any) -> Any:  # pragma: no cover (compiled)
    n = parents.size
    leaf = np.ones(n, np.bool_)
    for v in range(n):
        if parents[v] >= 0:
            leaf[parents[v]] = False
    # By child: one that is free upwards, one that is free downwards (both ways counts as both).
    upward, downward = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    for i in range(n - 1, -1, -1):
        v = order[i]
        up = not stopped[v] and (leaf[v] or upward[v] >= 0) and not high[v]
        down = not stopped[v] and (leaf[v] or downward[v] >= 0) and not low[v]
        if not up and not down:
            continue
        p = parents[v]
        if p < 0:
            return v, -1
        if up and downward[p] >= 0:
            return downward[p], v
        if down and upward[p] >= 0:
            return upward[p], v
        if up:
            upward[p] = v
        if down:
            downward[p] = v
    return -1, -1
