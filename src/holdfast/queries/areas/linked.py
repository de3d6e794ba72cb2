"""Several tables of one census in the same areas, tied by what every household obeys: persons and households."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import block_diag, csr_array, hstack, vstack

from holdfast.arguments import Frame, Refused, array, one_of, shown, whole, whole_numbers
from holdfast.arrays import Array, Bools, Floats, Ints
from holdfast.domains import Cube, Hierarchy
from holdfast.queries.areas.area_equalities import knowing_forest
from holdfast.queries.areas.area_margins import AreaMargins
from holdfast.queries.areas.bundles import Rows, largest, largest_households, least_rows
from holdfast.queries.areas.tree_counts import TreeCounts
from holdfast.queries.bounded import UnlistedQuery
from holdfast.queries.counting import count_cells
from holdfast.queries.exact_weights import Bound, Weights
from holdfast.queries.linear_query import Query
from holdfast.queries.neighbours import Neighbours

#: Weights of ties stay below this in size: sums over the rows of a household are then whole numbers of 64 bits.
MOST_WEIGHT = 1 << 31


@dataclass(frozen=True, eq=False, repr=False)
class LinkedCounts(UnlistedQuery):
    """The outputs of several tables after each other; a record is a household with its rows in all of them.

    `ties`: for each table (ties, cells), weights of its rows; those of a household add up to 0 over all tables. Which
    cells a record changes is a set too large to list, so that only its largest changes are known: `cells` is None.
    """

    WHOM: ClassVar[str] = "one table: the changes by a household in linked tables are not listed"

    names: tuple[str, ...]
    parts: tuple[AreaMargins, ...]
    ties: tuple[Ints, ...]
    most: tuple[int, ...]

    @property
    def hierarchy(self) -> Hierarchy:
        return self.parts[0].hierarchy

    @cached_property
    def labels(self) -> npt.NDArray[np.object_]:
        """The names of the outputs, behind that of their table."""
        named = (f"{name}: {label}" for name, part in zip(self.names, self.parts, strict=True) for label in part.labels)
        return np.array(list(named), dtype=object)

    @cached_property
    def levels(self) -> Mapping[str, int]:
        """Each group's name, such as "persons: county: sex × age", with its number."""
        listed = [
            f"{name}: {level}" for name, part in zip(self.names, self.parts, strict=True) for level in part.levels
        ]
        return {level: g for g, level in enumerate(listed)}

    @cached_property
    def level_of(self) -> Ints:
        before = np.cumsum([0, *(len(part.groups) for part in self.parts)])
        return np.concatenate([part.level_of + first for part, first in zip(self.parts, before, strict=False)])

    def level_number(self, name: str, key: object) -> int:
        """Return the group meant by its name, its number, or (table, level, margin)."""
        if not isinstance(key, tuple):
            return super().level_number(name, key)
        if len(key) != 3:
            raise Refused(f"a level of {name} must be (table, level, margin), found {shown(key)}")
        at = self.names.index(one_of(f"a table of {name}", key[0], self.names))
        return sum(len(part.groups) for part in self.parts[:at]) + self.parts[at].level_number(name, key[1:])

    @cached_property
    def starts(self) -> Ints:
        """Where the outputs of each table begin, with n at the end."""
        return np.cumsum([0, *(part.n for part in self.parts)])

    def outputs(self, table: str) -> slice:
        at = self.names.index(one_of("table", table, self.names))
        return slice(int(self.starts[at]), int(self.starts[at + 1]))

    def split(self, values: Array) -> list[Array]:
        """Return the outputs of each table, along the last axis."""
        return np.split(values, self.starts[1:-1], axis=-1)

    @property
    def record(self) -> str:
        rows = ", ".join(f"up to {most} of {name}" for name, most in zip(self.names, self.most, strict=True))
        return f"a record is a household with all its rows ({rows}), in one place, which obey the ties"

    @property
    def assumed(self) -> str:
        rows = " or ".join(f"{most} of {name}" for name, most in zip(self.names, self.most, strict=True))
        return f"no household has more rows than {rows}; all are in one place and obey the ties"

    # The truth --------------------------------------------------------------------------------------------------

    def answer(self, cells: npt.ArrayLike | Mapping[str, npt.ArrayLike]) -> Array:
        """Return the truth from the cells of every table, {name: cells}.

        Refused where rows break a tie, or where no households within `most` that obey the ties can have them.
        """
        listed = self._by_name("cells", cells)
        return self._answered("cells", [_cells(part, each) for part, each in zip(self.parts, listed, strict=True)])

    def count(self, frame: Frame, count: str | None = None, outside: str = "refuse") -> Array:
        """Return the truth from the records of every table, {name: frame}; refused as by `answer`."""
        listed = self._by_name("frame", frame)
        counted = [
            count_cells(part.cells, *part.domain, each, count, outside)
            for part, each in zip(self.parts, listed, strict=True)
        ]
        return self._answered("frame", counted)

    def _answered(self, what: str, cells: list[Ints]) -> Array:
        by_leaf = [each.reshape(self.hierarchy.n_leaves, -1) for each in cells]
        if np.any(sum(each @ tie.T for each, tie in zip(by_leaf, self.ties, strict=True))):
            raise Refused(f"{what} must obey the ties in every place: correct the data or the ties")
        cannot, at_most = self._limits
        rows = [each.sum(axis=1) for each in by_leaf]
        if any(each[:, none].any() for each, none in zip(by_leaf, cannot, strict=True)) or any(
            (rows[own] * most.denominator > rows[other] * most.numerator).any() for own, other, most in at_most
        ):
            raise Refused(
                f"{what} must be rows of households within most that obey the ties, and in some place no such "
                "households have these rows: raise most, or correct the data"
            )
        return np.concatenate([part.answer(each) for part, each in zip(self.parts, cells, strict=True)])

    @cached_property
    def _limits(self) -> tuple[list[Bools], list[tuple[int, int, Fraction]]]:
        """What the ties tell of `most` (docs/theory/linked.md, Proposition 3).

        The cells of each table that no household has, and the most rows of one table for each row of another.
        """
        cannot = [np.zeros(part.table.cells, dtype=bool) for part in self.parts]
        at_most: list[tuple[int, int, Fraction]] = []
        for own, rows in enumerate(self._rows):
            others = [each for each in self._rows if each is not rows]
            if rows.lists is None or (beside := least_rows(others)) is None:
                continue
            totals = [tuple(total) for total in (-(rows.lists @ rows.classes[0])).tolist()]
            fits = np.array([total in beside for total in totals])
            classes = np.unique(self.ties[own].T, axis=0, return_inverse=True)[1].ravel() if len(self.ties[own]) else 0
            cannot[own] |= ~(rows.lists[fits] > 0).any(axis=0)[classes]
            listed = list(zip(rows.lists.sum(axis=1).tolist(), totals, strict=True))
            for other, counted in enumerate(self._rows):
                least = None if other == own else least_rows(others, counted)
                if least is None:
                    continue
                pairs = {(many, least[total]) for many, total in listed if total in least}
                if all(few or not many for many, few in pairs):
                    shares = (Fraction(many, few) for many, few in pairs if few)
                    at_most.append((own, other, max(shares, default=Fraction(0))))
        return cannot, at_most

    def _by_name(self, what: str, given: Any) -> list[Any]:
        if not isinstance(given, Mapping) or set(given) != set(self.names):
            raise Refused(f"{what} must be a mapping with one entry for each of {', '.join(self.names)}")
        return [given[name] for name in self.names]

    # What holds -------------------------------------------------------------------------------------------------

    def consistency(self) -> csr_array[Any]:
        """Return the rows of every table, and the ties wherever margins tell them."""
        blocks: list[Any] = [part.consistency() for part in self.parts]
        own: Any = block_diag(blocks, format="csr", dtype=np.int64)  # whose types take mypy seconds
        return csr_array(vstack([own, self.tied_rows()], format="csr", dtype=np.int64))

    def tied_rows(self) -> csr_array[Any]:
        """Return one row for each tie and each lowest area whose margins tell it."""
        blocks = [csr_array((0, self.n), dtype=np.int64)]
        for tie in range(len(self.ties[0])):
            told = [_telling(part, ties[tie]) for part, ties in zip(self.parts, self.ties, strict=True)]
            known = [all(each) for each in zip(*((m is not None for m in by_depth) for by_depth in told), strict=True)]
            _, covered = knowing_forest(self.hierarchy, known)
            nodes = np.flatnonzero(np.array(known)[self.hierarchy.depth] & ~covered)
            nodes = nodes if any(known) else nodes[:0]
            for depth in np.unique(self.hierarchy.depth[nodes]).tolist():
                here = nodes[self.hierarchy.depth[nodes] == depth]
                placed = [
                    _placed(part, ties[tie], by_depth[depth], here)
                    for part, ties, by_depth in zip(self.parts, self.ties, told, strict=True)
                ]
                blocks.append(csr_array(hstack(placed, format="csr")))
        return csr_array(vstack(blocks, format="csr", dtype=np.int64))

    # The largest changes ----------------------------------------------------------------------------------------

    def single(self, weights: Weights, p: int, mask: Bools | None) -> Bound:
        """Return the largest change by a household that comes or goes."""
        del mask  # there are no cells to leave out
        value, attained = largest(self._rows, self._by_margin(weights, alone=None), p)
        return Bound(value, attained and len(self._used(weights)) == len(self.levels))

    def pair(self, weights: Weights, p: int, classes: Ints | None) -> Bound:
        """Return the changes by two households at most: what one loses and the other gains.

        Two households that share no entry change twice as much as one; a total of all changes by their difference,
        which is at most that of one with the most rows.
        """
        del classes
        twice = largest(self._rows, self._by_margin(weights, alone=False), p)[0]
        shared = self._by_margin(weights, alone=True)
        once = (sum(by.values(), Fraction(0)) * most**p for by, most in zip(shared, self.most, strict=True))
        return Bound(2 * twice + sum(once, Fraction(0)), False)

    def households(self, most: int) -> list[Array]:
        """Return what some of the largest households add to the answer, in one of the lowest leaves."""
        leaf = int(np.argmax(self.hierarchy.depth[self.hierarchy.leaves]))
        found: list[Array] = []
        for rows in largest_households(self._rows, most):
            cells = [np.zeros((self.hierarchy.n_leaves, own.size), np.int64) for own in rows]
            for table, own in zip(cells, rows, strict=True):
                table[leaf] = own
            found.append(self.answer(dict(zip(self.names, cells, strict=True))))
        return found

    @cached_property
    def _rows(self) -> tuple[Rows, ...]:
        return tuple(
            Rows(part.table.shape, tie, most) for part, tie, most in zip(self.parts, self.ties, self.most, strict=True)
        )

    def _by_margin(self, weights: Weights, *, alone: bool | None) -> tuple[dict[tuple[int, ...], Fraction], ...]:
        """The weights of every table's margins, added up over levels; of one group the largest.

        alone: only totals of all, where one area has one figure (True), only others (False), or both (None).
        """
        of_group = [Fraction(0)] * len(self.levels)
        for value, group in self._used(weights):
            of_group[group] = max(of_group[group], weights.values[value])
        found, g = [], 0
        for part in self.parts:
            total: dict[tuple[int, ...], Fraction] = {}
            for (_, axes), size, (nodes, _) in zip(part.groups, part.sizes.tolist(), part.places, strict=True):
                if alone is None or alone == (size == 1 and nodes.size == 1):
                    total[axes] = total.get(axes, Fraction(0)) + of_group[g]
                g += 1
            found.append(total)
        return tuple(found)

    def _used(self, weights: Weights) -> list[list[int]]:
        """The weights that occur in each group, as pairs (weight, group)."""
        which = np.zeros(self.n, np.int64) if weights.which is None else weights.which
        return np.unique(np.stack([which, self.level_of]), axis=1).T.tolist()

    def _widest(self, relation: Neighbours) -> Fraction:
        del relation
        return Fraction(max(self.most))


