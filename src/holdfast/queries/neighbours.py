"""Which tables are neighbours: the relation that a privacy statement protects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from holdfast.arguments import Refused, one_of, shown, whole

ADD_REMOVE = "add-remove"
REPLACE_ONE = "replace-one"


@dataclass(frozen=True)
class Neighbours:
    """Two tables are neighbours when at most `records` records are added or removed, or replaced.

    Args:
        kind: "add-remove" or "replace-one".
        records: how many records change together.

    Example:
        >>> import holdfast as hf
        >>> person = hf.Neighbours("add-remove", records=5)
        >>> hf.laplace(hf.histogram(3), scale=1, neighbours=person).guarantee.epsilon
        5.0
    """

    kind: str
    records: int = 1

    def __post_init__(self) -> None:
        one_of("neighbours", self.kind, (ADD_REMOVE, REPLACE_ONE))
        object.__setattr__(self, "records", whole("records", self.records, at_least=1))

    @classmethod
    def of(cls, value: Relation | str) -> Neighbours:
        """Return the relation that `value` means: its kind (one record), or a relation itself."""
        if isinstance(value, cls):
            return value
        if not isinstance(value, str):
            raise Refused(
                f"neighbours must be {ADD_REMOVE!r}, {REPLACE_ONE!r} or a Neighbours(kind, records), "
                f"found {shown(value)}"
            )
        return cls(value)

    @property
    def adds(self) -> bool:
        """Whether records come and go (otherwise they are replaced and the number of records stays)."""
        return self.kind == ADD_REMOVE

    def __str__(self) -> str:
        verb = "added or removed" if self.adds else "replaced by another"
        if self.records == 1:
            return f"one record {verb}"
        return f"up to {self.records} records {'added or removed' if self.adds else 'replaced by others'}"


#: What a relation is given as: its kind, for one record, or a relation itself.
Relation = Neighbours | Literal["add-remove", "replace-one"]
