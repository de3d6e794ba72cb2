"""The part `privacy` of a spec: whom the release protects, against which changes, and how strongly."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from holdfast.release.spec.scalars import Count, Name, Positive, Probability, Text, one_of, shown, wrong
from holdfast.release.spec.sections import Part

#: The largest epsilon, or rho, of a release; far below it no figure is protected any more.
MOST_ASKED = 200


class PersonUnit(Part):
    """A person with several records; at most `max_records` of them are kept."""

    column: Name
    max_records: Count
    key: Text | None = Field(None, description="Key of the hash that chooses the kept records; the dataset's name.")


def _unit(value: Any) -> Any:
    if value == "record":
        return None
    if not isinstance(value, dict):
        raise wrong(f"found {shown(value)}", found=value, allowed=("record", "{column: NAME, max_records: NUMBER}"))
    return value


class BudgetSpec(Part):
    """How much: epsilon, epsilon with delta, or rho."""

    epsilon: Positive | None = None
    delta: Probability | None = None
    rho: Positive | None = None

    @model_validator(mode="after")
    def _one_way(self) -> BudgetSpec:
        if (self.epsilon is None) == (self.rho is None):
            found = "neither" if self.epsilon is None else "both"
            raise wrong(f"say how much by epsilon (perhaps with delta) or by rho, found {found}")
        if self.delta is not None and self.epsilon is None:
            raise wrong("delta goes with epsilon; rho stands alone", at=("delta",))
        return self


class PrivacySpec(BudgetSpec):
    """Whom the release protects, against which changes, and how strongly."""

    unit: Annotated[
        PersonUnit | None, BeforeValidator(_unit, json_schema_input_type=Literal["record"] | PersonUnit)
    ] = Field(None, description="record, or {column: rider, max_records: 5}.")
    neighbours: Annotated[str, one_of("add-remove", "replace-one")] = "add-remove"
    noise: Annotated[str, one_of("laplace", "gaussian")] | None = Field(
        None, description="Law of the noise; left out: by the budget."
    )
    scope: Annotated[str, one_of("invariant-sharing", "subspace")] = Field(
        "invariant-sharing", description="With exact figures: the statement that the budget counts."
    )
    records: Count | None = Field(
        None,
        description="With exact figures: how many records (or persons) change together in the statement that the "
        "budget counts; left out: as many as it takes to change everything that can change.",
    )

    @model_validator(mode="after")
    def _protects(self) -> PrivacySpec:
        for key in ("epsilon", "rho"):
            asked = getattr(self, key)
            if asked is not None and asked > MOST_ASKED:
                sentence = (
                    f"with {key} {asked:f} no noise is left and nothing is protected: ask for at most {MOST_ASKED}, or "
                    "publish the figures as exact"
                )
                raise wrong(sentence, at=(key,), found=asked)
        return self

    @model_validator(mode="after")
    def _law_fits(self) -> PrivacySpec:
        if self.noise == "laplace" and self.rho is not None:
            raise wrong("rho is met by gaussian noise; laplace noise is measured by epsilon", at=("noise",))
        if self.noise == "gaussian" and self.epsilon is not None and self.delta is None:
            raise wrong("gaussian noise needs delta beside epsilon, or rho", at=("noise",))
        return self

    @model_validator(mode="after")
    def _persons_are_added(self) -> PrivacySpec:
        many = self.unit is not None and self.unit.max_records > 1
        if many and self.neighbours == "replace-one":
            sentence = "persons with several records can have different numbers of them: use add-remove"
            raise wrong(sentence, at=("neighbours",), found=self.neighbours)
        return self
