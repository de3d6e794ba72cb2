"""Tables that are hard to draw on a hierarchy: whatever the counts, they are drawn, or refused before any is seen."""

import numpy as np
import pytest

import holdfast as hf
from holdfast.trees.circles.drawing import Drawing

N = 60
ONE = np.where(np.arange(N) == 20, 10**6, 0)
SOME = np.random.default_rng(1).geometric(1 / 45, N)
#: Counts, and scales of the leaves or of all outputs; benchmarks/hard_tables.py has the same at larger sizes.
TABLES = {
    "all empty": (0 * ONE, 6),
    "one leaf of a million among empty ones": (ONE, 6),
    "one enormous leaf among full ones": (np.where(ONE > 0, 10**12, SOME), 6),
    "95 % empty": (np.where(np.arange(N) % 20, 0, 60), 6),
    "scales of 60 and 0.4 side by side": (SOME, np.where(np.arange(N) % 2, 60.0, 0.4)),
    "scale 0.05": (SOME % 3, 0.05),
    "scale 700": (SOME[:9], 700),
    "scale 700, one leaf of a million": (ONE[18:27], 700),
}


def mechanism(parents, law, scale):
    tree = hf.Hierarchy.from_parents(parents)
    if np.ndim(scale):
        scale = np.concatenate([np.full(tree.n - len(scale), 6.0), scale])
    base = (hf.laplace if law == "laplace" else hf.gaussian)(hf.counts(tree), scale=scale)
    return tree, base.given(hf.consistent(tree) & hf.nonnegative(at=tree.leaves))


SHAPES = {
    "flat": lambda n: np.r_[-1, np.zeros(n, int)],
    "groups": lambda n: np.r_[-1, 0, 0, 0, 1 + np.arange(n) * 3 // n],
}


def levels(n):
    """One output in one, then six, eighteen and so many."""
    return np.r_[-1, 0, 1, np.full(6, 2), 3 + np.arange(18) // 3, 9 + np.arange(n) * 18 // n]


def test_a_scale_of_a_twentieth_leaves_tails_to_all_messages():
    """Where windows have one place, series that begin far too high would grow from sum to sum."""
    tree, noise = mechanism(levels(600), "gaussian", 0.05)
    assert not noise.simulate(np.zeros(tree.n, dtype=int), 1, rng=hf.seeded(2)).any()


def test_where_doubles_do_not_hold_a_price_twice_the_loss_is_stated():
    tree, noise = mechanism(levels(600), "laplace", 0.05)
    assert noise.guarantee.epsilon == 2 * hf.laplace(hf.counts(tree), scale=0.05).guarantee.epsilon


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_drawn_in_few_attempts(name, law, shape, monkeypatch):
    counts, scale = TABLES[name]
    tree, noise = mechanism(SHAPES[shape](counts.size), law, scale)
    attempts, run = [], Drawing.run
    monkeypatch.setattr(Drawing, "run", lambda *given: attempts.append(1) or run(*given))
    drawn = noise.simulate(tree.sum_up(counts), 1, rng=hf.seeded(2))[0]
    assert (drawn[tree.leaves] >= 0).all()
    assert np.array_equal(drawn, tree.sum_up(drawn[tree.leaves]))
    assert len(attempts) < 10


def binary(n):
    """A binary tree with so many leaves or a few less."""
    return (np.arange(2 ** (int(np.log2(n)) + 1) - 1) - 1) // 2


def unequal(n):
    """One group with half of all leaves, and others with three."""
    return np.r_[-1, np.zeros(n // 6 + 1, int), np.ones(n // 2, int), 2 + np.arange(n // 2) % (n // 6)]


def leaves_of_all_sizes(n):
    """Half of them empty, one of a million."""
    return np.where(np.arange(n) % 2, np.arange(n) % 90, 10**6 * (np.arange(n) == 6))


LARGE = {
    "many leaves below one": (SHAPES["flat"], "gaussian", 6, lambda n: np.ones(n, int)),
    "many leaves, half of them empty": (SHAPES["flat"], "laplace", 0.3, leaves_of_all_sizes),
    "all empty, pulled steeply": (levels, "gaussian", 6, lambda n: np.zeros(n, int)),
    "a binary tree": (binary, "laplace", 1, leaves_of_all_sizes),
    "the same, Gaussian": (binary, "gaussian", 0.3, leaves_of_all_sizes),
    "a binary tree of empty leaves": (binary, "laplace", 30, lambda n: np.zeros(n, int)),
    "one group with half of all": (unequal, "laplace", 1, lambda n: np.zeros(n, int)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_large_tables_are_drawn(name):
    shape, law, scale, counts = LARGE[name]
    tree, noise = mechanism(shape(10_000), law, scale)
    drawn = noise.simulate(tree.sum_up(counts(len(tree.leaves))), 1, rng=hf.seeded(5))[0]
    assert (drawn[tree.leaves] >= 0).all()
    assert np.array_equal(drawn, tree.sum_up(drawn[tree.leaves]))


def grouped(leaves, law="laplace", scale=6):
    parents = np.concatenate([[-1], np.zeros(5), np.repeat(np.arange(1, 6), leaves // 5)]).astype(int)
    tree = hf.Hierarchy.from_parents(parents)
    query = hf.counts(tree)
    base = hf.laplace(query, scale=scale) if law == "laplace" else hf.gaussian(query, scale=scale)
    return tree, base.given(hf.consistent(tree) & hf.nonnegative())


HARD = {
    "all empty": lambda n: np.zeros(n, dtype=int),
    "one of a million": lambda n: np.where(np.arange(n) == 3, 10**6, 0),
    "one large": lambda n: np.where(np.arange(n) == 3, 700, 0),
    "mostly empty": lambda n: np.where(np.arange(n) % 20 == 0, 60, 0),
}


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", HARD)
def test_no_table_is_refused(name, law):
    tree, noise = grouped(500, law, scale=2)
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
        with pytest.raises(hf.Refused, match="so wide on so many outputs") as caught:
            wide.release(wide.query.answer(counts))
        sentences.add(str(caught.value))
    assert len(sentences) == 1
