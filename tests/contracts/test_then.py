"""`then`: what is computed from released values alone promises what they promised."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import holdfast as hf
from holdfast.mechanism import mixture, project
from holdfast.mechanism.processed import NO_VERBS, NOTHING_LEFT

F = Fraction
CELLS = np.array([4, 0, 7])


def total(values):
    return int(np.asarray(values).sum())


def test_statements_and_values_pass_through():
    base = hf.gaussian(hf.histogram(3), scale=2)
    mechanism = base.then(total, "the total")
    assert mechanism.guarantee.rho == base.guarantee.rho
    assert mechanism.guarantee.losses == base.guarantee.losses
    assert not mechanism.guarantee.exact
    assert mechanism.guarantee.because.endswith(
        "then the total, a function of the released values alone (post-processing, THEORY §3)"
    )
    made = mechanism.release(CELLS, hf.seeded(7))
    assert made.values == total(base.release(CELLS, hf.seeded(7)).values)
    assert made.guarantee.caveats  # made with a known seed
    assert "seed" in made.guarantee.caveats[-1]
    assert mechanism.simulate(CELLS, 3, hf.seeded(7)) == [total(row) for row in base.simulate(CELLS, 3, hf.seeded(7))]


def test_functions_follow_each_other_and_the_noise_can_be_calibrated():
    mechanism = (
        hf.laplace(hf.histogram(3), epsilon=1).then(total, "the total").then(lambda x: x >= 10, "whether it is ten")
    )
    made = mechanism.release(CELLS)
    assert made.values in (True, False)
    assert "then the total" in made.guarantee.because
    assert made.guarantee.because.endswith(
        "whether it is ten, a function of the released values alone (post-processing, THEORY §3)"
    )
    assert mechanism.calibrated(epsilon=F(1, 4)).guarantee.epsilon == pytest.approx(0.25)


def test_the_function_cannot_change_what_was_released_elsewhere():
    mechanism = hf.laplace(hf.histogram(3), epsilon=1).then(lambda values: values.fill(0), "spoil")
    assert mechanism.release(CELLS).values is None


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_subspace_statements_do_not_pass(neighbours):
    query, exact = hf.histogram(3), hf.invariant([[1, 1, 1]])
    plain = hf.laplace(query, epsilon=1, neighbours=neighbours)
    mechanisms = [
        hf.laplace(query, epsilon=1, neighbours=neighbours, integer=False).onto(exact),
        hf.extend(query, exact, epsilon=1, delta=1e-6, neighbours=neighbours),
        project(lambda truth: truth, query, exact, guarantee=plain.guarantee),
        plain.given(exact),
    ]
    for before in mechanisms:
        after = before.then(total, "the total")
        assert [each.scope for each in after.guarantees] == [
            each.scope for each in before.guarantees if each.scope != "subspace"
        ]
        # The total is exact: for neighbours with another total nothing could be promised about it.
        assert after.guarantee.scope == ("invariant-sharing" if neighbours == "add-remove" else "all")


def test_nothing_is_released_where_only_a_subspace_statement_holds():
    # No change of a few records keeps 1·x + 1000·y.
    mechanism = hf.laplace(hf.histogram(2), epsilon=1, integer=False).onto(hf.invariant([[1, 1000]]))
    assert mechanism.guarantee.scope == "subspace"
    with pytest.raises(hf.Refused, match="only a subspace statement"):
        mechanism.then(total, "the total").release([3, 4])
    assert "subspace" in NOTHING_LEFT


@pytest.mark.parametrize(
    "make",
    [
        lambda query: hf.laplace(query, epsilon=1),
        lambda query: mixture([hf.laplace(query, epsilon=1), hf.laplace(query, epsilon=F(1, 2))], [F(1, 2), F(1, 2)]),
    ],
)
def test_no_verb_after_it(make):
    mechanism = make(hf.histogram(3)).then(total, "the total")
    for verb in (mechanism.given, mechanism.onto):
        with pytest.raises(hf.Refused) as refusal:
            verb(hf.nonnegative())
        assert str(refusal.value) == NO_VERBS


@pytest.mark.parametrize(("function", "name", "words"), [(3, "x", "function must"), (total, " ", "name must")])
def test_refusals(function, name, words):
    with pytest.raises(hf.Refused, match=words):
        hf.laplace(hf.histogram(3), epsilon=1).then(function, name)


def test_a_function_is_no_easier_to_tell_apart():
    # Every output listed: the worst ratio of "at least one" over neighbours stays below ε.
    mechanism = hf.laplace(hf.histogram(1), scale=F(3, 2)).then(lambda values: bool(values[0] >= 1), "at least one")
    a = math.exp(-2 / 3)

    def at_least_one(count):
        tail = {0: a / (1 + a)}  # P(U ≥ 1)
        for k in range(1, 6):
            tail[k] = tail[k - 1] + (1 - a) / (1 + a) * a ** (k - 1)  # P(U ≥ 1 − k)
        return tail[count]

    worst = max(
        abs(math.log(p / q))
        for k in range(5)
        for p, q in [
            (at_least_one(k), at_least_one(k + 1)),
            (1 - at_least_one(k), 1 - at_least_one(k + 1)),
        ]
    )
    assert worst <= mechanism.guarantee.epsilon * (1 + 1e-12)
