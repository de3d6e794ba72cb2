"""How much noise for how much privacy: every calibration in one place.

Continuous Gaussian noise by its exact curve (`gaussian`), integer Gaussian noise by its own loss law
(`integer_gaussian`), the papers' classical formula as a named reference. Laplace noise needs none of
these: its pure ε is the largest Σ|d_i|/λ_i, a rational number.
"""

from holdfast.privacy.gaussian import (
    classical_delta,
    classical_sigma,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
)
from holdfast.privacy.integer_gaussian import (
    integer_gaussian_delta,
    integer_gaussian_epsilon,
    integer_gaussian_rho,
    integer_gaussian_sigma2,
)

__all__ = [
    "classical_delta",
    "classical_sigma",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "integer_gaussian_delta",
    "integer_gaussian_epsilon",
    "integer_gaussian_rho",
    "integer_gaussian_sigma2",
]
