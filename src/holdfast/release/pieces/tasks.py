"""Who does the work of the pieces below the cut: this process, or the tasks of a cluster.

Pieces come in groups, which travel and are kept together. Whoever works is asked in two ways: to do something with
groups and to tell what comes back (`grouped`), and to draw noisy values of groups that stay where they are (`noted`).
What is done is a function of the group, its counts and what it is told.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np

from holdfast.arrays import Ints, together
from holdfast.domains import Hierarchy
from holdfast.release.pieces.cut import Work


@dataclass(frozen=True, eq=False)
class Held:
    """A piece in the hands of whoever works on it; `noisy` are its noisy values, once they were drawn."""

    work: Work
    cells: Ints
    noisy: Ints | None = None

    @cached_property
    def truth(self) -> Ints:
        return np.asarray(Hierarchy.from_parents(self.work.piece.parents).sum_up(self.cells))


#: What is done with a piece and what it is told, and what comes back.
Asked = Callable[[Held, Any], Any]


@dataclass(frozen=True, eq=False)
class Group:
    """Pieces that follow each other, from the number `first` on.

    `sheet` opens what their rows are called and how they are written.
    """

    first: int
    pieces: Sequence[Held]
    sheet: Callable[[], Any] = lambda: None

    @property
    def figures(self) -> int:
        return sum(each.work.piece.own for each in self.pieces)

    def noted(self, what: Noted, told: Any) -> tuple[Group, Any]:
        """Let pieces keep noisy values, and return what comes back besides."""
        noisy, found = what(self, told)
        pieces = [Held(held.work, held.cells, values) for held, values in zip(self.pieces, noisy, strict=True)]
        return replace(self, pieces=pieces), found


#: What is done with a group and what it is told, and what comes back.
Grouped = Callable[[Group, Any], Any]
#: The same where the first thing that comes back are noisy values, which stay with the pieces.
Noted = Callable[[Group, Any], tuple[list[Ints], Any]]


class Tasks(Protocol):
    """Who does the work; `told` says what each group is told, by its number, and so which groups work."""

    def noted(self, what: Noted, told: Mapping[int, Any]) -> dict[int, Any]:
        """Draw noisy values of groups, which stay with their pieces, and return what each tells besides."""

    def grouped(self, what: Grouped, told: Mapping[int, Any]) -> dict[int, Any]:
        """Do something with groups, each by its number, and return what each tells."""


@dataclass(frozen=True, eq=False)
class Here:
    """This process, which takes the groups one after the other."""

    groups: list[Group] = field(default_factory=list)

    def noted(self, what: Noted, told: Mapping[int, Any]) -> dict[int, Any]:
        """Draw noisy values of groups, which stay with their pieces, and return what each tells besides."""
        found: dict[int, Any] = {}
        for number, each in told.items():
            self.groups[number], found[number] = self.groups[number].noted(what, each)
        return found

    def grouped(self, what: Grouped, told: Mapping[int, Any]) -> dict[int, Any]:
        return {number: what(self.groups[number], each) for number, each in told.items()}


def by_piece(what: Asked) -> Grouped:
    """The same of each piece of a group, in their order; `told` says what each is told (None: nothing)."""
    return partial(_by_piece, what=what)


def _by_piece(group: Group, told: Sequence[Any] | None, what: Asked) -> list[Any]:
    given = [None] * len(group.pieces) if told is None else told
    with together(group.figures):
        return [what(held, each) for held, each in zip(group.pieces, given, strict=True)]


# --- what travels ----------------------------------------------------------------------------------------------------


def packed(content: Any) -> bytes:
    return zlib.compress(pickle.dumps(content, protocol=5), 1)


def unpacked(content: bytes) -> Any:
    """Read what `packed` wrote."""
    return pickle.loads(zlib.decompress(content))
