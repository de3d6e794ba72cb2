"""Whom a release protects: single records, or persons of whom a bounded number of records is kept.

The ledger keeps one account per dataset and protected unit (`who`). How many records of a person a release keeps
belongs to its charge: releases that keep 5 and 3 records of one person spend on the same person.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from holdfast.arguments import Refused
from holdfast.privacy import Guarantee
from holdfast.queries import Neighbours

RECORD, COLUMN = "record", "column "
_TEXT = re.compile(rf"{COLUMN}(?P<column>.+?)(?:, at most (?P<number>[1-9][0-9]*) records?)?", re.DOTALL)


@dataclass(frozen=True)
class Unit:
    """A record, or a person: a value of a column of the records, of whom at most `max_records` records are kept."""

    column: str | None = None
    max_records: int | None = None

    @classmethod
    def read(cls, text: Any) -> Unit:
        """Read what `str` writes; the number of records may be left out, as in the name of an account."""
        if text == RECORD:
            return cls()
        found = _TEXT.fullmatch(text) if isinstance(text, str) else None
        if found is None or not found["column"].strip():
            raise Refused(f"unit must be {RECORD!r} or '{COLUMN}NAME', the column of the persons, found {text!r}")
        return cls(found["column"], None if found["number"] is None else int(found["number"]))

    @property
    def who(self) -> str:
        """Whose account it is, in the words of the ledger."""
        return RECORD if self.column is None else f"{COLUMN}{self.column}"

    @property
    def words(self) -> str:
        """Whom it protects, in a sentence."""
        return RECORD if self.column is None else f"person ({COLUMN}{self.column})"

    def __str__(self) -> str:
        if self.max_records is None:
            return self.who
        return f"{self.who}, at most {self.max_records} record{'s' if self.max_records > 1 else ''}"


def about_persons(statement: Guarantee, kept: int) -> Guarantee:
    """Return a statement about records as one about persons of whom at most `kept` records are kept.

    *Guarantee:* p persons who come or go change at most p times `kept` of the kept records, whatever theirs are.
    """
    persons = statement.records // kept
    if persons == 0:
        raise Refused(f"a statement about {statement.records} records does not cover a person with {kept} of them")
    return replace(statement, neighbours=Neighbours(statement.neighbours.kind, records=persons))


def about_records(statement: Guarantee, kept: set[int]) -> Guarantee:
    """Return a sum of statements about persons as one about so many records as every release keeps of them."""
    persons, least = statement.records, min(kept)
    relation = Neighbours(statement.neighbours.kind, records=persons * least)
    if len(kept) == 1:
        return replace(statement, neighbours=relation)
    numbers = " or ".join(map(str, sorted(kept)))
    whom = "one person" if persons == 1 else f"{persons} persons"
    reason = f"{statement.because.rstrip('. ')}; it covers {whom}, of whom the releases keep at most {numbers} records"
    return replace(statement, neighbours=relation, because=reason, exact=False)
