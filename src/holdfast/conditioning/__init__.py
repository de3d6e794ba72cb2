"""The ways to compute `given`, and its privacy statement."""

from holdfast.conditioning.choose import Plan, Way, choose, name_of, refuse_tau, ways
from holdfast.conditioning.evidence import LARGEST_TAU, LEAST_TAU, TAU, Evidence, distance_of
from holdfast.conditioning.price import forget
from holdfast.conditioning.problem import Problem
from holdfast.conditioning.promise import TOO_FAR, default_tau, promise, statement_for

__all__ = [
    "LARGEST_TAU",
    "LEAST_TAU",
    "TAU",
    "TOO_FAR",
    "Evidence",
    "Plan",
    "Problem",
    "Way",
    "choose",
    "default_tau",
    "distance_of",
    "forget",
    "name_of",
    "promise",
    "refuse_tau",
    "statement_for",
    "ways",
]
