"""What a weighted (oblique) projection of continuous noise costs in the subspace scope (THEORY §3).

The output's part in N moves by Π_N d; noise moved by t moves it by P t. So the loss is at most
min{Σ|t_i|/λ_i : P t = Π_N d} for Laplace noise, and min{Σt_i²/σ_i² : …} for Gaussian noise. Every t = Π_N d + VAᵀy is
allowed (P leaves N alone and kills VAᵀy), so any y gives a true bound: a linear program or least squares proposes
y, and the bound is then evaluated for that y, with the errors of the projection and of the sums added to every |t_i|.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Floats
from holdfast.exact.solver import linear_program, solved
from holdfast.onto.problem import Problem
from holdfast.privacy import Additive

#: Largest number of linear programs (one per difference) and of outputs for which the loss is computed.
MOST_DIFFERENCES = 4_000
MOST_OUTPUTS = 2_000
#: Sums of the bound are evaluated in doubles; this margin is far above their relative rounding for such sizes.
MARGIN = Fraction(1, 10**9)
#: Twice the unit roundoff.
STEP = 2.0**-52


def oblique_loss(base: Additive, problem: Problem) -> Fraction | None:
    """Return an upper bound, tight up to the linear program's accuracy; None where it is not computed."""
    if base.query.cells is None or problem.n > MOST_OUTPUTS or np.isinf(base.law.variances).any():
        return None
    try:
        differences = base.query.differences(base.neighbours) / float(base.unit)
    except Refused:
        return None
    # d and −d cost the same: one of each pair is enough.
    first = np.argmax(differences != 0, axis=1)
    differences = differences[differences[np.arange(len(differences)), first] > 0]
    if len(differences) > MOST_DIFFERENCES:
        return None
    scales = np.array([float(value) for value in base.law.scale_values if value is not None])
    rates = 1 / (scales[base.law.which] if base.law.which is not None else np.full(problem.n, scales[0]))
    cheapest = _cheapest if base.law.kind == "laplace" else _shortest
    try:
        projected = problem.space.enclosed(differences.T)
    except Refused:
        return None
    directions = problem.sound.unit.toarray()  # rows of A V^½ of length 1: t = Π_N d + V^½ (A V^½)ᵀ y
    if problem.sound.root is not None:
        directions = directions * problem.sound.root
    worst = max(
        (
            cheapest(target, far, directions, rates)
            for target, far in zip(projected.values.T, projected.radius.T, strict=True)
        ),
        default=0.0,
    )
    return Fraction(worst) * (1 + MARGIN)


def _cheapest(target: Floats, far: Floats, directions: Floats, rates: Floats) -> float:
    """min over y of Σ rates·|target + directionsᵀy|: variables y free and s ≥ |target + directionsᵀ y|."""
    rank, n = directions.shape
    A = np.block([[-directions.T, np.eye(n)], [directions.T, np.eye(n)]])
    costs, least = np.append(np.zeros(rank), rates), np.append(np.full(rank, -np.inf), np.zeros(n))
    found = solved(linear_program(A, costs, (least, np.inf), (np.append(target, -target), np.inf)))
    tried = [np.zeros(rank)] if found is None else [np.zeros(rank), found[:rank]]
    return min(float((rates * _sizes(target, far, directions, each)).sum()) for each in tried)


def _shortest(target: Floats, far: Floats, directions: Floats, rates: Floats) -> float:
    """min over y of Σ rates·(target + directionsᵀy)²: weighted least squares."""
    roots = np.sqrt(rates)
    y: Floats = np.asarray(np.linalg.lstsq((directions * roots).T, -target * roots)[0], dtype=np.float64)
    return float((rates * _sizes(target, far, directions, y) ** 2).sum())


def _sizes(target: Floats, far: Floats, directions: Floats, y: Floats) -> Floats:
    """Bound |Π_N d + directionsᵀy| from above, entry by entry, where the true Π_N d lies within `far` of the target.

    The directions are rows of AV, each entry within a few roundings; so the bound is about exact ones, too.
    """
    added = directions.T @ y
    rounding = (len(y) + 8) * STEP * (np.abs(target) + np.abs(directions).T @ np.abs(y))
    return np.abs(target + added) + far + 2 * rounding
