"""Where the outputs of margins in the areas of a hierarchy stand: groups, nodes, entries, cells of the leaves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Array, Ints
from holdfast.domains import Cube, Hierarchy
from holdfast.queries.areas.area_equalities import Axes, Keep
from holdfast.queries.linear_query import Query

NO_CELLS = "records need a table that counts every cell: a hierarchy, a histogram, a cube, or margins with all axes"


@dataclass(frozen=True, eq=False, repr=False)
class AreaPlaces(Query):
    """At every node of depth d the margins ``keep[d]``: nodes in order, inside a node margin after margin."""

    hierarchy: Hierarchy
    table: Cube
    keep: Keep

    @property
    def cells(self) -> int:
        return self.hierarchy.n_leaves * self.table.cells

    @cached_property
    def groups(self) -> tuple[tuple[int, Axes], ...]:
        """The (depth, margin) of each group of outputs, upper levels first."""
        return tuple((depth, axes) for depth, kept in enumerate(self.keep) for axes in kept)

    @cached_property
    def sizes(self) -> Ints:
        """The number of entries of each group's margin."""
        return np.array([math.prod(self.table.margin_shape(axes)) for _, axes in self.groups], dtype=np.int64)

    @cached_property
    def places(self) -> tuple[tuple[Ints, int], ...]:
        """For each group the nodes of its depth, increasing, and where its margin begins inside a node's outputs."""
        before = [0] * len(self.keep)
        found = []
        for (depth, _), size in zip(self.groups, self.sizes.tolist(), strict=True):
            found.append((self.hierarchy.nodes_at(depth), before[depth]))
            before[depth] += size
        return tuple(found)

    @cached_property
    def starts(self) -> Ints:
        """Where each node's outputs begin, with n at the end."""
        width = np.zeros(len(self.keep), np.int64)
        np.add.at(width, [depth for depth, _ in self.groups], self.sizes)
        return np.concatenate([[0], np.cumsum(width[self.hierarchy.depth])])

    def outputs(self, group: int) -> Ints:
        """Return the outputs of a group, shape (nodes of its depth, entries of its margin)."""
        nodes, begin = self.places[group]
        return (self.starts[nodes] + begin)[:, None] + np.arange(self.sizes[group])

    @cached_property
    def level_of(self) -> Array:
        result = np.empty(self.n, np.int32)
        for g in range(len(self.groups)):
            self.set(result, g, g)
        return result

    def taken(self, values: Array, group: int) -> Array:
        """Return the values of a group, (…, nodes of its depth, entries of its margin): a view where it can be one."""
        found = self._view(values, group)
        return values[..., self.outputs(group)] if found is None else found

    def set(self, values: Array, group: int, given: Any) -> None:
        found = self._view(values, group)
        if found is None:
            values[..., self.outputs(group)] = given
        else:
            found[...] = given

    def _view(self, values: Array, group: int) -> Array | None:
        nodes, begin = self.places[group]
        first, last = int(nodes[0]), int(nodes[-1]) + 1
        if last - first != nodes.size:
            return None
        block = values[..., self.starts[first] : self.starts[last]]
        by_node = block.reshape(*values.shape[:-1], nodes.size, block.shape[-1] // nodes.size)
        return by_node[..., begin : begin + int(self.sizes[group])]

    @property
    def every_axis(self) -> Axes:
        """The margin that keeps all axes: the cells."""
        return tuple(range(len(self.table.shape)))

    @cached_property
    def cell_outputs(self) -> Ints:
        """The outputs that are the cells of the leaves, in their order; refused where a leaf does not ask them."""
        tree = self.hierarchy
        found = np.empty((tree.n_leaves, self.table.cells), np.int64)
        for depth in np.unique(tree.depth[tree.leaves]).tolist():
            if (depth, self.every_axis) not in self.groups:
                raise Refused(NO_CELLS)
            group = self.groups.index((depth, self.every_axis))
            at = tree.depth[tree.leaves] == depth
            begin = self.starts[tree.leaves[at]] + self.places[group][1]
            found[at] = begin[:, None] + np.arange(self.table.cells)
        return found.ravel()

    def paths(self) -> list[Ints]:
        """Return for each depth the ancestor of every leaf at it, −1 where the leaf lies higher."""
        tree = self.hierarchy
        node, found = tree.leaves.copy(), []
        for depth in range(len(tree.levels) - 1, -1, -1):
            node = np.where(tree.depth[node] > depth, tree.parents[node], node)
            found.append(np.where(tree.depth[node] == depth, node, -1))
        return found[::-1]

    def outputs_of(self, cells: Ints) -> tuple[Ints, Ints]:
        """Return the outputs to which some cells add, and the number of the cell behind each."""
        leaf, cell = np.divmod(cells, self.table.cells)
        above = self.paths()
        outputs, owners = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for g, (depth, axes) in enumerate(self.groups):
            on = np.flatnonzero(above[depth][leaf] >= 0)
            first = self.starts[above[depth][leaf[on]]] + self.places[g][1]
            outputs.append(first + self.table.margin_index(axes)[cell[on]])
            owners.append(on)
        return np.concatenate(outputs), np.concatenate(owners)

    def output_name(self, output: int) -> str:
        node = int(np.searchsorted(self.starts, output, side="right")) - 1
        group = int(self.level_of[output])
        axes = self.groups[group][1]
        entry = output - int(self.starts[node]) - self.places[group][1]
        point = np.unravel_index(entry, self.table.margin_shape(axes)) if axes else ()
        words = ", ".join(f"{self.table.all_names[a]}={int(c)}" for a, c in zip(axes, point, strict=True)) or "total"
        return f"{' / '.join(self.hierarchy.path(node))} [{words}]"
