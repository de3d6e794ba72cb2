"""The ways to compute `onto`, and its privacy statement."""

from holdfast.imaging.choose import choose, name_of, ways
from holdfast.imaging.evidence import Evidence
from holdfast.imaging.plan import Way, certified
from holdfast.imaging.problem import Problem
from holdfast.imaging.promise import passed, promise

__all__ = ["Evidence", "Problem", "Way", "certified", "choose", "name_of", "passed", "promise", "ways"]
