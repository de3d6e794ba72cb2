"""What is known or bounded about sets of cells in areas: exact figures, bounds from public tables, empty cells.

A rule says that the cells of one set have a sum between two numbers in one area. The sets cut the cube into *atoms*,
groups of cells that no rule tells apart: what rules ask is asked of the sums over atoms, and inside an atom cells are
free. Rules of parts bound the sums of the area above them, and sets inside a set bound it, so before any noise is
looked at every area gets the tightest limits that follow this way (docs/theory/areas-and-margins.md, section 5).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Bools, Ints

#: No upper limit: more records than any table counts.
NO_LIMIT = 1 << 40
#: Limits of sets in areas that are kept at most.
MOST_LIMITS = 100_000_000


@dataclass(frozen=True, eq=False)
class Rules:
    """Sets of cells, (sets, cells), and the limits of each in every area, (areas, sets), as they were asked for.

    `atoms`: limits of atoms that are known already, (areas, atoms) low and high.
    """

    query: Any
    sets: Bools
    low: Ints
    high: Ints
    atoms: tuple[Ints, Ints] | None = None

    @classmethod
    def of_rows(cls, query: Any, rows: Any, low: Ints, high: Ints) -> Rules | None:
        """Read rows of ones on the outputs; None where a row does not stay inside one margin of one area."""
        found = _read(query, rows)
        if found is None:
            return None
        at, masks = found
        if query.hierarchy.n * len(masks) > MOST_LIMITS:
            raise Refused(
                f"exact figures and bounds speak of {len(masks):,} sets of cells in {query.hierarchy.n:,} areas: "
                "ask for smaller margins, or for fewer of them"
            )
        least = np.zeros((query.hierarchy.n, len(masks)), np.int64)
        most = np.full((query.hierarchy.n, len(masks)), NO_LIMIT, np.int64)
        np.maximum.at(least, at, np.maximum(low, 0))
        np.minimum.at(most, at, np.minimum(high, NO_LIMIT))
        return cls(query, masks, least, most)

    @property
    def crosses(self) -> bool:
        """Whether the limits that follow leave no room somewhere."""
        least, most, atom_low, atom_high = self.limits
        return bool((least > most).any() or (atom_low > atom_high).any())

    @cached_property
    def atom_of(self) -> Ints:
        return np.unique(self.sets, axis=1, return_inverse=True)[1].ravel().astype(np.int64)

    @cached_property
    def inside(self) -> Bools:
        """Whether each set holds each atom, (sets, atoms)."""
        found = np.zeros((len(self.sets), int(self.atom_of.max()) + 1), bool)
        for s, chosen in enumerate(self.sets):
            found[s, self.atom_of[chosen]] = True
        return found

    @cached_property
    def nested(self) -> bool:
        """Whether any two sets are apart or one inside the other: then programs have whole solutions."""
        common = self.inside.astype(np.int64) @ self.inside.T
        size = np.diag(common)
        return bool(((common == 0) | (common == size[:, None]) | (common == size[None, :])).all())

    @cached_property
    def parts_suffice(self) -> bool:
        """Whether an area within its limits can be divided: only lower limits, and figures exact at whole levels.

        All leaves are on one level, and sets are nested (section 5, Proposition 6).
        """
        tree = self.query.hierarchy
        depth, exact, upper = tree.depth, self.low == self.high, self.high < NO_LIMIT
        if np.unique(depth[tree.leaves]).size > 1:
            return False
        for d in range(len(tree.levels)):
            here = depth == d
            used = upper[here].any(axis=0)
            if not exact[here][:, used].all():
                return False
        return self.nested

    @cached_property
    def limits(self) -> tuple[Ints, Ints, Ints, Ints]:
        """The tightest limits found: of sets, (areas, sets) low and high, and of atoms, (areas, atoms) low and high."""
        tree = self.query.hierarchy
        low, high = self.low.copy(), self.high.copy()
        atom_low = np.zeros((tree.n, self.inside.shape[1]), np.int64)
        atom_high = np.full((tree.n, self.inside.shape[1]), NO_LIMIT, np.int64)
        if self.atoms is not None:
            atom_low, atom_high = (each.copy() for each in self.atoms)
        for depth in range(len(tree.levels) - 1, -1, -1):
            here = tree.nodes_at(depth)
            found = self._tightened(low[here], high[here], atom_low[here], atom_high[here])
            low[here], high[here], atom_low[here], atom_high[here] = found
            if depth == 0:
                break
            above = tree.parents[here]
            for each, sign in ((low, 1), (high, -1), (atom_low, 1), (atom_high, -1)):
                total = np.zeros((tree.n, each.shape[1]), np.int64)
                np.add.at(total, above, each[here])
                parents = np.unique(above)
                pick = np.maximum if sign > 0 else np.minimum
                each[parents] = pick(each[parents], np.minimum(total[parents], NO_LIMIT))
        return low, high, atom_low, atom_high

    def _tightened(self, low: Ints, high: Ints, atom_low: Ints, atom_high: Ints) -> tuple[Ints, Ints, Ints, Ints]:
        """Carry limits between the sets of an area that lie inside each other, for several areas."""
        for _ in range(2):
            for s, (sets, atoms) in self._families:
                least = low[:, sets].sum(axis=1) + atom_low[:, atoms].sum(axis=1)
                most = high[:, sets].sum(axis=1) + atom_high[:, atoms].sum(axis=1)
                low[:, s] = np.maximum(low[:, s], least)
                high[:, s] = np.minimum(high[:, s], most)
                for lower, upper, members in ((low, high, sets), (atom_low, atom_high, atoms)):
                    room, need = (high[:, s] - least)[:, None], (low[:, s] - most)[:, None]
                    below, above = lower[:, members], upper[:, members]
                    lower[:, members] = np.maximum(below, need + above)
                    upper[:, members] = np.minimum(above, room + below)
        return low, high, atom_low, atom_high

    @cached_property
    def _families(self) -> list[tuple[int, tuple[Ints, Ints]]]:
        """For every set, small ones first, disjoint sets inside it and the atoms that these leave over."""
        size = self.inside.sum(axis=1)
        found = []
        for s in np.argsort(size, kind="stable").tolist():
            left, sets = self.inside[s].copy(), []
            for other in np.argsort(-size, kind="stable").tolist():
                if size[other] < size[s] and not (self.inside[other] & ~left).any():
                    sets.append(other)
                    left &= ~self.inside[other]
            found.append((s, (np.array(sets, np.int64), np.flatnonzero(left))))
        return found


def _read(query: Any, rows: Any) -> tuple[tuple[Ints, Ints], Bools] | None:
    """The area and the number of the set of each row, and the sets; None where a row leaves one margin of one area."""
    if not rows.shape[0] or not (np.diff(rows.indptr) > 0).all() or (rows.data != 1).any():
        return None
    node, group, entry = _places(query, rows.indices)
    begin = rows.indptr[:-1]
    for kind in (node, group):
        if (np.minimum.reduceat(kind, begin) != np.maximum.reduceat(kind, begin)).any():
            return None
    number, masks = _numbered(query, rows, group[begin], entry)
    return (node[begin], number), masks


def _places(query: Any, outputs: Ints) -> tuple[Ints, Ints, Ints]:
    """The area, the group and the entry of its margin of each output."""
    node = np.searchsorted(query.starts, outputs, side="right") - 1
    group = query.level_of[outputs]
    begin = np.array([first for _, first in query.places])
    return node, group, outputs - query.starts[node] - begin[group]


def _numbered(query: Any, rows: Any, group: Ints, entry: Ints) -> tuple[Ints, Bools]:
    """The number of each row's set of cells, and the sets."""
    numbers: dict[tuple[Any, ...], int] = {}
    by_mask: dict[bytes, int] = {}
    masks: list[Bools] = []
    kept = [axes for _, axes in query.groups]
    index = {axes: query.table.margin_index(axes) for axes in dict.fromkeys(kept)}
    starts = rows.indptr.tolist()
    found = np.empty(rows.shape[0], np.int64)
    for r in range(rows.shape[0]):
        entries = entry[starts[r] : starts[r + 1]]
        key = (kept[group[r]], int(entries[0]) if entries.size == 1 else entries.tobytes())
        if key not in numbers:
            mask = np.isin(index[key[0]], entries)
            if mask.tobytes() not in by_mask:
                by_mask[mask.tobytes()] = len(masks)
                masks.append(mask)
            numbers[key] = by_mask[mask.tobytes()]
        found[r] = numbers[key]
    return found, np.array(masks)
