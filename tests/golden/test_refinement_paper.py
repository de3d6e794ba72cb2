"""Figures of LR (Ying, Wu, Wang): Example 1, the grades of (11), Theorem 2 as printed, and the appendix attack."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import ortho_group

import holdfast as hf
from holdfast.refinement import LinearRefinement, printed_theorem_2

HALF = Fraction(1, 2)
EXAMPLE = LinearRefinement([[HALF, -HALF], [-HALF, HALF]], [[HALF], [HALF]])
#: A, B, C, D, F, passed, total; passed and total are sums, and 80 students have an A or a B.
GRADES = np.array([[1, 1, 1, 1, 0, -1, 0], [0, 0, 0, 0, 1, 1, -1], [1, 1, 0, 0, 0, 0, 0]]).T
ONE_MORE_A = [1, 0, 0, 0, 0, 1, 1]


def test_example_1_loses_twice_epsilon():
    found = hf.refinement_loss(EXAMPLE, [1, 0], 1)  # scale 1/ε at ε = 1
    assert found.exact == 2
    assert found.outputs == (0,)
    assert found.attained
    assert hf.refinement_loss(EXAMPLE, [1, 0], 1, outputs=[0, 1]) == np.inf  # µ₁ + µ₂ changed: disjoint supports


def test_example_1_attains_its_loss_in_the_tail():
    # X̂₁ − µ₁ is half the difference of two Laplace variables, whose density is (1 + |s|)·e^−|s|/4
    slopes = [np.log((1 + s) / (3 + s)) + 2 for s in (10.0, 100.0, 1e4, 1e6)]
    rho = float(hf.refinement_loss(EXAMPLE, [1, 0], 1))
    assert all(early < late < rho for early, late in pairwise(slopes))
    assert slopes[-1] > rho - 1e-5


def test_printed_theorem_depends_on_the_sign_in_example_1():
    found = sorted(printed_theorem_2(EXAMPLE, [[1], [1]], [1, 0], 1, [[sign]]) for sign in (1, -1))
    assert found == pytest.approx([1.0, 2.0])


def test_grades_lose_five_thirds_epsilon():
    refinement = LinearRefinement.best(GRADES)
    found = hf.refinement_loss(refinement, ONE_MORE_A, 3)  # one record changes three answers: scale 3/ε
    assert found.exact == Fraction(5, 3)
    seen = hf.refinement_loss(refinement, ONE_MORE_A, 3, outputs=[0, 2, 4, 5])  # A, C, F and passed
    assert seen.exact == Fraction(5, 3)
    # the same from the matrix as doubles, whose entries are no longer exact
    assert hf.refinement_loss(refinement.A, ONE_MORE_A, 3).exact == Fraction(5, 3)


@pytest.mark.slow
def test_printed_theorem_gives_a_range_around_the_loss_of_the_grades():
    refinement = LinearRefinement.best(GRADES)
    rng = np.random.default_rng(7)
    found = [
        printed_theorem_2(refinement, GRADES, ONE_MORE_A, 1, ortho_group.rvs(3, random_state=rng)) for _ in range(4000)
    ]
    assert 1.0 - 1e-9 <= min(found) < 1.02
    assert 1.78 < max(found) < 1.7955
    assert min(found) < 5 / 3 < max(found)


@pytest.mark.parametrize("k", [1, 2, 5, 40])
def test_appendix_attack(k):
    share = Fraction(1, k + 1)
    attack = LinearRefinement([[share, share], [0, 1]], [[share], [0]])
    assert attack.unbiased([[k], [-1]])
    assert not attack.constrained([[k], [-1]])
    assert hf.refinement_loss(attack, [1, -1], 2, outputs=[0]).exact == Fraction(k + 1, 2)  # scale 2/ε
    assert hf.refinement_loss(attack, [1, -1], 2).exact == Fraction(k + 3, 2)


def test_no_loss_beyond_epsilon_where_the_known_figures_do_not_change():
    structural = GRADES[:, :2]
    changes = [[1, 0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 1, 0, 1]]
    assert hf.refinement_loss(LinearRefinement.best(structural), changes, 3).exact <= 1
