"""Small systems of rows and bounds in whole numbers, and what rationals prove about them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import flint
import numpy as np

from holdfast.arguments import LARGEST
from holdfast.arrays import Bools, Floats
from holdfast.constraints.system.rows import Rows
from holdfast.exact.inside import whole_in
from holdfast.exact.nearest_rational import MOST_OUTPUTS, MOST_ROWS, ExactRows, Impossible, nearest_or_proof
from holdfast.exact.rationals import ExactVector

#: Points that are looked at first are rounded to multiples of 1 over this.
_STEP = 1 << 20


@dataclass(frozen=True, eq=False)
class Small:
    """Rows and bounds as `dual_steps` needs them: `factors[i]` times row `order[i]` each, and bounds after them."""

    exact: ExactRows
    order: list[int]
    factors: list[Fraction]

    @classmethod
    def of(cls, rows: Rows, equality: Bools, bounds: tuple[ExactVector, ExactVector], *, whole: bool) -> Small | None:
        """Write down A z = b where `equality`, otherwise A z ≥ b; None where it is too large.

        For whole points, sides and bounds of inequalities are rounded to what whole points can reach.
        """
        n, count = int(rows.A.shape[1]), rows.count
        ends = [(j, 1, value) for j, value in enumerate(bounds[0].tolist()) if value > -LARGEST]
        ends += [(j, -1, -value) for j, value in enumerate(bounds[1].tolist()) if value < LARGEST]
        if n > MOST_OUTPUTS or count + len(ends) > MOST_ROWS:
            return None
        order = [*np.flatnonzero(equality).tolist(), *np.flatnonzero(~equality).tolist()]
        starts, columns, data = (part.tolist() for part in (rows.A.indptr, rows.A.indices, rows.A.data))
        sides = rows.b.tolist()
        entries: list[int] = []
        right: list[int] = []
        factors: list[Fraction] = []

        def add(row: dict[int, int], side: Any, rounded: bool) -> None:
            common = math.gcd(*row.values()) or 1
            factor, least = Fraction(1, common), Fraction(side) / common
            if not rounded:
                factor, least = Fraction(side.denominator), Fraction(side.numerator)
            factors.append(factor)
            right.append(math.ceil(least))
            entries.extend(int(factor * row.get(j, 0)) for j in range(n))

        for i in order:
            span = slice(starts[i], starts[i + 1])
            row = dict(zip(columns[span], data[span], strict=True))
            add(row, sides[i], whole and not equality[i])
        for j, sign, value in ends:
            add({j: sign}, value, whole)
        C = flint.fmpz_mat(len(right), n, entries)
        equalities = int(equality.sum())
        return cls(ExactRows(C, tuple(right), equalities, count - equalities), order, factors)

    def proof(self, near: Floats) -> dict[int, Fraction] | None:
        """Multipliers of the rows that prove a contradiction with the bounds; None where a real point is allowed."""
        start = [Fraction(round(x * _STEP), _STEP) for x in near.tolist()]
        found = nearest_or_proof(self.exact, np.ones(near.size), start)
        if not isinstance(found, Impossible):
            return None
        rows = ((i, value) for i, value in found.multipliers.items() if i < len(self.order))
        return {self.order[i]: value * self.factors[i] for i, value in rows}

    def whole(self) -> tuple[list[int] | None, bool]:
        return whole_in(self.exact)
