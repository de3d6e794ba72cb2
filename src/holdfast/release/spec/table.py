"""One table of a spec: its shape, what must hold in it and how it is computed."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
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
    Number,
    Part,
    Positive,
    Text,
    as_list,
    either,
    one_of,
    shown,
    wrong,
)
from holdfast.release.standalone_verifier.reading import COLUMN, VALUE, mean_of

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


# --- what a table adds up: records, or numbers of theirs within public bounds -----------------------------------------

#: A figure that counts records, and the others by the key that names their column.
COUNT, SUM, WEIGHT, MEAN = "count", "sum", "weight", "mean"
#: Bounds lie within this, steps have at most so many decimals, and one record moves a sum by at most so many steps.
FARTHEST, DECIMALS, MOST_STEPS = 10**15, 9, 10**9


class Added(Part):
    """The sum of a column over the records, each number brought within public bounds and to a step; or their mean."""

    sum: Name | None = Field(None, description="The column of numbers that is added up.")
    weight: Name | None = Field(None, description="The same for survey weights, which are taken as public rules.")
    mean: Name | None = Field(None, description="The column of a sum in the same table, divided by the count.")
    between: tuple[Number, Number] | None = Field(None, description="Public bounds; numbers beyond are moved to them.")
    step: Positive = Field(Decimal(1), description="Numbers are rounded to multiples of it; bounds are some.")
    share: Positive | None = Field(None, description="This figure's part of the table's budget, beside the others.")

    @model_validator(mode="after")
    def _one_kind(self) -> Added:
        keys = [key for key in (SUM, WEIGHT, MEAN) if getattr(self, key) is not None]
        if len(keys) != 1:
            found = " and ".join(keys) or "none"
            sentence = f"a figure is count, or one of sum, weight and mean, found {found}"
            raise wrong(sentence, allowed=(SUM, WEIGHT, MEAN))
        if self.mean is not None:
            more = next((key for key in ("between", "step", "share") if key in self.model_fields_set), None)
            if more is not None:
                raise wrong(f"a mean is made of a sum and the count: {more} goes with the sum", at=(more,))
            return self
        if not re.fullmatch(COLUMN, self.column):
            sentence = f"the column {self.column!r} of a sum becomes a name of files and columns: letters, digits and _"
            raise wrong(f"{sentence}; give it such a name in columns under data", at=(keys[0],), found=self.column)
        if self.between is None:
            raise wrong(f"a {keys[0]} needs public bounds: write between: [LOW, HIGH]")
        low, high = self.between
        if not low < high:
            raise wrong(f"the lower bound must be below the upper one, found {low} and {high}", at=("between",))
        if max(abs(low), abs(high)) > FARTHEST or -int(self.step.as_tuple().exponent) > DECIMALS:
            raise wrong(f"bounds lie within 10^15, and a step has at most {DECIMALS} decimals", at=("between",))
        if low % self.step or high % self.step:
            raise wrong(f"bounds must be multiples of the step {self.step}", at=("step",))
        if self.most > MOST_STEPS:
            raise wrong(f"one record would move the sum by {self.most:,} steps, at most 10^9 are kept", at=("step",))
        return self

    @property
    def column(self) -> str:
        return str(self.sum or self.weight or self.mean)

    @property
    def unit(self) -> Fraction:
        """The step, exactly."""
        return Fraction(self.step)

    @property
    def ends(self) -> tuple[int, int]:
        """The bounds in steps."""
        assert self.between is not None
        low, high = (int(Fraction(end) / self.unit) for end in self.between)
        return low, high

    @property
    def most(self) -> int:
        """How many steps one record moves the sum at most."""
        return max(map(abs, self.ends))


def _figure(value: Any) -> Any:
    if value != COUNT and not isinstance(value, (dict, Added)):
        raise wrong(f"must be count, {{sum: …, between: …}} or {{mean: …}}, found {shown(value)}", found=value)
    return value


_Figure = Annotated[
    Annotated[str, BeforeValidator(_figure, json_schema_input_type=Literal["count"]), Tag("a-count")]
    | Annotated[Added, Tag("a-sum")],
    Discriminator(lambda value: "a-sum" if isinstance(value, (dict, Added)) else "a-count"),
]
Figures = Annotated[tuple[_Figure, ...], Field(min_length=1), BeforeValidator(as_list)]

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
#: What must hold in tables of sums.
OF_SUMS = ("consistent", "nonnegative", "impossible")
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
    figures: Figures = Field(
        (COUNT,),
        description="What is added up: count, {sum: turnover, between: [0, 1000000], step: 100}, {mean: turnover}.",
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

    @model_validator(mode="after")
    def _added(self) -> TableSpec:
        """Refuse figures that cannot stand together, and what is not known of sums."""
        names = [each if isinstance(each, str) else f"{each.mean and MEAN}{each.column}" for each in self.figures]
        twice = next((i for i, name in enumerate(names) if name in names[:i]), None)
        if twice is not None:
            raise wrong("a figure is listed twice", at=("figures", twice))
        if self.figures == (COUNT,):
            return self
        sums = [each.column for each in self.added]
        for i, each in enumerate(self.figures):
            if isinstance(each, Added) and each.mean is not None and (each.mean not in sums or COUNT not in names):
                sentence = f"a mean needs count and {{sum: {each.mean}, …}} among the figures"
                raise wrong(sentence, at=("figures", i), found=each.mean, allowed=sums)
            if isinstance(each, Added) and each.column in self.columns:
                sentence = f"the column {each.column!r} tells rows of the table apart, and is not added up"
                raise wrong(sentence, at=("figures", i), found=each.column)
        if self.kind == LINKED or self.residuals or self.numbers != "whole":
            sentence = "linked tables, noise on residuals and numbers: real have counts alone"
            raise wrong(sentence, at=("figures",))
        return self

    @property
    def added(self) -> tuple[Added, ...]:
        """The sums among the figures."""
        return tuple(each for each in self.figures if isinstance(each, Added) and each.mean is None)

    @property
    def counts(self) -> bool:
        """Whether the records are counted."""
        return COUNT in self.figures

    @property
    def called(self) -> tuple[str, ...]:
        """How files call the figures: counts are the value, and stand first."""
        others = (each for each in self.figures if isinstance(each, Added))
        own = (each.column if each.mean is None else mean_of(each.mean) for each in others)
        return (*[VALUE] * self.counts, *own)

    @cached_property
    def file(self) -> str:
        """The name of the table in whose files it is written."""
        return self.name

    @cached_property
    def written(self) -> tuple[str, ...]:
        """How these files call all their figures."""
        return self.called

    @property
    def of_figures(self) -> tuple[TableSpec, ...]:
        """The same table for each figure that is drawn: the count, and every sum, with its part of the budget."""
        drawn = [*[COUNT] * self.counts, *self.added]
        if drawn == [COUNT]:
            return (self,)
        parts = [Fraction((isinstance(each, Added) and each.share) or 1) for each in drawn]
        found = []
        for each, part in zip(drawn, parts, strict=True):
            changed: dict[str, Any] = {"figures": (each,), "share": Fraction(self.share or 1) * part / sum(parts)}
            if isinstance(each, Added):
                changed["name"] = each.column if self.name == UNNAMED else f"{self.name}-{each.column}"
                if each.ends[0] < 0:
                    changed["hold"] = tuple(rule for rule in self.hold if rule.rule != "nonnegative")
            own = self.model_copy(update=changed)
            own.__dict__ |= {"file": self.name, "written": self.called}
            found.append(own)
        return tuple(found)

    @property
    def sum_of(self) -> Added | None:
        """What is added up where this is one of `of_figures`; None: records are counted."""
        return self.added[0] if len(self.figures) == 1 and self.added else None

    @property
    def typical(self) -> int:
        """How many steps a record adds, as somebody would guess: half of what it can; 1 where it is counted."""
        return 1 if self.sum_of is None else max(1, self.sum_of.most // 2)

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
