"""Bounds on the nodes of a forest whose parents are the sums of their children: one pass up and one pass down.

The children of node v are children[start[v]:start[v + 1]], and `order` lists parents before children, as
`breadth_first` gives them. A bound of ∓2**62 is none, and a sum of bounds that leaves ±2**62 bounds nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arguments import LARGEST
from holdfast.arrays import Ints, ranges
from holdfast.domains.breadth_first import levels

Values = npt.NDArray[Any]


def output_parents(parents: Ints, by: int) -> Ints:
    """Parents of the outputs of a tree with so many categories per node, in node-major order."""
    if by == 1:
        return parents
    node, category = np.divmod(np.arange(parents.size * by), by)
    above = parents[node]
    return np.asarray(np.where(above < 0, -1, above * by + category))


def bound_upwards(start: Ints, children: Ints, order: Ints, low: Values, high: Values, slack: float) -> int:
    """Tighten bounds by the sums of the children's, in place; return a node whose bounds then cross, or −1.

    Real bounds that miss each other by no more than `slack` times their size meet; a node that has one value keeps it.
    If no interval is empty, then going down every value of a node can be split over its children within their bounds.
    """
    for nodes in reversed(levels(start, order)):
        least, most = low[nodes], high[nodes]
        counts = start[nodes + 1] - start[nodes]
        inner, below, first = _below(start, children, nodes, counts)
        if inner.size:
            least[counts > 0] = np.maximum(_summed(low[below], first, -LARGEST), low[inner])
            most[counts > 0] = np.minimum(_summed(high[below], first, LARGEST), high[inner])
        missed = least.astype(np.float64) - most.astype(np.float64)
        sizes = np.maximum(np.abs(least.astype(np.float64)), np.abs(most.astype(np.float64)))
        bad = np.flatnonzero((least > most) & (missed > slack * np.maximum(sizes, 1.0)))
        if bad.size:
            k = bad[-1]
            low[nodes[k]], high[nodes[k]] = least[k], most[k]
            return int(nodes[k])
        wide = low[nodes] < high[nodes]
        most = np.maximum(most, least)
        low[nodes[wide]], high[nodes[wide]] = least[wide], most[wide]
    return -1


def bound_downwards(start: Ints, children: Ints, order: Ints, low: Values, high: Values) -> None:
    """Tighten whole bounds, from `bound_upwards`, by what a parent leaves a child for any values of the others."""
    for nodes in levels(start, order):
        counts = start[nodes + 1] - start[nodes]
        inner, below, first = _below(start, children, nodes, counts)
        if not inner.size:
            continue
        owner = np.repeat(np.arange(inner.size), counts[counts > 0])
        bottomless, endless = low[below] <= -LARGEST, high[below] >= LARGEST
        least, most = np.where(bottomless, 0, low[below]), np.where(endless, 0, high[below])
        others = [
            (np.add.reduceat(each.astype(np.int64), first)[owner] - each) for each in (least, most, bottomless, endless)
        ]
        capped = (high[inner][owner] < LARGEST) & (others[2] == 0)
        held = (low[inner][owner] > -LARGEST) & (others[3] == 0)
        above, under = high[inner][owner] - others[0], low[inner][owner] - others[1]
        high[below] = np.where(capped, np.minimum(high[below], above), high[below])
        low[below] = np.where(held, np.maximum(low[below], under), low[below])


def _below(start: Ints, children: Ints, nodes: Ints, counts: Ints) -> tuple[Ints, Ints, Ints]:
    """The nodes that have children, these, and where those of each begin."""
    inner, counts = nodes[counts > 0], counts[counts > 0]
    return inner, children[ranges(start[inner], counts)], np.cumsum(counts) - counts


def _summed(values: Values, first: Ints, none: int) -> Values:
    """Sums of bounds, of which one, or a sum that leaves ±2**62, bounds nothing."""
    rough = np.add.reduceat(values.astype(np.float64), first)
    sums = np.clip(np.add.reduceat(values, first), -LARGEST, LARGEST)
    sums[rough >= LARGEST], sums[rough <= -LARGEST] = LARGEST, -LARGEST
    endless = values <= none if none < 0 else values >= none
    return np.where(np.logical_or.reduceat(endless, first), none, sums)
