"""What the auditor calls exact is a lower bound on the loss, and nearly the loss itself; its pairs are neighbours.

Everything is computed again here from the definition, by listing tables and outputs.
"""

import itertools
import math

import numpy as np
import pytest

import holdfast as hf
from holdfast.auditing.pairs import Pair, changes, neighbouring, records_changed, searched_pairs
from holdfast.auditing.tested_claims import Claim, Losses, listed

TREE = hf.Hierarchy.from_parents([-1, 0, 0])


def mechanisms():
    total = hf.invariant([[1, 1, 1]])
    return {
        "free": hf.laplace(hf.histogram(2), scale=1),
        "bounds": hf.laplace(hf.histogram(2), scale=1).given(hf.nonnegative()),
        "box": hf.laplace(hf.histogram(2), scale=2).given(hf.between(0, 3)),
        "order": hf.laplace(hf.histogram(2), scale=1).given(hf.ordered([0, 1])),
        "tree": hf.laplace(hf.counts(TREE), scale=[1, 2, 1.5]).given(hf.consistent(TREE) & hf.nonnegative()),
        "total": hf.laplace(hf.histogram(3), scale=1, neighbours="replace-one").given(total & hf.nonnegative()),
        "gaussian": hf.gaussian(hf.histogram(2), scale=1.5).given(hf.nonnegative()),
        "union": hf.laplace(hf.histogram(1), scale=1).given(hf.between(0, 1) | hf.between(4, 5)),
        "moved": hf.laplace(hf.histogram(1), scale=1).onto(hf.between(0, 4)),
        "grid": hf.laplace(hf.workload([[0.5, 1.5]], grid=0.5), scale=2).given(hf.nonnegative()),
    }


