"""The ways to compute `onto`, and its privacy statement."""

from holdfast.onto.choose import choose, name_of, ways
from holdfast.onto.independent_shares import Way, certified
from holdfast.onto.problem import Problem
from holdfast.onto.promise import passed, promise

__all__ = ["Problem", "Way", "certified", "choose", "name_of", "passed", "promise", "ways"]
