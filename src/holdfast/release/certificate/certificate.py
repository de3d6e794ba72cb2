"""The certificate of a release: what it promises, what must hold in it, and which files belong to it.

`deployment` uses the field names of the OpenDP deployments registry. The certificate is made from public things alone:
the spec, the domain, the mechanisms and the released files. `seal` is the hash of everything else in it, against
accidents; the ledger keeps the hash of the whole file, against everybody who cannot write there, and `ledger` is the
place of the charge in the ledger's chain, so that a ledger which was rolled back contradicts what was published.
"""

from __future__ import annotations

import errno
import hashlib
import json
import re
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field, ValidationError

from holdfast.arguments import Refused
from holdfast.release.certificate.registry import Deployment, Parameter
from holdfast.release.certificate.statement import (
    AcceptedError,
    Model,
    Number,
    RecodedAxis,
    ResidualNoise,
    Software,
    Statement,
)
from holdfast.release.storage.files import CERTIFICATE, plain_json, read_plain
from holdfast.release.storage.parts import part_names

#: Version of the JSON form, and the name of its file.
SCHEMA: Final = "holdfast-certificate-1"
FILE = CERTIFICATE
#: The data dictionary beside it.
PACKAGE = "datapackage.json"
#: Probability with which an interval covers its true value.
CONFIDENCE = 0.95
#: A file of a release: one plain name, nothing that leads out of its folder.
FILE_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
#: The same, or a part of a table in a folder of its own.
PART_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[0-9]{5,}[.][a-z]+)?$"
HASH = r"^sha256:[0-9a-f]{64}$"


#: "areas": margins of a cube in every area of a hierarchy; "linked": those of several tables that are tied.
Kind = Literal["hierarchy", "histogram", "cube", "areas", "linked"]
Row = Annotated[int, Field(ge=0)]


class Bound(Model):
    """Inclusive limits of some rows; the numbers are exact."""

    rows: list[Row]
    low: Number | None
    high: Number | None


class Sum(Model):
    """A weighted sum of rows with inclusive limits; the numbers are exact."""

    rows: list[Row]
    weights: list[Number]
    low: Number | None
    high: Number | None


class Figure(Model):
    """Figures that are published exactly: each is the sum of the listed rows."""

    figure: str
    rows: list[list[Row]]


class Parents(Model):
    """The names of the rows say which rows add up to which."""

    parents: Literal[True]


class Unprotected(Model):
    """Figures of one level or margin that nothing protects: how many of how many, and the runs of their rows.

    `records` is how many records the allowed changes alter together. Exact sums of rows have no rows of their own; the
    rows that they sum up are under `holds`.
    """

    why: str
    level: str
    figures: Annotated[int, Field(ge=1)]
    of: Annotated[int, Field(ge=1)]
    rows: list[tuple[Row, Row]]
    records: Annotated[int, Field(ge=1)] | None


class Pairs(Model):
    """Pairs of values of a column that need so many records; not `exact`: so many suffice, fewer may."""

    records: Annotated[int, Field(ge=1)]
    pairs: Annotated[int, Field(ge=1)]
    example: tuple[str, str]
    exact: bool


class ProtectedColumn(Model):
    """How many records must change together before any value of a column can become any other, and what that costs."""

    column: str
    kind: Literal["add-remove", "replace-one"]
    records: Annotated[int, Field(ge=1)] | None
    exact: bool
    steps: list[Pairs]
    fixed: list[tuple[str, str]]
    fixed_pairs: Annotated[int, Field(ge=0)]
    undecided: Annotated[int, Field(ge=0)]
    beyond: Annotated[int, Field(ge=0)]
    epsilon: float | None
    delta: float | None
    rho: float | None
    in_words: str


class Protects(Model):
    """What statements protect, column by column; `records` is what changes everything that can change at all."""

    kind: Literal["add-remove", "replace-one"]
    records: Annotated[int, Field(ge=1)] | None
    columns: list[ProtectedColumn]


class Side(Model):
    """What holds on one side of a union, in row numbers from 0."""

    nonnegative: bool
    bounds: list[Bound]
    orders: list[list[Row]]
    linear: list[Sum]


class Holds(Model):
    """What must hold in a table, in row numbers from 0."""

    consistent: bool
    nonnegative: bool
    whole: bool
    sums: list[tuple[Row, list[Row]]] | Parents
    bounds: list[Bound]
    orders: list[list[Row]] = Field(default=[])
    linear: list[Sum] = Field(default=[])
    either: list[list[Side]] = Field(default=[])
    impossible: list[Row]
    exact: list[Figure]


