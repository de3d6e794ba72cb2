"""Which noise over time is best for the sums that are wanted: a convex program, whose answer is beaten by none.

With X = Lᵀ diag(w) L the variance of a sum a over periods is aᵀX⁻¹a, and its mean over what is wanted tr(M X⁻¹). For
records of one period the cost is the largest X_tt. By weak duality tr(M X⁻¹) ≥ 2 tr (A^½ M A^½)^½ − Σλ for every X with
vᵀXv ≤ 1 for all v that are allowed, A = Σ λ_v v vᵀ: any λ ≥ 0 is a lower bound, and at the best one both are equal
(Denisov, McMahan, Rush, Smith and Thakurta 2022, for single periods).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Floats
from holdfast.noise.over_time import Factor

#: Steps of the search, of one for a bound alone, and how near to its bound it stops.
STEPS, FEW, NEAR = 1_000, 150, 1e-3
#: What every period counts for where nothing tells single ones: so small that no sum of them is moved by it.
RIDGE = 1e-6


@dataclass(frozen=True)
class Chosen:
    """A factor by its name; what is wanted has `error` at σ-cost 1, and no factor has less than `bound`.

    `others`: the errors of all that were compared.
    """

    name: str
    factor: Factor
    error: float
    bound: float
    others: Mapping[str, float]

    @property
    def gap(self) -> float:
        """By what part the error may be above the least one."""
        return self.error / self.bound - 1


def sums_of(periods: int, starts: Mapping[str, int], wanted: Mapping[str, float]) -> Floats:
    """M: the mean of aaᵀ over the sums of each wanted kind, times its weight.

    `starts`: how many periods a kind spans, 0 for the running total from the first; sums are those of whole spans.
    """
    M = np.zeros((periods, periods))
    for name, weight in wanted.items():
        span = starts[name]
        ends = range(1, periods + 1) if span == 0 else range(span, periods + 1, span)
        rows = np.array([[float(end - (span or end) <= t < end) for t in range(periods)] for end in ends])
        if not len(rows):
            raise Refused(f"wanted asks for {name!r}, which is longer than the series of {periods} periods")
        M += weight * rows.T @ rows / len(rows)
    return M


def candidates(periods: int, spans: Sequence[int]) -> dict[str, Floats]:
    """Noise that has a name: fresh, the square root of the running total, and trees of sums over spans."""
    root = np.cumprod([1.0, *((2 * k - 1) / (2 * k) for k in range(1, periods))])
    B = np.array([[root[t - s] if s <= t else 0.0 for s in range(periods)] for t in range(periods)])
    found = {"fresh": np.eye(periods), "square root": B.T @ B}
    binary = tuple(1 << k for k in range((periods - 1).bit_length() + 1))
    for name, sizes in (("binary tree", binary), ("tree", (1, *spans))):
        blocks = [[t // size for t in range(periods)] for size in dict.fromkeys(sizes)]
        found[name] = np.mean([np.equal.outer(each, each) for each in np.array(blocks)], axis=0)
    return found


def chosen(M: Floats, spans: Sequence[int] = (), several: int = 1) -> Chosen:
    """The best factor for wanted sums M, a person being in at most `several` periods, beside those that have names."""
    periods, alone = len(M), np.eye(len(M))
    precision, bound = _best(M, alone, STEPS)
    if several > 1:  # a person in several periods costs at least what one in any window of them does
        windows = np.array([np.convolve(alone[t], np.ones(several))[:periods] for t in range(periods - several + 1)])
        bound = max(bound, _best(M, np.vstack([alone, windows]), FEW)[1])
    found = {**candidates(periods, spans), "best": precision}
    errors = {}
    for name, X in found.items():
        factor = Factor.of(X)
        errors[name] = float(np.trace(M @ factor.covariance) * factor.worst(several)), factor
    name = min(errors, key=lambda each: errors[each][0])
    return Chosen(name, errors[name][1], errors[name][0], bound, {each: error for each, (error, _) in errors.items()})


def _best(asked: Floats, windows: Floats, steps: int) -> tuple[Floats, float]:
    """An X of small tr(M X⁻¹) with vᵀXv ≤ 1 for all windows v, and a lower bound on all of these."""
    periods = len(asked)
    M = asked + RIDGE * np.trace(asked) / periods * np.eye(periods)
    prices, best, bound, precision = np.ones(len(windows)), np.inf, 0.0, np.eye(periods)
    for _ in range(steps):
        half, back = _roots((windows.T * prices) @ windows)
        X = back @ _roots(half @ M @ half)[0] @ back
        used = ((windows @ X) * windows).sum(axis=1)
        error = float(np.trace(M @ np.linalg.inv(X)) * used.max())
        if error < best:
            best, precision = error, X
        # 2 tr √ − Σλ is largest over multiples of λ where both are alike: (tr √)²/Σλ.
        bound = max(bound, float(np.trace(_roots(half @ asked @ half)[0]) ** 2 / prices.sum()))
        if best <= bound * (1 + NEAR):
            break
        prices *= used / used.max()
    return precision, bound


def _roots(S: Floats) -> tuple[Floats, Floats]:
    """The square root of a positive definite matrix, and its inverse."""
    values, vectors = np.linalg.eigh((S + S.T) / 2)
    root = np.sqrt(np.maximum(values, values.max() * 1e-15))
    return (vectors * root) @ vectors.T, (vectors / root) @ vectors.T
