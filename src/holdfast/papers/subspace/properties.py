"""SDP §2: Example 4, Propositions 7 and 9, Corollary 8, mixtures, and what exact figures pin together."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from holdfast.constraints import between, exact_margins, invariant
from holdfast.disclosure.pinned import pinned
from holdfast.mechanism import compose, extend, gaussian, laplace, mixture, within
from holdfast.papers.reproduction import Claim, Findings, Study
from holdfast.queries import histogram, margins

#: The rows of Example 4: the number of records with an odd value is exact.
ODD = np.array([[1, 0, 1, 0]])


def findings(study: Study) -> Findings:
    """Ask the library for each statement."""
    stream = study.stream()
    query, total = histogram(4), invariant(np.ones((1, 4), dtype=int))
    base = laplace(query, epsilon=1, neighbours="replace-one", integer=False)
    odd = base.onto(invariant(ODD), weights=None)
    scopes = {each.scope for each in odd.guarantees}
    shared = odd.simulate(np.array([1, 1, 0, 1]), 50, stream), odd.simulate(np.array([0, 1, 0, 2]), 50, stream)
    apart = bool((np.rint(shared[0] @ ODD[0]) == 1).all() and (np.rint(shared[1] @ ODD[0]) == 0).all())
    nested = _nested()
    both = compose([odd, base.onto(total, weights=None)])
    spent = [float(g.epsilon) for g in both.guarantees if g.epsilon is not None and math.isfinite(g.epsilon)]
    one, other = (
        extend(query, total, law=law, rho=0.5, neighbours="replace-one") for law in ("gaussian", "correlated")
    )
    mixed = mixture([one, other], [Fraction(1, 4), Fraction(3, 4)])
    alone, together = _pinned()
    found = _attributes(study)
    claims = (
        Claim(
            "Example 4: an exact figure leaves no (ε, δ) for all changes",
            apart and "all" not in scopes,
            "every release of (1, 2, 4) has an odd count of 1, of (4, 2, 4) of 0; the statements that are left are "
            "about "
            f"{', '.join(sorted(scopes))}",
        ),
        Claim("Proposition 7: a statement about V₁ holds for V₂ ⊆ V₁", nested[0], nested[1]),
        Claim(
            "Corollary 8: a private mechanism is private in every subspace",
            float(within(base, [[1, -1, 0, 0]]).epsilon or math.inf) <= 1 + 1e-9,
            "within(laplace, V) at ε = 1",
        ),
        Claim(
            "Proposition 9: guarantees add up for the joined figures",
            bool(spent) and min(spent) <= 2 * 2 + 1e-9,
            f"two releases of ε = 1 with different exact figures: {', '.join(f'{e:.3g}' for e in spent)} (a "
            "statement is "
            "about records that change together with all exact figures kept)",
        ),
        Claim(
            "§2.3: two exact figures that are harmless alone can pin cells together",
            max(alone) == 0 < together,
            f"a 2 × 2 × 2 table: no cell is pinned by one two-way margin, {together} of 8 by all three",
        ),
        Claim(
            "§2.3: mixtures of subspace private mechanisms are so (the axiom of choice)",
            float(mixed.guarantee.rho or math.inf) <= 0.5 * (1 + 1e-8),
            f"ρ = {mixed.guarantee.rho:.4g}, the worst of the parts'",
        ),
        Claim("§6: invariants of binary attributes can be drawn", *found),
    )
    return Findings(claims)


def _pinned() -> tuple[list[int], int]:
    """Cells of a small cube that are pinned by each of its two-way margins, and by all three."""
    shape, truth = (2, 2, 2), [0, 1, 1, 2, 1, 2, 2, 0]
    pairs = [(0, 1), (0, 2), (1, 2)]

    def count(keep: list[tuple[int, int]]) -> int:
        return int(pinned(margins(shape), invariant(exact_margins(shape, keep)), truth=truth).pinned.size)

    return [count([each]) for each in pairs], count(pairs)


def _nested() -> tuple[bool, str]:
    """ε about a plane and about lines in it, for noise with an exact total."""
    query, total = histogram(4), invariant(np.ones((1, 4), dtype=int))
    made = laplace(query, epsilon=1, integer=False).given(total)
    plane = float(within(made, [[1, -1, 0, 0], [0, 1, -1, 0]]).epsilon or math.inf)
    lines = [float(within(made, [row]).epsilon or math.inf) for row in ([1, -1, 0, 0], [0, 1, -1, 0], [1, 0, -1, 0])]
    return max(lines) <= plane + 1e-9, f"ε = {plane:.4g} about a plane, at most {max(lines):.4g} about lines in it"


def _attributes(study: Study) -> tuple[bool, str]:
    """Yes-or-no attributes of six records with their total exact: whole noise given 0 ≤ z ≤ 1 and the total."""
    query = histogram(6)
    held = invariant(np.ones((1, 6), dtype=int)) & between(0, 1)
    made = gaussian(query, scale=1, neighbours="replace-one").given(held)
    drawn = made.simulate(np.array([1, 1, 0, 0, 1, 0]), study.times(400, 50), study.stream())
    right = bool(
        ((drawn == 0) | (drawn == 1)).all() and (drawn.sum(axis=1) == 3).all() and len(np.unique(drawn, axis=0)) > 3
    )
    return right, "six answers of 0 or 1 with an exact total of 3, drawn whole; their law depends on the data"
