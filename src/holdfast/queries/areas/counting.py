"""The counts of a hierarchy: of all records, of categories, or of margins of a cube in every area."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from holdfast.arguments import Refused, whole
from holdfast.domains import Cube, Hierarchy
from holdfast.queries.areas.area_margins import AreaMargins, margins_by_depth
from holdfast.queries.areas.tree_counts import TreeCounts
from holdfast.queries.identity import MOST_ASKED
from holdfast.queries.linear_query import Query


def counts(
    tree: Hierarchy,
    by: int | Sequence[int] | Cube = 1,
    keep: Iterable[str | Iterable[int | str]] | Mapping[str | int, Iterable[str | Iterable[int | str]]] | None = None,
) -> Query:
    """Ask the count at every node of a hierarchy; one record adds 1 to its leaf and to every ancestor.

    Outputs: nodes in order, inside a node the margins in the order of `keep`, inside a margin C order.

    Args:
        tree: the hierarchy.
        by: k categories at every node, the shape of a cube, or a `Cube` with names.
        keep: None asks all cells at every node; a list of margins such as [(), (0,), (0, 2)] these at every node;
            {level: list or None} at the nodes of the named levels alone.

    Example:
        >>> import holdfast as hf
        >>> tree = hf.Hierarchy.from_parents([-1, 0, 0])
        >>> hf.counts(tree).answer([4, 6]).tolist()
        [10, 4, 6]
        >>> hf.counts(tree, by=2).answer([1, 3, 6, 0]).tolist()
        [7, 3, 1, 3, 6, 0]
    """
    if not isinstance(tree, Hierarchy):
        raise Refused(f"tree must be a Hierarchy, found an object of type {type(tree).__name__}")
    if not isinstance(by, (Cube, Iterable)) or isinstance(by, str):
        by = whole("by", by, at_least=1)
    table = by if isinstance(by, Cube) else Cube(by)
    if keep is None:
        if tree.n * table.cells > MOST_ASKED:
            raise Refused(f"by must ask at most 2**31 outputs in all, found {tree.n * table.cells}")
        return TreeCounts(tree.n * table.cells, tree, table.cells, None if isinstance(by, int) else table)
    kept = margins_by_depth(tree, table, keep)
    width = np.array([sum(int(np.prod(table.margin_shape(axes), dtype=np.int64)) for axes in here) for here in kept])
    size = int(width[tree.depth].sum())
    if size > MOST_ASKED:
        raise Refused(f"keep must ask at most 2**31 outputs, found {size}")
    return AreaMargins(size, tree, table, kept)
