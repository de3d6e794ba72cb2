"""Mechanisms made for exact figures: noise that lives on their null space (SDP Thm 12)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Refused, one_of, positive, probability, reals
from holdfast.constraints import Constraint, ExactMargins, ExactNodes, System
from holdfast.mechanism import Mechanism
from holdfast.noise import Gaussian, Independent, Laplace
from holdfast.noise.spread import Spread
from holdfast.privacy import Additive, Promise, Target, gaussian_mu
from holdfast.privacy.budget import one_budget
from holdfast.queries import Neighbours, Query
from holdfast.randomness import Stream
from holdfast.subspace import GAUSSIAN, LAWS, Evidence, SubspaceLaw, choose, promise

NO_VERBS = (
    "noise made for its constraint cannot be conditioned or moved again: give extend() all equalities at once, or use "
    "laplace() or gaussian() with given() and onto()"
)


@dataclass(frozen=True, eq=False, repr=False)
class Extended(Mechanism):
    """A query's answer plus noise on the null space of what must hold. Made by `extend`.

    Law: q(x) + s·U, U the law `form` on N and s the scale of `base`. Guarantee: `guarantees`.
    """

    law: str = field(kw_only=True)
    costs: npt.NDArray[np.float64] | None = field(kw_only=True)
    constraint: Constraint = field(kw_only=True)
    system: System = field(kw_only=True)
    form: SubspaceLaw = field(kw_only=True)

    def __reduce__(self) -> tuple[Any, ...]:
        # The law is found again: what it was made of (functions, factorisations) cannot travel.
        return _made, (self.base, self.constraint, self.law, self.costs)

    def __repr__(self) -> str:
        return f"<Mechanism: {self.form.name} noise on {self.query!r}, for {self.constraint}>"

    def given(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: the noise already obeys its constraint."""
        raise Refused(NO_VERBS)

    def onto(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: the noise already obeys its constraint."""
        raise Refused(NO_VERBS)

    @property
    def method(self) -> str:
        """What is drawn."""
        return self.form.name

    @property
    def evidence(self) -> Evidence:
        """How good the law is: its total squared error at loss 1, the least possible one, and what was compared."""
        return self.form.evidence

    @cached_property
    def _promise(self) -> Promise:
        return promise(self.base, self.form, self.system)

    @property
    def _scale(self) -> float:
        scale = self.base.law.scale_values[0]
        assert scale is not None
        return math.sqrt(scale) if self.form.kind == "gaussian" else float(scale)

    @cached_property
    def _spread(self) -> Spread | None:
        return self.form.spread().times(self._scale)

    def _measured_draw(self, size: int, stream: Stream) -> npt.NDArray[Any]:
        return self.form.draw(size, stream) * self._scale

    def _truth(self, truth: Any) -> npt.NDArray[Any]:
        checked = self._from_units("truth", truth, (self.query.n,))
        missed = self.system.violation(checked, self.base.unit)
        if missed is not None:
            raise Refused(f"truth violates what must hold: {missed}")
        return checked

    def _check(self, values: npt.NDArray[Any], truth: npt.NDArray[Any]) -> None:
        """Test on the values themselves that everything asked for holds."""
        missed = self.system.violation(values, self.base.unit)
        if missed is None and self.system.invariants.count:
            rows = self.system.invariants.A
            change = np.abs(rows @ (values - truth))
            size = np.maximum(abs(rows) @ (np.abs(values) + np.abs(truth)), 1.0)
            missed = "an invariant" if (change > 1e-9 * size).any() else None
        if missed is not None:
            raise RuntimeError(f"nothing is released: the values drawn miss {missed}; this is a fault of holdfast")


def extend(
    query: Query,
    constraint: Constraint,
    *,
    law: str = "optimal",
    epsilon: Any = None,
    delta: Any = None,
    rho: Any = None,
    neighbours: str | Neighbours = "add-remove",
    integer: bool = False,
    weights: Any = None,
) -> Mechanism:
    """Noise made for exact figures, by (epsilon, delta) or rho for Gaussian laws and by epsilon for the others.

    `constraint` is an invariant, alone or with structural equalities that the answers obey. `law` is "optimal" (least
    total squared error, or weighted by `weights`, one per output; THEORY H4), "gaussian" (SDP Cor 15), "correlated"
    (SDP Algorithm 3), "laplace" (SDP Cor 18) or "k-norm".
    Law: q(x) + U, U of mean 0 on the null space N of all equalities.
    Guarantee: for all neighbours, about the part of the answer that the exact figures leave open (SDP Def 5, Thm 12).
    """
    if not isinstance(query, Query):
        raise Refused(f"a query is expected, made by counts(), histogram() and the like; found {type(query).__name__}")
    system = equalities("extend()", query, constraint)
    relation = Neighbours.of(neighbours)
    if not isinstance(integer, (bool, np.bool_)):
        raise Refused(f"integer must be True or False, found {integer!r}")
    if integer:
        raise Refused(
            "whole noise on a null space is proved for independent noise given the equalities only: use "
            "laplace(...).given(...) or gaussian(...).given(...)"
        )
    costs = None if weights is None else reals("weights", weights, (query.n,))
    if costs is not None and (costs <= 0).any():
        raise Refused(f"weights must be above 0, but the entry at position {np.flatnonzero(costs <= 0)[0]} is not")
    target, budget = _budget(law, epsilon, delta, rho)
    form = choose(query, system, relation, law, costs)
    noise: Any = Gaussian(form.largest / budget) if form.kind == "gaussian" else Laplace(form.largest / budget)
    base = Additive(query, Independent((noise,), None, query.n), relation, target)
    return Extended(base, law=law, costs=costs, constraint=constraint, system=system, form=form)


def _made(base: Additive, constraint: Constraint, law: str, costs: npt.NDArray[np.float64] | None) -> Extended:
    """Make the mechanism again from what it says about itself."""
    system = equalities("extend()", base.query, constraint)
    form = choose(base.query, system, base.neighbours, law, costs)
    return Extended(base, law=law, costs=costs, constraint=constraint, system=system, form=form)


def equalities(name: str, query: Query, constraint: Any) -> System:
    """Write the constraint out; refuse anything but equalities."""
    if isinstance(constraint, (ExactNodes, ExactMargins)):
        raise Refused("exact figures become a constraint by invariant(): write invariant(exact_nodes(...))")
    if not isinstance(constraint, Constraint):
        raise Refused(f"constraint must be made by invariant() and the like, found {type(constraint).__name__}")
    if constraint.is_union or constraint.has_inequalities:
        raise Refused(f"{name} takes invariants and other equalities only: use given() or onto() for anything else")
    return constraint.system(query.n)


def _budget(law: str, epsilon: Any, delta: Any, rho: Any) -> tuple[Target | None, Fraction]:
    """Read the budget: the target, and μ² (Gaussian laws) or ε."""
    one_of("law", law, LAWS)
    if law not in GAUSSIAN:
        if delta is not None or rho is not None:
            raise Refused(f"law={law!r} promises pure epsilon: give epsilon alone")
        one_budget(epsilon=epsilon)
        return None, positive("epsilon", epsilon)
    if (delta is not None) != (epsilon is not None):
        raise Refused("delta goes with epsilon: give both, or rho alone")
    if one_budget(epsilon=epsilon, rho=rho) == "rho":
        return None, 2 * positive("rho", rho)
    target = Target(positive("epsilon", epsilon), probability("delta", delta))
    return target, Fraction(gaussian_mu(target.epsilon, target.delta)) ** 2
