"""The list of possible tables against brute force over a box, for random systems of equalities and inequalities."""

import itertools

import numpy as np
import pytest

import holdfast as hf
from holdfast.given import Problem
from holdfast.given.exact.enumeration import possible_tables


@pytest.mark.parametrize("seed", range(30))
def test_listed_tables_are_exactly_the_possible_ones(seed):
    rng = np.random.default_rng([4, seed])
    n = int(rng.integers(2, 5))
    top = 3
    truth = rng.integers(0, top + 1, size=n)
    must = hf.between(0, top)
    if rng.integers(2):
        rows = rng.integers(-2, 3, size=(int(rng.integers(1, 3)), n))
        rows[~rows.any(axis=1), 0] = 1
        must = must & hf.invariant(rows)
    if rng.integers(2):
        G = rng.integers(-2, 3, size=(1, n))
        G[~G.any(axis=1), 0] = 1
        must = must & hf.at_least(G, G @ truth - rng.integers(0, 3))
    if rng.integers(3) == 0:
        must = must & hf.equals([[1] * n], [int(truth.sum())])
    mechanism = hf.laplace(hf.histogram(n), scale=1).given(must)
    system = must.system(n)
    C = system.invariants.A.toarray()
    wanted = {
        z
        for z in itertools.product(range(top + 1), repeat=n)
        if system.violation(np.array(z)) is None and np.array_equal(C @ np.array(z), C @ truth)
    }
    found = possible_tables(Problem(mechanism.base.law, system), truth)
    assert len(found) == len(wanted)
    assert {tuple(row) for row in found.tolist()} == wanted
