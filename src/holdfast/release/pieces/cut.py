"""Where a hierarchy is cut into a top and subtrees: by its public shape alone.

The cut decides which random words make which noise, so it depends on nothing else: not on how many processes draw, and
not on the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Ints
from holdfast.domains import Hierarchy
from holdfast.domains.intervals import output_parents

#: Nodes of a subtree that is not worth cutting: beginning with a piece takes as long as drawing some thousand figures.
SMALL = 1 << 14
#: Outputs of a piece from which on its categories are shared out among several, so that a task needs less than 2 GiB.
MOST_OUTPUTS = 1 << 21
#: The number of the piece of everything above the cut, in place of the node at the top of a piece below it.
TOP = -1


@dataclass(frozen=True, eq=False)
class Piece:
    """A part of a forest of outputs, by their numbers in the whole, increasing; `parents` are places among them.

    `node` is the node at its top, or TOP; `first` is the first of its categories, which come one after the other. In
    the top, the last places are no outputs of its own: they are the outputs at which the pieces below begin.
    """

    node: int
    first: int
    outputs: Ints
    parents: Ints
    own: int


@dataclass(frozen=True, eq=False)
class Cut:
    """A hierarchy of `by` categories per node, cut above its nodes of one depth, and into `width` categories.

    Outputs of different categories have no sum in common. The pieces of a node follow each other.
    """

    tree: Hierarchy
    by: int
    depth: int
    width: int

    @classmethod
    def of(cls, tree: Hierarchy, by: int) -> Cut:
        """Cut above the first level whose subtrees are small: no larger than SMALL, or than the top is then."""
        depths = range(1, len(tree.levels) - 1)
        if not depths:
            raise Refused("a hierarchy of two levels has no subtrees to draw apart: leave out engine: spark")
        below = _below(tree)
        small = (d for d in depths if below[tree.nodes_at(d)].max() <= max(SMALL, tree.level_start[d + 1]))
        return cls.at(tree, by, next(small, depths[-1]))

    @classmethod
    def at(cls, tree: Hierarchy, by: int, depth: int) -> Cut:
        """Cut above the nodes of a depth, and into as many categories as a piece can have: a divisor of all."""
        nodes = int(_below(tree)[tree.nodes_at(depth)].max())
        widths = (width for width in range(by, 0, -1) if by % width == 0)
        return cls(tree, by, depth, next(width for width in widths if width == 1 or width * nodes <= MOST_OUTPUTS))

    @property
    def count(self) -> int:
        """How many pieces there are below the cut."""
        return int(self.nodes.size) * (self.by // self.width)

    @cached_property
    def nodes(self) -> Ints:
        """The nodes at which the pieces below the cut begin, increasing."""
        return self.tree.nodes_at(self.depth)

    @cached_property
    def _owner(self) -> Ints:
        """For every node the number of its piece among `nodes`, or TOP."""
        tree = self.tree
        owner = np.full(tree.n, TOP, dtype=np.int64)
        owner[self.nodes] = np.arange(self.nodes.size)
        for d in range(self.depth + 1, len(tree.levels)):
            level = tree.order[tree.level_start[d] : tree.level_start[d + 1]]
            owner[level] = owner[tree.parents[level]]
        return owner

    @cached_property
    def _sorted(self) -> tuple[Ints, Ints, Ints]:
        """The nodes by piece, increasing inside each, where each piece begins, and the place of every node in its."""
        order = np.argsort(self._owner, kind="stable")
        start = np.searchsorted(self._owner[order], np.arange(self.nodes.size + 1))
        place = np.empty(order.size, dtype=np.int64)
        place[order] = np.arange(order.size) - np.concatenate([[0], start])[self._owner[order] + 1]
        return order, start, place

    def piece_of(self, outputs: Ints) -> Ints:
        """The numbers of the pieces to which outputs belong, or TOP."""
        owner, parts = self._owner[outputs // self.by], self.by // self.width
        return np.where(owner < 0, TOP, owner * parts + outputs % self.by // self.width)

    def piece(self, number: int) -> Piece:
        """Return one of the pieces below the cut."""
        order, start, place = self._sorted
        at, part = divmod(number, self.by // self.width)
        nodes = order[start[at] : start[at + 1]]
        parents = np.where(nodes == self.nodes[at], -1, place[self.tree.parents[nodes]])
        outputs, first = self._outputs(nodes, part * self.width, self.width), part * self.width
        return Piece(int(self.nodes[at]), first, outputs, output_parents(parents, self.width), outputs.size)

    def top(self) -> Piece:
        """Return everything above the cut, and then the outputs at which the pieces below begin."""
        order, start, _ = self._sorted
        nodes = np.concatenate([order[: start[0]], self.nodes])
        place = np.full(self.tree.n, -1, dtype=np.int64)
        place[nodes] = np.arange(nodes.size)
        above = self.tree.parents[nodes]
        parents = np.where(above < 0, -1, place[above])
        outputs = self._outputs(nodes, 0, self.by)
        return Piece(TOP, 0, outputs, output_parents(parents, self.by), int(start[0]) * self.by)

    def split(self, cells: Ints) -> tuple[Ints, list[Ints]]:
        """Divide counts of all cells, leaf by leaf: those of the top, and those of each piece below the cut."""
        owner = self._owner[self.tree.leaves]
        order = np.argsort(owner, kind="stable")
        rows = cells.reshape(-1, self.by)[order]
        top, *below = np.split(rows, np.searchsorted(owner[order], np.arange(self.nodes.size)))
        parts = range(0, self.by, self.width)
        return top.ravel(), [own[:, first : first + self.width].ravel() for own in below for first in parts]

    def _outputs(self, nodes: Ints, first: int, width: int) -> Ints:
        return (nodes[:, None] * self.by + first + np.arange(width)).ravel()

    @cached_property
    def largest(self) -> int:
        """The most outputs of a piece below the cut."""
        return int(_below(self.tree)[self.nodes].max()) * self.width


def _below(tree: Hierarchy) -> Ints:
    """How many nodes each subtree has."""
    below = np.ones(tree.n, dtype=np.int64)
    for d in range(len(tree.levels) - 1, 0, -1):
        level = tree.order[tree.level_start[d] : tree.level_start[d + 1]]
        np.add.at(below, tree.parents[level], below[level])
    return below
