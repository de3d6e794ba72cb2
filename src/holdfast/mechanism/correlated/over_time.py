"""What a query asked again in every period costs, its noise hanging together over them (docs/theory/over-time.md)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from holdfast.arguments import Refused
from holdfast.noise import Independent, IntegerGaussian
from holdfast.noise.over_time import UNIT, Factor, wideness
from holdfast.privacy import Additive, AllDifferences, Differences, Guarantee
from holdfast.queries import Neighbours

BECAUSE = "noise over time: ρ of one period times the most that a change costs over all of them (THEORY H14)"
ADDED = "noise over time hides records that come and go: use neighbours add-remove"
#: One period by itself.
ALONE = Factor(((),), (UNIT,))
#: At least π/2: by so much a sum over periods exceeds the best choice of signs at most (Nesterov 1998).
ROUNDING = Fraction(1571, 1000)


@dataclass(frozen=True, eq=False)
class AdditiveOverTime(Additive):
    """The noise of one period by itself, whose statements are about all periods together.

    `law` is that of the noise of `period`. A person's records count in at most `several` periods, `per` of them in each
    (for sums, so many steps). Guarantee: THEORY H14, whatever later data are chosen by what was published.
    """

    factor: Factor = ALONE
    period: int = 0
    several: int = 1
    per: int = 1

    @classmethod
    def of(cls, base: Additive, factor: Factor, several: int = 1, per: int = 1) -> AdditiveOverTime:
        """The first period of a series, with the noise of `base` behind it."""
        if base.law.kind != "gaussian" or not base.law.integer:
            raise Refused("noise over time is whole Gaussian noise: ask for rho, or delta beside epsilon")
        if not base.neighbours.adds:
            raise Refused(ADDED)
        found = cls(base.query, base.law, base.neighbours, base.target, factor, 0, several, per)
        return found._scaled(factor.of_period(0))

    def at(self, period: int) -> AdditiveOverTime:
        """The same in another period: exactly the noise of the same σ²."""
        moved = self._scaled(self.factor.of_period(period) / self.factor.of_period(self.period))
        return replace(moved, period=period)

    def _scaled(self, times: Fraction) -> AdditiveOverTime:
        laws = tuple(None if square is None else IntegerGaussian(square * times) for square in self.law.scale_values)
        return replace(self, law=Independent(laws, self.law.which, self.law.n))

    @property
    def squares(self) -> tuple[Fraction | None, ...]:
        """σ² of every law."""
        growth = self.factor.of_period(self.period)
        return tuple(None if square is None else square / growth for square in self.law.scale_values)

    def charge(self, neighbours: Neighbours, *, alone: bool) -> Fraction:
        """How many times the loss of one period all of them come to; `alone`: every record may change by itself."""
        if not neighbours.adds:
            raise Refused(ADDED)
        factor, persons = self.factor, -(-neighbours.records // self.per)
        if alone:
            worst = factor.worst(self.several)
        else:  # changes that keep exact figures, which may undo each other within one period
            worst = factor.worst(min(factor.periods, persons * self.several))
            if self.several == 1:
                worst = min(worst, factor.worst(1) * (1 if persons <= 2 else ROUNDING))
        least = min(square for square in self.squares if square is not None) * UNIT / max(factor.weights)
        return wideness(least) * worst * factor.of_period(self.period)

    def integer_gaussian(self, mu_squared: Fraction, differences: Differences | None, **words: Any) -> Guarantee:
        """The statement about all periods, from the loss of one."""
        charge = self.charge(words["neighbours"], alone=isinstance(differences, AllDifferences))
        own = "" if words["because"].startswith("independent") else f"{words['because'].rstrip('. ')}; "
        return super().integer_gaussian(
            mu_squared * charge, None, **(words | {"because": f"{own}{BECAUSE}", "exact": False})
        )
