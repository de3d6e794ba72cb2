"""`&` and `|` on membership, and constructors that say the same in two ways."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from holdfast.arguments import Refused
from holdfast.constraints import Constraint, at_least, between, equals, fixed, nonnegative, ordered

N = 3
BOX = np.array(list(itertools.product(range(-2, 3), repeat=N)))
REPEATABLE = settings(deadline=None, max_examples=40, derandomize=True)

positions = st.lists(st.integers(0, N - 1), min_size=1, max_size=N, unique=True)
numbers = st.one_of(st.integers(-2, 2), st.fractions(-2, 2, max_denominator=4))
row = st.lists(st.integers(-2, 2), min_size=N, max_size=N).filter(any)


@st.composite
def atoms(draw: st.DrawFn) -> Constraint:
    kind = draw(st.integers(0, 6))
    if kind == 0:
        return nonnegative(draw(st.one_of(st.none(), positions)))
    if kind == 1:
        low = draw(numbers)
        return between(low, low + abs(draw(numbers)), draw(st.one_of(st.none(), positions)))
    if kind == 2:
        return ordered(draw(positions.filter(lambda chain: len(chain) > 1)))
    if kind == 3:
        at = draw(positions)
        return fixed(at, [draw(numbers) for _ in at])
    if kind == 4:
        return equals(draw(row), draw(numbers))
    if kind == 5:
        return at_least(draw(row), draw(numbers))
    at = draw(st.integers(0, N - 1))
    split = draw(st.integers(-1, 1))
    return between(None, split, at) | between(split + 1, None, at)


def members(constraint: Constraint) -> np.ndarray:
    return constraint.system(N).holds(BOX)


def both(left: Constraint, right: Constraint) -> Constraint | None:
    try:
        return left & right
    except Refused:
        return None


@pytest.mark.slow
@REPEATABLE
@given(atoms(), atoms(), atoms())
def test_and_is_intersection_associative_and_commutative(a: Constraint, b: Constraint, c: Constraint) -> None:
    expected = members(a) & members(b) & members(c)
    for x, y, z in ((a, b, c), (c, a, b)):
        xy, yz = both(x, y), both(y, z)
        left = None if xy is None else both(xy, z)
        right = None if yz is None else both(x, yz)
        assert (left is None) == (right is None)
        if left is None or right is None:
            assert not expected.any()  # a refusal is never false
        else:
            np.testing.assert_array_equal(members(left), expected)
            np.testing.assert_array_equal(members(right), expected)


@REPEATABLE
@given(atoms(), atoms())
def test_or_is_a_union_of_sets_that_do_not_meet(a: Constraint, b: Constraint) -> None:
    common = members(a) & members(b)
    try:
        union = a | b
    except Refused:
        assert both(a, b) is not None  # a refusal is never false
        return
    assert not common.any()
    np.testing.assert_array_equal(members(union), members(a) | members(b))
    assert union.is_union
    assert union.disjoint(integer=True)


@pytest.mark.slow
@REPEATABLE
@given(atoms(), atoms())
def test_violation_and_membership_agree(a: Constraint, b: Constraint) -> None:
    c = both(a, b)
    assume(c is not None)
    assert c is not None
    system = c.system(N)
    for point, good in zip(BOX, members(c), strict=True):
        assert (system.violation(point) is None) == good
    if c.integer_obstacle() is not None:
        assert not members(c).any()


@pytest.mark.slow
@REPEATABLE
@given(row, numbers, st.integers(1, 6))
def test_a_row_may_be_scaled_and_written_in_any_kind_of_number(a: list[int], b: Fraction, factor: int) -> None:
    plain = members(equals(a, b))
    for same in (
        equals([[Fraction(v, factor) for v in a]], [Fraction(b) / factor]),
        equals(
            np.array(a, dtype=float) / factor,
            float(b) / factor if Fraction(b).denominator == 1 else Fraction(b) / factor,
        ),
        equals([factor * v for v in a], factor * b),
        at_least([a, [-v for v in a]], [b, -b]),
    ):
        np.testing.assert_array_equal(members(same), plain)


@REPEATABLE
@given(positions, numbers)
def test_bounds_may_be_written_as_rows(at: list[int], low: Fraction) -> None:
    rows = np.eye(N, dtype=int)[at]
    np.testing.assert_array_equal(members(between(low, None, at)), members(at_least(2 * rows, 2 * low)))
    np.testing.assert_array_equal(members(between(None, low, at)), members(at_least(-3 * rows, -3 * low)))
    np.testing.assert_array_equal(members(fixed(at, low)), members(between(low, low, at)))
