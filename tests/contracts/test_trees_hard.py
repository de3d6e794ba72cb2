"""Tables that are hard to draw on a hierarchy: whatever the counts, they are drawn, or refused before any is seen."""

import numpy as np
import pytest

import holdfast as hf
from holdfast.given.exact import hierarchy
from holdfast.trees.plain.sampler import PlainSampler

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
