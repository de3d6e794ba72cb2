"""Messages that are wide and flat: many unlike pieces under one node, with more noise than usual."""

import numpy as np
import pytest

import holdfast as hf
from holdfast.trees.circles.drawing import Drawing
from samplers import NONE, sampler, sums_up


@pytest.mark.parametrize("scale", [12, 20])
def test_many_unlike_pieces_with_wide_noise_are_drawn(scale):
    sizes = 2 + np.arange(1500) % 4
    parents = np.concatenate([[-1], np.zeros(sizes.size, dtype=int), 1 + np.repeat(np.arange(sizes.size), sizes)])
    tree = hf.Hierarchy.from_parents(parents)
    tables = hf.laplace(hf.counts(tree), scale=scale).given(hf.consistent(tree)).noise(4, rng=hf.seeded(4))
    for table in tables:
        assert (tree.sum_up(table[tree.leaves]) == table).all()
    # noise of leaves that must add up is a little smaller than free noise, whose mean absolute value is about the scale
    assert 0.6 * scale < np.abs(tables[:, tree.leaves]).mean() < scale


def test_a_far_bound_is_kept_where_one_parcel_pulls_hard():
    """A large leaf among empty ones, below a chain of outputs that hold their total: most noise would break it."""
    usual = 1 + np.repeat(np.arange(40), 20)
    parents = np.concatenate([[-1], np.zeros(40, int), usual, [0, 841, 842, 843], np.full(120, 844)])
    is_leaf = ~np.isin(np.arange(parents.size), parents)
    large = parents.size - 1
    low = np.where(is_leaf, -30, -NONE)
    low[845:] = 0
    low[large] = -365
    made = sampler(parents, "laplace", 8.0, low)
    tables = made.draw(5, hf.seeded(1))
    assert sums_up(parents, tables)
    assert (tables >= low).all()


def test_large_gaussian_leaves_among_empty_ones_are_drawn_at_once(monkeypatch):
    """The empty ones pull each by 10σ, near its far bound and beyond the usual table of weights."""
    groups, siblings = 30, 160
    parents = np.concatenate([np.full(groups, -1), np.repeat(np.arange(groups), siblings)])
    large = groups + siblings * np.arange(groups)
    low = np.where(np.arange(parents.size) < groups, -NONE, 0)
    low[large] = -143
    made = sampler(parents, "gaussian", 10.0, low, exact=range(groups))
    attempts, run = [], Drawing.run
    monkeypatch.setattr(Drawing, "run", lambda *given: attempts.append(1) or run(*given))
    tables = made.draw(3, hf.seeded(1))
    assert len(attempts) < 4
    assert sums_up(parents, tables)
    assert (tables >= low).all()
    assert (tables[:, :groups] == 0).all()
    assert -110 < tables[:, large].mean() < -80


def test_a_gaussian_leaf_stays_within_a_far_bound_that_it_is_pulled_against():
    low = np.r_[-NONE, -143, [0] * 500]
    made = sampler(np.r_[-1, [0] * 501], "gaussian", 10.0, low, exact=[0])
    drawn = made.draw(20, hf.seeded(2))
    assert (drawn >= low).all()
    assert drawn[:, 1].mean() < -130
