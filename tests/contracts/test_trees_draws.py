"""Draws on hierarchies: sums, bounds, adversarial counts and what is kept."""

import gc
import weakref

import numpy as np
import pytest

import holdfast as hf
from holdfast.trees.circles.tables import Table
from samplers import NONE, sampler, sums_up

CITY = [-1] + [0] * 6 + [1 + g for g, size in enumerate((43, 61, 1, 69, 69, 20)) for _ in range(size)]


def nation(leaves, group=50, regions=20):
    """Parents of a root, regions, groups and leaves."""
    groups = leaves // group
    above = [-1] + [0] * regions + [1 + i * regions // groups for i in range(groups)]
    return np.array(above + [1 + regions + i // group for i in range(leaves)])


def counts_to_bounds(parents, leaf_counts):
    """Lower bounds on noise that keep every count at 0 or more."""
    counts = np.zeros(parents.size, dtype=np.int64)
    counts[-leaf_counts.size :] = leaf_counts
    for v in range(parents.size - 1, 0, -1):
        counts[parents[v]] += counts[v]
    return -counts


def zeros(rng, n):
    return np.zeros(n, dtype=np.int64)


def mostly_zeros(rng, n):
    return np.where(rng.random(n) < 0.95, 0, rng.poisson(60, n))


def small(rng, n):
    return np.where(rng.random(n) < 0.6, 0, rng.integers(1, 8, n))


def one_enormous(rng, n):
    return np.where(np.arange(n) == n // 3, 10**9, 0)


ADVERSARIAL = [zeros, mostly_zeros, small, one_enormous]


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("counts", ADVERSARIAL, ids=lambda make: make.__name__)
def test_adversarial_counts_are_drawn_within_their_bounds(kind, counts):
    parents = nation(20_000)
    low = counts_to_bounds(parents, counts(np.random.default_rng(1), 20_000))
    draws = sampler(parents, kind, 3, low).draw(2, hf.seeded(2))
    assert sums_up(parents, draws)
    assert (draws >= low).all()
    assert draws.std() > 0


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_thousands_of_zero_siblings(kind):
    parents = np.array([-1] + [0] * 5_000)
    low = np.where(np.arange(5_001) == 0, -NONE, 0)
    draws = sampler(parents, kind, 2, low).draw(3, hf.seeded(5))
    assert sums_up(parents, draws)
    assert (draws >= low).all()


ONE_PARENT = {
    "one large leaf among empty ones": (np.where(np.arange(2_000) == 700, 10**6, 0), 6.0),
    "nearly all empty": (np.where(np.arange(2_000) % 200 == 7, 60, 0), 6.0),
    "scales of 60 and 0.4 side by side": (np.arange(2_000) % 9, np.where(np.arange(2_001) % 2, 60.0, 0.4)),
    "narrow noise": (np.arange(2_000) % 3, 0.05),
}


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("case", ONE_PARENT)
def test_no_counts_are_refused(kind, case):
    counts, scales = ONE_PARENT[case]
    parents = np.array([-1] + [0] * counts.size)
    low = counts_to_bounds(parents, counts)
    draws = sampler(parents, kind, scales, low).draw(1, hf.seeded(2))
    assert sums_up(parents, draws)
    assert (draws >= low).all()


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_alike_parcels_in_unlike_places(kind):
    # 63 empty leaves beside large ones, and 63 beside as many empty ones: one kind of piece, pulled very unlike
    parents = np.array([-1, 0, 0] + [1] * 127 + [2] * 126)
    low = counts_to_bounds(parents, np.repeat([0, 300, 0], [83, 44, 126]))
    tables = sampler(parents, kind, 6, low).draw(20, hf.seeded(3))
    assert (tables >= low).all()
    assert sums_up(parents, tables)


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_boxes_hold(kind):
    parents = nation(20_000)
    rng = np.random.default_rng(6)
    leaf = np.arange(parents.size) >= parents.size - 20_000
    low = np.where(leaf, -rng.integers(0, 4, parents.size), -NONE)
    high = np.where(leaf, rng.integers(0, 4, parents.size), NONE)
    draws = sampler(parents, kind, 3, low, high).draw(2, hf.seeded(7))
    assert sums_up(parents, draws)
    assert (draws >= low).all()
    assert (draws <= high).all()


def test_zero_leaves_under_a_measured_root_have_the_known_law():
    """k zero counts are geometric: their sum has weight C(k+s−1, s)·α^s, and the root's own weight e^{−s/λ} on top."""
    k, scale, size = 300, 2.0, 4_000
    low = np.where(np.arange(k + 1) == 0, -NONE, 0)
    draws = sampler([-1] + [0] * k, "laplace", [8.0] + [scale] * k, low).draw(size, hf.seeded(9))
    s = np.arange(4_000)
    logs = np.concatenate([[0.0], np.cumsum(np.log((k + s[1:] - 1) / s[1:]))]) - s / scale - s / 8.0
    law = np.exp(logs - logs.max())
    law /= law.sum()
    mean, variance = law @ s, law @ s**2 - (law @ s) ** 2
    assert abs(draws[:, 0].mean() - mean) < 6 * np.sqrt(variance / size)
    assert draws[:, 0].var() == pytest.approx(variance, rel=0.2)
    # leaves are alike: each has a k-th of the mean
    assert abs(draws[:, 1:].mean(axis=0) - mean / k).max() < 7 * draws[:, 1:].std() / size**0.5


def test_enormous_bounds_do_not_overflow():
    parents = np.array([-1] + [0] * 100)
    high = np.array([1] + [2**61] * 100)
    draws = sampler(parents, "laplace", 2, high=high).draw(50, hf.seeded(10))
    assert (draws[:, 0] <= 1).all()
    assert draws[:, 0].min() < 0


@pytest.mark.slow
def test_deep_chains_are_drawn():
    parents = np.array([-1, *range(400)])
    draws = sampler(parents, "laplace", 1_000.0).draw(3, hf.seeded(11))
    assert sums_up(parents, draws)
    assert (draws == draws[:, :1]).all()


def test_single_children_share_their_noise():
    """Thirty outputs in a chain with scale 30 are one noise with scale 1."""
    size = 20_000
    draws = sampler(np.array([-1, *range(29)]), "laplace", 30.0).draw(size, hf.seeded(12))
    alpha = np.exp(-1.0)
    variance = 2 * alpha / (1 - alpha) ** 2
    assert draws[:, 0].var() == pytest.approx(variance, rel=0.12)


def test_messages_go_with_their_sampler():
    """No circle of references keeps a nation's messages alive until the collector comes by."""
    made = sampler(CITY, "laplace", 3)
    made.draw(1, hf.seeded(14))
    kept = weakref.ref(made.messages)
    gc.disable()
    try:
        del made
        assert kept() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("by", [1, 3])
def test_the_promise_of_a_nation_writes_out_no_paths(by):
    """What records do on a hierarchy is known; the columns of a nation, a path for every leaf, are large."""
    tree = hf.Hierarchy.from_parents(nation(500))
    query = hf.counts(tree, by=by)
    promise = hf.laplace(query, scale=2).given(hf.consistent(query) & hf.nonnegative()).guarantee
    assert promise.assumes == ()
    assert "columns" not in vars(query)


def test_sums_that_leave_out_a_child_are_assumed():
    tree = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1])
    promise = hf.laplace(hf.counts(tree), scale=2).given(hf.equals([[1, -1, 0, 0, 0]], [0])).guarantee
    assert promise.assumes


def test_where_nothing_is_free_all_noise_is_0():
    made = sampler([-1, 0], "gaussian", 5.0, exact=[0])
    assert not made.draw(2, hf.seeded(1)).any()


def test_messages_that_have_no_sum_are_not_drawn_from():
    """Tiny noise leads guesses astray: far out, the message of one part rose faster than that of the other fell."""
    parents = np.array([-1, 0, 0, 0, 0] + [1] * 6 + [2] * 3 + [3] * 7 + [4] * 4)
    counts = np.array([0, 0, 14, 97, 0, 22, 0, 0, 64, 38, 0, 0, 8, 77, 0, 0, 0, 18, 0, 0])
    low = np.concatenate([np.full(5, -NONE), -counts])
    drawn = sampler(parents, "gaussian", 0.3, low).draw(3, hf.seeded(1))
    assert sums_up(parents, drawn)
    assert (drawn >= low).all()


def test_categories_and_forests_are_drawn():
    tree = hf.Hierarchy.from_parents([-1, 0, 0, 0, -1, 4, 4])
    query = hf.counts(tree, by=2)
    mechanism = hf.laplace(query, scale=1).given(hf.consistent(query))
    noise = mechanism.noise(50_000, hf.seeded(10)).reshape(-1, 7, 2)
    assert np.array_equal(noise[:, 0], noise[:, 1:4].sum(axis=1))
    assert np.array_equal(noise[:, 4], noise[:, 5:].sum(axis=1))
    assert noise.reshape(-1, 14).std(axis=0) == pytest.approx(mechanism.standard_error(), rel=0.03)


@pytest.mark.parametrize("epsilon", [1.05, 1.1])
def test_a_tilt_does_not_send_proposals_beyond_windows(epsilon, monkeypatch):
    """What lies beyond a window is only bounded; a tilt that blows the bound up has nearly every proposal refused."""
    beyond, real = [], Table.beyond
    monkeypatch.setattr(Table, "beyond", lambda *asked: beyond.append(None) or real(*asked))
    tree = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1, 2, 2, 2])
    noise = hf.laplace(hf.counts(tree), epsilon=epsilon, shares={0: 0.2, 1: 0.3, 2: 0.5})
    made = noise.given(hf.consistent(tree) & hf.nonnegative()).calibrated(epsilon=epsilon)
    made.simulate(tree.sum_up(np.full(5, 50)), 500, hf.seeded(1))
    assert len(beyond) < 100
