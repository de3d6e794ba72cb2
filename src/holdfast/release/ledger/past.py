"""What a release needs of those before it: read once from the first row on, and later from where that ended."""

from __future__ import annotations

from typing import Any

from holdfast.arguments import Refused
from holdfast.release.ledger.accounts import Account
from holdfast.release.ledger.chain import Row
from holdfast.release.ledger.entries import STATES, Entry, content_of, entries_of, release_of
from holdfast.release.ledger.sums import Sums
from holdfast.release.ledger.table import Table


class Past:
    """The charges, unfinished releases and exact figures of a dataset, and what was spent on it per unit.

    Whatever a ledger says of itself is checked while it is read: its chain, and its sums.
    """

    def __init__(self, dataset: str, unit: str) -> None:
        self._dataset, self._unit = dataset, unit
        self._last: Row | None = None
        self._sums = Sums()
        self._open: dict[str, list[Row]] = {}
        #: The exact figures of every release, table by table, as they were kept; `release` says which one it was.
        self.figures: list[dict[str, Any]] = []

    def read(self, table: Table | None) -> Past:
        """Take the rows behind the last one that was taken; refused where they do not follow from it."""
        last = self._last
        if last is not None and (table is None or table.since(last.number)[:1] != (last,)):
            raise Refused(
                "the ledger is not the one that was read when this began: an old copy was put back, or it was removed; "
                "find out which, and restore it"
            )
        for row in () if table is None else table.after(self._last, self._takes):
            charge = None if table is None else table.find("charge", row.key)
            title = row.key if charge is None else content_of(charge).get("title")
            told = f"{title!r} of {row.at[:10]}"
            self.figures += [{**each, "release": told} for each in content_of(row)["tables"]]
        return self

    @property
    def account(self) -> Account:
        """What was spent on the dataset for the unit, and its budget."""
        return self._sums.account(self._dataset, self._unit)

    @property
    def unfinished(self) -> list[Entry]:
        """The charges that have no mark of a published release, oldest first."""
        return entries_of((row for rows in self._open.values() for row in rows), self._dataset, self._unit)

    def _takes(self, row: Row) -> bool:
        """Take a row; tell whether it has figures of the dataset."""
        self._sums.take(row)
        self._last = row
        if row.kind == "published":
            self._open.pop(release_of(row), None)
        elif row.kind in STATES:
            self._open.setdefault(release_of(row), []).append(row)
        return row.kind == "figures" and row.dataset == self._dataset
