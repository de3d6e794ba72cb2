"""One large cell among empty ones, for every way that only comes near its law: draws against listed or closed laws.

What is empty can only grow and pushes the large cell down; a way that follows free noise would miss this.
"""

import numpy as np
import pytest
from scipy import stats

import holdfast as hf
from holdfast.given import Problem
from holdfast.given.near import lines, walk
from listed_noise import listed as listed_law
from listed_noise import pearson

ALARM = 1e-6
CROSSED, ALL_PAIRS = [(0,), (1,)], [(0, 1), (0, 2), (1, 2)]
LARGE = [9, 0, 0, 0, 5, 5, 0, 5, 5]
CUBE = [9, 0, 1, 0, 2, 4, 0, 3, 2, 6, 1, 0]

# name: way, shape, margins, scale, truth, draws
CASES = {
    "swaps": (walk, (3, 3), CROSSED, 1, LARGE, 2_000),
    "lines": (walk, (2, 2, 3), ALL_PAIRS, 2, CUBE, 1_000),
}


def problem(shape, keep, scale, **words):
    query = hf.histogram(int(np.prod(shape)))
    held = hf.invariant(hf.exact_margins(shape, keep)) & hf.nonnegative()
    return Problem(hf.laplace(query, scale=scale, **words).base.law, held.system(query.n))


@pytest.mark.parametrize("name", CASES)
def test_draws_have_the_listed_law(name):
    way, shape, keep, scale, truth, size = CASES[name]
    asked, table = problem(shape, keep, scale), np.array(truth)
    assert way.accepts(asked)
    draws = way.draw(asked, table, size, hf.seeded(5))
    basis = asked.space.lattice_basis().toarray()
    assert pearson(draws, *listed_law(basis, "laplace", scale, 9, -table)) > ALARM
    assert pearson(draws, *listed_law(basis, "laplace", scale, 9)) < ALARM  # the law without bounds is rejected


def test_continuous_chains_leave_the_large_cell_a_gamma_law():
    """A 2×4 table with a first row (large, 0, 0, 0): −u₁₁ is the sum of three exponential numbers of mean λ/4."""
    asked = problem((2, 4), CROSSED, 2, integer=False)
    table = np.array([500.0, 0, 0, 0, 500, 500, 500, 500])
    assert lines.accepts(asked)
    fallen = -lines.draw(asked, table, 1_500, hf.seeded(6))[:, 0]
    assert stats.kstest(fallen, stats.gamma(3, scale=0.5).cdf).pvalue > ALARM
    assert stats.kstest(fallen, stats.gamma(3, scale=0.6).cdf).pvalue < ALARM
