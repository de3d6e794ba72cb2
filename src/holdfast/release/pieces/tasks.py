"""Who does the work of the pieces below the cut: this process, or the tasks of a cluster.

Pieces come in groups, which travel and are kept together. Whoever works is asked in three ways: to do something with
pieces and to tell what was found (`asked`), to draw noisy values that stay where they are (`noted`), and to do
something with whole groups (`grouped`). What is done is a function of the piece or group, its counts and what it is
told.
"""

from __future__ import annotations

import io
import pickle
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from holdfast.arrays import Array, Ints
from holdfast.compiler import together
from holdfast.domains import Hierarchy
from holdfast.release.pieces.work import Work

#: Numbers in an array from which on it is written down in a shorter way, if there is one.
LONG = 64
#: What stands between texts that are written down as one.
BETWEEN = "\0"


@dataclass(frozen=True, eq=False)
class Held:
    """A piece in the hands of whoever works on it; `noisy` are its noisy values, once they were drawn."""

    work: Work
    cells: Ints
    noisy: Ints | None = None

    @cached_property
    def truth(self) -> Ints:
        """The true values of all outputs."""
        return np.asarray(Hierarchy.from_parents(self.work.piece.parents).sum_up(self.cells))


#: What is done with a piece and what it is told, and what comes back.
Asked = Callable[[Held, Any], Any]
#: The same where the first thing that comes back are noisy values, which stay with the piece.
Noted = Callable[[Held, Any], tuple[Ints, Any]]


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
        """How many outputs the pieces have."""
        return sum(each.work.piece.own for each in self.pieces)

    def asked(self, what: Asked, told: Mapping[int, Any] | None) -> dict[int, Any]:
        """Do something with some pieces by their numbers, or with all, and return what each tells."""
        with together(self.figures):
            return {number: what(self.pieces[number - self.first], each) for number, each in self._each(told)}

    def noted(self, what: Noted, told: Mapping[int, Any] | None) -> tuple[Group, dict[int, Any]]:
        """Let pieces keep noisy values, and return what each tells besides."""
        found, pieces = self.asked(what, told), list(self.pieces)
        for number, (noisy, _) in found.items():
            held = self.pieces[number - self.first]
            pieces[number - self.first] = Held(held.work, held.cells, noisy)
        return replace(self, pieces=pieces), {number: told for number, (_, told) in found.items()}

    def _each(self, told: Mapping[int, Any] | None) -> Any:
        numbers = range(self.first, self.first + len(self.pieces))
        return dict.fromkeys(numbers).items() if told is None else told.items()


#: What is done with a group and what it is told, and what comes back.
Grouped = Callable[[Group, Any], Any]


class Tasks(Protocol):
    """Who does the work; `told` says what each piece is told, and so which pieces work. None: all, and nothing."""

    def asked(self, what: Asked, told: Mapping[int, Any] | None = None) -> dict[int, Any]:
        """Do something with pieces, and return what each tells."""

    def noted(self, what: Noted, told: Mapping[int, Any] | None = None) -> dict[int, Any]:
        """Draw noisy values, which stay with their pieces, and return what each tells besides."""

    def grouped(self, what: Grouped, told: Mapping[int, Any]) -> dict[int, Any]:
        """Do something with groups, each by its number, and return what each tells."""


@dataclass(frozen=True, eq=False)
class Here:
    """This process, which takes the groups one after the other."""

    groups: list[Group] = field(default_factory=list)

    def asked(self, what: Asked, told: Mapping[int, Any] | None = None) -> dict[int, Any]:
        """Do something with pieces, and return what each tells."""
        found: dict[int, Any] = {}
        for number, each in by_group(told, [group.first for group in self.groups]).items():
            found |= self.groups[number].asked(what, each)
        return found

    def noted(self, what: Noted, told: Mapping[int, Any] | None = None) -> dict[int, Any]:
        """Draw noisy values, which stay with their pieces, and return what each tells besides."""
        found: dict[int, Any] = {}
        for number, each in by_group(told, [group.first for group in self.groups]).items():
            self.groups[number], besides = self.groups[number].noted(what, each)
            found |= besides
        return found

    def grouped(self, what: Grouped, told: Mapping[int, Any]) -> dict[int, Any]:
        """Do something with groups, each by its number, and return what each tells."""
        return {number: what(self.groups[number], each) for number, each in told.items()}


def by_group(told: Mapping[int, Any] | None, first: Sequence[int]) -> dict[int, dict[int, Any] | None]:
    """What the pieces of each group are told, by the first pieces of all groups; None: all, and nothing."""
    if told is None:
        return dict.fromkeys(range(len(first)))
    found: dict[int, dict[int, Any] | None] = {}
    groups = np.searchsorted(first, list(told), side="right") - 1
    for group, (number, each) in zip(groups.tolist(), told.items(), strict=True):
        own = found.setdefault(group, {})
        assert own is not None
        own[number] = each
    return found


# --- what travels ----------------------------------------------------------------------------------------------------


def packed(content: Any) -> bytes:
    """Write a value down for a task."""
    written = io.BytesIO()
    _Short(written, protocol=5).dump(content)
    return zlib.compress(written.getbuffer(), 1)


def unpacked(content: bytes) -> Any:
    """Read what `packed` wrote."""
    return pickle.loads(zlib.decompress(content))


class _Short(pickle.Pickler):
    """Arrays of one number, of whole numbers with small steps, and of texts are written down in short."""

    def reducer_override(self, content: Any) -> Any:
        if type(content) is not np.ndarray or content.ndim != 1 or content.size < LONG:
            return NotImplemented
        if content.dtype == object:
            return _short_texts(content)
        bits = content.view(np.int64) if content.dtype == np.float64 and content.flags.c_contiguous else content
        if bits.dtype in (np.int64, np.bool_) and (bits == bits[0]).all():  # −0.0 stays what it is
            return np.full, (content.size, content[0])
        return _short_steps(content) if content.dtype == np.int64 else NotImplemented


def _short_texts(texts: Array) -> Any:
    try:
        written = BETWEEN.join(texts.tolist())
    except TypeError:  # some are no texts
        return NotImplemented
    return (_texts, (written,)) if written.count(BETWEEN) == texts.size - 1 else NotImplemented


def _texts(written: str) -> Array:
    found = written.split(BETWEEN)
    result = np.empty(len(found), dtype=object)
    result[:] = found
    return result


def _short_steps(numbers: Ints) -> Any:
    steps = np.diff(numbers, prepend=numbers[0])
    lowest, highest = int(steps.min()), int(steps.max())
    for kind in (np.int8, np.int16, np.int32):
        if np.iinfo(kind).min <= lowest and highest <= np.iinfo(kind).max:
            return _steps, (numbers[0], steps.astype(kind))
    return NotImplemented


def _steps(first: np.int64, steps: Array) -> Ints:
    result = np.cumsum(steps, dtype=np.int64)
    result += first
    return result
