"""The equalities between the margins of a cube in all areas of a hierarchy, as independent whole rows.

For a set S of axes a node *knows* S if one of its margins keeps all of S. Inside a node its margins agree on what they
share (margin_equalities). Along the hierarchy the sums over the leaves below a node that knows S are those of the
nearest nodes below it that know S, wherever these cover all its leaves; compared at the cells of S with no coordinate
0, the others follow from smaller sets. Sets of leaves of a tree are laminar, so nothing else is linearly dependent, and
the rows are independent (docs/theory/areas-and-margins.md, Proposition 1).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from holdfast.arrays import Ints
from holdfast.domains import Cube, Hierarchy
from holdfast.queries.margin_equalities import margin_equalities, summed, told_sets

Axes = tuple[int, ...]
Keep = tuple[tuple[Axes, ...], ...]  # the margins of each depth


def known_sets(table: Cube, keep: Keep) -> list[Axes]:
    """Return every set of axes that some margin tells, leaving out axes of one value, small sets first."""
    found = {chosen for axes in {axes for kept in keep for axes in kept} for chosen in told_sets(table, axes)}
    return sorted(found, key=lambda chosen: (len(chosen), chosen))


def knows(table: Cube, keep: Keep, chosen: Axes) -> list[bool]:
    return [any(table.tells(axes, chosen) for axes in kept) for kept in keep]


def knowing_forest(tree: Hierarchy, known: list[bool]) -> tuple[Ints, Ints]:
    """Return for each node its nearest ancestor that knows (−1: none), and whether nodes below cover all its leaves."""
    at = np.array(known)[tree.depth]
    above = np.full(tree.n, -1, np.int64)
    for d in range(1, len(tree.levels)):
        nodes = tree.order[tree.level_start[d] : tree.level_start[d + 1]]
        parent = tree.parents[nodes]
        above[nodes] = np.where(at[parent], parent, above[parent])
    uncovered = np.zeros(tree.n, bool)  # some leaf below has no knowing node on the way down to it
    uncovered[tree.leaves] = True
    for d in range(len(tree.levels) - 1, 0, -1):
        nodes = tree.order[tree.level_start[d] : tree.level_start[d + 1]]
        np.logical_or.at(uncovered, tree.parents[nodes], uncovered[nodes] & ~at[nodes])
    return above, ~uncovered


def area_equalities(tree: Hierarchy, table: Cube, keep: Keep, starts: Ints) -> csr_array[Any]:
    """Return rows A with A·z = 0 exactly for the z that some cells, whole or not and of any sign, answer.

    starts: where each node's outputs begin, with their number at the end.
    """
    n = int(starts[-1])
    blocks = [csr_array((0, n), dtype=np.int64)]
    for depth, kept in enumerate(keep):
        inside = margin_equalities(table, kept) if kept else csr_array((0, 0), dtype=np.int64)
        if inside.shape[0]:
            blocks.append(_repeated(inside, starts[tree.nodes_at(depth)], n))
    for chosen in known_sets(table, keep):
        known = knows(table, keep, chosen)
        above, covered = knowing_forest(tree, known)
        at = np.array(known)[tree.depth]
        parents = np.flatnonzero(at & covered)
        children = np.flatnonzero(at & (above >= 0))
        children = children[covered[above[children]]]
        rank = np.full(tree.n, -1, np.int64)
        rank[parents] = np.arange(parents.size)
        sums = _sums(table, keep, chosen)
        upper = _placed(sums, tree.depth[parents], starts[parents], np.arange(parents.size), (parents.size, n))
        lower = _placed(sums, tree.depth[children], starts[children], rank[above[children]], (parents.size, n))
        blocks.append(upper - lower)
    return csr_array(vstack(blocks, format="csr", dtype=np.int64))


def _repeated(rows: csr_array[Any], starts: Ints, width: int) -> csr_array[Any]:
    """Return the same rows at each of several places."""
    entry = rows.tocoo()
    row = np.arange(starts.size)[:, None] * rows.shape[0] + entry.coords[0]
    column = starts[:, None] + entry.coords[1]
    data = np.tile(entry.data, starts.size)
    return csr_array((data, (row.ravel(), column.ravel())), shape=(starts.size * rows.shape[0], width))


def _sums(table: Cube, keep: Keep, chosen: Axes) -> list[csr_array[Any] | None]:
    """Return for each depth the rows that sum a node's outputs to `chosen`, at cells with no coordinate 0."""
    found: list[csr_array[Any] | None] = []
    for kept in keep:
        sizes = [int(np.prod(table.margin_shape(axes), dtype=np.int64)) for axes in kept]
        first = next((m for m, axes in enumerate(kept) if table.tells(axes, chosen)), None)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        found.append(None if first is None else summed(table, kept, offsets, first, chosen))
    return found


def _placed(
    sums: list[csr_array[Any] | None], depths: Ints, starts: Ints, rank: Ints, shape: tuple[int, int]
) -> csr_array[Any]:
    """Return the sums of nodes that begin at `starts`, added up by rank."""
    size = next(rows.shape[0] for rows in sums if rows is not None)
    rows, columns = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for depth, here in enumerate(sums):
        nodes = np.flatnonzero(depths == depth)
        if here is not None and nodes.size:
            entry = here.tocoo()
            rows.append((rank[nodes][:, None] * size + entry.coords[0]).ravel())
            columns.append((starts[nodes][:, None] + entry.coords[1]).ravel())
    row, column = np.concatenate(rows), np.concatenate(columns)
    return csr_array((np.ones(row.size, np.int64), (row, column)), shape=(shape[0] * size, shape[1]))
