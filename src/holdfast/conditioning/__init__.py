"""The ways to compute `given`, and its privacy statement."""

from holdfast.conditioning.choose import Plan, Way, choose, is_exact, name_of, ways
from holdfast.conditioning.price import forget
from holdfast.conditioning.problem import Problem
from holdfast.conditioning.promise import promise

__all__ = ["Plan", "Problem", "Way", "choose", "forget", "is_exact", "name_of", "promise", "ways"]
