"""LR Example 1: the ratio of the densities of a refined answer, along its tail."""

from __future__ import annotations

import math

import numpy as np
from scipy import integrate

from holdfast.papers.refinement.examples import EXAMPLE, HALF
from holdfast.papers.reproduction import Claim, Findings, Row, Study
from holdfast.pictures import Layer, plane
from holdfast.refinement import refinement_loss

#: ε, so that the noise has scale 1/ε, and the places along the tail where the ratio is taken.
EPSILON = 1.0
PLACES = (1.0, 2.0, 5.0, 10.0, 30.0, 100.0, 1_000.0, 10_000.0)


def log_ratio(x: float) -> float:
    """log of (10) at x₁ − µ₁ = x, µ₁ − µ₁' = 1: (σ + 2x)/(σ + 2x + 2)·e^{2ε}."""
    sigma = 1 / EPSILON
    return math.log((sigma + 2 * x) / (sigma + 2 * (x + 1))) + 2 * EPSILON


def findings(study: Study) -> Findings:
    """The curve, by the printed formula and by integrating (6); and the exact loss."""
    del study  # nothing is random
    exact = refinement_loss(EXAMPLE, [1, 0], 1 / EPSILON)
    measured = [_density(x) for x in (1.0, 5.0)], [_density(x + 1) for x in (1.0, 5.0)]
    integrated = [math.log(a / b) for a, b in zip(*measured, strict=True)]
    off = max(abs(found - log_ratio(x)) for found, x in zip(integrated, (1.0, 5.0), strict=True))
    curve = [log_ratio(x) for x in PLACES]
    rows = [Row(f"log of the ratio at x₁ − µ₁ = {x:g}", None, value) for x, value in zip(PLACES, curve, strict=True)]
    rows.append(Row("limit", 2 * EPSILON, float(exact)))
    both = refinement_loss(EXAMPLE, [1, 0], 1 / EPSILON, outputs=[0, 1])
    claims = (
        Claim("(10) is the ratio of the densities (6) and (7)", off < 1e-6, f"by quadrature, off by {off:.1e}"),
        Claim(
            "the loss of the refined answer is 2ε, in the limit",
            exact.exact == 2 and curve == sorted(curve) and curve[-1] > 2 * EPSILON - 1e-3,
            f"H5 gives exactly {exact.exact}ε; along the tail {curve[0]:.3f} to {curve[-1]:.5f}",
        ),
        Claim(
            "Definition 5 sets aside both answers together: whoever sees both knows µ₁ + µ₂ and tells the data apart",
            math.isinf(float(both)),
            "their values never coincide, the loss is infinite",
            ours=True,
        ),
    )
    layers = [
        Layer(
            "log ratio", "line", list(np.geomspace(0.1, 1e4, 80)), [log_ratio(x) for x in np.geomspace(0.1, 1e4, 80)]
        ),
        Layer("2ε", "line", [0.1, 1e4], [2 * EPSILON] * 2),
        Layer("ε, without refinement", "line", [0.1, 1e4], [EPSILON] * 2),
    ]
    picture = plane(layers, "x₁ − µ₁", "log of the ratio", logarithmic=True)
    return Findings(claims, tuple(rows), (("The ratio climbs to e^2ε along the tail.", picture),))


def _density(x: float) -> float:
    """The density of X̂₁ at distance x ≥ 0 from its mean, up to a factor: (6) with the means taken away."""
    sigma = 1 / EPSILON

    def inside(u: float) -> float:
        return math.exp(-(abs(x / float(HALF) + u) + abs(u)) / sigma)

    breaks = (-2 * x, 0.0)
    parts = [(-np.inf, breaks[0]), breaks, (breaks[1], np.inf)]
    return float(sum(integrate.quad(inside, a, b)[0] for a, b in parts))
