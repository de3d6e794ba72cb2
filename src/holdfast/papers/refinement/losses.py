"""LR Example 1, the grades of (11) and the appendix: what refined answers lose."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
from scipy import integrate

from holdfast.papers.reproduction import Claim, Findings, Row, Study
from holdfast.pictures import Layer, bars, plane
from holdfast.refinement import LinearRefinement, refinement_loss

HALF = Fraction(1, 2)
#: Example 1: two answers whose sum is known.
EXAMPLE = LinearRefinement([[HALF, -HALF], [-HALF, HALF]], [[HALF], [HALF]])
EXAMPLE_B = [[1], [1]]
#: (11): A, B, C, D, F, passed, total; two sums by definition, and 80 students with an A or a B.
GRADES = np.array([[1, 1, 1, 1, 0, -1, 0], [0, 0, 0, 0, 1, 1, -1], [1, 1, 0, 0, 0, 0, 0]]).T
NAMES = ("A", "B", "C", "D", "F", "passed", "total")
#: What one student more changes.
ONE_MORE = {
    "A": (1, 0, 0, 0, 0, 1, 1),
    "B": (0, 1, 0, 0, 0, 1, 1),
    "C": (0, 0, 1, 0, 0, 1, 1),
    "D": (0, 0, 0, 1, 0, 1, 1),
    "F": (0, 0, 0, 0, 1, 0, 1),
}


def appendix(k: int) -> LinearRefinement:
    """The refinement of the appendix: X̂₁ = (X₁ + X₂ + c)/(k + 1), X̂₂ = X₂."""
    share = Fraction(1, k + 1)
    zero, one = Fraction(0), Fraction(1)
    return LinearRefinement([[share, share], [zero, one]], [[share], [zero]])


#: ε, so that the noise has scale 1/ε, and the places along the tail where the ratio is taken.
EPSILON = 1.0
PLACES = (1.0, 2.0, 5.0, 10.0, 30.0, 100.0, 1_000.0, 10_000.0)


def log_ratio(x: float) -> float:
    """log of (10) at x₁ − µ₁ = x, µ₁ − µ₁' = 1: (σ + 2x)/(σ + 2x + 2)·e^{2ε}."""
    sigma = 1 / EPSILON
    return math.log((sigma + 2 * x) / (sigma + 2 * (x + 1))) + 2 * EPSILON


def example_1(study: Study) -> Findings:
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


APPENDIX_EPSILON, DRAWS = 1.0, 200_000
KS = tuple(range(1, 11))


def appendix_ratios(study: Study) -> Findings:
    """Losses of the refined answers, and how often one guesses right with and without being handed c."""
    rng, size = study.generator(), study.times(DRAWS, 10_000)
    scale = 2 / APPENDIX_EPSILON
    first, whole, handed, honest = [], [], [], []
    for k in KS:
        attack = appendix(k)
        first.append(float(refinement_loss(attack, [1, -1], scale, outputs=[0])))
        whole.append(float(refinement_loss(attack, [1, -1], scale)))
        handed.append(_right_handed(k, scale, size, rng))
        honest.append(_right_honest(scale, size, rng))
    bound = math.exp(APPENDIX_EPSILON) / (1 + math.exp(APPENDIX_EPSILON))
    rows = []
    for k, a, b, c in zip(KS, first, whole, handed, strict=True):
        rows.append(Row(f"k = {k}: ρ of X̂₁", (k + 1) * APPENDIX_EPSILON / 2, a))
        rows.append(Row(f"k = {k}: ρ of both answers", None, b))
        rows.append(Row.of(f"k = {k}: right guesses where c is handed over", None, c))
    rows.append(Row.of("right guesses by the best test on the answers alone", None, honest[-1]))
    rows.append(Row("the most that ε = 1 allows", None, bound))
    mean = float(np.mean(honest[-1]))
    claims = (
        Claim(
            "the ratio of X̂₁ reaches e^((k+1)ε/2)",
            all(abs(a - (k + 1) * APPENDIX_EPSILON / 2) < 1e-12 for k, a in zip(KS, first, strict=True)),
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


#: One student more changes three answers at most: the scale at ε = 1.
SCALE = 3


def grades(study: Study) -> Findings:
    """Every added student, and every changed grade."""
    del study  # nothing is random
    best, free = LinearRefinement.best(GRADES), LinearRefinement.best(GRADES[:, :2])
    rows, found = [], {}
    changes = {f"one {name} more": change for name, change in ONE_MORE.items()} | {
        f"{a} becomes {b}": tuple(y - x for x, y in zip(ONE_MORE[a], ONE_MORE[b], strict=True))
        for a, b in combinations(ONE_MORE, 2)
    }
    kept, structural = [], []
    for name, change in changes.items():
        loss = refinement_loss(best, list(change), SCALE)
        assert loss.exact is not None
        found[name] = float(loss.exact)
        seen = ", ".join(NAMES[i] for i in loss.outputs)
        rows.append(Row(f"{name}: ρ/ε (seen: {seen})", None, float(loss.exact)))
        if not change[0] + change[1]:
            kept.append((loss.exact, sum(abs(value) for value in change)))
        structural.append((refinement_loss(free, list(change), SCALE).exact, sum(abs(value) for value in change)))
    most = found["one A more"]
    claims = (
        Claim(
            "where the known combinations do not change, ρ is at most ε (Theorem 2's corollary)",
            all(loss * SCALE <= size for loss, size in kept),
            f"{len(kept)} changes that keep A + B = 80: none loses more than its noise allows",
        ),
        Claim(
            "where a known combination changes, ρ can exceed ε",
            most > 1,
            f"one A more: {most:.4f}ε, exactly 5/3",
        ),
        Claim(
            "without the 80 (sums by definition alone) no change loses more than ε for an added student",
            all(loss is not None and loss * SCALE <= size for loss, size in structural),
            f"{len(structural)} changes",
            ours=True,
        ),
    )
    picture = bars([(name, value, 0.0) for name, value in found.items()], "ρ/ε")
    return Findings(claims, tuple(rows), (("The loss of every single change, as a multiple of ε.", picture),))