def linked(
    tables: Mapping[str, Query], ties: Iterable[Mapping[str, npt.ArrayLike]], most: int | Mapping[str, int]
) -> LinkedCounts:
    """Ask several tables of one census, such as persons and households, that are tied to each other.

    A record is a household: it has rows in every table, all in one leaf. `consistent(query)` holds the tables together
    and the ties; a release then has whole persons and households that fit.

    Args:
        tables: the counts of each table on one and the same hierarchy, `counts(tree, by, keep)`, by name.
        ties: for each rule {name: weights of the rows of that table}, whole numbers for its cells (or a smaller array
            that numpy repeats to its shape). Every household obeys: its rows' weights add up to 0 over all tables.
        most: how many rows a household has at most in each table: public, and the same for all.

    Guarantee:
        Neighbours differ by one household with everybody in it (add-remove), or one is replaced by another
        (replace-one). A person who comes, goes or answers otherwise replaces a household (docs/theory/linked.md).

    Example:
        >>> import holdfast as hf
        >>> tree = hf.Hierarchy.from_parents([-1, 0, 0])
        >>> persons, households = hf.counts(tree, by=hf.Cube(2, ["head"])), hf.counts(tree)
        >>> query = hf.linked({"persons": persons, "households": households},
        ...     ties=[{"persons": [1, 0], "households": [-1]}], most={"persons": 4, "households": 1})
        >>> query.answer({"persons": [2, 5, 1, 0], "households": [2, 1]}).tolist()
        [3, 5, 2, 5, 1, 0, 3, 2, 1]
    """
    listed: object = tables
    if not isinstance(listed, Mapping) or len(listed) < 2 or not all(isinstance(name, str) for name in listed):
        raise Refused("tables must be a mapping from the names of two or more tables to their counts")
    names = tuple(tables)
    parts = tuple(_in_areas(name, each) for name, each in tables.items())
    first = parts[0].hierarchy
    for name, part in zip(names, parts, strict=True):
        other = part.hierarchy
        if not np.array_equal(first.parents, other.parents) or first.levels != other.levels:
            raise Refused(f"tables must count on one hierarchy, but {name!r} has another than {names[0]!r}")
    if not isinstance(most, Mapping) or set(most) != set(names):
        raise Refused(f"most must be a mapping with one number for each of {', '.join(names)}")
    rows = tuple(whole(f"most of {name!r}", most[name], at_least=1, at_most=1000) for name in names)
    weights = _weights(names, parts, list(ties))
    query = LinkedCounts(sum(part.n for part in parts), names, parts, weights, rows)
    untold = [tie for tie in range(len(weights[0])) if not _told_somewhere(query, tie)]
    if untold:
        raise Refused(
            f"ties must be told by margins of some level, but no level asks all axes of tie {untold[0] + 1}: keep a "
            "margin with them in every table"
        )
    return query


