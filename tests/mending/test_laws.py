"""Laws of all nodes given that all adds up, against enumeration, and bad input."""

import itertools

import numpy as np
import pytest

import holdfast as hf
from holdfast.trees.any_laws import AnyLaws

GROUPS = [-1, 0, 0, 1, 1, 2, 2]
TREE = hf.Hierarchy.from_parents(GROUPS)


def poisson(mean, size=40):
    logs = np.arange(size) * np.log(mean) - np.cumsum(np.log(np.maximum(np.arange(size), 1)))
    return np.exp(logs - logs.max())


CASES = {
    "forecasts of every node": [poisson(m, 12) for m in (9, 3, 4, 1.5, 2, 1, 2.5)],
    "nothing known of a group": [poisson(7, 12), None, [1, 2, 3, 0, 1], *(poisson(m, 6) for m in (1, 2, 1, 2))],
    "a leaf that follows": [poisson(7, 12), (3, [1, 2, 1]), poisson(3, 9), None, [1, 1, 2], [1, 2, 2, 1], [1, 0, 3]],
    "samples with gaps": [(1, [1, 0, 2, 0, 1]), [1, 1, 1], [2, 1, 1], [1, 1], [3, 1], (-1, [1, 1, 1]), [1, 1, 1]],
}


def enumerated(laws, tree=TREE, least=-2, most=12):
    """All tables, and their probabilities."""
    leaves = np.array(list(itertools.product(range(least, most), repeat=len(tree.leaves))))
    nodes = tree.sum_up(leaves.T).T
    chances = np.ones(len(nodes))
    for v, law in enumerate(laws):
        if law is not None:
            first, values = law if isinstance(law, tuple) else (0, law)
            place = nodes[:, v] - first
            values = np.asarray(values, dtype=float)
            inside = (place >= 0) & (place < values.size)
            chances *= np.where(inside, values[np.clip(place, 0, values.size - 1)], 0.0)
    return nodes, chances / chances.sum()


@pytest.mark.parametrize("name", CASES)
def test_laws_are_those_of_enumeration(name):
    laws = CASES[name]
    nodes, chances = enumerated(laws)
    found = hf.reconcile_laws(TREE, laws)
    means = chances @ nodes
    assert found.mean == pytest.approx(means, abs=1e-11)
    assert found.standard_error == pytest.approx(np.sqrt(chances @ (nodes - means) ** 2), abs=1e-11)
    for v in range(7):
        values, probabilities = found.law(v)
        wanted = [chances[nodes[:, v] == value].sum() for value in values.tolist()]
        assert sum(wanted) == pytest.approx(1)
        assert probabilities == pytest.approx(np.array(wanted), abs=1e-12)
    for v, (low, high) in enumerate(found.interval(0.9).tolist()):
        assert chances[(nodes[:, v] >= low) & (nodes[:, v] <= high)].sum() >= 0.9 - 1e-9
    drawn = found.draw(4_000, hf.seeded(1))
    assert np.array_equal(drawn, TREE.sum_up(drawn[:, TREE.leaves].T).T)
    assert np.abs(drawn.mean(axis=0) - means).max() < 6 * found.standard_error.max() / 4_000**0.5


def test_the_total_of_two_groups_of_two_has_the_spread_of_enumeration():
    """Samples that are weighted level by level (reconc_buis of bayesreconpy 0.4.1) say 1.835."""
    laws = [poisson(mean, 40) for mean in (9, 3, 4, 2, 2, 2, 2)]
    groups = [np.convolve(laws[i], laws[i + 1])[:40] * laws[k] for i, k in ((3, 1), (5, 2))]
    total = np.convolve(*groups)[:40] * laws[0]
    total /= total.sum()
    values = np.arange(40)
    found = hf.reconcile_laws(TREE, laws)
    spread = float(total @ (values - total @ values) ** 2) ** 0.5
    assert round(spread, 3) == 1.629
    assert abs(found.standard_error[0] - spread) < 1e-12
    assert abs(found.mean[0] - total @ values) < 1e-12


