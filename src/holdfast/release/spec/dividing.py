"""How a table divides its budget: which margins are measured at which level, their shares, and what is made least."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from holdfast.release.spec.scalars import Figure, NotNegative, deeper, name, name_or_names, not_below_zero, shown, wrong

#: Shares that are looked for, and what they can make least (in words of trees/normal/split.py).
BEST = "best"
SQUARES, MEAN, WORST = MINIMISE = ("sum of squares", "mean relative error", "worst relative error")
#: How the cells of a cube are called where margins are listed.
ALL = "all"

#: A number for a level or margin, or one for each margin of a level of a hierarchy with a cube.
Numbers = dict[str, Decimal | dict[str, Decimal]]


def _each(value: dict[Any, Any], read: Callable[[Any], Any]) -> dict[str, Any]:
    """Read a mapping from names; an error says in which entry."""
    found = {}
    for key, each in value.items():
        try:
            found[name(key)] = read(each)
        except PydanticCustomError as error:
            raise deeper(error, str(key)) from None
    return found


def _margins(value: Any) -> tuple[str | tuple[str, ...], ...]:
    """Read the margins of one level: all (the cells), or a list of axes, lists of axes, and total."""
    if value == ALL:
        return (ALL,)
    if not isinstance(value, list) or not value:
        raise wrong(f"must be all, or a list of margins such as [[sex, age], race, total], found {shown(value)}")
    found = []
    for i, margin in enumerate(value):
        try:
            found.append(name_or_names(margin))
        except PydanticCustomError as error:
            raise deeper(error, i) from None
    return tuple(found)


def _measure(value: Any) -> dict[str, tuple[str | tuple[str, ...], ...]]:
    if not isinstance(value, dict) or not value:
        raise wrong(f"must say for every level what is measured, such as {{county: all}}, found {shown(value)}")
    return _each(value, _margins)


def _number(value: Any) -> Decimal | dict[str, Decimal]:
    return _each(value, not_below_zero) if isinstance(value, dict) else not_below_zero(value)


def _numbers(value: Any) -> Numbers:
    if not isinstance(value, dict):
        raise wrong(f"must map levels or margins to numbers, found {shown(value)}", found=value)
    return _each(value, _number)


def _shares(value: Any) -> Numbers | str:
    if isinstance(value, str):
        if value != BEST:
            raise wrong(
                f"must be best, or map levels or margins to numbers, found {shown(value)}", found=value, allowed=(BEST,)
            )
        return value
    return _numbers(value)


_WRITTEN = dict[str, NotNegative | dict[str, NotNegative]]
Measure = Annotated[
    dict[str, tuple[str | tuple[str, ...], ...]],
    BeforeValidator(_measure, json_schema_input_type=dict[str, Literal["all"] | list[Figure]]),
    Field(min_length=1),
]
Weights = Annotated[Numbers, BeforeValidator(_numbers, json_schema_input_type=_WRITTEN)]
Shares = Annotated[Numbers | str, BeforeValidator(_shares, json_schema_input_type=Literal["best"] | _WRITTEN)]
