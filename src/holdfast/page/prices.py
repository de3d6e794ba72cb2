"""What it costs to hold each rule: the errors with it and without it, at the same total guarantee."""

from __future__ import annotations

import math
from dataclasses import dataclass

from holdfast.arguments import Refused
from holdfast.page.planning import Planned, Planner
from holdfast.release.spec.rules import Hold
from holdfast.release.wanted.outlook import Outlook

#: Tables that are simulated for each side.
TABLES = 300


@dataclass(frozen=True)
class Price:
    """One rule of a table: the mean error over levels with it and without it, or why that cannot be told.

    `uncertain`: the standard error of the difference, taken as if the two were independent.
    """

    table: str
    rule: str
    with_it: float
    without: float
    uncertain: float
    method: str
    refused: str | None = None

    @property
    def words(self) -> str:
        """What the rule does to the errors."""
        if self.refused is not None:
            return f"cannot be told: {self.refused}"
        if not math.isfinite(self.with_it - self.without):
            return "cannot be told without a guess"
        change = self.with_it - self.without
        if abs(change) <= 2 * self.uncertain:
            return "costs nothing that can be seen"
        part = abs(change) / self.without if self.without else math.inf
        size = f"{100 * part:.0f} %" if part < 10 else "many times"
        return f"makes the errors {size} {'larger' if change > 0 else 'smaller'}"


def prices(planner: Planner, planned: Planned) -> tuple[Price, ...]:
    """Price every rule of every table, each taken away alone."""
    spec, found = planned.job.spec, []
    for t, table in enumerate(spec.tables):
        fixed = tuple(a.model_copy(update={"method": m}) for a, m in zip(spec.tables, planned.methods, strict=True))
        now = planner.few(spec.model_copy(update={"tables": fixed}), TABLES)[t]
        for i, rule in enumerate(table.hold):
            left = table.hold[:i] + table.hold[i + 1 :]
            found.append(_price(planner, planned, t, rule, left, now))
    return tuple(found)


def _price(planner: Planner, planned: Planned, t: int, rule: Hold, left: tuple[Hold, ...], now: Outlook) -> Price:
    spec, name = planned.job.spec, planned.job.tables[t].name
    refusal = ""
    for method in dict.fromkeys((planned.methods[t], "onto", "noise")):
        tables = [a.model_copy(update={"method": m}) for a, m in zip(spec.tables, planned.methods, strict=True)]
        tables[t] = tables[t].model_copy(update={"hold": left, "method": method})
        try:
            then = planner.few(spec.model_copy(update={"tables": tuple(tables)}), TABLES)[t]
        except Refused as why:
            refusal = refusal or str(why)
        else:
            unsure = math.hypot(_unsure(now), _unsure(then))
            return Price(name, in_words(rule), now.score, then.score, unsure, method)
    return Price(name, in_words(rule), now.score, math.inf, math.inf, "", refusal)


def _unsure(outlook: Outlook) -> float:
    """The standard error of the mean over levels, at most: as if all erred together."""
    return sum(level.uncertain for level in outlook.levels) / len(outlook.levels)


def in_words(rule: Hold) -> str:
    """A rule as the spec writes it, short."""
    if rule.rule in ("consistent", "nonnegative"):
        return rule.rule
    value = rule.model_dump(mode="json", by_alias=True, exclude_defaults=True)[rule.rule]
    text = str(value).replace("'", "").replace("[[", "[").replace("]]", "]")
    text = text if len(text) <= 60 else f"{text[:57]}…"
    return f"{rule.rule}: {text}"
