"""What is asked of confidential records, and the one thing that every kind of source does: count itself.

A kind of source is one class with the methods of `Source`; `opening.py` says which kind reads what.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import duckdb

from holdfast.arguments import LARGEST, Refused
from holdfast.release.spec.places import At

#: The most records that are counted: every figure is below 2⁶².
MOST_RECORDS = LARGEST - 1


@dataclass(frozen=True)
class Persons:
    """Of each value of a column at most so many records are kept, by the order of a keyed hash.

    `nobody`: whether records without a value are left out; otherwise nothing is counted if there is one.
    """

    column: str
    max_records: int
    key: str
    nobody: bool


@dataclass(frozen=True)
class Asked:
    """What a source is asked to count by: columns, as the records call them.

    `count`: the column that says how many records a row stands for; None: every row is a record. `persons`: whose
    records are limited before anything is counted. A spec has at most one of the two.
    """

    columns: tuple[str, ...]
    count: str | None = None
    persons: Persons | None = None


class Source(Protocol):
    """Confidential records, wherever they are."""

    def kinds(self) -> Mapping[str, str]:
        """Return the columns and the types of their values, in the words of the local engine."""

    def counted(self, asked: Asked) -> str:
        """Count the records by their values, where they are; return the words that name the result in the local engine.

        The result has a text or nothing per column asked for (t0, t1, ...) and the number n of records that have these
        values; combinations may occur more than once. n is missing where some row has no count, a whole number from 0
        to MOST_RECORDS, or some record no person though it must have one.
        """

    def uncounted(self, count: str) -> int | None:
        """Return the number of the first row, from 1, whose count is missing or not whole; None: rows have no order."""


@dataclass(frozen=True)
class Place:
    """Where records are, as a text says it: files, or the address of a database.

    `at` is where the spec speaks of the data, `path` the text as an absolute path, `ending` ends what was opened.
    `counted`: a column says how many records a row stands for. `hidden`: the text is written elsewhere, since there is
    something secret in it.
    """

    engine: duckdb.DuckDBPyConnection
    at: At
    text: str
    path: Path
    table: str | None
    query: str | None
    ending: ExitStack
    counted: bool
    hidden: bool = False

    @property
    def called(self) -> str:
        """How a message calls it."""
        return "that is written elsewhere" if self.hidden else repr(self.text)

    def refuse(
        self, sentence: str, key: str = "source", found: str | None = None, allowed: Iterable[str] = ()
    ) -> Refused:
        """Make the error for a key of the data."""
        return self.at[key].refuse(sentence, found, allowed)
