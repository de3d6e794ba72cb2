"""Laws of noise on a null space N: what every one of them offers, at scale 1, and promises."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from scipy import special

from holdfast.arrays import Floats
from holdfast.constraints import System
from holdfast.evidence import Evidence
from holdfast.noise import Gaussian, Independent
from holdfast.noise.error_model import ErrorModel
from holdfast.noise.spread import Spread
from holdfast.privacy import Additive, AllDifferences, Differences, Guarantee, Promise
from holdfast.privacy.invariants import NO_MOVE, possible, sharing, subspace_words
from holdfast.queries import Moves
from holdfast.randomness import Stream

#: What is computed in doubles is trusted to this relative accuracy, far above what backward stable steps deliver.
SLACK = Fraction(1, 10**9)


def shown(error: float, lower_bound: float = -math.inf, notes: tuple[str, ...] = ()) -> Evidence:
    """How good a law is: its total squared error at scale 1 with its loss scaled to 1 (μ = 1, or ε = 1).

    `lower_bound` is what no Gaussian noise on N can be below (THEORY H4), where it was computed.
    """
    return Evidence(objective=error, gap=error - lower_bound, notes=notes)


class SubspaceLaw(Protocol):
    """Noise U on N at scale 1.

    `kind` "gaussian": U ~ N(0, Σ), and `largest` is the greatest dᵀΣ⁺d over 𝒟_N; "laplace": U = F z with loss
    ‖·‖ a norm on N, and `largest` is the greatest ‖d‖ over 𝒟_N. `largest` is never too small; `exact` says that it is
    attained. `sharing(moves)` bounds the same over moves in N.
    """

    @property
    def kind(self) -> str:
        """The kind of noise whose scale is counted: "gaussian" (σ) or "laplace" (λ)."""

    @property
    def name(self) -> str:
        """What the noise is called."""

    @property
    def largest(self) -> Fraction:
        """The greatest loss (or its square) at scale 1."""

    @property
    def exact(self) -> bool:
        """Whether `largest` is attained."""

    @property
    def evidence(self) -> Evidence:
        """How good the law is."""

    def draw(self, size: int, stream: Stream) -> Floats:
        """Draw the noise, (size, n)."""

    def spread(self) -> Spread:
        """The law of the errors."""

    def sharing(self, moves: Moves) -> Fraction:
        """Bound the loss (or its square for Gaussian noise) over moves that keep every equality."""


def normal_spread(variances: Floats, variance_of: Callable[[Floats], float]) -> Spread:
    errors = np.sqrt(np.maximum(variances, 0.0))
    model = ErrorModel("normal", Independent((Gaussian(Fraction(1)),), None, len(errors)))
    return Spread(errors, variance_of, lambda p: errors * special.ndtri(p), model=model)


def times_one_record(largest: Fraction, power: int, records: int, adds: bool, moves: Moves) -> Fraction:
    """Bound a norm (or its square, power 2) over moves by the triangle inequality.

    `largest` is for `records` records of the relation in which the law was made (`adds`: add-remove). A replaced record
    is one that goes and one that comes.
    """
    steps = moves.records * (2 if adds and not moves.neighbours.adds else 1)
    return largest * Fraction(steps, records) ** power


BECAUSE = {
    "gaussian": "Gaussian noise on N: μ is the largest ‖Σ^(−1/2) Π_N d‖ (SDP Thm 12; Balle–Wang 2018)",
    "laplace": "noise on N whose log density is a norm: ε is the largest ‖Π_N d‖ (SDP Thm 12, Cor 18; THEORY §6)",
}


def promise(base: Additive, law: SubspaceLaw, system: System) -> Promise:
    """Return every statement that holds for q(x) + U, U on N, whatever law is drawn (THEORY §2, §6; SDP Thm 12).

    `base` carries the query, the scale and the target. All neighbours, about what the exact figures leave open (scope
    "subspace"); all of it (scope "all") where no neighbour changes an exact figure; and data that share all exact
    figures.
    """

    def state(differences: Differences, **words: Any) -> Guarantee:
        if isinstance(differences, Moves):
            loss, words["exact"] = law.sharing(differences), False
        else:
            assert isinstance(differences, AllDifferences)
            loss, words["exact"] = law.largest, law.exact and words.get("exact", True)
        return _stated(base, law, loss, neighbours=differences.neighbours, **words)

    if not system.invariants.count:
        found = possible(base, system)
        if found is None:
            return Promise.of([], NO_MOVE)
        differences, words = found
        return Promise.of([state(differences, **words)])
    statements = sharing(base, system, state)
    if not any(statement.scope == "all" for statement in statements):
        words = subspace_words(system, base.query) | {"neighbours": base.neighbours}
        statements.append(_stated(base, law, law.largest, **words))
    return Promise.of(statements, NO_MOVE)


def _stated(base: Additive, law: SubspaceLaw, loss: Fraction, **words: Any) -> Guarantee:
    """Turn the loss at scale 1 into a statement at the base's scale (σ² or λ)."""
    scale = base.law.scale_values[0]
    assert scale is not None
    if law.kind == "gaussian":
        return base.continuous_gaussian(loss / scale, because=BECAUSE["gaussian"], **words)
    return base.pure(loss / scale, because=BECAUSE["laplace"], **words)
