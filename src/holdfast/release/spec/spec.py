"""The spec: what a curator writes, checked key by key.

`read_spec` returns frozen models. Everything that can be wrong without looking at the domain is refused here, with its
line; what depends on the domain is refused later, through the places that it hands down (`at`), in the same form.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PrivateAttr, StrictBool, ValidationError, model_validator

from holdfast.arguments import Refused
from holdfast.release.spec.places import At, Places, parsed, plain, read_yaml, whole_characters
from holdfast.release.spec.rules import Holds
from holdfast.release.spec.sections import (
    AboutSpec,
    BudgetSpec,
    Cells,
    DataSpec,
    Name,
    Output,
    Part,
    PrivacySpec,
    Text,
    as_list,
    first_error,
    one_of,
    wrong,
)
from holdfast.release.spec.table import KINDS, LINKED, METHODS, OF_SUMS, TableSpec
from holdfast.release.spec.time import TimeSpec

ENGINES = ("local", "spark")
LEDGER_FILE = "holdfast-ledger.sqlite"
#: The folder of a spec that names none.
NOWHERE = "(no folder)"
#: The methods of a series: what has known errors beside noise that hangs together over periods.
OVER_TIME = ("auto", "noise", "onto", "topdown", "bluedown")
#: What belongs to a table and stands beside it where there is only one.
BESIDE = ("hold", "method")


class LedgerSpec(Part):
    """Where the ledger is, and how much may be spent there on this dataset in total."""

    file: Text = Field(
        default=LEDGER_FILE, description="A file, or postgresql: the server at the address in HOLDFAST_LEDGER."
    )
    witness: Text | None = Field(
        default=None, description="A second copy that must agree: a file, or the address of a server."
    )
    budget: BudgetSpec | None = None
    in_report: Annotated[StrictBool, Field(description="Whether the report says what was spent and is left.")] = True


class AgentsSpec(Part):
    """Who makes the release together: one agent per node of a level or value of a column, or agents by name."""

    by: Name | None = Field(None, description="One agent per node of this level, or per value of this column.")
    agents: dict[Name, Annotated[tuple[Cells, ...], BeforeValidator(as_list)]] | None = Field(
        None, description="What each agent holds: nodes, paths, or {column: value}."
    )

    @model_validator(mode="after")
    def _one_way(self) -> AgentsSpec:
        if (self.by is None) == (self.agents is None):
            raise wrong(f"say who the agents are by one of by and agents, found {'both' if self.by else 'neither'}")
        return self


def _ledger(value: Any) -> Any:
    if isinstance(value, dict) and "postgresql" in value:
        sentence = "the address of a server stands in the variable HOLDFAST_LEDGER: write ledger: {file: postgresql}"
        raise wrong(sentence, at=("postgresql",))
    return {"file": value} if isinstance(value, str) else value


class Spec(Part):
    """A whole spec. Paths in it are relative to the folder of the spec."""

    title: Text
    data: DataSpec
    privacy: PrivacySpec
    table: TableSpec | None = None
    several: tuple[TableSpec, ...] = Field((), alias="tables", description="Several tables that share the budget.")
    hold: Holds = Field((), description="What must hold in the one table.")
    method: Annotated[str, one_of(*METHODS)] | None = None
    ledger: Annotated[LedgerSpec, BeforeValidator(_ledger, json_schema_input_type=str | LedgerSpec)] = LedgerSpec()
    accept_disclosure: StrictBool = Field(
        False, description="Release although the exact figures determine others, which are then disclosed with them."
    )
    engine: Annotated[str, one_of(*ENGINES)] = Field(
        "local", description="Who draws: this process, or (spark) the cluster of the Spark frame that is released."
    )
    distributed: AgentsSpec | None = Field(
        None, description="Agents with records of their own and a shared secret make the release: {by: LEVEL}."
    )
    time: TimeSpec | None = Field(None, description="One table in every period, charged once for all of them.")
    about: AboutSpec = Field(AboutSpec(), description="Who publishes the release, for what, and about which region.")
    sign: Text | None = Field(None, description="File of the key that signs the release (holdfast key FILE makes it).")
    written: Output = Field(
        alias="output", description="Folder that the release makes, or {folder: out, records: true}."
    )

    _places: Places = PrivateAttr(default_factory=lambda: Places(Path("spec.yaml")))
    _written: Any = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _one_or_several(self) -> Spec:
        if (self.table is None) == (not self.several):
            found = "neither" if self.table is None else "both"
            raise wrong(f"write table for one table or tables for several, found {found}")
        if self.several:
            for key in BESIDE:
                if key in self.model_fields_set:
                    raise wrong(f"with several tables, {key} is written inside each of them", at=(key,))
        elif self.table is not None:
            for key in BESIDE:
                if key in self.model_fields_set and key in self.table.model_fields_set:
                    raise wrong(f"{key} is written twice: here and inside table", at=(key,))
        names = [table.name for table in self.several]
        twice = next((i for i, name in enumerate(names) if name in names[:i]), None)
        if twice is not None:
            sentence = f"every table needs its own name, but {names[twice]!r} occurs twice"
            raise wrong(sentence, at=("tables", twice), found=names[twice])
        return self

    @model_validator(mode="after")
    def _dropping_removes(self) -> Spec:
        for key in ("nulls", "outside"):
            if self.privacy.neighbours == "replace-one" and getattr(self.data, key).rule == "drop":
                sentence = (
                    "a record replaced by one that is dropped changes how many are counted, which replace-one does not "
                    "cover: use refuse or {category: NAME} here, or neighbours: add-remove"
                )
                raise wrong(sentence, at=("data", key), found="drop")
        return self

    @model_validator(mode="after")
    def _rows_of_persons(self) -> Spec:
        if self.data.count is not None and self.privacy.unit is not None:
            sentence = (
                "a counted row does not say whose records it stands for, so nobody's records can be limited: use unit: "
                "record, or one row per record"
            )
            raise wrong(sentence, at=("data", "count"), found=self.data.count)
        return self

    @model_validator(mode="after")
    def _sums_of_records(self) -> Spec:
        """Sums are taken over the records themselves, by one process."""
        if not any(table.added for table in self.tables):
            return self
        alone = "sums are taken over single records"
        if self.data.count is not None:
            raise wrong(f"{alone}, and a counted row stands for several: give one row per record", at=("data", "count"))
        if self.distributed is not None or self.engine != ENGINES[0]:
            key = "engine" if self.distributed is None else "distributed"
            raise wrong(f"{alone} in one place: leave this out", at=(key,))
        if self.written.records:
            raise wrong("synthetic records have counts alone: leave records out", at=("output",))
        for table in (each for each in self.tables if each.added):
            rule = next((each.rule for each in table.hold if each.rule not in OF_SUMS), None)
            if rule is not None:
                sentence = f"{rule} speaks of counts, and with sums a table holds {', '.join(OF_SUMS)} alone"
                raise wrong(f"{sentence}: put the counts into a table of their own", at=("hold",), found=rule)
        return self

    @model_validator(mode="after")
    def _groups_of_persons(self) -> Spec:
        """Groups are cells of tables, which only the process that counts knows."""
        if self.privacy.unit is None or self.privacy.unit.max_groups is None:
            return self
        if self.engine != ENGINES[0] or any(table.linked for table in self.tables):
            sentence = "max_groups goes with neither linked tables nor engine: write max_records"
            raise wrong(sentence, at=("privacy", "unit"))
        if any(rule.rule == "exact" for table in self.tables for rule in table.hold):
            sentence = "beside exact figures persons are limited by their records: write max_records alone"
            raise wrong(sentence, at=("privacy", "unit"))
        return self

    @model_validator(mode="after")
    def _households(self) -> Spec:
        linked = [table for table in (*self.several, *([] if self.table is None else [self.table])) if table.linked]
        if not linked:
            return self
        if self.several:
            raise wrong("linked tables are one release: write table, and other tables in another one", at=("tables",))
        if self.privacy.unit is None:
            sentence = "linked tables protect households: write unit: {column: household, max_records: NUMBER}"
            raise wrong(sentence, at=("privacy",))
        if self.distributed is not None or self.engine != ENGINES[0]:
            key = "engine" if self.distributed is None else "distributed"
            raise wrong("linked tables are made in one place: leave this out", at=(key,))
        for key in ("nulls", "outside"):
            if getattr(self.data, key).rule == "drop":
                raise wrong("a household without some of its records breaks the ties: use refuse", at=("data", key))
        return self

    @model_validator(mode="after")
    def _agents_fit(self) -> Spec:
        if self.distributed is None:
            return self
        if self.several:
            raise wrong("agents make one table: write table, and a release for each", at=("tables",))
        if self.privacy.unit is not None:
            sentence = "a person may have records with several agents, and none of them can count all: use unit: record"
            raise wrong(sentence, at=("privacy", "unit"))
        return self

    @model_validator(mode="after")
    def _over_time(self) -> Spec:
        """A series hides records that come and go, by whole Gaussian noise that one process moves."""
        if self.time is None:
            if self.privacy.unit is not None and self.privacy.unit.max_periods is not None:
                raise wrong("only a series has periods: write time, or leave this out", at=("privacy", "unit"))
            return self
        wishes = {
            ("privacy", "neighbours"): self.privacy.neighbours != "add-remove",
            ("privacy", "noise"): self.privacy.noise == "laplace" or (self.privacy.rho or self.privacy.delta) is None,
            ("distributed",): self.distributed is not None,
            ("engine",): self.engine != ENGINES[0],
            ("privacy", "scope"): self.privacy.scope == "subspace",
            ("privacy", "unit"): self.privacy.unit is not None and self.privacy.unit.max_groups is not None,
        }
        for at, odd in wishes.items():
            if odd:
                sentence = "a series hides records that come and go, by Gaussian noise that one process draws: ask for"
                raise wrong(f"{sentence} rho, or delta beside epsilon, with neighbours: add-remove, and no more", at=at)
        for table in self.tables:
            if (
                table.linked
                or table.residuals
                or table.added
                or table.numbers != "whole"
                or table.method not in OVER_TIME
            ):
                sentence = "a series has whole tables of counts, by noise, onto, topdown or bluedown, not linked and"
                raise wrong(f"{sentence} without residuals", at=("method",), found=table.method)
        return self

    # --- what others read --------------------------------------------------------------------------------------

    @cached_property
    def path(self) -> Path:
        return self._places.file

    @cached_property
    def tables(self) -> tuple[TableSpec, ...]:
        if self.table is None:
            return self.several
        given = {key: getattr(self, key) for key in BESIDE if key in self.model_fields_set}
        return (self.table.model_copy(update={key: value for key, value in given.items() if value is not None}),)

    @cached_property
    def linked(self) -> bool:
        """Whether the tables of the release are linked, and so are about households."""
        return any(table.linked for table in self.tables)

    @cached_property
    def at(self) -> At:
        return At(self._places)

    @cached_property
    def places_of_tables(self) -> tuple[At, ...]:
        """Where each table is written; what must hold in the one table may stand outside it."""
        if self.several:
            return tuple(self.at["tables"][number] for number in range(len(self.several)))
        return (At(self._places, ("table",), frozenset(BESIDE) & self.model_fields_set),)

    @cached_property
    def output(self) -> Path:
        if self.written.folder == NOWHERE:
            raise Refused("the spec names no folder for the release: write output: out in it, or give output=")
        return self.resolve(self.written.folder)

    @cached_property
    def ledger_file(self) -> Path | str:
        return self._ledger_place(self.ledger.file)

    @cached_property
    def witness(self) -> Path | str | None:
        """The second copy of the ledger, if there is one."""
        return None if self.ledger.witness is None else self._ledger_place(self.ledger.witness)

    def _ledger_place(self, text: str) -> Path | str:
        return text if text == "postgresql" or text.startswith(("postgresql:", "postgres:")) else self.resolve(text)

    @cached_property
    def key_file(self) -> Path | None:
        """The file of the key that signs the release, if one does."""
        return None if self.sign is None else self.resolve(self.sign)

    @cached_property
    def period_column(self) -> str | None:
        """How the records call the column of the periods of a series."""
        return None if self.time is None else self.data.columns.get(self.time.column, self.time.column)

    @cached_property
    def person(self) -> str | None:
        """How the records call the column of the persons; None where single records are protected."""
        unit = self.privacy.unit
        return None if unit is None else self.data.columns.get(unit.column, unit.column)

    @cached_property
    def budget(self) -> BudgetSpec | None:
        """What may be spent on the dataset in total, if the spec says so."""
        return self.ledger.budget

    @property
    def plain_values(self) -> Any:
        return self._written

    def resolve(self, text: str) -> Path:
        return self._places.resolve(text)

    @property
    def canonical(self) -> str:
        """The spec as JSON in one fixed form: comments, order of keys and layout do not matter."""
        one_by_one = {"table", "several", *BESIDE}
        content = self.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude=one_by_one)
        content["tables"] = [table.model_dump(mode="json", exclude_defaults=True) for table in self.tables]
        return json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))

    @property
    def hash(self) -> str:
        return "sha256:" + hashlib.sha256(self.canonical.encode()).hexdigest()


def read_spec(spec: str | Path | Mapping[str, Any], *, folder_needed: bool = True) -> Spec:
    """Read and check a spec: a file, a YAML text (of several lines, or in braces) or a mapping.

    Every refusal names the line, the key, what was found and what is allowed. Paths in a text or a mapping are relative
    to the current folder. Without `folder_needed` it may say nothing of `output`: plans and checks write nothing.
    """
    here = Places(Path("spec").absolute())
    if isinstance(spec, Mapping):
        content, places = plain(spec, here), here
        whole_characters(content, places)
    elif isinstance(spec, str) and ("\n" in spec or spec.lstrip().startswith("{")):
        content, places = parsed(spec, here)
    elif isinstance(spec, (str, Path)):
        content, places = read_yaml(Path(spec).absolute())
    else:
        raise Refused(f"spec must be a path, a mapping or a YAML text, found an object of type {type(spec).__name__}")
    if not folder_needed and isinstance(content, dict):
        content = {"output": NOWHERE, **content}
    return checked(content, places)


def checked(content: Any, places: Places) -> Spec:
    """Check the plain values of a spec; refusals name the lines of `places`, to whose folder paths are relative."""
    try:
        found = Spec.model_validate(content)
    except ValidationError as error:
        raise first_error(error, places) from None
    found._places, found._written = places, content
    return found


# --- What is published of specs: their JSON Schema, and the part of one that a certificate shows, no place or key

#: What is published of a spec besides its tables; whatever is not listed here stays inside.
PUBLISHED: dict[str, Any] = {
    **dict.fromkeys(("title", "privacy", "accept_disclosure", "distributed", "about", "time"), True),
    "data": {"domain", "values", "labels", "nulls", "outside", "query", "rows_depend_on_other_rows"},
}
#: The key by which the records of a person are chosen is no one's business.
KEPT_BACK: dict[str, Any] = {"privacy": {"unit": {"key"}}, "time": {"key"}}


def public_part(spec: Spec) -> dict[str, Any]:
    """Return what a spec says, without the source, the ledger, the output and the key of the persons.

    Public files are named by their last names alone; `public_files` of the certificate has their hashes.
    """
    content = spec.model_dump(mode="json", by_alias=True, exclude_defaults=True, include=PUBLISHED, exclude=KEPT_BACK)
    data = content.get("data", {})
    if "domain" in data:
        data["domain"] = _name(data["domain"])
    if "values" in data:
        data["values"] = {column: _name(found) for column, found in data["values"].items()}
    content["tables"] = [_table(table) for table in spec.tables]
    return content


def _table(table: TableSpec) -> dict[str, Any]:
    found = table.model_dump(mode="json", exclude_defaults=True)
    if isinstance(table.guess, str):
        found["guess"] = _name(table.guess)
    return found


def _name(found: Any) -> Any:
    """The last name of a file; anything else as it is."""
    return Path(found).name if isinstance(found, str) else found


DIALECT = "https://json-schema.org/draft/2020-12/schema"


def spec_schema() -> dict[str, Any]:
    """Return the JSON Schema of a spec as it is written, short forms included."""
    schema: dict[str, Any] = _tidy(Spec.model_json_schema(by_alias=True))
    for name in ("nulls", "outside"):
        schema["$defs"]["DataSpec"]["properties"][name]["default"] = "refuse"
    schema["properties"]["ledger"].pop("default")
    either = [{"required": ["epsilon"]}, {"required": ["rho"]}]
    schema["$defs"]["PrivacySpec"]["oneOf"] = schema["$defs"]["BudgetSpec"]["oneOf"] = either
    schema["$defs"]["TableSpec"]["oneOf"] = [
        {"required": [kind]} | ({"not": {"required": ["hierarchy"]}} if kind == "cube" else {})
        for kind in KINDS
        if kind != LINKED  # which goes with hierarchy
    ]
    schema["oneOf"] = [{"required": ["table"]}, {"required": ["tables"]}]
    return {"$schema": DIALECT, "title": "holdfast spec", **schema}


def _tidy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _tidy(each) for key, each in value.items() if not (key == "title" and isinstance(each, str))}
    return [_tidy(each) for each in value] if isinstance(value, list) else value
