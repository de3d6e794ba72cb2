"""SDP Corollaries 17 and 18: extended Laplace noise depends on the basis of N, and can lose to projected noise."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from holdfast.arrays import Floats
from holdfast.constraints import invariant
from holdfast.mechanism import extend, laplace
from holdfast.papers.reproduction import Claim, Findings, Row, Study
from holdfast.pictures import Layer, plane
from holdfast.queries import histogram

CELLS, TURNS = 4, 60
TRUTH = np.array([5.0, 0.0, 2.0, 9.0])


def findings(study: Study) -> Findings:
    """A histogram of four cells with an exact total, one record added or removed, ε = 1, over bases of N."""
    query, exact = histogram(CELLS), invariant(np.ones((1, CELLS), dtype=int))

    def error(basis: Floats) -> tuple[float, float]:
        made = extend(query, exact, law="laplace", epsilon=1, basis=basis)
        return float((made.standard_error() ** 2).sum()), float(made.guarantee.epsilon or 0)

    projected = laplace(query, epsilon=1, integer=False).onto(exact, weights=None)
    plain = float((projected.standard_error() ** 2).sum())
    signs = linalg.hadamard(CELLS)[:, 1:] / CELLS**0.5
    rng = study.generator()
    turned = [_turned(signs, rng) for _ in range(study.times(TURNS, 8))]
    errors = [error(basis)[0] for basis in turned]
    with_signs, spent = error(signs)
    chosen = extend(query, exact, law="laplace", epsilon=1)
    best = float((chosen.standard_error() ** 2).sum())
    sensitivity = float(np.abs(signs.T).sum(axis=0).max())
    rows = (
        Row("Δ₁ of the histogram", None, 1.0),
        Row("Δ₁(Q_Nᵀ hist), Hadamard basis", None, sensitivity),
        Row("squared error, projected (Cor 17)", None, plain),
        Row("squared error, extended by the Hadamard basis (Cor 18)", None, with_signs),
        Row("squared error, extended, the best of random orthonormal bases", None, min(errors)),
        Row("squared error, extended, the worst of random orthonormal bases", None, max(errors)),
        Row("squared error, what extend chooses", None, best),
    )
    claims = (
        Claim(
            "both mechanisms meet ε = 1 for what the total leaves open",
            max(spent, float(projected.guarantees[0].epsilon or 0)) <= 1 + 1e-8,
            f"ε = {spent:.6f} and {projected.guarantees[0].epsilon:.6f}",
        ),
        Claim(
            "Corollary 18: with noise A(x) + Q_N w the total is exact",
            abs(float((2 * TRUTH + signs @ np.ones(CELLS - 1)).sum() - TRUTH.sum())) < 1e-9,
            "as printed the noise contains the answer itself, and the total comes out twice; Q_N w is meant",
        ),
        Claim(
            "the basis matters, which the corollary does not say: unlike Gaussian noise, extended Laplace noise can "
            "be worse "
            "than projected noise",
            with_signs > plain * 1.01 and sensitivity > 1,
            f"with the Hadamard basis Δ₁(Q_Nᵀ hist) = {sensitivity:g} > 1 and the error is {with_signs / plain:.2f} "
            "times "
            "that of projected noise",
            ours=True,
        ),
        Claim(
            "so it must be chosen: extend tries several, projection among them, and is never above the least",
            best <= min(plain, with_signs) * (1 + 1e-8),
            f"{best:.4g}",
            ours=True,
        ),
    )
    ordered = sorted(errors)
    layers = [
        Layer("random orthonormal bases", "points", list(range(len(ordered))), ordered),
        Layer("projected", "line", [0, len(ordered) - 1], [plain, plain]),
        Layer("Hadamard", "line", [0, len(ordered) - 1], [with_signs, with_signs]),
    ]
    picture = plane(layers, "bases by increasing error", "squared error at ε = 1")
    return Findings(claims, rows, (("Four cells with an exact total: extended Laplace noise by basis.", picture),))


def _turned(basis: Floats, rng: np.random.Generator) -> Floats:
    turn = np.linalg.qr(rng.standard_normal((basis.shape[1],) * 2))[0]
    return np.asarray(basis @ turn)
