"""Mechanisms made for exact figures: noise that lives on their null space (SDP Thm 12)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Number, Refused, one_of, positive, probability, rational, reals, shown
from holdfast.constraints import Constraint, System
from holdfast.evidence import Evidence
from holdfast.mechanism.base_mechanisms import gaussian, laplace
from holdfast.mechanism.checking import a_query, equalities
from holdfast.mechanism.mechanism import Mechanism
from holdfast.mechanism.noise_source import is_drawn, of_neighbours
from holdfast.mechanism.onto_moves import above_zero
from holdfast.noise import Gaussian, Independent, IntegerGaussian, Laplace
from holdfast.noise.spread import Spread
from holdfast.privacy import (
    Additive,
    Differences,
    Guarantee,
    Promise,
    Target,
    classical_sigma,
    for_records,
    gaussian_mu,
)
from holdfast.privacy.budget import one_budget
from holdfast.privacy.composition import for_all_changes
from holdfast.privacy.losses.conversion import rho_for
from holdfast.queries import Moves, Neighbours, Query
from holdfast.randomness import Stream
from holdfast.subspace import (
    GAUSSIAN,
    LAWS,
    LatticeGaussian,
    SubspaceLaw,
    choose,
    lattice_gaussian,
    lattice_promise,
    promise,
)
from holdfast.subspace.cube_spaces import CubeSpaces


@dataclass(frozen=True, eq=False)
class OnSubspace:
    """Noise on the null space N of what must hold.

    Law: q(x) + s·U, U the law `form` on N and s the scale of `base`. Guarantee: `promise`.
    """

    base: Additive
    law: str
    costs: npt.NDArray[np.float64] | None
    constraint: Constraint
    system: System
    form: SubspaceLaw
    depends_on_data: bool = False
    basis: npt.NDArray[np.float64] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        # The law is found again: what it was made of (functions, factorisations) cannot travel.
        return _made, (self.base, self.constraint, self.law, self.costs, None, self.basis)

    def __str__(self) -> str:
        return f"{self.form.name} noise on {self.base.query!r}, for {self.constraint}"

    def over(self, base: Additive) -> OnSubspace:
        return replace(self, base=base)

    @property
    def names(self) -> tuple[str, ...]:
        return (self.form.name,)

    @property
    def evidence(self) -> Evidence:
        """How good the law is: its total squared error at loss 1, the least possible one, and what was compared."""
        return self.form.evidence

    def promise(self, neighbours: Neighbours | None = None) -> Promise:
        """Every statement that holds.

        The law was made for the neighbours of `base`: for others a statement about all of them grows by group privacy.
        """
        if neighbours is None:
            return self._own
        best = next((each for each in self._own.statements if each.scope == "all" and not each.void), None)
        if best is None:
            return self._promised(of_neighbours(self.base, neighbours))
        return Promise((for_records(best, max(best.records, neighbours.records)),))

    def statement_for(self, differences: Differences, **words: Any) -> Guarantee:
        """The statement about all changes of so many records, for those among them that keep every exact figure.

        Where they do, the part of the output that a subspace statement leaves out is the same before and after.
        """
        if not isinstance(differences, Moves):
            raise Refused(
                "noise made for its constraint promises what its guarantees say, and nothing about other changes"
            )
        return for_all_changes(self._own.statements, differences.neighbours, **words)

    @property
    def scale(self) -> float:
        """What the law at scale 1 is multiplied by."""
        scale = self.base.law.scale_values[0]
        assert scale is not None
        return math.sqrt(scale) if self.form.kind == "gaussian" else float(scale)

    @cached_property
    def _own(self) -> Promise:
        return self._promised(self.base)

    def _promised(self, base: Additive) -> Promise:
        return promise(base, self.form, self.system)

    def spread(self) -> Spread | None:
        return self.form.spread().times(self.scale)

    def noise(self, truth: npt.NDArray[Any] | None, size: int, stream: Stream) -> npt.NDArray[Any]:
        del truth
        return self.form.draw(size, stream) * self.scale


@dataclass(frozen=True, eq=False)
class OnLattice(OnSubspace):
    """Whole Gaussian noise on the lattice of what must hold.

    Law: q(x) + U, P(u) ∝ e^{−uᵀΣ⁻¹u/2σ²} on the lattice, Σ that of `form` and σ² that of `base`. Guarantee: `promise`,
    about data that share all exact figures.
    """

    form: LatticeGaussian  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        # Another machine might round the form in another way: it travels as it is.
        return _made, (self.base, self.constraint, self.law, self.costs, self.form)

    @cached_property
    def drawn(self) -> LatticeGaussian:
        sigma2 = self.base.law.scale_values[0]
        assert sigma2 is not None
        return self.form.at(sigma2)

    @property
    def names(self) -> tuple[str, ...]:
        """What is drawn; refused where that takes too long."""
        self.drawn.refuse_slow()
        return (self.form.name,)

    def _promised(self, base: Additive) -> Promise:
        return lattice_promise(base, self.drawn, self.system)

    def spread(self) -> Spread | None:
        return self.drawn.spread()

    def noise(self, truth: npt.NDArray[Any] | None, size: int, stream: Stream) -> npt.NDArray[Any]:
        del truth
        return self.drawn.draw(size, stream)


def extend(
    query: Query,
    constraint: Constraint,
    *,
    law: str = "optimal",
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    neighbours: str | Neighbours = "add-remove",
    integer: bool = False,
    weights: npt.ArrayLike | None = None,
    basis: npt.ArrayLike | None = None,
    calibration: str | None = None,
) -> Mechanism:
    """Noise made for exact figures, by (epsilon, delta) or rho for Gaussian laws and by epsilon for the others.

    Args:
        query: what is asked.
        constraint: an invariant, alone or with structural equalities that the answers obey.
        law: "optimal" (least total squared error, or weighted by `weights`; THEORY H4), "gaussian" (SDP Cor 15),
            "correlated" (SDP Algorithm 3), "laplace" (SDP Cor 18) or "k-norm".
        epsilon: the budget, alone or with delta.
        delta: with epsilon, for Gaussian laws.
        rho: the budget, for Gaussian laws.
        neighbours: "add-remove", "replace-one" or a `Neighbours`.
        integer: whole noise.
        weights: one per output, of its squared error.
        basis: (n, dimension of N), the Q_N of SDP Cor 18 for law="laplace"; None tries several and takes the best.
        calibration: "classical" is the σ of SDP Lemma 13, with its true δ printed.

    Law:
        q(x) + U, U of mean 0 on the null space N of all equalities, and whole with `integer`.
    Guarantee:
        For all neighbours, about the part of the answer that the exact figures leave open (SDP Def 5, Thm 12). With
        `integer` about data that share all exact figures, with the number of records that change together: that first
        statement meets the budget, as does one for all neighbours where there is one (docs/theory/lattice-gaussian.md).

    Example:
        >>> import holdfast as hf
        >>> mechanism = hf.extend(hf.histogram(3), hf.invariant([[1, 1, 1]]), rho=0.5)
        >>> mechanism.guarantee.scope, mechanism.guarantee.rho
        ('subspace', 0.5)
    """
    system = equalities("extend()", a_query(query), constraint)
    relation = Neighbours.of(neighbours)
    if not isinstance(integer, (bool, np.bool_)):
        raise Refused(f"integer must be True or False, found {shown(integer)}")
    costs = None if weights is None else above_zero(weights, query.n)
    if costs is not None and law != "optimal":
        raise Refused(f"weights say what law='optimal' makes least, found law={law!r}")
    target, budget = _budget(law, epsilon, delta, rho, calibration)
    chosen = None if basis is None else _basis(basis, query.n, law, integer)
    if integer:
        if calibration is not None:
            raise Refused("calibration='classical' is for real noise: leave integer out, or calibration")
        asked = {"rho": rho, "epsilon": epsilon, "delta": delta}
        exact = {name: rational(name, value) for name, value in asked.items() if value is not None}
        return _whole(query, constraint, system, relation, law, costs, exact)
    form = choose(query, system, relation, law, costs, chosen)
    noise: Any = Gaussian(form.largest / budget) if form.kind == "gaussian" else Laplace(form.largest / budget)
    base = Additive(query, Independent((noise,), None, query.n), relation, target)
    return Mechanism(OnSubspace(base, law, costs, constraint, system, form, basis=chosen))


def _whole(
    query: Query,
    constraint: Constraint,
    system: System,
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
    if law == "k-norm" and not (query.identity and _one_total(system)):
        raise Refused(
            "whole k-norm noise is known for a histogram with an exact total, where it is conditioned Laplace noise: "
            "use law='laplace', or integer=False"
        )
    drawn = is_drawn(given.source)
    if law not in GAUSSIAN:
        if not drawn:
            raise Refused("no way is known to draw whole Laplace noise given these equalities: use integer=False")
        return _meeting(given, budget)
    spherical = law == "gaussian" or (law == "optimal" and costs is None and _alike(query, system))
    if spherical and drawn and "lattice" not in given.method:  # the same lattice law has a ρ of its own, in fractions
        return _meeting(given, budget)
    return _on_lattice(given.base, constraint, system, law, costs, budget)


def _rho(budget: dict[str, Fraction]) -> Fraction:
    """The ρ that is asked for, or that meets (ε, δ)."""
    if "rho" in budget:
        return positive("rho", budget["rho"])
    rho = Fraction(rho_for(budget["epsilon"], budget["delta"]))
    if rho == 0:
        raise Refused("epsilon and delta are too small to be met through rho: ask for less privacy")
    return rho


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
) -> Mechanism:
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
    result = Mechanism(OnLattice(scaled, law, costs, constraint, system, form))
    _ = result.method  # noise that cannot be drawn is refused here
    return result


def _one_total(system: System) -> bool:
    space = system.null_space()
    return space.rank == 1 and space.rows.nnz == space.n and bool((space.rows.data == space.rows.data[0]).all())


def _alike(query: Query, system: System) -> bool:
    """Whether exchanging cells leaves no direction of N apart: then every symmetric covariance on N is spherical."""
    if not query.identity:
        return False
    spaces = CubeSpaces.of(query, system)
    return _one_total(system) or (spaces is not None and len(spaces.free) == 1)


def _made(
    base: Additive,
    constraint: Constraint,
    law: str,
    costs: npt.NDArray[np.float64] | None,
    form: LatticeGaussian | None = None,
    basis: npt.NDArray[np.float64] | None = None,
) -> OnSubspace:
    """Make the noise again from what it says about itself, or with the form that it had."""
    system = equalities("extend()", base.query, constraint)
    if form is not None:
        return OnLattice(base, law, costs, constraint, system, form)
    found = choose(base.query, system, base.neighbours, law, costs, basis)
    return OnSubspace(base, law, costs, constraint, system, found, basis=basis)


def _basis(basis: Any, n: int, law: str, integer: bool) -> npt.NDArray[np.float64]:
    if law != "laplace" or integer:
        raise Refused(f"basis says how real Laplace noise lies on N: use law='laplace', found law={law!r}")
    found = reals("basis", basis)
    if found.ndim != 2 or found.shape[0] != n:
        raise Refused(f"basis must have {n} rows and a column for every dimension of N, found shape {found.shape}")
    return found


def _budget(
    law: str, epsilon: Any, delta: Any, rho: Any, calibration: str | None = None
) -> tuple[Target | None, Fraction]:
    """Read the budget: the target, and μ² (Gaussian laws) or ε."""
    one_of("law", law, LAWS)
    if calibration is not None:
        one_of("calibration", calibration, ["classical"])
        if law not in GAUSSIAN or epsilon is None or delta is None:
            raise Refused("calibration='classical' is a formula in epsilon and delta for Gaussian laws")
    if law not in GAUSSIAN:
        if delta is not None or rho is not None:
            raise Refused(f"law={law!r} promises pure epsilon: give epsilon alone")
        one_budget(epsilon=epsilon)
        return None, positive("epsilon", epsilon)
    if (delta is not None) != (epsilon is not None):
        raise Refused("delta goes with epsilon: give both, or rho alone")
    if one_budget(epsilon=epsilon, rho=rho) == "rho":
        return None, 2 * positive("rho", rho)
    target = Target(positive("epsilon", epsilon), probability("delta", delta), classical=calibration is not None)
    if calibration is not None:
        return target, 1 / Fraction(classical_sigma(1, target.epsilon, target.delta)) ** 2
    return target, Fraction(gaussian_mu(target.epsilon, target.delta)) ** 2
