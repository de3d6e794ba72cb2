"""The certificate of a release: what it promises, what must hold in it, and which files belong to it.

`deployment` uses the field names of the OpenDP deployments registry. The certificate is made from public things alone:
the spec, the domain, the mechanisms and the released files. `seal` is the hash of everything else in it, against
accidents; it is not a signature.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    ValidationError,
    WithJsonSchema,
)

from holdfast.arguments import Refused
from holdfast.privacy import Guarantee
from holdfast.privacy.guarantee import SCHEMA as GUARANTEE_SCHEMA
from holdfast.version import __version__

#: Version of the JSON form, and the name of its file.
SCHEMA: Final = "holdfast-certificate-1"
FILE = "certificate.json"
#: Probability with which an interval covers its true value.
CONFIDENCE = 0.95
#: A file of a release: one plain name, nothing that leads out of its folder.
FILE_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
#: A whole number or fraction as text.
NUMBER = r"^-?[0-9]+(/[1-9][0-9]*)?$"
HASH = r"^sha256:[0-9a-f]{64}$"


class Model(BaseModel):
    """Read strictly: unknown keys and other types are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True)


_GUARANTEE_SCHEMA: dict[str, Any] = {
    "title": "Guarantee",
    "type": "object",
    "description": "One privacy statement.",
    "properties": {
        "schema": {"const": GUARANTEE_SCHEMA},
        "epsilon": {"anyOf": [{"type": "number", "minimum": 0}, {"const": "infinity"}, {"type": "null"}]},
        "delta": {"type": "number", "minimum": 0, "maximum": 1},
        "rho": {"anyOf": [{"type": "number", "minimum": 0}, {"type": "null"}]},
        "mu": {"anyOf": [{"type": "number", "minimum": 0}, {"type": "null"}]},
        "orders": {"enum": ["all", "integer"]},
        "neighbours": {
            "type": "object",
            "properties": {
                "kind": {"enum": ["add-remove", "replace-one"]},
                "records": {"type": "integer", "minimum": 1},
            },
            "required": ["kind", "records"],
            "additionalProperties": False,
        },
        "scope": {"enum": ["all", "subspace", "invariant-sharing"]},
        "status": {"enum": ["proved", "estimated"]},
        "because": {"type": "string"},
        "unprotected": {"type": "array", "items": {"type": "string"}},
        "numerical_delta": {"type": "number", "minimum": 0, "maximum": 1},
        "caveats": {"type": "array", "items": {"type": "string"}},
        "exact": {"type": "boolean"},
        "assumes": {"type": "array", "items": {"type": "string"}},
    },
    "additionalProperties": False,
}
#: Older statements do not say what they assume.
_GUARANTEE_SCHEMA["required"] = [name for name in _GUARANTEE_SCHEMA["properties"] if name != "assumes"]
#: Written only where the loss law of the noise is known: kinds of difference as [[|d|, σ² as a fraction, outputs], …].
_GUARANTEE_SCHEMA["properties"]["losses"] = {
    "type": "array",
    "items": {
        "type": "array",
        "items": {
            "type": "array",
            "prefixItems": [
                {"type": "integer", "minimum": 1},
                {"type": "string", "pattern": "^[0-9]+(/[1-9][0-9]*)?$"},
                {"type": "integer", "minimum": 1},
            ],
            "minItems": 3,
            "maxItems": 3,
        },
    },
}


def _statement(value: Any) -> Guarantee:
    return value if isinstance(value, Guarantee) else Guarantee.from_json(value)


#: A guarantee inside the certificate, in its own JSON form.
Statement = Annotated[
    Guarantee,
    PlainValidator(_statement),
    PlainSerializer(lambda guarantee: guarantee.as_mapping()),
    WithJsonSchema(_GUARANTEE_SCHEMA),
]
Kind = Literal["hierarchy", "histogram", "cube"]
Parameter = Literal["epsilon", "delta", "rho"]
Row = Annotated[int, Field(ge=0)]
Number = Annotated[str, Field(pattern=NUMBER)]


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
    orders: list[list[Row]] = []
    linear: list[Sum] = []
    either: list[list[Side]] = []
    impossible: list[Row]
    exact: list[Figure]


class Interval(Model):
    """What the columns `low` and `high` mean; without a basis they are empty."""

    confidence: float
    basis: Literal["law", "simulation"] | None
    sentence: str