def _in_areas(name: str, query: Any) -> AreaMargins:
    if isinstance(query, AreaMargins):
        if query.table.recoded:
            raise Refused(f"linked tables have no recoded axes, but {name!r} has: make the groups an axis of its own")
        return query
    if isinstance(query, TreeCounts):
        table = query.table or Cube(query.by)
        every = (tuple(range(len(table.shape))),)
        return AreaMargins(query.n, query.hierarchy, table, (every,) * len(query.hierarchy.levels))
    raise Refused(f"tables must be counts of a hierarchy, found an object of type {type(query).__name__} for {name!r}")


def _weights(names: tuple[str, ...], parts: tuple[AreaMargins, ...], ties: list[Any]) -> tuple[Ints, ...]:
    found: list[list[Ints]] = [[] for _ in parts]
    for i, tie in enumerate(ties):
        if not isinstance(tie, Mapping) or not set(tie) <= set(names) or not tie:
            raise Refused(f"tie {i + 1} must be a mapping from names of tables ({', '.join(names)}) to weights")
        for name, part, into in zip(names, parts, found, strict=True):
            given = whole_numbers(f"tie {i + 1} of {name!r}", array("ties", tie.get(name, 0)))
            if (np.abs(given) >= MOST_WEIGHT).any():
                raise Refused(
                    f"tie {i + 1} of {name!r} must have weights below 2**31 in size: divide by what they share"
                )
            try:
                into.append(np.broadcast_to(given, part.table.shape).ravel().astype(np.int64))
            except ValueError:
                sentence = f"tie {i + 1} of {name!r} must fit the shape {part.table.shape}, found {given.shape}"
                raise Refused(sentence) from None
    cells = [part.table.cells for part in parts]
    weights = tuple(np.array(each, np.int64).reshape(-1, size) for each, size in zip(found, cells, strict=True))
    joined: Floats = np.concatenate(weights, axis=1).astype(np.float64)
    if len(ties) and np.linalg.matrix_rank(joined) < len(ties):
        raise Refused("ties must not follow from each other: leave out those that do")
    return weights


