"""Contradictions, each found and named without a needless part, and near misses that stand."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from holdfast.arguments import Refused
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
from holdfast.constraints.possible.contradiction import smallest_conflict
from holdfast.constraints.system.parts import Part
from holdfast.domains import Hierarchy

TREE = Hierarchy.from_parents([-1, 0, 0, 1, 1, 2])  # 0 = 1 + 2, 1 = 3 + 4, 2 = 5
TOGETHER = "these constraints cannot hold together: "
ROOT2 = 2**0.5

CONTRADICTIONS: list[tuple[Callable[[], Constraint], str]] = [
    (lambda: nonnegative() & fixed(3, -1), TOGETHER + "nonnegative; fixed(at=[3])"),
    (
        lambda: between(0, 9) & nonnegative() & fixed(3, -1) & ordered([0, 1]),
        TOGETHER + "between(0, 9); fixed(at=[3])",
    ),
    (lambda: fixed(1, 2) & fixed([0, 1], [2, 3]), TOGETHER + "fixed(at=[1]); fixed(at=[0, 1])"),
    (
        lambda: between(None, 1) & between(1.5, None, at=[2]),
        TOGETHER + "between(−inf, 1); between(1.5, inf, at=[2])",
    ),
    (
        lambda: consistent(TREE) & nonnegative() & fixed(0, 0) & fixed(3, 1) & between(None, 10),
        TOGETHER + "consistent(6 nodes); nonnegative; fixed(at=[0]); fixed(at=[3])",
    ),
    (
        lambda: consistent(TREE) & between(0, 5) & between(16, None, at=0),
        TOGETHER + "between(0, 5); between(16, inf, at=[0])",
    ),
    (
        lambda: consistent(TREE) & between(0, 5, at=TREE.leaves) & between(16, None, at=0),
        TOGETHER + "consistent(6 nodes); between(0, 5, at=[3, 4, 5]); between(16, inf, at=[0])",
    ),
    (lambda: consistent(TREE) & fixed([2, 5], [1, 2]), TOGETHER + "consistent(6 nodes); fixed(at=[2, 5])"),
    (lambda: ordered([0, 1, 2]) & fixed([0, 2], [5, 4]), TOGETHER + "ordered([0, 1, 2]); fixed(at=[0, 2])"),
    (
        lambda: ordered([0, 1]) & ordered([1, 2]) & ordered([2, 3]) & at_least([1, 0, -1, 0], Fraction(1, 10**6)),
        TOGETHER + "ordered([0, 1]); ordered([1, 2]); at_least(1 row)",
    ),
    (
        lambda: equals([1, 1], 1) & equals([[2, 2], [1, 0]], [3, 0]),
        TOGETHER + "equals(1 row); equals(2 rows)",
    ),
    (
        lambda: equals([[2, 2, 0], [0, 1, 1], [1, 1, 0]], [1, 0, 1]),
        "equals(3 rows) cannot hold: it contradicts itself in equals row 0; equals row 2",
    ),
    (
        lambda: at_least([[1, 1], [-1, -1]], [1, 0]),
        "at_least(2 rows) cannot hold: it contradicts itself in at_least row 0; at_least row 1",
    ),
    # multipliers that are not small fractions: the proof has to be solved for exactly
    (
        lambda: at_least([[ROOT2, -1], [-ROOT2, 1]], [1, -0.5]),
        "at_least(2 rows) cannot hold: it contradicts itself in at_least row 0; at_least row 1",
    ),
    (
        lambda: (
            equals([[1234567, 7654321, 1], [7654321, 1234567, 3]], [1, 1])
            & equals([1234567**2 + 7654321 * 99991, 1234567 * 7654321 + 1234567 * 99991, 1234567 + 3 * 99991], 5)
        ),
        TOGETHER + "equals(2 rows); equals(1 row)",
    ),
    (lambda: between(3, 1), "low must not exceed high, found 3 and 1"),
    (lambda: between([0, 3], [1, 2]), "low must not exceed high at position 1"),
    (lambda: between(3, [4, 2], at=[7, 9]), "low must not exceed high at position 9"),
    (lambda: at_least([[1], [-1]], [1, 0]), "at_least(2 rows) cannot hold: it contradicts itself"),
    (
        lambda: equals([[1, 0], [0, 0]], [1, 2]),
        "equals row 1 cannot hold: its coefficients are all zero, its right-hand side is not",
    ),
    (
        lambda: at_least([[0, 0], [1, 0]], [0.5, 2]),
        "at_least row 0 cannot hold: its coefficients are all zero but it asks for more",
    ),
    (
        lambda: (fixed(0, 1) | fixed(0, 2)) & between(3, 4),
        TOGETHER + "between(3, 4); fixed(at=[0])",
    ),
]


@pytest.mark.parametrize(("make", "sentence"), CONTRADICTIONS)
def test_a_contradiction_is_found_and_named(make: Callable[[], Constraint], sentence: str) -> None:
    with pytest.raises(Refused) as refusal:
        make()
    assert str(refusal.value) == sentence


STANDING: list[Callable[[], Constraint]] = [
    lambda: nonnegative() & fixed(3, 0),
    lambda: fixed(1, 2) & fixed([0, 1], [3, 2]),
    lambda: between(None, 1) & between(1, None, at=[2]),
    lambda: consistent(TREE) & nonnegative() & fixed(0, 1) & fixed(3, 1) & between(None, 10),
    lambda: consistent(TREE) & between(0, 5, at=TREE.leaves) & between(15, None, at=0),
    lambda: consistent(TREE) & fixed([2, 5], [7, 7]),
    lambda: ordered([0, 1, 2]) & fixed([0, 2], [4, 4]),
    lambda: ordered([0, 1]) & ordered([1, 2]) & ordered([2, 0]),
    lambda: equals([1, 1], 1) & equals([[2, 2], [1, 0]], [2, 0]),
    lambda: at_least([[1, 1], [-1, -1]], [1, -1]),
    # differences far below a solver's tolerance, on the side where there are solutions
    lambda: at_least([[1, 1], [-1, -1]], [1, Fraction(-1) - Fraction(1, 10**15)]),
    lambda: at_least([[ROOT2, -1], [-ROOT2, 1]], [1, -1]),
    lambda: equals([[10**9, 1], [10**9 + 1, 1]], [1, 1]),
    lambda: equals([[1, 0], [0, 0]], [1, 0]),
    lambda: at_least([[0, 0], [1, 0]], [-1, 2]),
    lambda: equals([2, 2], 1),  # has real solutions
    lambda: equals([[1, 1], [1, -1]], [1, 0]),
    lambda: nonnegative() & equals([1, 1, -1], 10**12) & between(None, 10**12 + 1),
    lambda: consistent(TREE) & invariant(exact_nodes(TREE, [0, 1, 2])) & nonnegative(),
    lambda: invariant([1, 1]) & invariant([[2, 2]]) & equals([1, 1], 5),
]


@pytest.mark.parametrize("make", STANDING)
def test_what_can_hold_is_not_refused(make: Callable[[], Constraint]) -> None:
    assert make().parts


@pytest.mark.parametrize("seed", range(30))
def test_random_systems_with_a_known_solution_are_never_refused(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    point = [Fraction(int(a), int(b)) for a, b in rng.integers(1, 40, size=(n, 2))]
    A = rng.integers(-9, 10, size=(n - 1, n))
    G = rng.integers(-9, 10, size=(n, n))
    b = [sum((int(a) * z for a, z in zip(row, point, strict=True)), Fraction(0)) for row in A]
    h = [sum((int(a) * z for a, z in zip(row, point, strict=True)), Fraction(0)) for row in G]
    low, high = [z - Fraction(1, 10**9) for z in point], [z + Fraction(1, 10**9) for z in point]
    constraint = equals(A, b) & at_least(G, h) & between(low, high) & nonnegative()
    assert constraint.system(n).holds([float(z) for z in point])


@pytest.mark.parametrize("seed", range(30))
def test_random_contradictions_are_found_and_no_named_part_can_be_spared(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    n = 5
    rows = rng.integers(-5, 6, size=(4, n))
    weights = rng.integers(1, 6, size=4)
    last = -(weights @ rows)
    b = rng.integers(-5, 6, size=4)
    constraint: Constraint = between(-100, 100)
    for row, side in zip(rows, b, strict=True):
        constraint = constraint & at_least(row, int(side))
    with pytest.raises(Refused, match="cannot hold together"):
        constraint & at_least(last, int(1 - weights @ b))
    parts: list[Part] = [*constraint.parts, *at_least(last, int(1 - weights @ b)).parts]
    found = smallest_conflict(parts, n)
    assert found is not None
    named, _ = found
    for spared in named:
        assert smallest_conflict([part for part in named if part is not spared], n) is None
    assert (constraint & at_least(last, int(-(weights @ b)) - 1000)).parts


def test_whole_number_obstacles_are_named() -> None:
    assert equals([[1, 1, 0], [2, 4, 6]], [1, 3]).integer_obstacle() == "equals row 1 has no solution in whole numbers"
    assert fixed([4, 2], [1, 0.5]).integer_obstacle() == "fixed 2 has no solution in whole numbers"
    assert equals([[1, 1], [1, -1]], [1, 0]).integer_obstacle() == (
        "the equalities have no common solution in whole numbers"
    )
    assert (between(0.25, 1) & between(None, 0.75)).integer_obstacle() == (
        "no whole number satisfies between(0.25, 1) at position 0 and between(−inf, 0.75) at position 0"
    )
    assert (fixed(0, 0.5) | fixed(0, 1.5)).integer_obstacle() == (
        "every side of the union is impossible in whole numbers (fixed 0 has no solution in whole numbers)"
    )
    for fine in (
        equals([[1, 1], [1, -1]], [2, 0]),
        equals([[2, 3]], [1]),
        equals([[6, 10, 15]], [1]),
        nonnegative(),
        fixed(0, 0.5) | fixed(0, 1),
        consistent(TREE) & fixed([3, 4, 0], [1, 2, 7]),
    ):
        assert fine.integer_obstacle() is None


def test_parts_about_different_numbers_of_values_do_not_combine() -> None:
    with pytest.raises(Refused, match=r"^consistent\(6 nodes\) is about 6 values, but equals\(1 row\) is about 2$"):
        consistent(TREE) & equals([1, 1], 0)
    with pytest.raises(Refused, match=r"^fixed\(at=\[6\]\) names position 6, but there are only 6 values$"):
        consistent(TREE) & fixed(6, 0)
    with pytest.raises(Refused, match=r"^invariant\(1 row\) is about 2 values, but consistent\(6 nodes\) is about 6$"):
        invariant([1, 1]) & consistent(TREE)
    with pytest.raises(Refused, match="is about 2 values"):
        equals([1, 1], 0) | equals([1, 1, 1], 1)


def test_unions_exclude_each_other() -> None:
    overlap = "the two sides of | must be disjoint: (between(0, 5)) and (fixed(at=[1])) can hold at the same time"
    with pytest.raises(Refused) as refusal:
        between(0, 5) | fixed(1, 5)
    assert str(refusal.value) == overlap
    with pytest.raises(Refused, match="must be disjoint"):
        fixed(0, 1) | (fixed(0, 2) | fixed(1, 7))
    with pytest.raises(Refused, match="must be disjoint"):
        equals([3, 5, 7], 1) | at_least([1, 1, 1], 2)  # a whole point has to be searched for
    sharp = between(0, 5) | fixed(1, 6)
    assert sharp.disjoint(integer=False)
    assert sharp.disjoint(integer=True)
    touching = at_least([1, 1], 1) | at_least([-1, -1], 0)
    assert touching.disjoint(integer=False)
    with pytest.raises(Refused, match="an invariant cannot stand inside a union"):
        fixed(0, 1) | (fixed(0, 2) & invariant([1, 1]))
    outside = (fixed(0, 1) | fixed(0, 2)) & invariant([1, 1])
    assert outside.is_union
    assert outside.has_invariants
    assert len(outside.system(2).branches) == 2
    assert outside.system(2).branches[0].invariants.count == 1


def test_a_side_that_cannot_hold_any_more_is_dropped() -> None:
    left = (fixed(0, 1) | fixed(0, 2)) & between(2, 3)
    assert not left.is_union
    assert str(left) == "between(2, 3) & fixed(at=[0])"
    assert left.system(1).holds([2])
    assert not left.system(1).holds([1])
