"""What noise on a null space promises (THEORY §2, §6; SDP Thm 12): computed once, whatever law is drawn."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from holdfast.constraints import System
from holdfast.privacy import Additive, AllDifferences, Differences, Guarantee, Promise
from holdfast.privacy.invariants import NO_MOVE, possible, sharing, subspace_words
from holdfast.queries import Moves
from holdfast.subspace.law import SubspaceLaw

BECAUSE = {
    "gaussian": "Gaussian noise on N: μ is the largest ‖Σ^(−1/2) Π_N d‖ (SDP Thm 12; Balle–Wang 2018)",
    "laplace": "noise on N whose log density is a norm: ε is the largest ‖Π_N d‖ (SDP Thm 12, Cor 18; THEORY §6)",
}


def promise(base: Additive, law: SubspaceLaw, system: System) -> Promise:
    """Return every statement that holds for q(x) + U, U on N; `base` carries the query, the scale and the target.

    All neighbours, about what the exact figures leave open (scope "subspace"); all of it (scope "all") where no
    neighbour changes an exact figure; and data that share all exact figures.
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
