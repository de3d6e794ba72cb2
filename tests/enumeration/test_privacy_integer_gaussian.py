"""The δ(ε) of integer Gaussian noise against every output listed, and against plain sums."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import ctx

from holdfast.arguments import Refused
from holdfast.beliefs import base, hockey_stick, reach_for, weights, window_for
from holdfast.privacy import (
    gaussian_delta,
    integer_gaussian_delta,
    integer_gaussian_epsilon,
    integer_gaussian_rho,
    integer_gaussian_sigma2,
)
from holdfast.privacy.losses import integer_gaussian as module
from holdfast.privacy.losses import integer_laws, unlike_scales
from holdfast.privacy.losses.loss_laws import Loss

F = Fraction


def listed(kind: dict[tuple[int, Fraction], int], epsilon: float) -> float:
    """Return δ by listing all outputs; independent of the code under test."""
    differences, tables = [], []
    for (difference, sigma2), count in kind.items():
        for _ in range(count):
            differences.append(difference)
            reach = reach_for("gaussian", sigma2, 1e-30) + 2 * difference
            tables.append(weights("gaussian", sigma2, reach, bits=800))
    zero = [0] * len(differences)
    window = window_for([zero, differences], tables)
    return hockey_stick(base(zero, tables, window), base(differences, tables, window), epsilon)


def summed(sigma: float, difference: int, epsilon: float) -> float:
    """Return δ for one coordinate by a plain sum in doubles, good to about 1e-12."""
    u = np.arange(-math.ceil(14 * sigma), math.ceil(14 * sigma) + 1, dtype=np.float64)
    p = np.exp(-(u**2) / (2 * sigma**2))
    loss = (difference**2 + 2 * difference * u) / (2 * sigma**2)
    return float((p * -np.expm1(np.minimum(0.0, epsilon - loss)))[loss > epsilon].sum() / p.sum())


KINDS = [
    ({(1, F(4)): 1}, 2.0),
    ({(1, F(4)): 1}, 0.0),
    ({(3, F(1, 2)): 1}, 30.5),
    ({(1, F(9, 100)): 1}, 20.0),
    ({(1, F(1, 4)): 2}, 9.0),
    ({(1, F(3, 2)): 1, (1, F(1, 9)): 1}, 10.6),
    ({(2, F(2)): 1, (1, F(2)): 1}, 5.0),
    ({(1, F(5)): 1, (1, F(10, 3)): 1}, 1.5),
    ({(1, F(4)): 1, (2, F(3)): 1}, 4.0),
    ({(2, F(1, 2)): 1, (3, F(131, 67)): 1}, 12.0),
    ({(1, F(40)): 1, (2, F(60)): 1}, 1.0),  # steps 3 and 4: smooth enough to become one Gaussian
]


@pytest.mark.parametrize(("kind", "epsilon"), KINDS)
def test_delta_is_the_listed_one_and_never_below(kind, epsilon):
    truth = listed(kind, epsilon)
    found = integer_gaussian_delta(kind, epsilon)
    assert truth * (1 - 1e-14) <= found <= truth * (1 + 1e-9)


def test_a_coordinate_put_on_lower_places_would_be_seen(monkeypatch):
    original = unlike_scales._listed

    def lower(one, step):
        right = original(one, step)
        return Loss(tuple(place - 1 for place in right.places), right.masses, right.beyond)

    kind, epsilon = {(1, F(10, 3)): 1, (1, F(10, 7) + F(1, 10**9)): 1}, 4.0
    truth = integer_gaussian_delta({(1, F(10, 3)): 1, (1, F(10, 7)): 1}, 4.0)
    monkeypatch.setattr(unlike_scales, "_listed", lower)
    assert integer_gaussian_delta(kind, epsilon) < 0.99 * truth


#: Scales without a usable common lattice, small enough to be listed.
UNLIKE = [
    ({(1, F(4)): 1, (1, F(5) + F(1, 977)): 1}, 1.5),
    ({(1, F(3, 7)): 1, (2, F(1013, 199)): 1}, 6.0),
    ({(1, F(3) + F(1, 1009)): 2, (1, F(7) + F(1, 911)): 1}, 2.5),
    ({(1, F(9, 4) + F(1, 997)): 1, (1, F(17, 3)): 1, (1, F(101, 7)): 1}, 0.3),
    ({(3, F(40) + F(1, 1009)): 1, (1, F(2) + F(1, 911)): 2}, 3.0),
]


def added_up(kind: dict[tuple[int, Fraction], int], epsilon: float) -> float:
    """Return δ from all sums of losses in doubles: all terms are positive, so it is good to about 1e-12."""
    losses, masses = np.zeros(1), np.ones(1)
    for (difference, sigma2), count in kind.items():
        u = np.arange(-math.ceil(9 * math.sqrt(sigma2)) - 2, math.ceil(9 * math.sqrt(sigma2)) + 3, dtype=np.float64)
        p = np.exp(-(u**2) / (2 * float(sigma2)))
        loss = (difference**2 + 2 * difference * u) / (2 * float(sigma2))
        for _ in range(count):
            losses = np.add.outer(losses, loss).ravel()
            masses = np.multiply.outer(masses, p / p.sum()).ravel()
    return float((masses * -np.expm1(np.minimum(0.0, epsilon - losses))).sum())


@pytest.mark.parametrize(("kind", "epsilon"), UNLIKE)
def test_unlike_scales_are_never_below_and_near(kind, epsilon):
    truth = added_up(kind, epsilon)
    found = integer_gaussian_delta(kind, epsilon)
    assert truth * (1 - 1e-11) <= found <= truth * (1 + 1e-3)
    assert integer_gaussian_epsilon(kind, found) <= epsilon * (1 + 1e-9)
    assert integer_gaussian_epsilon(kind, truth) >= epsilon * (1 - 1e-10)


def test_one_wide_scale_beside_a_narrow_one():
    # 14 deviations of the wide one in doubles, the narrow one listed; the sums are positive.
    narrow, wide, epsilon = F(9, 2), 500.0, 1.6
    u = np.arange(-40, 41, dtype=np.float64)
    p = np.exp(-(u**2) / (2 * float(narrow)))
    left = (1 + 2 * u) / (2 * float(narrow))
    v = np.arange(-7000, 7001, dtype=np.float64)
    q = np.exp(-(v**2) / (2 * wide**2))
    loss = left[:, None] + (100**2 + 200 * v)[None, :] / (2 * wide**2)
    mass = (p / p.sum())[:, None] * (q / q.sum())[None, :]
    truth = float((mass * -np.expm1(np.minimum(0.0, epsilon - loss))).sum())
    found = integer_gaussian_delta({(1, narrow): 1, (100, F(500**2)): 1}, epsilon)
    assert truth * (1 - 1e-11) <= found <= truth * (1 + 2e-3)


@pytest.mark.parametrize(("sigma", "difference", "epsilon"), [(30, 1, 0.1), (300, 7, 0.1), (10**4, 1, 4e-4)])
def test_wide_noise_agrees_with_a_plain_sum(sigma, difference, epsilon):
    truth = summed(sigma, difference, epsilon)
    found = integer_gaussian_delta({(difference, F(sigma**2)): 1}, epsilon)
    assert truth * (1 - 1e-11) <= found <= truth * (1 + 2e-9)


def test_very_wide_noise_by_the_closed_form():
    sigma, epsilon = 2 * 10**5, 1.5e-5
    truth = summed(sigma, 1, epsilon)
    found = integer_gaussian_delta({(1, F(sigma**2)): 1}, epsilon)
    assert truth * (1 - 1e-10) <= found <= truth * (1 + 1e-8)


@pytest.mark.parametrize(("sigma2", "most"), [(F(1), 10), (F(4), 1 + 1e-9)])
def test_many_equal_coordinates(sigma2, most):
    # 270 coordinates by repeated plain convolution of positive doubles, good to about 1e-12.
    u = np.arange(-25, 26, dtype=np.float64)
    p = np.exp(-(u**2) / (2 * float(sigma2)))
    p /= p.sum()
    total = np.ones(1)
    for _ in range(270):
        total = np.convolve(total, p)
    s = np.arange(len(total)) - (len(total) - 1) // 2
    loss = 270 / (2 * float(sigma2)) + s / float(sigma2)
    epsilon = 270 / (2 * float(sigma2)) + 5 * math.sqrt(270 / float(sigma2))
    truth = float((total * -np.expm1(np.minimum(0.0, epsilon - loss)))[loss > epsilon].sum())
    found = integer_gaussian_delta({(1, sigma2): 270}, epsilon)  # of σ² = 1 so many are converted from ρ
    assert truth * (1 - 1e-11) <= found <= truth * most


def test_different_scales_with_one_lattice_agree_with_the_grid():
    # Shares 3 : 7 have a common measure; a tiny change of one scale has none and goes through the grid.
    near = integer_gaussian_delta({(1, F(10, 3)): 1, (1, F(10, 7)): 1}, 4.0)
    other = integer_gaussian_delta({(1, F(10, 3)): 1, (1, F(10, 7) + F(1, 10**9)): 1}, 4.0)
    assert near * (1 - 1e-8) < other < near * (1 + 3e-4)


def test_tiny_deltas_keep_their_relative_accuracy():
    table = weights("gaussian", F(4), 200, bits=8000)
    window = window_for([(0,), (1,)], table)
    truth = hockey_stick(base((0,), table, window), base((1,), table, window), 18.0)
    assert 0 < truth < 1e-280
    assert truth * (1 - 1e-14) <= integer_gaussian_delta({(1, F(4)): 1}, 18) <= truth * (1 + 1e-9)


def test_the_continuous_formula_would_promise_too_much():
    assert gaussian_delta(F(1, 2), 2) < 0.9 * integer_gaussian_delta({(1, F(4)): 1}, 2)


@pytest.mark.parametrize(
    ("kind", "delta"),
    [({(1, F(4)): 6}, 1e-6), ({(1, F(1, 4)): 1}, 1e-3), ({(2, F(50)): 2, (1, F(30)): 1}, 1e-12)],
)
def test_epsilon_is_sufficient_and_nearly_necessary(kind, delta):
    epsilon = integer_gaussian_epsilon(kind, delta)
    assert integer_gaussian_delta(kind, epsilon) <= delta
    assert integer_gaussian_delta(kind, epsilon * (1 - 1e-9)) > delta


def test_epsilon_is_zero_when_delta_is_generous():
    assert integer_gaussian_epsilon({(1, F(10**4)): 1}, 0.5) == 0.0
    assert integer_gaussian_epsilon({}, 1e-9) == 0.0
    assert integer_gaussian_delta({(0, F(3)): 5}, 0) == 0.0


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-9), (8.0, 1e-5)])
def test_noise_is_sufficient_for_every_kind_and_nearly_necessary(epsilon, delta):
    kinds = [{(1, F(3)): 1, (1, F(7)): 1}, {(1, F(3)): 2}, {(1, F(7)): 3}]
    factor = integer_gaussian_sigma2(kinds, epsilon, delta)

    def largest(scale: Fraction) -> float:
        return max(integer_gaussian_delta({(d, s * scale): k for (d, s), k in kind.items()}, epsilon) for kind in kinds)

    assert largest(factor) <= delta
    assert largest(factor * F(10**8 - 1, 10**8)) > delta


def test_rho_is_exact():
    assert integer_gaussian_rho({(1, F(4)): 3, (2, F(3)): 1}) == F(3, 8) + F(2, 3)


def test_hopeless_differences_promise_nothing():
    assert integer_gaussian_delta({(10**7, F(1)): 1}, 1) == 1.0
    assert integer_gaussian_delta({(10**7, F(1)): 1, (1, F(10**9, 3 * 10**9 + 7)): 1}, 1) == 1.0


def test_scales_too_wide_to_list_are_bounded_from_rho():
    kind = {(1, F(10**13)): 1, (1, F(10**13 + 1, 7)): 1}
    rho = integer_gaussian_rho(kind)
    epsilon = 5 * math.sqrt(2 * rho)
    assert gaussian_delta(math.sqrt(2 * rho), epsilon) < integer_gaussian_delta(kind, epsilon) <= 1e-5


def test_bad_kinds_are_refused():
    with pytest.raises(Refused, match="sigma2 must be above 0"):
        integer_gaussian_delta({(1, F(0)): 1}, 1)
    with pytest.raises(Refused, match="must be a mapping"):
        integer_gaussian_delta([(1, 4)], 1)  # type: ignore[arg-type]
    with pytest.raises(Refused, match="at least one difference"):
        integer_gaussian_sigma2([{}], 1, 1e-6)
    with pytest.raises(Refused, match="epsilon must not be negative"):
        integer_gaussian_delta({(1, F(4)): 1}, -1)


@pytest.mark.parametrize("sigma2", [F(3), F(40)])
def test_many_copies_merged_together_cost_at_least_what_they_cost_one_by_one(sigma2, monkeypatch):
    kind = {(1, sigma2): 300}
    epsilon = float(integer_gaussian_rho(kind)) + 2
    together = integer_gaussian_delta(kind, epsilon)
    with ctx.workprec(2000):
        (_, parts, factor) = module._lattice(kind)
        monkeypatch.setattr(integer_laws, "ONE_BY_ONE", 300)
        (_, same, least) = module._lattice(kind)
        assert parts == same
        assert 1 < least < factor < least**2  # balls: never less than what each copy costs by itself, and little more
    assert integer_gaussian_delta(kind, epsilon) <= together <= integer_gaussian_delta(kind, epsilon) * (1 + 1e-12)
