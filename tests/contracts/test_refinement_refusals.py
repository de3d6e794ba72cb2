"""What a refinement refuses, and in which words."""

import numpy as np
import pytest

import holdfast as hf
from holdfast.refinement import LinearRefinement, printed_theorem_2

BEST = LinearRefinement.best([[1], [1]])


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: hf.refine([1.0, 2.0]), "nothing is known"),
        (lambda: hf.refine([1.0, 2.0], [[1], [1]]), "go together"),
        (lambda: hf.refine([1.0, 2.0], [[1], [1], [1]], [3]), "must have 2 rows"),
        (lambda: hf.refine([1.0, 2.0], [[1], [1]], [3, 4]), "c must hold 1 numbers"),
        (lambda: hf.refine([1.0, np.nan], [[1], [1]], [3]), "finite"),
        (lambda: hf.refine([1.0, 2.0], [[1, 2], [1, 2]], [3, 7]), "cannot hold"),
        (lambda: hf.refine([1.0, 2.0], [[1], [1]], [3], [1, 0]), "above 0"),
        (lambda: hf.refine([1.0, 2.0], [[1], [1]], [3], [[1, 2], [2, 1]]), "positive definite"),
        (lambda: hf.refine([1.0, 2.0], [[1], [1]], [3], [[1, 2], [0, 1]]), "symmetric"),
        (lambda: hf.refine([1.0, 2.0], [[1], [1]], [3], [1, 2, 3]), "2 variances"),
        (lambda: hf.refine([1.0], [[1]], [3], [[1]], knowledge=hf.nonnegative()), "one variance per output"),
        (lambda: hf.refine([1.0, 2.0], knowledge=hf.invariant([[1, 1]])), "structural"),
        (lambda: hf.refine([1.0, 2.0], knowledge=3), "must be a constraint"),
        (lambda: hf.refinement_loss([[1, 2]], [1], 1), "square"),
        (lambda: hf.refinement_loss(BEST, [1], 1), r"shape \(2,\)"),
        (lambda: hf.refinement_loss(BEST, [1, 0], 0), "above 0"),
        (lambda: hf.refinement_loss(BEST, [1, 0], [1, 2, 3]), "one number or 2 numbers"),
        (lambda: hf.refinement_loss(BEST, [1, 0], 1, outputs=[2]), "between 0 and 1"),
        (lambda: hf.refinement_loss(BEST, [1, 0], 1, integer=1), "True or False"),
        (lambda: hf.refinement_loss([[2**0.5]], [1], 1), "give fractions"),
        (lambda: hf.calibrate_refinement(BEST, [1, 0], 1, outputs=[0, 1]), "never coincide"),
        (lambda: hf.calibrate_refinement(BEST, [1, 0], -1), "above 0"),
        (lambda: hf.calibrate_refinement(BEST, [1, 0], 1, relative=[1, 2, 3]), "relative must be one number or 2"),
        (lambda: LinearRefinement([[1, 0], [0, 1]], [[1]]), "shape"),
        (lambda: LinearRefinement.best([[1], [1]], [[1, 2], [2, 1]]), "positive definite"),
        (lambda: BEST.unbiased([[1], [1], [1]]), "shape"),
        (lambda: BEST.refine([1.0, 2.0, 3.0], [1]), "noisy must have shape"),
        (lambda: printed_theorem_2(BEST, [[1], [1]], [0, 0], 1), "not be zero"),
        (lambda: printed_theorem_2(BEST, [[1], [1]], [1, 0], 1, [[2]]), "orthogonal"),
        (lambda: printed_theorem_2(LinearRefinement(np.eye(2), [[0], [0]]), [[1], [1]], [1, 0], 1), "rank"),
    ],
)
def test_refusals(ask, words):
    with pytest.raises(hf.Refused, match=words):
        ask()
