"""How far a point can be from the nearest one: a lower bound for all allowed points, by weak duality.

For any prices p of the equalities A x = r and any prices m ≥ 0 of the inequalities G x ≥ h, and c = Aᵀp + Gᵀm,

    least Σ f_i(x_i)  ≥  p·r + m·h + Σ_i min over low ≤ x ≤ high of [f_i(x) − c_i x] .

Whoever proposes the prices, the bound is true; good prices make it tight. The minimum is taken over whole steps where
whole steps are asked for, which makes the bound larger. It is evaluated in doubles: its rounding error is some 1e-15 of
the sizes added up. Nothing here is shared with the code that finds points or prices.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from holdfast.arrays import Array, Floats


def lower_bound(
    norm: str,
    weights: Floats,
    bounds: tuple[Floats, Floats],
    equalities: tuple[sparse.csr_array, Array],
    inequalities: tuple[sparse.csr_array, Array],
    prices: tuple[Floats, Floats],
    known: float,
    *,
    whole: bool,
) -> float:
    """Return a lower bound for Σ w x² or Σ w|x| over all allowed moves x.

    `known` is the value of some allowed move: better ones have no term above it, so infinite bounds become finite.
    """
    (A, r), (G, h) = equalities, inequalities
    p, m = prices[0], np.maximum(prices[1], 0.0)
    c = np.asarray(p @ A + m @ G)
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = known / weights if norm == "l1" else np.sqrt(known / weights)
    reach = np.where(weights > 0, reach * (1 + 1e-12) + 1e-12, np.inf)
    low, high = np.maximum(bounds[0], -reach), np.minimum(bounds[1], reach)
    if whole:
        low, high = np.ceil(low), np.floor(high)
    terms = _terms_l1(weights, c, low, high) if norm == "l1" else _terms_l2(weights, c, low, high, whole)
    return float(p @ r.astype(np.float64) + m @ h.astype(np.float64) + terms.sum())


def _terms_l2(weights: Floats, c: Floats, low: Floats, high: Floats, whole: bool) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        free = np.where(weights > 0, c / (2 * weights), np.where(c == 0, 0.0, np.where(c > 0, high, low)))
    x = np.clip(np.rint(free) if whole else free, low, high)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(weights > 0, weights * x**2, 0.0) - np.where(c == 0, 0.0, c * x))


def _terms_l1(weights: Floats, c: Floats, low: Floats, high: Floats) -> Floats:
    ends = [np.clip(0.0, low, high), low, high]
    with np.errstate(invalid="ignore"):
        costs = [np.where(weights > 0, weights * np.abs(x), 0.0) - np.where(c == 0, 0.0, c * x) for x in ends]
    return np.asarray(np.minimum(np.minimum(costs[0], costs[1]), costs[2]))
