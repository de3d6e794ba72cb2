"""What a statement protects, column by column (THEORY §12).

A statement about data that share every exact figure protects only what so many records can change together while these
figures stay. For every column: how many that takes before any of its values can become any other, and how strongly
such changes are hidden.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arguments import LARGEST, Refused, listed
from holdfast.arrays import Bools
from holdfast.constraints import System
from holdfast.constraints.system.null_space import TreeShape
from holdfast.constraints.system.parts import EQUALITIES, Part
from holdfast.constraints.system.rows import stacked
from holdfast.domains import Cube, Hierarchy
from holdfast.privacy.guarantee import Guarantee
from holdfast.privacy.words import DIGITS, figure
from holdfast.queries import Neighbours, Query
from holdfast.queries.areas.area_margins import AreaMargins
from holdfast.queries.areas.tree_counts import TreeCounts
from holdfast.queries.co_changes.by_column import CoChanges, Column, records_together
from holdfast.queries.neighbours import ADD_REMOVE

COLUMNS = "a sequence of Column values"
#: Outputs of a query without columns of its own that take their role.
MOST_OUTPUTS = 64


@dataclass(frozen=True)
class Protected:
    """One column: how many records must change together, and the statement about so many; None where there is none.

    `kept` beyond 1: so many records of a person are kept at most, and `records` counts persons; the statement is about
    all of their records.
    """

    together: CoChanges
    statement: Guarantee | None
    kept: int = 1

    @property
    def column(self) -> str:
        return self.together.column

    @property
    def records(self) -> int | None:
        """With so many records any value becomes any other that it can become; None: none can."""
        return self.together.records

    @property
    def epsilon(self) -> float | None:
        """The ε of such changes, where one is stated."""
        return None if self.statement is None else self.statement.epsilon

    @property
    def in_columns(self) -> tuple[str, str, str, str]:
        """The row in words: column, records, how strongly such changes are hidden, what one record alone changes."""
        together = self.together
        hidden = "not stated" if self.statement is None else amount(self.statement, 3)
        needs = f"{'' if together.exact else 'at most '}{counted(together.records or 0, together.kind, self.kept)}"
        if together.records is None:
            return self.column, _needed(self), "-", "nothing"
        alone = _alone(self) or ["everything"]
        tidy = alone[0].removeprefix(f"{self.by_itself} changes ").removesuffix(" of it")
        return self.column, needs + _rest(self), hidden, "; ".join([tidy, *_fixed(self)])

    @property
    def whom(self) -> str:
        """What is counted: records or persons."""
        return "record" if self.kept == 1 else "person"

    @property
    def by_itself(self) -> str:
        """One record or person that changes; where they come and go these are two, one that goes and one that comes."""
        if self.together.kind == ADD_REMOVE:
            return f"one {self.whom} that becomes another (one goes, one comes)"
        return f"one {self.whom} alone"

    def as_mapping(self) -> dict[str, Any]:
        numbers = ("epsilon", "delta", "rho")
        said = {name: None if self.statement is None else getattr(self.statement, name) for name in numbers}
        return self.together.as_mapping() | said | {"in_words": str(self)}

    def __str__(self) -> str:
        return f"{self.column}: {'; '.join([_needed(self), *_alone(self), *_fixed(self)])}"


@dataclass(frozen=True)
class Protection:
    """The table of all columns. `kind` is the relation in which records are counted, or persons of `kept` records."""

    kind: str
    rows: tuple[Protected, ...]
    kept: int = 1

    @property
    def records(self) -> int | None:
        """k*: the least number of records that can change everything that can change at all; None: nothing can."""
        return max((row.records for row in self.rows if row.records is not None), default=None)

    @property
    def statement(self) -> Guarantee | None:
        return next((row.statement for row in self.rows if row.records == self.records), None)

    @property
    def exact(self) -> bool:
        """Whether no number of records in the table could be smaller."""
        return all(row.together.exact for row in self.rows)

    def outside(self, neighbours: Neighbours) -> tuple[str, ...]:
        """The columns of which some values need more records than a statement about these neighbours covers."""
        neighbours = Neighbours.of(neighbours)
        times = 2 if self.kind == ADD_REMOVE and not neighbours.adds else 1
        covered = neighbours.records * times
        return tuple(row.column for row in self.rows if row.records is not None and row.records * self.kept > covered)

    def as_mapping(self) -> dict[str, Any]:
        return {"kind": self.kind, "records": self.records, "columns": [row.as_mapping() for row in self.rows]}

    def __str__(self) -> str:
        heading = "Records that must change together before a value can become another, while every exact figure stays:"
        return "\n".join([heading, *(f"  {row}." for row in self.rows)])


def protection(
    query: Query,
    system: System | None,
    kind: str,
    columns: tuple[Column, ...],
    about: Callable[[int], Guarantee | None],
) -> Protection:
    """Return what statements protect, column by column; `about(k)` states what holds for k records.

    Bounds other than zeros are left out of the count of records: where they bind, more records may be needed.
    """
    named = tuple(listed("columns", columns, COLUMNS))
    if not all(isinstance(each, Column) for each in named):
        raise Refused(f"columns must be {COLUMNS}")
    needed = together_of(query, system, kind, named)
    counts = {each.records for each in needed if each.records is not None}
    statements = {k: about(k) for k in sorted(counts)}
    return Protection(kind, tuple(Protected(each, statements.get(each.records or 0)) for each in needed))


def together_of(query: Query, system: System | None, kind: str, columns: tuple[Column, ...]) -> tuple[CoChanges, ...]:
    """Return how many records of each column must change together, whatever the noise is."""
    rows = sparse.csr_array((0, query.n), dtype=np.int64)
    if system is not None and not system.branches:
        kept = [part.rows for part in system.parts if part.rows is not None and part.kind in ("invariant", *EQUALITIES)]
        own = [part.rows for part in system.parts if part.kind == "consistent" and _is_own(query, part)]
        rows = stacked([each for each in kept if not any(each is other for other in own)], query.n).A
    return records_together(query, rows, kind, columns, possible_cells(query, system))


def _is_own(query: Query, part: Part) -> bool:
    """Whether a hierarchy adds up because the query counts on it."""
    source = part.source
    if query.tree is None or not isinstance(source, TreeShape) or query.n != query.tree.n * source.by:
        return False
    return source.is_of(query.tree)


def possible_cells(query: Query, system: System | None) -> Bools | None:
    """Which cells can hold records: not those that add to a figure which is 0 in every dataset; None: all can."""
    if system is None or query.cells is None:
        return None
    zero = np.asarray(system.upper <= 0, dtype=bool) & np.asarray(system.upper < LARGEST, dtype=bool)
    # A figure that is at most 0 is 0 where every record raises it; where records lower it, it may be anything below.
    rows = [(sparse.csr_array(query.columns.tocsr()[np.flatnonzero(zero)]), False)] if zero.any() else []
    for part in system.parts:
        if part.kind in ("fixed", "equals") and part.rows is not None:
            zeros = part.rows.chosen(np.asarray(part.rows.b == 0, dtype=bool))
            rows.append((sparse.csr_array(stacked([zeros], query.n).A @ query.columns), True))
    impossible = np.zeros(query.cells, dtype=bool)
    for block, exactly in rows:
        block.eliminate_zeros()
        count = np.diff(block.indptr)
        filled = np.flatnonzero(count > 0)
        if filled.size == 0:
            continue
        least = np.minimum.reduceat(block.data, block.indptr[filled])
        most = np.maximum.reduceat(block.data, block.indptr[filled])
        one_sign = np.zeros(count.size, dtype=bool)
        one_sign[filled] = (least > 0) | ((most < 0) & exactly)
        impossible[block.indices[np.repeat(one_sign, count)]] = True
    return ~impossible if impossible.any() else None


def columns_of(query: Query) -> tuple[Column, ...]:
    """Return the columns of a query: levels and categories, axes, cells, or else its first outputs."""
    if query.cells is None:
        return ()
    if isinstance(query, AreaMargins):
        return _of_areas(query.hierarchy, query.table)
    if isinstance(query, TreeCounts):
        return _of_areas(query.hierarchy, query.table or Cube(query.by, ["category"]))
    if query.cube is not None and query.cube.shape != (query.cells,):
        points = query.cube.coordinates(np.arange(query.cells))
        return tuple(
            Column.of(name, points[:, a], range(size))
            for a, (name, size) in enumerate(zip(query.cube.names, query.cube.shape, strict=True))
        )
    if query.identity:
        name = "cell" if query.cube is None else query.cube.names[0]
        return (Column(name, np.arange(query.cells), query.labels),)
    return tuple(_of_output(query, i) for i in range(min(query.n, MOST_OUTPUTS)))


def _of_areas(tree: Hierarchy, table: Cube) -> tuple[Column, ...]:
    """The levels of a hierarchy that tell leaves apart, and the axes of the cube that tell cells apart."""
    node, found = tree.leaves.copy(), []
    for depth in range(len(tree.levels) - 1, -1, -1):  # leaves above a level stand for themselves there
        node = np.where(tree.depth[node] > depth, tree.parents[node], node)
        if (node != node[0]).any():
            found.append(Column(tree.levels[depth], np.repeat(node, table.cells), tree.names))
    points = np.tile(table.coordinates(np.arange(table.cells)), (tree.n_leaves, 1)) if table.cells > 1 else None
    axes = [a for a, size in enumerate(table.shape) if size > 1]
    named = [] if points is None else [Column.of(table.names[a], points[:, a], range(table.shape[a])) for a in axes]
    return (*reversed(found), *named)


def _of_output(query: Query, i: int) -> Column:
    """An output in the role of a column: its values are what records add to it."""
    added = np.asarray(query.columns.tocsr()[[i]].toarray()).ravel()
    values, codes = np.unique(added, return_inverse=True)
    return Column.of(str(query.labels[i]), codes.ravel(), values.tolist())


def _needed(row: Protected) -> str:
    together = row.together
    if together.records is None:
        return f"no number of {row.whom}s changes it" if not together.undecided else _undecided(row)
    some = "" if together.exact else "at most "
    strength = "" if row.statement is None else f", {amount(row.statement)}"
    return f"{some}{counted(together.records, together.kind, row.kept)}{strength}{_rest(row)}"


def _rest(row: Protected) -> str:
    return f" ({_undecided(row)})" if row.together.undecided else ""


def _undecided(row: Protected) -> str:
    together = row.together
    pairs = "pair" if together.undecided == 1 else "pairs"
    beyond = counted(together.beyond, together.kind, row.kept)
    return f"{together.undecided:,} {pairs} of values need more than {beyond}, or never change"


def _alone(row: Protected) -> list[str]:
    """What one record or person changes alone, where that is not everything."""
    together, alone = row.together, row.together.alone
    if together.records is None or together.records <= together.one:
        return []
    if alone is None:
        return [f"{row.by_itself} changes nothing of it"]
    first, last = alone.example, together.steps[-1].example
    share = 100 * alone.pairs // together.pairs
    often = f"{share or 'fewer than 1'} of 100 pairs of values"
    return [f"{row.by_itself} changes {first[0]} into {first[1]}, but not {last[0]} into {last[1]} ({often})"]


def _fixed(row: Protected) -> list[str]:
    together = row.together
    if not together.fixed_pairs or together.records is None:
        return []
    shown = ", ".join(f"{a} and {b}" for a, b in together.fixed)
    more = (
        f" and {together.fixed_pairs - len(together.fixed)} more" if together.fixed_pairs > len(together.fixed) else ""
    )
    return [f"no number of {row.whom}s changes {shown}{more} into each other"]


def counted(records: int, kind: str, kept: int = 1) -> str:
    """Write a number of records as the relation counts them, or of persons of whom so many records are kept."""
    verb = "added or removed" if kind == ADD_REMOVE else "replaced"
    if kept > 1:
        return f"{records} person{'s' * (records != 1)} with up to {kept} records each {verb}"
    return f"{records} record{'s' * (records != 1)} {verb}"


def amount(statement: Guarantee, digits: int = DIGITS) -> str:
    if statement.void:
        return "nothing promised"
    words = [] if statement.epsilon is None else [f"epsilon {figure(statement.epsilon, digits)}"]
    if statement.delta:
        words.append(f"delta {figure(statement.delta, digits)}")
    if statement.epsilon is None and statement.rho is not None:
        words.append(f"rho {figure(statement.rho, digits)}")
    return ", ".join(words)
