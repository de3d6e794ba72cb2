"""Plans while something moves: at once from what is known, then measured as `plan` measures; kept for a while.

A first answer scales the errors that are known for the same table and method (`page/error_targets.py`), those that
were measured last if there are any; where there are none yet, few tables are simulated. Nothing here opens the data
source.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeVar

from holdfast.arguments import Refused
from holdfast.arrays import Floats, Shared
from holdfast.page.error_targets import (
    LEAST,
    Wish,
    at_amount,
    best_split,
    excess,
    level_errors,
    parameter_of,
    rounded_up,
    scaled,
)
from holdfast.queries import Neighbours
from holdfast.release.job.errors import TABLES, Errors
from holdfast.release.job.job import Job
from holdfast.release.job.sharing import linear_shares
from holdfast.release.job.table import Table
from holdfast.release.spec.rules import Hold
from holdfast.release.spec.sections import MOST_ASKED
from holdfast.release.spec.spec import Spec
from holdfast.release.spec.table import BEST
from holdfast.release.table.laid import laid
from holdfast.release.table.shape import INSIDE

# --- How a spec divides a budget over levels: as it is written, and the best division, which may take long, once


def nested(shares: Mapping[str, Any], areas: bool) -> dict[str, Any]:
    """Shares by the names of levels as a spec writes them: in areas (a cube in every place) margins inside levels."""
    if not areas:
        return dict(shares)
    found: dict[str, Any] = {}
    for name, share in shares.items():
        level, _, margin = name.partition(INSIDE)
        found.setdefault(level, {})[margin] = share
    return found


def with_shares(spec: Spec, shares: Sequence[Mapping[str, Any] | None]) -> Spec:
    """The same spec with other shares where there are some."""
    tables = tuple(
        table if each is None else table.model_copy(update={"shares": nested(each, _has_areas(table))})
        for table, each in zip(spec.tables, shares, strict=True)
    )
    return spec.model_copy(update={"tables": tables})


def wants_best(spec: Spec) -> bool:
    return any(table.shares == BEST for table in spec.tables)


def found_by(job: Job) -> tuple[dict[str, Decimal] | None, ...]:
    """The best shares that a job has found; None: it did not look for any."""
    return tuple(
        None if asked.shares != BEST or table.problem.shares is None else _decimals(table.problem.shares)
        for asked, table in zip(job.spec.tables, job.tables, strict=True)
    )


def near_shares(spec: Spec) -> tuple[dict[str, Decimal] | None, ...]:
    """Shares near the best ones, at once: those of Gaussian noise and best linear estimation (H7)."""
    relation = Neighbours(spec.privacy.neighbours)
    return tuple(
        None if table.layout.asked.shares != BEST else _decimals(linear_shares(table.layout, relation))
        for table in laid(spec)[0].tables
    )


def _decimals(shares: Mapping[str, Fraction]) -> dict[str, Decimal]:
    return {name: Decimal(share.numerator) / Decimal(share.denominator) for name, share in shares.items()}


def _has_areas(table: Any) -> bool:
    return table.hierarchy is not None and table.cube is not None


#: Figures that are simulated for a first answer where nothing is known, and tables at least and at most.
FIGURES, FEWEST, FEW = 16_000, 10, 100
#: Plans that are kept.
KEPT = 64
#: Methods that are tried, in this order, where nobody has compared them yet.
FIRST = ("given-then-onto", "onto", "given", "noise", "extend")

Value = TypeVar("Value")


@dataclass(frozen=True, eq=False)
class Planned:
    """A job and the errors of its tables. `measured`: as the plan measures them, and not scaled or from a few tables.

    `near` are those of the best linear estimate, from which other plans are scaled.
    """

    job: Job
    outlooks: tuple[Errors, ...]
    near: tuple[Floats | None, ...]
    measured: bool

    @property
    def methods(self) -> tuple[str, ...]:
        return tuple(table.chosen.method for table in self.job.tables)


class Planner:
    """Plans specs. One slow computation at a time; first answers do not wait for it."""

    def __init__(self) -> None:
        self._kept = Shared(KEPT)
        self._slow = threading.Lock()

    def at_once(self, spec: Spec) -> Planned:
        """Plan a spec without waiting: measured errors where they are known, and otherwise near ones."""
        known = self._kept.known(("measured", spec.hash)) or self._kept.known(("near", spec.hash))
        if known is not None:
            return known
        job = self._with_any_method(self._divided(spec) or with_shares(spec, near_shares(spec)))
        before = self._kept.known(("shape", _shape(job)))
        found, near = [], []
        for i, table in enumerate(job.tables):
            errors = level_errors(table)
            same = None if before is None or errors is None else before.near[i]
            found.append(
                table.errors_on(_few(table))
                if same is None or errors is None
                else scaled(before.outlooks[i], same, errors)
            )
            near.append(errors)
        planned = Planned(job, tuple(found), tuple(near), measured=False)
        if before is None:  # what comes next is scaled from it until something is measured
            self._kept.put(("shape", _shape(job)), planned)
        return self._kept.put(("near", spec.hash), planned)

    def measured(self, spec: Spec) -> Planned:
        """Plan a spec as the command does: methods compared where the spec leaves them open, errors measured."""
        return self._slowly(("measured", spec.hash), lambda: self._measure(spec))

    def compared(self, spec: Spec) -> Job:
        """The same spec with the methods of all tables open, so that they are compared."""
        tables = tuple(table.model_copy(update={"method": "auto"}) for table in spec.tables)
        return self.measured(spec.model_copy(update={"tables": tables})).job

    def few(self, spec: Spec, tables: int) -> tuple[Errors, ...]:
        """The errors of a spec whose methods are set, on so many simulated tables."""
        made = lambda: tuple(table.errors_on(tables) for table in Job.from_spec(spec).tables)  # noqa: E731
        return self._slowly(("few", tables, spec.hash), made)

    def _slowly(self, key: Hashable, made: Callable[[], Value]) -> Value:
        with self._slow:  # who waited finds what another has made
            known = self._kept.known(key)
            return known if known is not None else self._kept.put(key, made())

    def _divided(self, spec: Spec) -> Spec | None:
        """The spec with the best shares where it asks for them; None where they were not searched yet."""
        if not wants_best(spec):
            return spec
        known = self._kept.known(("best", _division(spec)))
        return None if known is None else with_shares(spec, known)

    def _measure(self, spec: Spec) -> Planned:
        job = Job.from_spec(self._divided(spec) or spec)
        if wants_best(job.spec):
            self._kept.put(("best", _division(spec)), found_by(job))
        outlooks = tuple(table.errors_on(TABLES) for table in job.tables)
        found = Planned(job, outlooks, tuple(level_errors(table) for table in job.tables), measured=True)
        self._kept.put(("shape", _shape(job)), found)
        self._kept.put(("methods", _holds(spec)), found.methods)
        return found

    def _with_any_method(self, spec: Spec) -> Job:
        """Make the job by the methods that were chosen last for the same rules, or by the first that will do."""
        if all(table.method != "auto" for table in spec.tables):
            return Job.from_spec(spec)
        last = self._kept.known(("methods", _holds(spec)))
        proposals = [last] if last is not None else []
        proposals += [(method,) * len(spec.tables) for method in FIRST]
        for methods in proposals:
            tables = tuple(
                table if table.method != "auto" else table.model_copy(update={"method": method})
                for table, method in zip(spec.tables, methods, strict=True)
            )
            try:
                return Job.from_spec(spec.model_copy(update={"tables": tables}))
            except Refused:
                continue
        return Job.from_spec(spec)  # which says why no method will do


def _few(table: Table) -> int:
    return max(FEWEST, min(FEW, FIGURES // table.layout.query.n))


def _without(spec: Spec, budget: bool, tables: tuple[str, ...]) -> str:
    """The spec in its canonical form without its budget and without some keys of its tables."""
    content = json.loads(spec.canonical)
    for name in ("epsilon", "delta", "rho") if budget else ():
        content["privacy"].pop(name, None)
    for table in content["tables"]:
        for name in tables:
            table.pop(name, None)
    return json.dumps(content, sort_keys=True)


def _shape(job: Job) -> tuple[str, ...]:
    """What must be the same for errors to be scaled: everything but amounts and shares, the methods and the laws."""
    made = (f"{table.chosen.method} {table.mechanism.base.law.kind}" for table in job.tables)
    return (_without(job.spec, True, ("shares", "share", "method")), *made)


def _division(spec: Spec) -> tuple[str, ...]:
    """What must be the same for the best shares to be the same: all but amounts, methods and guesses."""
    kinds = (name for name in ("epsilon", "delta", "rho") if getattr(spec.privacy, name) is not None)
    return (_without(spec, True, ("share", "method", "guess")), *kinds)


def _holds(spec: Spec) -> str:
    """What must be the same for the methods that were chosen last to come first."""
    return _without(spec, True, ("shares", "share", "guess"))


# --- from the errors that are wanted to a budget, and to its split: what the page moves when an error is moved -------

# --- what it costs to hold each rule: the errors with it and without it, at the same total guarantee -----------------

#: Tables that are simulated for each side.
PRICED = 300


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
        now = planner.few(spec.model_copy(update={"tables": fixed}), PRICED)[t]
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
            then = planner.few(spec.model_copy(update={"tables": tuple(tables)}), PRICED)[t]
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
