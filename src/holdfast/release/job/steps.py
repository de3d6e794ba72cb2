"""How far a record, or a person in several groups, moves a table of sums (docs/theory/sums.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Refused
from holdfast.queries import Bound, Neighbours, Query
from holdfast.queries.areas.area_margins import AreaMargins
from holdfast.queries.margin_counts import MarginCounts
from holdfast.queries.neighbours import ADD_REMOVE, REPLACE_ONE


@dataclass(frozen=True)
class Moved:
    """What one record, or person, adds to cells: from `low` to `high` steps, in at most `groups` of them."""

    low: int
    high: int
    groups: int = 1

    @property
    def most(self) -> int:
        """How many steps it is in one cell."""
        return max(abs(self.low), abs(self.high))

    def steps(self, relation: Neighbours) -> Neighbours:
        """Single steps that come and go, of which every change of so many records is made."""
        return Neighbours(ADD_REMOVE, relation.records * self.most * self.groups * (1 if relation.adds else 2))

    def records(self, kind: str, steps: int) -> Neighbours:
        """The largest such relation of a kind whose changes are made of so many steps."""
        return Neighbours(kind, steps // self.steps(Neighbours(kind)).records)


@dataclass(frozen=True, eq=False)
class SumDifferences:
    """The changes of a table of sums by records that come and go or are replaced, each with any number."""

    query: Query
    neighbours: Neighbours
    moved: Moved

    def bound(self, values: Sequence[Fraction], which: npt.NDArray[np.int32] | None, p: int) -> Bound:
        """Largest Σ values[which[i]]·|d_i|^p over these changes, and whether it is attained (Propositions 2 and 3)."""
        moved, many = self.moved, self.neighbours.records
        one = self.query.bound(values, which, p, Neighbours(ADD_REMOVE))
        alone = one if moved.groups == 1 else _in_groups(self.query, values, which, p, moved.groups)
        if self.neighbours.adds:
            return Bound(alone.value * (many * moved.most) ** p, alone.exact)
        if moved.groups > 1:  # all of it goes, and as much comes
            return Bound(alone.value * (2 * many * moved.most) ** p, exact=False)
        # Within one cell a number moves from one end to the other; into another cell it goes as a whole.
        across = moved.low <= 0 <= moved.high
        within = Bound(one.value * (moved.high - moved.low if across else moved.most) ** p, one.exact and across)
        away = self.query.bound(values, which, p, Neighbours(REPLACE_ONE))
        worst = max(within, Bound(away.value * moved.most**p, away.exact))
        return Bound(worst.value * many**p, worst.exact)

    def kinds(self, which: npt.NDArray[np.int32] | None) -> list[Counter[tuple[int, int]]]:
        """Not listed: statements rest on norms."""
        del which
        raise Refused("changes of sums are too many to list")


def _in_groups(
    query: Query, values: Sequence[Fraction], which: npt.NDArray[np.int32] | None, p: int, groups: int
) -> Bound:
    """The largest Σ weights·|d|^p where a step is added to each of so many different cells (Proposition 3)."""
    one, cells = query.bound(values, which, p, Neighbours(ADD_REMOVE)), query.cells
    groups = min(groups, cells or groups)
    if p == 1:
        return Bound(groups * one.value, exact=False)
    bounds = [groups**2 * one.value]  # all in one cell
    blocks = np.zeros(query.n, dtype=np.int64) if query.identity else query.level_of
    if cells is None or blocks is None:
        return Bound(bounds[0], exact=False)
    heaviest = [Fraction(0)] * (int(blocks.max()) + 1)
    pairs = blocks if which is None else blocks + len(heaviest) * np.asarray(which, dtype=np.int64)
    for pair in np.unique(pairs).tolist():
        weight, block = divmod(pair, len(heaviest))
        heaviest[block] = max(heaviest[block], values[weight])
    most = np.zeros(len(heaviest), dtype=np.int64)
    np.maximum.at(most, blocks, np.asarray(query.answer(np.ones(cells, dtype=np.int64))))
    full = (divmod(groups, max(int(size), 1)) for size in most)
    together = ((each * int(size) ** 2 + rest**2) for (each, rest), size in zip(full, most, strict=True))
    bounds.append(sum((w * n for w, n in zip(heaviest, together, strict=True)), Fraction(0)))
    if isinstance(query, (MarginCounts, AreaMargins)):  # two cells differ in an axis, or in the place
        tree = query.hierarchy if isinstance(query, AreaMargins) else None
        kept = list(query.groups) if isinstance(query, AreaMargins) else [(0, axes) for axes in query.keep]
        axes = [axis for axis, size in enumerate(query.table.shape) if size > 1]
        shared = [sum(w for w, (_, own) in zip(heaviest, kept, strict=True) if axis not in own) for axis in axes]
        if tree is not None and tree.leaves.size > 1:
            shared.append(sum(w for w, (depth, _) in zip(heaviest, kept, strict=True) if depth < tree.depth.max()))
        bounds.append(groups * one.value + groups * (groups - 1) * max(shared, default=0))
    return Bound(min(bounds), exact=False)
