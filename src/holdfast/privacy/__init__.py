"""Guarantees: their words and numbers, calibration, composition."""

from typing import TYPE_CHECKING

from holdfast.privacy.composition import compose, for_records
from holdfast.privacy.guarantee import Guarantee, Promise, best_first
from holdfast.privacy.losses.conversion import pure_rho, rho_for, rho_to_delta, rho_to_epsilon
from holdfast.privacy.losses.gaussian import (
    classical_delta,
    classical_sigma,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
)
from holdfast.privacy.losses.integer_gaussian import (
    integer_gaussian_delta,
    integer_gaussian_epsilon,
    integer_gaussian_rho,
    integer_gaussian_sigma2,
)
from holdfast.privacy.rounding import inward, outward
from holdfast.rooms import on_demand

if TYPE_CHECKING:
    from holdfast.privacy.additive import Additive, AllDifferences, Differences, Target

# What is computed from a query loads queries and noise, and a reader of guarantees needs neither.
__getattr__ = on_demand(__name__, {"additive": ("Additive", "AllDifferences", "Differences", "Target")})

__all__ = [
    "Additive",
    "AllDifferences",
    "Differences",
    "Guarantee",
    "Promise",
    "Target",
    "best_first",
    "classical_delta",
    "classical_sigma",
    "compose",
    "for_records",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "integer_gaussian_delta",
    "integer_gaussian_epsilon",
    "integer_gaussian_rho",
    "integer_gaussian_sigma2",
    "inward",
    "outward",
    "pure_rho",
    "rho_for",
    "rho_to_delta",
    "rho_to_epsilon",
]
