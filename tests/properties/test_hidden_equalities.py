"""Inequalities that are tight at every allowed point become equalities, and statements are about possible data."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

import holdfast as hf
from holdfast.constraints import Names, Rows, revealed
from holdfast.constraints.possible.tight_rows import tight_rows
from holdfast.privacy.invariants import NOT_LOOKED

TREE = hf.Hierarchy.from_parents([-1, 0, 0])
PAIR = hf.histogram(2)
OPPOSITE = hf.at_least([[1, 1], [-1, -1]], [10, -10])

NOTHING_CHANGES = [
    (hf.histogram(1), hf.between(5, 5)),
    (PAIR, hf.between(5, 5)),
    (hf.histogram(1), hf.between(5, 5.5)),
    (PAIR, hf.equals([[1, 1]], [0]) & hf.nonnegative()),
    (PAIR, hf.at_least([[-1, -1]], [0]) & hf.nonnegative()),
    (hf.counts(TREE), hf.consistent(TREE) & hf.between(0, 0, at=[0]) & hf.nonnegative()),
    (hf.counts(TREE), hf.consistent(TREE) & hf.between(None, 0, at=[0]) & hf.nonnegative(at=[1, 2])),
    (hf.workload([[3]]), hf.between(0, 2)),
    (hf.histogram(4), hf.invariant([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0]]) & hf.between(0, 0, at=[0, 3])),
]


@pytest.mark.parametrize("integer", [True, False])
@pytest.mark.parametrize("verb", ["given", "onto"])
@pytest.mark.parametrize(("query", "constraint"), NOTHING_CHANGES)
def test_a_statement_without_possible_neighbours_is_refused(query, constraint, verb, integer):
    mechanism = getattr(hf.laplace(query, scale=1, integer=integer), verb)(constraint)
    assert all(statement.void for statement in mechanism.guarantees)
    with pytest.raises(hf.Refused, match="no change of a few records"):
        _ = mechanism.guarantee


@pytest.mark.parametrize("integer", [True, False])
@pytest.mark.parametrize(
    ("query", "hidden", "plain"),
    [
        (PAIR, OPPOSITE, hf.equals([[1, 1]], [10])),
        (PAIR, hf.ordered([0, 1]) & hf.ordered([1, 0]), hf.equals([[1, -1]], [0])),
        (PAIR, hf.between(5, 5, at=[0]), hf.fixed(0, 5)),
        (
            hf.counts(TREE),
            hf.consistent(TREE) & hf.between(10, 10, at=[0]),
            hf.consistent(TREE) & hf.fixed(0, 10),
        ),
        (
            hf.histogram(3),
            hf.nonnegative() & hf.at_least([[-1, -1, 0]], [0]),
            hf.nonnegative(at=[2]) & hf.fixed([0, 1], [0, 0]),
        ),
    ],
)
def test_a_hidden_equality_promises_what_the_plain_one_does(query, hidden, plain, integer):
    base = hf.laplace(query, scale=2, integer=integer)
    for verb in ("given", "onto"):
        found, wanted = (getattr(base, verb)(each).guarantee for each in (hidden, plain))
        assert (found.epsilon, found.neighbours, found.unprotected) == (
            wanted.epsilon,
            wanted.neighbours,
            wanted.unprotected,
        )


def test_what_is_drawn_and_moved_keeps_a_hidden_equality():
    truth = [4, 6]
    for verb in ("given", "onto"):
        values = getattr(hf.laplace(PAIR, scale=3), verb)(OPPOSITE).simulate(truth, 50, rng=hf.seeded(3))
        assert (values.sum(axis=1) == 10).all()
        assert len(np.unique(values[:, 0])) > 3


def test_a_side_of_a_union_that_is_one_point_has_no_weight_under_continuous_noise():
    union = hf.between(5, 5) | hf.between(7, 9)
    with pytest.raises(hf.Refused, match="no defined weights"):
        _ = hf.laplace(hf.histogram(1), scale=1, integer=False).given(union).guarantee


@pytest.mark.parametrize("seed", range(30))
def test_revealed_systems_allow_the_same_tables_and_hide_nothing(seed):
    """Against all whole tables of a box: the same are allowed, and no bound that is left is tight at all of them."""
    rng = np.random.default_rng([16, seed])
    n = int(rng.integers(1, 4))
    parts = [hf.between(-2, int(rng.integers(-2, 3)), at=[j]) for j in range(n)]
    for _ in range(int(rng.integers(1, 4))):
        row = rng.integers(-2, 3, size=n)
        if row.any():
            parts.append(hf.at_least([row], [int(rng.integers(-6, 5))]))
    try:
        constraint = parts[0]
        for part in parts[1:]:
            constraint = constraint & part
    except hf.Refused:
        return
    box = np.array(list(itertools.product(range(-2, 3), repeat=n)))
    before, after = constraint.system(n), revealed(constraint.system(n), Fraction(1))
    allowed = np.asarray(before.holds(box))
    assert (allowed == np.asarray(after.holds(box))).all()
    if allowed.any():
        low, high = after.integer_bounds()
        assert not (low == high).any()
        real = revealed(constraint.system(n), None)
        assert (allowed == np.asarray(real.holds(box))).all()


def test_bounds_are_carried_through_a_large_hierarchy():
    """60 leaves: too many for rationals. A root of at most 60 over leaves of at least 1 fixes everything."""
    tree = hf.Hierarchy.from_parents([-1] + [0] * 10 + [1 + i // 6 for i in range(60)])
    query, leaves = hf.counts(tree), list(range(11, 71))
    full = hf.consistent(tree) & hf.between(None, 60, at=[0]) & hf.between(1, None, at=leaves)
    with pytest.raises(hf.Refused, match="no change of a few records"):
        _ = hf.laplace(query, scale=1).given(full).guarantee
    room = hf.consistent(tree) & hf.between(None, 61, at=[0]) & hf.between(1, None, at=leaves)
    assert hf.laplace(query, scale=1).given(room).guarantee.epsilon > 0


def test_hidden_equalities_without_a_whole_solution_are_refused_by_name():
    """x + y = 1 and x = y, each by two inequalities: halves only."""
    halves = hf.at_least([[1, 1], [-1, -1]], [1, -1]) & hf.at_least([[1, -1], [-1, 1]], [0, 0])
    for verb in ("given", "onto"):
        with pytest.raises(hf.Refused, match=r"whether whole numbers satisfy at_least"):
            getattr(hf.laplace(PAIR, scale=1), verb)(halves)


def _halves(n):
    """Both halves of n cells are exactly 5, which three inequalities hide."""
    half = n // 2
    return hf.at_least([[1] * half + [0] * half, [0] * half + [1] * half, [-1] * n], [5, 5, -10])


@pytest.mark.parametrize("integer", [True, False])
@pytest.mark.parametrize("verb", ["given", "onto"])
def test_equalities_hidden_among_hundreds_of_values_are_found(verb, integer):
    for n in (10, 50, 300):
        base = hf.laplace(hf.histogram(n), scale=1, integer=integer)
        statement = getattr(base, verb)(_halves(n)).guarantee
        assert (statement.epsilon, statement.records) == (2, 2)  # nobody can come or go alone
        assert NOT_LOOKED not in statement.caveats


def test_where_nobody_looked_for_possible_neighbours_the_statement_says_so():
    large = hf.laplace(hf.histogram(1500), scale=1)
    assert NOT_LOOKED in large.onto(_halves(1500)).guarantee.caveats
    assert NOT_LOOKED in large.onto(hf.between(3, 3.5, at=[0]) & hf.at_least([[1] * 1500], [4000])).guarantee.caveats
    for seen in (hf.nonnegative(), hf.between(0, 9), hf.at_least([[1] * 1500], [50]) & hf.nonnegative()):
        assert NOT_LOOKED not in large.onto(seen).guarantee.caveats


@pytest.mark.parametrize("whole", [True, False])
def test_rows_that_programs_call_tight_are_so(whole):
    """Random systems of three values: all points on a grid are listed, and the small systems' own proof is met."""
    rng, proved, all_tight = np.random.default_rng(5), 0, 0
    steps = 1 if whole else 4
    grid = np.array(list(itertools.product(range(-3 * steps, 3 * steps + 1), repeat=3)))
    for _ in range(150):
        A = sparse.csr_array(rng.integers(-2, 3, (4, 3)))
        rows = Rows(A, rng.integers(-2, 3, 4), Names.numbered("row {}", np.arange(4)))
        equality = np.array([rng.random() < 0.3, False, False, False])
        bounds = np.full(3, -3), np.full(3, 3)
        sums = grid @ A.toarray().T
        allowed = np.where(equality, sums == rows.b * steps, sums >= rows.b * steps).all(axis=1)
        if not allowed.any():
            continue
        points = grid[allowed]
        values, tight = tight_rows(rows, equality, bounds, whole=whole)
        reached = np.ceil(rows.b / _common(A)) * _common(A) if whole else rows.b
        for i in np.flatnonzero(tight):
            assert (sums[allowed, i] == reached[i] * steps).all()
        for j, value in values.items():
            assert (points[:, j] == value * steps).all()
        known = (sums[allowed] == reached * steps).all(axis=0) & ~equality
        proved, all_tight = proved + tight.sum(), all_tight + known.sum()
    assert proved >= 0.7 * all_tight > 10


def _common(A):
    return np.maximum(np.gcd.reduce(A.toarray(), axis=1), 1)
