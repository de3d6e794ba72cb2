"""The parts of a spec: mappings with known keys, what is wrong in them, said with its line, and one that all share."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_serializer, model_validator

from holdfast.release.spec.places import Place, Places, SpecError
from holdfast.release.spec.scalars import Name, Names, Text, one_of, shown, wrong, yes_or_no


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
    """Turn the error that stands first in the file into a sentence."""
    found = [_explained(each, places) for each in error.errors(include_url=False)]
    return min(found, key=lambda each: each.line or 0)


def _explained(each: Any, places: Places) -> SpecError:
    place = _written(tuple(each["loc"]), places)
    if each["type"] == "spec":
        context = each["ctx"]
        value = context["found"] if context["found"] != () else None
        return places.error((*place, *context["at"]), context["sentence"], value, context["allowed"])
    if each["type"] == "missing":
        return places.error(place, "this key is missing")
    if each["type"] == "string_pattern_mismatch":
        sentence = f"must be lower-case letters, digits and hyphens, found {shown(each['input'])}"
        return places.error(place, sentence, each["input"])
    kind = "a list" if "tuple" in each["type"] or "list" in each["type"] else "a mapping"
    kind = "a text" if "string" in each["type"] else kind
    return places.error(place, f"must be {kind}, found {shown(each['input'])}", each["input"])


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
    category: Name | None = None


class CategoryOf(Part):
    """Count such records as this value of the domain."""

    category: Name


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
    records: Annotated[bool, yes_or_no] = Field(
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
