"""Margins in every area against matrices written out: answers, equalities, largest changes, laws, estimates, splits."""

import itertools

import numpy as np
import pytest

import holdfast as hf
from holdfast.queries.linear_query import Query
from holdfast.trees.normal.residuals import Residuals
from least_squares import check_residuals


def random_tree(rng, most):
    n = int(rng.integers(1, most))
    return hf.Hierarchy.from_parents(
        [-1, *(int(rng.integers(-1 if rng.random() < 0.1 else 0, i)) for i in range(1, n))]
    )


def random_query(rng, most=8):
    while True:
        tree, d = random_tree(rng, most), int(rng.integers(1, 4))
        shape = tuple(int(size) for size in rng.integers(1, 4, d))
        every = [chosen for k in range(d + 1) for chosen in itertools.combinations(range(d), k)]
        keep = {
            level: [every[i] for i in rng.permutation(len(every))[: rng.integers(1, min(4, len(every) + 1))]]
            for level in range(len(tree.levels))
            if rng.random() < 0.75
        }
        if keep:
            return hf.counts(tree, by=shape, keep=keep)


@pytest.mark.parametrize("seed", range(60))
def test_answers_equalities_and_largest_changes(seed):
    rng = np.random.default_rng(seed)
    query = random_query(rng)
    W, cells = query.columns.toarray(), rng.integers(0, 9, query.cells)
    assert (W @ cells == query.answer(cells)).all()
    A = query.consistency().toarray()
    assert (A @ W == 0).all()
    assert len(A) == query.n - np.linalg.matrix_rank(W)
    assert np.linalg.matrix_rank(A) == len(A) if len(A) else True
    values = [int(v) for v in rng.integers(0, 5, len(query.groups))]
    weight = np.array(values)[query.level_of]
    assert query.largest(values, query.level_of, 1, "add-remove") == (weight[:, None] * W).sum(axis=0).max()
    pairs = [np.abs(W[:, i] - W[:, j]) for i, j in itertools.product(range(query.cells), repeat=2)]
    for p in (1, 2):
        assert query.largest(values, query.level_of, p, "replace-one") == max(weight @ pair for pair in pairs)
    assert query.sensitivity(np.inf, "replace-one") == max(pair.max() for pair in pairs)
    listed = Query.pair_kinds(query, query.level_of, None)
    known = query.kinds(query.level_of, "replace-one")
    assert sorted(sorted(kind.items()) for kind in known) == sorted(sorted(kind.items()) for kind in listed)
    assert len(set(query.labels)) == query.n


@pytest.mark.parametrize("seed", range(60))
def test_the_law_and_the_best_estimate_are_those_of_least_squares(seed):
    rng = np.random.default_rng(seed)
    query = random_query(rng)
    precision = rng.uniform(0.2, 3, len(query.groups)) * (rng.random(len(query.groups)) < 0.8)
    check_residuals(query, precision, rng)


@pytest.mark.parametrize("seed", range(5))
def test_no_other_split_is_better_than_the_gap_says(seed):
    rng = np.random.default_rng(seed)
    query = random_query(rng, most=7)
    split = hf.best_shares(query)
    assert split.lower_bound <= split.squared_error
    assert split.gap <= 1e-6 * split.squared_error
    W = query.columns.toarray().astype(float)
    G = W.T @ W
    bound = np.sqrt(np.maximum(np.linalg.eigvalsh(G), 0)).sum() ** 2 / query.cells
    assert np.isclose(split.lower_bound, min(bound, split.squared_error))

    def error(shares):
        share = np.array([float(shares[key]) for key in split.shares])
        found = Residuals(query, tuple(share / share.sum()))
        return np.inf if found.untold else found.variances().sum()

    assert np.isclose(error(split.shares), split.squared_error)
    for _ in range(10):
        other = {key: float(value) * rng.uniform(0.5, 2) for key, value in split.shares.items()}
        assert error(other) >= split.squared_error - split.gap


def test_published_optima():
    margins = hf.best_shares(hf.margins((2, 2), keep=[(0,), (1,)]))
    assert np.isclose(margins.squared_error, 6)
    assert np.isclose(margins.lower_bound, 3 + 2 * np.sqrt(2))
    tree = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1, 1, 2, 2, 2])
    every = [(), (0,), (1,), (0, 1)]
    rng = np.random.default_rng(0)
    query = hf.counts(tree, by=(2, 3), keep=every)
    weights = {(level, margin): rng.uniform(0.1, 1) for level in range(3) for margin in every}
    split = hf.best_shares(query, weights)  # margins reach the optimum of all Gaussian mechanisms here
    assert np.isclose(split.squared_error, split.lower_bound, rtol=1e-7)


