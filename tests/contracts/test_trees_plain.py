"""Which hierarchies are drawn in plain numpy, and that nothing about them is refused because of the data."""

import numpy as np
import pytest

import holdfast as hf
from holdfast.given.exact import hierarchy
from holdfast.trees import Sampler
from holdfast.trees.plain.sampler import serves


def mechanism(leaves, law="laplace", scale=6):
    parents = np.concatenate([[-1], np.zeros(5), np.repeat(np.arange(1, 6), leaves // 5)]).astype(int)
    tree = hf.Hierarchy.from_parents(parents)
    query = hf.counts(tree)
    base = hf.laplace(query, scale=scale) if law == "laplace" else hf.gaussian(query, scale=scale)
    return tree, base.given(hf.consistent(tree) & hf.nonnegative())


def test_sizes_alone_decide(monkeypatch):
    asked = []
    monkeypatch.setattr(hierarchy, "serves", lambda law, rows: asked.append((law.n, rows)) or serves(law, rows))
    monkeypatch.setattr(Sampler, "draw", lambda *_: pytest.fail("compiled"))
    _, noise = mechanism(20)
    for truth in (np.zeros(20, dtype=int), np.arange(20)):
        noise.release(noise.query.answer(truth), rng=hf.seeded(1))
    assert asked == [(26, 1), (26, 1)]
    law = noise.base.law
    assert serves(law, 100)
    assert not serves(law, 100_000)
    assert not serves(mechanism(20, scale=10_000)[1].base.law, 1)
    assert not serves(mechanism(4_000)[1].base.law, 1)


HARD = {
    "all empty": lambda n: np.zeros(n, dtype=int),
    "one of a million": lambda n: np.where(np.arange(n) == 3, 10**6, 0),
    "one large": lambda n: np.where(np.arange(n) == 3, 700, 0),
    "mostly empty": lambda n: np.where(np.arange(n) % 20 == 0, 60, 0),
}


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", HARD)
def test_no_table_is_refused(name, law):
    tree, noise = mechanism(500, law, scale=2)
    truth = noise.query.answer(HARD[name](500))
    drawn = noise.simulate(truth, 3, rng=hf.seeded(2))
    assert (drawn >= 0).all()
    assert np.array_equal(drawn, [tree.sum_up(row[tree.leaves]) for row in drawn])


def test_a_neighbouring_scale_may_be_far_off():
    tree = hf.Hierarchy.from_parents([-1, *([0] * 40)])
    scales = [60, *([60, 0.4] * 20)]
    noise = hf.laplace(hf.counts(tree), scale=scales).given(hf.consistent(tree) & hf.nonnegative())
    drawn = noise.simulate(noise.query.answer(np.arange(40) * 3), 5, rng=hf.seeded(4))
    assert (drawn >= 0).all()
    assert (drawn[:, 0] == drawn[:, 1:].sum(axis=1)).all()


@pytest.mark.slow
def test_one_large_leaf_may_be_among_any_number_of_empty_ones():
    """The total may be any part of what the empty leaves have: all of its values are as likely."""
    n = 30_000
    tree = hf.Hierarchy.from_parents(np.r_[-1, np.zeros(n, dtype=int)])
    noise = hf.laplace(hf.counts(tree), scale=6).given(hf.consistent(tree) & hf.nonnegative(at=tree.leaves))
    truth = noise.query.answer(np.where(np.arange(n) == 7, 10**6, 0))
    drawn = noise.simulate(truth, 1, rng=hf.seeded(3))[0]
    assert (drawn[tree.leaves] >= 0).all()
    assert np.array_equal(drawn, tree.sum_up(drawn[tree.leaves]))
    others = drawn[0] - drawn[8]
    assert others / n == pytest.approx(1 / (np.exp(1 / 3) - 1), rel=0.02)  # each empty leaf is pulled by one more 1/λ


@pytest.mark.slow
def test_large_gaussian_leaves_far_beyond_their_tables_are_drawn():
    n = 30_000
    tree = hf.Hierarchy.from_parents(np.r_[-1, np.zeros(n, dtype=int)])
    noise = hf.gaussian(hf.counts(tree), scale=6).given(hf.consistent(tree) & hf.nonnegative(at=tree.leaves))
    drawn = noise.simulate(noise.query.answer(np.where(np.arange(n) < 3, 9_000, 0)), 1, rng=hf.seeded(3))[0]
    assert (drawn[tree.leaves] >= 0).all()
    assert np.array_equal(drawn, tree.sum_up(drawn[tree.leaves]))


def test_what_some_data_would_not_allow_is_said_before_any_is_seen():
    tree = hf.Hierarchy.from_parents(np.r_[-1, np.zeros(300, dtype=int), 1 + np.repeat(np.arange(300), 200)])
    held = hf.consistent(tree) & hf.nonnegative(at=tree.leaves)
    wide = hf.laplace(hf.counts(tree), scale=100_000).given(held)
    sentences = set()
    for counts in (np.zeros(60_000, dtype=int), np.arange(60_000)):
        with pytest.raises(hf.Refused, match="so wide on so many outputs within bounds") as caught:
            wide.release(wide.query.answer(counts))
        sentences.add(str(caught.value))
    assert len(sentences) == 1
