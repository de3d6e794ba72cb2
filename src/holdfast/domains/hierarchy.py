"""A hierarchy: the nodes of a tree or forest as arrays, with no object per node."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from holdfast.arguments import LARGEST, Frame, Refused, array, reals, shown, whole_numbers
from holdfast.arrays import Ints, only_read
from holdfast.domains.breadth_first import breadth_first, sum_towards_roots
from holdfast.domains.data_frames import nodes_of_frame
from holdfast.pictures import card, table_of


@dataclass(frozen=True, eq=False, repr=False)
class Hierarchy:
    """A tree or forest of n nodes, numbered 0 … n−1; build one with `from_parents` or `from_frame`.

    Leaves may lie at different depths.

    Args:
        parents: `parents[v]` is v's parent or −1.
        depth: `depth[v]` is 0 at a root.
        order: the nodes breadth-first (roots by increasing id, siblings together); the nodes of depth d are
            `order[level_start[d]:level_start[d + 1]]`.
        child_start: where the children of each node begin in `children`.
        children: the children of v, by increasing id, are `children[child_start[v]:child_start[v + 1]]`.
        levels: the names of the depths.
        given_names: the names of the nodes, where they have some.

    Example:
        >>> import holdfast as hf
        >>> tree = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1])
        >>> tree.n, tree.leaves.tolist(), tree.sum_up([2, 3, 4]).tolist()
        (5, [2, 3, 4], [9, 7, 2, 3, 4])
    """

    parents: Ints
    depth: Ints
    order: Ints
    child_start: Ints
    children: Ints
    levels: tuple[str, ...]
    given_names: npt.NDArray[np.object_] | None

    @classmethod
    def from_parents(
        cls, parents: npt.ArrayLike, names: Sequence[str] | None = None, levels: Sequence[str] | None = None
    ) -> Hierarchy:
        """Build from the parents of nodes, which may stand in any order; one root or several.

        Args:
            parents: each node's parent, −1 for a root.
            names: one label per node, different among the children of one node; None: a node is called by its number.
            levels: one name per depth; None: "level 0", "level 1", ….
        """
        above = whole_numbers("parents", parents)
        if above.ndim != 1 or above.size == 0:
            raise Refused(f"parents must be a list of at least one parent, found shape {above.shape}")
        n = above.size
        _refuse_first(above < -1, "parents must be −1 or a node number, but the parent of node {} is less")
        _refuse_first(above >= n, f"parents must be at most {n - 1}, but the parent of node {{}} is more")
        _refuse_first(above == np.arange(n), "parents must not make a node its own parent, as node {} is")
        start, children, order, depth, reached = breadth_first(above)
        if reached < n:
            node = int(np.flatnonzero(depth < 0)[0])
            for _ in range(n):  # after n steps up, a walk that never ends is on the cycle itself
                node = int(above[node])
            raise Refused(f"parents must not form a cycle, but node {node} is its own ancestor")
        result = cls._made(
            above,
            _level_names(levels, int(depth[order[-1]]) + 1),
            None if names is None else _labels(names, n),
            (start, children, order, depth),
        )
        if names is not None:
            result._refuse_equal_siblings()
        return result

    @classmethod
    def from_frame(cls, frame: Frame, levels: Sequence[str], root: str | None = None) -> Hierarchy:
        """Build from a frame of the public domain: one row per leaf, one column for each level.

        A node is known by its whole path, so equal names below different parents are different nodes. Nodes are
        numbered breadth-first by level, within a level in the order of first appearance, so the leaves are in the order
        of the rows.

        Args:
            frame: any frame that narwhals reads (pandas, polars, pyarrow, …).
            levels: the columns, top level first.
            root: the name of one node above all others, and of its level; None: the first column's values are the roots
                of a forest.
        """
        parents, labels, names = nodes_of_frame(frame, levels, root)
        return cls._made(parents, names, labels, breadth_first(parents)[:4])

    @classmethod
    def _made(
        cls,
        parents: Ints,
        levels: tuple[str, ...],
        names: npt.NDArray[np.object_] | None,
        passed: tuple[Ints, Ints, Ints, Ints],
    ) -> Hierarchy:
        start, children, order, depth = passed
        if np.array_equal(children, order[order.size - children.size :]):  # numbered breadth-first: one array for both
            children = order[order.size - children.size :]
        return cls(only_read(parents), depth, order, start, children, levels, names)

    @property
    def n(self) -> int:
        """The number of nodes."""
        return int(self.parents.size)

    @cached_property
    def is_leaf(self) -> npt.NDArray[np.bool_]:
        """Whether each node has no children."""
        return only_read(np.diff(self.child_start) == 0)

    @cached_property
    def leaves(self) -> Ints:
        """The leaves' node numbers, increasing."""
        return only_read(np.flatnonzero(self.is_leaf))

    @property
    def n_leaves(self) -> int:
        """The number of leaves."""
        return int(self.leaves.size)

    @cached_property
    def roots(self) -> Ints:
        """The roots' node numbers, increasing."""
        return only_read(np.flatnonzero(self.parents < 0))

    @cached_property
    def level_start(self) -> Ints:
        """Where each depth begins in `order`, with n at the end."""
        return only_read(np.concatenate([[0], np.cumsum(np.bincount(self.depth))]).astype(np.int64))

    @cached_property
    def names(self) -> npt.NDArray[np.object_]:
        """Each node's own label."""
        if self.given_names is not None:
            return self.given_names
        return only_read(np.array([str(v) for v in range(self.n)], dtype=object))

    def children_of(self, node: int) -> Ints:
        """Return the children of a node, by increasing number."""
        v = self._node(node)
        return self.children[self.child_start[v] : self.child_start[v + 1]]

    def path(self, node: int) -> tuple[str, ...]:
        """Return the labels from the root down to the node."""
        v = self._node(node)
        labels: list[str] = []
        while v >= 0:
            labels.append(self._label(v))
            v = int(self.parents[v])
        return tuple(reversed(labels))

    def find(self, *path: str) -> int:
        """Return the node with this path of labels, root first."""
        if not path:
            raise Refused("find must be given a path of labels from a root down, found none")
        node, among = -1, self.roots
        steps: list[object] = list(path)
        for step, label in enumerate(steps):
            labels = {self._label(int(v)): int(v) for v in among}
            if not isinstance(label, str) or label not in labels:
                near = difflib.get_close_matches(shown(label).strip("'"), labels, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                where = f"below {' / '.join(path[:step])!r}" if step else "among the roots"
                raise Refused(f"path must name nodes of the hierarchy, but {shown(label)} is not {where}{hint}")
            node = labels[label]
            among = self.children_of(node)
        return node

    def depth_of_level(self, level: str | int) -> int:
        """Return the depth meant by a level's name or by the depth itself."""
        if isinstance(level, str) and level in self.levels:
            return self.levels.index(level)
        whole = isinstance(level, (int, np.integer)) and not isinstance(level, bool)
        if whole and 0 <= int(level) < len(self.levels):
            return int(level)
        near = difflib.get_close_matches(shown(level).strip("'"), self.levels, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise Refused(
            f"level must be one of {', '.join(map(repr, self.levels))} "
            f"or a depth up to {len(self.levels) - 1}, found {shown(level)}{hint}"
        )

    def nodes_at(self, level: str | int) -> Ints:
        """Return the nodes of a level (its name or its depth), increasing."""
        d = self.depth_of_level(level)
        return np.sort(self.order[self.level_start[d] : self.level_start[d + 1]])

    def sum_up(self, leaf_values: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return every node's sum over the leaves below it, in node order.

        leaf_values has shape (leaves,) or (leaves, k), in the order of `leaves`. Whole numbers are added
        exactly in 64 bits (refused where a sum reaches 2**62), others as doubles.
        """
        values = array("leaf_values", leaf_values)
        if values.ndim not in (1, 2) or values.shape[0] != self.n_leaves:
            raise Refused(
                f"leaf_values must have shape ({self.n_leaves},) or ({self.n_leaves}, k), found shape {values.shape}"
            )
        exact = values.dtype.kind in "iu"
        checked: npt.NDArray[Any] = (whole_numbers if exact else reals)("leaf_values", values)
        sums = np.zeros((self.n, int(np.prod(values.shape[1:]))), checked.dtype)
        sums[self.leaves] = checked.reshape(self.n_leaves, -1)
        limit = LARGEST if exact else np.inf
        trouble = sum_towards_roots(self.parents, self.child_start, self.order, sums, limit)
        if trouble >= 0:
            raise Refused(f"leaf_values must have sums below 2**62 in size, unlike the one at node {trouble}")
        return sums.reshape(self.n, *values.shape[1:])

    def __repr__(self) -> str:
        kind = "tree" if self.roots.size == 1 else f"forest of {self.roots.size} trees"
        return f"Hierarchy({kind}, {self.n} nodes, {self.n_leaves} leaves, levels {', '.join(self.levels)})"

    def _repr_html_(self) -> str:
        rows = []
        for depth, level in enumerate(self.levels):
            nodes = self.nodes_at(depth)
            few = ", ".join(self._label(int(node)) for node in nodes[:4])
            rows.append((level, f"{nodes.size:,}", f"{few}, …" if nodes.size > 4 else few))
        found = f"{self.n:,} nodes, {self.n_leaves:,} leaves"
        return card("Hierarchy", found, table_of(("level", "nodes", "names"), rows))

    def _label(self, node: int) -> str:
        return str(node) if self.given_names is None else str(self.given_names[node])

    def _node(self, node: Any) -> int:
        whole = isinstance(node, (int, np.integer)) and not isinstance(node, bool)
        if not whole or not 0 <= node < self.n:
            raise Refused(f"node must be a node number between 0 and {self.n - 1}, found {shown(node)}")
        return int(node)

    def _refuse_equal_siblings(self) -> None:
        codes: dict[str, int] = {}
        code = np.array([codes.setdefault(name, len(codes)) for name in self.names], dtype=np.int64)
        key = (self.parents + 1) * len(codes) + code
        _, first, count = np.unique(key, return_index=True, return_counts=True)
        if (count > 1).any():
            path = " / ".join(self.path(int(first[count > 1][0])))
            raise Refused(f"names must give every node its own path, but {path!r} occurs twice")


def sums_of_children(parents: Ints, by: int = 1) -> sparse.csr_array:
    """Return for every inner node, by increasing id, and category the row: node − sum of its children."""
    counts = np.bincount(parents + 1, minlength=parents.size + 1)[1:]
    inner = np.flatnonzero(counts)
    starts = np.cumsum(np.append(0, np.repeat(counts[inner] + 1, by)))
    columns = np.empty(starts[-1], dtype=np.int64)
    of_children = np.ones(starts[-1], dtype=np.bool_)
    of_children[starts[:-1]] = False
    columns[starts[:-1]] = (inner[:, None] * by + np.arange(by)).ravel()
    columns[of_children] = _children_of_rows(parents, counts, by)
    signs = np.where(of_children, np.int64(-1), np.int64(1))
    result = sparse.csr_array((signs, columns, starts), shape=(inner.size * by, parents.size * by))
    result.sort_indices()
    return result


def _children_of_rows(parents: Ints, counts: Ints, by: int) -> Ints:
    """The children of all nodes by their parents' ids, as outputs: those of one category after those of another."""
    children = np.argsort(parents, kind="stable")[parents.size - int(counts.sum()) :]
    if by == 1:
        return children
    row = np.repeat(np.arange(counts.size), counts)[:, None] * by + np.arange(by)
    outputs = children[:, None] * by + np.arange(by)
    return np.asarray(outputs.ravel()[np.argsort(row.ravel(), kind="stable")])


def _refuse_first(bad: npt.NDArray[np.bool_], sentence: str) -> None:
    if bad.any():
        raise Refused(sentence.format(int(np.argmax(bad))))


def _labels(names: Any, n: int) -> npt.NDArray[np.object_]:
    labels = list(names)
    if len(labels) != n:
        raise Refused(f"names must give one label for each of the {n} nodes, found {len(labels)}")
    for v, label in enumerate(labels):
        if not isinstance(label, str) or not label.strip():
            raise Refused(f"names must be texts that are not empty, but the name of node {v} is {label!r}")
    result = np.empty(n, dtype=object)
    result[:] = [str(label) for label in labels]
    return only_read(result)


def _level_names(levels: Any, count: int) -> tuple[str, ...]:
    if levels is None:
        return tuple(f"level {d}" for d in range(count))
    names = [levels] if isinstance(levels, str) else list(levels)
    if not all(isinstance(name, str) and name.strip() for name in names):
        raise Refused("levels must be texts that are not empty")
    if len(names) != count:
        raise Refused(f"levels must name each of the hierarchy's {count} depths, found {len(names)} names")
    if len(set(names)) != count:
        raise Refused("levels must be different from each other")
    return tuple(str(name) for name in names)
