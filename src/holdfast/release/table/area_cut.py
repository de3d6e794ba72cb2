"""Where a census is cut: above the areas of one level, and these into stretches of neighbours, by its shape alone.

A stretch is what one task draws, and its figures of one level are one part of the table's files. So the cut decides
which random words make which noise and which rows lie together; how many processes draw, and the data, do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from holdfast.arrays import Ints
from holdfast.queries.areas.area_margins import AreaMargins

#: Cells and figures of a stretch, more or less: a task then takes about a GiB, and much longer than to begin.
STRETCH = 1 << 19


@dataclass(frozen=True, eq=False)
class AreaCut:
    """A census cut above its areas of one depth."""

    query: AreaMargins
    depth: int

    @classmethod
    def of(cls, query: AreaMargins) -> AreaCut | None:
        """Cut above the first level below whose areas there is no more than a stretch each.

        None where areas are not numbered level by level, or not all of them have parts down to the lowest level.
        """
        tree = query.hierarchy
        last = len(tree.levels) - 1
        listed = bool((tree.order == np.arange(tree.n)).all())
        if last < 2 or not listed or tree.n_leaves < tree.n - int(tree.level_start[last]):
            return None
        if int(tree.depth[tree.leaves].min()) < last:
            return None
        small = (d for d in range(1, last) if cls(query, d).sizes.max() <= STRETCH)
        return cls(query, next(small, last - 1))

    @cached_property
    def begins(self) -> list[Ints]:
        """For each depth from that of the cut on, where the areas below each area at the cut begin, and the end."""
        tree = self.query.hierarchy
        found = [np.arange(tree.level_start[self.depth], tree.level_start[self.depth + 1] + 1)]
        for _ in range(self.depth + 1, len(tree.levels)):
            found.append(tree.roots.size + tree.child_start[found[-1]])
        return found

    @cached_property
    def sizes(self) -> Ints:
        """How many cells and figures there are at and below each area at the cut."""
        width = np.zeros(len(self.query.keep), np.int64)
        np.add.at(width, [depth for depth, _ in self.query.groups], self.query.sizes)
        each = width[self.depth :] + self.query.table.cells
        return np.asarray(sum(np.diff(begin) * size for begin, size in zip(self.begins, each.tolist(), strict=True)))

    @cached_property
    def ends(self) -> list[int]:
        """The first area at the cut of each stretch, by its place among them, and behind them how many there are."""
        stretch = (np.cumsum(self.sizes) - self.sizes) // STRETCH
        return [*np.flatnonzero(np.diff(stretch, prepend=-1)).tolist(), int(self.sizes.size)]

    @property
    def stretches(self) -> int:
        return len(self.ends) - 1

    @property
    def above(self) -> int:
        """The number of the first area at the cut: how many lie above it."""
        return int(self.query.hierarchy.level_start[self.depth])

    def nodes(self, stretch: int) -> list[range]:
        """The areas of a stretch, depth by depth."""
        first, behind = self.ends[stretch : stretch + 2]
        return [range(int(begin[first]), int(begin[behind])) for begin in self.begins]

    @cached_property
    def runs(self) -> list[list[tuple[int, int]]]:
        """The first row and the one behind the last of the figures of every depth and stretch."""
        starts = self.query.starts
        return [
            [(int(starts[begin[first]]), int(starts[begin[behind]])) for first, behind in pairwise(self.ends)]
            for begin in self.begins
        ]
