"""Queries whose columns are not listed: only their largest changes are known, and what needs columns is refused."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NoReturn

from holdfast.arguments import Refused
from holdfast.arrays import Array, Bools, Ints
from holdfast.queries.columns import Columns
from holdfast.queries.kinds import Kind
from holdfast.queries.linear_query import Query


@dataclass(frozen=True, eq=False, repr=False)
class UnlistedQuery(Query):
    """A query without cells; `WHOM` says of what else columns, differences and kinds must be asked, and why."""

    WHOM: ClassVar[str]

    @property
    def cells(self) -> None:
        """Not listed."""
        return None

    @cached_property
    def columns(self) -> Columns:
        """Not listed: refused."""
        self._refuse("columns")

    def answer(self, cells: Any) -> Array:
        """Refuse: there are no cells."""
        del cells
        self._refuse("answer")

    def differences(self, neighbours: Any = "add-remove") -> Array:
        """Refuse: they are not listed."""
        del neighbours
        self._refuse("differences")

    def mask(self, allowed: Any) -> Bools | None:
        """Refuse anything but None: there are no cells."""
        if allowed is not None:
            self._refuse("allowed")
        return None

    def single_kinds(self, which: Ints | None, mask: Bools | None) -> list[Kind]:
        """Refuse: they are not listed."""
        del which, mask
        self._refuse("kinds")

    def pair_kinds(self, which: Ints | None, classes: Ints | None) -> list[Kind]:
        """Refuse: they are not listed."""
        del which, classes
        self._refuse("kinds")

    def _answer(self, cells: Ints) -> Array:
        del cells
        self._refuse("answer")

    def _refuse(self, what: str) -> NoReturn:
        raise Refused(f"{what} must be asked of {self.WHOM}")
