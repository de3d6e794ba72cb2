"""A cube: the cells of a table with several axes, in C order, and the index arithmetic of its margins."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from numbers import Number
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from holdfast.arguments import Refused, listed, one_of, positions, shown, whole, whole_numbers
from holdfast.arrays import Array, Ints

MARGINS = "a list of margins such as [(0, 1), (2,)]"
#: Index arithmetic stays far inside 64 bits; lists of cells are asked for much smaller cubes only.
MOST_CELLS = 2**40


@dataclass(frozen=True)
class Cube:
    """A table with axes of the given sizes; the last axis runs fastest.

    Args:
        shape: how many values each axis has.
        names: the axes' names; None: they are called by their numbers.
        recoded: coarser axes that margins may keep in place of their own, {name: (axis, group of each value)}, groups
            numbered from 0 on; they have the numbers after those of the axes. Several of one axis must be nested.

    Example:
        >>> import holdfast as hf
        >>> hf.margins(hf.Cube((2, 3), ("sex", "age")), keep=[("age",)]).n
        3
        >>> cube = hf.Cube((2, 3), ("sex", "age"), recoded={"adult": ("age", [0, 1, 1])})
        >>> hf.margins(cube, keep=[("sex", "adult")]).answer([5, 1, 2, 3, 4, 6]).tolist()
        [5, 3, 3, 10]
    """

    shape: tuple[int, ...]
    names: tuple[str, ...]
    recoded: tuple[Recoded, ...]

    def __init__(
        self, shape: int | Sequence[int], names: Sequence[str] | None = None, recoded: Mapping[str, Any] | None = None
    ) -> None:
        sizes = [shape] if isinstance(shape, Number) else listed("shape", shape, "a list of sizes")
        checked = tuple(whole("shape", size, at_least=1) for size in sizes)
        if not checked:
            raise Refused("shape must have at least one axis, found none")
        if math.prod(checked) > MOST_CELLS:
            raise Refused(f"shape must have at most 2**40 cells, found {math.prod(checked)}")
        object.__setattr__(self, "shape", checked)
        object.__setattr__(self, "names", _axis_names(names, len(checked)))
        object.__setattr__(self, "recoded", recoded_axes(recoded, checked, self.names))

    @property
    def cells(self) -> int:
        """The number of cells."""
        return math.prod(self.shape)

    # --- axes and recoded axes, by their numbers -------------------------------------------------------------------

    @property
    def all_names(self) -> tuple[str, ...]:
        """The names of the axes and of the recoded ones."""
        return (*self.names, *(each.name for each in self.recoded))

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many values each axis has, and each recoded one."""
        return (*self.shape, *(each.size for each in self.recoded))

    def _number(self, axis: Any) -> int:
        if type(axis) is int and 0 <= axis < len(self.sizes):
            return axis
        return whole("axis", axis, at_least=0, at_most=len(self.sizes) - 1)

    def _numbers(self, keep: Any) -> tuple[int, ...]:
        if not isinstance(keep, tuple | list):
            raise Refused(f"a margin must be a tuple of numbers of axes, found {shown(keep)}")
        return tuple(self._number(axis) for axis in keep)

    def own(self, axis: int) -> int:
        """Return the axis that a number means: itself, or the one that was recoded."""
        axis = self._number(axis)
        return axis if axis < len(self.shape) else self.recoded[axis - len(self.shape)].axis

    def chain(self, axis: int) -> tuple[int, ...]:
        """Return the recodings of an axis from coarse to fine, and the axis."""
        first, axis = len(self.shape), self.own(axis)
        return (*(first + r for r, each in enumerate(self.recoded) if each.axis == axis), axis)

    def below(self, axis: int) -> int | None:
        """Return the next coarser recoding of what a number means; None: only its total is coarser."""
        chain = self.chain(axis)
        at = chain.index(self._number(axis))
        return chain[at - 1] if at else None

    def rank(self, axis: int) -> int:
        """Return how many numbers an axis tells that coarser ones do not."""
        below = self.below(axis)
        return self.sizes[axis] - (1 if below is None else self.sizes[below])

    def groups(self, axis: int) -> Ints:
        """Return for each value of the axis that a number means its value, or its group."""
        axis = self._number(axis)
        if axis < len(self.shape):
            return np.arange(self.shape[axis])
        return np.array(self.recoded[axis - len(self.shape)].of)

    def tells(self, kept: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
        """Whether a margin can be summed to another one: it keeps each of its axes, or a finer one."""
        chains = {w: self.chain(w) for w in self._numbers(wanted)}
        finer = (chain[chain.index(w) :] for w, chain in chains.items())
        kept = self._numbers(kept)
        return all(any(k in those for k in kept) for those in finer)

    def within(self, kept: tuple[int, ...], wanted: tuple[int, ...]) -> Ints:
        """Return for each entry of a margin the entry of a coarser margin to which it adds."""
        kept, wanted = self._numbers(kept), self._numbers(wanted)
        if not self.tells(kept, wanted):
            raise Refused(f"a margin of the axes {kept} does not tell one of the axes {wanted}")
        position = np.zeros([self.sizes[k] for k in kept], np.int64)
        for w in wanted:
            k = next(k for k in kept if self.own(k) == self.own(w))
            value = np.empty(self.sizes[k], np.int64)
            value[self.groups(k)] = self.groups(w)
            along = value.reshape([-1 if other == k else 1 for other in kept])
            position = position * self.sizes[w] + along
        return position.ravel()

    def summed(self, cells: npt.ArrayLike, keep: tuple[int, ...]) -> Array:
        """Return a margin of tables, (…, *shape): (…, entries)."""
        if not isinstance(cells, np.ndarray) or cells.shape[-len(self.shape) :] != self.shape:
            raise Refused(f"cells must be an array whose last axes have the shape {self.shape}")
        first, before = cells.ndim - len(self.shape), cells.shape[: cells.ndim - len(self.shape)]
        keep = self._numbers(keep)
        kept = [self.own(a) for a in keep]
        block = cells.sum(axis=tuple(first + a for a in range(len(self.shape)) if a not in kept))
        for place, a in enumerate(keep):
            if a >= len(self.shape):
                of = self.groups(a)
                order = np.argsort(of, kind="stable")
                starts = np.concatenate([[0], np.cumsum(np.bincount(of))[:-1]])
                block = np.add.reduceat(block.take(order, axis=first + place), starts, axis=first + place)
        return np.asarray(block).reshape(*before, -1)

    # --- margins ---------------------------------------------------------------------------------------------------

    def axes(self, keep: int | str | Iterable[int | str]) -> tuple[int, ...]:
        """Return the kept axes of one margin as numbers; given by number or name, in table order."""
        named = [keep] if isinstance(keep, (str, int, np.integer)) else listed("keep", keep, MARGINS)
        chosen = []
        for axis in named:
            if isinstance(axis, str):
                chosen.append(self.all_names.index(one_of("keep", axis, self.all_names)))
            else:
                chosen.append(int(positions("keep", [axis], len(self.sizes))[0]))
        if any(self.own(later) <= self.own(earlier) for earlier, later in pairwise(chosen)):
            raise Refused(f"keep must list the axes of a margin once each, in table order, found {shown(tuple(named))}")
        return tuple(chosen)

    def margins(self, keep: Iterable[int | str | Iterable[int | str]]) -> tuple[tuple[int, ...], ...]:
        """Return a list of different margins, each as its kept axes."""
        result = tuple(self.axes(axes) for axes in listed("keep", keep, MARGINS))
        if not result:
            raise Refused("keep must list at least one margin, found none")
        if len(set(result)) < len(result):
            raise Refused("keep must not list a margin twice")
        return result

    def margin_shape(self, keep: Iterable[int]) -> tuple[int, ...]:
        """Return the sizes of the axes that `keep` names, a margin; () is the grand total."""
        return tuple(self.sizes[a] for a in self.axes(keep))

    def margin_name(self, keep: Iterable[int]) -> str:
        """Return the name of a margin: its axes' names, or "total"."""
        return " × ".join(self.all_names[a] for a in self.axes(keep)) or "total"

    def coordinates(self, cells: npt.ArrayLike) -> Ints:
        """Return the coordinates of cells as rows, shape (m, axes)."""
        found = whole_numbers("cells", cells)
        if found.size and (found.min() < 0 or found.max() >= self.cells):
            raise Refused(f"cells must hold positions between 0 and {self.cells - 1}, found others")
        return np.stack(np.unravel_index(found, self.shape), axis=-1).astype(np.int64)

    def margin_index(self, keep: Iterable[int], cells: npt.ArrayLike | None = None) -> Ints:
        """Return for each of `cells` (None: all) its position in the margin over the axes `keep`, C order."""
        axes = self.axes(keep)
        if cells is None:
            position = np.zeros(self.shape, np.int64)
            for a in axes:
                along = self.groups(a).reshape([-1 if b == self.own(a) else 1 for b in range(len(self.shape))])
                position = position * self.sizes[a] + along
            return position.ravel()
        coordinates = self.coordinates(cells)
        position = np.zeros(coordinates.shape[:-1], np.int64)
        for a in axes:
            position = position * self.sizes[a] + self.groups(a)[coordinates[..., self.own(a)]]
        return position

    def margin_rows(self, keep: Iterable[int]) -> csr_array[Any]:
        """Return the 0/1 matrix (margin cells, cells) that sums the cube to the margin."""
        index = self.margin_index(keep)
        size = math.prod(self.margin_shape(keep))
        order = np.argsort(index, kind="stable")
        start = np.concatenate([[0], np.cumsum(np.bincount(index, minlength=size))])
        return csr_array((np.ones(self.cells, np.int64), order, start), shape=(size, self.cells))


def _axis_names(names: Any, count: int) -> tuple[str, ...]:
    if names is None:
        return tuple(f"axis {a}" for a in range(count))
    texts = [names] if isinstance(names, str) else listed("names", names, "a list of texts")
    if len(texts) != count or not all(isinstance(name, str) and name.strip() for name in texts):
        raise Refused(f"names must give one text for each of the {count} axes, found {shown(texts)}")
    if len(set(texts)) < count:
        raise Refused("names must be different from each other")
    return tuple(str(name) for name in texts)


# --- a coarser axis of a cube: the values of one axis in groups, such as three kinds of household of eight -----------


@dataclass(frozen=True)
class Recoded:
    """The group of each value of an axis, numbered from 0 on; every group has a value."""

    name: str
    axis: int
    of: tuple[int, ...]

    @cached_property
    def size(self) -> int:
        return max(self.of) + 1

    def coarser(self, other: Recoded) -> bool:
        return self.axis == other.axis and len(set(zip(self.of, other.of, strict=True))) == other.size

    @cached_property
    def alike(self) -> bool:
        counts = np.bincount(self.of)
        return bool((counts == counts[0]).all())


def recoded_axes(given: Any, shape: tuple[int, ...], names: tuple[str, ...]) -> tuple[Recoded, ...]:
    """Read {name: (axis, group of each value)}; groups of one axis must be nested, coarse ones in front."""
    if given is None:
        return ()
    if not isinstance(given, Mapping):
        raise Refused(f"recoded must map names to (axis, groups), found {shown(given)}")
    found = [_one(name, each, shape, names) for name, each in given.items()]
    for one, two in combinations(found, 2):
        if one.axis == two.axis and one.coarser(two) and two.coarser(one):
            raise Refused(f"recoded axes {one.name!r} and {two.name!r} have the same groups: leave one out")
        if one.axis == two.axis and not (one.coarser(two) or two.coarser(one)):
            raise Refused(
                f"recoded axes {one.name!r} and {two.name!r} cut across each other: each group of one must lie inside "
                f"a group of the other, or make {names[one.axis]!r} two axes"
            )
    return tuple(sorted(found, key=lambda each: (each.axis, each.size)))


def _one(name: Any, given: Any, shape: tuple[int, ...], names: tuple[str, ...]) -> Recoded:
    if not isinstance(name, str) or not name.strip() or name in names:
        raise Refused(f"recoded axes must have names of their own, found {shown(name)}")
    if not isinstance(given, Sequence) or isinstance(given, str) or len(given) != 2:
        raise Refused(f"recoded axis {name!r} must be a pair (axis, groups), found {shown(given)}")
    of, groups = given
    axis = (
        names.index(one_of(f"the axis of {name!r}", of, names))
        if isinstance(of, str)
        else whole(f"the axis of {name!r}", of, at_least=0, at_most=len(shape) - 1)
    )
    numbers: Ints = whole_numbers(f"the groups of {name!r}", groups).ravel()
    if numbers.size != shape[axis]:
        raise Refused(
            f"the groups of {name!r} must name one group for each of {shape[axis]} values, found {numbers.size}"
        )
    found = np.unique(numbers)
    if found[0] != 0 or found[-1] != found.size - 1 or not 2 <= found.size < numbers.size:
        raise Refused(
            f"the groups of {name!r} must be two or more, fewer than the values, and numbered from 0 on with none left "
            "out"
        )
    return Recoded(name, axis, tuple(numbers.tolist()))
