"""What a way can show for its answer: the grid it stands on, and how far it can be from the nearest point at most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from holdfast.arrays import Array, Floats, Ints


@dataclass(frozen=True)
class Evidence:
    """Measured on one moved table by code that did not move it.

    `grid` is the step of which every released number is a multiple, in steps of the query (1 for whole numbers); a
    double stands for the multiple nearest to it. `exact` says that what must hold was tested on these multiples, in
    whole numbers. `objective` is what was made small, Σ|z−y|²/v or Σ|z−y|/√v in steps of the query, and `gap` bounds
    how much smaller it can be for any allowed point (any whole one, for whole numbers). `nearest` is False where the
    point is a controlled rounding of the nearest real one, not claimed to be the nearest whole one.

    All of it is a function of the noisy values and of published figures.
    """

    grid: Fraction
    exact: bool
    objective: float
    gap: float
    nearest: bool = True

    @property
    def relative_gap(self) -> float:
        """The gap as a share of the objective."""
        return self.gap / self.objective if self.objective > 0 else self.gap

    def nearest_steps(self, values: Array) -> Ints:
        """The multiples of the grid that doubles stand for."""
        return np.rint(values * float(self.grid.denominator)).astype(np.int64)

    def steps(self, values: Array) -> Ints | None:
        """Values as multiples of the grid, or None where one is not a multiple."""
        if values.dtype.kind == "i":
            return np.asarray(values * self.grid.denominator)
        found = self.nearest_steps(values)
        return found if (found / float(self.grid.denominator) == values).all() else None

    @classmethod
    def joined(cls, parts: Sequence[Evidence], *, exact: bool) -> Evidence:
        """The evidence of a table made of independent parts, these and perhaps others that leave it exact or not."""
        finest = Fraction(1, int(np.lcm.reduce([part.grid.denominator for part in parts], dtype=object)))
        return cls(
            finest,
            exact and all(part.exact for part in parts),
            sum(part.objective for part in parts),
            sum(part.gap for part in parts),
            all(part.nearest for part in parts),
        )


@dataclass(frozen=True, eq=False)
class Answer:
    """A moved table (n,) with its evidence; None where the way needs none, being a formula."""

    values: Ints | Floats
    evidence: Evidence | None
