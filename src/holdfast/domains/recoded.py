"""A coarser axis of a cube: the values of one axis in groups, such as three kinds of household of eight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from holdfast.arguments import Refused, one_of, shown, whole, whole_numbers
from holdfast.arrays import Ints


@dataclass(frozen=True)
class Recoded:
    """The group of each value of an axis, numbered from 0 on; every group has a value."""

    name: str
    axis: int
    of: tuple[int, ...]

    @cached_property
    def size(self) -> int:
        """The number of groups."""
        return max(self.of) + 1

    def coarser(self, other: Recoded) -> bool:
        """Whether every group of the other one lies inside one of this."""
        return self.axis == other.axis and len(set(zip(self.of, other.of, strict=True))) == other.size

    @cached_property
    def alike(self) -> bool:
        """Whether all groups have the same number of values."""
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
        raise Refused(f"recoded axes must have names of their own, found {name!r}")
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
