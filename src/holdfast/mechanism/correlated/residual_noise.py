"""Gaussian noise on the residuals of a query: every set of axes at every level has a precision of its own.

Law: q(x) + U with U = W·V, V Gaussian on the cells with the precision X = Σ w_{ℓ,S} Σ_v (1_v 1_vᵀ) ⊗ P_S. So U adds up
by itself and is its own best linear estimate. Whole noise is U rounded figure by figure: answers are whole, so
q(x) + round(U) = round(q(x) + U), a function of the real release (docs/theory/areas-and-margins.md, section 7).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from holdfast.arguments import Refused, positive, probability, rational, shown
from holdfast.arrays import Floats
from holdfast.constraints import Constraint, System, consistent
from holdfast.evidence import NOTHING_KNOWN, Evidence
from holdfast.mechanism.noise_source import RESIDUALS
from holdfast.noise import Gaussian, Independent, IntegerGaussian
from holdfast.noise.spread import Spread
from holdfast.privacy import Additive, Differences, Guarantee, Promise, Target, gaussian_mu
from holdfast.privacy.budget import one_budget
from holdfast.privacy.composition import for_all_changes
from holdfast.queries import Moves, Neighbours, Query
from holdfast.randomness import Stream
from holdfast.trees.normal import grains
from holdfast.trees.normal.direct import Direct, Residual, costs, residuals_of
from holdfast.trees.normal.split import in_areas, residual_names

BECAUSE = (
    "Gaussian noise on residuals: μ is the largest ‖X^(1/2)d‖, X the precision of the cells "
    "(docs/theory/areas-and-margins.md, Proposition 8; Balle–Wang 2018)"
)
ROUNDED = (
    "proved in real arithmetic: the noise is made of doubles and rounded to whole numbers before it meets the data, so "
    "that no low bits of doubles are released"
)
#: The least part of what is measured that a margin counts for where tables are moved.
LEAST = 1e-3
#: The largest error of a figure, against the noise that hides a neighbour and, where it is whole, against 1. A larger
#: one would swallow the small noise of other residuals, since doubles have 53 bits.
LARGEST = 2.0**26
#: What rounding to whole numbers adds to a variance.
BY_ROUNDING = Fraction(1, 12)
#: The largest precision of a residual: that of the smallest variance that noise has elsewhere.
MOST_PRECISE = 2**400


@dataclass(frozen=True, eq=False)
class OnResiduals:
    """Gaussian noise with a precision for every residual, perhaps rounded. Guarantee: `promise`.

    `base` says whom it protects, and by which variances tables are weighed where they are moved; its own law is not
    drawn. `precisions` are those at the scale of `base`.
    """

    base: Additive
    precisions: Mapping[Residual, Fraction]
    depends_on_data: bool = False
    law: str = RESIDUALS
    evidence: Evidence = NOTHING_KNOWN
    names: tuple[str, ...] = (RESIDUALS,)

    @classmethod
    def of(
        cls,
        query: Query,
        neighbours: Neighbours,
        squares: Mapping[Residual, Fraction],
        *,
        integer: bool,
        target: Target | None = None,
    ) -> OnResiduals:
        """Noise of which a record that comes or goes sees so much in each residual; refused where it has no draws."""
        precisions = cls.precisions_of(query, squares)
        drawable(query, precisions, neighbours, whole=integer)
        return cls(Additive(query, _weighing(query, precisions, integer), neighbours, target), precisions)

    @staticmethod
    def precisions_of(query: Query, squares: Mapping[Residual, Fraction]) -> dict[Residual, Fraction]:
        """The precisions of which a record that comes or goes sees so much."""
        table = in_areas(query).table
        return {key: each * table.cells / grains.count_of(table, key[1]) for key, each in squares.items()}

    def __getstate__(self) -> dict[str, Any]:
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def __str__(self) -> str:
        return f"{'whole' if self.whole else 'continuous'} Gaussian noise on the residuals of {self.base.query!r}"

    @property
    def whole(self) -> bool:
        return self.base.law.integer

    @property
    def constraint(self) -> Constraint | None:
        """Real noise adds up; rounded noise does not."""
        return None if self.whole else consistent(self.base.query)

    @cached_property
    def system(self) -> System | None:
        constraint = self.constraint
        return None if constraint is None else constraint.system(self.base.query.n)

    @cached_property
    def _residuals(self) -> Direct:
        return drawable(self.base.query, self.precisions, self.base.neighbours, whole=self.whole)

    @property
    def squares(self) -> dict[Residual, Fraction]:
        """What a record that comes or goes sees of each residual: the square of its change over the variance."""
        asked = in_areas(self.base.query)
        return {
            (depth, axes): precision * grains.count_of(asked.table, axes) / asked.table.cells
            for (depth, axes), precision in self.precisions.items()
        }

    def over(self, base: Additive) -> OnResiduals:
        before, after = self.base.law.scale_values[0], base.law.scale_values[0]
        assert before is not None
        assert after is not None
        factor = before / after
        return replace(self, base=base, precisions={key: value * factor for key, value in self.precisions.items()})

    def noise(self, truth: npt.NDArray[Any] | None, size: int, stream: Stream) -> npt.NDArray[Any]:
        del truth
        drawn = np.empty((size, self.base.query.n))
        for row in range(size):
            drawn[row] = self._residuals.noise(stream.normals(self._residuals.normals_needed))
        return np.rint(drawn).astype(np.int64) if self.whole else drawn

    def spread(self) -> Spread:
        """Normal errors, or those of rounded normal noise: a sum of rounded figures is off by half its weights more."""
        errors: Floats = np.sqrt(self._residuals.variances())
        if not self.whole:
            return Spread(errors, self._residuals.variance_of, lambda p: errors * special.ndtri(p))

        def variance_of(weights: Floats) -> float:
            return (math.sqrt(self._residuals.variance_of(weights)) + float(np.abs(weights).sum()) / 2) ** 2

        distinct, which = np.unique(errors, return_inverse=True)
        rounded = np.array([_rounded_deviation(float(each)) for each in distinct])[which]
        return Spread(rounded, variance_of, lambda p: np.rint(errors * special.ndtri(p)))

    def promise(self, neighbours: Neighbours | None = None) -> Promise:
        return Promise((self._statement(neighbours or self.base.neighbours),))

    def _statement(self, neighbours: Neighbours, **words: Any) -> Guarantee:
        square = largest(self.base.query, self.precisions, neighbours)
        caveats = (*words.pop("caveats", ()), ROUNDED) if self.whole else tuple(words.pop("caveats", ()))
        settings = {"neighbours": neighbours, "because": BECAUSE, "exact": not self.whole} | words
        return self.base.continuous_gaussian(square, caveats=caveats, **settings)

    def statement_for(self, differences: Differences, **words: Any) -> Guarantee:
        """The statement about all changes of so many records, for some of them."""
        if isinstance(differences, Moves):
            return for_all_changes((self._statement(differences.neighbours),), differences.neighbours, **words)
        return self._statement(differences.neighbours, **words)


def largest(query: Query, precisions: Mapping[Residual, Fraction], neighbours: Neighbours) -> Fraction:
    """Return μ²: the largest dᵀXd over all neighbours."""
    asked = in_areas(query)
    measured = [precisions.get(each, Fraction(0)) for each in residuals_of(asked)]
    return max(
        sum((c * w for c, w in zip(row, measured, strict=True)), Fraction(0)) for row in costs(asked, neighbours)
    )


def drawable(query: Query, precisions: Mapping[Residual, Fraction], neighbours: Neighbours, *, whole: bool) -> Direct:
    """Return what draws the noise; refused where some figure is untold, or so noisy that doubles lose other noise."""
    if max(precisions.values(), default=0) > MOST_PRECISE:
        raise Refused(
            "the noise of some residual would be too small to be drawn: spend less, or give it a smaller share"
        )
    found = Direct.of(in_areas(query), {key: float(value) for key, value in precisions.items()})
    error = math.sqrt(float(found.variances().max()))
    finest = math.sqrt(largest(query, precisions, neighbours))
    if not error * max(finest, float(whole)) <= LARGEST:  # also where it is not a number
        raise Refused(
            f"the noise of some figure would have the standard error {error:.2g}, beside which doubles lose the noise "
            "of others: give its residuals larger shares, or spend more"
        )
    return found


def on_residuals(
    query: Query, relation: Neighbours, integer: bool, budget: Mapping[str, Any], shares: Mapping[Any, Any] | None
) -> OnResiduals:
    """Noise on residuals by (epsilon, delta) or rho."""
    if integer and (not query.integer or query.grid is not None):
        raise Refused("whole noise on residuals needs whole answers without a grid: use integer=False")
    seen = _relative(query, shares)
    square = largest(query, OnResiduals.precisions_of(query, seen), relation)
    if square == 0:
        raise Refused("no neighbouring data change a measured residual: measure others too")
    delta = budget.get("delta")
    target = None
    if one_budget(epsilon=budget.get("epsilon"), rho=budget.get("rho")) == "rho":
        if delta is not None:
            raise Refused("delta goes with epsilon: give both, or rho alone")
        wanted = 2 * positive("rho", budget["rho"])
    else:
        if delta is None:
            raise Refused("Gaussian noise needs a delta beside epsilon, or rho")
        target = Target(positive("epsilon", budget["epsilon"]), probability("delta", delta))
        wanted = Fraction(gaussian_mu(target.epsilon, target.delta)) ** 2
    squares = {key: value * wanted / square for key, value in seen.items()}
    return OnResiduals.of(query, relation, squares, integer=integer, target=target)


def _relative(query: Query, shares: Mapping[Any, Any] | None) -> dict[Residual, Fraction]:
    """Shares by residuals: each is what a record that comes or goes sees of one, up to a common factor."""
    asked = in_areas(query)
    names, listed = residual_names(query), residuals_of(asked)
    if shares is None:
        found = dict.fromkeys(names, Fraction(1))
    elif not isinstance(shares, Mapping):
        raise Refused(f"shares must map residuals to numbers, found {type(shares).__name__}")
    else:
        for key in shares:
            if key not in names:
                raise Refused(
                    f"shares must name residuals of the query, such as {names[-1]!r} (best_shares(…, residuals=True) "
                    f"lists them), found {shown(key)}"
                )
        found = {key: rational("a share", value) for key, value in shares.items()}
        if min(found.values(), default=Fraction(0)) < 0:
            raise Refused(f"a share must not be negative, found {float(min(found.values()))!r}")
        if not any(found.values()):
            raise Refused("shares must give at least one residual more than 0")
    return {residual: found.get(name, Fraction(0)) for name, residual in zip(names, listed, strict=True)}


def _weighing(query: Query, precisions: Mapping[Residual, Fraction], integer: bool) -> Independent:
    """Independent noise on the outputs that tells about as much: by it tables are weighed where they are moved."""
    asked = in_areas(query)
    found = np.zeros(len(asked.groups))
    for depth in range(len(asked.keep)):
        mine = [g for g, (d, _) in enumerate(asked.groups) if d == depth]
        sets = [axes for d, axes in precisions if d == depth]
        if mine:
            holds = np.array([[asked.table.tells(asked.groups[g][1], axes) for g in mine] for axes in sets], float)
            holds *= asked.table.cells / np.array([asked.sizes[g] for g in mine])
            wanted = np.array([float(precisions[depth, axes]) for axes in sets])
            if wanted.any():  # what no neighbour changes is known as well as one likes: it would drown the others
                wanted = np.minimum(wanted, np.median(wanted[wanted > 0]) / LEAST)
            root = np.sqrt([grains.count_of(asked.table, axes) for axes in sets])
            found[mine] = optimize.nnls(holds * root[:, None], wanted * root)[0]
    found = np.maximum(found, LEAST * found.max())
    law: Any = IntegerGaussian if integer else Gaussian
    laws = tuple(law(Fraction(1 / each) + (BY_ROUNDING if integer else 0)) for each in found.tolist())
    return Independent(laws, np.asarray(asked.level_of, np.int32), query.n)


def _rounded_deviation(sigma: float) -> float:
    """The standard deviation of normal noise that is rounded to whole numbers."""
    if sigma > 5:
        return math.sqrt(sigma**2 + float(BY_ROUNDING))  # but for e^(−2π²σ²)
    steps = np.arange(1, math.ceil(40 * sigma) + 2)
    # Σ j²·P(round = j) = Σ (2j − 1)·P(round ≥ j), on both sides.
    return math.sqrt(2 * float(((2 * steps - 1) * special.ndtr(-(steps - 0.5) / sigma)).sum())) if sigma else 0.0