def law(mechanism, truth):
    """The exact law at a truth, output by output, in units of the grid."""
    reach = 200 if mechanism.query.n == 1 else 45
    steps = mechanism.query.in_steps("truth", truth, (mechanism.query.n,), whole=True)
    system = mechanism.source.system
    found = {}
    if system is None or system.branches or not system.equalities.count + system.invariants.count:
        noises = itertools.product(range(-reach, reach + 1), repeat=len(steps))
    elif system.invariants.count:
        noises = ((a, b, -a - b) for a in range(-reach, reach + 1) for b in range(-reach, reach + 1))
    else:
        noises = ((a + b, a, b) for a in range(-reach, reach + 1) for b in range(-reach, reach + 1))
    noises = np.array(list(noises))
    outputs = steps + noises
    if system is not None:
        keep = np.asarray(system.holds(outputs, mechanism.base.unit))
        noises, outputs = noises[keep], outputs[keep]
    scales = mechanism.base.law.scale_values
    which = np.zeros(len(steps), dtype=int) if mechanism.base.law.which is None else mechanism.base.law.which
    values = np.array([float(scales[k]) for k in which])
    power = np.abs(noises) / values if mechanism.base.law.kind == "laplace" else noises**2 / (2 * values)
    weights = np.exp(-power.sum(axis=1))
    if mechanism.moves:
        outputs = np.clip(outputs, 0, 4)
    for output, weight in zip(outputs.tolist(), weights.tolist(), strict=True):
        found[tuple(output)] = found.get(tuple(output), 0.0) + weight
    total = math.fsum(found.values())
    return {output: weight / total for output, weight in found.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", mechanisms())
def test_listed_laws_bound_the_loss_from_below_and_closely(name):
    mechanism = mechanisms()[name]
    statement = mechanism.guarantee
    pairs = searched_pairs(mechanism.query, mechanism.held, statement.scope, statement.neighbours, 6, 1)[:6]
    assert pairs
    for pair in pairs:
        laws = listed(mechanism, pair)
        p, q = law(mechanism, pair.one), law(mechanism, pair.other)
        # Outputs of which both laws are surely not cut by the window of this test.
        seen = [z for z in p if z in q and min(p[z], q[z]) > 1e-12]
        for first, second, row in ((p, q, 0), (q, p, 1)):
            losses = Losses(laws.below[row], laws.above[1 - row])
            true_largest = max(math.log(first[z] / second[z]) for z in seen)
            slack = 1e-6 if mechanism.base.law.kind == "laplace" else np.inf  # a Gaussian's loss has no end
            assert true_largest - 1e-3 <= losses.largest <= true_largest + slack
            for epsilon in (0.0, 0.3, 0.8):
                true = math.fsum(max(0.0, first[z] - math.exp(epsilon) * second.get(z, 0.0)) for z in first)
                assert true - 1e-3 <= losses.delta(epsilon) <= true + 1e-12
            true = math.log(math.fsum(first[z] ** 2 / second[z] for z in seen))
            assert losses.renyi(2) <= true + 1e-6


def test_a_narrow_window_still_bounds_from_below():
    """The bound holds for whatever is left out: no exactness is claimed that a window does not have."""
    mechanism = hf.laplace(hf.histogram(4), epsilon=1).given(hf.nonnegative() & hf.ordered([0, 1, 2, 3]))
    pair = Pair(np.array([0, 0, 1, 2]), np.array([0, 0, 1, 3]), "")
    laws = listed(mechanism, pair)
    assert laws is not None
    assert max(laws.missing) > 1e-12
    found = max(Losses(laws.below[k], laws.above[1 - k]).largest for k in (0, 1))
    assert found <= 2.0


def all_changes(query, held, scope, relation, reach):
    """Every change of cells by its definition."""
    rows = np.zeros((0, query.cells))
    if held is not None:
        parts = [held.equalities.A.toarray()] + [held.invariants.A.toarray()] * (scope == "invariant-sharing")
        rows = np.vstack(parts) @ query.columns.toarray()
    for change in itertools.product(range(-reach, reach + 1), repeat=query.cells):
        vector = np.array(change)
        few = records_changed(vector, relation) <= relation.records
        if vector.any() and few and not (rows @ vector).any() and (query.columns @ vector).any():
            yield tuple(change)


@pytest.mark.parametrize("records", [1, 2, 3])
@pytest.mark.parametrize("kind", ["add-remove", "replace-one"])
@pytest.mark.parametrize("scope", ["all", "invariant-sharing"])
def test_changes_are_neighbours_and_the_largest_is_among_them(kind, scope, records):
    relation = hf.Neighbours(kind, records=records)
    query = hf.workload([[2, 1, 1], [2, 0, 0], [0, 1, 0], [0, 0, 1]])
    held = (hf.invariant([[1, 0, 0, 0]]) & hf.nonnegative()).system(4)
    true = set(all_changes(query, held, scope, relation, 3))
    found = {tuple(each.tolist()) for each in changes(query, held, scope, relation, 1)}
    assert found <= true
    assert bool(found) == bool(true)
    if true:
        size = lambda change: np.abs(query.columns @ np.array(change)).sum()  # noqa: E731
        assert max(map(size, found)) == max(map(size, true))


def test_pairs_are_possible_neighbours_and_reach_the_corners():
    relation = hf.Neighbours("add-remove")
    query = hf.histogram(2)
    held = (hf.between(2, 5) & hf.ordered([0, 1])).system(2)
    pairs = searched_pairs(query, held, "all", relation, 100, 1)
    assert pairs
    for pair in pairs:
        assert held.violation(pair.one) is None
        assert held.violation(pair.other) is None
        assert np.abs(pair.one - pair.other).sum() == 1
    ends = {tuple(end.tolist()) for pair in pairs for end in (pair.one, pair.other)}
    assert {(2, 2), (5, 5)} <= ends


def test_pairs_that_a_statement_is_not_about_are_told_apart():
    query = hf.counts(TREE)
    held = (hf.consistent(TREE) & hf.invariant(hf.exact_nodes(TREE, [0]))).system(3)
    swap = Pair(np.array([3, 1, 2]), np.array([3, 2, 1]), "")
    more = Pair(np.array([3, 1, 2]), np.array([4, 2, 2]), "")
    one, two = hf.Neighbours("add-remove"), hf.Neighbours("add-remove", records=2)
    assert neighbouring(swap, query, held, "invariant-sharing", two)
    assert not neighbouring(swap, query, held, "invariant-sharing", one)
    assert not neighbouring(more, query, held, "invariant-sharing", two)
    assert neighbouring(more, query, held, "subspace", one)
    assert neighbouring(swap, query, held, "all", hf.Neighbours("replace-one"))


def test_a_claim_is_what_its_statement_implies():
    claim = Claim.of(hf.gaussian(hf.histogram(2), rho=0.5, integer=False).guarantee)
    for epsilon, delta in zip(claim.epsilons, claim.deltas, strict=True):
        assert delta == pytest.approx(claim.statement.at_epsilon(float(epsilon)).delta, rel=1e-9)
    pure = Claim.of(hf.laplace(hf.histogram(2), epsilon=1).guarantee)
    margins, _ = pure.margin([0.5, 0.2], [0.1, 0.1])
    assert margins == pytest.approx([math.log(5) - 1, math.log(2) - 1])
