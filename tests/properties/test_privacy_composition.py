"""What statements promise together, and what must be refused."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.arguments import Refused
from holdfast.beliefs import hockey_stick, log_ratio, renyi
from holdfast.privacy import (
    Guarantee,
    compose,
    for_records,
    gaussian_delta,
    gaussian_epsilon,
    outward,
    pure_rho,
    rho_to_epsilon,
)
from holdfast.queries import Neighbours

quick = settings(max_examples=20, deadline=None, derandomize=True)
statement = partial(Guarantee, neighbours="add-remove", because="a theorem")


def response(p: Fraction) -> tuple[dict[int, Fraction], dict[int, Fraction]]:
    return {0: p, 1: 1 - p}, {0: 1 - p, 1: p}


def both(first: dict, second: dict) -> dict:
    return {(a, b): x * y for a, x in first.items() for b, y in second.items()}


@quick
@given(st.lists(st.floats(0, 5), min_size=1, max_size=6))
def test_pure_epsilon_adds_and_rounds_once(epsilons):
    total = compose([statement(epsilon=e) for e in epsilons])
    assert total.epsilon == outward(sum(map(Fraction, epsilons), Fraction(0)))
    assert total.delta == 0.0
    assert total.status == "proved"


def test_composition_dominates_an_enumerated_pair():
    one, other = response(Fraction(9, 10)), response(Fraction(3, 4))
    p, q = both(one[0], other[0]), both(one[1], other[1])
    parts = [statement(epsilon=outward(Fraction(math.log(9) * (1 + 1e-15)))), statement(epsilon=math.log(3))]
    assert compose(parts).epsilon == pytest.approx(log_ratio(p, q), rel=1e-12)
    for delta in (0.01, 0.3):
        at = compose(parts, delta=delta)
        assert hockey_stick(p, q, at.epsilon) <= at.delta <= delta
    at = compose(parts, epsilon=2.5)
    assert hockey_stick(p, q, 2.5) <= at.delta
    total = compose(parts)
    for order in (1.5, 2, 10):
        assert renyi(p, q, order) <= order * total.rho


def test_rho_adds_and_pure_joins_through_tanh():
    total = compose([statement(rho=0.25), statement(rho=0.5)])
    assert (total.rho, total.epsilon, total.orders) == (0.75, None, "all")
    mixed = compose([statement(rho=0.25), statement(epsilon=1.0)])
    assert mixed.rho == outward(Fraction(0.25) + Fraction(pure_rho(1.0)))
    assert mixed.epsilon is None
    assert compose([statement(rho=0.25, orders="integer"), statement(rho=0.5)]).orders == "integer"
    at = mixed.at_delta(1e-6)
    assert at.epsilon == rho_to_epsilon(mixed.rho, 1e-6)
    better = compose([statement(rho=0.25), statement(epsilon=1.0)], delta=1e-6)
    assert better.epsilon <= at.epsilon
    assert better.epsilon > rho_to_epsilon(0.25, 1e-6)


def test_gaussian_statements_add_in_squares():
    total = compose([statement(mu=0.3, rho=0.045), statement(mu=0.4, rho=0.08)])
    assert total.mu == pytest.approx(0.5, rel=1e-15)
    assert total.mu >= 0.5
    at = compose([statement(mu=0.3), statement(mu=0.4)], delta=1e-6)
    assert at.epsilon == pytest.approx(gaussian_epsilon(0.5, 1e-6), rel=1e-12)
    assert compose([statement(mu=0.3), statement(mu=0.4)], epsilon=2).delta == pytest.approx(
        gaussian_delta(0.5, 2), rel=1e-12
    )


def test_gaussian_and_pure_statements_meet_in_rho():
    total = compose([statement(mu=0.5), statement(epsilon=1.0)])
    assert total.rho == outward(Fraction(0.125) + Fraction(pure_rho(1.0)))
    assert total.mu is None
    at = compose([statement(mu=0.5), statement(epsilon=1.0), statement(epsilon=0.1, delta=1e-9)], delta=1e-6)
    assert gaussian_epsilon(0.5, 1e-6) < at.epsilon < gaussian_epsilon(0.5, 1e-6) + 1.3


def test_approximate_statements_add_both_numbers():
    total = compose([statement(epsilon=1.0, delta=1e-6), statement(epsilon=0.5, delta=1e-7)])
    assert total.epsilon == 1.5
    assert total.delta == outward(Fraction(1e-6) + Fraction(1e-7))
    mixed = [statement(epsilon=1.0, delta=1e-6), statement(rho=0.1)]
    with pytest.raises(Refused, match="pass delta"):
        compose(mixed)
    at = compose(mixed, delta=2e-6)
    assert 1.0 + rho_to_epsilon(0.1, 2e-6) < at.epsilon < 1.01 * (1.0 + rho_to_epsilon(0.1, 1e-6))
    assert at.delta <= 2e-6
    with pytest.raises(Refused, match="must exceed the sum"):
        compose(mixed, delta=5e-7)
    with pytest.raises(Refused, match="not both"):
        compose(mixed, delta=1e-5, epsilon=1)


def test_void_stays_void():
    assert compose([statement(epsilon=math.inf), statement(rho=0.1)]).void


def test_scopes_narrow_and_words_unite():
    everything = statement(epsilon=1.0, unprotected=("a",), caveats=("x", "y"))
    subspace = statement(epsilon=1.0, scope="subspace", unprotected=("the total",), caveats=("y",))
    sharing = statement(epsilon=1.0, scope="invariant-sharing", unprotected=("the margins",), status="estimated")
    assert compose([everything, everything]).scope == "all"
    assert compose([everything, subspace]).scope == "subspace"
    total = compose([everything, subspace, sharing])
    assert total.scope == "invariant-sharing"
    assert total.status == "estimated"
    assert total.unprotected == ("a", "the total", "the margins")
    assert total.caveats[:2] == ("x", "y")
    assert any("different exact figures" in caveat for caveat in total.caveats)
    assert not any("different exact figures" in caveat for caveat in compose([sharing, sharing]).caveats)


def test_numerical_error_adds():
    part = statement(epsilon=1.0, delta=1e-9, numerical_delta=1e-9)
    total = compose([part, part])
    assert total.numerical_delta == total.delta == outward(2 * Fraction(part.delta))


def test_one_statement_is_itself():
    part = statement(epsilon=1.0, exact=True)
    assert compose([part]) == part


def test_different_neighbours_are_refused():
    with pytest.raises(Refused, match="same neighbours"):
        compose([statement(epsilon=1.0), Guarantee(epsilon=1.0, neighbours="replace-one", because="b")])
    with pytest.raises(Refused, match="at least one statement"):
        compose([])
    with pytest.raises(Refused, match="Guarantee values"):
        compose([1.0])  # type: ignore[list-item]


def test_group_privacy():
    three = for_records(statement(epsilon=0.5, rho=0.1, mu=0.2, exact=True), 3)
    assert (three.epsilon, three.records, three.exact) == (1.5, 3, False)
    assert three.rho == outward(9 * Fraction(0.1))
    assert three.mu == outward(3 * Fraction(0.2))
    assert "group privacy" in three.because
    approximate = for_records(statement(epsilon=0.5, delta=1e-6), 2)
    assert approximate.delta == pytest.approx(1e-6 * (1 + math.exp(0.5)), rel=1e-12)
    pairs = Guarantee(epsilon=0.5, neighbours=Neighbours("add-remove", 2), because="b")
    assert for_records(pairs, 5).epsilon == 1.5
    assert compose([statement(epsilon=0.5), pairs]).epsilon == 1.5
    with pytest.raises(Refused, match="at least 2"):
        for_records(pairs, 1)
    with pytest.raises(Refused, match="exact figures may change"):
        for_records(statement(epsilon=1.0, scope="invariant-sharing"), 2)
    with pytest.raises(Refused, match="whole orders"):
        for_records(statement(rho=1.0, orders="integer"), 2)
    assert for_records(statement(epsilon=1.0, rho=1.0, orders="integer"), 2).rho is None
    assert for_records(statement(epsilon=20.0, delta=1e-3), 3).void
    kept = for_records(statement(epsilon=20.0, delta=1e-3, mu=0.5), 3)
    assert (kept.epsilon, kept.delta, kept.mu) == (None, 0.0, 1.5)


def test_group_privacy_dominates_an_enumerated_chain():
    # A walk 0 – 1 – 2 whose steps are (ε, δ)-private with δ > 0: the ends obey the group statement.
    laws = [
        {0: Fraction(6, 10), 1: Fraction(3, 10), 2: Fraction(1, 10)},
        {0: Fraction(4, 10), 1: Fraction(4, 10), 2: Fraction(2, 10)},
        {0: Fraction(2, 10), 1: Fraction(4, 10), 2: Fraction(4, 10)},
    ]
    epsilon = 0.3
    delta = max(hockey_stick(laws[i], laws[j], epsilon) for i, j in ((0, 1), (1, 0), (1, 2), (2, 1)))
    group = for_records(statement(epsilon=epsilon, delta=delta), 2)
    assert hockey_stick(laws[0], laws[2], group.epsilon) <= group.delta
    # Doubling both numbers would be false here: δ must grow by more than 2.
    assert group.delta > 2 * delta
