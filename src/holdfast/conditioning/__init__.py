"""The ways to compute `given`, and its privacy statement."""

from holdfast.conditioning.choose import Plan, Way, choose, name_of, ways
from holdfast.conditioning.evidence import Evidence
from holdfast.conditioning.price import forget
from holdfast.conditioning.problem import Problem
from holdfast.conditioning.promise import promise, statement_for

__all__ = ["Evidence", "Plan", "Problem", "Way", "choose", "forget", "name_of", "promise", "statement_for", "ways"]
