"""How far weighted sums of independent noise reach, in their standard errors: proved, whatever the weights are.

Proofs: docs/theory/error-bars.md, section 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import special

from holdfast.arrays import Floats
from holdfast.noise.gaussian import IntegerGaussian
from holdfast.noise.independent import Independent, Law

#: Slopes t·s that Chernoff's bound is tried at, and how far a sum of rounding errors is thought to pull, in its own
#: standard errors: any of them gives a bound.
SLOPES, PULLS = np.geomspace(0.01, 1.414, 800), np.linspace(0.25, 6.0, 116)
#: For a symmetric law with one peak: P(|x| ≥ q) ≤ (r/(r+1))^r E|x|^r/q^r, for r = 2 and 4.
GAUSS, FOURTH = (2 / 3) ** 2, (4 / 5) ** 4
#: From this σ² on, whole Gaussian noise has a fourth cumulant below this part of its squared variance.
WIDE, FLAT = 1, 1e-4


def reach_of(law: Independent) -> Callable[[float], float]:
    """Return how many standard errors a weighted sum reaches on either side, `tail` of the time at most on each."""
    known = [
        (one, float(parameter)) for one, parameter in zip(law.laws, law.scale_values, strict=True) if one and parameter
    ]
    if law.kind == "gaussian" and not law.integer:
        return lambda tail: -float(special.ndtri(tail))
    least = min(one.variance for one, _ in known)
    excess = max(_excess(one) for one, _ in known)
    widest = max(parameter / one.variance for one, parameter in known)

    def reach(tail: float) -> float:
        first = math.sqrt(-2 * math.log(tail) * widest) if law.kind == "gaussian" else _chernoff(law, least, tail)
        return min(first, _one_peak(2 * tail, 1 / least if law.integer else 0.0, excess))

    return reach


def _chernoff(law: Independent, least: float, tail: float) -> float:
    """The least of (−log tail − log(1 − κτ²/2))/τ over slopes τ, for Laplace noise of this least variance."""
    x = SLOPES / math.sqrt(least)
    curve = np.cosh(np.minimum(x, 700.0)) - 1 if law.integer else x**2 / 2
    room = 1 - least * curve
    allowed = room > 0
    return float(((-math.log(tail) - np.log(room[allowed])) / SLOPES[allowed]).min(initial=math.inf))


def _one_peak(outside: float, step: float, excess: float) -> float:
    """Gauss's inequality for the sum, and its like for fourth moments; `step`: 1/variance of whole noise, else 0.

    Rounding errors, uniform between −½ and ½, give whole noise a law with one peak: the sum with them has variance
    1 + step/12 at most. Where the sum lies outside, it does so with them too, `pulls` nearer, but for P(f < −pull).
    """
    rounding = math.sqrt(step / 12)
    second = 1 + rounding**2
    fourth = 3 * second**2 + excess
    inward = np.minimum(np.exp(-(PULLS**2) / 2), np.minimum(GAUSS / PULLS**2, 3 * FOURTH / PULLS**4) / 2)
    allowed: Floats = outside * (1 - inward) if rounding else np.full_like(PULLS, outside)
    far = np.minimum(np.sqrt(GAUSS * second / allowed), (FOURTH * fourth / allowed) ** 0.25)
    return float((far + (PULLS * rounding if rounding else 0.0)).min())


def _excess(law: Law) -> float:
    """The fourth cumulant in squared variances, or more."""
    if law.kind == "laplace":
        return 3 + (1 / law.variance if law.integer else 0.0)
    if isinstance(law, IntegerGaussian) and law.sigma2 < WIDE:
        k = np.arange(-40, 41)
        mass = np.exp(law.log_density(k))
        return max(0.0, float(mass @ k**4) / law.variance**2 - 3) + FLAT
    return FLAT
