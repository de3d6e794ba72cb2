"""Which figures are mandated to be exact: nodes of a tree, or margins of a cube of cells."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arguments import Refused, one_of, positions, shown, whole
from holdfast.arrays import Ints
from holdfast.constraints.system.null_space import NullSpace
from holdfast.constraints.system.parts import listing
from holdfast.constraints.system.rows import Names, Rows
from holdfast.domains import Hierarchy
from holdfast.exact.rationals import tidy

#: How the cell of a margin is called where nobody knows the names of its values.
NUMBERED = "margin "


@dataclass(frozen=True, eq=False)
class ExactNodes:
    """Nodes of a tree whose counts (all `by` categories of each) are published exactly."""

    tree: Hierarchy = field(repr=False)
    nodes: Ints
    by: int = 1

    @property
    def n(self) -> int:
        return self.tree.n * self.by

    @property
    def outputs(self) -> Ints:
        """The outputs that are exact: node · by + category."""
        return np.asarray((self.nodes[:, None] * self.by + np.arange(self.by)).ravel())

    def rows(self) -> Rows:
        """Return one row per exact output."""
        outputs = self.outputs
        A = sparse.csr_array(
            (np.ones(outputs.size, dtype=np.int64), outputs, np.arange(outputs.size + 1)),
            shape=(outputs.size, self.n),
        )
        if self.by == 1:
            names = Names.numbered("exact node {}", outputs)
        else:
            names = Names.numbered("exact node {}, category {}", np.stack(np.divmod(outputs, self.by), axis=1))
        return Rows(A, np.zeros(outputs.size, dtype=np.int64), names)

    def __str__(self) -> str:
        return f"exact nodes {listing(self.nodes)}"


@dataclass(frozen=True, eq=False)
class ExactMargins:
    """Margins of a cube of cells that are published exactly, stacked in order, C order inside."""

    shape: tuple[int, ...]
    keep: tuple[tuple[int, ...], ...]

    @property
    def n(self) -> int:
        return math.prod(self.shape)

    def _matrix(self, margin: tuple[int, ...], independent: Sequence[tuple[int, ...]] | None) -> sparse.csr_array:
        """Return a margin's rows; given earlier margins (`independent`), only those they leave open."""
        sides = [self.shape[a] for a in margin]
        cells = np.unravel_index(np.arange(self.n), self.shape)
        row = np.zeros(self.n, dtype=np.int64)
        for a in margin:
            row = row * self.shape[a] + cells[a]
        count = math.prod(sides)
        order = np.argsort(row, kind="stable")
        starts = np.arange(count + 1) * (self.n // count)
        A = sparse.csr_array((np.ones(self.n, dtype=np.int64), order, starts), shape=(count, self.n))
        if independent:
            places = np.unravel_index(np.arange(count), sides) if margin else ()
            known = np.zeros(count, dtype=bool)
            for earlier in independent:
                outside = [places[k] != 0 for k, a in enumerate(margin) if a not in earlier]
                known |= ~np.any(outside, axis=0) if outside else True
            A = sparse.csr_array(A[np.flatnonzero(~known)])
        return A

    def rows(self) -> Rows:
        matrices = [self._matrix(margin, None) for margin in self.keep]
        A = tidy(sparse.csr_array(sparse.vstack(matrices, format="csr")))
        named = [
            Names.numbered(f"{NUMBERED}{margin} cell {{}}", range(part.shape[0]))
            for margin, part in zip(self.keep, matrices, strict=True)
        ]
        names = Names(tuple(block for part in named for block in part.blocks))
        return Rows(A, np.zeros(A.shape[0], dtype=np.int64), names)

    def null_space(self) -> NullSpace:
        """Return the null space, with independent rows in closed form.

        In the unimodular coordinates of `lattice.margin_basis`, the cells of margin S fix u[i] for every i
        whose non-zero axes lie in S; so a cell of S brings something new if and only if its non-zero axes lie
        in no earlier margin.
        """
        parts = [self._matrix(margin, self.keep[:k]) for k, margin in enumerate(self.keep)]
        rows = tidy(sparse.csr_array(sparse.vstack(parts, format="csr")))
        return NullSpace(self.n, rows, cube_margins=(self.shape, self.keep))

    def __str__(self) -> str:
        return f"exact margins {', '.join(str(margin) for margin in self.keep)} of shape {self.shape}"


def exact_nodes(tree: Hierarchy, nodes: str | int | Iterable[int | str | tuple[str, ...]], by: int = 1) -> ExactNodes:
    """Say which nodes of a tree are published exactly.

    Args:
        tree: the hierarchy.
        nodes: one or a list of: a node's id, its name if no other node has it, its path (a tuple of names, root first),
            or the name of a level, meaning all its nodes.
        by: all k categories of each node are exact.

    Example:
        >>> import holdfast as hf
        >>> tree = hf.Hierarchy.from_parents([-1, 0, 0])
        >>> must = hf.consistent(tree) & hf.invariant(hf.exact_nodes(tree, [0]))
        >>> int(hf.laplace(hf.counts(tree), epsilon=1).given(must).release([9, 4, 5]).values[0])
        9
    """
    if not isinstance(tree, Hierarchy):
        raise Refused(f"tree must be a Hierarchy, found {type(tree).__name__}")
    categories = whole("by", by, at_least=1)
    is_path = isinstance(nodes, tuple) and any(isinstance(item, str) for item in nodes)
    given = [nodes] if isinstance(nodes, str) or is_path else nodes
    if isinstance(given, (list, tuple)) and any(isinstance(item, (str, tuple)) for item in given):
        found = np.concatenate([_resolve(tree, item) for item in given])
        return ExactNodes(tree, np.unique(found), categories)
    return ExactNodes(tree, np.sort(positions("nodes", given, tree.n)), categories)


def _resolve(tree: Hierarchy, item: Any) -> Ints:
    """Return the nodes that a level name, node name, path of names or id stands for."""
    if isinstance(item, tuple):
        return np.array([tree.find(*item)], dtype=np.int64)
    if not isinstance(item, str):
        return positions("nodes", item, tree.n)
    if item in tree.levels:
        return tree.nodes_at(item)
    found = np.flatnonzero(tree.names == item)
    if found.size == 0:
        # a long list of names would drown the message; levels and the first names show what is meant
        one_of("nodes", item, [*tree.levels, *(str(name) for name in tree.names[:20])])
        raise Refused(f"nodes must name nodes or levels of the tree, and none is called {shown(item)}")
    if found.size > 1:
        raise Refused(f"nodes must be unambiguous, but {item!r} names {found.size} nodes; give paths or ids")
    return found.astype(np.int64)


def exact_margins(shape: Iterable[int], keep: Iterable[Iterable[int]]) -> ExactMargins:
    """Say which margins of a cube's cells are published exactly.

    Args:
        shape: the cube's.
        keep: margins; each is a tuple of axes, () is the total.

    Example:
        >>> import holdfast as hf
        >>> exact = hf.invariant(hf.exact_margins((2, 3), [(0,)]))
        >>> mechanism = hf.laplace(hf.margins((2, 3)), epsilon=1, neighbours="replace-one").given(exact)
        >>> mechanism.release([1, 2, 3, 4, 5, 6]).values.reshape(2, 3).sum(axis=1).tolist()
        [6, 15]
    """
    try:
        sides = tuple(whole("shape", side, at_least=1) for side in shape)
        listed = [list(margin) for margin in keep]
    except TypeError:
        raise Refused(
            "shape must be a list of sizes and keep a list of tuples of axes, such as [(0, 1), (2,)]"
        ) from None
    if not sides:
        raise Refused("shape must have at least one axis, found none")
    if not listed:
        raise Refused("keep must name at least one margin, found none")
    # One margin whichever way its axes are named: rows, bases and draws are those of rising axes.
    margins = tuple(
        tuple(sorted(positions("keep", margin, len(sides)).tolist())) if margin else () for margin in listed
    )
    if len(set(margins)) < len(margins):
        raise Refused("keep must not name a margin twice")
    return ExactMargins(sides, margins)
