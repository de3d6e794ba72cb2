"""Laws of single outputs and of weighted sums from messages on circles, against enumeration and convolutions."""

from fractions import Fraction

import numpy as np
import pytest

from holdfast.trees.circles.errors.marginals import Marginals
from holdfast.trees.circles.sampler import Sampler
from holdfast.trees.circles.weights import GaussianWeight, LaplaceWeight
from holdfast.trees.shape.forest import Forest
from samplers import noise
from table_weight import TableWeight

NONE = 2**62
THREE = [-1, 0, 0, 1, 1, 2]  # leaves 3, 4 and 5
COUNTS = TableWeight(-2, tuple(Fraction(x, 10) for x in (1, 4, 0, 2, 3)), Fraction(1, 8), Fraction(0))
BOX = TableWeight(-3, (Fraction(1),) * 7)

# name: parents, scale per output (inf: not measured) or law, exact outputs, bounds on noise by output
CASES = {
    "three levels": (THREE, [0.5] * 6, (), {}),
    "scales per output": (THREE, [0.75, 0.5, 0.25, 0.5, 0.75, 0.625], (), {}),
    "an unmeasured root": (THREE, [np.inf, 0.5, 0.5, 0.5, 0.5, 0.5], (), {}),
    "an unmeasured middle": (THREE, [0.5, np.inf, 0.5, 0.5, 0.5, 0.5], (), {}),
    "nothing measured but leaves": (THREE, [np.inf, np.inf, np.inf, 0.5, 0.5, 0.75], (), {}),
    "an exact root": (THREE, [0.5] * 6, (0,), {}),
    "an exact middle and an exact leaf": (THREE, [0.5] * 6, (1, 5), {}),
    "an unmeasured middle below an exact root": (THREE, [0.5, np.inf, 0.5, 0.5, 0.5, 0.25], (0,), {}),
    "a forest": ([-1, -1, 0, 0, 1], [0.5, 0.5, 0.25, 0.5, 0.75], (), {}),
    "outputs alone": ([-1, -1, 0, 0, -1], [0.5, 0.5, 0.25, 0.5, 0.75], (), {1: (-1, NONE)}),
    "nothing but outputs alone": ([-1, -1], [0.5, 0.75], (1,), {}),
    "nothing but exact outputs": ([-1, 0], [0.5, 0.75], (1,), {}),
    "single children": ([-1, 0, 1, 2, 2], [0.75, 0.5, 0.625, 0.5, 0.5], (), {}),
    "empty leaves": (THREE, [0.5] * 6, (), {3: (0, NONE), 4: (0, NONE), 5: (-1, NONE)}),
    "boxes": (THREE, [0.75] * 6, (), {3: (0, 2), 4: (-1, 1), 5: (-2, 0)}),
    "a bounded root": (THREE, [0.5] * 6, (), {0: (2, 3)}),
    "a bounded output that is not measured": (THREE, [0.5, np.inf, 0.5, 0.5, 0.75, 0.5], (), {1: (1, NONE)}),
    "tables": (THREE, [0.5, COUNTS, 0.75, BOX, 0.5, COUNTS], (), {}),
    "tables and an exact root": (THREE, [0.5, 0.5, 0.75, COUNTS, BOX, COUNTS], (0,), {4: (-1, 2)}),
}


def bounds_of(n, bounds):
    low, high = np.full(n, -NONE), np.full(n, NONE)
    for v, (least, most) in bounds.items():
        low[v], high[v] = least, most
    return low, high


def made(name, kind):
    parents, scales, exact, bounds = CASES[name]
    weights, which = [], []
    for scale in scales:
        if not isinstance(scale, TableWeight) and np.isinf(scale):
            which.append(-1)
            continue
        if isinstance(scale, TableWeight):
            weight = scale
        else:
            weight = LaplaceWeight(1 / Fraction(scale)) if kind == "laplace" else GaussianWeight(Fraction(scale) ** 2)
        which.append(len(weights))
        weights.append(weight)
    n = len(parents)
    forest = Forest(np.array(parents), np.isin(np.arange(n), exact))
    return Sampler(forest, weights, np.array(which), *bounds_of(n, bounds))


