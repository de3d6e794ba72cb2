"""A promise: every statement that holds for a mechanism, best first, or the sentence why none does."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from holdfast.arguments import Refused
from holdfast.privacy.guarantee import Guarantee


@dataclass(frozen=True)
class Promise:
    """All statements about one mechanism, best first; void ones last.

    `refusal` says why nothing can be promised; it is empty when some statement holds. `is_base` marks the promise of
    independent noise that was neither conditioned nor moved.
    """

    statements: tuple[Guarantee, ...]
    refusal: str = ""
    is_base: bool = False

    @classmethod
    def of(cls, statements: Iterable[Guarantee], refusal: str = "") -> Promise:
        """Sort the statements; the refusal is kept only when all of them are void or there are none."""
        ordered = tuple(sorted(statements, key=lambda statement: statement.rank))
        holds = any(not statement.void for statement in ordered)
        return cls(ordered, "" if holds else refusal)

    @property
    def best(self) -> Guarantee:
        """The first statement; refused where none holds."""
        if self.refusal:
            raise Refused(self.refusal)
        return self.statements[0]

    def assuming(self, sentences: tuple[str, ...]) -> Promise:
        """The same statements, each with what it assumes of every possible dataset."""
        if not sentences:
            return self
        return replace(self, statements=tuple(replace(each, assumes=sentences) for each in self.statements))
