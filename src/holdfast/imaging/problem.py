"""Noisy values and what the output must satisfy: what a way of computing `onto` gets to see."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from holdfast.constraints import NullSpace, System


@dataclass(frozen=True, eq=False)
class Problem:
    """Move noisy values to the nearest point that satisfies `system`.

    Nearest: least Σ|z_i − y_i|²/v_i (norm "l2") or Σ|z_i − y_i|/√v_i ("l1"), v = `spreads`; an infinite spread
    means that the output was not measured. `integer` asks for whole numbers. Values count in steps of `unit`.
    """

    n: int
    system: System
    norm: str
    spreads: npt.NDArray[np.float64]
    integer: bool
    unit: Fraction = Fraction(1)

    @cached_property
    def space(self) -> NullSpace:
        """The null space N of all equalities and invariants."""
        return self.system.null_space()

    @property
    def orthogonal(self) -> bool:
        """Whether the projection is the orthogonal one: equal weights, or outputs that do not mix."""
        return self.system.coordinatewise or bool((self.spreads == self.spreads[0]).all())
