"""The statement itself: what it accepts, how it converts, orders, speaks and travels."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.arguments import Refused
from holdfast.privacy import Guarantee, best_first, gaussian_epsilon, outward, rho_to_delta, rho_to_epsilon
from holdfast.queries import Neighbours

statement = partial(Guarantee, neighbours="add-remove", because="Laplace noise (TV Prop 7)")
numbers = st.floats(0, 1e300) | st.floats(0, 10)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({}, "must state epsilon, rho or mu"),
        ({"epsilon": -1.0}, "epsilon must not be negative"),
        ({"epsilon": math.nan}, "epsilon must be a finite number"),
        ({"epsilon": "1"}, "epsilon must be a number"),
        ({"epsilon": True}, "epsilon must be a number"),
        ({"rho": math.inf}, "rho must be a finite number"),
        ({"mu": -0.1}, "mu must not be negative"),
        ({"epsilon": 1.0, "delta": 1.5}, "delta must be at most 1"),
        ({"epsilon": 1.0, "delta": 0.1, "numerical_delta": 0.2}, "numerical_delta is a part of delta"),
        ({"rho": 1.0, "delta": 0.1}, "delta needs an epsilon"),
        ({"epsilon": math.inf, "rho": 1.0}, "void guarantee"),
        ({"epsilon": 1.0, "neighbours": "swap"}, "neighbours must be"),
        ({"epsilon": 1.0, "scope": "everything"}, "scope must be one of"),
        ({"epsilon": 1.0, "status": "sure"}, "status must be one of"),
        ({"epsilon": 1.0, "orders": "integer"}, "describes rho"),
        ({"rho": 1.0, "orders": "whole"}, "orders must be one of"),
        ({"epsilon": 1.0, "because": " "}, "because must hold sentences"),
        ({"epsilon": 1.0, "exact": 1}, "exact must be one of"),
        ({"epsilon": 1.0, "caveats": "one"}, "caveats must be a sequence"),
        ({"epsilon": 1.0, "unprotected": (1,)}, "unprotected must hold sentences"),
    ],
)
def test_what_is_not_a_statement_is_refused(values, sentence):
    with pytest.raises(Refused, match=sentence):
        statement(**values)


def test_numbers_are_rounded_outwards():
    found = statement(epsilon=Fraction(1, 3), delta=Fraction(1, 10))
    assert Fraction(found.epsilon) >= Fraction(1, 3)
    assert found.epsilon == outward(Fraction(1, 3))
    assert isinstance(found.delta, float)


def test_frozen_hashable_and_without_repetition():
    one, other = statement(epsilon=1.0, caveats=["a", "a", "b"]), statement(epsilon=1, caveats=("a", "b"))
    assert one == other
    assert len({one, other}) == 1
    assert one.neighbours == Neighbours("add-remove")
    assert one.records == 1
    with pytest.raises(AttributeError):
        one.epsilon = 0.0  # type: ignore[misc]


@pytest.mark.slow
@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    numbers | st.just(math.inf),
    st.none() | numbers,
    st.none() | numbers,
    st.floats(0, 1),
    st.integers(1, 9),
    st.lists(st.text(min_size=1).filter(str.strip), max_size=3),
)
def test_json_gives_the_same_statement_back(epsilon, rho, mu, delta, records, words):
    void = math.isinf(epsilon)
    found = statement(
        epsilon=epsilon,
        delta=delta,
        rho=None if void else rho,
        mu=None if void else mu,
        neighbours=Neighbours("replace-one", records),
        caveats=words,
        unprotected=words,
        scope="subspace",
        status="estimated",
        numerical_delta=delta / 2,
        orders="integer" if rho is not None and not void else "all",
    )
    text = found.to_json()
    assert Guarantee.from_json(text) == found
    assert Guarantee.from_json(json.loads(text)) == found
    assert "Infinity" not in text


def test_void_in_json():
    text = statement(epsilon=math.inf).to_json()
    assert json.loads(text)["epsilon"] == "infinity"
    assert Guarantee.from_json(text).void


def test_unknown_and_missing_keys_are_refused():
    mapping = statement(epsilon=1.0).as_mapping()
    with pytest.raises(Refused, match="no key 'color'"):
        Guarantee.from_json(mapping | {"color": 1})
    with pytest.raises(Refused, match="needs the key 'delta'"):
        Guarantee.from_json({k: v for k, v in mapping.items() if k != "delta"})
    with pytest.raises(Refused, match="schema"):
        Guarantee.from_json(mapping | {"schema": "other"})
    with pytest.raises(Refused, match="reading failed"):
        Guarantee.from_json("{")
    with pytest.raises(Refused, match="'kind' and 'records'"):
        Guarantee.from_json(mapping | {"neighbours": "add-remove"})


def test_at_delta_takes_the_tightest_proved_way():
    exact = statement(mu=0.5, rho=0.125, exact=True).at_delta(1e-6)
    assert exact.epsilon == gaussian_epsilon(0.5, 1e-6) < rho_to_epsilon(0.125, 1e-6)
    assert exact.exact
    assert "Balle" in exact.because
    converted = statement(rho=0.125, orders="integer", exact=True).at_delta(1e-6)
    assert converted.epsilon == rho_to_epsilon(0.125, 1e-6, "integer")
    assert not converted.exact
    assert "whole orders" in converted.because
    assert converted.rho == 0.125
    pure = statement(epsilon=0.1, rho=10.0, exact=True).at_delta(1e-6)
    assert (pure.epsilon, pure.delta, pure.exact) == (0.1, 0.0, True)
    with pytest.raises(Refused, match="delta must be at least"):
        statement(epsilon=1.0, delta=1e-3).at_delta(1e-6)


def test_at_epsilon():
    assert statement(rho=0.125).at_epsilon(2).delta == rho_to_delta(0.125, 2)
    assert statement(epsilon=1.0).at_epsilon(2).epsilon == 1.0
    with pytest.raises(Refused, match="epsilon must be at least"):
        statement(epsilon=3.0).at_epsilon(2)


def test_order_of_preference():
    void = statement(epsilon=math.inf)
    estimated = statement(epsilon=0.1, status="estimated")
    sharing = statement(epsilon=0.2, scope="invariant-sharing")
    subspace = statement(epsilon=0.3, scope="subspace")
    small, large = statement(epsilon=0.5), statement(epsilon=0.6)
    found = best_first([void, estimated, large, sharing, subspace, small])
    assert found == (small, large, subspace, sharing, estimated, void)


def test_plain_words():
    text = str(
        statement(
            epsilon=Fraction(1, 3),
            delta=1e-6,
            rho=0.5,
            mu=1.0,
            neighbours=Neighbours("replace-one", 3),
            scope="invariant-sharing",
            status="estimated",
            unprotected=("published exactly: the total",),
            caveats=("drawn from a seed.",),
            numerical_delta=1e-9,
        )
    )
    for words in (
        "up to 3 records are each replaced by any other",
        "every exactly published figure stays the same",
        "Epsilon is 0.333334 with delta 1e-6",
        "1e-9 pays for numerical error",
        "Rho is 0.5",
        "Mu is 1: ",
        "Not protected: published exactly: the total.",
        "not proved",
        "upper bound",
        "Note: drawn from a seed.",
    ):
        assert words in text, (words, text)
    assert "Nothing is promised" in str(statement(epsilon=math.inf))
    assert "one record is added or removed" in str(statement(epsilon=1.0, exact=True))
    assert "The figure is attained" in str(statement(epsilon=1.0, exact=True))
    assert "whole Rényi orders" in str(statement(rho=1.0, orders="integer"))
    assert "only the noisy part" in str(statement(epsilon=1.0, scope="subspace"))


def test_words_never_promise_more_than_numbers():
    assert "Epsilon is 1.00001:" in str(statement(epsilon=1.0000000001))
    assert "Epsilon is 0.1:" in str(statement(epsilon=0.1))
    assert "Epsilon is 123457:" in str(statement(epsilon=123456.5))
