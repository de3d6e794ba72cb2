"""Whole, non-negative linked tables in every area, in three steps: estimate, shares ≥ 0, whole numbers.

As for one table (steps), with the ties in every step; everything holds exactly, since all outputs are counted from the
cells of the leaves and these keep the ties.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from holdfast.arrays import Floats, Ints
from holdfast.onto.areas.linked_estimate import LinkedEstimate
from holdfast.onto.areas.linked_sharing import LinkedSharing
from holdfast.onto.areas.steps import Steps


@dataclass(frozen=True, eq=False)
class LinkedSteps:
    """Linked tables with Gaussian measurements, ready to share out cells."""

    estimate: LinkedEstimate

    @cached_property
    def _steps(self) -> tuple[Steps, ...]:
        return tuple(Steps(part, whole=True) for part in self.estimate.parts)

    @cached_property
    def _levels(self) -> list[LinkedSharing]:
        listed = zip(*(each.levels for each in self._steps), strict=True)
        return [LinkedSharing(tuple(sharings), self.estimate.query.ties) for sharings in listed]

    def values(self, estimate: Floats, coin: int) -> Ints:
        """Return all outputs of the table that is shared out, (n,), from estimates of all outputs."""
        query, tree = self.estimate.query, self.estimate.query.hierarchy
        told = [each.told_by(own) for each, own in zip(self._steps, query.split(estimate), strict=True)]
        table = np.zeros((tree.n, sum(part.table.cells for part in query.parts)), np.int64)
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            for depth in range(len(tree.levels)):
                parents = [-1] if depth == 0 else np.unique(tree.parents[tree.nodes_at(depth)]).tolist()

                def one(parent: int, depth: int = depth) -> None:
                    if parent < 0:
                        for root in tree.roots:
                            table[root] = self._shared(depth, np.array([root]), None, told, coin)[0]
                    else:
                        parts = tree.children_of(parent)
                        table[parts] = self._shared(depth, parts, table[parent], told, coin)

                list(pool.map(one, parents))
        ends = np.cumsum([part.table.cells for part in query.parts])[:-1]
        by_table = np.split(table[tree.leaves], ends, axis=1)
        return np.concatenate([part.totals(own) for part, own in zip(query.parts, by_table, strict=True)])

    def _shared(self, depth: int, parts: Ints, above: Ints | None, told: list[Floats], coin: int) -> Ints:
        sharing = self._levels[depth]
        wanted = [each.told_at(depth, parts, own) for each, own in zip(self._steps, told, strict=True)]
        found = sharing.shared(above, wanted, parts.size)
        coins = np.random.default_rng([coin, int(parts[0])]).random(found.shape)
        return sharing.rounded(found, above, coins)
