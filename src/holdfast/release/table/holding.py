"""What must hold in a table: from the words of the spec to constraints, and to a plain account for certificates."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
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
from holdfast.release.spec.places import At
from holdfast.release.spec.rules import Exactly, Hold
from holdfast.release.table.domain import Layout
from holdfast.release.table.figures import figures, ordered_outputs
from holdfast.release.table.wording import in_words_of_the_spec

#: Tables with more rows than this are described by their names alone, not row by row.
MOST_LISTED = 10_000


@dataclass(eq=False)
class Holding:
    """What must hold: equalities and exact figures, bounds, cells that are always empty, and the plain account.

    `all` is everything together, once everything was read.
    """

    equal: Constraint | None = None
    unequal: Constraint | None = None
    exact: tuple[str, ...] = ()
    impossible: Bools | None = None
    account: dict[str, Any] = field(default_factory=dict)
    all: Constraint | None = None


def holding(layout: Layout) -> Holding:
    """Read the hold list of a table."""
    found = Holding(
        account={
            "consistent": False,
            "nonnegative": False,
            "whole": layout.asked.numbers == "whole",
            "sums": [],
            "bounds": [],
            "orders": [],
            "linear": [],
            "either": [],
            "impossible": [],
            "exact": [],
        }
    )
    exact: list[tuple[str | tuple[str, ...] | Exactly, At]] = []
    for i, rule in enumerate(layout.asked.hold):
        at = layout.at["hold"][i]
        try:
            if rule.rule == "consistent":
                _consistent(layout, found)
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
        _exact(layout, found, exact)
        found.all = _both(found.equal, found.unequal)  # refuses what contradicts itself
    except Refused as refusal:
        raise _placed(layout, layout.at["hold"], refusal) from None
    return found


def _placed(layout: Layout, at: At, refusal: Refused) -> Refused:
    """Give a refusal its line, unless it has one."""
    if hasattr(refusal, "line"):
        return refusal
    return at.refuse(in_words_of_the_spec(layout, str(refusal)))


def _both(one: Constraint | None, other: Constraint | None) -> Constraint | None:
    if one is None or other is None:
        return one if other is None else other
    return one & other


def _consistent(layout: Layout, found: Holding) -> None:
    found.account["consistent"] = True
    if layout.query.identity:
        return  # cells alone have nothing to add up to
    found.equal = _both(found.equal, consistent(layout.query))
    tree, by = layout.tree, layout.by
    if tree is None or layout.query.n > MOST_LISTED:
        found.account["sums"] = {"parents": True}
        return
    inner = np.flatnonzero(~tree.is_leaf)
    found.account["sums"] = [
        [int(v) * by + c, (tree.children_of(int(v)) * by + c).tolist()] for v in inner for c in range(by)
    ]


def _structural(layout: Layout, found: Holding, rule: Hold, at: At, called: str) -> None:
    """Read a rule about all possible data that can also hold on one side only."""
    if rule.rule == "nonnegative":
        found.unequal = _both(found.unequal, nonnegative())
        found.account["nonnegative"] = True
    elif rule.rule == "between":
        _between(layout, found, rule, at["between"]["at"])
    elif rule.rule == "ordered":
        chains = ordered_outputs(layout, rule.ordered, at["ordered"])
        for chain in chains:
            names = [str(name) for name in layout.query.labels[chain]]
            steps = [f"{low!r} at most {high!r}" for low, high in itertools.pairwise(names)]
            found.unequal = _both(found.unequal, _titled(ordered(chain), steps))
        found.account["orders"] += chains.tolist()
    else:
        _linear(layout, found, rule, at[rule.rule]["sum"], called)


def _either(layout: Layout, found: Holding, rule: Hold, at: At) -> None:
    """Read sides of which one holds; two that can hold at the same time are refused by their numbers."""
    sides: list[Constraint] = []
    accounts = []
    for k, rules in enumerate(rule.either):
        there = at["either"][k]
        side = Holding(account={"nonnegative": False, "bounds": [], "orders": [], "linear": []})
        for j, each in enumerate(rules):
            inner = there[j] if there[j].written else there  # a side of one rule needs no list
            try:
                _structural(layout, side, each, inner, f"side {k + 1} of either")
            except Refused as refusal:
                raise _placed(layout, inner, refusal) from None
        side.all = _both(side.equal, side.unequal)
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
        accounts.append(side.account)
    found.unequal = _both(found.unequal, Constraint((), tuple(sides)))
    found.account["either"].append(accounts)


def _between(layout: Layout, found: Holding, rule: Hold, at: At) -> None:
    bounds = rule.between
    assert bounds is not None
    rows = None
    if bounds.at is not None:
        parts = [layout.outputs(item, at[j]) for j, item in enumerate(bounds.at)]
        rows = np.unique(np.concatenate(parts))
    low, high = (None if limit is None else Fraction(limit) for limit in (bounds.low, bounds.high))
    found.unequal = _both(found.unequal, between(low, high, at=rows))
    listed = np.arange(layout.query.n) if rows is None else rows
    limits = [None if limit is None else str(limit) for limit in (low, high)]
    found.account["bounds"].append({"rows": listed.tolist(), **dict(zip(("low", "high"), limits, strict=True))})


def _linear(layout: Layout, found: Holding, rule: Hold, at: At, called: str) -> None:
    """Read a weighted sum; figures that are named twice are added twice."""
    asked = rule.equals or rule.at_least
    assert asked is not None
    weights: dict[int, Fraction] = {}
    for j, term in enumerate(asked.sum_of):
        for row in figures(layout, term.of, at[j]).tolist():
            weights[row] = weights.get(row, Fraction(0)) + Fraction(term.times)
    rows = [row for row in sorted(weights) if weights[row]]
    if not rows:
        raise at.refuse("the weights of every figure add up to 0, so the sum says nothing")
    limit = Fraction(asked.value)
    scale = math.lcm(*(weights[row].denominator for row in rows))
    whole = np.array([int(weights[row] * scale) for row in rows], dtype=np.int64)
    matrix = sparse.csr_array((whole, rows, [0, len(rows)]), shape=(1, layout.query.n))
    title = [f"the rule {rule.rule} of {called}"]
    if rule.rule == "equals":
        found.equal = _both(found.equal, _titled(equals(matrix, [limit * scale]), title))
    else:
        found.unequal = _both(found.unequal, _titled(at_least(matrix, [limit * scale]), title))
    high = str(limit) if rule.rule == "equals" else None
    texts = [str(weights[row]) for row in rows]
    found.account["linear"].append({"rows": rows, "weights": texts, "low": str(limit), "high": high})


def _empty(layout: Layout, found: Holding) -> None:
    """Fix at 0 every output to which only impossible cells contribute."""
    if found.impossible is None:
        return
    if found.impossible.all():
        raise Refused("every cell is said to be impossible: leave at least one that can hold records")
    reached = layout.query.answer((~found.impossible).astype(np.int64))
    rows = np.flatnonzero(reached == 0)
    found.account["impossible"] = rows.tolist()
    if rows.size:
        found.equal = _both(found.equal, fixed(rows, np.zeros(rows.size, dtype=np.int64)))


def _exact(layout: Layout, found: Holding, items: list[tuple[str | tuple[str, ...] | Exactly, At]]) -> None:
    if not items:
        return
    if layout.tree is not None:
        names, rows = zip(*(_exact_nodes(layout, item, at) for item, at in items), strict=True)
        outputs = [each for part in rows for each in part]
        if all(len(each) == 1 for each in outputs):
            nodes = np.unique([each[0] // layout.by for each in outputs])
            constraint = invariant(exact_nodes(layout.tree, nodes, layout.by))
        else:
            constraint = invariant(sums_of_rows(outputs, layout.query.n))
    else:
        margins = [_axes_of(layout, item, at) for item, at in items]
        names = tuple(layout.margin_name(axes) for axes in margins)
        repeated = next((name for i, name in enumerate(names) if name in names[:i]), None)
        if repeated is not None:
            raise Refused(f"the margin {repeated!r} is named twice as exact: name it once")
        cube = layout.query.cube
        assert cube is not None
        sums = [_margin_rows(layout, axes, at) for axes, (_, at) in zip(margins, items, strict=True)]
        if layout.query.identity:
            constraint = invariant(exact_margins(cube.shape, margins))
        else:
            constraint = invariant(sparse.vstack(sums, format="csr"))
        few = layout.query.n <= MOST_LISTED
        rows = tuple([part.indices[a:b].tolist() for a, b in _spans(part)] if few else [] for part in sums)
    found.equal = _both(found.equal, _titled_figures(constraint, layout, list(rows), list(names)))
    found.exact = tuple(names)
    found.account["exact"] = [{"figure": name, "rows": each} for name, each in zip(names, rows, strict=True)]


def _axes_of(layout: Layout, item: str | tuple[str, ...] | Exactly, at: At) -> tuple[int, ...]:
    if isinstance(item, Exactly):
        raise at["by"].refuse("by is for hierarchies with categories: name the axes of the margin in its place")
    return tuple(int(a) for a in layout.figure(item, at))


def _exact_nodes(layout: Layout, item: str | tuple[str, ...] | Exactly, at: At) -> tuple[str, list[list[int]]]:
    """The name of exact figures of a hierarchy, and the outputs that add up to each: by all categories unless said."""
    figure, here = (item.of, at["of"]) if isinstance(item, Exactly) else (item, at)
    name = figure if isinstance(figure, str) else " / ".join(figure)
    outputs = layout.outputs(figure, here).reshape(-1, layout.by)
    categories = layout.asked.categories
    kept = item.by if isinstance(item, Exactly) else categories
    for category in kept:
        if category not in categories:
            raise at["by"].refuse(f"the table has no category {category!r}", category, list(categories))
    if set(kept) == set(categories):
        return name, [[int(row)] for row in outputs.ravel()]
    part = category_groups(layout, kept)
    sums = [outputs[node, part == each].tolist() for node in range(len(outputs)) for each in range(part.max() + 1)]
    return f"{name} by {', '.join(kept)}" if kept else f"{name}, total", sums


def category_groups(layout: Layout, kept: Sequence[str]) -> Ints:
    """For every combination of categories, the number of that of those that are kept, in their order in the table."""
    sizes = [key.size for key in layout.keys[1:]]
    points = np.unravel_index(np.arange(layout.by), sizes)
    group = np.zeros(layout.by, dtype=np.int64)
    for name, size, point in zip(layout.asked.categories, sizes, points, strict=True):
        if name in kept:
            group = group * size + point
    return group


def sums_of_rows(rows: list[list[int]], n: int) -> Any:
    """A matrix of ones that adds up outputs, one row for each list."""
    ends = np.concatenate([[0], np.cumsum([len(each) for each in rows])])
    indices = np.concatenate([np.array(each, dtype=np.int64) for each in rows])
    return sparse.csr_array((np.ones(indices.size, dtype=np.int64), indices, ends), shape=(len(rows), n))


def _titled_figures(
    constraint: Constraint, layout: Layout, rows: list[list[list[int]]], names: list[str]
) -> Constraint:
    """Call the exact figures by their public names, where there are few."""
    part = constraint.parts[0]
    assert part.rows is not None
    if layout.tree is not None and any(len(row) > 1 for each in rows for row in each):
        texts = [_sum_name(layout, row) for each in rows for row in each]
    elif layout.tree is None:
        texts = [_figure_name(layout, row, name) for each, name in zip(rows, names, strict=True) for row in each]
    else:
        outputs = np.unique([row[0] for each in rows for row in each])  # the order of the invariant's rows
        texts = [str(layout.query.labels[row]) for row in outputs]
    if len(texts) != part.rows.count:
        return constraint  # too many to be listed
    return _titled(constraint, texts)


def _titled(constraint: Constraint, texts: list[str]) -> Constraint:
    """Call the rows of a constraint by these names."""
    part = constraint.parts[0]
    assert part.rows is not None
    literal = (text.replace("{", "{{").replace("}", "}}") for text in texts)
    titles = Names(tuple((text, np.zeros((1, 0), dtype=np.int64)) for text in literal))
    return replace(constraint, parts=(replace(part, rows=replace(part.rows, names=titles)),))


def _sum_name(layout: Layout, outputs: list[int]) -> str:
    """The name of a node over some of its categories: what the outputs that add up to it have in common."""
    first = {name: texts[outputs] for name, texts in layout.columns.items() if name != "level"}
    return " / ".join(str(texts[0]) for texts in first.values() if texts[0] is not None and (texts == texts[0]).all())


def _figure_name(layout: Layout, outputs: list[int], name: str) -> str:
    """The name of a cell of a margin: what the outputs that add up to it have in common."""
    axes = [] if name == "total" else name.split(" × ")
    return " / ".join(str(layout.columns[axis][outputs[0]]) for axis in axes) or "total"


def _spans(rows: Any) -> list[tuple[int, int]]:
    return list(zip(rows.indptr[:-1].tolist(), rows.indptr[1:].tolist(), strict=True))


def _margin_rows(layout: Layout, axes: tuple[int, ...], at: At) -> Any:
    """Return the 0/1 rows that sum outputs to a margin, from the first measured margin that holds it."""
    cube = layout.query.cube
    assert cube is not None
    for m, name in enumerate(layout.levels):
        kept = tuple(cube.names.index(part) for part in name.split(" × ")) if name != "total" else ()
        if set(axes) <= set(kept):
            outputs = np.flatnonzero(layout.level_of == m)
            sub = type(cube)([cube.shape[a] for a in kept] or [1])
            position = sub.margin_index([kept.index(a) for a in axes])
            count = int(np.prod([cube.shape[a] for a in axes], dtype=np.int64))
            ones = np.ones(outputs.size, dtype=np.int64)
            return sparse.csr_array((ones, (position, outputs)), shape=(count, layout.query.n))
    sentence = (
        f"the margin {layout.margin_name(axes)!r} does not follow from the margins that are measured: add it to them"
    )
    raise at.refuse(sentence, layout.margin_name(axes), layout.levels)
