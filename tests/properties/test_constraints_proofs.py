"""Contradictions are refused only with a proof, and a wrong proof is not accepted."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from holdfast.arguments import Refused
from holdfast.constraints import Constraint, NullSpace, at_least, between, equals, fixed, nonnegative, ordered
from holdfast.constraints.possible import contradiction
from holdfast.constraints.possible.feasibility import (
    Model,
    _crossing_after_steps,
    _proof,
    _proved,
    model,
    whole_point,
)


def as_model(constraint: Constraint, *more: Constraint, n: int) -> Model:
    return model([part for each in (constraint, *more) for part in each.parts], n)


def test_a_proof_must_ask_for_strictly_more_than_the_bounds_allow() -> None:
    for high, proved in ((2, False), (Fraction(19999, 10**4), True)):
        found = as_model(at_least([1, 1], 4), between(0, high), n=2)
        conflict = _proof(found, {0: Fraction(1)})
        assert (conflict is not None) == proved
    assert conflict is not None
    assert conflict.parts == {0, 1}
    assert conflict.rows == ("at_least row 0",)


def test_a_proof_may_not_turn_an_inequality_round_or_lean_on_a_bound_that_is_not_there() -> None:
    found = as_model(at_least([1, 1], 1), between(4, 9), n=2)
    assert _proof(found, {0: Fraction(-1)}) is None  # −z₀ − z₁ ≥ −1 does not follow
    turned = as_model(equals([1, 1], 1), between(4, 9), n=2)
    assert _proof(turned, {0: Fraction(-1)}) is not None  # for an equality it does
    assert _proof(turned, {0: Fraction(1)}) is None
    unbounded = as_model(at_least([1, 1], 1), between(None, -4, at=0), n=2)
    assert _proof(unbounded, {0: Fraction(1)}) is None


@pytest.mark.parametrize("seed", range(60))
def test_neither_way_of_proving_contradicts_a_known_solution(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    point = rng.integers(-4, 5, size=n)
    A, G = rng.integers(-3, 4, size=(2, n)), rng.integers(-3, 4, size=(4, n))
    width = rng.integers(0, 2, size=n)
    parts = (equals(A, A @ point), at_least(G, G @ point), between(point - width, point + rng.integers(0, 2, size=n)))
    found = as_model(*parts, n=n)
    assert _crossing_after_steps(found) is None
    assert _proved(found) is None


@pytest.mark.parametrize(
    ("parts", "n", "named"),
    [
        ([equals([1, 1, 1], 10), between(0, 3)], 3, {0, 1}),
        ([equals([2, -3, 1], 10), between(-1, 1), nonnegative()], 3, {0, 1, 2}),
        ([ordered([0, 1, 2]), fixed(0, 5), fixed(2, 4), nonnegative()], 3, {0, 1, 2}),
        ([at_least([[2, 0, -1], [0, 1, -1], [-1, -1, 1]], [0, 3, 0]), between(0, 2), fixed(1, 2)], 3, {0, 1, 2}),
    ],
)
def test_carried_bounds_find_a_contradiction_and_its_parts(parts: list[Constraint], n: int, named: set[int]) -> None:
    found = _crossing_after_steps(as_model(*parts, n=n))
    assert found is not None
    assert found.parts >= named  # with all parts that have a say
    proof = _proved(as_model(*parts, n=n))
    assert proof is not None


def test_carried_bounds_that_creep_come_to_an_end() -> None:
    creeping = as_model(at_least([[2, -1], [-1, 2]], [0, 0]), between(0, 1, at=0), between(0, 10, at=1), n=2)
    assert _crossing_after_steps(creeping) is None


def test_a_part_that_the_first_proof_uses_without_need_is_not_named() -> None:
    # the tightest bounds make the first proof use all three parts; two of them suffice
    total = equals([1, 1, 1], 10) & between(None, 2, at=[0, 1])
    with pytest.raises(Refused) as refusal:
        total & between(None, 3)
    assert str(refusal.value) == "these constraints cannot hold together: equals(1 row); between(−inf, 3)"


def test_lattices_of_large_coefficients_are_complete() -> None:
    a, b = 3**25, 5 * 2**37
    basis = NullSpace.of(sparse.csr_array(np.array([[a, b]]))).lattice_basis().toarray().ravel()
    assert sorted(np.abs(basis).tolist()) == sorted([a, b])
    assert a * int(basis[0]) + b * int(basis[1]) == 0


def every_point(reach: int, n: int) -> np.ndarray:
    return np.stack(np.meshgrid(*[np.arange(-reach, reach + 1)] * n, indexing="ij"), axis=-1).reshape(-1, n)


@pytest.mark.slow
def test_whole_points_are_found_and_never_denied() -> None:
    """Against every whole point of a box, with rows that leave hardly any."""
    points = every_point(4, 3)
    empty, decided = 0, 0
    for seed in range(30):
        rng = np.random.default_rng([41, seed])
        A, G = rng.integers(-9, 10, size=(1, 3)) * 2 + 1, rng.integers(-30, 31, size=(2, 3))
        aim = rng.integers(-3, 4, size=3)
        sides = G @ aim + rng.integers(-20, 3, size=2)
        some = [*equals(A, A @ aim + (seed % 2)).parts, *between(-4, 4).parts]
        some += [*at_least(G, sides).parts, *at_least(-G, -sides - rng.integers(0, 40, size=2)).parts]
        allowed = Constraint(tuple(some)).system(3).holds(points)
        found, none = whole_point(some, 3)
        assert not none or not allowed.any()
        if found is not None:
            assert allowed[(points == found).all(axis=1)].all()
        empty += not allowed.any()
        decided += none or found is not None
    assert 5 < empty < 25
    assert decided > 10


def test_what_is_not_decided_is_not_called_a_contradiction(monkeypatch: pytest.MonkeyPatch) -> None:
    some = [*at_least([[37, -23], [-37, 23]], [1, -2]).parts, *between(-300, 300).parts]
    assert whole_point(some, 2)[0] is not None
    monkeypatch.setattr(contradiction, "whole_point", lambda *_: (None, False))
    with pytest.raises(Refused, match="could not decide whether whole numbers satisfy"):
        contradiction.refuse_whole_contradiction(some, 2)
