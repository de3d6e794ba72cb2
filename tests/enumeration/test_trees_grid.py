"""Real-valued queries on a grid on hierarchies: a record changes its leaf, and all above, by several steps."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import logsumexp

import holdfast as hf

GRID = Fraction(1, 4)
INF = np.inf
REACH = 15  # losses; weights beyond are below e^-15 of the largest


def random_tree(rng, leaves):
    """A random hierarchy with so many leaves, at most seven nodes."""
    while True:
        parents = [-1]
        while sum(i not in parents for i in range(len(parents))) < leaves:
            parents.append(int(rng.integers(len(parents))))
        if len(parents) <= 7 and sum(i not in parents for i in range(len(parents))) == leaves:
            return hf.Hierarchy.from_parents(parents)


def laws(tree, rates, high, truths, power=1):
    """The log-law of the output for each truth (in steps), over all outputs from 0 to their upper bounds."""
    reach = int(np.ceil(REACH / min(rate for rate in rates if rate > 0))) + 6
    axes = [np.arange((reach if b == INF else b) + 1) for b in high]
    nodes = tree.sum_up(np.stack(np.meshgrid(*axes, indexing="ij"), axis=0).reshape(len(axes), -1)).T
    result = {}
    for truth in truths:
        logs = -(np.abs(nodes - tree.sum_up(list(truth))) ** power) @ np.asarray(rates)
        result[truth] = logs - (logs.max() + np.log(np.exp(logs - logs.max()).sum()))
    return result


def weighted(tree, weights, grid=GRID):
    """One cell for each leaf and weight: a record adds its weight to the leaf and to every ancestor."""
    columns = []
    for leaf in tree.leaves:
        for weight in weights:
            column, v = np.zeros(tree.n), leaf
            while v >= 0:
                column[v], v = weight, tree.parents[v]
            columns.append(column)
    return hf.workload(np.array(columns).T, grid=grid)


def neighbours(truths, weights, adds):
    """Pairs of tables (in steps) that differ by one record."""
    known = set(truths)
    for x in truths:
        for j, a in itertools.product(range(len(x)), weights):
            up = tuple(value + a * (i == j) for i, value in enumerate(x))
            if adds and up in known:
                yield x, up
            for k, b in itertools.product(range(len(x)), [] if adds else weights):
                swapped = tuple(value - b * (i == k) for i, value in enumerate(up))
                if swapped in known and swapped != x:
                    yield x, swapped


@pytest.mark.parametrize("seed", range(20))
def test_laplace_prices_hold_for_records_of_several_steps(seed):
    rng = np.random.default_rng([41, seed])
    count = int(rng.integers(1, 4))
    tree = random_tree(rng, count)
    rates = np.where(tree.is_leaf | (rng.integers(4, size=tree.n) > 0), rng.choice([1.0, 1.5, 2.0, 3.0], tree.n), 0.0)
    steps = [[1, 2], [2], [3, 1]][seed % 3]
    high = rng.integers(3, 6, count).astype(float)
    if seed % 2:
        high[0] = INF
    adds = seed % 4 < 2
    scale = [INF if rate == 0 else float(GRID) / rate for rate in rates]
    query = weighted(tree, [float(GRID) * a for a in steps])
    noise = hf.laplace(query, scale=scale, neighbours="add-remove" if adds else "replace-one")
    bounded = hf.between(0, high * float(GRID), at=tree.leaves)
    statement = noise.given(hf.consistent(tree) & bounded).guarantee
    truths = list(itertools.product(*[range(int(min(b, 4)) + 1) for b in high]))
    found = laws(tree, rates, high, truths)
    worst = max((float(np.abs(found[x] - found[y]).max()) for x, y in neighbours(truths, steps, adds)), default=0.0)
    assert worst <= statement.epsilon + 1e-5
    assert statement.epsilon <= 2 * noise.guarantee.epsilon
    assert "H1" in statement.because or "one line" in statement.because


def test_a_fine_grid_does_not_double_the_loss():
    """Records of eight steps: eight times the price of one step is hardly less than the loss, the closed form is."""
    tree = hf.Hierarchy.from_parents([-1, 0, 0, 0, 0])
    noise = hf.laplace(weighted(tree, [2.0]), epsilon=1)
    fine = noise.given(hf.consistent(tree) & hf.nonnegative()).guarantee.epsilon
    whole = hf.laplace(hf.counts(tree), epsilon=1).given(hf.consistent(tree) & hf.nonnegative()).guarantee.epsilon
    real = hf.laplace(hf.counts(tree), epsilon=1, integer=False).given(hf.consistent(tree) & hf.nonnegative())
    assert whole < fine < real.guarantee.epsilon < 1 + np.log(2) + 1e-9


@pytest.mark.parametrize("bounds", [hf.nonnegative(at=[3, 4, 5, 6]), hf.between(0, 2, at=[3, 4, 5, 6])])
def test_an_ever_finer_grid_costs_what_continuous_noise_costs(bounds):
    tree = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1, 2, 2])
    held = hf.consistent(tree) & bounds
    scale = [2, 3, 1, 4, 2, 1, 2]
    real = hf.laplace(hf.counts(tree), scale=scale, integer=False).given(held).guarantee.epsilon
    fine = hf.laplace(weighted(tree, [1], Fraction(1, 4096)), scale=scale).given(held).guarantee.epsilon
    lost = 0 if bounds.parts[0].kind == "nonnegative" else 0.3  # values lost at the other end count for real noise only
    assert real <= fine * (1 + 1e-3)
    assert fine <= real * (1 + 1e-3) + lost


@pytest.mark.parametrize("seed", range(40))
def test_gaussian_statements_hold_for_records_of_several_steps(seed):
    rng = np.random.default_rng([42, seed])
    count = int(rng.integers(1, 3))
    tree = random_tree(rng, count)
    sigma = rng.choice([1.0, 1.5, 2.0], tree.n)
    adds = seed % 2 == 0
    steps = [1, 3] if adds else [2]
    high = rng.integers(4, 7, count).astype(float)
    query = weighted(tree, [float(GRID) * a for a in steps])
    noise = hf.gaussian(query, scale=float(GRID) * sigma, neighbours="add-remove" if adds else "replace-one")
    bounded = hf.between(0, high * float(GRID), at=tree.leaves)
    statement = noise.given(hf.consistent(tree) & bounded).guarantee
    truths = list(itertools.product(*[range(int(b) + 1) for b in high]))
    found = laws(tree, 1 / (2 * sigma**2), high, truths, power=2)
    for x, y in neighbours(truths, steps, adds):
        for p, q in ((found[x], found[y]), (found[y], found[x])):
            for order in (2, 3, 5):
                divergence = logsumexp(order * p + (1 - order) * q) / (order - 1)
                assert divergence <= order * statement.rho + 1e-9


def test_unequal_weights_have_no_gaussian_statement_for_replaced_records():
    tree = hf.Hierarchy.from_parents([-1, 0, 0])
    noise = hf.gaussian(weighted(tree, [0.25, 1.0]), rho=1, neighbours="replace-one")
    with pytest.raises(hf.Refused, match="no privacy statement"):
        _ = noise.given(hf.consistent(tree) & hf.nonnegative()).guarantee


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_releases_lie_on_the_grid_and_add_up(kind):
    tree = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1, 2, 2])
    query = weighted(tree, [0.5, 1.25])
    truth = query.answer(np.arange(8))
    noise = hf.laplace(query, epsilon=1) if kind == "laplace" else hf.gaussian(query, rho=0.5)
    held = hf.consistent(tree)
    for extra in (None, hf.nonnegative(), hf.invariant(hf.exact_nodes(tree, [1])), hf.between(0, 12.5, at=tree.leaves)):
        mechanism = noise.given(held if extra is None else held & extra)
        values = mechanism.simulate(truth, 20, rng=hf.seeded(1))
        assert not (values % float(GRID)).any()
        assert np.array_equal(values, tree.sum_up(values[:, tree.leaves].T).T)
        assert (values != truth).any()
    assert (values[:, tree.leaves] >= 0).all()
    assert (values[:, tree.leaves] <= 12.5).all()
    exact = noise.given(held & hf.invariant(hf.exact_nodes(tree, [1]))).simulate(truth, 20, rng=hf.seeded(1))
    assert (exact[:, 1] == truth[1]).all()


def test_standard_errors_are_in_the_units_of_the_query():
    tree = hf.Hierarchy.from_parents([-1, 0, 0])
    fine = hf.gaussian(weighted(tree, [1.0]), scale=5).given(hf.consistent(tree)).standard_error()
    real = hf.gaussian(hf.counts(tree), scale=5, integer=False).given(hf.consistent(tree)).standard_error()
    assert fine == pytest.approx(real, rel=1e-6)


def test_a_fixed_value_off_the_grid_is_refused_at_once():
    tree = hf.Hierarchy.from_parents([-1, 0, 0])
    noise = hf.laplace(weighted(tree, [1.0]), epsilon=1)
    with pytest.raises(hf.Refused, match="grid"):
        noise.given(hf.consistent(tree) & hf.fixed(1, Fraction(1, 3)))
