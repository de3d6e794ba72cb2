"""One privacy statement inside a certificate, in its own JSON form, what made it, and how strictly all is read."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import version
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, PlainValidator, WithJsonSchema

from holdfast.privacy import Guarantee
from holdfast.privacy.guarantee import SCHEMA as GUARANTEE_SCHEMA
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


class AcceptedError(Model):
    """The largest error that is accepted of a level, on average or of a part of its figures, and that of the plan."""

    level: str
    error: Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)?$")]
    confidence: Annotated[str, Field(pattern=r"^0\.[0-9]+$")] | None
    reached: Annotated[float, Field(ge=0)]
    in_words: str


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