def test_a_law_of_its_own_for_each_of_many_nodes():
    """More laws than are looked for one by one, at leaves and at nodes above them, against plain convolutions."""
    generator = np.random.default_rng(3)
    leaves = [generator.random(generator.integers(2, 9)) for _ in range(40)]
    parents = np.r_[-1, np.zeros(10, int), 1 + np.arange(40) // 4]
    sums = [np.ones(1)] * 11
    for k in range(10):
        for law in leaves[4 * k : 4 * k + 4]:
            sums[1 + k] = np.convolve(sums[1 + k], law)
    groups = [generator.random(each.size - 3) for each in sums[1:]]
    shares = [each[: law.size] * law for each, law in zip(sums[1:], groups, strict=True)]
    for share in shares:
        sums[0] = np.convolve(sums[0], share)
    top = generator.random(sums[0].size)
    found = hf.reconcile_laws(hf.Hierarchy.from_parents(parents), [top, *groups, *leaves])
    law = sums[0] * top / (sums[0] @ top)
    assert found.mean[0] == pytest.approx(law @ np.arange(law.size), abs=1e-9)
    for k, share in enumerate(shares):
        others = np.ones(1)
        for each in (*shares[:k], *shares[k + 1 :]):
            others = np.convolve(others, each)
        chances = share * [others @ top[a : a + others.size] for a in range(share.size)]
        assert found.law(1 + k)[1] == pytest.approx(chances / chances.sum(), abs=1e-11)
    drawn = found.draw(2_000, hf.seeded(1))
    assert np.abs(drawn.mean(axis=0) - found.mean).max() < 6 * found.standard_error.max() / 2_000**0.5


@pytest.mark.parametrize("far", [700, 850, 1_000])
def test_a_law_may_have_a_gap_where_a_window_ends(far):
    """Sums of leaves are small where the law of their total is large, far away: nothing there is lost."""
    leaves = [np.ones(20)] * 60
    sums = np.ones(1)
    for law in leaves:
        sums = np.convolve(sums, law)
    sums /= sums.max()
    top = np.zeros(far + 1)
    top[[570, far]] = 1 / sums[[570, far]]
    top[far] /= 20
    found = hf.reconcile_laws(hf.Hierarchy.from_parents([-1, *[0] * 60]), [top, *leaves])
    assert found.mean[0] == pytest.approx((570 + far / 20) / 1.05, rel=1e-7)
    drawn = found.draw(2_000, hf.seeded(1))[:, 0]
    assert abs((drawn == far).sum() - 2_000 / 21) < 5 * (2_000 / 21) ** 0.5
    assert np.isin(drawn, [570, far]).all()


def test_laws_that_begin_far_away_are_as_quick_as_those_near_zero():
    far = 10**9
    found = hf.reconcile_laws(hf.Hierarchy.from_parents([-1, 0, 0]), [None, (far, [1, 2, 1]), (5, [1, 1])])
    values, probabilities = found.law(0)
    assert values.tolist() == [far + 5, far + 6, far + 7, far + 8]
    assert probabilities == pytest.approx(np.array([1, 3, 3, 1]) / 8)
    assert found.mean.tolist() == [far + 6.5, far + 1, 5.5]
    assert found.interval(0.99)[1].tolist() == [far, far + 2]
    assert (found.draw(50, hf.seeded(1))[:, 1] >= far).all()


def test_what_the_others_rule_out_may_have_nearly_all_probability():
    found = hf.reconcile_laws(hf.Hierarchy.from_parents([-1, 0, 0]), [(2, [1]), [1e28, 1e-8, 1e-24], [1, 1]])
    assert found.law(1)[1] == pytest.approx(np.array([1e-8, 1e-24]) / (1e-8 + 1e-24))
    assert (found.draw(50, hf.seeded(1)) == [2, 1, 1]).all()


def chi_square(drawn, nodes, chances):
    """How far drawn tables are from their law, in standard deviations; every one must be possible."""
    expected = len(drawn) * chances
    place = {tuple(table): k for k, table in enumerate(nodes.tolist())}
    counts = np.bincount([place[tuple(table)] for table in drawn.tolist()], minlength=len(nodes))
    assert not counts[chances == 0].any()
    often = expected > 5
    squares = ((counts - expected)[often] ** 2 / expected[often]).sum()
    return (squares - often.sum()) / (2 * often.sum()) ** 0.5


def test_draws_end_where_no_proposal_would_find_what_the_last_child_takes():
    tree = hf.Hierarchy.from_parents([-1, 0, 1, 0, 1, 1])
    laws = [
        [0.14357375, 0.30040377, 0, 0, 0.52673078, 0.28160087, 0, 0.96691203],
        (1, [2.12e-5, 0.34, 927.7, 748.9, 0.0794, 16.5, 8.0]),
        (-1, [1.35e-5, 8.0]),
        (-3, [0.598, 6.8e-4, 4.43]),
        [8.65e-5, 572.2, 2.5e-5, 56.6],
        [0.39, 0.627, 0.661, 0.41],
    ]
    nodes, chances = enumerated(laws, tree, -3, 4)
    assert chi_square(hf.reconcile_laws(tree, laws).draw(2_000, hf.seeded(0)), nodes, chances) < 5


def with_gaps(seed, orders):
    """A small tree and laws with zeros between values, and probabilities over so many powers of ten."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 8))
    parents = [-1] + [int(rng.integers(0, min(v, 4))) for v in range(1, n)]
    laws, low, high = [None] * n, np.zeros(n, int), np.zeros(n, int)
    for v in range(n - 1, -1, -1):
        children = [c for c in range(n) if parents[c] == v]
        low[v], high[v] = (
            (low[children].sum(), high[children].sum()) if children else (rng.integers(-3, 3), rng.integers(3, 6))
        )
        law = 10.0 ** rng.uniform(-orders, 0, high[v] - low[v] + 1) * (rng.random(high[v] - low[v] + 1) < 0.7)
        laws[v] = int(low[v]), law if law.any() else law + 1
    return parents, laws


@pytest.mark.parametrize("orders", [3, 20, 100])
def test_laws_with_gaps_over_many_powers_of_ten_are_those_of_enumeration(orders):
    made = 0
    for seed in range(40):
        parents, laws = with_gaps(seed, orders)
        tree = hf.Hierarchy.from_parents(parents)
        places = [range(first, first + law.size) for first, law in (laws[v] for v in tree.leaves.tolist())]
        if np.prod([len(each) for each in places]) > 20_000:
            continue
        nodes = tree.sum_up(np.array(list(itertools.product(*places))).T).T
        with np.errstate(divide="ignore"):
            logs = sum(np.log(law[nodes[:, v] - first]) for v, (first, law) in enumerate(laws))
        if np.isneginf(logs).all():
            with pytest.raises(hf.Refused, match="never meet"):
                hf.reconcile_laws(tree, laws)
            continue
        chances = np.exp(logs - logs.max())
        chances /= chances.sum()
        found = hf.reconcile_laws(tree, laws)
        for v in range(tree.n):
            values, probabilities = found.law(v)
            wanted = [chances[nodes[:, v] == value].sum() for value in values.tolist()]
            assert probabilities == pytest.approx(np.array(wanted), abs=1e-12)
            assert sum(wanted) == pytest.approx(1)
        assert chi_square(found.draw(500, hf.seeded(seed)), nodes, chances) < 6
        made += 1
    assert made > 15


def test_draws_in_balls_and_draws_in_doubles_choose_the_same_tables(monkeypatch):
    """With doubles that decide nothing, balls choose the same places by the same numbers."""
    found = hf.reconcile_laws(TREE, CASES["samples with gaps"])
    drawn = found.draw(200, hf.seeded(3))
    doubles = AnyLaws._in_doubles
    monkeypatch.setattr(AnyLaws, "_in_doubles", lambda self, part: (*doubles(self, part)[:2], 1.0))
    assert np.array_equal(found.draw(200, hf.seeded(3)), drawn)


@pytest.mark.parametrize(
    ("laws", "words"),
    [
        ([[1]] * 6, "one law, or None, for each of 7 nodes"),
        ([[1, np.nan], *[[1]] * 6], "node 0"),
        ([[1, -1], *[[1]] * 6], "node 0"),
        ([*[[1]] * 6, [0, 0]], "node 6"),
        ([*[[1]] * 6, "text"], "node 6"),
        ([(1.5, [1]), *[[1]] * 6], "whole number"),
        ([None] * 7, "at least one law"),
        ([[1, 1], None, None, None, None, None, None], "has no law"),
        ([(50, [1]), *[[1, 1]] * 6], "never meet"),
        ([(1, [1]), *[(0, [1, 0, 1])] * 6], "never meet"),
        ([(1, [1]), *[[1, 0, 1]] * 2, *[[1]] * 2, [1, 0, 1], [1]], "never meet"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(laws, words):
    with pytest.raises(hf.Refused, match=words) as caught:
        hf.reconcile_laws(TREE, laws)
    assert "\n" not in str(caught.value)
