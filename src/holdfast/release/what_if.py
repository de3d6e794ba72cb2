"""The same job at other budgets: what each costs in error, before anything is read or spent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any

from holdfast.arguments import Refused
from holdfast.privacy import Guarantee
from holdfast.privacy.odds import amounts as amounts_of
from holdfast.privacy.odds import in_hundred
from holdfast.release.job.job import Job
from holdfast.release.job.levels import Level, levels_of
from holdfast.release.ledger.ledger import Ledger
from holdfast.release.spec.privacy import MOST_ASKED
from holdfast.release.spec.spec import Spec
from holdfast.release.spending import budget_of


@dataclass(frozen=True, eq=False)
class Outlook:
    """One budget: the method of every table, whether it has error bars, and its levels, and what is promised."""

    amount: Decimal
    promise: Guarantee
    tables: tuple[tuple[str, str, bool, tuple[Level, ...]], ...]

    @property
    def right(self) -> int:
        """Of a hundred guesses by somebody who knows all but one change, how many are right at most."""
        return in_hundred(self.promise)

    @property
    def signs(self) -> tuple[tuple[str, str], ...]:
        """What is promised, as signs with their figures: ε, δ, ρ, μ where known."""
        return amounts_of(self.promise)


@dataclass(frozen=True, eq=False)
class WhatIf:
    """Several budgets beside each other; `parameter` is epsilon or rho."""

    title: str
    parameter: str
    outlooks: tuple[Outlook, ...]
    spent: str

    def as_mapping(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return {
            "title": self.title,
            "parameter": self.parameter,
            "spent": self.spent,
            "budgets": [
                {
                    self.parameter: float(outlook.amount),
                    "right_guesses_in_100": outlook.right,
                    "statement": outlook.promise.as_mapping(),
                    "tables": [
                        {
                            "name": name,
                            "method": method,
                            "error_bars": bars,
                            "levels": [level.as_mapping() for level in levels],
                        }
                        for name, method, bars, levels in outlook.tables
                    ],
                }
                for outlook in self.outlooks
            ],
        }


def amounts(parameter: str, text: str) -> tuple[Decimal, ...]:
    """Read numbers that are separated by commas."""
    found = []
    for part in text.split(","):
        try:
            number = Decimal(part.strip())
        except InvalidOperation:
            raise Refused(
                f"{parameter} must be numbers with commas between them, such as 0.5,1,2; found {part!r}"
            ) from None
        if not 0 < number <= MOST_ASKED:
            raise Refused(f"{parameter} must be above 0 and at most {MOST_ASKED}, found {part.strip()}")
        found.append(number)
    return tuple(found)


def what_if(spec: Spec, parameter: str, numbers: Sequence[Decimal]) -> WhatIf:
    """Plan a spec at other budgets: methods are chosen and calibrated anew for each."""
    if getattr(spec.privacy, parameter) is None:
        other = "rho" if parameter == "epsilon" else "epsilon"
        raise Refused(f"the spec asks for {other}: use --{other} in place of --{parameter}")
    outlooks = []
    for number in numbers:
        privacy = spec.privacy.model_copy(update={parameter: number})
        job = Job.from_spec(spec.model_copy(update={"privacy": privacy}))
        tables = tuple(
            (table.name, table.chosen.method, bool(table.chosen.error_bars), levels_of(table)) for table in job.tables
        )
        outlooks.append(Outlook(number, job.guarantee, tables))
    account = Ledger(spec.ledger_file, spec.witness).account(job.dataset, job.unit)
    return WhatIf(
        spec.title, parameter, tuple(outlooks), replace(account, budget=account.budget or budget_of(job)).words
    )