def enumerated(sampler, reach=22):
    """Noise of all outputs for every table of leaves in a wide window, and its probabilities."""
    parents, low, high = sampler.forest.parents, sampler.low, sampler.high
    leaves = np.setdiff1d(np.arange(parents.size), parents)
    axes = np.meshgrid(*[np.arange(max(low[v], -reach), min(high[v], reach) + 1) for v in leaves], indexing="ij")
    nodes = np.zeros((parents.size, axes[0].size), dtype=np.int64)
    for leaf, axis in zip(leaves.tolist(), axes, strict=True):
        v = leaf
        while v >= 0:
            nodes[v] += axis.ravel()
            v = parents[v]
    kept = (nodes[sampler.forest.exact] == 0).all(axis=0)
    kept &= ((nodes >= low[:, None]) & (nodes <= high[:, None])).all(axis=0)
    nodes = nodes[:, kept]
    logs = np.zeros(nodes.shape[1])
    for v, law in enumerate(sampler.which.tolist()):
        if law >= 0:
            logs += sampler.weights[law].log(nodes[v])
    chances = np.exp(logs - logs.max())
    return nodes, chances / chances.sum()


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", CASES)
def test_laws_are_those_of_enumeration(name, kind):
    sampler = made(name, kind)
    laws = Marginals(sampler)
    nodes, chances = enumerated(sampler)
    means = nodes @ chances
    assert laws.variances == pytest.approx(nodes**2 @ chances - means**2, rel=1e-9, abs=1e-11)
    for v in range(len(nodes)):
        low, law = laws.law(v)
        wanted = np.bincount(np.clip(nodes[v] - low, 0, law.size - 1), chances, law.size)
        assert law == pytest.approx(wanted, abs=1e-10)
    for p in (0.005, 0.3, 0.975):
        quantiles = laws.quantiles(p)
        for v in range(len(nodes)):
            assert chances[nodes[v] <= quantiles[v]].sum() >= p - 1e-9
            assert chances[nodes[v] < quantiles[v]].sum() < p


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", CASES)
def test_sums_are_those_of_enumeration(name, kind):
    sampler = made(name, kind)
    laws = Marginals(sampler)
    nodes, chances = enumerated(sampler)
    n = len(nodes)
    generator = np.random.default_rng(1)
    weighings = [generator.normal(size=n), generator.integers(-1, 2, n) * 1.0, np.eye(n)[-1], np.ones(n)]
    for weights in [*weighings, 1e6 + weighings[1]]:
        sums = weights @ nodes
        sums -= sums @ chances
        variance = sums**2 @ chances
        assert laws.variance_of_sum(weights) == pytest.approx(variance, rel=1e-9, abs=1e-11)
        frequencies = np.array([0.3, 1, 2.5, 6, -0.1j]) / max(np.sqrt(variance), 0.3)
        if weights.max() < 100:
            wanted = (np.exp(1j * np.outer(frequencies, weights @ nodes)) @ chances).real
            assert laws.characteristic(weights, frequencies) == pytest.approx(wanted, rel=1e-9, abs=1e-9)


def test_sums_of_one_tree_cancel_exactly():
    laws = Marginals(made("scales per output", "laplace"))
    assert laws.variance_of_sum(np.zeros(6)) == 0
    assert laws.variance_of_sum(np.array([1.0, -1, -1, 0, 0, 0])) == 0
    assert laws.variance_of_sum(np.array([0, 0, 0, 1.0, 1, 0])) == pytest.approx(laws.variances[1], rel=1e-12)


def random_forest(generator, *per):
    """Parents of trees whose outputs have about so many children, level by level."""
    parents, level = [-1, -1], [0, 1]
    for mean in per:
        children = np.repeat(level, generator.integers(1, 2 * mean, len(level)))
        level = np.arange(len(parents), len(parents) + children.size)
        parents += children.tolist()
    return np.array(parents)


def several(generator, name):
    """A random hierarchy: parents, scales, exact outputs, bounds."""
    parents = random_forest(generator, 3, 4, 9)
    n = parents.size
    leaves = np.setdiff1d(np.arange(n), parents)
    exact, (low, high) = np.zeros(n, dtype=bool), bounds_of(n, {})
    scales = np.full(n, 2.5)
    if name == "unequal scales":
        scales = generator.choice([0.75, 2.0, 6.0], n)
    if name == "exact outputs":
        exact[[0, 3, *leaves[::7]]] = True
    if name == "unmeasured outputs":
        scales[[0, 2, 3, 5]] = np.inf
    if name == "narrow outputs with wide circles":
        parents = np.array([-1, -1, 0, 0, 1, 1, 2, 3, 4, 8, 9, 5, 5])
        low, high = bounds_of(13, {8: (-1, NONE), 6: (-2, 1), 7: (0, 2)})
        return parents, np.full(13, 10.0), np.zeros(13, dtype=bool), low, high
    if name == "bounds":
        low[leaves] = -generator.integers(0, 9, leaves.size)
        high[3], low[4] = 4, 1
    return parents, scales, exact, low, high


NAMES = ["unequal scales", "exact outputs", "unmeasured outputs", "bounds", "narrow outputs with wide circles"]


