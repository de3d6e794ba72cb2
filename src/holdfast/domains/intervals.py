"""Bounds on the nodes of a forest whose parents are the sums of their children: one pass up and one pass down.

The children of node v are children[start[v]:start[v + 1]], and `order` lists parents before children, as
`breadth_first` gives them. A bound of ∓2**62 is none, and a sum of bounds that leaves ±2**62 bounds nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.arguments import LARGEST
from holdfast.arrays import Ints, compiled


def output_parents(parents: Ints, by: int) -> Ints:
    """Parents of the outputs of a tree with so many categories per node, in node-major order."""
    if by == 1:
        return parents
    node, category = np.divmod(np.arange(parents.size * by), by)
    above = parents[node]
    return np.asarray(np.where(above < 0, -1, above * by + category))


@compiled(beyond=20_000)
def bound_upwards(start: Any, children: Any, order: Any, low: Any, high: Any, slack: Any) -> Any:  # pragma: no cover
    """Tighten bounds by the sums of the children's, in place; return a node whose bounds then cross, or −1.

    Real bounds that miss each other by no more than `slack` times their size meet; a node that has one value keeps it.
    If no interval is empty, then going down every value of a node can be split over its children within their bounds.
    """
    for i in range(order.size - 1, -1, -1):
        v = order[i]
        least, most = low[v], high[v]
        if start[v + 1] > start[v]:
            least, most = low[v] * 0, low[v] * 0
            for k in range(start[v], start[v + 1]):
                # two numbers within ±2**62 have a sum within 64 bits
                below, above = low[children[k]], high[children[k]]
                least = -LARGEST if least <= -LARGEST or below <= -LARGEST else min(least + below, LARGEST)
                most = LARGEST if most >= LARGEST or above >= LARGEST else max(most + above, -LARGEST)
            least, most = max(least, low[v]), min(most, high[v])
        if least > most:
            if np.float64(least) - np.float64(most) > slack * max(1.0, abs(least), abs(most)):
                low[v], high[v] = least, most
                return v
            most = least
        if low[v] < high[v]:
            low[v], high[v] = least, most
    return -1


@compiled(beyond=20_000)
def bound_downwards(start: Any, children: Any, order: Any, low: Any, high: Any) -> None:  # pragma: no cover
    """Tighten whole bounds, from `bound_upwards`, by what a parent leaves a child for any values of the others."""
    for v in order:
        span = children[start[v] : start[v + 1]]
        least, most, bottomless, endless = 0, 0, 0, 0
        for c in span:
            bottomless += low[c] <= -LARGEST
            endless += high[c] >= LARGEST
            least += low[c] if low[c] > -LARGEST else 0
            most += high[c] if high[c] < LARGEST else 0
        for c in span:
            below, above = low[c], high[c]
            if high[v] < LARGEST and bottomless == (below <= -LARGEST):
                high[c] = min(above, high[v] - (least - below if below > -LARGEST else least))
            if low[v] > -LARGEST and endless == (above >= LARGEST):
                low[c] = max(below, low[v] - (most - above if above < LARGEST else most))
