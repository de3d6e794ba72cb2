"""What the statements of a job protect, column by column (THEORY §12), before anything is calibrated and after."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from holdfast.arguments import Refused
from holdfast.domains import Cube
from holdfast.privacy import Guarantee
from holdfast.privacy.composition import for_records
from holdfast.privacy.odds import amounts, guessed_right, in_hundred
from holdfast.privacy.protection import Protected, Protection, counted, possible_cells, together_of
from holdfast.privacy.words import Learnable
from holdfast.queries.co_changes.by_column import CoChanges, Column, alike
from holdfast.queries.co_changes.cube import Margins, complete_margins, records_of_axes
from holdfast.queries.margin_counts import MarginCounts
from holdfast.queries.neighbours import ADD_REMOVE, REPLACE_ONE
from holdfast.release.job.table import Table
from holdfast.release.table.holding import Holding
from holdfast.release.table.shape import Layout
from holdfast.release.table.wording import NOT_COVERED, words_about

#: How a statement is made of those of all tables, and what it says about so many records, or persons.
Composed = Callable[[list[Guarantee]], Guarantee]
About = Callable[..., Guarantee | None]
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


def needed(tables: Sequence[tuple[Layout, Holding]], kind: str) -> list[tuple[CoChanges, ...]]:
    """How many records must change together, for the columns of each table; nothing where no figure is exact."""
    joint = joint_records(tables, kind) if sum(bool(holding.exact) for _, holding in tables) > 1 else None
    result: list[tuple[CoChanges, ...]] = []
    for laid, holding in tables:
        system = None if holding.all is None else holding.all.system(laid.query.n)
        if system is None or not system.invariants.count or system.branches:
            result.append(())
        elif joint is not None:
            result.append(tuple(alike(column, kind, joint[column.name]) for column in record_columns(laid)))
        else:
            result.append(together_of(laid.query, system, kind, record_columns(laid)))
    return result


def joint_records(tables: Sequence[tuple[Layout, Holding]], kind: str) -> dict[str, int | None] | None:
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

    found_all = records_of_axes(tuple(shape.values()), numbers(kept), numbers(asked))
    times = 2 if kind == ADD_REMOVE else 1
    return (
        None
        if found_all is None
        else {n: None if k is None else k * times for n, k in zip(names, found_all, strict=True)}
    )


def most(found: Sequence[tuple[CoChanges, ...]]) -> int:
    """k*: the least number of records that can change everything that can change at all; 1 where nothing is exact."""
    return max((each.records or 1 for table in found for each in table), default=1)


def protection_of(about: About, together: Sequence[CoChanges], kept: int) -> Protection | None:
    """What statements about so many records protect; None where no figure is exact. `kept`: records of one person."""
    if not together:
        return None
    numbers = sorted({each.records for each in together if each.records})
    statements = {k: about(k * kept) for k in numbers}
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
            together = counted(most_needed, protects.kind, protects.kept)
            told = (
                f"{', '.join(left)} {'is' if len(left) == 1 else 'are'} not covered by the promise that the budget "
                f"counts: some values change only with up to {together} together, and that is hidden less strongly"
            )
            sentences.append(words_about(table.name, told))
        unknown = [row.column for row in protects.rows if row.together.undecided]
        if unknown:
            whom = f"{protects.rows[0].whom}s"
            sentences.append(
                words_about(table.name, f"it is not known how many {whom} change all of {', '.join(unknown)}")
            )
    if len(exact) > 1 and joint_records([(each.layout, each.holding) for each in tables], exact[0][1].kind) is None:
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


# --- can somebody learn it? -------------------------------------------------------------------------------------------
#
# Can somebody learn it? What a statement covers, column by column, and whether somebody is in the data at all.
#
# A statement about all neighbours covers every column: a record that comes or goes for its own amount, and one that
# takes another value for the amount of a replacement, which is a record that goes and one that comes. A statement about
# data that share every exact figure covers only what so many records can change together (THEORY §12).
#

PRESENCE = "Being in the data"


def learnable(statement: Guarantee, tables: Sequence[Table], kept: int, composed: Composed) -> tuple[Learnable, ...]:
    """Say for every column of the records whether somebody can learn it; `kept`: records of one person."""
    names = list(dict.fromkeys(name for table in tables for name in column_names(table.layout)))
    first = _presence(statement)

    @cache
    def about(records: int, kind: str | None = None) -> Guarantee | None:
        parts = [_about(table, records, kept, kind) for table in tables]
        try:
            return composed([part for part in parts if part is not None]) if None not in parts else None
        except Refused:
            return None

    if statement.scope != "invariant-sharing":
        return (first, *(_whole(name, statement, about) for name in names))
    rows = _rows(tables, kept)
    return (first, *(_of_column(name, rows.get(name), statement, about) for name in names))


def _about(table: Table, records: int, kept: int, kind: str | None) -> Guarantee | None:
    """The statement about a table and so many records or persons, which may have been made already."""
    rows = () if table.protects is None or kind is not None else table.protects.rows
    made = (row.statement for row in rows if row.records == records)
    return next(made, None) or table.problem.about(table.mechanism, records * kept, kind)


def _rows(tables: Sequence[Table], kept: int) -> dict[str, Protected]:
    """How many records each column needs beside the exact figures of all tables, where that is known."""
    exact = [table for table in tables if table.holding.exact]
    rows = {row.column: row for table in exact if table.protects is not None for row in table.protects.rows}
    if len(tables) == 1:
        return rows
    kind = tables[0].problem.neighbours.kind
    joint = joint_records([(table.layout, table.holding) for table in tables], kind)
    if joint is None:
        return rows if len(exact) == 1 else {}
    for table in tables:
        if table.protects is None:
            columns = record_columns(table.layout)
            rows |= {
                each.name: Protected(alike(each, kind, joint[each.name]), None, kept)
                for each in columns
                if each.name not in rows
            }
    return rows


def column_names(layout: Layout) -> tuple[str, ...]:
    """The columns by which a table addresses its records."""
    if layout.parts:
        return tuple(dict.fromkeys(name for part in layout.parts for name in column_names(part)))
    added = [] if layout.asked.sum_of is None else [layout.asked.sum_of.column]
    if layout.places is None:
        return (*layout.names, *added)
    several = np.bincount(layout.places.depth) > 1
    levels = (name for name, many in zip(layout.places.levels, several.tolist(), strict=True) if many)
    return (*levels, *layout.asked.axes, *added)


def _presence(statement: Guarantee) -> Learnable:
    if not statement.neighbours.adds:
        return Learnable(PRESENCE, False, f"{NOT_COVERED}, which takes the number of records as known")
    if statement.scope == "invariant-sharing":
        return Learnable(PRESENCE, False, f"{NOT_COVERED} for anybody: exact figures count every record")
    return _hidden(PRESENCE, statement)


def _whole(name: str, statement: Guarantee, about: About) -> Learnable:
    """The answer where all neighbours are compared: a record takes another value when it goes and another comes."""
    if not statement.neighbours.adds:
        return _hidden(name, statement)
    replaced = about(1, REPLACE_ONE) if statement.records == 1 and statement.scope == "all" else None
    if replaced is not None and replaced.scope == "all" and replaced.records == 1:
        return _hidden(name, replaced)
    try:
        all_of_it = for_records(statement, 2 * statement.records)
    except Refused:
        return Learnable(name, False, f"{NOT_COVERED}, which is about records that come or go")
    if statement.records == 1:
        return _hidden(name, all_of_it)
    one = _hidden(name, statement)  # a record that goes and one that comes are two, and so many may change
    return Learnable(name, one.covered, f"{one.answer}; for all records of one person together {_signs(all_of_it)}")


def _hidden(name: str, statement: Guarantee) -> Learnable:
    if statement.scope == "subspace":
        answer = f"hidden in the noisy part alone ({_amount(statement)}), {NOT_COVERED} beside the exact figures"
        return Learnable(name, False, answer)
    if statement.void:
        return Learnable(name, False, NOT_COVERED)
    hardly = in_hundred(statement) == 100
    return Learnable(name, not hardly, f"{'hardly ' * hardly}hidden ({_amount(statement)})")


def _of_column(name: str, row: Protected | None, statement: Guarantee, about: About) -> Learnable:
    """The answer beside exact figures."""
    if row is None or row.together.undecided:
        unknown = "it is not known how many must change together beside the exact figures"
        return Learnable(name, False, f"{NOT_COVERED}: {unknown}")
    together = row.together
    if together.records is None:
        return Learnable(name, False, f"{NOT_COVERED}: beside the exact figures it cannot change")
    never = ""
    if together.fixed_pairs:
        a, b = together.fixed[0]
        never = f", except that nothing hides {a} from {b}" + (" and other pairs" * (together.fixed_pairs > 1))
    if together.records * row.kept <= statement.records:
        best = min((about(together.records) or statement, statement), key=guessed_right)
        whole = _hidden(name, best)
        return Learnable(name, whole.covered and not never, f"{whole.answer}{never}")
    more = about(together.records)
    price = "no amount is known" if more is None or more.void else _signs(more)
    some = "" if together.exact else "at most "
    answer = f"{NOT_COVERED} ({price} when {some}{_change(together.records, row)} together){never}"
    covered = [step for step in together.steps if step.records * row.kept <= statement.records]
    if covered:
        (a, b), (c, d) = covered[0].example, together.steps[-1].example
        answer = f"hidden only in part ({_amount(statement)}), such as {a} from {b}; {c} from {d} is {answer}"
    return Learnable(name, False, answer)


def _change(records: int, row: Protected) -> str:
    number = {2: "two", 3: "three", 4: "four"}.get(records, str(records))
    verb = "change" if row.together.one == 1 else "come or go"
    return f"{number} {row.whom}s {verb}"


def _signs(statement: Guarantee) -> str:
    """How strongly a change is hidden: ε with its δ, or ρ where no ε is stated."""
    signs = "ρ" if statement.epsilon is None else "εδ"
    return ", ".join(f"{sign} {value}" for sign, value in amounts(statement) if sign in signs) or "μ"


def _amount(statement: Guarantee) -> str:
    return f"{_signs(statement)}: at most {in_hundred(statement)} of 100 guesses are right"
