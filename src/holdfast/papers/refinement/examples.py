"""The refinements of the paper: Example 1, the grades of (11), and the appendix'."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from holdfast.refinement import LinearRefinement

HALF = Fraction(1, 2)
#: Example 1: two answers whose sum is known.
EXAMPLE = LinearRefinement([[HALF, -HALF], [-HALF, HALF]], [[HALF], [HALF]])
EXAMPLE_B = [[1], [1]]
#: (11): A, B, C, D, F, passed, total; two sums by definition, and 80 students with an A or a B.
GRADES = np.array([[1, 1, 1, 1, 0, -1, 0], [0, 0, 0, 0, 1, 1, -1], [1, 1, 0, 0, 0, 0, 0]]).T
NAMES = ("A", "B", "C", "D", "F", "passed", "total")
#: What one student more changes.
ONE_MORE = {
    "A": (1, 0, 0, 0, 0, 1, 1),
    "B": (0, 1, 0, 0, 0, 1, 1),
    "C": (0, 0, 1, 0, 0, 1, 1),
    "D": (0, 0, 0, 1, 0, 1, 1),
    "F": (0, 0, 0, 0, 1, 0, 1),
}


def appendix(k: int) -> LinearRefinement:
    """The refinement of the appendix: X̂₁ = (X₁ + X₂ + c)/(k + 1), X̂₂ = X₂."""
    share = Fraction(1, k + 1)
    zero, one = Fraction(0), Fraction(1)
    return LinearRefinement([[share, share], [zero, one]], [[share], [zero]])
