"""Laws of single outputs on a hierarchy against enumeration and plain convolution."""

import numpy as np
import pytest

from holdfast.arguments import Refused
from holdfast.trees.plain import sums
from holdfast.trees.plain.marginals import PlainMarginals
from holdfast.trees.plain.message import TooNarrow
from holdfast.trees.plain.sampler import PlainSampler
from holdfast.trees.spread import marginals as module
from holdfast.trees.spread import weighted_sums
from holdfast.trees.spread.marginals import Marginals
from samplers import sampler

NONE = 2**62
THREE = [-1, 0, 0, 1, 1, 2]  # leaves 3, 4 and 5
FOREST = [-1, -1, 0, 0, 1]
CHAIN = [-1, 0, 1, 2, 2]

# name: parents, scale per output (inf: not measured), exact outputs, bounds on noise by output
CASES = {
    "three levels": (THREE, [0.5] * 6, (), {}),
    "scales per output": (THREE, [0.75, 0.5, 0.25, 0.5, 0.75, 0.625], (), {}),
    "an unmeasured root": (THREE, [np.inf, 0.5, 0.5, 0.5, 0.5, 0.5], (), {}),
    "an unmeasured middle": (THREE, [0.5, np.inf, 0.5, 0.5, 0.5, 0.5], (), {}),
    "an exact root": (THREE, [0.5] * 6, (0,), {}),
    "an exact middle and an exact leaf": (THREE, [0.5] * 6, (1, 5), {}),
    "a forest": (FOREST, [0.5, 0.5, 0.25, 0.5, 0.75], (), {}),
    "single children": (CHAIN, [0.75, 0.5, 0.625, 0.5, 0.5], (), {}),
    "empty leaves": (THREE, [0.5] * 6, (), {3: (0, NONE), 4: (0, NONE), 5: (-1, NONE)}),
    "boxes": (THREE, [0.75] * 6, (), {3: (0, 2), 4: (-1, 1), 5: (-2, 0)}),
    "a bounded root": (THREE, [0.5] * 6, (), {0: (0, 1)}),
    # two alike outputs, 3 and 4, next to a leaf that can only grow and to one that can only fall
    "one kind in two places": (
        [-1, 0, 0, 1, 2, 3, 3, 4, 4, 1, 2],
        [0.5] * 3 + [2.0] * 8,
        (),
        {5: (-2, 4), 6: (-2, 4), 7: (-2, 4), 8: (-2, 4), 9: (0, 6), 10: (-6, 0)},
    ),
}


def made(name, kind):
    parents, scales, exact, bounds = CASES[name]
    low, high = np.full(len(parents), -NONE), np.full(len(parents), NONE)
    for v, (least, most) in bounds.items():
        low[v], high[v] = least, most
    return sampler(parents, kind, scales, low, high, exact)


def enumerated(name, kind, reach=22):
    """Noise of all outputs for every table of leaves in a wide window, and its probabilities."""
    parents, scales, exact, bounds = CASES[name]
    leaves = [v for v in range(len(parents)) if v not in parents]
    ends = [bounds.get(v, (-reach, reach)) for v in leaves]
    axes = np.meshgrid(*[np.arange(max(a, -reach), min(b, reach) + 1) for a, b in ends], indexing="ij")
    nodes = np.zeros((len(parents), axes[0].size), dtype=np.int64)
    for leaf, axis in zip(leaves, axes, strict=True):
        v = leaf
        while v >= 0:
            nodes[v] += axis.ravel()
            v = parents[v]
    keep = (nodes[list(exact)] == 0).all(axis=0)
    for v, (least, most) in bounds.items():
        keep &= (nodes[v] >= least) & (nodes[v] <= most)
    nodes = nodes[:, keep]
    rates = np.where(np.isfinite(scales), 1 / np.array(scales), 0.0)[:, None]
    logs = -(np.abs(nodes) * rates if kind == "laplace" else (nodes * rates) ** 2 / 2).sum(axis=0)
    chances = np.exp(logs - logs.max())
    return nodes, chances / chances.sum()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", CASES)
def test_laws_are_those_of_enumeration(name, kind):
    found = Marginals(made(name, kind))
    nodes, chances = enumerated(name, kind)
    means = nodes @ chances
    assert found.variances == pytest.approx(nodes**2 @ chances - means**2, rel=1e-9, abs=1e-13)
    for v in range(len(nodes)):
        low, law = found.law(v)
        wanted = np.bincount(np.clip(nodes[v] - low, 0, law.size - 1), chances, law.size)
        assert law == pytest.approx(wanted, abs=1e-12)
    for p in (0.005, 0.3, 0.975):
        quantiles = found.quantiles(p)
        for v in range(len(nodes)):
            assert chances[nodes[v] <= quantiles[v]].sum() >= p - 1e-11
            assert chances[nodes[v] < quantiles[v]].sum() < p


