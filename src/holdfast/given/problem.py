"""A law of noise and what the output must satisfy: what a way of computing `given` gets to see."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from holdfast.arrays import Floats, Ints, Owner
from holdfast.constraints import NullSpace, System
from holdfast.noise import Independent
from holdfast.trees import Forest


@dataclass(frozen=True, eq=False)
class Problem(Owner):
    """Draw noise U from `law` given that truth + U satisfies `system`.

    Equalities and invariants ask for A U = 0, since the truth satisfies them itself. Where there are only
    equalities, the law of U does not depend on the truth. Truth and noise count in steps of `unit`.
    """

    law: Independent
    system: System
    unit: Fraction = Fraction(1)

    @cached_property
    def space(self) -> NullSpace:
        return self.system.null_space()

    @cached_property
    def forest(self) -> Forest | None:
        """The hierarchy, if the system is one with exact or fixed outputs and bounds."""
        return Forest.of(self.system)

    @property
    def depends_on_data(self) -> bool:
        return self.system.has_inequalities or bool(self.system.branches)

    def uniform_scale(self) -> bool:
        return len(self.law.laws) == 1 and self.law.laws[0] is not None


Truth = Ints | Floats | None
