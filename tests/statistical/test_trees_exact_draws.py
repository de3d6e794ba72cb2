"""Compiled draws on hierarchies against enumeration, with windows so narrow that totals often lie beyond them.

Such totals are proposals: they are kept with the right probability, or the whole table is drawn again. So these tests
see the rejection that a sensible window hardly ever needs.
"""

import numpy as np
import pytest

import holdfast as hf
from holdfast.trees.messages.sampler import Sampler, _Drawing
from holdfast.trees.shape.forest import Forest
from samplers import coins_counted, enumerated, narrowed, noise, pearson, sampler, sums_up

ALARM = 1e-7
DRAWS = 1_200
THREE = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1, 2])
FOREST = hf.Hierarchy.from_parents([-1, -1, 0, 0, 1])
CHAIN = hf.Hierarchy.from_parents([-1, 0, 1, 2, 2, 0])

# name: tree, scale per node (inf: not measured), truth of the leaves, extra constraint, places on each side
CASES = {
    "three levels": (THREE, [1, 1, 1, 1, 1, 1], [2, 0, 1], None, 1),
    "scales per node": (THREE, [2, 1, 0.5, 1, 0.75, 1.5], [2, 0, 1], None, 1),
    "an unmeasured root": (THREE, [np.inf, 1, 1, 1, 1, 1], [2, 0, 1], None, 1),
    "an unmeasured middle": (THREE, [1, np.inf, 1, 1, 1, 1], [2, 0, 1], None, 1),
    "an exact root": (THREE, [1, 1, 1, 1, 1, 1], [2, 0, 1], hf.invariant(hf.exact_nodes(THREE, [0])), 1),
    "an exact middle": (THREE, [2, 2, 2, 2, 2, 2], [2, 0, 1], hf.invariant(hf.exact_nodes(THREE, [1])), 2),
    "an impossible leaf": (THREE, [1, 1, 1, 1, 1, 1], [2, 0, 1], hf.fixed(4, 0), 1),
    "a forest": (FOREST, [1, 1, 0.5, 1, 1], [0, 3, 1], None, 1),
    "single children": (CHAIN, [1.5, 1, 1.25, 1, 1, 1], [2, 0, 1], None, 1),
    "not negative": (THREE, [2, 2, 2, 2, 2, 2], [0, 0, 1], hf.nonnegative(), 2),
    "between": (THREE, [1, 1, 1, 1, 1, 1], [0, 2, 1], hf.between(0, 2, at=THREE.leaves), 1),
    "one side of a linear row": (THREE, [1, 1, 1, 1, 1, 1], [1, 2, 1], hf.at_least([[0, 0, 0, 2, 0, 0]], [0]), 1),
    "a bounded root": (THREE, [1, 1, 1, 1, 1, 1], [0, 2, 1], hf.between(2, 4, at=0), 1),
}


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", CASES)
def test_totals_beyond_narrow_windows_have_the_exact_law(kind, name):
    tree, scales, leaves, extra, width = CASES[name]
    system = (hf.consistent(tree) if extra is None else hf.consistent(tree) & extra).system(tree.n)
    forest, truth = Forest.of(system), tree.sum_up(leaves)
    low, high = forest.noise_bounds(system, truth, 1)
    made = narrowed(Sampler(forest, noise(kind, scales), low, high, need=0.05, need_inside=0.05), width)
    with coins_counted() as counts:
        values = truth + made.draw(DRAWS, hf.seeded(31))
    assert counts["coins"] > 5  # acceptance really happened
    assert np.array_equal(values, tree.sum_up(values[:, tree.leaves].T).T)
    assert pearson(values[:, tree.leaves], enumerated(tree, kind, scales, leaves, extra, 14), 10) > ALARM
    # the figures that noise 30 % wider would have: rejected
    sizes = np.abs(values - truth).astype(float)
    wider = enumerated(tree, kind, scales, leaves, extra, 14, factor=1.3)
    nodes = np.abs(tree.sum_up(np.array(list(wider)).T).T - truth)
    chances = np.array(list(wider.values()))
    strayed = (sizes.sum(axis=1).mean() - chances @ nodes.sum(axis=1)) / (sizes.sum(axis=1).std() / DRAWS**0.5)
    assert abs(strayed) > 3


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_narrow_and_wide_windows_draw_one_law(kind):
    """Forty leaves in uneven groups under narrow and sensible windows: means of squares agree."""
    parents = [-1, 0, 0, 0] + [1] * 20 + [2] * 15 + [3] * 5
    low = np.where(np.arange(44) < 4, -(2**62), -(np.arange(44) % 3))
    scales = np.where(np.arange(44) < 4, 1.5, 1.0)
    wide = sampler(parents, kind, scales, low=low).draw(4_000, hf.seeded(2))
    small = sampler(parents, kind, scales, low=low, need=0.05, need_inside=0.05, learn=False).draw(400, hf.seeded(3))
    for draws in (wide, small):
        assert (draws >= low).all()
        assert sums_up(parents, draws)
    for power in (1, 2):
        a, b = (wide.astype(float)) ** power, (small.astype(float)) ** power
        apart = (a.mean(axis=0) - b.mean(axis=0)) / np.sqrt(a.var(axis=0) / len(a) + b.var(axis=0) / len(b))
        assert np.abs(apart).max() < 6


