"""Mechanisms made for exact figures: noise that lives on their null space (SDP Thm 12)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Refused, one_of, positive, probability, rational, reals, whole
from holdfast.constraints import Constraint, ExactMargins, ExactNodes, System
from holdfast.given.choose import NEAR
from holdfast.given.near.walk import walk
from holdfast.mechanism.mechanism import Mechanism, gaussian, laplace
from holdfast.noise import Gaussian, Independent, IntegerGaussian, Laplace
from holdfast.noise.spread import Spread
from holdfast.privacy import Additive, Guarantee, Promise, Target, for_records, gaussian_mu
from holdfast.privacy.budget import one_budget
from holdfast.privacy.composition import for_all_changes
from holdfast.privacy.losses.conversion import rho_for
from holdfast.queries import Moves, Neighbours, Query
from holdfast.randomness import Stream
from holdfast.subspace import (
    GAUSSIAN,
    LAWS,
    Evidence,
    LatticeGaussian,
    SubspaceLaw,
    choose,
    lattice_gaussian,
    lattice_promise,
    promise,
)
from holdfast.subspace.structure.cube_spaces import CubeSpaces

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

    def statement_for(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: the noise of `base` is not the noise that is drawn."""
        raise Refused("noise made for its constraint promises what its guarantees say, and nothing about other changes")

    def statement_about(self, moves: Moves, **words: Any) -> Guarantee:
        """The statement about all changes of so many records, for those among them that keep every exact figure.

        Where they do, the part of the output that a subspace statement leaves out is the same before and after.
        """
        return for_all_changes(self.guarantees, moves.neighbours, **words)

    @property
    def held(self) -> System | None:
        """What must hold in the output."""
        return self.system

    @property
    def asked(self) -> Constraint | None:
        """Everything that was asked of the output."""
        return self.constraint

    @property
    def method(self) -> str:
        """What is drawn."""
        return self.form.name

    @property
    def evidence(self) -> Evidence:
        """How good the law is: its total squared error at loss 1, the least possible one, and what was compared."""
        return self.form.evidence

    def _promised(self, base: Additive) -> Promise:
        return promise(base, self.form, self.system)

    def about(self, records: Any) -> Guarantee | None:
        """The statement about changes of at least so many records together; None where none holds.

        The law was made for the neighbours of `base`: a statement about all of them grows by group privacy.
        """
        best = next((each for each in self.guarantees if each.scope == "all" and not each.void), None)
        if best is None:
            return super().about(records)
        try:
            return for_records(best, max(best.records, whole("records", records, at_least=1)))
        except Refused:
            return None

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


