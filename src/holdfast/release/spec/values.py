"""The values of a spec (names, numbers, choices, mappings), and the sentences that refuse anything else."""

from __future__ import annotations

import json
import unicodedata
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from holdfast.release.spec.places import Place, Places, SpecError

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
        raise wrong(f"must be a name (a text or a whole number), found {kind}{shown(value)}{quotes}", found=value)
    return str(value)


def text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise wrong(f"must be a text, found {shown(value)}", found=value)
    if any(unicodedata.category(each) in ("Cc", "Cs") for each in value):
        raise wrong(f"must be one line of text without control characters, found {shown(value)}", found=value)
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
