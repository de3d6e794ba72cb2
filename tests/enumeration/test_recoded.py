"""Recoded axes against matrices written out: answers, equalities, largest changes, estimates, splits, whole tables."""

import itertools

import numpy as np
import pytest

import holdfast as hf
from holdfast.onto.ways import areas
from holdfast.queries.linear_query import Query
from holdfast.trees.normal import grains
from holdfast.trees.normal.padded import Padded
from holdfast.trees.normal.residuals import Residuals
from least_squares import check_residuals


def random_recoded(rng, shape, alike):
    """Nested groups of some axes, in any order; alike: all of one size."""
    found = {}
    for axis, size in enumerate(shape):
        groups, many = np.arange(size), size
        for step in range(2):
            options = [c for c in range(2, many) if not alike or many % c == 0]
            if not options or rng.random() < 0.3:
                break
            count = int(rng.choice(options))
            of = np.arange(many) % count if alike else np.append(np.arange(count), rng.integers(0, count, many - count))
            groups, many = rng.permutation(of)[groups], count
            found[f"groups of {axis}, {step}"] = (axis, groups)
    return found


def random_query(rng, alike, most=6):
    while True:
        n, d = int(rng.integers(1, most)), int(rng.integers(1, 3))
        tree = hf.Hierarchy.from_parents([-1, *(int(rng.integers(0, i)) for i in range(1, n))])
        shape = tuple(int(size) for size in rng.choice([1, 2, 4, 6, 8] if alike else [1, 3, 4, 5], d))
        cube = hf.Cube(shape, recoded=random_recoded(rng, shape, alike))
        choices = [[(), *((each,) for each in cube.chain(axis))] for axis in range(d)]
        every = [tuple(a for part in chosen for a in part) for chosen in itertools.product(*choices)]
        keep = {
            level: [every[i] for i in rng.permutation(len(every))[: rng.integers(1, min(4, len(every) + 1))]]
            for level in range(len(tree.levels))
            if rng.random() < 0.8
        }
        if keep and cube.recoded:
            return hf.counts(tree, by=cube, keep=keep)


@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_answers_equalities_and_largest_changes(seed, alike):
    rng = np.random.default_rng(seed)
    query = random_query(rng, alike)
    W, cells = query.columns.toarray(), rng.integers(0, 9, query.cells)
    assert (W @ cells == query.answer(cells)).all()
    assert (W.sum(axis=0) == [sum(d <= depth for d, _ in query.groups) for depth in _depths(query)]).all()
    A = query.consistency().toarray()
    assert (A @ W == 0).all()
    assert len(A) == query.n - np.linalg.matrix_rank(W)
    assert np.linalg.matrix_rank(A) == len(A) if len(A) else True
    values = [int(v) for v in rng.integers(0, 5, len(query.groups))]
    weight = np.array(values)[query.level_of]
    assert query.largest(values, query.level_of, 1, "add-remove") == (weight[:, None] * W).sum(axis=0).max()
    most = _largest_pair(weight, W)
    for p in (1, 2):
        assert query.largest(values, query.level_of, p, "replace-one") == most
    listed = Query.pair_kinds(query, query.level_of, None)
    known = query.kinds(query.level_of, "replace-one")
    assert sorted(sorted(kind.items()) for kind in known) == sorted(sorted(kind.items()) for kind in listed)
    assert len(set(query.labels)) == query.n
    assert [query.output_name(i) for i in range(query.n)] == list(query.labels)


def _depths(query):
    return np.repeat(query.hierarchy.depth[query.hierarchy.leaves], query.table.cells)


def _largest_pair(weight, W):
    return max(int((weight[:, None] * np.abs(W - W[:, [j]])).sum(axis=0).max()) for j in range(W.shape[1]))


@pytest.mark.parametrize("seed", range(8))
def test_the_law_and_the_best_estimate_are_those_of_least_squares(seed):
    rng = np.random.default_rng(seed)
    query = random_query(rng, alike=True)
    precision = rng.uniform(0.2, 3, len(query.groups)) * (rng.random(len(query.groups)) < 0.8)
    check_residuals(query, precision, rng)


