"""The answer plus independent noise: the mechanism every other one is made from, and what it promises."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Refused, shown
from holdfast.noise import Independent
from holdfast.privacy.guarantee import Guarantee, outward
from holdfast.privacy.losses.conversion import rho_to_epsilon
from holdfast.privacy.losses.gaussian import gaussian_delta, gaussian_epsilon
from holdfast.privacy.losses.integer_gaussian import integer_gaussian_delta, integer_gaussian_epsilon, losses_of
from holdfast.queries import Bound, Neighbours, Query

#: Printed with every continuous law (THEORY §1; Mironov 2012).
REAL_ARITHMETIC = (
    "the proof is about real numbers: a computer rounds them, and their last digits can leak. Whole noise does not "
    "have this fault"
)


#: Cells, times records, up to which all differences of a general query are listed for the loss law, though no δ was
#: asked for.
LISTED_CELLS = 64


@runtime_checkable
class Differences(Protocol):
    """Some of the ways in which neighbouring data change the answer."""

    @property
    def neighbours(self) -> Neighbours:
        """The relation, and the number of records that change together."""

    def bound(self, values: Sequence[Fraction], which: npt.NDArray[np.int32] | None, p: int) -> Bound:
        """Largest Σ values[which[i]]·|d_i|^p over these differences, and whether it is attained."""

    def kinds(self, which: npt.NDArray[np.int32] | None) -> list[Counter[tuple[int, int]]]:
        """The maximal multisets of (|d_i|, which[i]) over these differences."""


@dataclass(frozen=True, eq=False)
class AllDifferences:
    """The whole difference set of a query."""

    query: Query
    neighbours: Neighbours

    def bound(self, values: Sequence[Fraction], which: npt.NDArray[np.int32] | None, p: int) -> Bound:
        """Largest Σ values[which[i]]·|d_i|^p over the difference set, and whether it is attained."""
        return self.query.bound(values, which, p, self.neighbours)

    def kinds(self, which: npt.NDArray[np.int32] | None) -> list[Counter[tuple[int, int]]]:
        """The maximal multisets of (|d_i|, which[i]) over the difference set."""
        return self.query.kinds(which, self.neighbours)


@dataclass(frozen=True)
class Target:
    """The (ε, δ) that was asked for; Gaussian statements are also given at this δ."""

    epsilon: Fraction
    delta: Fraction
    classical: bool = False


@dataclass(frozen=True, eq=False)
class Additive:
    """A query's answer plus independent noise.

    The law counts in steps of the query's grid (`unit`; 1 without a grid), as the query's columns do.
    Law: q(x) + unit·U. Guarantee: `statement` (THEORY §1).
    """

    query: Query
    law: Independent
    neighbours: Neighbours
    target: Target | None = None

    @property
    def unit(self) -> Fraction:
        return Fraction(1) if self.query.grid is None else self.query.grid

    @property
    def inverse_scales(self) -> tuple[Fraction, ...]:
        """1/λ or 1/σ² per distinct law, in steps; 0 where an output is not measured."""
        return tuple(Fraction(0) if value is None else 1 / value for value in self.law.scale_values)

    @property
    def caveats(self) -> tuple[str, ...]:
        """What a reader must know about this law of noise."""
        about = () if self.query.record is None else (self.query.record,)
        return about if self.law.integer else (*about, REAL_ARITHMETIC)

    def everything(self) -> AllDifferences:
        """The whole difference set under this mechanism's neighbours."""
        return AllDifferences(self.query, self.neighbours)

    def loss(self, differences: Differences) -> Bound:
        """Largest Σ|d_i|/λ_i (Laplace) or Σ d_i²/σ_i² (Gaussian) over the differences, and whether it is attained."""
        if not isinstance(differences, Differences):
            raise Refused(f"differences must be changes of the answer, found {shown(differences)}")
        power = 1 if self.law.kind == "laplace" else 2
        return differences.bound(self.inverse_scales, self.law.which, power)

    def rescaled(self, factor: Fraction) -> Additive:
        return replace(self, law=self.law.times(factor))

    def factor_for(self, loss: Fraction) -> Fraction:
        """A factor on all scales at which the noise by itself has about this loss (exactly, for Laplace noise)."""
        ratio = self.loss(self.everything()).value / loss
        if not ratio:
            return Fraction(1)
        return ratio if self.law.kind == "laplace" else Fraction(math.sqrt(ratio))

    def statement(self, differences: Differences | None = None, **words: Any) -> Guarantee:
        """What independent noise promises for these differences (THEORY §1).

        Guarantee: Laplace: pure ε = max Σ|d_i|/λ_i, exact (TV Prop 7, SDP Lemma 16). Continuous Gaussian:
        μ-GDP with μ = max‖Σ^{−1/2}d‖ (Balle–Wang 2018). Integer Gaussian: ρ = μ²/2 (Canonne–Kamath–Steinke
        2020), and δ(ε) by its own loss law.
        """
        chosen = self.everything() if differences is None else differences
        loss = self.loss(chosen)
        settings: dict[str, Any] = {"neighbours": chosen.neighbours, "exact": loss.exact} | words
        if self.law.kind == "laplace":
            settings.setdefault(
                "because", "independent Laplace noise: ε is the largest Σ|d|/λ (TV Prop 7, SDP Lemma 16)"
            )
            return self.pure(loss.value, **settings)
        if not self.law.integer:
            settings.setdefault("because", "independent Gaussian noise: μ is the largest ‖Σ^(−1/2)d‖ (Balle–Wang 2018)")
            return self.continuous_gaussian(loss.value, **settings)
        settings.setdefault(
            "because",
            "independent integer Gaussian noise: ρ = μ²/2 (Canonne–Kamath–Steinke 2020), δ(ε) by its loss law",
        )
        return self.integer_gaussian(loss.value, chosen, **settings)

    def pure(self, epsilon: Any, **words: Any) -> Guarantee:
        """A pure ε statement, rounded outwards."""
        words["caveats"] = self.caveats + tuple(words.get("caveats", ()))
        return Guarantee(epsilon=outward(epsilon), delta=0.0, **words)

    def continuous_gaussian(self, mu_squared: Fraction, **words: Any) -> Guarantee:
        """A statement of Gaussian privacy, with its ρ and, where a δ was asked for, its ε."""
        words["caveats"] = self.caveats + tuple(words.get("caveats", ()))
        mu = outward_root(mu_squared)
        rho = outward(mu_squared / 2)
        return self._at_target(
            mu_squared,
            lambda delta: gaussian_epsilon(mu, delta),
            lambda epsilon: gaussian_delta(mu, epsilon),
            rho=rho,
            mu=mu,
            **words,
        )

    def integer_gaussian(self, mu_squared: Fraction, differences: Differences | None, **words: Any) -> Guarantee:
        """A statement of concentrated privacy; with `differences`, (ε, δ) comes from the loss law itself.

        Without them (conditioned laws, whose loss law is another one) (ε, δ) is converted from ρ.
        """
        words["caveats"] = self.caveats + tuple(words.get("caveats", ()))
        rho = outward(mu_squared / 2)
        kinds = None if differences is None else self._kinds_at_hand(differences)
        if kinds is not None:
            words["losses"] = losses_of(kinds) if mu_squared else ()
            return self._at_target(
                mu_squared,
                lambda delta: max(integer_gaussian_epsilon(kind, delta) for kind in kinds),
                lambda epsilon: max(integer_gaussian_delta(kind, epsilon) for kind in kinds),
                rho=rho,
                **words,
            )
        orders = words.get("orders", "all")
        if self.target is not None:
            words["exact"] = False  # ρ is attained, the (ε, δ) converted from it is not
        return self._at_target(mu_squared, lambda delta: rho_to_epsilon(rho, delta, orders), None, rho=rho, **words)

    def _kinds_at_hand(self, differences: Differences) -> list[Counter[tuple[int, Fraction]]] | None:
        """The kinds of these differences; None where they are not known, or take long and no δ was asked for."""
        query = self.query
        if query.cells is None:
            return None
        records = differences.neighbours.records
        symmetric = (query.identity or query.levels is not None) and records <= 2
        if self.target is None and not symmetric and query.cells * records > LISTED_CELLS:
            return None
        try:
            return self.loss_kinds(differences)
        except Refused:
            return None

    def loss_kinds(self, differences: Differences | None = None) -> list[Counter[tuple[int, Fraction]]]:
        """The maximal multisets of (|d_i|, σ_i²) over the differences, unmeasured outputs left out."""
        kinds = (self.everything() if differences is None else differences).kinds(self.law.which)
        variances = self.law.scale_values
        measured: list[Counter[tuple[int, Fraction]]] = []
        for kind in kinds:
            counted: Counter[tuple[int, Fraction]] = Counter()
            for (size, group), count in kind.items():
                variance = variances[group]
                if variance is not None:
                    counted[size, variance] += count
            measured.append(counted)
        return [kind for kind in measured if kind]

    def _at_target(
        self,
        mu_squared: Fraction,
        epsilon_at: Callable[[float], float],
        delta_at: Callable[[float], float] | None,
        **words: Any,
    ) -> Guarantee:
        if self.target is None or mu_squared == 0:
            return Guarantee(epsilon=None if mu_squared else 0.0, delta=0.0, **words)
        asked, delta = outward(self.target.epsilon), _inward(self.target.delta)
        if self.target.classical and delta_at is not None:
            true_delta = delta_at(asked)
            note = f"the classical formula claims δ = {delta:.6g}; the δ printed here is the true one"
            words["caveats"] = (*words["caveats"], note)
            return Guarantee(epsilon=asked, delta=true_delta, **words)
        epsilon = epsilon_at(delta)
        # A base calibrated to (ε, δ) meets it up to the rounding of its scale: then the asked ε is printed.
        if asked * (1 - 1e-9) <= epsilon <= asked:
            epsilon = asked
        return Guarantee(epsilon=epsilon, delta=delta, **words)


def outward_root(square: Fraction) -> float:
    """The smallest double whose square is at least the given rational."""
    root = float(np.sqrt(float(square)))
    while Fraction(root) ** 2 < square:
        root = float(np.nextafter(root, np.inf))
    while root > 0 and Fraction(float(np.nextafter(root, 0.0))) ** 2 >= square:
        root = float(np.nextafter(root, 0.0))
    return root


def _inward(value: Fraction) -> float:
    """The largest double that is at most the value."""
    result = float(value)
    return float(np.nextafter(result, -np.inf)) if Fraction(result) > value else result
