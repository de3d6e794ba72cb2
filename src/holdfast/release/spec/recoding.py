"""Coarser axes of a cube: the values of one column in named groups, such as three kinds of household of eight."""

from __future__ import annotations

from pydantic import Field, model_validator

from holdfast.release.spec.scalars import Name, Names, wrong
from holdfast.release.spec.sections import Part


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
