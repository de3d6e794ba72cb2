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
        """Return the rows from the last sums but one on, or all; refused where their chain is broken.

        With `before` only sums before the row of this number are meant. The last sums are so among the rows that are
        added up, and are refused where they are others.
        """
        earlier = "" if before is None else f"AND number < {before:d}"
        words = f"SELECT number FROM {TABLE} WHERE kind = '{SUMS}' {earlier} ORDER BY number DESC LIMIT 1 OFFSET 1"
        start = self._connection.exec_driver_sql(words).scalar()
        return self.all() if start is None else self.since(start)

    def since(self, number: int) -> tuple[Row, ...]:
        """Return the row of a number and those behind it; refused where their chain is broken."""
        return self.after(next((Row(*values) for values in self._found("number = :n", n=number - 1)), None))

    def after(self, last: Row | None, wanted: Callable[[Row], bool] | None = None) -> tuple[Row, ...]:
        """Return the rows behind one, those that are wanted; refused where their chain is broken."""
        if last is None:
            return self.all(wanted)
        return unbroken(self._found("number > :n", n=last.number), self._where, wanted, (last.number, last.hash))

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
