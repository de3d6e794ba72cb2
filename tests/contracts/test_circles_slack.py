"""Messages of ordinary tables stay near what they stand for, so that hardly any draw is begun again."""

import numpy as np
import pytest

import holdfast as hf
from holdfast.trees.circles.sampler import Sampler


@pytest.mark.parametrize(("groups", "size"), [(1_000, 100), (100, 1_000)])
def test_small_counts_below_many_groups_do_not_drown_messages(monkeypatch, groups, size):
    """A tilt far from the one above it, and nodes put in between, once made drawing take minutes."""
    slack, made = [], Sampler.made

    def noted(self, aliases):
        messages = made(self, aliases)
        slack.append(messages.slack.sum())
        return messages

    monkeypatch.setattr(Sampler, "made", noted)
    tree = hf.Hierarchy.from_parents([-1, *[0] * groups, *(1 + np.arange(groups * size) // size).tolist()])
    mechanism = hf.laplace(hf.counts(tree), scale=6).given(hf.consistent(tree) & hf.nonnegative())
    truth = tree.sum_up(np.random.default_rng(1).poisson(5, groups * size))
    assert (mechanism.simulate(truth, 1, rng=hf.seeded(1)) >= 0).all()
    assert slack[0] < 0.01