def test_replacing_a_record_leaves_the_total_free():
    tree = hf.Hierarchy.from_parents([-1, 0, 0])
    query = hf.counts(tree, by=(2,), keep=[(), (0,)])
    split = hf.best_shares(query, neighbours="replace-one")
    # Shares are asked for as `query.groups` names levels and margins, by depth, and by name.
    assert [split.shares[group] for group in query.groups] == list(split.shares.values())
    with pytest.raises(KeyError):
        split.shares[9, ()]
    named = {key: value for key, value in split.shares.items() if key[1] == () and key[0] == "level 0"}
    assert set(named.values()) == {10**6}
    base = hf.gaussian(query, rho=0.5, neighbours="replace-one", shares=split.shares, integer=False)
    assert np.isclose(base.guarantee.rho, 0.5)
    release = base.given(hf.consistent(query))
    assert np.isclose((release.standard_error() ** 2).sum(), split.squared_error, rtol=1e-4)


def test_both_verbs_through_the_public_names():
    tree = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1, 2], levels=["country", "county", "town"])
    query = hf.counts(
        tree, by=hf.Cube((2, 3), ["sex", "age"]), keep={"country": None, "county": [("sex",)], "town": [(), ("age",)]}
    )
    truth = query.answer(np.arange(query.cells))
    must = hf.consistent(query)
    base = hf.gaussian(query, rho=2, integer=False)
    for made in (base.given(must), base.onto(must)):
        drawn = made.simulate(truth, 400, rng=hf.seeded(3))
        assert np.abs(query.consistency() @ drawn.T).max() < 1e-8
        spread = drawn.std(axis=0) / made.standard_error()
        assert 0.8 < spread.min() <= spread.max() < 1.2
        assert made.release(truth, rng=hf.seeded(1)).interval(0.9).shape == (query.n, 2)
    assert base.given(must).guarantee.rho == base.guarantee.rho


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda tree: hf.counts(tree, by=(2, 2), keep=[(3,)]), "keep must hold"),
        (lambda tree: hf.counts(tree, by=(2, 2), keep=[(1, 0)]), "table order"),
        (lambda tree: hf.counts(tree, by=(2, 2), keep={}), "at least one margin"),
        (lambda tree: hf.counts(tree, by=(2, 2), keep={"nowhere": [()]}), "level must be one of"),
        (lambda tree: hf.counts(tree, by=(2, 2), keep={0: [()], "level 0": [()]}), "twice"),
        (lambda tree: hf.counts(tree, by=hf.Cube((2, 2), ["sex", "age"]), keep=[("race",)]), "race"),
        (lambda tree: hf.counts(tree, by=(2**20, 2**19), keep=None), "2\\*\\*31"),
        (lambda tree: hf.best_shares(hf.counts(tree), {"level 9": 1}), "a level of weights"),
        (lambda tree: hf.best_shares(hf.counts(tree), {"level 0": -1}), "must not be negative"),
        (lambda tree: hf.best_shares(hf.counts(tree), {"level 0": 0}), "at least one level"),
        (lambda tree: hf.best_shares(hf.counts(tree, by=(2,), keep=[()]), {(0, (0,)): 1}), "a level of weights"),
        (lambda tree: hf.best_shares(hf.query(3, l1=1)), "query must be counts"),
    ],
)
def test_bad_input(call, sentence):
    with pytest.raises(hf.Refused, match=sentence):
        call(hf.Hierarchy.from_parents([-1, 0, 0]))


@pytest.mark.slow
@pytest.mark.parametrize(("by", "keep", "best"), [((3,), [()], 16 / 3), ((2,), [(), (0,)], 36.152)])
def test_pairs_of_several_kinds_cost_what_the_dearest_costs(by, keep, best):
    """Leaves at two depths: what a share costs is the larger of two sums, not the sum of the largest."""
    query = hf.counts(hf.Hierarchy.from_parents([-1, 0, 0, 1, 1]), by=by, keep=keep)
    split = hf.best_shares(query, neighbours="replace-one")
    assert split.squared_error - split.gap <= best + 1e-3
    assert np.isclose(split.squared_error, best, rtol=1e-4)
    base = hf.gaussian(query, rho=0.5, neighbours="replace-one", integer=False, shares=split.shares)
    release = base.onto(hf.consistent(query), integer=False)
    assert np.isclose(release.guarantee.mu, 1)
    assert np.isclose((release.standard_error() ** 2).sum(), split.squared_error, rtol=1e-4)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("seed", range(3))
def test_bounds_of_large_hierarchies_are_below_those_of_small_ones(seed, neighbours, monkeypatch):
    query = random_query(np.random.default_rng(seed), most=12)
    whole = hf.best_shares(query, neighbours=neighbours)
    monkeypatch.setattr("holdfast.trees.normal.bound.MOST_CLASSES", 1)
    assert hf.best_shares(query, neighbours=neighbours).lower_bound <= whole.lower_bound * (1 + 1e-9)