@dataclass(frozen=True, eq=False, repr=False)
class WholeExtended(Extended):
    """A query's answer plus whole Gaussian noise on the lattice of what must hold. Made by `extend(integer=True)`.

    Law: q(x) + U, P(u) ∝ e^{−uᵀΣ⁻¹u/2σ²} on the lattice, Σ that of `form` and σ² that of `base`. Guarantee:
    `guarantees`, about data that share all exact figures.
    """

    form: LatticeGaussian = field(kw_only=True)  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        # Another machine might round the form in another way: it travels as it is.
        return _made_whole, (self.base, self.constraint, self.law, self.costs, self.form)

    @cached_property
    def _drawn(self) -> LatticeGaussian:
        sigma2 = self.base.law.scale_values[0]
        assert sigma2 is not None
        return self.form.at(sigma2)

    @property
    def method(self) -> str:
        """What is drawn; refused where that takes too long."""
        self._drawn.refuse_slow()
        return self.form.name

    def _promised(self, base: Additive) -> Promise:
        return lattice_promise(base, self._drawn, self.system)

    @cached_property
    def _spread(self) -> Spread | None:
        return self._drawn.spread()

    def _measured_draw(self, size: int, stream: Stream) -> npt.NDArray[Any]:
        return self._drawn.draw(size, stream)

    def _check(self, values: npt.NDArray[Any], truth: npt.NDArray[Any]) -> None:
        """Test on the values themselves, in whole numbers, that everything asked for holds."""
        if not self.system.null_space().contains(values - truth):
            raise RuntimeError("nothing is released: the values drawn miss an equality; this is a fault of holdfast")


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
    Law: q(x) + U, U of mean 0 on the null space N of all equalities, and whole with `integer`.
    Guarantee: for all neighbours, about the part of the answer that the exact figures leave open (SDP Def 5, Thm 12).
    With `integer` about data that share all exact figures, with the number of records that change together: that first
    statement meets the budget, as does one for all neighbours where there is one (docs/theory/lattice-gaussian.md).
    """
    if not isinstance(query, Query):
        raise Refused(f"a query is expected, made by counts(), histogram() and the like; found {type(query).__name__}")
    system = equalities("extend()", query, constraint)
    relation = Neighbours.of(neighbours)
    if not isinstance(integer, (bool, np.bool_)):
        raise Refused(f"integer must be True or False, found {integer!r}")
    costs = None if weights is None else reals("weights", weights, (query.n,))
    if costs is not None and (costs <= 0).any():
        raise Refused(f"weights must be above 0, but the entry at position {np.flatnonzero(costs <= 0)[0]} is not")
    if costs is not None and law != "optimal":
        raise Refused(f"weights say what law='optimal' makes least, found law={law!r}")
    target, budget = _budget(law, epsilon, delta, rho)
    if integer:
        asked = {"rho": rho, "epsilon": epsilon, "delta": delta}
        exact = {name: rational(name, value) for name, value in asked.items() if value is not None}
        return _whole(query, constraint, relation, law, costs, exact)
    form = choose(query, system, relation, law, costs)
    noise: Any = Gaussian(form.largest / budget) if form.kind == "gaussian" else Laplace(form.largest / budget)
    base = Additive(query, Independent((noise,), None, query.n), relation, target)
    return Extended(base, law=law, costs=costs, constraint=constraint, system=system, form=form)


def _whole(
    query: Query,
    constraint: Constraint,
    relation: Neighbours,
    law: str,
    costs: npt.NDArray[np.float64] | None,
    budget: dict[str, Fraction],
) -> Mechanism:
    """Whole noise: independent noise given the equalities where that is the law, otherwise a Gaussian on a lattice."""
    if law in GAUSSIAN:
        noise = gaussian(query, rho=_rho(budget), neighbours=relation)
    else:
        noise = laplace(query, epsilon=budget["epsilon"], neighbours=relation)
    given = noise.given(constraint)
    system = equalities("extend()", query, constraint)
    if law == "k-norm" and not (query.identity and _one_total(system)):
        raise Refused(
            "whole k-norm noise is known for a histogram with an exact total, where it is conditioned Laplace noise: "
            "use law='laplace', or integer=False"
        )
    if law not in GAUSSIAN:
        if not _is_near(given):
            raise Refused(
                "no way is proved to draw whole Laplace noise given these equalities: use laplace(...).given(...), "
                "whose walk is only measured, or integer=False"
            )
        return _meeting(given, budget)
    spherical = law == "gaussian" or (law == "optimal" and costs is None and _alike(query, system))
    if spherical and _is_exact(given):
        return _meeting(given, budget)
    try:
        return _on_lattice(given.base, constraint, system, law, costs, budget)
    except Refused:
        if spherical and "rho" not in budget and _is_near(given):  # draws that only come near a law promise no rho
            return _meeting(given, budget)
        raise


def _rho(budget: dict[str, Fraction]) -> Fraction:
    """The ρ that is asked for, or that meets (ε, δ)."""
    if "rho" in budget:
        return positive("rho", budget["rho"])
    rho = Fraction(rho_for(budget["epsilon"], budget["delta"]))
    if rho == 0:
        raise Refused("epsilon and delta are too small to be met through rho: ask for less privacy")
    return rho


def _is_exact(given: Mechanism) -> bool:
    """Whether the conditional law itself is drawn."""
    return given._way_is_known and not any(share.way in NEAR for share in given._plan.shares)


def _is_near(given: Mechanism) -> bool:
    """Whether the conditional law is drawn, or a law that is proved to be near it; walks are only measured."""
    if not given._way_is_known or any(share.way is walk for share in given._plan.shares):
        return False
    return all(each.proved for each in given._plan.evidence)


def _meeting(given: Mechanism, budget: dict[str, Fraction]) -> Mechanism:
    """Rescale the noise so that the first statement of every scope meets the budget."""
    scopes = dict.fromkeys(each.scope for each in given.guarantees if not each.void) or [None]
    found = [given.calibrated(**budget, scope=scope) for scope in scopes]
    return max(found, key=lambda each: each.base.law.scale_values[0] or 0)


def _on_lattice(
    base: Additive,
    constraint: Constraint,
    system: System,
    law: str,
    costs: npt.NDArray[np.float64] | None,
    budget: dict[str, Fraction],
) -> WholeExtended:
    """Gaussian noise on the lattice of what the equalities leave open, by the ρ that meets the budget."""
    target = Target(budget["epsilon"], budget["delta"]) if "delta" in budget else None
    unit = Additive(
        base.query, Independent((IntegerGaussian(Fraction(1)),), None, base.query.n), base.neighbours, target
    )
    form = lattice_gaussian(unit, system, law, costs)
    promised = lattice_promise(unit, form, system)
    if promised.refusal:
        raise Refused(promised.refusal)
    first = promised.statements[0].rho
    assert first is not None
    scaled = replace(unit, law=Independent((IntegerGaussian(Fraction(first) / _rho(budget)),), None, base.query.n))
    result = WholeExtended(scaled, law=law, costs=costs, constraint=constraint, system=system, form=form)
    _ = result.method  # noise that cannot be drawn is refused here
    return result


def _one_total(system: System) -> bool:
    """Whether the only equality is the sum of all outputs."""
    space = system.null_space()
    return space.rank == 1 and space.rows.nnz == space.n and bool((space.rows.data == space.rows.data[0]).all())


def _alike(query: Query, system: System) -> bool:
    """Whether exchanging cells leaves no direction of N apart: then every symmetric covariance on N is spherical."""
    if not query.identity:
        return False
    spaces = CubeSpaces.of(query, system)
    return _one_total(system) or (spaces is not None and len(spaces.free) == 1)


def _made_whole(
    base: Additive, constraint: Constraint, law: str, costs: npt.NDArray[np.float64] | None, form: LatticeGaussian
) -> WholeExtended:
    """Make the mechanism again with the form that it had."""
    system = equalities("extend()", base.query, constraint)
    return WholeExtended(base, law=law, costs=costs, constraint=constraint, system=system, form=form)


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
