"""Weights over the outputs, and bounds: the common words of every 'largest change' computation."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from holdfast.arguments import Refused, rational, whole_numbers
from holdfast.arrays import Array, Floats, Ints


class Bound(NamedTuple):
    """A number that is never too small, and whether it is attained."""

    value: Fraction
    exact: bool


NOTHING = Bound(Fraction(0), True)


def greatest(bounds: Iterable[Bound]) -> Bound:
    """Return the largest of several bounds: a bound for the union of what they cover."""
    best = NOTHING
    for bound in bounds:
        if bound.value > best.value:
            best = bound
        elif bound.value == best.value:
            best = Bound(best.value, best.exact or bound.exact)
    return best


@dataclass(frozen=True, eq=False)
class Weights:
    """Output i has weight ``values[which[i]]``; `which` None means that all have ``values[0]``."""

    values: tuple[Fraction, ...]
    which: Ints | None
    n: int

    @classmethod
    def of(cls, values: Sequence[Any], which: Any, n: int) -> Weights:
        """Check and return weights ≥ 0 for n outputs."""
        numbers = tuple(rational("values", value) for value in values)
        if not numbers or min(numbers) < 0:
            raise Refused("values must be at least one number, none below 0")
        return cls(numbers, groups_of(which, n, len(numbers)), n)

    @property
    def uniform(self) -> bool:
        return self.which is None or len(set(self.values)) == 1

    def numerators(self) -> tuple[list[int], int]:
        """Return whole numbers and one denominator that give the values."""
        denominator = math.lcm(*(value.denominator for value in self.values))
        return [int(value * denominator) for value in self.values], denominator

    def per_output(self, most: int) -> tuple[Array, int]:
        """Return (whole weights per output, denominator); int64 if sums of `most` of them fit."""
        numerators, denominator = self.numerators()
        dtype: Any = np.int64 if max(numerators) * most < 2**62 else object
        table = np.array(numerators, dtype=dtype)
        return (np.full(self.n, table[0], dtype) if self.which is None else table[self.which]), denominator

    def least_ratio(self) -> float:
        """Return the smallest weight above 0 as a part of the largest (which is above 0)."""
        return float(min(value for value in self.values if value > 0) / max(self.values))

    def floats(self) -> Floats:
        """Return the weights as parts of the largest, each within half a unit in the last place."""
        largest = max(self.values)
        table = np.array([float(value / largest) for value in self.values])
        return np.full(self.n, table[0]) if self.which is None else table[self.which]


def groups_of(which: Any, n: int, groups: int | None = None) -> Ints | None:
    """Check and return the group of each output; None stays None (all in group 0)."""
    if which is None:
        return None
    result = whole_numbers("which", which, (n,))
    if result.size and (result.min() < 0 or (groups is not None and result.max() >= groups)):
        limit = "0 or more" if groups is None else f"between 0 and {groups - 1}"
        raise Refused(f"which must hold group numbers {limit}")
    return result


def float_up(value: Fraction) -> float:
    """Return the smallest double ≥ value."""
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def sqrt_up(value: Fraction) -> float:
    """Return the smallest double ≥ √value, for value ≥ 0."""
    # An integer root of the value shifted by an even power of two carries more bits than a double holds.
    shift = max(0, 64 - (value.numerator.bit_length() - value.denominator.bit_length()) // 2)
    shifted = (value.numerator << (2 * shift)) // value.denominator
    root = math.isqrt(shifted)
    below = Fraction(root, 1 << shift)
    if below * below == value:
        return float_up(below)
    # The root lies strictly between two neighbouring multiples of 2**-shift, far finer than doubles here.
    up = float_up(below)
    return up if Fraction(up) ** 2 >= value else math.nextafter(up, math.inf)
