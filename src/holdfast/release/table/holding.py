"""What must hold in a table: from the words of the spec to facts for the certificate, and to constraints."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, reduce
from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arguments import Refused
from holdfast.arrays import Bools, Ints
from holdfast.constraints import (
    Constraint,
    at_least,
    between,
    consistent,
    equals,
    exact_margins,
    exact_nodes,
    fixed,
    invariant,
    nonnegative,
    ordered,
)
from holdfast.constraints.system.rows import Names
from holdfast.domains.intervals import output_parents
from holdfast.queries import Query
from holdfast.release.facts import Bound, Figure, Holds, Side, Sum
from holdfast.release.spec.places import At
from holdfast.release.spec.rules import Exactly, Hold
from holdfast.release.storage.tables import Texts
from holdfast.release.table.shape import Axes, Item, Layout
from holdfast.release.table.wording import in_words_of_the_spec


def both(*several: Constraint | None) -> Constraint | None:
    """Everything together; None: nothing."""
    listed = [each for each in several if each is not None]
    return reduce(lambda one, other: one & other, listed) if listed else None


def titled(constraint: Constraint, texts: list[str]) -> Constraint:
    """Call the rows of a constraint by these names."""
    part = constraint.parts[0]
    assert part.rows is not None
    literal = (text.replace("{", "{{").replace("}", "}}") for text in texts)
    titles = Names(tuple((text, np.zeros((1, 0), dtype=np.int64)) for text in literal))
    return replace(constraint, parts=(replace(part, rows=replace(part.rows, names=titles)),))


def bounded(bound: Bound, n: int) -> Constraint:
    low, high = (None if limit is None else Fraction(limit) for limit in (bound.low, bound.high))
    return between(low, high, at=None if len(bound.rows) == n else np.array(bound.rows, dtype=np.int64))


def weighted(asked: Sum, n: int) -> Constraint:
    """A weighted sum of rows that has a value, or at least one; in whole weights."""
    weights = [Fraction(weight) for weight in asked.weights]
    scale = math.lcm(*(weight.denominator for weight in weights))
    whole = np.array([int(weight * scale) for weight in weights], dtype=np.int64)
    row = sparse.csr_array((whole, asked.rows, [0, len(asked.rows)]), shape=(1, n))
    return (equals if asked.low == asked.high else at_least)(row, [Fraction(asked.low or 0) * scale])


def empty(rows: Sequence[int] | Ints) -> Constraint | None:
    return fixed(rows, np.zeros(len(rows), dtype=np.int64)) if len(rows) else None


def not_implied(query: Query, sums: Any) -> Ints:
    """The exact figures of a hierarchy that no others below them add up to, each a row of outputs."""
    every = np.arange(sums.shape[0])
    if query.tree is None or np.unique(sums.indices).size < sums.nnz:
        return every
    parents = output_parents(query.tree.parents, query.n // query.tree.n)
    owner = np.full(query.n + 1, -1, dtype=np.int64)  # the last place: no output
    owner[sums.indices] = np.repeat(every, np.diff(sums.indptr))
    above, inside = owner[parents], owner[:-1] >= 0
    least, most = np.full(every.size, query.n), np.full(every.size, -1)
    np.minimum.at(least, owner[:-1][inside], above[inside])
    np.maximum.at(most, owner[:-1][inside], above[inside])
    hangs = inside & (least == most)[owner[:-1]]  # all outputs of its figure are below those of one figure
    children = np.bincount(above[above >= 0], minlength=every.size)
    known = np.bincount(above[hangs & (above >= 0)], minlength=every.size)
    return np.flatnonzero((children == 0) | (known < children))


def exact_rows(query: Query, margins: Sequence[tuple[str, ...] | None], sums: Any) -> Constraint:
    """Exact figures, each a sum of outputs: nodes with all their categories, margins of cells, or any other."""
    tree, cube = query.tree, query.cube
    if tree is not None and sums.nnz == sums.shape[0]:
        by = query.n // tree.n
        nodes, count = np.unique(np.unique(sums.indices) // by, return_counts=True)
        if (count == by).all():
            return invariant(exact_nodes(tree, nodes, by))
    if query.identity and cube is not None:
        return invariant(exact_margins(cube.shape, [cube.axes(axes) for axes in margins if axes is not None]))
    return invariant(sums[not_implied(query, sums)])


def added(rows: Ints, entry: Ints, n: int) -> Any:
    """The 0/1 rows that sum outputs (places, entries) to a margin of every place; `entry`: to which each entry adds."""
    size = int(entry.max()) + 1
    row = (np.arange(len(rows))[:, None] * size + entry).ravel()
    order = np.argsort(row, kind="stable")
    ends = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(rows) * size))])
    ones = np.ones(row.size, dtype=np.int64)
    return sparse.csr_array((ones, rows.ravel()[order], ends), shape=(len(rows) * size, n))


def sums_of_rows(rows: Sequence[Sequence[int]], n: int) -> Any:
    ends = np.concatenate([[0], np.cumsum([len(each) for each in rows])])
    indices = np.concatenate([np.zeros(0, np.int64), *(np.array(each, dtype=np.int64) for each in rows)])
    return sparse.csr_array((np.ones(indices.size, dtype=np.int64), indices, ends), shape=(len(rows), n))


def as_certified(holds: Holds, query: Query, exact: Constraint | None) -> tuple[Constraint | None, Constraint | None]:
    """The equalities, with exact figures, and the inequalities that a certificate lists.

    Sides of which only one holds bound nothing for certain.
    """
    n, linear = query.n, [(each, each.low == each.high) for each in holds.linear]
    equal = both(
        consistent(query) if holds.consistent and not query.identity else None,
        *(weighted(each, n) for each, same in linear if same),
        empty(holds.impossible),
        exact,
    )
    unequal = both(
        nonnegative() if holds.nonnegative else None,
        *(bounded(each, n) for each in holds.bounds),
        *(ordered(chain) for chain in holds.orders),
        *(weighted(each, n) for each, same in linear if not same and each.low is not None),
    )
    return equal, unequal


#: Tables without places that have more rows than this are described by their names alone, not row by row.
MOST_LISTED = 10_000


def exactly(layout: Layout, items: list[tuple[Item | Exactly, At]]) -> tuple[Constraint, list[Figure]]:
    """Return the invariant of what is published exactly, and the figures: names, and the outputs behind each."""
    sums, figures = [], list[Figure]()
    few = layout.places is not None or layout.query.n <= MOST_LISTED
    for item, at in items:
        name, nodes, axes = layout.kind.exact(layout, item, at)
        _refuse_recoded(layout, nodes, axes, at)
        if layout.places is None and name in [figure.figure for figure in figures]:
            raise Refused(f"the margin {name!r} is named twice as exact: name it once")
        here = at["of"] if isinstance(item, Exactly) else at
        matrix = _as_they_are(layout, nodes, here) if axes is None else sums_to(layout, nodes, axes, here)
        rows = np.split(matrix.indices, matrix.indptr[1:-1]) if few else []
        names = None if axes is None or layout.cube is None else [layout.cube.all_names[a] for a in axes]
        figures.append(Figure(figure=name, axes=names, rows=[each.tolist() for each in rows]))
        sums.append(matrix)
    every = sparse.csr_array(sparse.vstack(sums, format="csr"))
    constraint = exact_rows(layout.query, [None if each.axes is None else tuple(each.axes) for each in figures], every)
    kept = constraint.parts[0].rows
    assert kept is not None
    single = layout.tree is not None and every.nnz == every.shape[0]
    listed = [rows for figure in figures for rows in figure.rows]
    outputs = [[row] for row in np.unique(every.indices).tolist()] if single else listed
    if len(outputs) == every.shape[0]:
        outputs = [outputs[row] for row in not_implied(layout.query, every).tolist()]
    texts = [_in_common(layout, each) for each in outputs]
    return (titled(constraint, texts) if len(texts) == kept.count else constraint), figures


def _as_they_are(layout: Layout, nodes: Ints | None, at: At) -> Any:
    outputs = layout.measured(nodes, None, at)
    return sparse.csr_array(
        (np.ones(outputs.size, np.int64), outputs, np.arange(outputs.size + 1)), shape=(outputs.size, layout.query.n)
    )


def sums_to(layout: Layout, nodes: Ints | None, axes: Axes, at: At) -> Any:
    """Return the 0/1 rows that sum outputs to a margin of places, depth by depth, from the smallest that tells it."""
    cube = layout.cube
    assert cube is not None
    depths = [0] if layout.places is None else (np.unique(layout.places.depth[nodes]) + 1).tolist()
    parts = []
    for depth in depths:
        holding = [
            level
            for level, margin in enumerate(layout.margins)
            if margin.places == depth and cube.tells(layout.kept[level], axes)
        ]
        if not holding:
            where = "the margins that are measured" if layout.places is None else f"what is measured at {depth!r}"
            there = "to them"
            if layout.places is not None:
                where, there = f"what is measured at {layout.places.levels[depth - 1]!r}", "there"
            name = cube.margin_name(axes)
            sentence = f"the margin {name!r} does not follow from {where}: add it {there}"
            raise at.refuse(sentence, name, layout.levels)
        level = min(holding, key=lambda each: (len(layout.kept[each]), layout.rows(each).shape[1]))
        mine = slice(None) if nodes is None else np.isin(layout.nodes(level), nodes)
        parts.append(added(layout.rows(level)[mine], cube.within(layout.kept[level], axes), layout.query.n))
    return sparse.csr_array(sparse.vstack(parts, format="csr"))


def _refuse_recoded(layout: Layout, nodes: Ints | None, axes: Axes | None, at: At) -> None:
    """Refuse exact groups of values: what they tell beside other tables is written down by columns of the records."""
    cube = layout.cube
    if cube is None or not layout.asked.recode:
        return
    depths = set() if nodes is None or layout.places is None else set((layout.places.depth[nodes] + 1).tolist())
    there = (kept for kept, margin in zip(layout.kept, layout.margins, strict=True) if margin.places in depths)
    coarse = [a for each in (there if axes is None else [axes]) for a in each if a >= len(cube.shape)]
    if coarse:
        name, own = cube.all_names[coarse[0]], cube.names[cube.own(coarse[0])]
        sentence = f"exact figures are of columns of the records: name a margin with {own!r} in place of {name!r}"
        raise at.refuse(sentence, found=name)


def _in_common(layout: Layout, outputs: list[int]) -> str:
    """The name of an exact figure: that of its output, or the names that the outputs which add up to it share."""
    if len(outputs) == 1:
        return str(layout.query.labels[outputs[0]])
    first = (texts[outputs] for name, texts in layout.columns.items() if name != "level")
    return " / ".join(str(texts[0]) for texts in first if texts[0] is not None and (texts == texts[0]).all()) or "total"


# --- rows that are written besides the outputs ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Derived:
    """Further rows: their names, the 0/1 matrix (rows, outputs) that adds them up, and which are exact as they are.

    `titles` name groups of such rows, as levels do with outputs, and `group_of` says of which group each is.
    """

    columns: dict[str, Texts]
    sums: Any
    exact: Bools
    titles: tuple[str, ...]
    group_of: Ints

    @property
    def labels(self) -> list[str]:
        rows = zip(*(texts.tolist() for name, texts in self.columns.items() if name != "level"), strict=True)
        return [" / ".join(str(text) for text in row if text is not None) or "total" for row in rows]


def derived(layout: Layout, exact: Sequence[Figure]) -> Derived | None:
    """Return the rows that are written besides the outputs; None where there are none.

    They are exact margins that are not measured, and where categories divide places the totals of all places.
    """
    sums = [figure for figure in exact if figure.axes is not None and figure.figure not in layout.levels]
    if not layout.kind.adds_rows or not (sums or layout.by > 1):
        return None
    parts, n = [], layout.query.n
    if layout.tree is not None:
        nodes = layout.tree.n
        known = np.zeros(nodes, dtype=bool)
        known[[rows[0] // layout.by for figure in sums if not figure.axes for rows in figure.rows]] = True
        totals = sparse.csr_array(
            (np.ones(n, np.int64), np.arange(n), np.arange(nodes + 1) * layout.by), shape=(nodes, n)
        )
        titles = tuple(f"{level}, total" for level in layout.levels)
        parts.append(Derived(_names(layout, totals, []), totals, known, titles, layout.tree.depth))
        sums = [figure for figure in sums if figure.axes]
    for figure in sums:
        axes, cube = list(figure.axes or ()), layout.cube
        assert cube is not None
        rows = (
            sums_of_rows(figure.rows, layout.query.n)
            if figure.rows
            else sums_to(layout, None, cube.axes(axes), layout.at)
        )
        columns = _names(layout, rows, axes)
        if layout.tree is None:
            columns["level"][:] = figure.figure
        count = rows.shape[0]
        parts.append(Derived(columns, rows, np.ones(count, bool), (figure.figure,), np.zeros(count, np.int64)))
    first = np.cumsum([0, *(len(part.titles) for part in parts)])
    return Derived(
        {name: np.concatenate([part.columns[name] for part in parts]) for name in layout.columns},
        sparse.vstack([part.sums for part in parts], format="csr"),
        np.concatenate([part.exact for part in parts]),
        tuple(title for part in parts for title in part.titles),
        np.concatenate([part.group_of + start for part, start in zip(parts, first[:-1], strict=True)]),
    )


def _names(layout: Layout, sums: Any, axes: Sequence[str]) -> dict[str, Texts]:
    """The names of sums of outputs: their places, and these axes."""
    first = sums.indices[sums.indptr[:-1]]
    columns = {name: texts[first].copy() for name, texts in layout.columns.items()}
    for name in layout.cube.all_names if layout.cube is not None else ():
        if name not in axes:
            columns[name][:] = None
    return columns


@dataclass(eq=False)
class Holding:
    """What must hold: equalities and exact figures, bounds, cells that are always empty, and the facts of all this.

    `account` collects the facts while the rules are read; `all` is everything together, once everything was.
    """

    account: dict[str, Any]
    equal: Constraint | None = None
    unequal: Constraint | None = None
    impossible: Bools | None = None
    all: Constraint | None = None
    exact: tuple[str, ...] = field(default=())

    @cached_property
    def holds(self) -> Holds:
        return Holds(**self.account)


def _nothing(*, whole: bool) -> dict[str, Any]:
    listed: dict[str, Any] = {
        name: [] for name in ("bounds", "orders", "linear", "either", "impossible", "exact", "sums")
    }
    return {"consistent": False, "nonnegative": False, "whole": whole, **listed}


def nothing_held() -> Holding:
    """What a linked table holds by itself: all that it holds, it holds with the others."""
    return Holding(_nothing(whole=True))


def holding(layout: Layout) -> Holding:
    found = Holding(_nothing(whole=layout.asked.numbers == "whole"))
    exact: list[tuple[Item | Exactly, At]] = []
    for i, rule in enumerate(layout.asked.hold):
        at = layout.at["hold"][i]
        try:
            if rule.rule == "consistent":
                found.account["consistent"] = True
                if not layout.query.identity:  # cells alone have nothing to add up to
                    found.equal = both(found.equal, consistent(layout.query))
                    found.account["sums"] = layout.kind.sums(layout)
            elif rule.rule == "impossible":
                for j, item in enumerate(rule.impossible):
                    cells = layout.cells(item, at["impossible"][j])
                    found.impossible = cells if found.impossible is None else found.impossible | cells
            elif rule.rule == "exact":
                exact += [(item, at["exact"][j]) for j, item in enumerate(rule.exact)]
            elif rule.rule == "either":
                _either(layout, found, rule, at)
            else:
                _structural(layout, found, rule, at, f"hold number {i + 1}")
        except Refused as refusal:
            raise _placed(layout, at, refusal) from None
    for i, rule in enumerate(layout.asked.hold):
        if exact and rule.rule == "either":
            sentence = "no statement is known for sides beside exact figures: leave out either, or what is exact"
            raise layout.at["hold"][i]["either"].refuse(sentence)
    try:
        _empty(layout, found)
        if exact:
            mandated, found.account["exact"] = exactly(layout, exact)
            found.equal = both(found.equal, mandated)
            found.exact = tuple(figure.figure for figure in found.account["exact"])
        layout.kind.refuse_unheld(layout, found.account, found.impossible)
        found.all = both(found.equal, found.unequal)  # refuses what contradicts itself
    except Refused as refusal:
        raise _placed(layout, layout.at["hold"], refusal) from None
    found.account["linear"] += layout.kind.ties(layout.query)
    return found


def _placed(layout: Layout, at: At, refusal: Refused) -> Refused:
    """Give a refusal its line, unless it has one."""
    if hasattr(refusal, "line"):
        return refusal
    return at.refuse(in_words_of_the_spec(layout, str(refusal)))


def _structural(layout: Layout, found: Holding, rule: Hold, at: At, called: str) -> None:
    """Read a rule about all possible data that can also hold on one side only."""
    if rule.rule == "nonnegative":
        found.unequal = both(found.unequal, nonnegative())
        found.account["nonnegative"] = True
    elif rule.rule == "between":
        bound = _bound(layout, rule, at["between"]["at"])
        found.unequal = both(found.unequal, bounded(bound, layout.query.n))
        found.account["bounds"].append(bound)
    elif rule.rule == "ordered":
        chains = layout.chains(rule.ordered, at["ordered"])
        for chain in chains:
            names = [str(name) for name in layout.query.labels[chain]]
            steps = [f"{low!r} at most {high!r}" for low, high in itertools.pairwise(names)]
            found.unequal = both(found.unequal, titled(ordered(chain), steps))
        found.account["orders"] += chains.tolist()
    else:
        asked = _sum(layout, rule, at[rule.rule]["sum"])
        constraint = titled(weighted(asked, layout.query.n), [f"the rule {rule.rule} of {called}"])
        if rule.rule == "equals":
            found.equal = both(found.equal, constraint)
        else:
            found.unequal = both(found.unequal, constraint)
        found.account["linear"].append(asked)


def _either(layout: Layout, found: Holding, rule: Hold, at: At) -> None:
    """Read sides of which one holds; two that can hold at the same time are refused by their numbers."""
    sides: list[Constraint] = []
    accounts = []
    for k, rules in enumerate(rule.either):
        there = at["either"][k]
        side = Holding({"nonnegative": False, "bounds": [], "orders": [], "linear": []})
        for j, each in enumerate(rules):
            inner = there[j] if there[j].written else there  # a side of one rule needs no list
            try:
                _structural(layout, side, each, inner, f"side {k + 1} of either")
            except Refused as refusal:
                raise _placed(layout, inner, refusal) from None
        side.all = both(side.equal, side.unequal)
        assert side.all is not None
        for m, other in enumerate(sides):
            try:
                _ = other | side.all
            except Refused:
                sentence = (
                    f"sides {m + 1} and {k + 1} can hold at the same time: add rules by which they exclude each other"
                )
                raise there.refuse(sentence) from None
        sides.append(side.all)
        accounts.append(Side(**side.account))
    found.unequal = both(found.unequal, Constraint((), tuple(sides)))
    found.account["either"].append(accounts)


def _bound(layout: Layout, rule: Hold, at: At) -> Bound:
    asked, rows = rule.between, np.arange(layout.query.n)
    assert asked is not None
    if asked.at is not None:
        if not asked.at:
            raise at.refuse("at least one place is needed, found none: leave at out to bound every value")
        rows = np.unique(np.concatenate([layout.outputs(item, at[j]) for j, item in enumerate(asked.at)]))
    low, high = (None if limit is None else str(Fraction(limit)) for limit in (asked.low, asked.high))
    return Bound(rows=rows.tolist(), low=low, high=high)


def _sum(layout: Layout, rule: Hold, at: At) -> Sum:
    """Read a weighted sum; figures that are named twice are added twice."""
    asked = rule.equals or rule.at_least
    assert asked is not None
    weights: dict[int, Fraction] = {}
    for j, term in enumerate(asked.sum_of):
        for row in layout.figures(term.of, at[j]).tolist():
            weights[row] = weights.get(row, Fraction(0)) + Fraction(term.times)
    rows = [row for row in sorted(weights) if weights[row]]
    if not rows:
        raise at.refuse("the weights of every figure add up to 0, so the sum says nothing")
    limit = str(Fraction(asked.value))
    texts = [str(weights[row]) for row in rows]
    return Sum(rows=rows, weights=texts, low=limit, high=limit if rule.rule == "equals" else None)


def _empty(layout: Layout, found: Holding) -> None:
    """Fix at 0 every output to which only impossible cells contribute."""
    if found.impossible is None:
        return
    if found.impossible.all():
        raise Refused("every cell is said to be impossible: leave at least one that can hold records")
    rows = np.flatnonzero(layout.query.answer((~found.impossible).astype(np.int64)) == 0)
    found.account["impossible"] = rows.tolist()
    found.equal = both(found.equal, empty(rows))