def _told_somewhere(query: LinkedCounts, tie: int) -> bool:
    told = [_telling(part, ties[tie]) for part, ties in zip(query.parts, query.ties, strict=True)]
    return any(all(m is not None for m in by_depth) for by_depth in zip(*told, strict=True))


def _telling(part: AreaMargins, weights: Ints) -> list[int | None]:
    """Return for each depth the first of its margins that tells a weighted sum of the cells; None: none does."""
    if not weights.any():
        return [0] * len(part.keep)
    table = weights.reshape(part.table.shape)
    axes = {a for a in range(table.ndim) if np.ptp(table, axis=a).any()}
    return [next((m for m, kept in enumerate(here) if axes <= set(kept)), None) for here in part.keep]


def _placed(part: AreaMargins, weights: Ints, margin: int | None, nodes: Ints) -> csr_array[Any]:
    """Return the weighted sum of the cells of each node as a row on the outputs, by one of its margins."""
    if margin is None or not weights.any():
        return csr_array((nodes.size, part.n), dtype=np.int64)
    depth = int(part.hierarchy.depth[nodes[0]])
    kept = part.keep[depth][margin]
    at = part.groups.index((depth, kept))
    table = weights.reshape(part.table.shape)
    row = table[tuple(slice(None) if a in kept else 0 for a in range(table.ndim))].ravel()
    entry = np.flatnonzero(row)
    column = (part.starts[nodes] + part.places[at][1])[:, None] + entry
    place = np.repeat(np.arange(nodes.size), entry.size)
    return csr_array((np.tile(row[entry], nodes.size), (place, column.ravel())), shape=(nodes.size, part.n))


def _cells(part: AreaMargins, cells: Any) -> Ints:
    counted = array("cells", cells)
    if counted.size != part.cells:
        raise Refused(f"cells must have {part.cells} entries, found {counted.size}")
    return whole_numbers("cells", counted).ravel()
