"""Who does the work of the pieces below the cut: this process, or the tasks of a cluster.

Whoever does it is asked twice over: to do something with pieces and to tell what was found (`asked`), and to draw noisy
values that stay where they are (`noted`). What is done is a function of the piece, its counts and what it is told.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from holdfast.arrays import Ints
from holdfast.domains import Hierarchy
from holdfast.release.pieces.work import Work


@dataclass(frozen=True, eq=False)
class Held:
    """A piece in the hands of whoever works on it; `noisy` are its noisy values, once they were drawn.

    `sheet`: what its rows are called and how they are written, where they are.
    """

    work: Work
    cells: Ints
    noisy: Ints | None = field(default_factory=lambda: None)  # no attributes of the class: `spark.Packed` opens its own
    sheet: Any = field(default_factory=lambda: None)

    @cached_property
    def truth(self) -> Ints:
        """The true values of all outputs."""
        return np.asarray(Hierarchy.from_parents(self.work.piece.parents).sum_up(self.cells))


#: What is done with a piece and what it is told, and what comes back.
Asked = Callable[[Held, Any], Any]
#: The same where the first thing that comes back are noisy values, which stay with the piece.
Noted = Callable[[Held, Any], tuple[Ints, Any]]


class Tasks(Protocol):
    """Who does the work; `told` says what each piece is told, and so which pieces work. None: all, and nothing."""

    def asked(self, what: Asked, told: Mapping[int, Any] | None = None) -> dict[int, Any]:
        """Do something with pieces, and return what each tells."""

    def noted(self, what: Noted, told: Mapping[int, Any] | None = None) -> dict[int, Any]:
        """Draw noisy values, which stay with their pieces, and return what each tells besides."""


@dataclass(frozen=True, eq=False)
class Here:
    """This process, which takes the pieces one after the other."""

    pieces: list[Held] = field(default_factory=list)

    def asked(self, what: Asked, told: Mapping[int, Any] | None = None) -> dict[int, Any]:
        """Do something with pieces, and return what each tells."""
        return {number: what(self.pieces[number], each) for number, each in self._each(told).items()}

    def noted(self, what: Noted, told: Mapping[int, Any] | None = None) -> dict[int, Any]:
        """Draw noisy values, which stay with their pieces, and return what each tells besides."""
        found = {}
        for number, each in self._each(told).items():
            held = self.pieces[number]
            noisy, found[number] = what(held, each)
            self.pieces[number] = Held(held.work, held.cells, noisy, held.sheet)
        return found

    def _each(self, told: Mapping[int, Any] | None) -> Mapping[int, Any]:
        return dict.fromkeys(range(len(self.pieces))) if told is None else told


def packed(content: Any) -> bytes:
    """Write a value down for a task."""
    return zlib.compress(pickle.dumps(content, protocol=5), 1)


def unpacked(content: bytes) -> Any:
    """Read what `packed` wrote."""
    return pickle.loads(zlib.decompress(content))
