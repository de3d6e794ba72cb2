"""The facts of a released table: what must hold in it, its levels and their noise, what is protected, and its files."""

from __future__ import annotations

import math
import platform
from fractions import Fraction
from functools import cache
from importlib.metadata import version
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, PlainValidator, WithJsonSchema
from pydantic.json_schema import SkipJsonSchema

from holdfast.privacy import Guarantee
from holdfast.privacy.guarantee import SCHEMA as GUARANTEE_SCHEMA
from holdfast.release.standalone_verifier.reading import COLUMN, VALUE, names_of
from holdfast.version import __version__

#: The packages that count, solve, draw and write.
PACKAGES = ("numpy", "scipy", "numba", "duckdb", "highspy", "clarabel", "cryptography")


class Model(BaseModel):
    """Read strictly: unknown keys and other types are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True)


@cache
def _versions() -> tuple[tuple[str, str], ...]:
    return tuple((name, version(name)) for name in PACKAGES)


class Software(Model):
    """What made the release: holdfast, Python, and the packages whose numbers stand in it."""

    name: Literal["holdfast"] = "holdfast"
    version: str = __version__
    python: str = Field(default_factory=platform.python_version)
    packages: dict[str, str] = Field(default_factory=lambda: dict(_versions()))


#: A whole number or fraction as text.
Number = Annotated[str, Field(pattern=r"^-?[0-9]+(/[1-9][0-9]*)?$")]


class ResidualNoise(Model):
    """Noise on a residual, a set of axes at a level: the square of how many standard deviations a record changes it."""

    level: str | None
    axes: list[str]
    square: Number


class RecodedAxis(Model):
    """A coarser axis: the column that it groups, and the number of the group of each of its values."""

    name: str
    axis: str
    groups: list[Annotated[int, Field(ge=0)]]


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
#: Written only where persons are protected, and where a release says it of its columns.
_GUARANTEE_SCHEMA["properties"]["unit"] = {
    "type": "object",
    "properties": {"column": {"type": "string"}, "records": {"type": "integer", "minimum": 1}},
    "required": ["column", "records"],
    "additionalProperties": False,
}
_GUARANTEE_SCHEMA["properties"]["columns"] = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"column": {"type": "string"}, "covered": {"type": "boolean"}, "answer": {"type": "string"}},
        "required": ["column", "covered", "answer"],
        "additionalProperties": False,
    },
}
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


#: Probability with which an interval covers its true value.
CONFIDENCE = 0.95
#: A file of a release: one plain name, nothing that leads out of its folder.
FILE_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
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
    """Figures that are published exactly: each is the sum of the listed rows, none where they would be many.

    `axes`: of margins, those that are kept; null: figures as they are.
    """

    figure: str
    axes: list[str] | None
    rows: list[list[Row]]


class Parents(Model):
    """The names of the rows say which rows add up to which."""

    parents: Literal[True]


class Unprotected(Model):
    """Figures of one level or margin that nothing protects: how many of how many, and the runs of their rows.

    `records` is how many records the allowed changes alter together, where more might alter these figures; null for
    what is published or never changes. Exact sums of rows have no rows of their own; the rows that they sum up are
    under `holds`.
    """

    why: str
    level: str
    figures: Annotated[int, Field(ge=1)]
    of: Annotated[int, Field(ge=1)]
    rows: list[tuple[Row, Row]]
    records: Annotated[int, Field(ge=1)] | None
    names: SkipJsonSchema[tuple[str, ...]] = Field(default=(), exclude=True)

    @property
    def named(self) -> bool:
        """Whether the words say exactly which figures are meant."""
        return self.figures == self.of or bool(self.names)

    def __str__(self) -> str:
        if self.figures == self.of and self.figures > 1:
            return f"{self.level} (all {self.of:,} figures)"
        if self.names:
            return f"{self.level} ({', '.join(self.names)})" if self.names != (self.level,) else self.level
        if self.figures == self.of:
            return self.level
        return f"{self.level} ({self.figures:,} of {self.of:,} figures)"


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

    @property
    def needed(self) -> str:
        """How many must change together, of the words that say it; nothing where no number changes it, or one does."""
        words = self.in_words.removeprefix(f"{self.column}: ").partition(";")[0].partition(",")[0]
        return (
            ""
            if self.records is None or self.records == 1
            else f"it takes up to {words.removeprefix('at most ')} together"
        )


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
    orders: list[list[Row]]
    linear: list[Sum]
    either: list[list[Side]]
    impossible: list[Row]
    exact: list[Figure]


class Interval(Model):
    """What the columns `low` and `high` mean: limits that are certain alone (`bounds`), or without a basis empty."""

    confidence: float
    basis: Literal["law", "simulation", "bounds"] | None
    sentence: str


class Margin(Model):
    """What the rows of a level are: a margin of these axes, in every place that so many levels of places name.

    `table`: the one of several linked tables that it belongs to.
    """

    places: Annotated[int, Field(ge=0)]
    axes: list[str]
    table: str | None


class Noise(Model):
    """Independent noise of some figures before anything is made to hold; `law` is null where nothing is measured.

    `scale` is λ of Laplace noise and σ of Gaussian noise; `parameter` is λ, or σ², exactly.
    """

    law: Literal["laplace", "gaussian"] | None
    whole: bool
    scale: float | None
    parameter: Number | None
    figures: Annotated[int, Field(ge=1)]


class Level(Model):
    """One level or margin: its share of the budget, its noise, and the errors that the plan expects.

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

    @property
    def errors(self) -> tuple[float, float]:
        """The mean absolute error, and half the width of 95 in 100; infinite where nobody can tell them."""
        mean, width = self.expected_absolute_error, self.interval_width
        return math.inf if mean is None else mean, math.inf if width is None else width / 2