def test_only_rejected_trees_are_drawn_again(monkeypatch):
    """Sixty trees below exact outputs, rejected where a leaf's noise is odd: no table has sixty even ones at once."""
    trees, exact = 60, hf.invariant(hf.exact_nodes(THREE, [0]))
    shift = 6 * np.arange(trees)[:, None]
    parents = np.where(THREE.parents < 0, -1, THREE.parents + shift).ravel()
    made = sampler(parents, "gaussian", 2, exact=shift.ravel())
    finished, attempts = _Drawing.finished, []

    def rejecting(self):
        rejected = finished(self)
        attempts.append(self.place[-1])
        assert attempts[-1] < 40
        for leaf, row in np.argwhere(self.noise[3::6] % 2 == 1).tolist():
            rejected.setdefault(row, set()).add(int(self.up.trees_of_outputs[3 + 6 * leaf]))
        return rejected

    monkeypatch.setattr(_Drawing, "finished", rejecting)
    draws = made.draw(20, hf.seeded(5))
    assert max(attempts) > 3
    assert sums_up(parents, draws)
    leaves = draws.reshape(-1, 6)[:, 3:]
    law = enumerated(THREE, "gaussian", [2] * 6, [0, 0, 0], exact, 14)
    even = {table: chance for table, chance in law.items() if table[0] % 2 == 0}
    assert (leaves[:, 0] % 2 == 0).all()
    assert pearson(leaves, {table: chance / sum(even.values()) for table, chance in even.items()}, 5) > ALARM
    assert pearson(leaves, law, 5) < ALARM


def test_a_large_gaussian_leaf_that_empty_ones_pull_far_has_its_law():
    """It takes what 300 empty leaves take: their sum by convolution, under a slope so that doubles hold it."""
    trees, empty, sigma = 50, 300, 10.0
    parents = np.concatenate([np.full(trees, -1), np.repeat(np.arange(trees), empty + 1)])
    low = np.where(np.arange(parents.size) < trees, -(2**62), 0)
    low[trees :: empty + 1] = -150
    made = sampler(parents, "gaussian", sigma, low=low, exact=range(trees))
    taken = -made.draw(60, hf.seeded(6))[:, trees :: empty + 1].ravel()

    def law(sigma):
        places, slope = np.arange(1 << 12), 12.4 / sigma
        leaf = np.exp(-(places**2) / (2 * sigma**2) - slope * places)
        total = np.fft.irfft(np.fft.rfft(leaf / leaf.sum()) ** empty)
        weights = np.maximum(total, 0)[:151] * np.exp(slope * places - places**2 / (2 * sigma**2))[:151]
        return {(s,): p for s, p in enumerate((weights / weights.sum()).tolist())}

    assert pearson(taken[:, None], law(sigma), 10) > ALARM
    assert pearson(taken[:, None], law(1.03 * sigma), 10) < ALARM
    assert taken.max() <= 150
