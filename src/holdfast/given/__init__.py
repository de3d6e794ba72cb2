"""The ways to compute `given`, and its privacy statement."""

from holdfast.given.choose import Plan, Way, choose, name_of, ways
from holdfast.given.metropolis import UNMEASURED
from holdfast.given.prices.trees import forget
from holdfast.given.problem import Problem
from holdfast.given.promise import promise, statement_for

__all__ = [
    "UNMEASURED",
    "Plan",
    "Problem",
    "Way",
    "choose",
    "forget",
    "name_of",
    "promise",
    "statement_for",
    "ways",
]