@pytest.mark.parametrize("seed", range(15))
def test_what_nothing_tells_is_found_for_groups_of_any_size(seed):
    rng = np.random.default_rng(seed)
    query = random_query(rng, alike=False)
    precision = (rng.random(len(query.groups)) < 0.7).astype(float)
    W = query.columns.toarray().astype(float)
    _, sizes, rows = np.linalg.svd(W.T @ (precision[query.level_of][:, None] * W))
    unknown = rows[sizes < 1e-9]
    told = not unknown.size or np.abs(W @ unknown.T).max() < 1e-6
    assert (Residuals(query, tuple(precision)).untold is None) == told


@pytest.mark.parametrize("seed", range(20))
def test_groups_of_different_sizes_have_the_best_estimate_too(seed):
    rng = np.random.default_rng(seed)
    query = random_query(rng, alike=False)
    precision = rng.uniform(0.2, 3, len(query.groups)) * (rng.random(len(query.groups)) < 0.8)
    padded = Padded.of(query, tuple(precision))
    if padded.untold is not None:
        return
    W, P = query.columns.toarray().astype(float), np.diag(precision[query.level_of])
    inverse = np.linalg.pinv(W.T @ P @ W, rcond=1e-10)
    noisy = rng.normal(size=(2, query.n))
    found = padded.outside(padded.estimated(padded.inside(noisy)))
    assert np.allclose(found, noisy @ P @ W @ inverse @ W.T, atol=1e-7)
    cells = rng.integers(0, 5, (query.hierarchy.n_leaves, padded.query.table.cells)) * ~padded.empty(None)
    assert (padded.answer(cells) == query.answer(cells[:, padded.cells].ravel())).all()
    assert (padded.outside(padded.query.totals(cells)) == padded.answer(cells)).all()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_no_other_split_is_better_than_the_gap_says(seed):
    rng = np.random.default_rng(seed)
    query = random_query(rng, True, most=5)
    split = hf.best_shares(query)
    assert split.lower_bound <= split.squared_error
    assert split.gap <= 1e-6 * split.squared_error
    W = query.columns.toarray().astype(float)
    bound = np.sqrt(np.maximum(np.linalg.eigvalsh(W.T @ W), 0)).sum() ** 2 / query.cells
    assert np.isclose(split.lower_bound, min(bound, split.squared_error))
    share = np.array([float(part) for part in split.shares.values()])
    assert np.isclose(_squared_error(query, share / share.sum()), split.squared_error, rtol=1e-5)
    for _ in range(10):
        other = share * rng.uniform(0.5, 2, share.size)
        assert _squared_error(query, other / other.sum()) >= split.squared_error - split.gap - 1e-6


def _squared_error(query, precision):
    W = query.columns.toarray().astype(float)
    G = W.T @ (precision[query.level_of][:, None] * W)
    return float(np.trace(W @ np.linalg.pinv(G, rcond=1e-12) @ W.T))


@pytest.mark.slow
def test_an_axis_whose_groups_are_alike_is_two_axes():
    """A recoding into groups of one size says what a second axis would."""
    tree = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1, 2])
    mixed = [0, 1, 2, 0, 1, 2]
    one = hf.counts(tree, by=hf.Cube((2, 6), recoded={"kind": (1, mixed)}), keep=[(2,), (0, 2), (0, 1)])
    two = hf.counts(tree, by=(2, 3, 2), keep=[(1,), (0, 1), (0, 1, 2)])
    assert not np.array_equal(grains.order(one.table, (1,)), np.arange(6))
    assert np.isclose(hf.best_shares(one).squared_error, hf.best_shares(two).squared_error)
    assert np.isclose(hf.best_shares(one).lower_bound, hf.best_shares(two).lower_bound)