def convolved(weights):
    """The joint message of weights on −100 … 100 each."""
    result = np.ones(1)
    for each in weights:
        result = np.convolve(result, each)
    return result


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_parcels_of_unlike_leaves(kind):
    """70 leaves of four kinds under one root: two parcels, and leaves that are not the first of theirs."""
    scales = np.array([2.0] + [1.0] * 30 + [1.5] * 20 + [1.0] * 20)
    low = np.full(71, -NONE)
    low[61:] = 0
    high = np.full(71, NONE)
    high[51:56] = 3
    found = Marginals(sampler([-1] + [0] * 70, kind, scales, low, high))
    places = np.arange(-100, 101)
    power = 1 if kind == "laplace" else 2
    weights = [
        np.exp(-(np.abs(places / scale) ** power) / power) * (places >= least) * (places <= most)
        for scale, least, most in zip(scales, low, high, strict=True)
    ]
    everything = convolved(weights[1:])
    totals = np.arange(everything.size) - 100 * 70
    root = everything * np.exp(-(np.abs(totals / 2.0) ** power) / power)
    root /= root.sum()
    for v in (1, 31, 51, 56, 61):
        others = convolved([each for i, each in enumerate(weights) if i not in (0, v)])
        sums = np.arange(others.size) - 100 * 69
        law = np.array(
            [
                w * (others * np.exp(-(np.abs((b + sums) / 2.0) ** power) / power)).sum()
                for b, w in zip(places, weights[v], strict=True)
            ]
        )
        law /= law.sum()
        variance = places**2 @ law - (places @ law) ** 2
        assert found.variances[v] == pytest.approx(variance, rel=1e-9)
        first, seen = found.law(v)
        assert seen == pytest.approx(law[first + 100 : first + 100 + seen.size], abs=1e-12)
    assert found.variances[0] == pytest.approx(totals**2 @ root - (totals @ root) ** 2, rel=1e-9)
    assert found.variances[2] == found.variances[1]


def test_alike_outputs_share_a_law_and_unlike_ones_do_not():
    """Three alike counties with two groups each, and one county that differs."""
    parents = [-1, 0, 0, 0, 0] + [1, 1, 2, 2, 3, 3, 4] + [v for v in range(5, 12) for _ in range(5)]
    found = Marginals(sampler(parents, "laplace", 2.0))
    variances = found.variances
    assert np.ptp(variances[1:4]) == pytest.approx(0, abs=1e-9)
    assert np.ptp(variances[5:11]) == pytest.approx(0, abs=1e-9)
    assert np.ptp(variances[12:42]) == pytest.approx(0, abs=1e-9)
    assert abs(variances[4] - variances[1]) > 1e-3
    assert abs(variances[42] - variances[41]) > 1e-3


def test_windows_are_widened_until_they_hold_the_variance(monkeypatch):
    parents = [-1] + [0] * 4 + [v for v in range(1, 5) for _ in range(30)]
    wanted = Marginals(sampler(parents, "laplace", 3.0)).variances
    monkeypatch.setattr(module, "NEEDS", (6.0, 36.0))
    assert Marginals(sampler(parents, "laplace", 3.0)).variances == pytest.approx(wanted, rel=1e-12)
    monkeypatch.setattr(module, "NEEDS", (6.0,))
    with pytest.raises(Refused, match="too wide"):
        _ = Marginals(sampler(parents, "laplace", 3.0)).variances


def test_workers_do_not_matter(monkeypatch):
    """Parts of a walk and one walk find the same."""
    generator = np.random.default_rng(4)
    parents = [-1] + [0] * 5 + generator.integers(1, 6, 60).tolist() + generator.integers(6, 66, 600).tolist()
    whole = Marginals(sampler(parents, "laplace", 2.0)).variances
    monkeypatch.setattr(module, "SHARE", 4)
    assert np.array_equal(Marginals(sampler(parents, "laplace", 2.0, workers=3)).variances, whole)


