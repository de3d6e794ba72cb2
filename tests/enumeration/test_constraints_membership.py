"""Every point of small boxes: a system says the same as the constraint read word by word."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from holdfast.constraints import (
    Constraint,
    at_least,
    between,
    consistent,
    equals,
    exact_nodes,
    fixed,
    invariant,
    nonnegative,
    ordered,
)
from holdfast.domains import Hierarchy

TREE = Hierarchy.from_parents([-1, 0, 0, 1, 1])  # 0 = 1 + 2, 1 = 3 + 4
HALF = Fraction(1, 2)
BOX = np.array(list(itertools.product(range(-2, 3), repeat=4)))
TALL = np.array(list(itertools.product(range(-1, 3), repeat=5)))

CATALOGUE = {
    "nonnegative": (nonnegative(), lambda z: min(z) >= 0),
    "nonnegative at": (nonnegative(at=[1, 3]), lambda z: z[1] >= 0 and z[3] >= 0),
    "between": (between(-1, 1), lambda z: all(-1 <= v <= 1 for v in z)),
    "between halves": (between(Fraction(-3, 2), 0.5), lambda z: all(-1.5 <= v <= 0.5 for v in z)),
    "between lists": (
        between([0, -np.inf, -1, 1], [2, 0, np.inf, 1]),
        lambda z: 0 <= z[0] <= 2 and z[1] <= 0 and z[2] >= -1 and z[3] == 1,
    ),
    "between at": (between(None, 0, at=[2, 0]), lambda z: z[2] <= 0 and z[0] <= 0),
    "ordered": (ordered([2, 0, 3]), lambda z: z[2] <= z[0] <= z[3]),
    "fixed": (fixed([3, 1], [1, -1]), lambda z: z[3] == 1 and z[1] == -1),
    "fixed at a fraction": (fixed(0, HALF), lambda z: z[0] == HALF),
    "equals": (
        equals([[1, 1, 0, 0], [0, HALF, Fraction(1, 3), -1]], [1, 0]),
        lambda z: z[0] + z[1] == 1 and 3 * z[1] + 2 * z[2] == 6 * z[3],
    ),
    "equals a fraction": (equals([1, 1, 1, 1], 0.5), lambda z: sum(z) == HALF),
    "at least": (
        at_least([[1, -1, 0.5, 0], [0, 0, -2, 0]], [HALF, -1]),
        lambda z: z[0] - z[1] + z[2] / 2 >= 0.5 and -2 * z[2] >= -1,
    ),
    "both": (
        nonnegative(at=0) & ordered([0, 1]) & equals([0, 1, 1, 0], 1),
        lambda z: 0 <= z[0] <= z[1] == 1 - z[2],
    ),
    "union": (between(None, -1, at=0) | fixed(0, 1), lambda z: z[0] <= -1 or z[0] == 1),
    "union and more": (
        (between(None, -1, at=0) | fixed(0, 1) | fixed(0, 0)) & nonnegative(at=1) & ordered([0, 1]),
        lambda z: (z[0] <= -1 or z[0] in (0, 1)) and z[1] >= 0 and z[0] <= z[1],
    ),
    "two unions": (
        (between(None, -1, at=0) | fixed(0, 1)) & (between(None, -1, at=1) | fixed(1, 2)),
        lambda z: (z[0] <= -1 or z[0] == 1) and (z[1] <= -1 or z[1] == 2),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CATALOGUE)
def test_a_system_holds_exactly_where_the_constraint_read_word_by_word_does(name: str) -> None:
    constraint, law = CATALOGUE[name]
    expected = np.array([law(point) for point in BOX.tolist()])
    system = constraint.system(4)
    np.testing.assert_array_equal(system.holds(BOX), expected)
    np.testing.assert_array_equal(system.holds(BOX.astype(float)), expected)
    for point, good in zip(BOX[::19], expected[::19], strict=True):
        assert (system.violation(point) is None) == good
        assert (system.violation(point.astype(float)) is None) == good
        assert system.holds(point) is bool(good)


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_scale_means_that_values_count_steps(name: str) -> None:
    constraint, law = CATALOGUE[name]
    system = constraint.system(4)
    step = Fraction(1, 2)
    expected = np.array([law([v * step for v in point]) for point in BOX.tolist()])
    np.testing.assert_array_equal(system.holds(BOX, step), expected)
    np.testing.assert_array_equal(system.holds(BOX.astype(float), step), expected)
    for point, good in zip(BOX[::11], expected[::11], strict=True):
        assert (system.violation(point, step) is None) == good


def test_a_consistent_tree_adds_up() -> None:
    system = consistent(TREE).system(5)
    expected = (TALL[:, 0] == TALL[:, 1] + TALL[:, 2]) & (TALL[:, 1] == TALL[:, 3] + TALL[:, 4])
    np.testing.assert_array_equal(system.holds(TALL), expected)
    assert system.violation([4, 2, 2, 1, 1]) is None
    assert system.violation([4, 2, 1, 1, 1]) == "consistency at node 0"
    assert system.violation([4, 2, 2, 1, 2]) == "consistency at node 1"


def test_categories_of_a_tree_add_up_each_by_itself() -> None:
    class Query:
        n = 10
        tree = TREE

        def consistency(self):
            one = consistent(TREE).system(5).equalities.A
            return np.kron(one.toarray(), np.eye(2, dtype=int))

    system = consistent(Query()).system(10)
    first, second = np.array([4, 2, 2, 1, 1]), np.array([3, 3, 0, 1, 2])
    assert system.violation(np.stack([first, second], axis=1).ravel()) is None
    second[4] = 1
    assert system.violation(np.stack([first, second], axis=1).ravel()) == "consistency at node 1, category 1"
    exact = invariant(exact_nodes(TREE, [1], by=2)).system(10).invariants
    assert exact.A.toarray().nonzero()[1].tolist() == [2, 3]
    assert exact.names[1] == "exact node 1, category 1"


def test_violations_are_named_and_show_no_value() -> None:
    cases: list[tuple[Constraint, list[int], str]] = [
        (nonnegative(), [0, -7, 0], "nonnegative at position 1"),
        (nonnegative() & between(None, 3, at=[2]), [0, 0, 77], "between(−inf, 3, at=[2]) at position 2"),
        (fixed([2, 0], [5, 77]), [77, 0, 77], "fixed 2"),
        (equals([[1, 0, 0], [0, 1, 1]], [0, 0]), [0, 77, 0], "equals row 1"),
        (at_least([[1, 0, 1], [0, 1, 1]], [0, 0]), [0, -77, 0], "at_least row 1"),
        (at_least([0, 3, 0], 1), [0, -77, 0], "at_least(1 row) at position 1"),
        (ordered([2, 1]), [0, 0, 77], "ordered 2 ≤ 1"),
        (fixed(0, 1) | fixed(0, 2), [77, 0, 0], "every side of the union (fixed 0; fixed 0)"),
    ]
    for constraint, values, name in cases:
        found = constraint.system(3).violation(values)
        assert found == name
        assert "77" not in found
    invariants_are_not_tested = invariant([1, 1, 1]).system(3)
    assert invariants_are_not_tested.violation([1, 2, 3]) is None


def test_large_whole_numbers_are_tested_exactly() -> None:
    big = 2**61
    system = equals([2**40, -(2**40), 1], 0).system(3)
    assert system.holds([big, big, 0])
    assert not system.holds([big, big, 1])
    assert not system.holds([big, big - 1, 0])
    assert system.violation([big, big, 1]) == "equals row 0"
    # in 64 bits the first sum, 2**64, would wrap round to its right-hand side 0
    wrapping = equals([[8, 8], [1, -1]], [0, 0]).system(2)
    assert not wrapping.holds([big // 2, big // 2])
    assert not at_least([8, 8], 1).system(2).holds([-big, -big])
    assert at_least([8, 8], 1).system(2).holds([big, big])
    ordered_system = ordered([0, 1]).system(2)
    assert ordered_system.holds([2**61 - 1, 2**61])
    assert not ordered_system.holds([2**61, 2**61 - 1])


def test_reals_are_tested_within_their_stated_tolerance() -> None:
    third = equals([1, 1, 1], 1).system(3)
    assert third.holds([1 / 3, 1 / 3, 1 / 3])
    assert third.holds([1 / 3 + 1e-10, 1 / 3, 1 / 3])
    assert not third.holds([1 / 3 + 1e-8, 1 / 3, 1 / 3])
    assert nonnegative().system(1).holds([-1e-10])
    assert not nonnegative().system(1).holds([-1e-8])
    assert equals([1, -1], 0).system(2).holds([1e12, 1e12 + 1])
    assert not equals([1, -1], 0).system(2).holds([1e6, 1e6 + 1])


def test_bounds_are_merged_and_rounded_inwards_for_whole_numbers() -> None:
    system = (
        between(0.5, 3.5) & nonnegative() & between(None, 2, at=[1]) & at_least([[-2, 0], [0, 0]], [-5, 0])
    ).system(2)
    low, high = system.integer_bounds()
    assert low.tolist() == [1, 1]
    assert high.tolist() == [2, 2]
    real_low, real_high = system.real_bounds()
    assert real_low.tolist() == [0.5, 0.5]
    assert real_high.tolist() == [2.5, 2.0]
    low, high = system.integer_bounds(Fraction(1, 4))
    assert (low.tolist(), high.tolist()) == ([2, 2], [10, 8])
    none = ordered([0, 1]).system(2)
    assert [side.tolist() for side in none.integer_bounds()] == [[-(2**62)] * 2, [2**62] * 2]
    assert [side.tolist() for side in none.real_bounds()] == [[-np.inf] * 2, [np.inf] * 2]
    assert not none.has_bounds
    assert none.has_inequalities


def test_what_a_system_says_about_itself() -> None:
    free = fixed(0, 1).system(2)
    assert free.coordinatewise
    assert not free.has_inequalities
    assert (nonnegative() & fixed(0, 1) & invariant([0, 1])).system(2).coordinatewise
    assert not ordered([0, 1]).system(2).coordinatewise
    assert not equals([1, 1], 0).system(2).coordinatewise
    assert not invariant([1, 1]).system(2).coordinatewise
    union = fixed(0, 1) | fixed(0, 2)
    assert not union.system(2).coordinatewise
    assert len(union.system(2).branches) == 2
    assert at_least([0, 2], 1).system(2).inequalities.count == 0  # a bound in disguise
    assert at_least([0, 2], 1).system(2).has_bounds


def test_what_a_constraint_says_about_itself() -> None:
    both = consistent(TREE) & nonnegative() & invariant(exact_nodes(TREE, 0))
    assert both.has_invariants
    assert both.has_inequalities
    assert not both.is_union
    assert str(both) == "consistent(5 nodes) & nonnegative & invariant(exact nodes [0])"
    assert [part.origin for part in both.parts] == ["structural", "structural", "invariant"]
    structural, invariants = both.structural, both.invariants
    assert structural is not None
    assert invariants is not None
    assert str(structural) == "consistent(5 nodes) & nonnegative"
    assert str(invariants) == "invariant(exact nodes [0])"
    assert invariants.structural is None
    assert structural.invariants is None
    assert (both.n, both.least_n) == (5, 5)
    assert (nonnegative(at=3).n, nonnegative(at=3).least_n) == (None, 4)
    assert str((fixed(0, 1) | nonnegative() & fixed(0, 2)) & between(-1, 5)) == (
        "between(-1, 5) & (fixed(at=[0]) | (nonnegative & fixed(at=[0])))"
    )
    assert str(fixed(range(20), 0)) == "fixed(at=[0, 1, 2, 3, 4, 5 and 14 more])"
    same = nonnegative()
    assert len((same & same).parts) == 1


def test_a_restricted_system_is_about_its_own_values() -> None:
    system = (nonnegative() & equals([[1, -1, 0, 0], [0, 0, 1, -1]], [0, 2])).system(4)
    part = system.restricted(np.array([2, 3]))
    assert part.n == 2
    assert part.holds([3, 1])
    assert part.violation([1, 1]) == "equals row 1"
    assert part.violation([1, -1]) == "the bound at position 1"
