"""The parts of a spec: mappings with known keys, what is wrong in them, said with its line, and one that all share."""

from __future__ import annotations

import json
import os
import re
import unicodedata
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    StrictBool,
    Tag,
    ValidationError,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError

from holdfast.release.spec.places import At, Place, Places, SpecError

#: Longest value that a message repeats.
_LONGEST = 60


def wrong(sentence: str, at: Place = (), found: Any = None, allowed: Any = ()) -> PydanticCustomError:
    """Make the error that a validator raises; `at` leads from the validated value to the place meant."""
    # The context of a pydantic error drops None; an empty tuple stands for nothing found.
    context = {"sentence": sentence, "at": at, "found": () if found is None else found, "allowed": tuple(allowed)}
    return PydanticCustomError("spec", "{sentence}", context)


def shown(value: Any) -> str:
    """Write a value of the spec for a message, shortened; of a list or mapping only how long it is."""
    if isinstance(value, (list, tuple, dict)) and value:
        return f"a {'mapping' if isinstance(value, dict) else 'list'} of length {len(value)}"
    try:
        text = json.dumps(value, default=str, ensure_ascii=False)
    except TypeError:  # a key that is a list
        text = str(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _name(value: Any) -> str:
    """Read a name: texts and whole numbers; 1 and "1" are one name, as in a domain file."""
    if isinstance(value, bool) or not isinstance(value, (str, int)) or not str(value).strip():
        kind = f"the {type(value).__name__} " if isinstance(value, (bool, float, date)) else ""
        quotes = "; quotes make it a text" if kind else ""
        quotes = "; the values of a column stand under data.values" if isinstance(value, dict) else quotes
        raise wrong(f"must be a name (a text or a whole number), found {kind}{shown(value)}{quotes}", found=value)
    return str(value)


def text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise wrong(f"must be a text, found {shown(value)}", found=value)
    if any(unicodedata.category(each) in ("Cc", "Cs") for each in value):
        raise wrong(f"must be one line of text without control characters, found {shown(value)}", found=value)
    return value


def _domain(value: Any) -> Any:
    if isinstance(value, dict):
        raise wrong(
            "must be one file, with a row per place; files of other columns stand under data.values", found=value
        )
    return value


def _decimal(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise wrong(f"must be a number, found {shown(value)}", found=value)
    number = Decimal(repr(value))  # the shortest decimal that reads as this number: 0.1 means one tenth
    if not number.is_finite():
        raise wrong(f"must be a finite number, found {value}", found=value)
    return number.normalize()


def one_of(*allowed: str) -> BeforeValidator:
    """Return the check of a text that is one of the allowed ones."""

    def check(value: Any) -> str:
        if not isinstance(value, str) or value not in allowed:
            raise wrong(f"found {shown(value)}", found=value, allowed=allowed)
        return value

    return BeforeValidator(check, json_schema_input_type=Literal[allowed])


def as_list(value: Any) -> Any:
    return value if isinstance(value, (list, tuple)) else [value]


def either(*forms: str) -> Discriminator:
    """Choose among the forms of a value that are tagged "a-list" and "a-mapping", or else "a-single"."""

    def form(value: Any) -> str:
        found = "a-list" if isinstance(value, (list, tuple)) else "a-mapping" if isinstance(value, dict) else ""
        return found if found in forms else "a-single"

    return Discriminator(form)


Name = Annotated[str, BeforeValidator(_name, json_schema_input_type=str | int)]
Text = Annotated[str, BeforeValidator(text, json_schema_input_type=str)]
Number = Annotated[Decimal, BeforeValidator(_decimal, json_schema_input_type=float)]
Positive = Annotated[
    Decimal, Field(gt=0), BeforeValidator(_decimal, json_schema_input_type=Annotated[float, Field(gt=0)])
]
NotNegative = Annotated[
    Decimal, Field(ge=0), BeforeValidator(_decimal, json_schema_input_type=Annotated[float, Field(ge=0)])
]
Probability = Annotated[
    Decimal, Field(gt=0, lt=1), BeforeValidator(_decimal, json_schema_input_type=Annotated[float, Field(gt=0, lt=1)])
]
Count = Annotated[int, Field(strict=True, ge=1)]
#: A single value stands for a list of one.
Names = Annotated[tuple[Name, ...], BeforeValidator(as_list, json_schema_input_type=Name | list[Name])]
_Name = Annotated[Name, Tag("a-single")]
_Path = Annotated[tuple[Name, ...], Tag("a-list")]
#: A level, a node or an axis; or a path of nodes, or the axes of a margin.
Figure = Annotated[_Name | _Path, either("a-list")]
#: Cells: a node, a path, or values of columns.
Cells = Annotated[_Name | _Path | Annotated[dict[Name, Names], Tag("a-mapping")], either("a-list", "a-mapping")]
#: What codes are called: a column of the public file, or a label for each.
Labels = Annotated[_Name | Annotated[dict[Name, Text], Tag("a-mapping")], either("a-mapping")]
#: Levels, nodes, paths or margins; {LEVEL: MARGIN} where a hierarchy and a cube go together.
Held = Annotated[tuple[Cells, ...], BeforeValidator(as_list, json_schema_input_type=Cells | list[Cells])]


# --- mappings with known keys, and what is wrong in them, said with its line ------------------------------------------


class Part(BaseModel):
    """A part of the spec: frozen, and without keys that it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, value: Any) -> Any:
        if isinstance(value, cls):
            return value
        names = [field.alias or key for key, field in cls.model_fields.items()]
        if not isinstance(value, dict):
            raise wrong(f"must be a mapping with keys, found {shown(value)}", found=value, allowed=names)
        for key in value:
            if key not in names:
                raise wrong(f"there is no key {str(key)!r} here", at=(str(key),), found=key, allowed=names)
        return value


def first_error(error: ValidationError, places: Places) -> SpecError:
    found = [_explained(each, places) for each in error.errors(include_url=False)]
    return min(found, key=lambda each: each.line or 0)


#: What is wrong, by the type of a pydantic error: `found` is the value, the rest its limits.
SENTENCES = {
    "missing": "this key is missing",
    "greater_than": "must be above {gt}, found {found}",
    "greater_than_equal": "must be {ge} or more, found {found}",
    "less_than": "must lie strictly between 0 and {lt}, found {found}",
    "int_type": "must be a whole number, found {found}",
    "bool_type": "must be true or false, found {found}",
    "too_short": "at least one entry is needed, found {found}",
    "string_pattern_mismatch": "must be at most 100 lower-case letters, digits and hyphens, found {found}",
}


def _explained(each: Any, places: Places) -> SpecError:
    place, kind, value = _written(tuple(each["loc"]), places), each["type"], each.get("input")
    context = each.get("ctx", {})
    if kind == "spec":
        found = context["found"] if context["found"] != () else None
        return places.error((*place, *context["at"]), context["sentence"], found, context["allowed"])
    noun = "a list" if "tuple" in kind or "list" in kind else "a text" if "string" in kind else "a mapping"
    words = f"{value:f}" if isinstance(value, Decimal) else shown(value)
    sentence = SENTENCES.get(kind, f"must be {noun}, found {{found}}").format(found=words, **context)
    return places.error(place, sentence, None if kind == "missing" else value)


def _written(loc: Place, places: Places) -> Place:
    """Leave out the steps that pydantic adds for its own unions: keep those that are written in the file."""
    place: Place = ()
    for i, step in enumerate(loc):
        missing = i == len(loc) - 1 and isinstance(step, str) and "[" not in step and "-" not in step
        if (*place, step) in places.lines or missing:
            place = (*place, step)
    return place


# --- records that do not fit: those with a missing value, or with one outside the domain -----------------------------


class Handling(Part):
    """What happens to a record with a missing value, or with one outside the domain."""

    rule: Annotated[str, one_of("refuse", "drop", "category")]
    category: Name | dict[Name, Name] | None = None


class CategoryOf(Part):
    """Count such records as this value of the domain, or in every column as the value for it."""

    category: Name | dict[Name, Name]


def _handling(value: Any) -> Any:
    if isinstance(value, dict):
        return {"rule": "category", "category": CategoryOf.model_validate(value).category}
    if value not in ("refuse", "drop"):
        raise wrong(f"found {shown(value)}", found=value, allowed=("refuse", "drop", "{category: NAME}"))
    return {"rule": value}


HandlingRule = Annotated[
    Handling, BeforeValidator(_handling, json_schema_input_type=Literal["refuse", "drop"] | CategoryOf)
]
REFUSE = Handling(rule="refuse")


# --- what the certificate says besides ---------------------------------------------------------------------------


class OutputSpec(Part):
    """Where the release is written, and whether synthetic records are written with it."""

    folder: Text = Field(description="Folder that the release makes.")
    records: StrictBool = Field(
        default=False, description="Write one synthetic record for every one that a table counts, too."
    )

    @model_serializer(mode="wrap")
    def _short(self, handler: Any) -> Any:
        return handler(self) if self.records else self.folder


def _output(value: Any) -> Any:
    return value if isinstance(value, (dict, OutputSpec)) else {"folder": value}


#: A folder, or a folder with what is written besides the tables.
Output = Annotated[OutputSpec, BeforeValidator(_output, json_schema_input_type=str | OutputSpec)]


class AboutSpec(Part):
    """Who publishes the release, for what and about where: for the certificate, never for the mathematics."""

    curators: Names = Field(default=(), description="Who publishes it.")
    intended_use: Text | None = Field(default=None, description="What it is for.")
    region: Text | None = Field(default=None, description="Which region the data describe.")


# --- the part `privacy` of a spec: whom the release protects, against which changes, and how strongly ----------------

#: The largest epsilon, or rho, of a release; far below it no figure is protected any more.
MOST_ASKED = 200


class PersonUnit(Part):
    """A person with several records; at most `max_records` of them are kept, in at most `max_groups` cells of a table.

    With `max_groups` alone a person counts once in a cell. With it, bounds of a sum are those of what a person adds to
    a cell.
    """

    column: Name
    max_records: Count | None = Field(None, description="How many records of a person are kept.")
    max_groups: Count | None = Field(None, description="In how many cells of a table a person is counted at most.")
    max_periods: Count | None = Field(
        None, description="Of a series: only the first so many periods of a person count; left out: all."
    )
    key: Text | None = Field(None, description="Key of the hash that chooses the kept records; the dataset's name.")

    @model_validator(mode="after")
    def _limited(self) -> PersonUnit:
        if self.max_records is None and self.max_groups is None:
            raise wrong("say how many records of a person are kept, max_records, or in how many cells, max_groups")
        return self

    @property
    def records(self) -> int:
        """As how many records statements count a person: as one where groups are limited, whatever lies in them."""
        return self.most if self.max_groups is None else 1

    @property
    def most(self) -> int:
        """How many records of a person are counted in a table at most."""
        return self.max_records or self.max_groups or 1


def _unit(value: Any) -> Any:
    if value == "record":
        return None
    if not isinstance(value, dict):
        raise wrong(f"found {shown(value)}", found=value, allowed=("record", "{column: NAME, max_records: NUMBER}"))
    return value


class BudgetSpec(Part):
    """How much: epsilon, epsilon with delta, or rho."""

    epsilon: Positive | None = None
    delta: Probability | None = None
    rho: Positive | None = None

    @model_validator(mode="after")
    def _one_way(self) -> BudgetSpec:
        if (self.epsilon is None) == (self.rho is None):
            found = "neither" if self.epsilon is None else "both"
            raise wrong(f"say how much by epsilon (perhaps with delta) or by rho, found {found}")
        if self.delta is not None and self.epsilon is None:
            raise wrong("delta goes with epsilon; rho stands alone", at=("delta",))
        return self


class PrivacySpec(BudgetSpec):
    """Whom the release protects, against which changes, and how strongly."""

    unit: Annotated[
        PersonUnit | None, BeforeValidator(_unit, json_schema_input_type=Literal["record"] | PersonUnit)
    ] = Field(None, description="record, or {column: rider, max_records: 5}.")
    neighbours: Annotated[str, one_of("add-remove", "replace-one")] = "add-remove"
    noise: Annotated[str, one_of("laplace", "gaussian")] | None = Field(
        None, description="Law of the noise; left out: by the budget."
    )
    scope: Annotated[str, one_of("invariant-sharing", "subspace")] = Field(
        "invariant-sharing", description="With exact figures: the statement that the budget counts."
    )
    records: Count | None = Field(
        None,
        description="With exact figures: how many records (or persons) change together in the statement that the "
        "budget counts; left out: as many as it takes to change everything that can change.",
    )

    @model_validator(mode="after")
    def _protects(self) -> PrivacySpec:
        for key in ("epsilon", "rho"):
            asked = getattr(self, key)
            if asked is not None and asked > MOST_ASKED:
                sentence = (
                    f"with {key} {asked:f} no noise is left and nothing is protected: ask for at most {MOST_ASKED}, or "
                    "publish the figures as exact"
                )
                raise wrong(sentence, at=(key,), found=asked)
        return self

    @model_validator(mode="after")
    def _law_fits(self) -> PrivacySpec:
        if self.noise == "laplace" and self.rho is not None:
            raise wrong("rho is met by gaussian noise; laplace noise is measured by epsilon", at=("noise",))
        if self.noise == "gaussian" and self.epsilon is not None and self.delta is None:
            raise wrong("gaussian noise needs delta beside epsilon, or rho", at=("noise",))
        return self

    @model_validator(mode="after")
    def _persons_are_added(self) -> PrivacySpec:
        many = self.unit is not None and self.unit.most > 1
        if many and self.neighbours == "replace-one":
            sentence = "persons with several records can have different numbers of them: use add-remove"
            raise wrong(sentence, at=("neighbours",), found=self.neighbours)
        return self


# --- the part `data` of a spec: where the confidential records are, how rows count, and the public domain ------------

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
    rows_are_records: StrictBool = Field(
        False, description="Every row is one record, although a column looks like counts."
    )
    rows_depend_on_other_rows: StrictBool | None = Field(
        None,
        description="false: each row of the source is made from one record alone, although its query or view does not "
        "show it; the statement then assumes so.",
    )
    name: Text | None = Field(None, description="Name of the dataset in the ledger; the source's path when left out.")
    domain: Annotated[Text | None, BeforeValidator(_domain)] = Field(
        None, description="Public file (.csv or .parquet), one row per place or cell."
    )
    values: dict[Name, Figure] = Field(
        default={}, description="Public values of single columns: a list, or a public file with that column."
    )
    columns: dict[Name, Name] = Field(default={}, description="How the records call a column: {zone: PULocationID}.")
    spelling: Text | None = Field(
        None, description="A confidential file (.csv: column, value, name) of values that mean a public name."
    )
    labels: dict[Name, Labels] = Field(
        default={},
        description="What codes are called: the column of the public file with their labels, or {code: label}.",
    )
    nulls: HandlingRule = Field(
        REFUSE, description="Records with a missing value: refuse, drop or {category: NAME}, a public value."
    )
    outside: HandlingRule = Field(
        REFUSE, description="Records outside the domain: refuse, drop or {category: NAME}, a public value."
    )

    @model_validator(mode="after")
    def _one_way(self) -> DataSpec:
        if self.table is not None and self.query is not None:
            raise wrong("name a table or write a query, found both", at=("query",))
        if self.count is not None and self.rows_are_records:
            raise wrong("rows are records or have a count, found both", at=("rows_are_records",))
        if self.rows_depend_on_other_rows:
            sentence = "no statement holds about rows that depend on other records: select them one by one"
            raise wrong(sentence, at=("rows_depend_on_other_rows",), found=True)
        return self

    @property
    def address(self) -> str | None:
        """What the source is called, if the spec itself says so: a path, or a database without who signs in."""
        return USER.sub("", self.source) if isinstance(self.source, str) else None
