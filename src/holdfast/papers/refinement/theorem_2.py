"""LR Theorem 2 as printed, over random rotations of the null block, against the exact loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.papers.refinement.examples import EXAMPLE, EXAMPLE_B, GRADES, ONE_MORE
from holdfast.papers.reproduction import Claim, Findings, Row, Study
from holdfast.pictures import Layer, plane
from holdfast.refinement import LinearRefinement, printed_theorem_2, refinement_loss

TURNS, QUERIES = 2_000, 12
#: How far the printed value may be from the exact one and count as right.
NEAR = 1e-6


def findings(study: Study) -> Findings:
    """How often the printed value is too low, too high and right, and by how much."""
    rng = study.generator()
    grades = LinearRefinement.best(GRADES)
    change = list(ONE_MORE["A"])
    exact = float(refinement_loss(grades, change, 3))
    printed = np.array([_printed(grades, GRADES, change, rng) for _ in range(study.times(TURNS, 100))])
    signs = sorted(printed_theorem_2(EXAMPLE, EXAMPLE_B, [1, 0], 1, [[sign]]) for sign in (1, -1))
    low, high = float((printed < exact - NEAR).mean()), float((printed > exact + NEAR).mean())
    others = [_random(rng) for _ in range(study.times(QUERIES, 3))]
    understated = sum(least < true - NEAR for least, _, true in others)
    rows = (
        Row("Example 1, the two signs of the null block", "2ε", f"{signs[0]:.4g}ε and {signs[1]:.4g}ε; exact 2ε"),
        Row("grades, one A more: exact ρ/ε", None, exact),
        Row("grades: least printed value over rotations", None, float(printed.min())),
        Row("grades: largest printed value over rotations", None, float(printed.max())),
        Row.of("grades: share of rotations whose value is too low", None, printed < exact - NEAR),
        Row.of("grades: mean of printed / exact", None, printed / exact),
    )
    claims = (
        Claim(
            "the printed ρ does not depend on the choice of the singular vectors",
            float(np.ptp(printed)) < NEAR and signs[1] - signs[0] < NEAR,
            f"grades: {printed.min():.4f} to {printed.max():.4f}; Example 1: {signs[0]:g} or {signs[1]:g}",
        ),
        Claim(
            "the printed ρ is the loss, or at least not below it",
            low == 0,
            f"too low for {low:.1%} of the rotations of the grades, by up to {exact - printed.min():.3f}ε, and too "
            "high for "
            f"{high:.1%}; of {len(others)} random refinements {understated} can be understated",
        ),
        Claim(
            "the loss is the least cost of a shift of the noise that explains the change (H5)",
            abs(exact - 5 / 3) < 1e-12 and abs(float(refinement_loss(EXAMPLE, [1, 0], 1)) - 2) < 1e-12,
            "5/3·ε for the grades, 2ε for Example 1, by programs in rationals; docs/theory/refinement.md",
            ours=True,
        ),
    )
    ordered = np.sort(printed)
    places = np.linspace(0, 1, ordered.size)
    layers = [
        Layer("Theorem 2 as printed", "line", places.tolist(), ordered.tolist()),
        Layer("exact", "line", [0.0, 1.0], [exact, exact]),
    ]
    caption = "Grades, one A more: what Theorem 2 gives for random rotations of the null block."
    return Findings(claims, rows, ((caption, plane(layers, "share of the rotations", "ρ/ε")),))


def _printed(refinement: LinearRefinement, B: Any, change: list[int], rng: np.random.Generator) -> float:
    turn = np.linalg.qr(rng.standard_normal((B.shape[1],) * 2))[0] * rng.choice([-1, 1], B.shape[1])
    return printed_theorem_2(refinement, B, change, 1, turn)


def _random(rng: np.random.Generator) -> tuple[float, float, float]:
    """A random refinement of four answers by two known combinations: printed from … to, and exact."""
    while True:
        B = rng.integers(-1, 2, (4, 2))
        if np.linalg.matrix_rank(B) == 2:
            break
    change = rng.integers(0, 2, 4)
    change[0] = 1
    refinement = LinearRefinement.best(B)
    values = [_printed(refinement, B, change.tolist(), rng) for _ in range(60)]
    return min(values), max(values), float(refinement_loss(refinement, change.tolist(), float(np.abs(change).sum())))