class Interval(Model):
    """What the columns `low` and `high` mean: limits that are certain alone (`bounds`), or without a basis empty."""

    confidence: float
    basis: Literal["law", "simulation", "bounds"] | None
    sentence: str


class Noise(Model):
    """Independent noise of some figures before anything is made to hold; `law` is null where nothing is measured.

    `scale` is λ of Laplace noise and σ of Gaussian noise; `parameter` is λ, or σ², exactly.
    """

    law: Literal["laplace", "gaussian"] | None
    whole: bool
    scale: float | None
    parameter: Number | None
    figures: Annotated[int, Field(ge=1)]


class LevelCertificate(Model):
    """One level or margin: its share of the budget, its noise, and the errors that the plan expected.

    `exact`: no figure of it has noise; so many are `published` exactly, and so many follow from these. `noise` is that
    of the noisy answers, empty for margins that none was taken of. The errors are null where nobody can tell them;
    `interval_width` is that of 95 %.
    """

    level: str
    figures: Annotated[int, Field(ge=1)]
    exact: bool
    published: Annotated[int, Field(ge=0)] = 0
    follows: Annotated[int, Field(ge=0)] = 0
    share: Number | None
    noise: list[Noise]
    in_words: str
    expected_absolute_error: float | None
    interval_width: float | None


class ComparedMethod(Model):
    """One method that came into question, at the same total guarantee as the others, or why it did not."""

    method: str
    noise: str
    chosen: bool
    last_resort: bool
    refused: str | None
    error_bars: bool | None
    expected_absolute_error: float | None
    per_level: list[float] | None
    basis: str | None


class TableNeighbours(Model):
    """The changes of the records that the noise was made for."""

    kind: Literal["add-remove", "replace-one"]
    records: Annotated[int, Field(ge=1)]


class LinkedTable(Model):
    """One of several linked tables: axes, values of each, rows of one household at most, weights of cells in ties."""

    name: str
    axes: list[str]
    shape: list[Annotated[int, Field(ge=1)]]
    most: Annotated[int, Field(ge=1)]
    ties: list[list[int]]


class TableCertificate(Model):
    """One released table; `places` are the columns of the levels of a hierarchy with a cube, the top one first.

    `labels` are those of its columns whose codes have names for people, each in a column behind the figures.
    `parts`: its files are folders of so many, whose rows begin with their number in the table; 0: each is one file.
    `runs`: each part is a run of whole areas that follows the one before, those of upper levels first.
    """

    name: str
    kind: Kind
    places: list[str] = Field(default=[])
    rows: Annotated[int, Field(ge=1)]
    outputs: Annotated[int, Field(ge=1)]
    levels: list[str]
    columns: list[str]
    labels: list[str] = Field(default=[])
    recoded: list[RecodedAxis] = Field(default=[])
    residuals: list[ResidualNoise] = Field(default=[])
    domain_hash: Annotated[str, Field(pattern=HASH)]
    grid: Number
    neighbours: TableNeighbours
    method: str
    ways: str
    mechanism: str
    noise_by_level: list[LevelCertificate]
    errors_known: str
    simulated_tables: Annotated[int, Field(ge=0)]
    compared: list[ComparedMethod]
    accepted: list[AcceptedError] = Field(default=[])
    statements: list[Statement]
    holds: Holds
    unprotected: list[Unprotected]
    protects: Protects | None = None
    linked: list[LinkedTable] = Field(default=[])
    interval: Interval
    parquet: Annotated[str, Field(pattern=FILE_NAME)]
    csv: Annotated[str, Field(pattern=FILE_NAME)]
    measurements: Annotated[str, Field(pattern=FILE_NAME)] | None
    measurements_csv: Annotated[str, Field(pattern=FILE_NAME)] | None
    records: Annotated[str, Field(pattern=FILE_NAME)] | None
    records_csv: Annotated[str, Field(pattern=FILE_NAME)] | None
    parts: Annotated[int, Field(ge=0)] = 0
    runs: bool = False
    record_columns: list[str]
    ties: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")] | None = None

    @property
    def measured(self) -> list[LevelCertificate]:
        """The levels or margins of its outputs, without exact margins that are written besides."""
        return [level for level in self.noise_by_level if level.noise or self.residuals]

    @property
    def files(self) -> list[str]:
        """The names of its files."""
        noisy = (self.measurements, self.measurements_csv)
        listed = (self.parquet, self.csv, *noisy, self.records, self.records_csv)
        return [each for name in listed if name is not None for each in part_names(name, self.parts)]


