"""One table of a spec: its shape, what must hold in it and how it is computed."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, StrictBool, Tag, model_validator

from holdfast.release.spec.rules import Holds
from holdfast.release.spec.sections import (
    Cells,
    Count,
    Figure,
    Name,
    Names,
    NotNegative,
    Part,
    Positive,
    Text,
    as_list,
    either,
    one_of,
    shown,
    wrong,
)

# --- How a table divides its budget: which margins are measured at which level, their shares, and what is made least

#: Shares that are looked for, and what they can make least (in words of trees/normal/split.py).
BEST = "best"
SQUARES, MEAN, WORST = MINIMISE = ("sum of squares", "mean relative error", "worst relative error")
#: How the cells of a cube are called where margins are listed.
ALL = "all"


def _margins(value: Any) -> Any:
    if value == ALL:
        return (ALL,)
    if not isinstance(value, (list, tuple)) or not value:
        raise wrong(f"must be all, or a list of margins such as [[sex, age], race, total], found {shown(value)}")
    return value


def _best(value: Any) -> Any:
    if value != BEST:
        sentence = f"must be best, or map levels or margins to numbers, found {shown(value)}"
        raise wrong(sentence, found=value, allowed=(BEST,))
    return value


#: The margins of one level: all (the cells), or a list of axes, lists of axes, and total.
Margins = Annotated[tuple[Figure, ...], BeforeValidator(_margins, json_schema_input_type=Literal["all"] | list[Figure])]
Measure = Annotated[dict[Name, Margins], Field(min_length=1)]
#: A number for a level or margin, or one for each margin of a level of a hierarchy with a cube.
Weights = dict[
    Name,
    Annotated[
        Annotated[NotNegative, Tag("a-single")] | Annotated[dict[Name, NotNegative], Tag("a-mapping")],
        either("a-mapping"),
    ],
]
Shares = Annotated[
    Annotated[str, BeforeValidator(_best, json_schema_input_type=Literal["best"]), Tag("a-single")]
    | Annotated[Weights, Tag("a-mapping")],
    either("a-mapping"),
]


# --- tables of one census in the same areas: what is counted of each, and the rules that tie them --------------------

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

    of: Cells = TOTAL
    times: Annotated[int, Field(strict=True)] = 1
    sum: Name | None = None


def _term(value: Any) -> Any:
    if isinstance(value, Term) or (isinstance(value, dict) and ("sum" in value or "of" in value)):
        return value
    if value != TOTAL and not isinstance(value, dict):
        raise wrong(
            f"must be total, values of columns such as {{relation: head}}, or {{sum: size}}, found {shown(value)}"
        )
    return {"of": value}


def _tie(value: Any) -> Any:
    if not isinstance(value, dict) or len(value) != 2:
        raise wrong(f"must name two tables with what is equal in them, found {shown(value)}")
    return value


_Terms = Annotated[tuple[Annotated[Term, BeforeValidator(_term)], ...], BeforeValidator(as_list)]
Tie = Annotated[dict[Name, _Terms], BeforeValidator(_tie, json_schema_input_type=dict[str, Any])]


#: The name of a table that was given none.
UNNAMED = "table"
METHODS = (
    "auto",
    "given",
    "onto",
    "given-then-onto",
    "topdown",
    "bluedown",
    "project",
    "extend",
    "extend-optimal",
    "extend-gaussian",
    "extend-correlated",
    "extend-laplace",
    "extend-k-norm",
    "noise",
)
#: What a table can be; exactly one of them is written, or a hierarchy and a cube: the cube in every area.
KINDS = ("hierarchy", "histogram", "cube", "linked")
AREAS, LINKED = "areas", "linked"


class RecodeSpec(Part):
    """One coarser axis: which column it groups, and the values of each group."""

    of: Name = Field(description="The column of the cube whose values are grouped.")
    groups: dict[Name, Names] = Field(description="The values of each group, {family: [couple, lone parent]}.")

    @model_validator(mode="after")
    def _each_once(self) -> RecodeSpec:
        if len(self.groups) < 2:
            raise wrong("at least two groups are needed", at=("groups",))
        seen: dict[str, str] = {}
        for group, values in self.groups.items():
            for value in values:
                if value in seen:
                    sentence = f"the value {value!r} is in two groups, {seen[value]!r} and {group!r}: leave it in one"
                    raise wrong(sentence, at=("groups", group), found=value)
                seen[value] = group
        return self


class TableSpec(Part):
    """One table: a hierarchy, a histogram, a cube, or margins of a cube in every area of a hierarchy."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,99}$")] = Field(UNNAMED, description="Name of its files.")
    hierarchy: Names | None = Field(None, description="Columns of the levels, the top one first.")
    root: Name | None = Field(None, description="Name of one node above all others.")
    match: Annotated[str, one_of("leaf", "path")] = Field(
        "leaf", description="Records name their place by the last level alone, or by all levels."
    )
    categories: Names = Field((), description="Columns that divide every node of a hierarchy.")
    histogram: Name | None = Field(None, description="The column whose values are counted.")
    cube: Names | None = Field(None, description="Columns that are the axes of a table.")
    recode: dict[Name, RecodeSpec] = Field(
        {}, description="With cube: coarser axes for margins, {kind: {of: lives, groups: {family: [couple, parent]}}}."
    )
    margins: tuple[Names, ...] | None = Field(
        None, description="Margins that are measured, each a list of axes; [] is the total; left out: the cells."
    )
    measure: Measure | None = Field(
        None,
        description="With hierarchy and cube: the margins measured at each level, {county: [[sex, age], race], state: "
        "all}.",
    )
    linked: dict[Name, LinkedSpec] | None = Field(
        None, description="With hierarchy: several tables of one census in every area, such as persons and households."
    )
    ties: tuple[Tie, ...] = Field(
        (), description="With linked: what is equal for every household, {persons: total, households: {sum: size}}."
    )
    residuals: StrictBool = Field(
        False, description="With cube and Gaussian noise: noise on residuals, each with a precision of its own."
    )
    shares: Shares | None = Field(
        None, description="Budget per level or margin, {tract: 2, block: {race: 1}}; best: those with the least error."
    )
    weights: Weights | None = Field(
        None, description="With shares: best, how much the errors of each level or margin count."
    )
    minimise: Annotated[str, one_of(*MINIMISE)] = Field(
        SQUARES, description="With shares: best, what is made as small as it can be."
    )
    share: Positive | None = Field(None, description="This table's part of the budget, relative to the others.")
    numbers: Annotated[str, one_of("whole", "real")] = Field(
        "whole", description="Whether published values must be whole."
    )
    guess: (
        Annotated[
            Annotated[Text, Tag("a-file")] | Annotated[NotNegative, Tag("a-number")],
            Discriminator(lambda value: "a-file" if isinstance(value, str) else "a-number"),
        ]
        | None
    ) = Field(None, description="Public guess of a typical count, or a public file with a column count.")
    hold: Holds = ()
    method: Annotated[str, one_of(*METHODS)] = "auto"

    @model_validator(mode="after")
    def _one_kind(self) -> TableSpec:
        found = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(found) != 1 and found not in (["hierarchy", "cube"], ["hierarchy", LINKED]):
            raise wrong(
                f"a table is one of {', '.join(KINDS)}, or hierarchy and cube, found {' and '.join(found) or 'none'}",
                allowed=KINDS,
            )
        for key in ("root", "match", "categories"):
            if key in self.model_fields_set and found[0] != "hierarchy":
                raise wrong(f"{key} goes with hierarchy, found {found[0]}", at=(key,))
        if self.margins is not None and found != ["cube"]:
            remedy = ": write measure" if len(found) == 2 else ""
            raise wrong(f"margins go with cube alone, found {' and '.join(found)}{remedy}", at=("margins",))
        return self

    @model_validator(mode="after")
    def _divided(self) -> TableSpec:
        if self.kind == LINKED:
            self._linked()
        elif self.ties:
            raise wrong("ties go with linked tables", at=("ties",))
        areas = self.hierarchy is not None and self.cube is not None
        if self.measure is not None and not areas:
            raise wrong("measure goes with hierarchy and cube together", at=("measure",))
        if areas and self.categories:
            raise wrong("the axes of the cube divide every place already: leave categories out", at=("categories",))
        if areas and self.measure is None:
            listed = ", ".join(self.cube or ())
            raise wrong(
                "a cube in every area of a hierarchy needs measure, the margins of each level; for its cells at every "
                f"level write categories: [{listed}] instead of cube",
                at=("cube",),
            )
        if self.recode and self.cube is None:
            raise wrong("recode goes with cube", at=("recode",))
        for axis, each in self.recode.items():
            if each.of not in (self.cube or ()):
                sentence = f"there is no axis {each.of!r} in the cube"
                raise wrong(sentence, at=("recode", axis, "of"), found=each.of, allowed=self.cube or ())
        if self.residuals and self.cube is None:
            raise wrong("residuals go with cube, alone or in the areas of a hierarchy", at=("residuals",))
        if self.residuals and self.shares not in (None, BEST):
            raise wrong("noise on residuals has shares of its own: write shares: best, or none", at=("shares",))
        for key in ("weights", "minimise"):
            if key in self.model_fields_set and self.shares != BEST:
                raise wrong(f"{key} goes with shares: best", at=(key,))
        return self

    def _linked(self) -> None:
        """Refuse what linked tables cannot have."""
        tables = self.linked or {}
        if self.hierarchy is None or len(tables) != 2:
            raise wrong("linked needs a hierarchy and two tables, such as persons and households", at=("linked",))
        for key in ("measure", "recode", "residuals", "shares", "weights", "minimise", "guess", "categories"):
            if key in self.model_fields_set:
                raise wrong(f"{key} goes inside each linked table, or not with them at all", at=(key,))
        if self.numbers != "whole":
            raise wrong("linked tables are whole: leave numbers out", at=("numbers",))
        for i, tie in enumerate(self.ties):
            for table in tie:
                if table not in tables:
                    raise wrong(
                        f"there is no linked table {table!r}", at=("ties", i), found=table, allowed=tuple(tables)
                    )

    @model_validator(mode="after")
    def _each_once(self) -> TableSpec:
        for key in ("hierarchy", "cube", "categories"):
            columns = getattr(self, key)
            if key in self.model_fields_set and columns == () and key != "categories":
                raise wrong("at least one column is needed, found none", at=(key,))
            columns = columns or ()
            twice = next((i for i, column in enumerate(columns) if column in columns[:i]), None)
            if twice is not None:
                raise wrong(f"the column {columns[twice]!r} is named twice", at=(key, twice), found=columns[twice])
        both = next((column for column in self.axes if column in (self.hierarchy or ())), None)
        if both is not None:
            where = "categories" if self.categories else "cube"
            raise wrong(f"{both!r} is already a level of the hierarchy", at=(where,), found=both)
        return self

    @cached_property
    def kind(self) -> str:
        found = [kind for kind in KINDS if getattr(self, kind) is not None]
        return found[0] if len(found) == 1 else LINKED if LINKED in found else AREAS

    @cached_property
    def axes(self) -> tuple[str, ...]:
        """The columns that divide every place of a hierarchy; none without one."""
        if self.linked is not None:
            return tuple(dict.fromkeys(column for each in self.linked.values() for column in each.cube))
        return () if self.hierarchy is None else (self.categories or self.cube or ())

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return (*(self.hierarchy or self.cube or (str(self.histogram),)), *self.axes)
