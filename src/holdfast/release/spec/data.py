"""The part `data` of a spec: where the confidential records are, how rows count, and the public domain."""

from __future__ import annotations

import os
import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from holdfast.release.spec.places import At
from holdfast.release.spec.scalars import Figure, Labels, Name, Text, text, wrong, yes_or_no
from holdfast.release.spec.sections import REFUSE, HandlingRule, Part

#: An address with a name and something secret before the host, or with a secret among its options.
SECRET = re.compile(r"^(\w[\w+.-]*://)?[^@/?]*:(?!//)[^@]*@|[?&](password|passwd|pwd|token|secret|key)=", re.IGNORECASE)
#: The name of whoever signs in, which is no part of what a database is called.
USER = re.compile(r"(?<=://)[^/@]*@")


#: Names of columns that say how many records a row stands for, whatever their case.
COUNTS = frozenset(
    {"cases", "cnt", "count", "counts", "freq", "frequency", "households", "n", "obs", "observations", "people"}
    | {"persons", "pop", "population", "records", "total", "trips"}
)


class Elsewhere(Part):
    """A file or an address that is written elsewhere, since there is something secret in it."""

    env: Name | None = Field(None, description="The environment variable that holds it.")
    file: Name | None = Field(None, description="The file that holds it, in its first line.")

    @model_validator(mode="after")
    def _one(self) -> Elsewhere:
        if (self.env is None) == (self.file is None):
            raise wrong("say where the address is by one of env and file")
        return self

    def read(self, at: At) -> str:
        """Return what is written there."""
        if self.env is not None:
            found = os.environ.get(self.env, "").strip()
            if not found:
                raise at["env"].refuse(f"the environment variable {self.env!r} is not set", found=self.env)
            return found
        assert self.file is not None
        try:
            lines = at.places.resolve(self.file).read_text(encoding="utf-8").split("\n")
        except (OSError, UnicodeDecodeError):
            raise at["file"].refuse(f"the file {self.file!r} cannot be read", found=self.file) from None
        if not lines[0].strip():
            raise at["file"].refuse(f"the first line of the file {self.file!r} is empty", found=self.file)
        return lines[0].strip()


def _source(value: Any) -> Any:
    if isinstance(value, str) and SECRET.search(value):
        raise wrong(
            "a password has no place in a spec: write source: {env: NAME} or {file: NAME}, and the address there"
        )
    return value if value is None or isinstance(value, (dict, Elsewhere)) else text(value)


class DataSpec(Part):
    """Where the confidential records are, and the public domain of the tables."""

    source: Annotated[Elsewhere | str | None, BeforeValidator(_source, json_schema_input_type=str | Elsewhere)] = Field(
        None,
        description="Confidential records: a file, a folder or a pattern of files, or the address of a database; or "
        "{env: NAME}, {file: NAME} where that is written; read by release and check.",
    )
    table: Name | None = Field(None, description="The table inside a database, or the sheet of a workbook.")
    query: Text | None = Field(None, description="What a database is asked for the records, instead of a table.")
    count: Name | None = Field(None, description="The column that says how many records a row stands for.")
    rows_are_records: Annotated[bool, yes_or_no] = Field(
        False, description="Every row is one record, although a column looks like counts."
    )
    name: Text | None = Field(None, description="Name of the dataset in the ledger; the source's path when left out.")
    domain: Text | None = Field(None, description="Public file (.csv or .parquet), one row per place or cell.")
    values: dict[Name, Figure] = Field(
        default={}, description="Public values of single columns: a list, or a public file with that column."
    )
    columns: dict[Name, Name] = Field(default={}, description="How the records call a column: {zone: PULocationID}.")
    labels: dict[Name, Labels] = Field(
        default={},
        description="What codes are called: the column of the public file with their labels, or {code: label}.",
    )
    nulls: HandlingRule = Field(REFUSE, description="Records with a missing value: refuse, drop or {category: NAME}.")
    outside: HandlingRule = Field(REFUSE, description="Records outside the domain: refuse, drop or {category: NAME}.")

    @model_validator(mode="after")
    def _one_way(self) -> DataSpec:
        if self.table is not None and self.query is not None:
            raise wrong("name a table or write a query, found both", at=("query",))
        if self.count is not None and self.rows_are_records:
            raise wrong("rows are records or have a count, found both", at=("rows_are_records",))
        return self

    @property
    def address(self) -> str | None:
        """What the source is called, if the spec itself says so: a path, or a database without who signs in."""
        return USER.sub("", self.source) if isinstance(self.source, str) else None
