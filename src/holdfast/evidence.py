"""What is known of an answer beside its values: how near a moved table is to the nearest one, how good a law is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arrays import Ints


@dataclass(frozen=True)
class Evidence:
    """Carried by a moved table, and by a law that was made to be good.

    `objective` is what was made small, and `gap` bounds how much smaller it can be; infinite where nothing bounds it.
    Of a moved table: Σ|z−y|²/v or Σ|z−y|/√v in steps of the query, over all allowed points (whole ones, for whole
    numbers), measured by code that did not move it; 0 and 0 where a formula did. Of a law: its total (weighted) squared
    error with its loss scaled to 1, over all Gaussian noise on the same space (THEORY H4). `notes` say what else was
    compared.

    `grid` is the step of which every moved number is a multiple, in steps of the query (1 for whole numbers); a double
    stands for the multiple nearest to it. None: doubles that a formula gave stand on no grid. `exact` says that what
    must hold was tested on these multiples, in whole numbers. `nearest` is False where the point is a controlled
    rounding of the nearest real one, not claimed to be the nearest whole one.

    All of it is a function of the law, of noisy values and of published figures.
    """

    objective: float = 0.0
    gap: float = math.inf
    grid: Fraction | None = None
    exact: bool = False
    nearest: bool = True
    notes: tuple[str, ...] = ()

    @property
    def lower_bound(self) -> float:
        """What the objective cannot be below; −∞ where nothing bounds it."""
        return self.objective - self.gap

    @property
    def relative_gap(self) -> float:
        """The gap as a share of the objective."""
        return self.gap / self.objective if self.objective > 0 else self.gap

    def nearest_steps(self, values: npt.NDArray[Any]) -> Ints:
        """The multiples of the grid that doubles stand for."""
        assert self.grid is not None
        return np.rint(values * float(self.grid.denominator)).astype(np.int64)

    def steps(self, values: npt.NDArray[Any]) -> Ints | None:
        """Values as multiples of the grid, or None where one is not a multiple."""
        assert self.grid is not None
        if values.dtype.kind == "i":
            return np.asarray(values * self.grid.denominator)
        found = self.nearest_steps(values)
        return found if (found / float(self.grid.denominator) == values).all() else None

    @classmethod
    def joined(cls, parts: Sequence[Evidence]) -> Evidence:
        """The evidence of a table made of independent parts."""
        if len(parts) == 1:
            return parts[0]
        grids = [part.grid.denominator for part in parts if part.grid is not None]
        return cls(
            objective=sum(part.objective for part in parts),
            gap=sum(part.gap for part in parts),
            grid=Fraction(1, int(np.lcm.reduce(grids, dtype=object))) if grids else None,
            exact=all(part.exact for part in parts),
            nearest=all(part.nearest for part in parts),
            notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
        )


#: Of noise that was not made for its constraint.
NOTHING_KNOWN = Evidence()