class TableCertificate(Model):
    """One released table."""

    name: str
    kind: Kind
    rows: Annotated[int, Field(ge=1)]
    levels: list[str]
    columns: list[str]
    method: str
    ways: str
    mechanism: str
    statements: list[Statement]
    holds: Holds
    unprotected: list[Unprotected]
    protects: Protects | None = None
    interval: Interval
    parquet: Annotated[str, Field(pattern=FILE_NAME)]
    csv: Annotated[str, Field(pattern=FILE_NAME)]
    measurements: Annotated[str, Field(pattern=FILE_NAME)] | None
    ties: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")] | None = None


class Product(Model):
    """Registry: what was made."""

    name: str
    data_product_type: str
    description: str
    publication_date: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]


class Flavour(Model):
    """Registry: which kind of privacy."""

    name: Literal["Pure DP", "Approximate DP", "Zero-concentrated DP"]
    input_metric: str
    bound_on_input_distance: int
    output_measure: str
    bound_on_output_distance: str
    data_domain: str
    unprotected_quantities: str


class PrivacyLoss(Model):
    """Registry: how much, and about whom."""

    privacy_unit: str
    privacy_unit_description: str
    privacy_parameters: dict[Parameter, float]
    privacy_parameters_description: str


Trust = Literal["Central", "Distributed: agents share a secret; it holds against outsiders, not against an agent"]
CENTRAL, DISTRIBUTED = get_args(Trust)


class TrustModel(Model):
    """Registry: who is trusted with what."""

    model_name: Trust
    release_type: Literal["One release"] = "One release"
    data_source_type: Literal["Static"] = "Static"
    access_type: Literal["Non-interactive"] = "Non-interactive"


class Accounting(Model):
    """Registry: what is added up, and what happens after the noise."""

    post_processing: str
    composition: str


class Implementation(Model):
    """Registry: what ran."""

    pre_processing_eda_hyperparameter_tuning: str
    mechanisms: str


class Deployment(Model):
    """An entry of the OpenDP deployments registry, as far as a release can fill it in."""

    product: Product
    dp_flavor: Flavour
    privacy_loss: PrivacyLoss
    model: TrustModel
    accounting: Accounting
    implementation: Implementation


class Software(Model):
    """What made the release."""

    name: Literal["holdfast"] = "holdfast"
    version: str = __version__


class PublicFile(Model):
    """A public file that the release was made with."""

    name: str
    sha256: Annotated[str, Field(pattern=HASH)]


class ReleasedFile(Model):
    """One file of the release."""

    name: Annotated[str, Field(pattern=FILE_NAME)]
    bytes: Annotated[int, Field(ge=0)]
    sha256: Annotated[str, Field(pattern=HASH)]


class Certificate(Model):
    """The certificate of a release."""

    form: Literal["holdfast-certificate-1"] = Field(default=SCHEMA, alias="schema")
    release: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    title: str
    software: Software
    spec_hash: Annotated[str, Field(pattern=HASH)]
    public_files: list[PublicFile]
    unit: str
    asked: dict[Parameter, Number]
    statements: Annotated[list[Statement], Field(min_length=1)]
    unprotected: list[str]
    caveats: list[str]
    tables: Annotated[list[TableCertificate], Field(min_length=1)]
    deployment: Deployment
    files: list[ReleasedFile]
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


def read_certificate(folder: Path) -> Certificate:
    """Read and check the certificate in a folder; refused with one sentence where it is not one."""
    path = folder / FILE
    try:
        found = json.loads(path.read_bytes(), parse_constant=_no_constant)
    except FileNotFoundError:
        raise Refused(f"{folder} holds no {FILE}: name the folder of a release") from None
    except OSError as error:
        raise Refused(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise Refused(f"{path} is not JSON: it is damaged, ask for it again") from None
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        raise Refused(f"{path} is not a certificate of the form {SCHEMA}")
    try:
        # JSON has no tuples, so the text is read again in the mode for JSON.
        certificate = Certificate.model_validate_json(json.dumps(found))
    except (ValidationError, Refused) as error:
        raise Refused(f"{path} is not a certificate of the form {SCHEMA}: {_first(error)}") from None
    if certificate.seal != seal_of(found):
        raise Refused(f"{path} was changed after it was sealed: ask for it again")
    return certificate


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


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
