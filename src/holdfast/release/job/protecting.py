"""What the statements of a job protect, column by column (THEORY §12), before anything is calibrated and after."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from holdfast.domains import Cube
from holdfast.mechanism.mechanism import Mechanism
from holdfast.privacy import Guarantee
from holdfast.privacy.protection import Protected, Protection, counted, possible_cells, together_of
from holdfast.queries.margin_counts import MarginCounts
from holdfast.queries.neighbours import ADD_REMOVE
from holdfast.queries.together.cube import Margins, complete_margins, cube_together
from holdfast.queries.together.together import Column, Groups, Together, told
from holdfast.release.job.table import Table
from holdfast.release.table.domain import Layout
from holdfast.release.table.holding import Holding
from holdfast.release.table.wording import words_about

#: Said where tables have exact figures that cannot be looked at together.
EACH_ALONE = (
    "how many records must change together is counted for each table by itself: where several tables have exact "
    "figures, more may be needed to keep them all"
)


def record_columns(laid: Layout) -> tuple[Column, ...]:
    """The columns by which a table addresses its records, with the value of every cell in each."""
    shape = [key.size for key in laid.keys]
    points = np.unravel_index(np.arange(int(np.prod(shape, dtype=np.int64))), shape)
    if laid.places is None:
        return tuple(
            Column(name, point, key.values[0]) for name, key, point in zip(laid.names, laid.keys, points, strict=True)
        )
    tree, found = laid.places, []
    node = tree.leaves.copy()
    for depth in range(len(tree.levels) - 1, -1, -1):
        node = np.where(tree.depth[node] > depth, tree.parents[node], node)
        if (node != node[0]).any():
            found.append(Column(tree.levels[depth], node[points[0]], tree.names))
    categories = zip(laid.asked.axes, laid.keys[1:], points[1:], strict=True)
    return (*reversed(found), *(Column(name, point, key.values[0]) for name, key, point in categories))


def needed(tables: Sequence[tuple[Layout, Holding]], kind: str) -> list[tuple[Together, ...]]:
    """How many records must change together, for the columns of each table; nothing where no figure is exact."""
    joint = _joint(tables, kind) if sum(bool(found.exact) for _, found in tables) > 1 else None
    result: list[tuple[Together, ...]] = []
    for laid, found in tables:
        system = None if found.all is None else found.all.system(laid.query.n)
        if system is None or not system.invariants.count or system.branches:
            result.append(())
        elif joint is not None:
            result.append(tuple(_alike(column, kind, joint[column.name]) for column in record_columns(laid)))
        else:
            result.append(together_of(laid.query, system, kind, record_columns(laid)))
    return result


def _joint(tables: Sequence[tuple[Layout, Holding]], kind: str) -> dict[str, int | None] | None:
    """The records that each column needs so that the exact margins of all tables stay; None where not all are cubes."""
    shape: dict[str, int] = {}
    kept: set[frozenset[str]] = set()
    asked: set[frozenset[str]] = set()
    for laid, found in tables:
        system = None if found.all is None else found.all.system(laid.query.n)
        if (
            laid.places is not None
            or laid.asked.recode
            or (system is not None and possible_cells(laid.query, system) is not None)
        ):
            return None
        cube = Cube([key.size for key in laid.keys], laid.names)
        shape |= dict(zip(cube.names, cube.shape, strict=True))
        margins = laid.query.keep if isinstance(laid.query, MarginCounts) else (tuple(range(len(cube.shape))),)
        asked |= {frozenset(cube.names[a] for a in margin) for margin in margins}
        if system is not None and system.invariants.count:
            exact = complete_margins(cube, system.invariants.A @ laid.query.columns)
            if exact is None:
                return None
            kept |= {frozenset(cube.names[a] for a in margin) for margin in exact}
    names = list(shape)

    def numbers(sets: set[frozenset[str]]) -> Margins:
        return tuple(tuple(a for a, name in enumerate(names) if name in each) for each in sets)

    found_all = cube_together(tuple(shape.values()), numbers(kept), numbers(asked))
    times = 2 if kind == ADD_REMOVE else 1
    return (
        None
        if found_all is None
        else {n: None if k is None else k * times for n, k in zip(names, found_all, strict=True)}
    )


def _alike(column: Column, kind: str, records: int | None) -> Together:
    every = np.full(1, records or 0, np.int64)
    return told(column, kind, Groups((np.unique(column.codes),), every, None, every))


def most(found: Sequence[tuple[Together, ...]]) -> int:
    """k*: the least number of records that can change everything that can change at all; 1 where nothing is exact."""
    return max((each.records or 1 for table in found for each in table), default=1)


def protection_of(mechanism: Mechanism, together: Sequence[Together], kept: int) -> Protection | None:
    """What the statements of a mechanism protect; None where no figure is exact. `kept`: records of one person."""
    if not together:
        return None
    numbers = sorted({each.records for each in together if each.records})
    statements = {k: mechanism.about(k * kept) for k in numbers}
    rows = tuple(Protected(each, statements.get(each.records or 0), kept) for each in together)
    return Protection(together[0].kind, rows, kept)


def outside_words(tables: Sequence[Table], promised: Guarantee) -> list[str]:
    """Say what stays outside the statement that the budget counts, and what is not known."""
    sentences = []
    exact = [(table, table.protects) for table in tables if table.protects is not None]
    for table, protects in exact:
        left = protects.outside(promised.neighbours) if promised.scope == "invariant-sharing" else ()
        if left:
            most_needed = max(row.records or 0 for row in protects.rows)
            told = (
                f"the budget counts the statement about {promised.neighbours}, and {', '.join(left)} stay"
                f"{'s' * (len(left) == 1)} outside: some of the values change only with up to "
                f"{counted(most_needed, protects.kind, protects.kept)} together, which costs more"
            )
            sentences.append(words_about(table.name, told))
        unknown = [row.column for row in protects.rows if row.together.undecided]
        if unknown:
            whom = f"{protects.rows[0].whom}s"
            sentences.append(
                words_about(table.name, f"it is not known how many {whom} change all of {', '.join(unknown)}")
            )
    if len(exact) > 1 and _joint([(each.layout, each.holding) for each in tables], exact[0][1].kind) is None:
        sentences.append(EACH_ALONE)
    return sentences


def in_words(tables: Sequence[Table]) -> list[str]:
    """Say for every column how many records must change together, and how strongly that is hidden."""
    many = len(tables) > 1
    return [
        f"{f'{table.name}, ' if many else ''}{row}."
        for table in tables
        if table.protects is not None
        for row in table.protects.rows
    ]
