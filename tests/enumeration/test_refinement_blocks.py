"""Losses of refinements in blocks, of Gaussian noise, with further knowledge, and of matrices in doubles."""

import time
from fractions import Fraction
from itertools import chain, combinations

import numpy as np
import pytest
from scipy.optimize import linprog

import holdfast as hf
from holdfast.exact import cheapest_rational as least_cost
from holdfast.refinement import LinearRefinement

GRADES = np.array([[1, 1, 1, 1, 0, -1, 0], [0, 0, 0, 0, 1, 1, -1], [1, 1, 0, 0, 0, 0, 0]]).T
ONE_MORE_A = [1, 0, 0, 0, 0, 1, 1]


def subsets(n):
    return list(chain.from_iterable(combinations(range(n), k) for k in range(1, n + 1)))


def laplace_cost(A, d, weights):
    """min Σ w|t| over A t = d by a solver that shares nothing with the package; None where there is no t."""
    n = A.shape[1]
    found = linprog(np.tile(weights, 2), A_eq=np.hstack([A, -A]), b_eq=d, bounds=[(0, None)] * (2 * n))
    return found.fun if found.status == 0 else None


def gaussian_cost(A, d, weights):
    """½ dᵀ(AΣAᵀ)⁺d with weights 1/2σ², None where d is not in the range."""
    covariance = A @ np.diag(1 / (2 * weights)) @ A.T
    if np.linalg.norm(A @ np.linalg.pinv(A) @ d - d) > 1e-9:
        return None
    return float(d @ np.linalg.pinv(covariance, rcond=1e-11) @ d) / 2


def in_blocks(rng):
    """A refinement of two or three groups of answers in mixed order, with a change in some of them."""
    parts = []
    for _ in range(int(rng.integers(2, 4))):
        n = int(rng.integers(1, 4))
        B = rng.integers(-1, 2, (n, int(rng.integers(1, max(2, n)))))
        parts.append(LinearRefinement.best(B).A if B.any() else np.eye(n))
    n = sum(map(len, parts))
    A, at = np.zeros((n, n)), 0
    for part in parts:
        A[at : at + len(part), at : at + len(part)] = part
        at += len(part)
    order = rng.permutation(n)
    return A[np.ix_(order, order)], rng.integers(-1, 3, n)


