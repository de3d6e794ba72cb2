"""SDP Lemma 13 (and TV Prop 7), Corollaries 14 and 15: the classical σ, and projected against extended noise."""

from __future__ import annotations

import numpy as np

from holdfast.constraints import invariant
from holdfast.mechanism import extend, gaussian
from holdfast.papers.reproduction import Claim, Findings, Row, Study
from holdfast.pictures import Layer, plane
from holdfast.privacy import classical_delta
from holdfast.queries import workload

#: Where the classical formula is looked at.
DELTAS, EPSILONS = (1e-3, 1e-5, 1e-6, 1e-9, 1e-12), (0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 4.6, 5.0, 6.0, 8.0)
DRAWS, QUERIES = 4_000, 12


def findings(study: Study) -> Findings:
    """The true δ of the classical σ, and errors of random queries with an exact figure."""
    rows, worst = [], (0.0, 0.0, 0.0)
    for delta in DELTAS:
        for epsilon in EPSILONS:
            true = classical_delta(epsilon, delta)
            worst = max(worst, (true / delta, epsilon, delta))
    for epsilon, delta in ((1.0, 1e-12), (0.25, 1e-12), (5.0, 1e-6), (1.0, 1e-5)):
        rows.append(
            Row(f"true δ of the classical σ at ε = {epsilon:g}", f"{delta:g}", f"{classical_delta(epsilon, delta):.4g}")
        )
    rng, stream = study.generator(), study.stream()
    off, better, ratios = 0.0, True, []
    for k in range(study.times(QUERIES, 3)):
        n, cells = 6, 8
        query = workload(rng.integers(0, 3, (n, cells)))
        exact = invariant(np.ones((1, n), dtype=int))
        base = gaussian(query, epsilon=1, delta=1e-5, integer=False, calibration="classical")
        projected, extended = (
            base.onto(exact, weights=None),
            extend(query, exact, law="gaussian", epsilon=1, delta=1e-5, calibration="classical"),
        )
        totals = [float((m.standard_error() ** 2).sum()) for m in (projected, extended)]
        better &= totals[1] <= totals[0] * (1 + 1e-8)
        ratios.append(totals[1] / totals[0])
        wanted = (n - 1) * float(base.standard_error()[0]) ** 2
        off = max(off, abs(totals[0] / wanted - 1))
        if k == 0:
            drawn = (projected.noise(study.times(DRAWS, 400), stream) ** 2).sum(axis=1)
            rows.append(Row.of("Cor 14: mean squared error of a projected query, drawn", wanted, drawn))
    rows.append(Row.of("Cor 15: error of extended noise as a part of projected noise", None, ratios))
    claims = (
        Claim(
            "Lemma 13: the classical σ is (ε, δ)-private for all ε, δ > 0",
            worst[0] <= 1,
            f"at ε = {worst[1]:g}, δ = {worst[2]:g} the true δ is {worst[0]:.1f} times the claim (TV Prop 7 prints "
            "the same "
            "formula, and δ for σ)",
        ),
        Claim(
            'at (1, 10⁻¹²) the true δ is 4.2 times the claim, and calibration="classical" states the true one',
            4.1 < classical_delta(1.0, 1e-12) / 1e-12 < 4.3 and _says_the_truth(),
            "by Balle and Wang (2018)",
            ours=True,
        ),
        Claim("Corollary 14: the error is (n − n_c)σ²", off < 1e-8, f"random queries, off by at most {off:.1e} of it"),
        Claim(
            "Corollary 15: extended noise is never worse than projected noise",
            better,
            f"{len(ratios)} random queries: {min(ratios):.3f} to {max(ratios):.3f} of its error",
        ),
    )
    layers = [
        Layer(f"δ = {delta:g}", "line", list(EPSILONS), [np.log10(classical_delta(e, delta) / delta) for e in EPSILONS])
        for delta in DELTAS
    ]
    picture = plane(layers, "ε", "log₁₀ of true δ / claimed δ", logarithmic=True)
    return Findings(claims, tuple(rows), (("Above 0 the classical formula claims too much.", picture),))


def _says_the_truth() -> bool:
    query, exact = workload(np.eye(3, dtype=int)), invariant(np.ones((1, 3), dtype=int))
    found = extend(query, exact, law="gaussian", epsilon=1, delta=1e-12, calibration="classical").guarantee
    return found.delta > 4e-12
