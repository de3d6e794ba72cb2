"""project(): a mechanism of the user's own keeps its guarantee in the subspace scope and nothing more."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

import holdfast as hf
from holdfast.mechanism import project
from holdfast.mechanism.projected import _products
from subspaces import TREE, exact

CELLS = hf.histogram(4)
TOTAL = hf.invariant([[1, 1, 1, 1]])
TRUTH = np.array([5, 0, 2, 9])


def claim(kind="add-remove", **numbers):
    return hf.Guarantee(neighbours=hf.Neighbours(kind), because="my proof", **(numbers or {"epsilon": 0.5}))


def clipped(truth):
    """Neither additive nor unbiased (nor private: only what is done with its answers is tested)."""
    return np.where(np.arange(truth.size) % 2 == 0, np.minimum(truth, 3), truth + 1)


def test_the_projected_answer_keeps_the_figures_and_the_rest_of_the_answer():
    mechanism = project(clipped, CELLS, TOTAL, guarantee=claim())
    values = mechanism.release(TRUTH).values
    assert values.sum() == pytest.approx(TRUTH.sum())
    raw = clipped(TRUTH)
    assert values - values.mean() == pytest.approx(raw - raw.mean())
    assert mechanism.simulate(TRUTH, 3).shape == (3, 4)
    with pytest.raises(hf.Refused, match="error bars"):
        mechanism.release(TRUTH).interval()


def test_statements():
    first, second = project(clipped, CELLS, TOTAL, guarantee=claim()).guarantees
    assert (first.scope, first.epsilon, first.status) == ("subspace", 0.5, "proved")
    assert any("not holdfast's" in caveat for caveat in first.caveats)
    assert first.unprotected
    # One record goes and one comes: two steps of the claimed relation.
    assert (second.scope, second.epsilon, second.records) == ("invariant-sharing", 1.0, 2)
    (only,) = project(clipped, CELLS, TOTAL, guarantee=claim("replace-one", epsilon=1, delta=1e-6)).guarantees
    assert (only.scope, only.epsilon, only.delta) == ("all", 1.0, 1e-6)
    margins = hf.invariant(hf.exact_margins((2, 2), [(0,), (1,)]))
    swap = project(clipped, CELLS, margins, guarantee=claim(rho=0.1)).guarantees[-1]
    # A swap replaces two records: four steps, and ρ grows with their square.
    assert (swap.scope, swap.records, swap.neighbours.kind) == ("invariant-sharing", 2, "replace-one")
    assert swap.rho == pytest.approx(1.6)


def test_structural_equalities_hold_too():
    query, constraint = exact(TREE, [0])
    truth = query.answer([3, 0, 5, 1, 2])
    generator = np.random.default_rng(1)
    mechanism = project(lambda x: x + generator.laplace(size=x.size), query, constraint, guarantee=claim())
    values = mechanism.release(truth).values
    assert values[0] == pytest.approx(truth[0])
    assert values == pytest.approx(TREE.sum_up(values[TREE.leaves]))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((3, CELLS, TOTAL, claim()), "must be a function"),
        ((clipped, 4, TOTAL, claim()), "a query is expected"),
        ((clipped, CELLS, TOTAL, 0.5), "must be a Guarantee"),
        ((clipped, CELLS, TOTAL, claim(epsilon=np.inf)), "void or narrower"),
        ((clipped, CELLS, hf.nonnegative(), claim()), "equalities only"),
        ((clipped, CELLS, hf.equals([[1, 1, 1, 1]], [16]), claim()), "for exact figures"),
    ],
)
def test_refusals(arguments, words):
    *rest, guarantee = arguments
    with pytest.raises(hf.Refused, match=words):
        project(*rest, guarantee=guarantee)


def test_answers_of_another_shape_are_refused():
    with pytest.raises(hf.Refused, match="shape"):
        project(lambda truth: truth[:2], CELLS, TOTAL, guarantee=claim()).release(TRUTH)


@pytest.mark.slow
def test_the_same_answer_and_figures_give_the_same_bits_whatever_the_truth():
    generator = np.random.default_rng(5)
    thirds = hf.invariant([[1, 1, 1, 0], [0, 0, 1, 1]])
    for _ in range(50):
        truth = generator.integers(0, 30, size=4)
        noisy = generator.integers(-9, 40, size=4)
        mechanism = project(lambda _, given=noisy: given, CELLS, thirds, guarantee=claim())
        other = truth + generator.integers(1, 9) * np.array([1, -1, 0, 0])
        assert mechanism.release(truth).values.tolist() == mechanism.release(other).values.tolist()
        # Real answers too: halves and tenths have one exact sum, whichever cells they stand in.
        tenths = project(lambda _, given=noisy: given * 0.1, CELLS, thirds, guarantee=claim())
        moved = tenths.release(truth / 8).values
        assert moved.tolist() == tenths.release(other / 8).values.tolist()
        assert moved[:3].sum() == pytest.approx(truth[:3].sum() / 8)


def test_what_the_claim_leaves_unprotected_is_said_again():
    claimed = hf.Guarantee(
        epsilon=1.0, neighbours=hf.Neighbours("replace-one"), because="my proof", unprotected=("the total",)
    )
    found = project(clipped, CELLS, hf.invariant([[1, 0, 0, 0]]), guarantee=claimed).guarantees
    assert len(found) == 2
    assert all(each.unprotected[0] == "the total" and len(each.unprotected) > 1 for each in found)


def test_a_query_known_by_its_sensitivities_says_so():
    query = hf.query(4, l1=1, l2=1)
    sharing = project(clipped, query, TOTAL, guarantee=claim()).guarantees[-1]
    assert sharing.scope == "invariant-sharing"
    assert any("known by its sensitivities only" in caveat for caveat in sharing.caveats)


def test_products_are_rounded_once():
    generator = np.random.default_rng(2)
    for size in (1e-3, 1e200, 1e-200):
        rows = sparse.csr_array(generator.integers(-(2**40), 2**40, (3, 5)))
        values = generator.standard_normal(5) * size
        values[1] = -values[0]
        exact = [
            float(sum(int(a) * Fraction(v) for a, v in zip(row, values.tolist(), strict=True)))
            for row in rows.toarray()
        ]
        assert _products(rows, values).tolist() == exact
