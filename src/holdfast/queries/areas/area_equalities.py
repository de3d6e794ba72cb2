"""The equalities between the margins of a cube in all areas of a hierarchy, as independent whole rows.

For a set S of axes a node *knows* S if one of its margins keeps all of S. Inside a node its margins agree on what they
share (margin_equalities). Along the hierarchy the sums over the leaves below a node that knows S are those of the
nearest nodes below it that know S, wherever these cover all its leaves; compared at the cells of S with no coordinate
0, the others follow from smaller sets. Sets of leaves of a tree are laminar, so nothing else is linearly dependent, and
the rows are independent (docs/theory/difference-sets.md, Proposition 6).
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array, vstack

from holdfast.arrays import Ints
from holdfast.domains import Hierarchy
from holdfast.queries.margin_equalities import margin_equalities, summed

if TYPE_CHECKING:
    from holdfast.queries.areas.area_margins import AreaMargins, Axes


def known_sets(query: AreaMargins) -> list[Axes]:
    """Return every set of axes that some margin keeps, leaving out axes of one value, small sets first."""
    shape = query.table.shape
    found = set()
    for _, axes in query.groups:
        wide = [a for a in axes if shape[a] > 1]
        found |= {chosen for count in range(len(wide) + 1) for chosen in combinations(wide, count)}
    return sorted(found, key=lambda chosen: (len(chosen), chosen))


def knows(query: AreaMargins, chosen: Axes) -> list[bool]:
    """Return for each depth whether its nodes know a set of axes."""
    return [any(set(chosen) <= set(axes) for axes in kept) for kept in query.keep]


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


def area_equalities(query: AreaMargins) -> csr_array[Any]:
    """Return rows A with A·z = 0 exactly for the z that some cells, whole or not and of any sign, answer."""
    tree, shape = query.hierarchy, query.table.shape
    blocks = [csr_array((0, query.n), dtype=np.int64)]
    for depth, kept in enumerate(query.keep):
        inside = margin_equalities(shape, kept) if kept else csr_array((0, 0), dtype=np.int64)
        if inside.shape[0]:
            blocks.append(_repeated(inside, query.starts[tree.nodes_at(depth)], query.n))
    for chosen in known_sets(query):
        known = knows(query, chosen)
        above, covered = knowing_forest(tree, known)
        at = np.array(known)[tree.depth]
        parents = np.flatnonzero(at & covered)
        children = np.flatnonzero(at & (above >= 0))
        children = children[covered[above[children]]]
        rank = np.full(tree.n, -1, np.int64)
        rank[parents] = np.arange(parents.size)
        upper = _summed_at(query, parents, chosen, np.arange(parents.size), parents.size)
        blocks.append(upper - _summed_at(query, children, chosen, rank[above[children]], parents.size))
    return csr_array(vstack(blocks, format="csr", dtype=np.int64))


def _repeated(rows: csr_array[Any], starts: Ints, width: int) -> csr_array[Any]:
    """Return the same rows at each of several places."""
    entry = rows.tocoo()
    row = np.arange(starts.size)[:, None] * rows.shape[0] + entry.coords[0]
    column = starts[:, None] + entry.coords[1]
    data = np.tile(entry.data, starts.size)
    return csr_array((data, (row.ravel(), column.ravel())), shape=(starts.size * rows.shape[0], width))


def _summed_at(query: AreaMargins, nodes: Ints, chosen: Axes, rank: Ints, count: int) -> csr_array[Any]:
    """Return rows that sum these nodes' margins to `chosen`, added up by rank, at cells with no coordinate 0."""
    size = int(np.prod([query.table.shape[a] - 1 for a in chosen], dtype=np.int64))
    rows, columns = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for depth, kept in enumerate(query.keep):
        here = np.flatnonzero(query.hierarchy.depth[nodes] == depth)
        if here.size:
            offsets = np.concatenate([[0], np.cumsum(query.sizes[[query.groups.index((depth, a)) for a in kept]])])
            first = next(m for m, axes in enumerate(kept) if set(chosen) <= set(axes))
            entry = summed(query.table.shape, kept, offsets, first, chosen).tocoo()
            rows.append((rank[here][:, None] * size + entry.coords[0]).ravel())
            columns.append((query.starts[nodes[here]][:, None] + entry.coords[1]).ravel())
    row, column = np.concatenate(rows), np.concatenate(columns)
    return csr_array((np.ones(row.size, np.int64), (row, column)), shape=(count * size, query.n))
