"""LR Theorem 3: the least-squares refinement is unbiased, constrained, and has the least variance of every answer."""

from __future__ import annotations

import numpy as np

from holdfast.papers.refinement.examples import GRADES
from holdfast.papers.reproduction import Claim, Findings, Row, Study
from holdfast.refinement import LinearRefinement, refine

RIVALS, DRAWS = 200, 4_000


def findings(study: Study) -> Findings:
    """Against other unbiased refinements A = I − D Bᵀ, and on draws; then with unequal noise."""
    rng = study.generator()
    best = LinearRefinement.best(GRADES)
    n, m = GRADES.shape
    least, beaten = (best.A**2).sum(axis=1), 0
    for _ in range(study.times(RIVALS, 20)):
        # Any D with BᵀD = I makes the refinement constrained; then I − D Bᵀ is unbiased.
        other = best.D + best.A @ rng.standard_normal((n, m)) * rng.exponential()
        A = np.eye(n) - other @ GRADES.T
        beaten += bool(((A**2).sum(axis=1) < least - 1e-9).any())
    truth = np.array([50, 30, 25, 10, 5, 115, 120.0])
    noisy = truth + rng.laplace(scale=3, size=(study.times(DRAWS, 400), n))
    refined = refine(noisy, GRADES, GRADES.T @ truth)
    errors = (refined - truth) ** 2
    scales = np.array([1.0, 1, 1, 1, 1, 6, 6])
    weighted = LinearRefinement.best(GRADES, 2 * scales**2)
    plain_cost = ((best.A * scales) ** 2).sum(axis=1)
    weighted_cost = ((weighted.A * scales) ** 2).sum(axis=1)
    rows = [
        Row.of(f"variance of a refined answer {i}, λ = 3", float(18 * least[i]), errors[:, i]) for i in (0, 2, 4, 5)
    ]
    rows.append(
        Row("unequal noise: total variance, Theorem 3 / weighted", None, float(plain_cost.sum() / weighted_cost.sum()))
    )
    off = max(abs(float(row.computed) - float(row.printed or 0)) / row.error for row in rows[:4])
    claims = (
        Claim("(16) is unbiased", best.unbiased(GRADES), "A + D Bᵀ = I in rationals"),
        Claim(
            "(16) meets what is known, for every answer", best.constrained(GRADES), "BᵀA = 0 and BᵀD = I in rationals"
        ),
        Claim(
            "no linear unbiased refinement has a smaller variance of any answer",
            beaten == 0 and off < 5,
            f"none of {study.times(RIVALS, 20)} random rivals is smaller anywhere; draws are at most {off:.1f} "
            "standard "
            "errors from 2λ²·(AAᵀ)ᵢᵢ",
        ),
        Claim(
            "with unequal noise (16) is no longer best: weigh by the covariance, X + ΣB(BᵀΣB)⁻¹(c − BᵀX)",
            bool((weighted_cost <= plain_cost + 1e-9).all() and plain_cost.sum() > 1.01 * weighted_cost.sum()),
            f"sums with six times the noise: {plain_cost.sum() / weighted_cost.sum():.2f} times the variance of the "
            "weighted one",
            ours=True,
        ),
    )
    return Findings(claims, tuple(rows))
