"""What `onto` promises: computed once per problem, whatever way moves the values (THEORY §3)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from holdfast.arrays import Floats
from holdfast.onto.problem import Problem
from holdfast.privacy import Additive, Differences, Guarantee, Promise
from holdfast.privacy.invariants import NO_MOVE, possible, projected_loss, sharing, subspace_words

PASSES = "moving to the nearest allowed point is post-processing (TV Lemma 14)"


def promise(base: Additive, before: Promise, problem: Problem, *, new_invariants: bool) -> Promise:
    """Return every statement that holds after the move.

    `before` is what the mechanism promised before it; `new_invariants` says that the move asks for exact figures which
    were not asked for before.
    """
    if not new_invariants:
        if before.is_base:
            return _structural(base, problem)
        kept = [passed(statement) for statement in before.statements if statement.scope != "subspace"]
        return Promise.of(kept, before.refusal or "no statement is left after the move")
    if not before.is_base:
        return Promise.of([], "new exact figures after given() or onto() have no known guarantee: ask for all at once")
    return _invariants(base, problem)


def _structural(base: Additive, problem: Problem) -> Promise:
    """The base's statement for the differences that can occur at all."""
    found = possible(base, problem.system) if not problem.system.branches else (base.everything(), {})
    if found is None:
        return Promise.of([], NO_MOVE)
    differences, words = found
    return Promise.of([passed(base.statement(differences, **words))])


def passed(statement: Guarantee) -> Guarantee:
    """The statement after a move that reads nothing but what it is about."""
    return replace(statement, because=f"{statement.because}; {PASSES}", exact=False)


def _invariants(base: Additive, problem: Problem) -> Promise:
    def state(differences: Differences, **words: Any) -> Guarantee:
        because = "all that is published is computed from the noisy answers and the exact figures alone (THEORY §3)"
        return base.statement(differences, **(words | {"because": because, "exact": False}))

    statements = sharing(base, problem.system, state)
    linear = not problem.system.has_inequalities and not problem.integer and problem.norm == "l2"
    if linear and not any(statement.scope == "all" for statement in statements):
        statements += _subspace(base, problem)
    return Promise.of(statements, NO_MOVE)


def _subspace(base: Additive, problem: Problem) -> list[Guarantee]:
    """All neighbours, about the part of the output in N.

    Guarantee: the orthogonal projection keeps the base's (ε, δ) (SDP Thm 10). Gaussian noise, projected
    orthogonally or by its own variances, has μ = max‖Σ^{−1/2}Π_N d‖. Nothing is stated of other weights.
    """
    words = subspace_words(problem.system, base.query) | {"neighbours": base.neighbours}
    loss = projected_loss(base, problem.space)
    if problem.space.is_zero or loss == 0:
        return []  # nothing is left open: the statement would be about nothing
    gaussian, integer = base.law.kind == "gaussian", base.law.integer
    own_weights = np.allclose(problem.spreads, base.law.variances, rtol=1e-12, atol=0.0) if gaussian else False
    plain = problem.orthogonal and _equal(base.law.variances)
    if gaussian and not integer and (plain or own_weights) and loss is not None:
        because = "projected Gaussian noise: max ‖Σ^(−1/2) Π_N d‖ (SDP Thm 10, Cor 14; THEORY §3)"
        return [base.continuous_gaussian(loss, because=because, **words)]
    if problem.orthogonal:
        return [base.statement(because="orthogonal projection of the noise (SDP Thm 10, Cor 11)", **words)]
    return []


def _equal(values: Floats) -> bool:
    return bool((values == values[0]).all())
