"""What unions refuse, and that the nearest point of a union is the nearest of all of them."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import holdfast as hf

CELLS = hf.histogram(3)
BASE = hf.laplace(CELLS, epsilon=1)
REAL = hf.laplace(CELLS, epsilon=1, integer=False)
TREE = hf.Hierarchy.from_parents([-1, 0, 0])

REFUSED = {
    "sides that meet": (
        lambda: hf.between(0, 2) | hf.between(2, 3),
        r"must be disjoint: \(between\(0, 2\)\) and \(between\(2, 3\)\)",
    ),
    "sides that meet in a row": (
        lambda: hf.at_least([[1, 1, 1]], [3]) | hf.at_least([[-1, -1, -1]], [-3]),
        r"must be disjoint: .*at_least.* and .*at_least",
    ),
    "sides that meet between whole numbers, continuous noise": (
        lambda: REAL.given(hf.between(0, 1.5) | hf.between(1.2, 3)).release([1, 1, 1]),
        r"must be disjoint: \(between\(0, 1.5\)\) and \(between\(1.2, 3\)\)",
    ),
    "sides that meet on a grid": (
        lambda: (
            hf.laplace(hf.workload([[0.5, 1.0]], grid=Fraction(1, 2)), epsilon=1)
            .given(hf.between(0, 1.5) | hf.between(1.5, 3))
            .release([1.0])
        ),
        "must be disjoint",
    ),
    "equalities under continuous noise": (
        lambda: REAL.given(hf.equals([[1, 1, 1]], [3]) | hf.equals([[1, 1, 1]], [5])).release([1, 1, 1]),
        "no defined weights",
    ),
    "Gaussian noise": (
        lambda: hf.gaussian(CELLS, rho=1).given(hf.between(0, 1) | hf.between(3, 4)).release([1, 1, 1]),
        "union",
    ),
    "an invariant beside a union": (
        lambda: BASE.given((hf.between(0, 1) | hf.between(3, 4)) & hf.invariant([[1, 1, 1]])).release([1, 1, 1]),
        "together with invariants",
    ),
    "nothing can change": (
        lambda: BASE.given(hf.fixed([0, 1, 2], [0, 0, 0]) | hf.fixed([0, 1, 2], [5, 5, 5])).release([0, 0, 0]),
        "no change of a few records",
    ),
    "a truth on neither side": (
        lambda: BASE.given(hf.between(0, 1) | hf.between(3, 4)).release([2, 86_753, 1]),
        "truth violates what must hold: every side of the union",
    ),
    "method union without one": (
        lambda: BASE.given(hf.nonnegative(), method="union").release([1, 1, 1]),
        "method 'union'",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_unions_are_refused_with_one_sentence(name):
    action, sentence = REFUSED[name]
    with pytest.raises(hf.Refused, match=sentence) as caught:
        action()
    assert "86753" not in str(caught.value).replace("_", "")


def test_sides_that_exclude_each_other_for_whole_numbers_only_are_allowed_for_integer_noise():
    union = hf.between(0, 1.5) | hf.between(1.2, 3)
    mechanism = hf.laplace(hf.histogram(1), scale=1).given(union)
    assert set(mechanism.simulate([1], 400, rng=hf.seeded(1)).ravel().tolist()) == {0, 1, 2, 3}
    assert mechanism.guarantee.epsilon < 2


def test_a_union_beside_an_invariant_keeps_it():
    union = (hf.between(0, 1) | hf.between(3, 4)) & hf.invariant([[1, 1, 1]])
    draws = BASE.given(union).simulate([1, 1, 0], 100, rng=hf.seeded(1))
    assert (draws.sum(axis=1) == 2).all()


def test_tables_that_cannot_be_listed_are_not_drawn_without_the_invariant():
    """Other cells have no bounds: rejection would test the sides, and not the invariant."""
    sides = hf.between(0, 1, at=[0]) | hf.between(2, 3, at=[0])
    mechanism = hf.laplace(hf.histogram(3), scale=1).given(hf.invariant([[1, 1, 1]]) & sides)
    with pytest.raises(hf.Refused, match="given a union"):
        mechanism.simulate([1, 1, 1], 3)


def test_calibration_meets_the_total_for_a_union():
    mechanism = BASE.given(hf.between(0, 1) | hf.between(3, 4)).calibrated(epsilon=1)
    assert 0.999 < mechanism.guarantee.epsilon <= 1
    assert mechanism.base.law.scale_values[0] < 2  # 2ε would ask for twice the noise


NEAREST = {
    "boxes": (hf.histogram(2), hf.between(0, 1) | hf.between(3, 4)),
    "an open box": (hf.histogram(2), hf.between(None, -1, at=0) | (hf.between(2, None, at=0) & hf.between(0, 3, at=1))),
    "fixed values": (hf.histogram(2), hf.fixed(0, 1) | hf.fixed(0, 4)),
    "a hierarchy": (
        hf.counts(TREE),
        hf.consistent(TREE) & hf.nonnegative() & (hf.fixed(0, 2) | hf.between(4, 5, at=0)),
    ),
}


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("name", NEAREST)
def test_the_nearest_point_of_a_union_is_the_nearest_of_all(name, norm):
    query, union = NEAREST[name]
    mechanism = hf.laplace(query, scale=[1, 2, 1][: query.n]).onto(union, norm=norm)
    box = np.array(list(itertools.product(range(-5, 9), repeat=query.n)))
    allowed = box[union.system(query.n).holds(box)]
    noisy = np.random.default_rng(1).integers(-3, 7, size=(200, query.n))
    moved = mechanism.image(noisy)
    assert union.system(query.n).holds(moved).all()
    weights = 1 / np.sqrt(mechanism.base.law.variances)
    power = 1 if norm == "l1" else 2
    found = ((np.abs(moved - noisy) * weights) ** power).sum(axis=1)
    best = ((np.abs(allowed[None] - noisy[:, None]) * weights) ** power).sum(axis=2).min(axis=1)
    np.testing.assert_allclose(found, best, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(mechanism.image(moved), moved)


def test_the_side_written_first_is_taken_where_both_are_equally_near():
    base = hf.laplace(hf.histogram(2), scale=3)
    one, other = hf.between(0, 1), hf.between(3, 4)
    assert base.onto(one | other).image([2, 2]).tolist() == [1, 1]
    assert base.onto(other | one).image([2, 2]).tolist() == [3, 3]


def test_onto_a_union_costs_nothing_and_keeps_its_measurements():
    mechanism = BASE.onto(hf.between(0, 1) | hf.between(3, 4))
    assert mechanism.guarantee.epsilon == 1.0
    assert mechanism.method == "union"
    release = mechanism.release([1, 1, 1], rng=hf.seeded(1))
    np.testing.assert_array_equal(mechanism.image(release.measurements), release.values)
    with pytest.raises(hf.Refused, match="depends on the data"):
        mechanism.standard_error()
    with pytest.raises(hf.Refused, match="depends on the data"):
        BASE.onto(hf.equals([[1, 1, 1]], [3]) | hf.equals([[1, 1, 1]], [5]), integer=False).noise(1)


def test_real_values_go_to_the_nearest_of_two_planes():
    mechanism = BASE.onto(hf.equals([[1, 1, 1]], [3]) | hf.equals([[1, 1, 1]], [6]), integer=False)
    np.testing.assert_allclose(mechanism.image([[1, 1, 2], [1, 2, 2]]), [[2 / 3, 2 / 3, 5 / 3], [4 / 3, 7 / 3, 7 / 3]])
