"""Noisy values and what the output must satisfy: what a way of computing `onto` gets to see."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from holdfast.arguments import LARGEST, Refused
from holdfast.arrays import Array, Bools, Floats, Ints, Owner, Words
from holdfast.constraints import Names, NullSpace, Rows, System
from holdfast.constraints.system.independent_blocks import split_rows, split_system
from holdfast.constraints.system.sound_rows import SoundRows
from holdfast.noise import Independent
from holdfast.randomness import seeded
from holdfast.trees import Forest

#: Errors without a closed form are simulated up to this many numbers; beyond it a study does not fit in memory.
MOST_SIMULATED = 1 << 28
#: Variances below this one count as this one: whole noise of a tiny scale has a variance that no double holds.
LEAST_SPREAD = 1e-250
#: Spreads of measured outputs that differ by more than this cannot be weighed against each other in doubles.
MOST_CONTRAST = 1e200


#: The public coins that decide between equally near whole tables, one of 64 bits for each; None: 0 for all.
Ties = Words | None
#: How a way moves noisy values (size, n), given right-hand sides and coins.
Image = Callable[["Problem", Array, Array, Ties], Array]


@dataclass(frozen=True, eq=False)
class Problem(Owner):
    """Move noisy values to the nearest point that satisfies `system`.

    Nearest: least Σ|z_i − y_i|²/v_i (norm "l2") or Σ|z_i − y_i|/√v_i ("l1"), v = `spreads`; an infinite spread
    means that the output was not measured. `integer` asks for whole numbers. Values count in steps of `unit`.
    """

    n: int
    system: System
    norm: str
    spreads: Floats
    integer: bool
    unit: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        spreads = np.maximum(self.spreads, LEAST_SPREAD)
        least, most = spreads.min(initial=np.inf), spreads.max(where=np.isfinite(spreads), initial=0.0)
        if most > MOST_CONTRAST * least and not self.system.coordinatewise:
            raise Refused(
                f"the variances or weights of two outputs differ by more than {MOST_CONTRAST:.0e} times: "
                "choose nearer scales, or pass weights=None"
            )
        object.__setattr__(self, "spreads", spreads)

    def __getstate__(self) -> dict[str, Any]:
        return {item.name: getattr(self, item.name) for item in fields(self)}  # what was computed on the way stays here

    @cached_property
    def outside(self) -> System:
        """What must hold outside a union: everything, if there is none."""
        return replace(self.system, branches=()) if self.system.branches else self.system

    @cached_property
    def space(self) -> NullSpace:
        """The null space N of all equalities and invariants, those on the sides of a union left out."""
        return self.outside.null_space()

    @cached_property
    def sound(self) -> SoundRows:
        """The rows of `space` in a form on which doubles can be trusted in the norm of the spreads."""
        return self.space.sound_for(self.spreads)

    def right_hand_sides(self) -> Array:
        """Right-hand sides of `space.rows`, in steps of `unit`; refused where they are read from the data."""
        return self.outside.right_hand_sides(self.unit)

    @property
    def depends_on_data(self) -> bool:
        return self.system.has_inequalities or bool(self.system.branches)

    def parts(self, groups: list[Ints]) -> list[tuple[Problem, Ints]]:
        """The problems of groups of outputs that no row connects, and the numbers of their rows in `space.rows`.

        Groups that are alike, but for the right-hand sides of their rows, are one and the same problem: what is
        prepared for one serves all.
        """
        rows = Rows(self.space.rows, np.zeros(self.space.rank, dtype=np.int64), Names())
        systems = split_system(self.system, groups)
        made: dict[tuple[Any, ...], Problem] = {}
        found = []
        for outputs, system, (mine, which) in zip(groups, systems, split_rows(rows, groups), strict=True):
            spreads = self.spreads[outputs]
            stored = (mine.A, system.inequalities.A)
            key = (
                *(array.tobytes() for A in stored for array in (A.indptr, A.indices, A.data)),
                *(_key(side) for side in (system.lower, system.upper, system.inequalities.b)),
                spreads.tobytes(),
            )
            if key not in made:
                made[key] = Problem(outputs.size, system, self.norm, spreads, self.integer, self.unit)
                made[key].__dict__["space"] = NullSpace(outputs.size, mine.A)
            found.append((made[key], which))
        return found

    @property
    def orthogonal(self) -> bool:
        """Whether the projection is the orthogonal one: equal weights, or outputs that do not mix."""
        return self.system.coordinatewise or bool((self.spreads == self.spreads[0]).all())

    @cached_property
    def forest(self) -> Forest | None:
        """The hierarchy, if the system is one with exact or fixed outputs and bounds."""
        return Forest.of(self.system)

    @cached_property
    def single_rows(self) -> tuple[Ints, Ints]:
        """The rows of `space` that make one output exact or fixed, and those outputs."""
        rows = self.space.rows
        single = np.flatnonzero(np.diff(rows.indptr) == 1)
        return single, rows.indices[rows.indptr[single]].astype(np.int64)

    @property
    def exact(self) -> Bools:
        """Which outputs are exact or fixed, by a row of `space`."""
        exact = np.zeros(self.n, dtype=bool)
        exact[self.single_rows[1]] = True
        return exact

    def bounds(self, right: Array) -> tuple[Array, Array]:
        """Bounds in steps of `unit`, whole or real, ∓2**62 where there is none; equal ones for exact and fixed outputs.

        `right` holds the right-hand sides of `space.rows`. An exact output whose row depends on the others has no
        bounds of its own: it is exact if they are.
        """
        low: Array
        high: Array
        if self.integer:
            low, high = (side.copy() for side in self.system.integer_bounds(self.unit))
        else:
            low, high = self.system.real_bounds()
            for bound in (low, high):  # in place: a nation's bounds are large
                np.divide(bound, float(self.unit), out=bound)
                np.clip(bound, -float(LARGEST), float(LARGEST), out=bound)
        rows, outputs = self.single_rows
        factors = self.space.rows.data[self.space.rows.indptr[rows]]
        values = np.asarray(right)[rows]
        if values.dtype == object or (factors != 1).any():
            exact = [Fraction(b) / int(a) for b, a in zip(values.tolist(), factors.tolist(), strict=True)]
            if self.integer and any(value.denominator != 1 for value in exact):
                raise Refused("an exact or fixed value is not a whole number of steps: pass integer=False")
            values = np.array(exact, dtype=np.float64 if not self.integer else object)
        low[outputs] = high[outputs] = values.astype(low.dtype)
        return low, high


def simulated_errors(problem: Problem, law: Independent, image: Image) -> Callable[[int], Array]:
    """So many errors of simulated noise that is moved where every right-hand side is 0."""
    zero, stream = np.zeros(problem.space.rank, dtype=np.int64), seeded(0)
    return lambda size: image(problem, law.measured_draw(size, stream), zero, stream.words(size))


def _key(values: Array) -> Any:
    return tuple(values.tolist()) if values.dtype == object else values.tobytes()
