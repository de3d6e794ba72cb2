"""Laws of all nodes given that all adds up, against enumeration, and bad input."""

import itertools

import numpy as np
import pytest

import holdfast as hf

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
        assert probabilities == pytest.approx(np.array(wanted), abs=1e-12)
    for v, (low, high) in enumerate(found.interval(0.9).tolist()):
        assert chances[(nodes[:, v] >= low) & (nodes[:, v] <= high)].sum() >= 0.9 - 1e-9
    drawn = found.draw(4_000, hf.seeded(1))
    assert np.array_equal(drawn, TREE.sum_up(drawn[:, TREE.leaves].T).T)
    assert np.abs(drawn.mean(axis=0) - means).max() < 6 * found.standard_error.max() / 4_000**0.5


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
    ],
)
def test_bad_input_is_refused_in_one_sentence(laws, words):
    with pytest.raises(hf.Refused, match=words) as caught:
        hf.reconcile_laws(TREE, laws)
    assert "\n" not in str(caught.value)