class Convolved:
    """Laws and weighted sums from sums of products on one wide window, by Fourier transforms of its own."""

    def __init__(self, sampler, reach):
        self.parents, self.exact, self.reach = sampler.forest.parents, sampler.forest.exact, reach
        self.places = np.arange(-reach, reach + 1)
        n = self.parents.size
        self.own = np.ones((n, self.places.size))
        for v in range(n):
            if sampler.which[v] >= 0:
                self.own[v] = np.exp(sampler.weights[sampler.which[v]].log(self.places))
            outside = (self.places < sampler.low[v]) | (self.places > sampler.high[v])
            self.own[v, outside] = 0
            if self.exact[v]:
                self.own[v] = self.places == 0
        self.below = [np.flatnonzero(self.parents == v).tolist() for v in range(n)]

    def product(self, rows):
        """The convolution of rows on the window; nothing wraps round."""
        result = (self.places == 0).astype(complex)
        for row in rows:
            size = 4 * self.reach + 1
            whole = np.fft.ifft(np.fft.fft(result, size) * np.fft.fft(row, size))
            result = whole[self.reach : self.reach + self.places.size]
        return result

    def up(self, own):
        """The message of every output, and the sum of its children's."""
        messages, sums = list(own), [None] * len(own)
        for v in range(len(own) - 1, -1, -1):
            if self.below[v]:
                sums[v] = self.product([messages[c] for c in self.below[v] if not self.exact[c]])
                messages[v] = own[v] * sums[v]
        return messages, sums

    def laws(self):
        """The law of every output on the window."""
        messages, _ = self.up(self.own)
        outside = [np.ones(self.places.size)] * len(messages)
        result = []
        for v, message in enumerate(messages):
            law = (message * outside[v]).real.clip(0)
            result.append(law / law.sum())
            for c in self.below[v]:
                if not self.exact[c]:
                    others = [messages[d] for d in self.below[v] if d != c and not self.exact[d]]
                    outside[c] = self.product([self.own[v] * outside[v], *(row[::-1] for row in others)])
        return result

    def phase(self, weights, frequency):
        """The mean of e^{iωx}."""
        turned = self.own * np.exp(1j * frequency * np.outer(weights, self.places))
        tops = np.flatnonzero((self.parents < 0) | self.exact)
        one, other = self.up(turned)[0], self.up(self.own)[0]
        return np.prod([one[v].sum() / other[v].sum() for v in tops])


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", NAMES)
def test_laws_and_sums_are_those_of_convolutions(name, kind):
    generator = np.random.default_rng(len(name))
    parents, scales, exact, low, high = several(generator, name)
    made = Sampler.of(Forest(parents, exact), noise(kind, scales), low, high)
    laws, plain = Marginals(made), Convolved(made, 300)
    places = plain.places
    wanted = plain.laws()
    variances = np.array([law @ places**2 - (law @ places) ** 2 for law in wanted])
    assert laws.variances == pytest.approx(variances, rel=1e-8, abs=1e-11)
    for p in (0.025, 0.5):
        quantiles = laws.quantiles(p)
        for v, law in enumerate(wanted):
            assert law[places <= quantiles[v]].sum() >= p - 1e-9
            assert law[places < quantiles[v]].sum() < p + 1e-9
    kinds = laws._down.number
    for v in generator.choice(parents.size, 12, replace=False).tolist():
        first, seen = laws.law(v)
        inside = (first + np.arange(seen.size) >= -300) & (first + np.arange(seen.size) <= 300)
        assert wanted[v][first + np.flatnonzero(inside) + 300] == pytest.approx(seen[inside], abs=1e-10)
        alike = int(np.flatnonzero(kinds == kinds[v])[-1])
        assert variances[alike] == pytest.approx(variances[v], rel=1e-8)
    n = parents.size
    few = np.zeros(n)
    few[generator.choice(n, 5, replace=False)] = [1, 1, -1, 2.5, 1]
    for weights in (few, generator.integers(-1, 2, n) * 1.0, generator.normal(size=n)):
        variance = laws.variance_of_sum(weights)
        step = 1e-3 / np.sqrt(variance)
        ends = [plain.phase(weights, sign * step) for sign in (-1, 1)]
        assert variance == pytest.approx(-np.log(ends[0] * ends[1]).real / step**2, rel=1e-5)
        frequencies = np.array([0.3, 1, 2.5, 6]) / np.sqrt(variance)
        phases = [plain.phase(weights, frequency).real for frequency in frequencies]
        assert laws.characteristic(weights, frequencies) == pytest.approx(phases, rel=1e-7, abs=1e-9)
