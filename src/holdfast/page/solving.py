"""From the errors that are wanted to a budget, and to its split: what the page moves when an error is moved."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from holdfast.arguments import Refused
from holdfast.page.planning import Planned, Planner, with_shares
from holdfast.release.error_targets import LEAST, Wish, at_amount, best_split, excess, parameter_of, rounded_up
from holdfast.release.job.errors import Errors
from holdfast.release.spec.rules import Hold
from holdfast.release.spec.sections import MOST_ASKED
from holdfast.release.spec.spec import Spec

# --- what it costs to hold each rule: the errors with it and without it, at the same total guarantee -----------------

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


def _price(planner: Planner, planned: Planned, t: int, rule: Hold, left: tuple[Hold, ...], now: Errors) -> Price:
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


def _unsure(outlook: Errors) -> float:
    """The standard error of the mean over levels, at most: as if all erred together."""
    return sum(level.uncertain for level in outlook.levels) / len(outlook.levels)


def in_words(rule: Hold) -> str:
    if rule.rule in ("consistent", "nonnegative"):
        return rule.rule
    value = rule.model_dump(mode="json", by_alias=True, exclude_defaults=True)[rule.rule]
    text = str(value).replace("'", "").replace("[[", "[").replace("]]", "]")
    text = text if len(text) <= 60 else f"{text[:57]}…"
    return f"{rule.rule}: {text}"


#: How often an amount is brought nearer: what it costs to hold bounds changes with it a little.
ROUNDS = 4
#: Errors that miss what is wanted by less than this part meet it.
NEAR = 1e-3


@dataclass(frozen=True)
class Solved:
    """A budget, and the shares of every table; None: as they were."""

    amount: Decimal
    shares: tuple[Mapping[str, Fraction] | None, ...]


def wishes_of(planned: Planned, wanted: Any) -> tuple[Wish, ...]:
    """Read the errors that are wanted: by table, a mapping from levels to numbers."""
    found = []
    for t, (table, given) in enumerate(zip(planned.job.tables, wanted, strict=False)):
        for name, error in given.items() if isinstance(given, Mapping) else ():
            if name not in table.layout.levels:
                raise Refused(f"there is no level {str(name)[:60]!r}: reload the page")
            found.append(Wish(t, table.layout.levels.index(name), _error(name, error)))
    if not found:
        raise Refused("no error is wanted yet: say how large the error of a level may be")
    for wish in found:
        level = planned.outlooks[wish.table].levels[wish.level]
        if not level.known:
            raise Refused(f"nobody can tell the errors of {level.name} without a guess: add one to the table")
    return tuple(found)


def solved(planner: Planner, spec: Spec, wanted: Sequence[Any], *, split: bool) -> Solved:
    """Find the least budget, and the split if asked, at which no error is larger than wanted."""
    planned = planner.at_once(spec)
    wishes = wishes_of(planned, wanted)
    wishes = tuple(wish for wish in wishes if wish.reached(planned.outlooks) > 0)
    if not wishes:
        raise Refused("these levels are exact already: no budget changes their errors")
    shares: tuple[Mapping[str, Fraction] | None, ...] = (None,) * len(planned.job.tables)
    if split:
        shares = tuple(_split(planned, t, wishes) for t in range(len(shares)))
        spec = with_shares(spec, [None if each is None else in_decimals(each) for each in shares])
    spec = at_amount(spec, getattr(spec.privacy, parameter_of(spec)), planned.methods)
    power = 2 if parameter_of(spec) == "rho" else 1
    for _ in range(ROUNDS):
        planned = planner.at_once(spec)
        over = excess(planned.outlooks, wishes)
        amount = float(getattr(spec.privacy, parameter_of(spec)))
        if 1 - 10 * NEAR <= over <= 1 + NEAR:
            break
        wanted_amount = amount * over**power
        if not LEAST <= wanted_amount <= MOST_ASKED:
            raise Refused(
                f"these errors ask for {parameter_of(spec)} {wanted_amount:.3g}, and it must be between {LEAST:g} and "
                f"{MOST_ASKED}: allow {'larger' if over > 1 else 'smaller'} ones"
            )
        spec = at_amount(spec, Decimal(repr(rounded_up(wanted_amount))), planned.methods)
    return Solved(getattr(spec.privacy, parameter_of(spec)), shares)


def best(planner: Planner, spec: Spec) -> tuple[Mapping[str, Fraction] | None, ...]:
    """The split of every table with the least mean over its levels of their mean absolute errors."""
    planned = planner.at_once(spec)
    found = tuple(best_split(*pair) for pair in zip(planned.job.tables, planned.outlooks, strict=True))
    if not any(found):
        raise Refused("there is nothing to divide: shares divide a budget over several levels that have noise")
    return found


def in_decimals(shares: Mapping[str, Fraction]) -> dict[str, Decimal]:
    return {name: Decimal(int(share * 100)) / 100 for name, share in shares.items()}


def _split(planned: Planned, number: int, wishes: Sequence[Wish]) -> Mapping[str, Fraction] | None:
    """The split of one table that brings the worst of its errors nearest to what is wanted of it."""
    own = [Wish(0, wish.level, wish.error) for wish in wishes if wish.table == number]
    if not own:
        return None

    def judged(then: Errors) -> float:
        # Where several are met alike, the other levels decide a little.
        return excess([then], own) + 1e-3 * then.score / planned.outlooks[number].score

    return best_split(planned.job.tables[number], planned.outlooks[number], judged)


def _error(name: str, value: Any) -> float:
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        found = 0.0
    if not 0 < found < 1e12:
        raise Refused(f"the error wanted of {name} must be a number above 0, found {str(value)[:60]!r}")
    return found
