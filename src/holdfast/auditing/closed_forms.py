"""Losses that are known without listing: independent real noise, neither conditioned nor moved (THEORY §1)."""

from __future__ import annotations

import numpy as np

from holdfast.auditing.claims import EXACT, Claim, Evidence
from holdfast.auditing.pairs import Pair
from holdfast.mechanism.mechanism import Mechanism
from holdfast.privacy import gaussian_delta, gaussian_epsilon

#: So much is taken off what doubles compute.
ROUNDING = 1e-9


def known_evidence(claim: Claim, mechanism: Mechanism, pair: Pair) -> Evidence | None:
    """What the law of real noise itself says about a pair; None where the law is another.

    Laplace: the largest loss is Σ|d_i|/λ_i. Gaussian: δ(ε) at μ = ‖Σ^(−1/2)d‖ (Balle and Wang 2018, Theorem 8).
    """
    law = mechanism.base.law
    if law.integer or mechanism.source.system is not None or mechanism.moves or None in law.laws:
        return None
    change = np.abs((pair.other - pair.one).astype(np.float64)) / float(mechanism.base.unit)
    points = list(zip(claim.epsilons.tolist(), claim.deltas.tolist(), strict=True))
    if law.kind == "laplace":
        loss = float((change / np.sqrt(law.variances / 2)).sum()) * (1 - ROUNDING)
        words = "the largest log-ratio of the two laws"
        found = [Evidence(loss - claimed, loss, 0.0, claimed, EXACT, words) for claimed, delta in points if delta == 0]
        return max(found, key=lambda each: each.margin, default=None)
    mu = float(np.sqrt((change**2 / law.variances).sum())) * (1 - ROUNDING)
    # A point with δ = 0 is only as good as the doubles that wrote it.
    points = [(claimed, delta) for claimed, delta in points if delta > 0]
    if not points:
        return None
    claimed, delta = max(points, key=lambda point: gaussian_delta(mu, point[0]) / point[1])
    epsilon = gaussian_epsilon(mu, delta) * (1 - ROUNDING) if delta < 1 else 0.0
    words = f"the δ(ε) of two Gaussians at distance {mu:.4g}"
    return Evidence(epsilon - claimed, epsilon, delta, claimed, EXACT, words)
