"""Plans while something moves: at once from what is known, then measured as `plan` measures; kept for a while.

A first answer scales the errors that are known for the same table and method (`release/error_targets.py`), those that
were measured last if there are any; where there are none yet, few tables are simulated. Nothing here opens the data
source.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeVar

from holdfast.arguments import Refused
from holdfast.arrays import Floats, Shared
from holdfast.queries import Neighbours
from holdfast.release.error_targets import level_errors, scaled
from holdfast.release.job.errors import TABLES, Errors
from holdfast.release.job.job import Job
from holdfast.release.job.sharing import linear_shares
from holdfast.release.job.table import Table
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
    return (_without(job.spec, True, ("shares", "share", "method", "accept")), *made)


def _division(spec: Spec) -> tuple[str, ...]:
    """What must be the same for the best shares to be the same: all but amounts, methods and guesses."""
    kinds = (name for name in ("epsilon", "delta", "rho") if getattr(spec.privacy, name) is not None)
    return (_without(spec, True, ("share", "method", "guess", "accept")), *kinds)


def _holds(spec: Spec) -> str:
    """What must be the same for the methods that were chosen last to come first."""
    return _without(spec, True, ("shares", "share", "guess", "accept"))
