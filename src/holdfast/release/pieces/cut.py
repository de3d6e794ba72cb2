"""Where a hierarchy is cut into a top and subtrees: by its public shape alone.

The cut decides which random words make which noise, so it depends on nothing else: not on how many processes draw, and
not on the data. Subtrees that follow each other are groups, which travel and are written together.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Refused
from holdfast.arrays import Array, Bools, Floats, Ints, Words, together
from holdfast.domains import Hierarchy
from holdfast.domains.intervals import output_parents
from holdfast.noise import Independent
from holdfast.randomness import Keys

#: Nodes of a subtree that is not worth cutting: beginning with a piece takes as long as drawing some thousand figures.
SMALL = 1 << 14
#: Outputs of a piece from which on its categories are shared out among several, so that a task needs less than 2 GiB.
MOST_OUTPUTS = 1 << 21
#: Outputs of a group of pieces, more or less: a task and a file take longer to begin with than a few thousand figures.
GROUPED = 1 << 16
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
        small = (d for d in depths if cls(tree, by, d, 1).nodes_each.max() <= max(SMALL, tree.level_start[d + 1]))
        return cls.at(tree, by, next(small, depths[-1]))

    @classmethod
    def at(cls, tree: Hierarchy, by: int, depth: int) -> Cut:
        """Cut above the nodes of a depth, and into as many categories as a piece can have: a divisor of all."""
        nodes = int(cls(tree, by, depth, 1).nodes_each.max())
        widths = (width for width in range(by, 0, -1) if by % width == 0)
        return cls(tree, by, depth, next(width for width in widths if width == 1 or width * nodes <= MOST_OUTPUTS))

    @property
    def count(self) -> int:
        return int(self.nodes.size) * (self.by // self.width)

    @cached_property
    def nodes(self) -> Ints:
        """The nodes at which the pieces below the cut begin, increasing."""
        return self.tree.nodes_at(self.depth)

    @cached_property
    def _spans(self) -> Ints:
        """Where the nodes below each of `nodes` begin and end in the tree's order, level by level, itself first.

        Breadth-first, they stand together in every level.
        """
        tree, start = self.tree, self.tree.level_start
        first = np.argsort(tree.order[start[self.depth] : start[self.depth + 1]])
        spans = [np.stack([first, first + 1])]
        for d in range(self.depth, len(tree.levels) - 1):
            level = tree.order[start[d] : start[d + 1]]
            ends = np.concatenate([[0], np.cumsum(tree.child_start[level + 1] - tree.child_start[level])])
            spans.append(ends[spans[-1]])
        return np.stack(spans) + start[self.depth : len(tree.levels), None, None]

    @cached_property
    def nodes_each(self) -> Ints:
        """How many nodes there are at and below each of `nodes`."""
        return np.asarray((self._spans[:, 1] - self._spans[:, 0]).sum(axis=0))

    @property
    def _sizes(self) -> Ints:
        return np.repeat(self.nodes_each * self.width, self.by // self.width)

    @cached_property
    def groups(self) -> Ints:
        """The first piece of each group, and behind them how many pieces there are."""
        sizes = self._sizes
        stretch = (np.cumsum(sizes) - sizes) // GROUPED
        return np.append(np.flatnonzero(np.diff(stretch, prepend=-1)), sizes.size)

    def by_group(self, each: Sequence[Any]) -> dict[int, Sequence[Any]]:
        return {number: each[first:behind] for number, (first, behind) in enumerate(pairwise(self.groups.tolist()))}

    def owners(self) -> npt.NDArray[np.int32]:
        """For every node the number of the one of `nodes` at or above it, or TOP."""
        tree = self.tree
        owner = np.full(tree.n, TOP, dtype=np.int32)
        owner[self.nodes] = np.arange(self.nodes.size)
        for d in range(self.depth + 1, len(tree.levels)):
            level = tree.order[tree.level_start[d] : tree.level_start[d + 1]]
            owner[level] = owner[tree.parents[level]]
        return owner

    def piece_of(self, outputs: Ints) -> Ints:
        owner, parts = self.owners()[outputs // self.by].astype(np.int64), self.by // self.width
        return np.where(owner < 0, TOP, owner * parts + outputs % self.by // self.width)

    def piece(self, number: int) -> Piece:
        at, part = divmod(number, self.by // self.width)
        nodes, first = self._nodes_below(at), part * self.width
        parents = np.searchsorted(nodes, self.tree.parents[nodes])
        parents[nodes == self.nodes[at]] = -1
        outputs = self._outputs(nodes, first, self.width)
        return Piece(int(self.nodes[at]), first, outputs, output_parents(parents, self.width), outputs.size)

    def top(self) -> Piece:
        """Return everything above the cut, and then the outputs at which the pieces below begin."""
        above = np.sort(self.tree.order[: self.tree.level_start[self.depth]])
        nodes = np.concatenate([above, self.nodes])
        parents = self.tree.parents[nodes]
        parents = np.where(parents < 0, -1, np.searchsorted(above, parents))
        outputs = self._outputs(nodes, 0, self.by)
        return Piece(TOP, 0, outputs, output_parents(parents, self.by), above.size * self.by)

    def cells(self, piece: Piece, cells: Ints) -> Ints:
        """Those of the counts of all cells, leaf by leaf, that belong to one of the pieces below the cut."""
        nodes = piece.outputs[:: self.width] // self.by
        rows = np.searchsorted(self.tree.leaves, nodes[self.tree.is_leaf[nodes]])
        return cells.reshape(-1, self.by)[rows, piece.first : piece.first + self.width].ravel()

    def above(self, cells: Ints) -> tuple[Ints, Ints]:
        """The counts of the cells of the top, and the sums of those below each root, piece by piece."""
        owner, rows = self.owners()[self.tree.leaves], cells.reshape(-1, self.by)
        sums = np.zeros((self.nodes.size + 1, self.by), dtype=np.int64)
        runs = np.flatnonzero(np.diff(owner, prepend=TOP - 1))
        np.add.at(sums, owner[runs], np.add.reduceat(rows, runs, axis=0))  # those of the top, −1, come last
        return rows[np.flatnonzero(owner < 0)].ravel(), sums[:-1].ravel()

    def _nodes_below(self, at: int) -> Ints:
        return np.sort(np.concatenate([self.tree.order[first:last] for first, last in self._spans[:, :, at].tolist()]))

    def _outputs(self, nodes: Ints, first: int, width: int) -> Ints:
        return (nodes[:, None] * self.by + first + np.arange(width)).ravel()

    @property
    def largest(self) -> int:
        """The most outputs of a piece below the cut."""
        return int(self._sizes.max())

    @property
    def largest_group(self) -> int:
        """The most outputs of a group of them."""
        return int(np.add.reduceat(self._sizes, self.groups[:-1]).max())


@dataclass(frozen=True, eq=False)
class Rules:
    """What holds in some outputs: `spreads` weigh them, `exact` ones have their true values, and `low` and `high`
    bound the others (∓2**62: not at all).
    """

    spreads: Floats
    exact: Bools
    low: Ints
    high: Ints

    @classmethod
    def of(cls, spreads: Floats, exact: Bools, low: Ints, high: Ints) -> Rules:
        return cls(alike(spreads), alike(exact), alike(low), alike(high))

    def at(self, outputs: Ints) -> Rules:
        return Rules(self.spreads[outputs], self.exact[outputs], self.low[outputs], self.high[outputs])

    def bounds(self, truth: Ints) -> tuple[Ints, Ints]:
        """Bounds of the outputs; an exact one has its true value, which is also that of a fixed one."""
        return np.where(self.exact, truth, self.low), np.where(self.exact, truth, self.high)


@dataclass(frozen=True, eq=False)
class Work:
    """A piece, the law of the noise of its outputs, and what holds in the end.

    `combined`: level by level as BlueDown does. `linear`: what holds in the estimate that intervals stand around, where
    they do.
    """

    piece: Piece
    law: Independent
    combined: bool
    rules: Rules
    linear: Rules | None


def alike(values: Array) -> Array:
    """The same values; where all are one number, in the memory of one."""
    return np.broadcast_to(values[0], values.shape) if (values == values[0]).all() else values


def measured(work: Work, truth: Ints, keys: Keys) -> Ints:
    """The true values of a piece's own outputs with independent noise; 0 where nothing is measured."""
    law = work.law.at(np.arange(work.piece.own))
    noise = law.measured_draw(1, keys.at("noise", work.piece.node, work.piece.first))[0]
    return np.asarray(noise + truth * np.isfinite(law.variances))


