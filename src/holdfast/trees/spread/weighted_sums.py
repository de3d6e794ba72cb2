"""The variance of a weighted sum of outputs' noise on a hierarchy: from the laws where one output says it all.

A parent is the sum of its children, so weights are moved to the leaves and gathered again where all leaves below an
output have one weight. Trees, and what lies below different exact outputs, are independent. Where a tree's share comes
down to one output, its variance is known. Hierarchies that are small enough go another way, which is exact
(plain/sums.py); on larger ones the rest is measured on simulated draws: STUDY of them, fewer on very large ones, but at
least 100 (then a standard error is known to about 7 %).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from holdfast.arrays import Floats, compiled
from holdfast.noise.spread import STUDY
from holdfast.randomness import seeded
from holdfast.trees.messages.sampler import Sampler

#: Values drawn in all and at a time, about; and the least number of draws.
MOST_DRAWN, CHUNK = 1 << 26, 1 << 24
FEWEST = 100


def variance_of_sum(sampler: Sampler, variances: Callable[[], Floats], weights: Floats) -> float:
    """The variance of Σ weights·noise; `variances` gives those of all outputs."""
    forest = sampler.forest
    value, count, tree = _gathered(forest.parents, *forest.children, forest.order, forest.exact, weights)
    alone = (value != 0) & (count[tree] == 1)
    known = float((value[alone] ** 2 * variances()[alone]).sum()) if alone.any() else 0.0
    rest = np.flatnonzero((value != 0) & (count[tree] > 1))
    if rest.size == 0:
        return known
    size = int(np.clip(MOST_DRAWN // forest.n, FEWEST, STUDY))
    rows, stream = max(1, CHUNK // forest.n), seeded(0)
    sums = [sampler.draw(min(rows, size - start), stream)[:, rest] @ value[rest] for start in range(0, size, rows)]
    return known + float(np.concatenate(sums).var())


@compiled
def _gathered(parents: Any, children: Any, start: Any, order: Any, exact: Any, weights: Any) -> Any:
    """Weights on the highest outputs below which all leaves have one weight, 0 elsewhere; how many such outputs each
    independent tree has; and the tree of every output."""
    n = parents.size
    full = weights.copy()
    tree = np.arange(n)
    for i in range(n):
        v = order[i]
        if parents[v] >= 0:
            tree[v] = parents[v]
            if not exact[parents[v]]:
                tree[v] = tree[parents[v]]
                full[v] += full[parents[v]]
    none, one, many = 0, 1, 2  # how many different weights the free leaves below an output have
    state = np.zeros(n, np.int8)
    value = np.zeros(n)
    for i in range(n - 1, -1, -1):
        v = order[i]
        if exact[v]:
            continue  # its noise is 0
        if start[v] == start[v + 1]:
            state[v], value[v] = one, full[v]
        for j in range(start[v], start[v + 1]):
            c = children[j]
            if state[c] == none:
                continue
            if state[c] == many or (state[v] == one and value[v] != value[c]):
                state[v] = many
            elif state[v] == none:
                state[v], value[v] = one, value[c]
    count = np.zeros(n, np.int64)
    for i in range(n - 1, -1, -1):
        v = order[i]
        above = parents[v]
        if state[v] != one or (above >= 0 and not exact[above] and state[above] == one):
            value[v] = 0.0
        elif value[v] != 0.0:
            count[tree[v]] += 1
    return value, count, tree
