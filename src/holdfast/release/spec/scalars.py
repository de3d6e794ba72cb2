"""The single values of a spec (names, numbers, choices), each with the sentence that refuses anything else."""

from __future__ import annotations

import json
import unicodedata
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from holdfast.release.spec.places import Place

#: Longest value that a message repeats.
_LONGEST = 60


def wrong(sentence: str, at: Place = (), found: Any = None, allowed: Any = ()) -> PydanticCustomError:
    """Make the error that a validator raises; `at` leads from the validated value to the place meant."""
    # The context of a pydantic error drops None; an empty tuple stands for nothing found.
    context = {"sentence": sentence, "at": at, "found": () if found is None else found, "allowed": tuple(allowed)}
    return PydanticCustomError("spec", "{sentence}", context)


def shown(value: Any) -> str:
    """Write a value of the spec for a message, shortened."""
    try:
        text = json.dumps(value, default=str, ensure_ascii=False)
    except TypeError:  # a key that is a list
        text = str(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def name(value: Any) -> str:
    """Read a name: texts and whole numbers; 1 and "1" are one name, as in a domain file."""
    if isinstance(value, bool) or not isinstance(value, (str, int)) or not str(value).strip():
        kind = f"the {type(value).__name__} " if isinstance(value, (bool, float, date)) else ""
        quotes = "; quotes make it a text" if kind else ""
        raise wrong(f"must be a name (a text or a whole number), found {kind}{shown(value)}{quotes}", found=value)
    return str(value)


def text(value: Any) -> str:
    """Read one line of text."""
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


def _above_zero(value: Any) -> Decimal:
    number = _decimal(value)
    if number <= 0:
        raise wrong(f"must be above 0, found {value}", found=value)
    return number


def not_below_zero(value: Any) -> Decimal:
    """Read a number of 0 or more."""
    number = _decimal(value)
    if number < 0:
        raise wrong(f"must be 0 or more, found {value}", found=value)
    return number


def _probability(value: Any) -> Decimal:
    number = _decimal(value)
    if not 0 < number < 1:
        raise wrong(f"must lie strictly between 0 and 1, found {value}", found=value)
    return number


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise wrong(f"must be a whole number of at least 1, found {shown(value)}", found=value)
    return value


def one_of(*allowed: str) -> BeforeValidator:
    """Return the check of a text that is one of the allowed ones."""

    def check(value: Any) -> str:
        if not isinstance(value, str) or value not in allowed:
            raise wrong(f"found {shown(value)}", found=value, allowed=allowed)
        return value

    return BeforeValidator(check, json_schema_input_type=Literal[allowed])


def _yes_or_no(value: Any) -> bool:
    if not isinstance(value, bool):
        raise wrong(f"found {shown(value)}", found=value, allowed=("true", "false"))
    return value


#: The check of a truth value.
yes_or_no = BeforeValidator(_yes_or_no, json_schema_input_type=bool)


def as_list(value: Any) -> Any:
    """A single value stands for a list of one."""
    return value if isinstance(value, list) else [value]


def names(value: Any) -> tuple[str, ...]:
    """Read a list of names; the error says which entry is wrong."""
    found = []
    for i, each in enumerate(as_list(value)):
        try:
            found.append(name(each))
        except PydanticCustomError as error:
            raise deeper(error, i if isinstance(value, list) else ()) from None
    return tuple(found)


def deeper(error: PydanticCustomError, step: str | int | tuple[()]) -> PydanticCustomError:
    """The error of an entry, as one of the list or mapping that holds it."""
    context = error.context or {}
    at = context["at"] if step == () else (step, *context["at"])
    return wrong(context["sentence"], at, context["found"], context["allowed"])


def name_or_names(value: Any) -> str | tuple[str, ...]:
    """Read a name, or a list of them (a path, a margin)."""
    return names(value) if isinstance(value, list) else name(value)


def cells(value: Any) -> str | tuple[str, ...] | dict[str, tuple[str, ...]]:
    """Read what cells are meant: a name, a path, or a mapping from columns to values."""
    if not isinstance(value, dict):
        return name_or_names(value)
    found = {}
    for key, each in value.items():
        try:
            found[name(key)] = names(each)
        except PydanticCustomError as error:
            raise deeper(error, str(key)) from None
    return found


def labels(value: Any) -> str | dict[str, str]:
    """Read the labels of codes: the column in which they stand, or a mapping from codes to labels."""
    if not isinstance(value, dict):
        return name(value)
    found = {}
    for key, each in value.items():
        try:
            found[name(key)] = text(each)
        except PydanticCustomError as error:
            raise deeper(error, str(key)) from None
    return found


Name = Annotated[str, BeforeValidator(name, json_schema_input_type=str | int)]
Text = Annotated[str, BeforeValidator(text, json_schema_input_type=str)]
Number = Annotated[Decimal, BeforeValidator(_decimal, json_schema_input_type=float)]
Positive = Annotated[Decimal, BeforeValidator(_above_zero, json_schema_input_type=Annotated[float, Field(gt=0)])]
NotNegative = Annotated[Decimal, BeforeValidator(not_below_zero, json_schema_input_type=Annotated[float, Field(ge=0)])]
Probability = Annotated[
    Decimal, BeforeValidator(_probability, json_schema_input_type=Annotated[float, Field(gt=0, lt=1)])
]
Count = Annotated[int, BeforeValidator(_count, json_schema_input_type=Annotated[int, Field(ge=1)])]
Names = Annotated[tuple[str, ...], BeforeValidator(names, json_schema_input_type=Name | list[Name])]
#: A level, a node or an axis; or a path of nodes, or the axes of a margin.
Figure = Annotated[
    str | tuple[str, ...], BeforeValidator(name_or_names, json_schema_input_type=str | int | list[str | int])
]
#: Cells: a node, a path, or values of columns.
Cells = Annotated[
    str | tuple[str, ...] | dict[str, tuple[str, ...]],
    BeforeValidator(cells, json_schema_input_type=str | int | list[str | int] | dict[str, str | int | list[str | int]]),
]
#: What codes are called: a column of the public file, or a label for each.
Labels = Annotated[
    str | dict[str, str], BeforeValidator(labels, json_schema_input_type=str | int | dict[str | int, str])
]
#: Levels, nodes, paths or margins; {LEVEL: MARGIN} where a hierarchy and a cube go together.
Held = Annotated[tuple[Cells, ...], BeforeValidator(as_list, json_schema_input_type=Cells | list[Cells])]
