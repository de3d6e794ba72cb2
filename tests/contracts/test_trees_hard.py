"""Tables that are hard to draw on a hierarchy: whatever the counts, they are drawn, or refused before any is seen."""

import numpy as np
import pytest

import holdfast as hf
from holdfast.given.exact import hierarchy
from holdfast.trees.messages.sampler import Sampler
from holdfast.trees.plain.sampler import PlainSampler
from samplers import sampler

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
    """By the way that serves where compiled messages cannot be made."""
    counts, scale = TABLES[name]
    tree, noise = mechanism(SHAPES[shape](counts.size), law, scale)
    attempts, trees = [], PlainSampler._trees
    monkeypatch.setattr(hierarchy, "serves", lambda *_: True)
    monkeypatch.setattr(PlainSampler, "_trees", lambda self, wider: attempts.append(wider) or trees(self, wider))
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


MIXED = np.random.default_rng(3).random(100_000)
#: Shapes, laws, scales and counts, drawn from compiled messages in a second or so: plain numpy would take a minute.
LARGE = {
    "many leaves below one": (SHAPES["flat"], "gaussian", 6, lambda n: np.ones(n, int)),
    "the same, Laplace": (SHAPES["flat"], "laplace", 1, lambda n: np.ones(n, int)),
    "many leaves, half of them empty": (SHAPES["flat"], "laplace", 0.3, lambda n: np.where(MIXED[:n] < 0.5, 0, 5)),
    "all empty, pulled steeply": (levels, "gaussian", 6, lambda n: np.zeros(n, int)),
    "windows of a few places": (binary, "laplace", 1, lambda n: np.where(MIXED[:n] < 0.95, 0, 60)),
    "the same, Gaussian": (binary, "gaussian", 0.3, lambda n: np.where(MIXED[:n] < 0.5, 0, 5)),
    "windows that learning widens": (binary, "laplace", 30, lambda n: np.zeros(n, int)),
    "few kinds and much to learn": (unequal, "laplace", 1, lambda n: np.zeros(n, int)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_large_tables_are_drawn_from_compiled_messages(name, monkeypatch):
    shape, law, scale, counts = LARGE[name]
    parents = shape(100_000)
    tree = hf.Hierarchy.from_parents(parents)
    truth = tree.sum_up(counts(len(tree.leaves)))
    low = np.full(tree.n, -(2**62))
    low[tree.leaves] = -truth[tree.leaves]
    made, attempts, rows = sampler(parents, law, scale, low), [], Sampler._draw_rows
    monkeypatch.setattr(Sampler, "_draw_rows", lambda self, *some: attempts.append(1) or rows(self, *some))
    noise = made._draw(1, hf.seeded(5))[0]
    assert made._plain is None
    assert len(attempts) < 4
    assert (noise[tree.leaves] >= low[tree.leaves]).all()
    assert np.array_equal(noise, tree.sum_up(noise[tree.leaves]))
