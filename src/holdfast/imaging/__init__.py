"""The ways to compute `onto`, and its privacy statement."""

from holdfast.imaging.choose import Way, choose, name_of, ways
from holdfast.imaging.problem import Problem
from holdfast.imaging.promise import promise

__all__ = ["Problem", "Way", "choose", "name_of", "promise", "ways"]
