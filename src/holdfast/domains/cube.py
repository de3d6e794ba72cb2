"""A cube: the cells of a table with several axes, in C order, and the index arithmetic of its margins."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from holdfast.arguments import Refused, one_of, shown, whole, whole_numbers
from holdfast.arrays import Ints

#: Index arithmetic stays far inside 64 bits; lists of cells are asked for much smaller cubes only.
MOST_CELLS = 2**40


@dataclass(frozen=True)
class Cube:
    """A table with axes of the given sizes; the last axis runs fastest.

    Args:
        shape: how many values each axis has.
        names: the axes' names; None: they are called by their numbers.

    Example:
        >>> import holdfast as hf
        >>> hf.margins(hf.Cube((2, 3), ("sex", "age")), keep=[("age",)]).n
        3
    """

    shape: tuple[int, ...]
    names: tuple[str, ...]

    def __init__(self, shape: int | Sequence[int], names: Sequence[str] | None = None) -> None:
        sizes = shape if isinstance(shape, Iterable) else [shape]
        checked = tuple(whole("shape", size, at_least=1) for size in sizes)
        if not checked:
            raise Refused("shape must have at least one axis, found none")
        if math.prod(checked) > MOST_CELLS:
            raise Refused(f"shape must have at most 2**40 cells, found {math.prod(checked)}")
        object.__setattr__(self, "shape", checked)
        object.__setattr__(self, "names", _axis_names(names, len(checked)))

    @property
    def cells(self) -> int:
        """The number of cells."""
        return math.prod(self.shape)

    def axes(self, keep: Any) -> tuple[int, ...]:
        """Return the kept axes of one margin as numbers; given by number or name, in table order."""
        listed = [keep] if isinstance(keep, (str, int, np.integer)) else list(keep)
        chosen = []
        for axis in listed:
            if isinstance(axis, str):
                chosen.append(self.names.index(one_of("keep", axis, self.names)))
            else:
                chosen.append(whole("keep", axis, at_least=0, at_most=len(self.shape) - 1))
        if any(later <= earlier for earlier, later in pairwise(chosen)):
            raise Refused(f"keep must list the axes of a margin once each, in table order, found {tuple(listed)!r}")
        return tuple(chosen)

    def margins(self, keep: Any) -> tuple[tuple[int, ...], ...]:
        """Return a list of different margins, each as its kept axes."""
        if isinstance(keep, str) or not isinstance(keep, Iterable):
            raise Refused(f"keep must be a list of margins such as [(0, 1), (2,)], found {shown(keep)}")
        result = tuple(self.axes(axes) for axes in keep)
        if not result:
            raise Refused("keep must list at least one margin, found none")
        if len(set(result)) < len(result):
            raise Refused("keep must not list a margin twice")
        return result

    def margin_shape(self, keep: Any) -> tuple[int, ...]:
        """Return the sizes of a margin's axes; () is the grand total."""
        return tuple(self.shape[a] for a in self.axes(keep))

    def margin_name(self, keep: Any) -> str:
        """Return the name of a margin: its axes' names, or "total"."""
        return " × ".join(self.names[a] for a in self.axes(keep)) or "total"

    def coordinates(self, cells: Any) -> Ints:
        """Return the coordinates of cells as rows, shape (m, axes)."""
        found = whole_numbers("cells", cells)
        if found.size and (found.min() < 0 or found.max() >= self.cells):
            raise Refused(f"cells must hold positions between 0 and {self.cells - 1}, found others")
        return np.stack(np.unravel_index(found, self.shape), axis=-1).astype(np.int64)

    def margin_index(self, keep: Any, cells: Any = None) -> Ints:
        """Return for each cell (all, or those given) its position in the margin, C order."""
        axes = self.axes(keep)
        if cells is None:
            position = np.zeros(self.shape, np.int64)
            for a in axes:
                along = np.arange(self.shape[a]).reshape([-1 if b == a else 1 for b in range(len(self.shape))])
                position = position * self.shape[a] + along
            return position.ravel()
        coordinates = self.coordinates(cells)
        position = np.zeros(coordinates.shape[:-1], np.int64)
        for a in axes:
            position = position * self.shape[a] + coordinates[..., a]
        return position

    def margin_rows(self, keep: Any) -> csr_array[Any]:
        """Return the 0/1 matrix (margin cells, cells) that sums the cube to the margin."""
        index = self.margin_index(keep)
        size = math.prod(self.margin_shape(keep))
        order = np.argsort(index, kind="stable")
        start = np.concatenate([[0], np.cumsum(np.bincount(index, minlength=size))])
        return csr_array((np.ones(self.cells, np.int64), order, start), shape=(size, self.cells))


def _axis_names(names: Any, count: int) -> tuple[str, ...]:
    if names is None:
        return tuple(f"axis {a}" for a in range(count))
    listed = [names] if isinstance(names, str) else list(names)
    if len(listed) != count or not all(isinstance(name, str) and name.strip() for name in listed):
        raise Refused(f"names must give one text for each of the {count} axes, found {listed!r}")
    if len(set(listed)) < count:
        raise Refused("names must be different from each other")
    return tuple(str(name) for name in listed)
