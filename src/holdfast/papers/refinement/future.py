"""LR §4 and §5 name orders, ranges and other noise as future work: what refinement loses there."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from scipy import stats

from holdfast.constraints import between, ordered
from holdfast.papers.refinement.examples import EXAMPLE, GRADES, ONE_MORE
from holdfast.papers.reproduction import Claim, Findings, Row, Study
from holdfast.refinement import LinearRefinement, refine, refinement_loss

DRAWS = 60_000


def findings(study: Study) -> Findings:
    """Orders and ranges by bounds and draws, Gaussian noise exactly."""
    rng, size = study.generator(), study.times(DRAWS, 6_000)
    free = LinearRefinement.best(GRADES[:, :2])
    change = list(ONE_MORE["A"])
    bound = refinement_loss(free, change, 3, knowledge=between(0, 200))
    known = refinement_loss(free, change, 3)
    seen, limit = _seen(size, rng)
    normal = refinement_loss(EXAMPLE, [1, 0], 1, outputs=[0], law="gaussian")
    wanted = Fraction(1, 2) * Fraction(1) / Fraction(1, 2)  # X̂₁ has variance ½, the means are 1 apart: μ² = 2, ρ = 1
    rows = (
        Row("grades with 0 … 200 known: ρ/ε, an upper bound", None, float(bound)),
        Row("grades, sums alone: ρ/ε", None, float(known)),
        Row("order z₁ ≤ z₂: largest log ratio seen in draws", None, seen),
        Row("order z₁ ≤ z₂: the bound", None, limit),
        Row("Example 1 with Gaussian noise of σ = 1: ρ of X̂₁", None, float(normal)),
    )
    measured = _gaussian(size, rng)
    claims = (
        Claim(
            "ranges that hold for all data cost nothing beyond the linear refinement",
            bound.exact is not None and known.exact is not None and bound.exact <= known.exact and not bound.attained,
            f"{float(bound):.4f}ε with the ranges, {float(known):.4f}ε without",
            ours=True,
        ),
        Claim(
            "moving answers to an order that holds for all data loses no more than they do",
            seen <= limit,
            f"two answers, ε = 1: at most {seen:.3f} in {size:,} draws (bound {limit:.3f})",
            ours=True,
        ),
        Claim(
            "with Gaussian noise Example 1 is exactly ρ-concentrated with ρ = 1 at σ = 1",
            normal.exact == wanted and measured[0] < measured[1],
            f"ρ = {normal.exact}; a guess of the data is right as often as between normal laws √2 apart, "
            f"to {measured[0]:.4f}",
            ours=True,
        ),
    )
    return Findings(claims, rows)


def _seen(size: int, rng: np.random.Generator) -> tuple[float, float]:
    """Two answers moved to z₁ ≤ z₂, the second raised by one: the largest log ratio of frequencies that is sure."""
    counts = []
    for truth in (np.array([3.0, 5.0]), np.array([3.0, 6.0])):
        noisy = truth + rng.laplace(scale=1, size=(size, 2))
        moved = refine(noisy, knowledge=ordered([0, 1]))
        cells = np.clip(np.floor(moved), -2, 12).astype(int) + 2
        counts.append(np.bincount(cells[:, 0] * 15 + cells[:, 1], minlength=225))
    first, second = counts
    # What a frequency is at least, and at most, at one chance in a million for all cells together.
    alpha = 1e-6 / 450
    low, high = stats.beta.ppf(alpha, first, size - first + 1), stats.beta.ppf(1 - alpha, second + 1, size - second)
    with np.errstate(divide="ignore"):
        ratios = np.log(np.where(first > 0, low, np.finfo(float).tiny) / high)
    return float(ratios.max()), 1.0


def _gaussian(size: int, rng: np.random.Generator) -> tuple[float, float]:
    """How far the share of right guesses of X̂₁'s mean is from that of a μ = √2 test, and what chance allows."""
    added = rng.random(size) < 0.5
    noise = rng.standard_normal((size, 2))
    refined = (noise[:, 0] - noise[:, 1]) / 2 + added
    right = float(((refined > 0.5) == added).mean())
    expected = float(stats.norm.cdf(2**0.5 / 2))
    return abs(right - expected), 5 * (0.25 / size) ** 0.5
