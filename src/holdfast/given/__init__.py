"""The ways to compute `given`, and its privacy statement."""

from holdfast.given.choose import Plan, Way, choose, name_of, refuse_tau, ways
from holdfast.given.prices.trees import forget
from holdfast.given.problem import LARGEST_TAU, LEAST_TAU, TAU, Problem, distance_of
from holdfast.given.promise import TOO_FAR, default_tau, promise, statement_for

__all__ = [
    "LARGEST_TAU",
    "LEAST_TAU",
    "TAU",
    "TOO_FAR",
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