def test_weighted_sums():
    parents = [-1, -1, 0, 0, 1, 2, 2, 3, 3]  # leaves 4 … 8
    scales = [0.75, 0.5, 0.5, 0.5, 0.5, 0.625, 0.5, 0.5, 0.5]
    found = Marginals(sampler(parents, "laplace", scales))
    variances = found.variances

    def of(**weights):
        return found.variance_of_sum(np.array([float(weights.get(f"u{v}", 0)) for v in range(9)]))

    assert of() == 0
    assert of(u6=3) == pytest.approx(9 * variances[6], rel=1e-12)
    assert of(u5=1, u6=1) == pytest.approx(variances[2], rel=1e-12)  # together they are their parent
    assert of(u0=1, u3=-1) == pytest.approx(variances[2], rel=1e-12)
    assert of(u0=1, u2=-1, u3=-1) == 0
    assert of(u2=1, u4=2) == pytest.approx(variances[2] + 4 * variances[1], rel=1e-12)  # two trees
    axes = np.meshgrid(*[np.arange(-12, 13)] * 4, indexing="ij")
    a, b, c, d = (axis.ravel() for axis in axes)
    nodes = np.stack([a + b + c + d, a + b, c + d, a, b, c, d])
    rates = 1 / np.array([0.75, 0.5, 0.5, 0.625, 0.5, 0.5, 0.5])
    chances = np.exp(-(np.abs(nodes) * rates[:, None]).sum(axis=0))
    chances /= chances.sum()
    assert of(u5=1, u6=-1) == pytest.approx((a - b) ** 2 @ chances, rel=1e-6)
    assert of(u0=1, u5=2, u7=-3) == pytest.approx((nodes[0] + 2 * a - 3 * c) ** 2 @ chances, rel=1e-6)


def random_tree(generator, *per):
    """Parents of a tree whose outputs have about so many children, level by level."""
    parents, level = [-1], [0]
    for mean in per:
        children = np.repeat(level, generator.integers(1, 2 * mean, len(level)))
        level = np.arange(len(parents), len(parents) + children.size)
        parents += children.tolist()
    return parents


def several(generator, name):
    """A hierarchy with parcels of one and of several kinds: parents, scales, options."""
    parents = random_tree(generator, 3, 4, 26)
    n = len(parents)
    leaves = np.setdiff1d(np.arange(n), parents)
    if name == "unequal scales":
        return parents, generator.choice([1.5, 2.0, 4.0], n), {}
    if name == "exact outputs":
        return parents, np.full(n, 3.0), {"exact": [2, *leaves[::7]]}
    if name == "unmeasured outputs":
        return parents, np.where(np.isin(np.arange(n), [0, 1, 3]), np.inf, 2.0), {}
    if name == "several roots":
        parents = [-1] * 3 + generator.integers(0, 3, 20).tolist() + generator.integers(3, 23, 150).tolist()
        return parents, np.full(len(parents), 2.5), {"exact": [1, 7]}
    low = np.full(n, -NONE)
    low[leaves] = -generator.integers(0, 9, leaves.size)
    return parents, np.full(n, 3.0), {"low": low}


NAMES = ["unequal scales", "exact outputs", "unmeasured outputs", "several roots", "bounds"]


def assert_sums(made, *weighings):
    """Sums have the variances that plain messages give them."""
    found, plain = Marginals(made), PlainMarginals(PlainSampler(made.forest, made.law, made.low, made.high))
    for weights in weighings:
        variance = plain.variance_of_sum(weights)
        assert found.variance_of_sum(weights) == pytest.approx(variance, rel=1e-9)
        frequencies = np.array([0.3, 1, 2.5, 6, -0.4j]) / np.sqrt(variance)
        phases = plain.characteristic(weights, frequencies)
        assert found.characteristic(weights, frequencies) == pytest.approx(phases, rel=1e-9, abs=1e-11)


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", NAMES)
def test_weighted_sums_are_those_of_plain_messages(name, kind):
    generator = np.random.default_rng(NAMES.index(name))
    parents, scales, options = several(generator, name)
    made = sampler(parents, kind, scales, **options)
    n = made.forest.n
    few = np.zeros(n)
    few[generator.choice(n, 5, replace=False)] = [1, 1, -1, 2.5, 1]
    below = np.where(made.forest.parents == made.forest.parents[-1], 1.0, 0.0)
    below[-1] = 1e-3
    assert_sums(made, few, below, generator.integers(-1, 2, n) * 1.0, generator.normal(size=n), 1e6 + few)


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_sums_over_alike_trees_with_alike_weights(kind):
    """Three free and two exact ones, and one below another root, where leaves that can only grow push it down."""
    parents = np.array([-1] * 6 + [5] + np.repeat([0, 1, 2, 3, 4, 6, 5], 4).tolist())
    low = np.full(35, -NONE)
    low[31:] = 0
    made = sampler(parents, kind, np.where(np.arange(35) == 5, 0.5, 2.0), low, exact=[3, 4])
    assert_sums(made, np.tile([0, 0, 0, 2.0, 1, 1, 0], 5), np.where(np.arange(35) % 4 == 1, 1.0, 0.0))


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_sums_of_leaves_that_can_only_grow(kind):
    """Their total is far from where they would put it themselves."""
    low = np.append(-NONE, np.zeros(60, dtype=np.int64))
    made = sampler([-1] + [0] * 60, kind, np.append(0.5, np.full(60, 6.0)), low)
    assert_sums(made, np.where(np.arange(61) < 3, 1.0, 0.0), np.where(np.arange(61) < 30, 1.0, 0.0))


