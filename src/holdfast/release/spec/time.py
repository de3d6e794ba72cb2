"""The part `time` of a spec: one table in every period, charged once for all of them."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field, model_validator

from holdfast.release.spec.sections import Name, NotNegative, Part, Text, wrong

#: Periods of a series at most.
MOST_PERIODS = 120
#: Names of periods that follow each other by themselves: how they look, how many make a year, and how they are written.
NAMES = {
    "month": (r"([0-9]{4})-(0[1-9]|1[0-2])", 12, "{}-{:02d}"),
    "quarter": (r"([0-9]{4})-Q([1-4])", 4, "{}-Q{}"),
    "year": (r"([0-9]{4})()", 1, "{}"),
}
#: What may be wanted, in periods of each kind; 0: all so far.
SPANS = {
    "month": {"month": 1, "quarter": 3, "year": 12},
    "quarter": {"quarter": 1, "year": 4},
    "year": {"year": 1},
}


def kind_of(name: str) -> str | None:
    """What a period of this name is; None where its name does not say so."""
    return next((kind for kind, (form, _, _) in NAMES.items() if re.fullmatch(form, name)), None)


def following(first: str, count: int) -> list[str]:
    """So many periods from the first on."""
    form, of_year, written = NAMES[kind_of(first) or "year"]
    year, part = re.fullmatch(form, first).groups()  # type: ignore[union-attr]
    start = int(year) * of_year + int(part or 1) - 1
    return [written.format(*(f"{(start + i) // of_year:04d}", (start + i) % of_year + 1)) for i in range(count)]


class TimeSpec(Part):
    """The same tables in every period: at most so many, or those that are listed."""

    column: Name = Field(description="The column of the records that names their period.")
    periods: (
        Annotated[int, Field(strict=True, ge=1, le=MOST_PERIODS)]
        | Annotated[tuple[Name, ...], Field(min_length=1, max_length=MOST_PERIODS)]
    ) = Field(description="How many periods there are at most, or their names in order.")
    first: Annotated[Name | None, Field(description="The first period; left out: the first that is released.")] = None
    wanted: dict[Name, NotNegative] | None = Field(
        None, description="How much errors count: {month: 1, year: 1, running: 0}; left out: periods and years."
    )
    key: Text = Field("series.key", description="File of the secret key, made by the first release.")

    @model_validator(mode="after")
    def _named(self) -> TimeSpec:
        if isinstance(self.periods, tuple):
            if len(set(self.periods)) < len(self.periods):
                raise wrong("a period is listed twice", at=("periods",))
            if self.first is not None:
                raise wrong("the list of periods says which is the first: leave this out", at=("first",))
        elif self.first is not None and kind_of(self.first) is None:
            sentence = "must be a month (2026-11), quarter (2026-Q4) or year; periods of other names are listed"
            raise wrong(f"{sentence} in periods", at=("first",), found=self.first)
        for name in self.wanted or {}:
            if name not in self.spans:
                raise wrong(f"found {name!r}", at=("wanted",), found=name, allowed=list(self.spans))
        if self.wanted is not None and not any(self.wanted.values()):
            raise wrong("give some sum a weight above 0", at=("wanted",))
        return self

    @property
    def count(self) -> int:
        return self.periods if isinstance(self.periods, int) else len(self.periods)

    @property
    def spans(self) -> dict[str, int]:
        """How many periods each sum has that may be wanted."""
        first = self.periods[0] if isinstance(self.periods, tuple) else self.first or "2000-01"
        return {"period": 1, **SPANS.get(kind_of(first) or "", {}), "running": 0}

    @property
    def weights(self) -> dict[str, float]:
        if self.wanted is not None:
            return {name: float(weight) for name, weight in self.wanted.items() if weight}
        year = self.spans.get("year", 1)
        return {"period": 1.0, **({"year": 1.0} if 1 < year <= self.count else {})}

    def names(self, period: str, first: str | None = None) -> list[str]:
        """The names of all periods, `first` being known from before; refused where this one is not among them."""
        if isinstance(self.periods, tuple):
            found = list(self.periods)
        else:
            start = self.first or first or period
            if kind_of(start) is None or (self.first is None and kind_of(start) != "month"):
                raise ValueError(f"{start!r} is no month such as 2026-11: write first, or list the periods")
            found = following(start, self.periods)
        if period not in found:
            raise ValueError(f"{period!r} is not among the periods of the series, {found[0]} to {found[-1]}")
        return found