@pytest.mark.parametrize(
    ("recoded", "sentence"),
    [
        ({"kind": ("nothing", [0, 1, 0, 1])}, "the axis of 'kind'"),
        ({"kind": ("age", [0, 1, 0])}, "one group for each of 4 values, found 3"),
        ({"kind": ("age", [0, 2, 0, 2])}, "numbered from 0 on"),
        ({"kind": ("age", [0, 0, 0, 0])}, "two or more"),
        ({"kind": ("age", [0, 1, 2, 3])}, "fewer than the values"),
        ({"sex": ("age", [0, 1, 0, 1])}, "names of their own"),
        ({"kind": [0, 1, 0, 1]}, "a pair"),
        ({"one": ("age", [0, 0, 1, 1]), "two": ("age", [0, 1, 0, 1])}, "cut across each other"),
        ({"one": ("age", [0, 0, 1, 1]), "two": ("age", [1, 1, 0, 0])}, "the same groups"),
        ([("kind", ("age", [0, 1, 0, 1]))], "recoded must map"),
    ],
)
def test_bad_recodings(recoded, sentence):
    with pytest.raises(hf.Refused, match=sentence):
        hf.Cube((2, 4), ["sex", "age"], recoded=recoded)


def test_a_margin_keeps_an_axis_or_a_recoding_of_it():
    cube = hf.Cube((2, 4), ["sex", "age"], recoded={"adult": ("age", [0, 1, 1, 1])})
    with pytest.raises(hf.Refused, match="once each"):
        hf.margins(cube, keep=[("age", "adult")])
    with pytest.raises(hf.Refused, match="keep"):
        hf.margins(cube, keep=[("kind",)])


@pytest.mark.parametrize("groups", [[0, 0, 1, 1], [0, 1, 1, 1]])
def test_cubes_with_recoded_axes(groups):
    rng = np.random.default_rng(3)
    cube = hf.Cube((2, 4), ["sex", "age"], recoded={"kind": ("age", groups)})
    query = hf.margins(cube, keep=[("sex", "kind"), ("age",), ()])
    W, cells = query.columns.toarray(), rng.integers(0, 9, 8)
    assert (query.answer(cells) == W @ cells).all()
    A = query.consistency().toarray()
    assert (A @ W == 0).all()
    assert np.linalg.matrix_rank(A) == len(A) == query.n - np.linalg.matrix_rank(W)
    assert query.sensitivity(1, "replace-one") == 4
    base = hf.gaussian(query, rho=1, integer=False)
    P = np.diag(1 / base.standard_error() ** 2)
    covariance = W @ np.linalg.pinv(W.T @ P @ W) @ W.T
    for made in (base.given(hf.consistent(query)), base.onto(hf.consistent(query))):
        assert np.allclose(made.standard_error() ** 2, np.diag(covariance))
    whole = hf.gaussian(query, rho=1).onto(hf.consistent(query) & hf.nonnegative())
    values = whole.release(query.answer(cells), rng=hf.seeded(1)).values
    assert (A @ values == 0).all()
    assert (values >= 0).all()


def test_whole_tables_with_groups_of_different_sizes(monkeypatch):
    """Three kinds of household of eight: too large for a program, so shared out from the roots down."""
    rng = np.random.default_rng(5)
    tree = hf.Hierarchy.from_parents([-1, 0, 0, *([1] * 5), *([2] * 5)], levels=["town", "quarter", "block"])
    cube = hf.Cube((2, 8), ["sex", "household"], recoded={"kind": ("household", [0, 0, 1, 2, 2, 0, 2, 2])})
    query = hf.counts(tree, by=cube, keep={"town": None, "quarter": [("sex", "kind")], "block": [("kind",), (0, 1)]})
    cells = rng.poisson(3, query.cells)
    must = hf.consistent(query) & hf.nonnegative()
    assert query.n == 16 + 2 * 6 + 10 * 19
    monkeypatch.setattr(areas, "MOST_EXACT", 100)
    truth, made = query.answer(cells), hf.gaussian(query, rho=4).onto(must)
    release = made.release(truth, rng=hf.seeded(2))
    assert "areas" in made.method
    assert not (query.consistency() @ release.values).any()
    assert (release.values >= 0).all()
    assert np.abs(release.values - truth).mean() < 2
    assert np.isclose(made.guarantee.rho, 4)
    assert len(release.records()) == release.values[:16].sum()


def test_best_shares_are_refused_where_groups_differ_in_size():
    cube = hf.Cube((2, 4), ["sex", "age"], recoded={"adult": ("age", [0, 1, 1, 1])})
    with pytest.raises(hf.Refused, match="groups are alike in size: give shares"):
        hf.best_shares(hf.margins(cube, keep=[("adult",), ("sex", "age")]))