@pytest.mark.slow
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("seed", range(5))
def test_blocks_add_up_to_the_largest_over_all_subsets(law, seed):
    rng = np.random.default_rng([77, seed])
    A, d = in_blocks(rng)
    scales = rng.choice([0.5, 1.0, 2.0, 3.0], len(A))
    weights = 1 / scales if law == "laplace" else 1 / (2 * scales**2)
    cost = laplace_cost if law == "laplace" else gaussian_cost
    costs = {s: cost(A[list(s)], d[list(s)], weights) for s in subsets(len(A))}
    found = hf.refinement_loss(A, d, scales, law=law)
    assert float(found) == pytest.approx(max([0.0, *(c for c in costs.values() if c is not None)]), abs=1e-7)
    if found.outputs:
        assert costs[found.outputs] == pytest.approx(float(found), abs=1e-7)
    for s in list(costs)[:: max(1, len(costs) // 12)]:
        seen = hf.refinement_loss(A, d, scales, outputs=s, law=law)
        assert float(seen) == pytest.approx(np.inf if costs[s] is None else costs[s], abs=1e-7)


def test_few_unknowns_and_all_pivots_agree(monkeypatch):
    rng = np.random.default_rng(78)
    cases = []
    for _ in range(25):
        n = int(rng.integers(3, 7))
        B = rng.integers(-2, 3, (n, 1))
        if B.any():
            cases.append((LinearRefinement.best(B, rng.integers(1, 4, n)), rng.integers(-2, 3, n)))
    found = [hf.refinement_loss(A, d, 1).exact for A, d in cases]
    monkeypatch.setattr(least_cost, "cheapest_near", lambda *_: None)
    assert [hf.refinement_loss(A, d, 1).exact for A, d in cases] == found


def test_seven_groups_of_four_take_no_time():
    B = np.kron(np.eye(7, dtype=int), np.ones((4, 1), dtype=int))
    change = np.tile([1, 0, 0, 0], 7)
    started = time.process_time()
    found = hf.refinement_loss(LinearRefinement.best(B), change, 1)
    assert time.process_time() - started < 5
    one = hf.refinement_loss(LinearRefinement.best(B[:4, :1]), change[:4], 1)
    assert found.exact == 7 * one.exact == 14


@pytest.mark.slow
def test_the_tree_of_zones_takes_seconds():
    zones = [43, 61, 1, 69, 69, 20]
    tree = hf.Hierarchy.from_parents([-1, *[0] * 6, *(1 + b for b, count in enumerate(zones) for _ in range(count))])
    known = hf.consistent(tree).system(tree.n).null_space().rows.toarray().T
    path = hf.counts(tree).columns.toarray()[:, 100]
    refinement = LinearRefinement.best(known)
    assert hf.refinement_loss(refinement, path, 3).exact == 1
    assert hf.refinement_loss(refinement, path, 3, law="gaussian").exact == Fraction(3, 18)


def test_a_projector_in_doubles_is_recognised():
    B = GRADES.astype(float)
    A = np.eye(7) - B @ np.linalg.inv(B.T @ B) @ B.T
    assert hf.refinement_loss(A, ONE_MORE_A, 3).exact == Fraction(5, 3)
    dusty = LinearRefinement.best(GRADES).A
    dusty[dusty == 0] = 2.0**-54
    assert hf.refinement_loss(dusty, ONE_MORE_A, 3).exact == Fraction(5, 3)


def test_a_projector_that_cannot_be_read_is_refused_with_the_remedy():
    B = np.array([[1.0, 0.0], [1009.0, 1.0], [0.0, 1013.0]])  # denominators beyond what doubles show
    A = np.eye(3) - B @ np.linalg.inv(B.T @ B) @ B.T
    with pytest.raises(hf.Refused, match=r"LinearRefinement\.best"):
        hf.refinement_loss(A, [1, 0, 0], 1)
    near = np.array([[0.5, 0.5], [0.5, 0.5]]) + 2e-10
    with pytest.raises(hf.Refused, match=r"LinearRefinement\.best"):
        hf.refinement_loss(near, [1, 1], 1)


def test_further_knowledge_costs_at_most_the_refined_answers():
    refinement = LinearRefinement.best([[1], [1], [1]])
    found = hf.refinement_loss(refinement, [1, -1, 0], 1, knowledge=hf.ordered([0, 1, 2]))
    assert found.exact == hf.refinement_loss(refinement, [1, -1, 0], 1, outputs=[0, 1, 2]).exact == 2
    assert not found.attained
    with pytest.raises(hf.Refused, match="outputs cannot be named"):
        hf.refinement_loss(refinement, [1, -1, 0], 1, outputs=[0], knowledge=hf.between(0, 10))
    with pytest.raises(hf.Refused, match="structural"):
        hf.refinement_loss(refinement, [1, -1, 0], 1, knowledge=hf.invariant([[1, 1, 1]]))


def test_moved_answers_tell_no_more_than_was_stated():
    """X̂ moved to an order, on a grid of noises, by counting: X̂₁ = (X₁ − X₂ + 5)/2, and 5/2 where that is more."""
    rho = float(hf.refinement_loss(LinearRefinement.best([[1], [1]]), [1, -1], 1, knowledge=hf.ordered([0, 1])))
    steps = np.arange(-160, 161)
    weights = np.exp(-(np.abs(steps)[:, None] + np.abs(steps)[None, :]) / 4)
    shares = []
    for truth in ([8, 12], [12, 8]):  # in quarters
        gaps = (truth[0] + steps)[:, None] - (truth[1] + steps)[None, :]
        moved = np.minimum(gaps, 0)
        shares.append(np.array([weights[moved == gap].sum() for gap in range(-80, 1)]))
    worst = np.abs(np.log(shares[0] / shares[1])).max()
    assert rho - 0.2 < worst <= rho


@pytest.mark.parametrize(
    ("knowledge", "move", "groups"),
    [
        (hf.between(0, 3), lambda x: np.clip(x, 0, 9), [(0,), (1,), (2,)]),  # in thirds
        (
            hf.ordered([0, 1]),
            lambda x: np.stack([np.minimum(x[0], (x[0] + x[1]) / 2), np.maximum(x[1], (x[0] + x[1]) / 2), x[2]]),
            [(0, 1), (2,)],
        ),
    ],
)
def test_moved_answers_where_the_known_total_changes(knowledge, move, groups):
    """Whole noise on three cells with a known total, one of which grows: all outputs listed, moved group by group."""
    best, change, reach = LinearRefinement.best([[1], [1], [1]]), [1, 0, 0], 14
    noise = np.stack(np.meshgrid(*[np.arange(-reach, reach + 1)] * 3, indexing="ij")).reshape(3, -1)
    weights, told = np.exp(-np.abs(noise).sum(axis=0)), []
    for count in range(1, len(groups)):
        for some in combinations(groups, count):
            outputs = sorted(chain.from_iterable(some))
            loss = hf.refinement_loss(best, change, 1, outputs[:1] if count == 1 else outputs, integer=True,
                                      knowledge=knowledge)  # fmt: skip
            assert loss.outputs == tuple(outputs)  # an answer brings its whole group along
            shares = []
            for truth in ([1, 1, 1], [2, 1, 1]):
                refined = 3 * np.array(truth)[:, None] + 3 * noise - noise.sum(axis=0)  # in thirds
                seen = np.round(2 * move(refined.astype(float))[outputs]).astype(int)
                keys, place = np.unique(seen, axis=1, return_inverse=True)
                share = np.bincount(place.ravel(), weights)
                shares.append(dict(zip(map(tuple, keys.T.tolist()), share.tolist(), strict=True)))
            both = [key for key in shares[0] if min(shares[0][key], shares[1].get(key, 0)) > 1e-4]
            worst = max(abs(np.log(shares[0][key] / shares[1][key])) for key in both)
            assert worst <= float(loss) + 1e-3
            told.append(worst / max(float(loss), 1e-9))
    assert max(told) > 0.3
    whole = hf.refinement_loss(best, change, 1, integer=True, knowledge=knowledge)
    assert not whole.attained
    assert set(whole.outputs) in [set(chain.from_iterable(some)) for some in combinations(groups, len(groups) - 1)]
    assert hf.refinement_loss(best, change, 1, range(3), knowledge=knowledge) == np.inf


def test_whole_gaussian_noise_is_refused():
    with pytest.raises(hf.Refused, match="whole Gaussian"):
        hf.refinement_loss(np.eye(2), [1, 0], 1, integer=True, law="gaussian")
