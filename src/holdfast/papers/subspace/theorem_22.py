"""SDP Theorem 22: for spherical Gaussian noise projection and conditioning are one law, and for Laplace noise not."""

from __future__ import annotations

import numpy as np

from holdfast.arrays import Floats
from holdfast.constraints import exact_margins, invariant
from holdfast.mechanism import Mechanism, gaussian, laplace
from holdfast.papers.reproduction import Claim, Findings, Row, Study
from holdfast.pictures import Layer, plane
from holdfast.queries import margins
from holdfast.randomness import Stream

SHAPE, DRAWS = (3, 4), 20_000
#: √(m/2) times the Kolmogorov distance of two samples of one law, m draws each, exceeds x with a chance of about
#: 2·exp(−2x²): 3·10⁻⁸ here.
FAR = 3.0


def findings(study: Study) -> Findings:
    """Quantiles of one cell, projected against conditioned; and covariances."""
    size, stream = study.times(DRAWS, 4_000), study.stream()
    held = invariant(exact_margins(SHAPE, [(0,), (1,)]))
    rows, layers, gaps = [], [], {}
    laws = {
        "Gaussian": gaussian(margins(SHAPE), scale=1, integer=False),
        "Laplace": laplace(margins(SHAPE), scale=1, integer=False),
    }
    for name, base in laws.items():
        projected, conditioned = (
            _drawn(base.onto(held, weights=None), size, stream),
            _drawn(base.given(held), size, stream),
        )
        gaps[name] = _distance(projected[:, 0], conditioned[:, 0]) * size**0.5
        rows.append(Row.of(f"{name}, projected: variance of a cell", None, projected[:, 0] ** 2))
        rows.append(Row.of(f"{name}, conditioned: variance of a cell", None, conditioned[:, 0] ** 2))
        rows.append(Row(f"{name}: Kolmogorov distance × √(draws/2)", None, gaps[name]))
        shares = np.linspace(0.002, 0.998, 120)
        layers.append(
            Layer(
                name,
                "points",
                np.quantile(conditioned[:, 0], shares).tolist(),
                np.quantile(projected[:, 0], shares).tolist(),
            )
        )
    space = held.system(int(np.prod(SHAPE))).null_space()
    wanted = space.project(np.eye(space.n))
    given = laws["Gaussian"].given(held)
    spread = np.array([given.standard_error()[i] for i in range(space.n)])
    off = float(np.abs(spread - np.sqrt(np.diag(wanted))).max())
    claims = (
        Claim(
            "projected and conditioned spherical Gaussian noise have one law",
            gaps["Gaussian"] < FAR and off < 1e-9,
            f"Kolmogorov distance {gaps['Gaussian']:.2f}/√(draws/2) (one law: below {FAR}); standard errors given "
            "the margins "
            f"differ from those of Π_N by {off:.1e}",
        ),
        Claim(
            "other noise is not of that kind",
            gaps["Laplace"] > FAR,
            f"Laplace noise: distance {gaps['Laplace']:.2f}/√(draws/2)",
        ),
    )
    ends = [min(min(layer.x) for layer in layers), max(max(layer.x) for layer in layers)]
    picture = plane([*layers, Layer("equal", "line", ends, ends)], "quantiles, conditioned", "quantiles, projected")
    return Findings(
        claims, tuple(rows), (("One cell of a 3 × 4 table with exact margins, quantile by quantile.", picture),)
    )


def _drawn(mechanism: Mechanism, size: int, stream: Stream) -> Floats:
    return np.asarray(mechanism.noise(size, stream), dtype=np.float64)


def _distance(one: Floats, other: Floats) -> float:
    """The Kolmogorov distance of two samples of equal size."""
    both = np.sort(np.concatenate([one, other]))
    first, second = (np.searchsorted(np.sort(each), both, side="right") / each.size for each in (one, other))
    return float(np.abs(first - second).max()) / 2**0.5
