"""What must hold in a table: from the words of the spec to facts for the certificate, and to constraints."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Bools
from holdfast.constraints import Constraint, consistent, nonnegative, ordered
from holdfast.release.facts.table import Bound, Holds, Side, Sum
from holdfast.release.spec.places import At
from holdfast.release.spec.rules import Exactly, Hold
from holdfast.release.table.exactly import exactly
from holdfast.release.table.rules import both, bounded, empty, titled, weighted
from holdfast.release.table.shape import Item, Layout
from holdfast.release.table.wording import in_words_of_the_spec


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
