"""Draws on hierarchies with leaves that are not measured, against all tables."""

import numpy as np
import pytest
from scipy import stats

import holdfast as hf
from free_leaves import BOUNDED, CASES, INF, TRUTH, law, mechanism, tables

ALARM = 1e-8
ALL = CASES | BOUNDED


def pearson(values, nodes, chances):
    """The p-value of tables drawn, those expected fewer than ten times together."""
    expected = dict(zip(map(bytes, nodes), chances * len(values), strict=True))
    seen = {}
    for row in map(bytes, values):
        seen[row] = seen.get(row, 0) + 1
    likely = [row for row, times in expected.items() if times >= 10]
    observed = np.array([seen.get(row, 0) for row in likely])
    wanted = np.array([expected[row] for row in likely])
    observed, wanted = (np.append(each, len(values) - each.sum()) for each in (observed, wanted))
    return stats.chi2.sf(((observed - wanted) ** 2 / wanted).sum(), len(likely))


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", ALL)
def test_draws_have_the_exact_law(name, kind):
    tree, scales, extra = ALL[name]
    nodes = tables(tree, reach=9)
    values = mechanism(ALL[name], kind).simulate(tree.sum_up(TRUTH), 2_500, rng=hf.seeded(5))
    assert np.array_equal(values, tree.sum_up(values[:, tree.leaves].T).T)
    assert pearson(values, nodes, law(ALL[name], kind, nodes)) > ALARM
    # the law in which what is not measured is measured with a scale of 0.75: rejected
    measured = (tree, [0.75 if scale == INF else scale for scale in scales], extra)
    assert pearson(values, nodes, law(measured, kind, nodes)) < ALARM


def test_one_release_and_many_rows_have_one_law():
    """Rows one by one, and many at once."""
    made = mechanism(CASES["up to the root"], "laplace")
    nodes = tables(CASES["up to the root"][0], reach=9)
    truth = CASES["up to the root"][0].sum_up(TRUTH)
    for rows in (500, 20_000):
        values = truth + made.noise(rows, rng=hf.seeded(6))
        assert pearson(values, nodes, law(CASES["up to the root"], "laplace", nodes)) > ALARM