def test_transforms_give_the_same_sums(monkeypatch):
    generator = np.random.default_rng(8)
    parents = random_tree(generator, 3, 30)
    found, weights = Marginals(sampler(parents, "laplace", 4.0)), generator.normal(size=len(parents))
    wanted = found.variance_of_sum(weights)
    monkeypatch.setattr(sums, "WIDE", -1)
    monkeypatch.setattr(np, "convolve", None)
    assert found.variance_of_sum(weights) == pytest.approx(wanted, rel=1e-11)


def test_phases_that_are_too_much_work_are_not_found(monkeypatch):
    parents = [-1] + [0] * 5 + [v for v in range(1, 6) for _ in range(70)]
    found, weights = Marginals(sampler(parents, "laplace", 2.0)), np.where(np.arange(356) % 3 == 0, 1.0, 0.0)
    frequencies = np.linspace(0.01, 0.3, 40)
    whole = found.characteristic(weights, frequencies)
    monkeypatch.setattr(weighted_sums, "MOST_JOINED", 9)  # totals differ in one place or more
    assert found.characteristic(weights, frequencies) is None
    assert found.characteristic(weights, frequencies[:1]) == pytest.approx(whole[:1], rel=1e-12)
    assert found.characteristic(np.ones(356), frequencies) is not None


def test_no_table_is_drawn_unless_a_sum_is_too_much_work(monkeypatch):
    parents = [-1] + [0] * 5 + [v for v in range(1, 6) for _ in range(70)]
    found = Marginals(sampler(parents, "laplace", 2.0))
    weights = np.where(np.arange(356) % 3 == 0, 1.0, 0.0)
    wanted = found.variance_of_sum(weights)
    monkeypatch.setattr(weighted_sums, "MOST_DRAWN", 1)
    for name in ("MOST_JOINED", "MOST_PLACES"):
        with monkeypatch.context() as small:
            small.setattr(weighted_sums, name, 0)
            simulated = found.variance_of_sum(weights)
            assert simulated == pytest.approx(wanted, rel=8 * np.sqrt(2 / weighted_sums.FEWEST))
            assert simulated != pytest.approx(wanted, rel=1e-9)
            assert found.variance_of_sum(np.full(356, 2.0)) == pytest.approx(36 * found.variances[0], rel=1e-9)
    monkeypatch.setattr(type(found.sampler), "draw", None)
    assert found.variance_of_sum(weights) == wanted


def test_alike_pieces_are_looked_at_once():
    """A leaf of one group, of half of them and of all: one step in a group, and one for each height above it."""
    parents = [-1] + [0] * 64 + [v for v in range(1, 65) for _ in range(40)]
    up = Marginals(sampler(parents, "laplace", 2.0))._widened(40.0)
    for groups in (1, 32, 64):
        weights = np.zeros(len(parents))
        weights[65 : 65 + 40 * groups : 40] = 1
        assert weighted_sums.WeightedSum(up, weights).bending.joined == 1 + 6


def test_windows_are_widened_until_they_hold_the_law_of_a_sum(monkeypatch):
    parents = [-1] + [0] * 4 + [v for v in range(1, 5) for _ in range(30)]
    weights = np.eye(125)[9] - np.eye(125)[40]
    wanted = Marginals(sampler(parents, "laplace", 3.0)).variance_of_sum(weights)
    monkeypatch.setattr(module, "NEEDS", (6.0, 36.0))
    assert Marginals(sampler(parents, "laplace", 3.0)).variance_of_sum(weights) == pytest.approx(wanted, rel=1e-10)
    monkeypatch.setattr(module, "LEFT_OUT", 1.0)  # as if the first windows had been wide enough for single outputs
    found = Marginals(sampler(parents, "laplace", 3.0))
    with pytest.raises(TooNarrow):
        weighted_sums.WeightedSum(found._widened(6.0), weights).found(sums.Moments(), np.zeros(()))
    assert found.variance_of_sum(weights) == pytest.approx(wanted, rel=1e-10)
