"""What the budgets and charges of a ledger add up to, account by account, and the rows that keep it.

Every few hundred rows a row of the chain says what all rows before it add up to, so that a charge reads from the last
but one on, and takes as long beside 100,000 charges as beside 100. Its hash stands for everything before it, as that of
any row does; whoever reads the rows before it adds up again and refuses sums that are others, or too early.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.arguments import Refused
from holdfast.privacy import Guarantee
from holdfast.release.ledger.accounts import RECORD, Account, Budget, Unit, alike, for_each_record
from holdfast.release.ledger.entries import budget_of, charge_of, content_of, unreadable
from holdfast.release.ledger.store import SUMS, Row

#: Rows after which sums are due, if as much was written as they will take: their room is then at most that of the rest.
EVERY = 256
Parts = tuple[tuple[Guarantee, ...], ...]


@dataclass
class _Sum:
    """One account: its newest budget, and how often which statements were charged for which unit."""

    budget: Any = None
    charges: Counter[tuple[str, str]] = field(default_factory=Counter)


class Sums:
    """What rows add up to, taken one by one: all from the first on, or from a row of sums on."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self._accounts: dict[tuple[str, str], _Sum] = {}
        self._said: dict[str, str] = {}
        self._parts: dict[str, Parts] = {}
        self._last = 0  # the row of the last sums, or the first of all rows
        for row in rows:
            self.take(row)

    def take(self, row: Row) -> None:
        """Take one more row; refused where it cannot be read, or says other sums than those of the rows before."""
        if row.kind == "charge":
            self._of(row.dataset, row.unit).charges[row.unit, self._statements(row)] += 1
        elif row.kind == "budget":
            self._of(row.dataset, row.unit).budget = budget_of(row).as_mapping()
        elif row.kind == SUMS and self._last == 0:
            self._begin(row)
        elif row.kind == SUMS and (row.number - self._last < EVERY or row.content != self.text()):
            raise Refused(
                f"row {row.number} of the ledger says other sums than those of the rows before it, so nothing is "
                "charged: restore it from a copy"
            )
        if row.kind == SUMS or self._last == 0:
            self._last = row.number

    def account(self, dataset: str, unit: str) -> Account:
        """Return what was spent on a dataset for a unit, and its budget; records have what is spent on persons too.

        Refused where the ledger knows a dataset or a column whose name is easily taken for this one.
        """
        who = Unit.read(unit).who
        self._refuse_look_alikes(dataset, who)
        own = self._accounts.get((dataset, who), _Sum())
        listed = [
            (part, Unit.read(charged).max_records, times)
            for (charged, text), times in own.charges.items()
            for part in self._read(text)
        ]
        if who == RECORD:
            listed += [
                (part, None, times)
                for (of, other), account in self._accounts.items()
                if of == dataset and other != RECORD
                for (_, text), times in account.charges.items()
                for part in for_each_record(self._read(text))
            ]
        parts, kept, times = zip(*listed, strict=True) if listed else ((), (), ())
        budget = None if own.budget is None else Budget.from_mapping(own.budget)
        return Account(dataset, who, budget, parts, tuple(number for number in kept if number is not None), times)

    def _refuse_look_alikes(self, dataset: str, who: str) -> None:
        names = {of for of, _ in self._accounts}
        columns = {other for of, other in self._accounts if of == dataset}
        for what, name, known in (("dataset", dataset, names), ("unit", who, columns)):
            taken = None if name in known else next((each for each in known if alike(each, name)), None)
            if taken is not None:
                raise Refused(
                    f"the ledger has the {what} {taken!a}, for which {name!a} is easily taken: write it as the ledger "
                    "does, so that what was spent on it counts, or give what is another one another name (data.name)"
                )

    def refuse_overspending(
        self, dataset: str, unit: str, parts: Sequence[Sequence[Guarantee]], budget: Budget | None
    ) -> None:
        """Refuse a release that a budget does not admit: the unit's, a second one, or, beside persons, the records'."""
        account, whose = self.account(dataset, unit), Unit.read(unit)
        limits = dict.fromkeys((account.budget, budget))
        refusals = [replace(account, budget=limit).refusal(parts, whose.max_records) for limit in limits]
        if whose.column is not None:
            refusals.append(self.account(dataset, RECORD).refusal(for_each_record(parts)))
        for refusal in refusals:
            if refusal is not None:
                raise refusal

    def beside(self, dataset: str, unit: str) -> tuple[str, ...]:
        """Say what charges of other accounts on the same dataset mean for a unit, one sentence per other account."""
        own = Unit.read(unit).who
        return tuple(
            f"{_charges_of(count, other)} {_meaning(own, other)}"
            for other, count in self.charges(dataset).items()
            if other != own and count
        )

    def accounts(self) -> list[tuple[str, str]]:
        """Return every dataset with the units that have an account, in order of appearance."""
        return list(self._accounts)

    def charges(self, dataset: str) -> dict[str, int]:
        return {who: found.charges.total() for (of, who), found in self._accounts.items() if of == dataset}

    def text(self) -> str:
        """Return what a row of sums says."""
        accounts = [
            {
                "dataset": dataset,
                "unit": who,
                "budget": found.budget,
                "charges": [[unit, json.loads(text), times] for (unit, text), times in found.charges.items()],
            }
            for (dataset, who), found in self._accounts.items()
        ]
        return json.dumps({"accounts": accounts}, ensure_ascii=False)

    def _of(self, dataset: str, unit: str) -> _Sum:
        return self._accounts.setdefault((dataset, Unit.read(unit).who), _Sum())

    def _statements(self, row: Row) -> str:
        """The statements of a charge as text; most charges say the same."""
        if row.content not in self._said:
            told, parts = charge_of(row)
            text = json.dumps(told["statements"], ensure_ascii=False)
            self._said[row.content], self._parts[text] = text, parts
        return self._said[row.content]

    def _read(self, text: str) -> Parts:
        if text not in self._parts:
            self._parts[text] = tuple(tuple(map(Guarantee.from_json, part)) for part in json.loads(text))
        return self._parts[text]

    def _begin(self, row: Row) -> None:
        try:
            for told in content_of(row)["accounts"]:
                found = self._of(told["dataset"], told["unit"])
                found.budget = told["budget"]
                for unit, statements, times in told["charges"]:
                    found.charges[unit, json.dumps(statements, ensure_ascii=False)] += int(times)
        except (ValueError, TypeError, KeyError, AttributeError):
            raise unreadable(row) from None


def due(recent: Sequence[Row]) -> str | None:
    """Return what a row of sums behind the recent ones says, where it is time for one."""
    since = max((place for place, row in enumerate(recent) if row.kind == SUMS), default=0)
    if len(recent) - since < EVERY:
        return None
    text = Sums(recent).text()
    written = sum(len(row.content) for row in recent[since:] if row.kind != SUMS)
    return text if len(text) <= written else None


def _charges_of(count: int, who: str) -> str:
    whom = Unit.read(who).words
    return f"1 charge per {whom} is" if count == 1 else f"{count} charges per {whom} are"


def _meaning(own: str, other: str) -> str:
    """Say what charges of another account mean for those whom one account protects."""
    sum_of = f"in the sum per {Unit.read(own).words}"
    if own == RECORD:
        return f"{sum_of} too: what protects a person protects each of their records"
    if other == RECORD:
        return f"not {sum_of}: it bounds what is spent on one record, and so nothing for somebody with many"
    return f"not {sum_of}: the same records are behind both"