class ComparedMethod(Model):
    """One method that came into question, at the same total guarantee as the others, or why it did not."""

    method: str
    noise: str
    chosen: bool
    refused: str | None
    error_bars: bool | None
    expected_absolute_error: float | None
    per_level: list[float] | None
    basis: str | None


class TableNeighbours(Model):
    """The changes of the records that the noise was made for."""

    kind: Literal["add-remove", "replace-one"]
    records: Annotated[int, Field(ge=1)]


class SumOf(Model):
    """What a table adds up: a column of numbers, each within public ends and a multiple of the step, or weights."""

    column: Annotated[str, Field(pattern="^" + COLUMN + "$")]
    low: Number
    high: Number
    step: Number
    weight: bool

    @property
    def unit(self) -> Fraction:
        return Fraction(self.step)


class LinkedTable(Model):
    """One of several linked tables: axes, values of each, rows of one household at most, weights of cells in ties."""

    name: str
    axes: list[str]
    shape: list[Annotated[int, Field(ge=1)]]
    most: Annotated[int, Field(ge=1)]
    ties: list[list[int]]


class TableCertificate(Model):
    """One released table; `places` are the columns of the levels of a hierarchy, the top one first.

    `margins` say of every one of `levels` what its rows are.
    `labels` are those of its columns whose codes have names for people, each in a column behind the figures.
    `parts`: its files are folders of so many, whose rows begin with their number in the table; 0: each is one file.
    `runs`: each part is a run of whole areas that follows the one before, those of upper levels first.
    `figures` are all that its files hold, of which `sum_of` says which it is: null for counts, called value.
    """

    name: str
    kind: Kind
    places: list[str]
    rows: Annotated[int, Field(ge=1)]
    outputs: Annotated[int, Field(ge=1)]
    levels: list[str]
    margins: list[Margin]
    columns: list[str]
    labels: list[str]
    recoded: list[RecodedAxis]
    residuals: list[ResidualNoise]
    domain_hash: Annotated[str, Field(pattern=HASH)]
    grid: Number
    neighbours: TableNeighbours
    method: str
    ways: str
    mechanism: str
    noise_by_level: list[Level]
    errors_known: str
    simulated_tables: Annotated[int, Field(ge=0)]
    compared: list[ComparedMethod]
    statements: list[Statement]
    holds: Holds
    unprotected: list[Unprotected]
    protects: Protects | None
    linked: list[LinkedTable]
    interval: Interval
    parquet: Annotated[str, Field(pattern=FILE_NAME)]
    csv: Annotated[str, Field(pattern=FILE_NAME)]
    measurements: Annotated[str, Field(pattern=FILE_NAME)] | None
    measurements_csv: Annotated[str, Field(pattern=FILE_NAME)] | None
    records: Annotated[str, Field(pattern=FILE_NAME)] | None
    records_csv: Annotated[str, Field(pattern=FILE_NAME)] | None
    parts: Annotated[int, Field(ge=0)]
    runs: bool
    record_columns: list[str]
    figures: list[str]
    sum_of: SumOf | None
    ties: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")] | None

    @property
    def measured(self) -> list[Level]:
        """The levels or margins of its outputs, without exact margins that are written besides."""
        return [level for level in self.noise_by_level if level.noise or self.residuals]

    @property
    def figure(self) -> str:
        """How its files call what it counts or adds up."""
        return VALUE if self.sum_of is None else self.sum_of.column

    @property
    def unit(self) -> Fraction:
        """What one step of its figures stands for."""
        return Fraction(1) if self.sum_of is None else self.sum_of.unit

    @property
    def files(self) -> list[str]:
        noisy = (self.measurements, self.measurements_csv)
        listed = (self.parquet, self.csv, *noisy, self.records, self.records_csv)
        return [each for name in listed if name is not None for each in names_of(name, self.parts)]
