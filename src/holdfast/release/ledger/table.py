"""The table of a ledger, in a file or on a server: all rows, those since the last sums, and those of one release."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import sqlalchemy as sa

from holdfast.release.ledger.chain import COLUMNS, Row, unbroken

TABLE = "holdfast_ledger"
#: The kind of rows that say what all rows before them add up to.
SUMS = "sums"
SELECT = f"SELECT {', '.join(COLUMNS)} FROM {TABLE}"
INSERT = sa.text(f"INSERT INTO {TABLE} ({', '.join(COLUMNS)}) VALUES ({', '.join(f':{name}' for name in COLUMNS)})")


class Table:
    """The rows of a ledger within one transaction."""

    def __init__(self, connection: sa.Connection, where: str) -> None:
        self._connection, self._where = connection, where

    def all(self, wanted: Callable[[Row], bool] | None = None) -> tuple[Row, ...]:
        """Return the rows that are wanted; refused where the chain of all is broken."""
        return unbroken(self._found("TRUE"), self._where, wanted)

    def recent(self, before: int | None = None) -> tuple[Row, ...]:
        """Return the rows from the last sums on, or all; refused where their chain is broken.

        With `before` the sums are the last ones before the row of this number.
        """
        earlier = "" if before is None else f"AND number < {before:d}"
        words = f"SELECT number FROM {TABLE} WHERE kind = '{SUMS}' {earlier} ORDER BY number DESC LIMIT 1"
        start = self._connection.exec_driver_sql(words).scalar()
        stands_on = None if start is None else self.at(start - 1)
        return self.all() if stands_on is None else self.after(stands_on)

    def after(self, last: Row | None) -> tuple[Row, ...]:
        """Return the rows behind one; refused where their chain is broken."""
        if last is None:
            return self.all()
        return unbroken(self._found("number > :n", n=last.number), self._where, last=(last.number, last.hash))

    def at(self, number: int) -> Row | None:
        """Return the row of a number."""
        return next((Row(*values) for values in self._found("number = :n", n=number)), None)

    def find(self, kind: str, key: str) -> Row | None:
        """Return the row of a kind with a key; every key that is not empty is there once."""
        found = (Row(*values) for values in self._found("key = :key AND key <> ''", key=key))
        return next((row for row in found if (row.kind, row.key) == (kind, key)), None)

    def about(self, release: str) -> tuple[Row, ...]:
        """Return the rows whose key names a release, oldest first."""
        # A key is the name, or the name and more behind a space; "!" comes after the space.
        found = self._found("key >= :key AND key < :end AND key <> ''", key=release, end=f"{release}!")
        return tuple(row for row in (Row(*values) for values in found) if row.key.split(" ")[0] == release)

    def insert(self, rows: Sequence[Row]) -> None:
        """Add rows behind the others."""
        self._connection.execute(INSERT, [row._asdict() for row in rows])

    def _found(self, condition: str, **values: Any) -> Iterable[Sequence[Any]]:
        words = f"{SELECT} WHERE {condition} ORDER BY number"
        if values:
            return self._connection.execute(sa.text(words), values)
        if self._connection.dialect.name == "sqlite":  # the driver's own cursor takes a third of the time
            found: Iterable[Sequence[Any]] = self._connection.connection.cursor().execute(words)
            return found
        return self._connection.exec_driver_sql(words)
