"""Errors that a spec accepts at most (`accept`): whether its plan keeps within them, and at which budget it would."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from holdfast.arrays import kept
from holdfast.pictures import number
from holdfast.release.job.job import Job
from holdfast.release.job.table import Table
from holdfast.release.wanted.outlook import outlook
from holdfast.release.wanted.solving import Wish, least_amount, parameter_of


@dataclass(frozen=True)
class Acceptance:
    """One error of `accept` beside the one that the plan has. An infinite `reached`: nobody can tell it."""

    table: str
    level: str
    error: Decimal
    confidence: Decimal | None
    reached: float

    @property
    def met(self) -> bool:
        """Whether the plan has no larger error."""
        return self.reached <= self.error

    def as_mapping(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return {
            "table": self.table,
            "level": self.level,
            "error": float(self.error),
            "confidence": _float(self.confidence),
            "reached": None if self.reached == float("inf") else self.reached,
            "met": self.met,
        }

    def __str__(self) -> str:
        if self.reached == float("inf"):
            return f"{self.level}: nobody can tell its errors without a guess, and at most {self.error:f} is accepted"
        if self.confidence is None:
            found = f"off by {number(self.reached)} on average"
        else:
            found = f"{number(float(self.confidence) * 100)} in 100 figures are within {number(self.reached)}"
        return f"{self.level}: {found}, at most {self.error:f} is accepted: {'met' if self.met else 'not met'}"


@dataclass(frozen=True)
class Accepted:
    """What a spec accepts, and the least budget at which all of it would be met, where that was looked for."""

    each: tuple[Acceptance, ...]
    parameter: str
    amount: Decimal | None = None

    @property
    def met(self) -> bool:
        """Whether everything is."""
        return all(one.met for one in self.each)

    @property
    def remedy(self) -> str:
        """At which budget everything would be met, in words."""
        if self.amount is None:
            return f"no {self.parameter} is known at which these methods meet all of it"
        return f"at {self.parameter} {self.amount:f} all of it would be met"

    def as_mapping(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return {
            "met": self.met,
            "levels": [one.as_mapping() for one in self.each],
            "would_be_met_at": None if self.amount is None else {self.parameter: float(self.amount)},
        }


@kept
def judged(table: Table) -> tuple[Acceptance, ...]:
    """What a spec accepts of a table beside what its plan has; the errors are measured once."""
    laid, at = table.layout, table.layout.at["accept"]
    if not laid.asked.accept:
        return ()
    levels, found = outlook(table).levels, []
    for name, one in laid.asked.accept.items():
        level = levels[laid.levels.index(laid.level(name, at[name]))]
        reached = level.within(_float(one.confidence))
        found.append(Acceptance(table.name, level.name, one.error, one.confidence, reached))
    return tuple(found)


def accepted(job: Job) -> Accepted | None:
    """Judge a plan by what its spec accepts, and look for a budget where it is not met; None: nothing is said."""
    found = Accepted(tuple(one for table in job.tables for one in judged(table)), parameter_of(job.spec))
    if not found.each:
        return None
    return found if found.met else Accepted(found.each, found.parameter, least_amount(job, _wishes(job)))


def _wishes(job: Job) -> list[Wish]:
    return [
        Wish(t, table.layout.levels.index(one.level), float(one.error), _float(one.confidence))
        for t, table in enumerate(job.tables)
        for one in judged(table)
    ]


def _float(number: Decimal | None) -> float | None:
    return None if number is None else float(number)


def refuse_unmet(job: Job) -> None:
    """Refuse a job whose errors would be larger than its spec accepts."""
    found = accepted(job)
    if found is not None and not found.met:
        missed = "; ".join(str(one) for one in found.each if not one.met)
        place = job.tables[0].layout.at["accept"] if len(job.tables) == 1 else job.spec.at["tables"]
        raise place.refuse(f"the errors would be larger than is accepted ({missed}); {found.remedy}")
