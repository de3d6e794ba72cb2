"""What must hold in a table: from the words of the spec to constraints, and to a plain account for certificates."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arguments import Refused
from holdfast.arrays import Bools
from holdfast.constraints import Constraint, at_least, between, consistent, equals, fixed, nonnegative, ordered
from holdfast.queries.areas.rules import Rules
from holdfast.release.spec.places import At
from holdfast.release.spec.rules import Exactly, Hold
from holdfast.release.table.domain import Item, Layout
from holdfast.release.table.exactly import MOST_LISTED, exactly, titled
from holdfast.release.table.figures import figures, ordered_outputs
from holdfast.release.table.wording import in_words_of_the_spec

#: Figures in areas up to which a program holds any rule.
MOST_SOLVED = 300
#: Entries of the largest table of margins in which impossible cells beside exact figures are followed.
MOST_COMPARED = 2_000_000


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
    exact: list[tuple[Item | Exactly, At]] = []
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
        if exact:
            mandated, found.account["exact"] = exactly(layout, exact)
            found.equal = _both(found.equal, mandated)
            found.exact = tuple(figure["figure"] for figure in found.account["exact"])
            _refuse_implied(layout, found)
        _refuse_in_many_areas(layout, found)
        found.all = _both(found.equal, found.unequal)  # refuses what contradicts itself
    except Refused as refusal:
        raise _placed(layout, layout.at["hold"], refusal) from None
    return found


def _refuse_implied(layout: Layout, found: Holding) -> None:
    """Refuse exact figures beside impossible cells that tie margins together in ways which no rule of the table has.

    Rows A with A·W = 0 on the possible cells hold for all data. Cells and hierarchies have them all: sums, and outputs
    that are always 0. Margins may have more, and exact figures would determine others unseen.
    """
    query = layout.query
    if found.impossible is None or query.identity or layout.tree is not None:
        return
    possible = np.flatnonzero(~found.impossible.ravel())
    sums, empty = query.consistency().toarray(), np.array(found.account["impossible"], dtype=np.int64)
    known = np.vstack([sums, np.eye(query.n)[empty]])
    if query.n * possible.size <= MOST_COMPARED:
        reached = sparse.csr_array(query.columns)[:, possible].toarray()
        if query.n - np.linalg.matrix_rank(reached) <= np.linalg.matrix_rank(known):
            return
    raise Refused(
        "impossible cells beside exact figures can determine other figures where only margins are measured: measure "
        "the cells too, or leave out what is exact or impossible"
    )


def _refuse_in_many_areas(layout: Layout, found: Holding) -> None:
    """Refuse rules that only a program holds, in tables of areas for which that would take hours."""
    asked = [rule for rule in ("exact", "bounds", "orders", "linear", "either") if found.account[rule]]
    real = layout.asked.numbers == "real"
    if layout.areas is None or not asked or (real and found.unequal is None) or layout.query.n <= MOST_SOLVED:
        return
    if not real and found.account["nonnegative"] and found.account["consistent"]:
        asked = [
            rule for rule in asked if rule in ("orders", "either") or (rule == "linear" and _crosses(layout, found))
        ]
    if asked:
        raise Refused(
            f"in areas of a hierarchy with a cube, tables of more than {MOST_SOLVED} figures hold exact figures, "
            "bounds and sums of figures of one margin of one area, in whole numbers, beside consistent and "
            f"nonnegative, and this one has {layout.query.n:,}: leave the other rules out, measure less, or write "
            "numbers: real and no bounds"
        )


def _crosses(layout: Layout, found: Holding) -> bool:
    """Whether a weighted sum is not one of figures of one margin of one area, each once."""
    assert layout.areas is not None
    for rule in found.account["linear"]:
        row = np.array(rule["rows"], dtype=np.int64)
        ends, shape = np.array([0, row.size]), (1, layout.query.n)
        matrix = sparse.csr_array((np.ones(row.size, np.int64), row, ends), shape=shape)
        inside = Rules.of_rows(layout.areas, matrix, np.zeros(1, np.int64), np.zeros(1, np.int64))
        if inside is None or any(Fraction(weight) != 1 for weight in rule["weights"]):
            return True
    return False


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
            found.unequal = _both(found.unequal, titled(ordered(chain), steps))
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
        if not bounds.at:
            raise at.refuse("at least one place is needed, found none: leave at out to bound every value")
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
        found.equal = _both(found.equal, titled(equals(matrix, [limit * scale]), title))
    else:
        found.unequal = _both(found.unequal, titled(at_least(matrix, [limit * scale]), title))
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
