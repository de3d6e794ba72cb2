"""Compiled normal laws: quantiles, tails and draws between bounds, as fine far out as in the middle.

The quantile is Wichura's algorithm AS 241 (1988), relative error about 1e-16. A law cut far from its middle is drawn by
the logarithm of its tail, so that nothing is lost where probabilities are no doubles any more.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from holdfast.arrays import compiled

#: Where the tail is known by its continued fraction only; beyond, erfc would lose digits and then be 0.
FAR = 5.0
LOG_ROOT = 0.5 * math.log(2 * math.pi)

#: Numerators and denominators of AS 241, highest power first.
_MIDDLE_ABOVE = (
    2.5090809287301226727e3,
    3.3430575583588128105e4,
    6.7265770927008700853e4,
    4.5921953931549871457e4,
    1.3731693765509461125e4,
    1.9715909503065514427e3,
    1.3314166789178437745e2,
    3.3871328727963666080e0,
)
_MIDDLE_BELOW = (
    5.2264952788528545610e3,
    2.8729085735721942674e4,
    3.9307895800092710610e4,
    2.1213794301586595867e4,
    5.3941960214247511077e3,
    6.8718700749205790830e2,
    4.2313330701600911252e1,
    1.0,
)
_NEAR_ABOVE = (
    7.74545014278341407640e-4,
    2.27238449892691845833e-2,
    2.41780725177450611770e-1,
    1.27045825245236838258e0,
    3.64784832476320460504e0,
    5.76949722146069140550e0,
    4.63033784615654529590e0,
    1.42343711074968357734e0,
)
_NEAR_BELOW = (
    1.05075007164441684324e-9,
    5.47593808499534494600e-4,
    1.51986665636164571966e-2,
    1.48103976427480074590e-1,
    6.89767334985100004550e-1,
    1.67638483018380384940e0,
    2.05319162663775882187e0,
    1.0,
)
_TAIL_ABOVE = (
    2.01033439929228813265e-7,
    2.71155556874348757815e-5,
    1.24266094738807843860e-3,
    2.65321895265761230930e-2,
    2.96560571828504891230e-1,
    1.78482653991729133580e0,
    5.46378491116411436990e0,
    6.65790464350110377720e0,
)
_TAIL_BELOW = (
    2.04426310338993978564e-15,
    1.42151175831644588870e-7,
    1.84631831751005468180e-5,
    7.86869131145613259100e-4,
    1.48753612908506148525e-2,
    1.36929880922735805310e-1,
    5.99832206555887937690e-1,
    1.0,
)


@compiled(inline="always", fastmath={"contract"})
def _polynomial(c: tuple[float, ...], x: float) -> float:  # pragma: no cover (compiled)
    return ((((((c[0] * x + c[1]) * x + c[2]) * x + c[3]) * x + c[4]) * x + c[5]) * x + c[6]) * x + c[7]


@compiled(fastmath={"contract"})
def quantile_of_tail(tail: float) -> float:  # pragma: no cover (compiled)
    """The x ≥ 0 with P(Z > x) = tail, for 0 < tail ≤ 1/2."""
    centred = 0.5 - tail
    if centred <= 0.425:
        square = 0.180625 - centred * centred
        return centred * _polynomial(_MIDDLE_ABOVE, square) / _polynomial(_MIDDLE_BELOW, square)
    root = math.sqrt(-math.log(tail))
    if root <= 5.0:
        return _polynomial(_NEAR_ABOVE, root - 1.6) / _polynomial(_NEAR_BELOW, root - 1.6)
    return _polynomial(_TAIL_ABOVE, root - 5.0) / _polynomial(_TAIL_BELOW, root - 5.0)


@compiled(inner=True)
def normal(word: np.uint64) -> float:  # pragma: no cover (compiled)
    """A standard normal number from 64 random bits: one for the sign, 63 for the tail."""
    tail = (np.float64(word >> np.uint64(1)) + 0.5) * 2.0**-64
    size = quantile_of_tail(tail)
    return -size if word & np.uint64(1) else size


@compiled
def make_normals(words: Any, noise: Any, deviation: float) -> None:  # pragma: no cover (compiled)
    """Write independent normal numbers (size, n), made of words of that shape, perhaps in the place of the words."""
    for row in range(words.shape[0]):
        for i in range(words.shape[1]):
            noise[row, i] = deviation * normal(words[row, i])


@compiled
def log_tail(x: float) -> float:  # pragma: no cover (compiled)
    """log P(Z > x)."""
    if x < -1.0:
        return math.log1p(-0.5 * math.erfc(-x * math.sqrt(0.5)))
    if x < FAR:
        return math.log(0.5 * math.erfc(x * math.sqrt(0.5)))
    fraction = 0.0
    for k in range(60, 0, -1):
        fraction = k / (x + fraction)
    return -0.5 * x * x - LOG_ROOT - math.log(x + fraction)


@compiled
def quantile_of_log_tail(log_share: float) -> float:  # pragma: no cover (compiled)
    """The x with log P(Z > x) = log_share, for log_share < 0."""
    if log_share > -0.6931471805599453:
        return -quantile_of_tail(-math.expm1(log_share))
    if log_share > -650.0:
        return quantile_of_tail(math.exp(log_share))
    x = math.sqrt(-2.0 * (log_share + LOG_ROOT))
    for _ in range(6):  # Newton on the logarithm: slope −(x + 1/x…) is nearly −x out there
        x += (log_tail(x) - log_share) / x
    return x