class PublicFile(Model):
    """A public file that the release was made with."""

    name: str
    sha256: Annotated[str, Field(pattern=HASH)]


class ReleasedFile(Model):
    """One file of the release."""

    name: Annotated[str, Field(pattern=PART_NAME)]
    bytes: Annotated[int, Field(ge=0)]
    sha256: Annotated[str, Field(pattern=HASH)]


class LedgerHead(Model):
    """The row of the charge in the ledger, and its hash, which stands for all rows up to there."""

    row: Annotated[int, Field(ge=1)]
    hash: Annotated[str, Field(pattern=HASH)]


class Certificate(Model):
    """The certificate of a release."""

    form: Literal["holdfast-certificate-1"] = Field(default=SCHEMA, alias="schema")
    release: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    title: str
    software: Software
    spec_hash: Annotated[str, Field(pattern=HASH)]
    spec: dict[str, Any]
    public_files: list[PublicFile]
    unit: str
    protected: str = ""
    asked: dict[Parameter, Number]
    statements: Annotated[list[Statement], Field(min_length=1)]
    unprotected: list[str]
    caveats: list[str]
    spent: list[str] = Field(default=[])
    tables: Annotated[list[TableCertificate], Field(min_length=1)]
    deployment: Deployment
    files: list[ReleasedFile]
    ledger: LedgerHead | None = None
    signed_by: Annotated[str, Field(pattern=HASH)] | None = None
    seal: Annotated[str, Field(pattern=HASH)] | None = None

    def as_mapping(self) -> dict[str, Any]:
        """Return the certificate as plain values that JSON can hold."""
        return self.model_dump(mode="json", by_alias=True)

    def sealed(self) -> Certificate:
        """Return the certificate with its seal."""
        return self.model_copy(update={"seal": seal_of(self.as_mapping())})

    def to_json(self) -> str:
        """Return the certificate as JSON text."""
        return json.dumps(self.as_mapping(), ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def seal_of(found: dict[str, Any]) -> str:
    """Return the hash of a certificate without its seal, in a form that does not depend on the layout of the file."""
    rest = {name: value for name, value in found.items() if name != "seal"}
    text = json.dumps(rest, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def read_certificate(folder: Path, text: bytes = b"") -> Certificate:
    """Read and check the certificate in a folder, or its text; refused with one sentence where it is not one."""
    path = folder / FILE
    try:
        found = plain_json(text or read_plain(path))
    except FileNotFoundError:
        raise Refused(f"{folder} holds no {FILE}: name the folder of a release") from None
    except OSError as error:
        why = "it is a link" if error.errno == errno.ELOOP else error.strerror
        raise Refused(f"{path} cannot be read: {why}") from None
    except (ValueError, RecursionError):
        raise Refused(f"{path} is not JSON in which everything stands once: it is damaged, ask for it again") from None
    form = found.get("schema") if isinstance(found, dict) else None
    if isinstance(form, str) and form != SCHEMA and re.fullmatch(r"holdfast-certificate-[0-9]+", form):
        raise Refused(
            f"{path} was written by a newer holdfast (its form is {form}, known is {SCHEMA}): update holdfast"
        )
    if form != SCHEMA:
        raise Refused(f"{path} is not a certificate of the form {SCHEMA}")
    try:
        # JSON has no tuples, so the text is read again in the mode for JSON.
        certificate = Certificate.model_validate_json(json.dumps(found))
    except (ValidationError, Refused) as error:
        raise Refused(f"{path} is not a certificate of the form {SCHEMA}: {_first(error)}") from None
    if certificate.seal != seal_of(found):
        raise Refused(f"{path} was changed after it was sealed: ask for it again")
    return certificate


def _first(error: ValidationError | Refused) -> str:
    if isinstance(error, Refused):
        return str(error)
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(map(str, first["loc"])) or "the whole"
    return f"{where}: {first['msg']}"


def schema() -> dict[str, Any]:
    """Return the JSON Schema of the certificate."""
    found = Certificate.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}
