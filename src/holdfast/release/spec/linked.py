"""Tables of one census in the same areas: what is counted of each, and the rules that tie them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from holdfast.release.spec.dividing import Measure, Shares
from holdfast.release.spec.scalars import (
    Count,
    Name,
    Names,
    Positive,
    as_list,
    cells,
    deeper,
    name,
    shown,
    wrong,
)
from holdfast.release.spec.sections import Part

#: What stands for all rows of a table in a tie.
TOTAL = "total"


class LinkedSpec(Part):
    """One of several linked tables: which records it counts, by what, and how many a household has at most."""

    cube: Names = Field(description="Columns that are the axes of the table.")
    measure: Measure = Field(description="The margins measured at each level.")
    most: Count = Field(description="How many of these records one household has at most.")
    rows: dict[Name, Names] | None = Field(
        None, description="Which records are counted, {relation: householder}; left out: all of them."
    )
    shares: Shares | None = Field(None, description="Budget per level or margin of this table; best: the least error.")
    share: Positive | None = Field(None, description="This table's part of the budget, relative to the others.")


class Term(Part):
    """Some records of a table, so many times; or the sum of a column of whole numbers over its records."""

    of: str | tuple[str, ...] | dict[str, tuple[str, ...]] = TOTAL
    times: int = 1
    sum: Name | None = None


def _term(value: Any) -> Term:
    if isinstance(value, Term):
        return value
    if isinstance(value, dict) and set(value) == {"sum"}:
        return Term(sum=name(value["sum"]))
    if isinstance(value, dict) and "of" in value and set(value) <= {"of", "times"}:
        times = value.get("times", 1)
        if isinstance(times, bool) or not isinstance(times, int):
            raise wrong(f"must be a whole number, found {shown(times)}", at=("times",), found=times)
        return Term(of=cells(value["of"]), times=times)
    if value != TOTAL and not isinstance(value, dict):
        raise wrong(
            f"must be total, values of columns such as {{relation: head}}, or {{sum: size}}, found {shown(value)}"
        )
    return Term(of=cells(value))


def _tie(value: Any) -> dict[str, tuple[Term, ...]]:
    if not isinstance(value, dict) or len(value) != 2:
        raise wrong(f"must name two tables with what is equal in them, found {shown(value)}")
    found = {}
    for table, terms in value.items():
        try:
            found[name(table)] = tuple(_term(each) for each in as_list(terms))
        except PydanticCustomError as error:
            raise deeper(error, str(table)) from None
    return found


Tie = Annotated[dict[str, tuple[Term, ...]], BeforeValidator(_tie, json_schema_input_type=dict[str, Any])]
