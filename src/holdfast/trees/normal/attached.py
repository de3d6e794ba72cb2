"""A part of a hierarchy whose areas of one depth are told by others: by what is below them, or by what is above.

Passes over a hierarchy meet at a node in its coordinates alone. What is below an area tells of them what it estimates,
with its variance; what is above tells what they are in the end, with the variance 0. Either part then makes what the
undivided hierarchy makes (docs/theory/pieces.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from holdfast.arrays import Floats, Ints
from holdfast.queries.areas.area_equalities import Axes
from holdfast.trees.normal.residuals import Residuals

#: What is told about some areas: for each set of axes their coordinates, (areas, count), and variances.
Message = Mapping[Axes, tuple[Floats, Floats]]


@dataclass(frozen=True, eq=False)
class Attached(Residuals):
    """The coordinates of a query, those of all areas of one depth as they are told; nothing is measured there."""

    depth: int
    told: Message

    def _own(self, axes: Axes, precision: Floats, depths: Ints) -> Floats:
        own = super()._own(axes, precision, depths)
        if axes in self.told:
            own[depths == self.depth] = self.told[axes][1]
        return own

    def measured_rows(self, measured: Floats) -> Floats:
        rows, nodes = super().measured_rows(measured), self.query.hierarchy.nodes_at(self.depth)
        for axes, (coordinates, _) in self.told.items():
            rows[:, nodes, self.frame.cuts[axes]] = coordinates
        return rows


def message(residuals: Residuals, rows: Floats, depth: int, *, exact: bool = False) -> Message:
    """What coordinates of every node, (1, nodes and more, columns), tell about the areas of a depth.

    They are those from what is measured at and below each; `exact`: those that stay.
    """
    nodes, found = residuals.query.hierarchy.nodes_at(depth), dict[Axes, tuple[Floats, Floats]]()
    for each in residuals.coordinates:
        at = np.searchsorted(each.nodes, nodes)
        if each.nodes[np.minimum(at, each.nodes.size - 1)].tolist() != nodes.tolist():
            continue  # nobody knows them there
        spread = np.zeros(nodes.size) if exact else each.at_nodes(each.passes.upward[None])[at, 0]
        found[each.axes] = rows[0, nodes, residuals.frame.cuts[each.axes]], spread
    return found