def coins_of(keys: Keys) -> Words:
    """The public coin that decides between equal fractions, the same in all pieces."""
    return keys.at("coin").words(1)


# --- who does the work of the pieces below the cut: this process, or the tasks of a cluster --------------------------
# Whoever works is asked to do something with groups of pieces and to tell what comes back. What is done is a function
# of the group, of what it is told, and of the secret, so it can be done again: what was drawn is not kept anywhere.


@dataclass(frozen=True, eq=False)
class Held:
    """A piece in the hands of whoever works on it."""

    work: Work
    cells: Ints

    @cached_property
    def truth(self) -> Ints:
        return np.asarray(Hierarchy.from_parents(self.work.piece.parents).sum_up(self.cells))


@dataclass(frozen=True, eq=False)
class Group:
    """What a task works on, and the sheet that says how it is written, opened when it is looked at."""

    work: Any
    sheet: Callable[[], Any] = lambda: None


#: What is done with a group and what it is told, and what comes back.
Asked = Callable[[Group, Any], Any]


class Tasks(Protocol):
    """Who does the work; `told` says what each group is told, by its number, and so which groups work."""

    def each(self, what: Asked, told: Mapping[int, Any]) -> dict[int, Any]:
        """Do something with groups, each by its number, and return what each tells."""


@dataclass(frozen=True, eq=False)
class Here:
    """This process, which takes the groups one after the other."""

    groups: Sequence[Group]

    def each(self, what: Asked, told: Mapping[int, Any]) -> dict[int, Any]:
        return {number: what(self.groups[number], each) for number, each in told.items()}


def by_piece(group: Group, told: Sequence[Any] | None, what: Callable[[Held, Any], Any]) -> list[Any]:
    """Do the same with each piece of a group, in their order; `told`: what each is told (None: nothing)."""
    given = [None] * len(group.work) if told is None else told
    with together(sum(held.work.piece.own for held in group.work)):
        return [what(held, each) for held, each in zip(group.work, given, strict=True)]


def packed(content: Any) -> bytes:
    return zlib.compress(pickle.dumps(content, protocol=5), 1)


def unpacked(content: bytes) -> Any:
    """Read what `packed` wrote."""
    return pickle.loads(zlib.decompress(content))
