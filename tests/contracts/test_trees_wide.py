"""Messages that are wide and flat: many unlike pieces under one node, with more noise than usual."""

import numpy as np
import pytest

import holdfast as hf
from samplers import NONE, sampler, sums_up


@pytest.mark.parametrize("scale", [12, 20])
def test_many_unlike_pieces_with_wide_noise_are_drawn(scale):
    sizes = 2 + np.arange(1500) % 4
    parents = np.concatenate([[-1], np.zeros(sizes.size, dtype=int), 1 + np.repeat(np.arange(sizes.size), sizes)])
    tree = hf.Hierarchy.from_parents(parents)
    tables = hf.laplace(hf.counts(tree), scale=scale).given(hf.consistent(tree)).noise(20, rng=hf.seeded(4))
    for table in tables:
        assert (tree.sum_up(table[tree.leaves]) == table).all()
    # noise of leaves that must add up is a little smaller than free noise, whose mean absolute value is about the scale
    assert 0.6 * scale < np.abs(tables[:, tree.leaves]).mean() < scale


def test_parcels_of_wide_and_narrow_leaves_have_all_their_messages():
    """Narrow leaves keep windows within doubles; the mean of many wide ones may lie beyond."""
    made = sampler(
        np.r_[-1, np.zeros(64, int)], "laplace", np.r_[500.0, np.full(63, 60.0), 0.4], np.r_[-NONE, [0] * 64]
    )
    _, slots, _ = made.messages.blocks
    pieces = made.messages.pieces
    kinds = pieces.leaf_kind[pieces.first[0] :][: pieces.members[0]]
    alike = int((kinds == kinds[0]).argmin())
    assert alike == 63
    assert slots[kinds[0], alike] >= 0


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
    assert not made.messages.prospect.is_rough
    assert made.messages.far.tolist() == [large]
    kept = made.ready
    assert np.flatnonzero(kept.pulled).tolist() == [large]
    assert kept.far.size == 0
    tables = made.draw(5, hf.seeded(1))
    assert sums_up(parents, tables)
    assert (tables >= low).all()


def test_far_bounds_are_left_out_where_nothing_pulls():
    parents = np.concatenate([[-1], np.zeros(40, int), 1 + np.repeat(np.arange(40), 20)])
    low = np.where(np.arange(parents.size) < 41, -NONE, -1000)
    made = sampler(parents, "laplace", 8.0, low)
    assert made.ready.pulled is None
    assert made.messages.far.size == 800


def test_large_gaussian_leaves_among_empty_ones_are_drawn_at_once(monkeypatch):
    """The empty ones pull each by 10σ, near its far bound and beyond the usual table of weights."""
    groups, siblings = 30, 160
    parents = np.concatenate([np.full(groups, -1), np.repeat(np.arange(groups), siblings)])
    large = groups + siblings * np.arange(groups)
    low = np.where(np.arange(parents.size) < groups, -NONE, 0)
    low[large] = -143
    made = sampler(parents, "gaussian", 10.0, low, exact=range(groups))
    attempts, once = [], type(made)._draw_rows

    def counted(self, noise, keys, start, attempt):
        attempts.append(attempt)
        assert attempt < 5
        return once(self, noise, keys, start, attempt)

    monkeypatch.setattr(type(made), "_draw_rows", counted)
    assert made.messages.far.size == groups
    tables = made.draw(3, hf.seeded(1))
    assert max(attempts) == 0
    assert sums_up(parents, tables)
    assert (tables >= low).all()
    assert (tables[:, :groups] == 0).all()
    assert -110 < tables[:, large].mean() < -80


def test_a_gaussian_leaf_stays_within_a_far_bound_that_it_is_pulled_against():
    low = np.r_[-NONE, -143, [0] * 500]
    made = sampler(np.r_[-1, [0] * 501], "gaussian", 10.0, low, exact=[0])
    drawn = made.draw(20, hf.seeded(2))
    assert made.ready.far.size == 0
    assert (drawn >= low).all()
    assert drawn[:, 1].mean() < -130
