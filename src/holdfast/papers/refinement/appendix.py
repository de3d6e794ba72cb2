"""LR's appendix: k µ₁ = µ₂ in D₀, one record more of either category; and why the ratio is no attack."""

from __future__ import annotations

import math

import numpy as np

from holdfast.papers.refinement.examples import appendix
from holdfast.papers.reproduction import Claim, Findings, Row, Study
from holdfast.pictures import Layer, plane
from holdfast.refinement import refinement_loss

EPSILON, DRAWS = 1.0, 200_000
KS = tuple(range(1, 11))


def findings(study: Study) -> Findings:
    """Losses of the refined answers, and how often one guesses right with and without being handed c."""
    rng, size = study.generator(), study.times(DRAWS, 10_000)
    scale = 2 / EPSILON
    first, whole, handed, honest = [], [], [], []
    for k in KS:
        attack = appendix(k)
        first.append(float(refinement_loss(attack, [1, -1], scale, outputs=[0])))
        whole.append(float(refinement_loss(attack, [1, -1], scale)))
        handed.append(_right_handed(k, scale, size, rng))
        honest.append(_right_honest(scale, size, rng))
    bound = math.exp(EPSILON) / (1 + math.exp(EPSILON))
    rows = []
    for k, a, b, c in zip(KS, first, whole, handed, strict=True):
        rows.append(Row(f"k = {k}: ρ of X̂₁", (k + 1) * EPSILON / 2, a))
        rows.append(Row(f"k = {k}: ρ of both answers", None, b))
        rows.append(Row.of(f"k = {k}: right guesses where c is handed over", None, c))
    rows.append(Row.of("right guesses by the best test on the answers alone", None, honest[-1]))
    rows.append(Row("the most that ε = 1 allows", None, bound))
    mean = float(np.mean(honest[-1]))
    claims = (
        Claim(
            "the ratio of X̂₁ reaches e^((k+1)ε/2)",
            all(abs(a - (k + 1) * EPSILON / 2) < 1e-12 for k, a in zip(KS, first, strict=True)),
            "exactly, k = 1 … 10; over both answers it is (k+3)ε/2",
        ),
        Claim(
            "the adversary can derive the value of the added record by refinement",
            mean > bound,
            f"the best test on the answers is right in {100 * mean:.1f} of 100 cases, whatever k is, and ε = 1 "
            "allows at most "
            f"{100 * bound:.1f}; only who is handed c′ or c″, which is the record's value itself, is right in "
            f"{100 * float(np.mean(handed[-1])):.1f} of 100 (k = 10)",
        ),
        Claim(
            "the two refinements use different c, and whoever knows which applies knows the answer before any release",
            mean <= bound and float(np.mean(handed[-1])) > bound,
            "the ratio compares two analysts with different knowledge, not two datasets for one analyst",
            ours=True,
        ),
    )
    layers = [
        Layer("c handed over", "points", list(KS), [float(np.mean(each)) for each in handed]),
        Layer("answers alone", "points", list(KS), [float(np.mean(each)) for each in honest]),
        Layer("most that ε = 1 allows", "line", [1, 10], [bound, bound]),
    ]
    picture = plane(layers, "k", "share of right guesses")
    return Findings(claims, tuple(rows), (("Guessing the added record's category, ε = 1.", picture),))


def _right_honest(scale: float, size: int, rng: np.random.Generator) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """The likelihood-ratio test between µ' = µ + (1, 0) and µ'' = µ + (0, 1), each true half of the time."""
    added = rng.random(size) < 0.5
    noise = rng.laplace(scale=scale, size=(size, 2))
    x = noise + np.stack([added, ~added], axis=1)
    score = np.abs(x[:, 0]) + np.abs(x[:, 1] - 1) - np.abs(x[:, 0] - 1) - np.abs(x[:, 1])
    guess = np.where(score == 0, rng.random(size) < 0.5, score > 0)
    return np.asarray(guess == added)


def _right_handed(
    k: int, scale: float, size: int, rng: np.random.Generator
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """The best test on X̂₁ made with the c that applies: X̂₁ is µ' or µ'' at its first answer, plus the same noise."""
    added = rng.random(size) < 0.5
    noise = rng.laplace(scale=scale, size=(size, 2)).sum(axis=1) / (k + 1)
    seen = noise + added  # µ₁' − µ₁'' = 1
    return np.asarray((np.abs(seen) > np.abs(seen - 1)) == added)
