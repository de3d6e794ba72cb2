"""The rules of `hold`: what must hold in a table, as a curator writes it."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from holdfast.release.spec.sections import (
    Cells,
    Figure,
    Held,
    Names,
    Number,
    Part,
    as_list,
    one_of,
    shown,
    wrong,
)

#: Rules that are single words, and those that say more.
WORDS = ("consistent", "nonnegative")
RULES = ("exact", "between", "ordered", "equals", "at_least", "impossible", "either")
#: Rules that can be a part of one side of `either`.
OF_SIDES = ("nonnegative", "between", "ordered", "equals", "at_least")


class Exactly(Part):
    """A level, node or path of a hierarchy with categories, counted by some of them; by none: one total."""

    of: Figure
    by: Names = Field(description="The categories that are told apart; an empty list: one total over all.")


def _form(value: Any) -> str:
    if isinstance(value, Exactly) or (isinstance(value, dict) and "of" in value):
        return "some-categories"
    return "some-cells"


#: What is published exactly: a figure as it is, with some of its categories, or a margin of a level.
ExactFigures = Annotated[
    tuple[
        Annotated[
            Annotated[Cells, Tag("some-cells")] | Annotated[Exactly, Tag("some-categories")], Discriminator(_form)
        ],
        ...,
    ],
    BeforeValidator(as_list),
]


class Between(Part):
    """Inclusive bounds that hold for every possible dataset."""

    low: Number | None = None
    high: Number | None = None
    at: Held | None = Field(None, description="Levels, nodes or margins; everywhere when left out.")

    @model_validator(mode="after")
    def _some_bound(self) -> Between:
        if self.low is None and self.high is None:
            raise wrong("between needs low, high or both")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise wrong(f"low must not exceed high, found {self.low} and {self.high}", at=("low",))
        return self


class Term(Part):
    """Figures that are added with a weight."""

    of: Cells
    times: Number = Decimal(1)


def _term(value: Any) -> Any:
    return value if isinstance(value, dict) and "of" in value else {"of": value}


class Linear(Part):
    """A weighted sum of figures and the number that it is compared with, for every possible dataset."""

    sum_of: Annotated[
        tuple[Annotated[Term, BeforeValidator(_term, json_schema_input_type=Cells | Term)], ...],
        BeforeValidator(as_list),
    ] = Field(alias="sum", description="Figures to add: names, paths, {column: value}, or {of: ..., times: NUMBER}.")
    value: Number = Field(Decimal(0), description="What the sum is compared with.")


def _named(value: Any, words: tuple[str, ...], rules: tuple[str, ...]) -> dict[str, Any]:
    """Read one rule: a word, or a mapping with one key."""
    options = [*words, *(f"{{{rule}: ...}}" for rule in rules)]
    if isinstance(value, str) and value in words:
        return {"rule": value}
    if not isinstance(value, dict) or len(value) != 1:
        raise wrong(f"found {shown(value)}", found=value, allowed=options)
    rule = str(next(iter(value)))
    if rule not in rules:
        raise wrong(f"there is no rule {rule!r}", at=(rule,), found=rule, allowed=options)
    if value[rule] is None or value[rule] == []:
        raise wrong("found nothing", at=(rule,))
    return {"rule": rule, **value}


def _of_side(value: Any) -> Any:
    """Read a rule of one side; what is published, empty or added up is so on every side."""
    if isinstance(value, Hold):
        return value
    written = next(iter(value)) if isinstance(value, dict) and len(value) == 1 else value
    if isinstance(written, str) and written in (*WORDS, *RULES) and written not in OF_SIDES:
        remedy = "list all sides in one either" if written == "either" else "write it in hold, outside either"
        raise wrong(f"{written} cannot hold on one side only: {remedy}", (written,) if isinstance(value, dict) else ())
    return _named(value, tuple(w for w in WORDS if w in OF_SIDES), tuple(r for r in RULES if r in OF_SIDES))


class Hold(Part):
    """One thing that must hold. `either` has sides, each a list of rules, of which one side holds."""

    rule: Annotated[str, one_of(*WORDS, *RULES)]
    exact: ExactFigures = ()
    between: Between | None = None
    ordered: Annotated[tuple[Cells, ...], BeforeValidator(as_list)] = ()
    equals: Linear | None = None
    at_least: Linear | None = None
    impossible: Annotated[tuple[Cells, ...], BeforeValidator(as_list)] = ()
    either: tuple[Annotated[tuple[Annotated[Hold, BeforeValidator(_of_side)], ...], BeforeValidator(as_list)], ...] = ()


class ExactRule(Part):
    """Figures published exactly: levels, nodes or paths of a hierarchy, margins of a cube, total."""

    exact: ExactFigures


class BetweenRule(Part):
    """Bounds on counts."""

    between: Between


class OrderedRule(Part):
    """Figures that never fall in this order: nodes, paths, values or {column: value}; or a column, by its values."""

    ordered: Annotated[tuple[Cells, ...], BeforeValidator(as_list, json_schema_input_type=Cells | list[Cells])]


class EqualsRule(Part):
    """A weighted sum that has this value."""

    equals: Linear


class AtLeastRule(Part):
    """A weighted sum that has at least this value."""

    at_least: Linear


class ImpossibleRule(Part):
    """Cells that are empty in every possible dataset: nodes, paths, or {column: value}."""

    impossible: Annotated[tuple[Cells, ...], BeforeValidator(as_list, json_schema_input_type=Cells | list[Cells])]


SideRule = Literal["nonnegative"] | BetweenRule | OrderedRule | EqualsRule | AtLeastRule


class EitherRule(Part):
    """Sides that exclude each other, of which one holds for every possible dataset; each is a rule or a list of rules.

    The sides may hold nonnegative, between, ordered, equals and at_least.
    """

    either: Annotated[list[SideRule | list[SideRule]], Field(min_length=2)]


def _hold(value: Any) -> Any:
    found = _named(value, WORDS, RULES)
    if found["rule"] == "either":
        sides = found["either"]
        if not isinstance(sides, list) or len(sides) < 2:
            raise wrong(
                f"must list at least two sides, each a rule or a list of rules, found {shown(sides)}", ("either",)
            )
        empty = next((i for i, side in enumerate(sides) if side in (None, [])), None)
        if empty is not None:
            raise wrong("this side has no rules: name what holds on it", ("either", empty))
    return found


Holds = tuple[
    Annotated[
        Hold,
        BeforeValidator(
            _hold,
            json_schema_input_type=Literal["consistent", "nonnegative"]
            | ExactRule
            | BetweenRule
            | OrderedRule
            | EqualsRule
            | AtLeastRule
            | ImpossibleRule
            | EitherRule,
        ),
    ],
    ...,
]
