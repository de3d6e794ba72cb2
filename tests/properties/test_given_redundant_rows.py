"""Exact figures that follow from others change nothing: no noise is lost and none is added."""

from __future__ import annotations

import numpy as np
import pytest

import holdfast as hf
from holdfast.constraints.system.independent_blocks import independent_outputs, split_system

#: The third row is the sum of the two others, which have no output in common.
TWO_SUMS, THEIR_SUM = [[1, 1, 0, 0], [0, 0, 1, -1]], [1, 1, 1, -1]


@pytest.mark.parametrize("make", [hf.laplace, hf.gaussian])
@pytest.mark.parametrize("integer", [True, False])
def test_a_sum_of_exact_figures_takes_no_noise_away(make, integer):
    noise = make(hf.histogram(4), scale=5, integer=integer)
    plain = noise.given(hf.invariant(TWO_SUMS))
    told_twice = noise.given(hf.invariant([*TWO_SUMS, THEIR_SUM]))
    draws = told_twice.noise(300, rng=hf.seeded(1))
    assert (draws != 0).any(axis=0).all()
    assert np.allclose(told_twice.standard_error(), plain.standard_error(), rtol=0.1)
    assert np.allclose(draws.std(axis=0), plain.standard_error(), rtol=0.3)


def test_the_figures_may_be_structural_too():
    tree = hf.Hierarchy.from_parents([-1, 0, 0])
    held = hf.equals([[0, 1, 1]], [0]) & hf.consistent(tree) & hf.fixed([0], [0])
    draws = hf.laplace(hf.counts(tree), scale=5).given(held).noise(300, rng=hf.seeded(2))
    assert not draws[:, 0].any()
    assert (draws[:, 1] == -draws[:, 2]).all()
    assert draws[:, 1].std() > 2


@pytest.mark.parametrize("seed", range(40))
def test_shares_have_all_the_freedom_there_is(seed):
    """Random rows, some of them combinations of others: the parts of a split system leave open what the whole does."""
    random = np.random.default_rng(seed)
    n = int(random.integers(3, 8))
    rows = random.integers(-1, 2, size=(int(random.integers(1, 4)), n)) * (random.random(n) < 0.5)
    mixed = random.integers(-2, 3, size=(2, len(rows))) @ rows
    C = np.concatenate([rows, mixed])
    C = C[C.any(axis=1)]
    if not len(C):
        return
    system = hf.invariant(C.tolist()).system(n)
    groups = independent_outputs(system, system.null_space().rows)
    parts = list(split_system(system, groups))
    assert sum(part.null_space().dimension for part in parts) == system.null_space().dimension
    for outputs, part in zip(groups, parts, strict=True):
        basis = part.null_space().lattice_basis().toarray()
        inside = np.zeros((n, basis.shape[1]), dtype=int)
        inside[outputs] = basis
        assert not (C @ inside).any()
