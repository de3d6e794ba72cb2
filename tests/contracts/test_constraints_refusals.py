"""Every wrong input is refused in one sentence that names the argument and what is expected."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from holdfast.arguments import Refused
from holdfast.constraints import (
    at_least,
    between,
    consistent,
    equals,
    exact_margins,
    exact_nodes,
    fixed,
    invariant,
    nonnegative,
    ordered,
)
from holdfast.domains import Hierarchy

TREE = Hierarchy.from_parents(
    [-1, 0, 0, 1, 1, 2], names=["city", "north", "south", "a", "b", "a"], levels=["city", "side", "zone"]
)


class Odd:
    """A query whose consistency rows have the wrong width."""

    n = 3

    def consistency(self) -> sparse.csr_array:
        return sparse.csr_array(np.ones((1, 2), dtype=int))


BAD: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: consistent([-1, 0, 0]),
        "tree_or_query must be a Hierarchy or a query whose outputs are known, found list",
    ),
    (
        lambda: consistent(None),
        "tree_or_query must be a Hierarchy or a query whose outputs are known, found NoneType",
    ),
    (lambda: consistent(Odd()), "the query's consistency rows must have 3 columns, found 2"),
    (lambda: nonnegative(at=[]), "at must be one position or a list of positions, found shape (0,)"),
    (lambda: nonnegative(at=[-1]), "at must hold positions 0 or more, found another at place 0"),
    (lambda: nonnegative(at=[1, 1]), "at must not name a position twice"),
    (lambda: nonnegative(at=[0.5]), "at must hold whole numbers, but the entry at position 0 is not whole"),
    (lambda: nonnegative(at="north"), "at must hold numbers, found values of type <U5"),
    (lambda: nonnegative(at=[True]), "at must hold numbers, found values of type bool"),
    (lambda: between(None, None), "between needs a low or a high bound, found neither"),
    (lambda: between(-math.inf, math.inf), "between needs a low or a high bound, found neither"),
    (lambda: between(math.nan, 1), "low must hold finite numbers, found nan"),
    (lambda: between(0, [1, math.nan]), "high must hold finite numbers, found nan"),
    (lambda: between(math.inf, None), "low must hold finite numbers, found inf"),
    (lambda: between(None, -math.inf), "high must hold finite numbers, found -inf"),
    (lambda: between([0, 1], [1, 2, 3]), "low and high must have the same length, found 2 and 3"),
    (lambda: between([0, 1], 3, at=[1, 2, 3]), "low must be one number or 3 numbers, found shape (2,)"),
    (lambda: between([[0, 1]], 3), "low must be one number or 2 numbers, found shape (1, 2)"),
    (lambda: between([], 3), "low must be one number or 0 numbers, found shape (0,)"),
    (lambda: between("a", 3), "low must hold numbers, found values of type <U1"),
    (lambda: between(2**62, None), "low must stay below 2**62 in size, found 4611686018427387904"),
    (lambda: between(None, 1e300), "high must stay below 2**62 in size, found a larger number"),
    (lambda: ordered([3]), "indices must list at least two positions, found one"),
    (lambda: ordered([3, 1, 3]), "indices must not name a position twice"),
    (lambda: ordered([]), "indices must be one position or a list of positions, found shape (0,)"),
    (lambda: ordered([0, -2]), "indices must hold positions 0 or more, found another at place 1"),
    (lambda: fixed([0, 1], [1, 2, 3]), "values must be one number or 2 numbers, found shape (3,)"),
    (lambda: fixed([0, 1], [1, math.nan]), "values must hold finite numbers, found nan"),
    (lambda: fixed([0, 1], [1, None]), "values must hold numbers, found None"),
    (lambda: fixed([0, 0], 1), "at must not name a position twice"),
    (lambda: fixed(0, 2**62), "values must stay below 2**62 in size, found 4611686018427387904"),
    (lambda: fixed(0, 2**70), "values must stay below 2**62 in size, found a larger number"),
    (lambda: equals([], 0), "A must have at least one row and one column, found shape (1, 0)"),
    (lambda: equals(np.zeros((0, 3)), []), "A must have at least one row and one column, found shape (0, 3)"),
    (
        lambda: equals([[1, 2], [3]], [0, 0]),
        "A must be an array of numbers, found values of unequal shape or kind",
    ),
    (lambda: equals(np.zeros((1, 2, 2)), 0), "A must be a matrix or one row, found shape (1, 2, 2)"),
    (lambda: equals(3, 0), "A must be a matrix or one row, found shape ()"),
    (lambda: equals([[1, math.nan]], 0), "A must hold finite numbers, found nan"),
    (lambda: equals(np.array([[1, np.inf]]), 0), "A must hold finite numbers, found inf"),
    (lambda: equals(sparse.csr_array([[1, np.nan]]), 0), "A must hold finite numbers, found nan"),
    (lambda: equals([["1", "2"]], 0), "A must hold numbers, found values of type <U1"),
    (lambda: equals([[1, "2"]], 0), "A must hold numbers, found values of type <U21"),
    (lambda: equals([[True, False]], 0), "A must hold numbers, found values of type bool"),
    (lambda: equals([[Fraction(1), None]], 0), "A must hold numbers, found None"),
    (lambda: equals([[1 + 2j, 0]], 0), "A must hold numbers, found values of type complex128"),
    (lambda: equals([[2**62, 1]], 0), "A must hold entries below 2**62 in size, found a larger one"),
    (
        lambda: equals([[2**61, Fraction(1, 3)]], 0),
        "A must hold entries below 2**62 in size once the denominators of each row are cleared, found a larger one",
    ),
    (
        lambda: equals([[Fraction(1, 5), 1]], 2**60),
        "b must stay below 2**62 in size once the denominators of A are cleared, found a larger number",
    ),
    (lambda: equals([[1, 2], [3, 4]], [0, 0, 0]), "b must be one number or 2 numbers, found shape (3,)"),
    (lambda: equals([[1, 2]], math.nan), "b must hold finite numbers, found nan"),
    (lambda: equals([[1, 2]], "x"), "b must hold numbers, found values of type <U1"),
    (lambda: at_least([[1, 2]], [math.inf]), "b must hold finite numbers, found inf"),
    (lambda: at_least([[1, 2]], [[1]]), "b must be one number or 1 numbers, found shape (1, 1)"),
    (
        lambda: invariant([[0, 0]]),
        "C must have an entry that is not zero, found none: it would publish nothing",
    ),
    (lambda: invariant(None), "C must be a matrix or one row, found shape ()"),
    (lambda: invariant([]), "C must have at least one row and one column, found shape (1, 0)"),
    (lambda: invariant([[1, math.inf]]), "C must hold finite numbers, found inf"),
    (lambda: exact_nodes([-1, 0], 0), "tree must be a Hierarchy, found list"),
    (lambda: exact_nodes(TREE, 6), "nodes must hold positions between 0 and 5, found 6"),
    (lambda: exact_nodes(TREE, [0, 0]), "nodes must not name a position twice"),
    (lambda: exact_nodes(TREE, []), "nodes must be one position or a list of positions, found shape (0,)"),
    (lambda: exact_nodes(TREE, 0, by=0), "by must be at least 1, found 0"),
    (lambda: exact_nodes(TREE, "a"), "nodes must be unambiguous, but 'a' names 2 nodes; give paths or ids"),
    (
        lambda: exact_nodes(TREE, "nort"),
        "nodes must be one of 'city', 'side', 'zone', 'city', 'north', 'south', 'a', 'b', 'a', found 'nort'; "
        "did you mean 'north'?",
    ),
    (
        lambda: exact_nodes(TREE, [("city", "east")]),
        "path must name nodes of the hierarchy, but 'east' is not below 'city'",
    ),
    (lambda: exact_margins([], [(0,)]), "shape must have at least one axis, found none"),
    (lambda: exact_margins([2, 0], [(0,)]), "shape must be at least 1, found 0"),
    (lambda: exact_margins([2, 2.5], [(0,)]), "shape must be a whole number, found 2.5"),
    (lambda: exact_margins([2, 2], []), "keep must name at least one margin, found none"),
    (
        lambda: exact_margins([2, 2], [0, 1]),
        "shape must be a list of sizes and keep a list of tuples of axes, such as [(0, 1), (2,)]",
    ),
    (lambda: exact_margins([2, 2], [(0, 2)]), "keep must hold positions between 0 and 1, found another at place 1"),
    (lambda: exact_margins([2, 2], [(0, 0)]), "keep must not name a position twice"),
    (lambda: exact_margins([2, 2], [(0, 1), (1, 0)]), "keep must not name a margin twice"),
    (lambda: consistent(TREE).system(5), "consistent(6 nodes) is about 6 values, but there are 5"),
    (lambda: fixed(7, 0).system(7), "fixed(at=[7]) names position 7, but there are only 7 values"),
    (lambda: between([0, 0], 3).system(3), "between(…, 3) is about 2 values, but there are 3"),
    (
        lambda: nonnegative().system(2).holds([1, 2, 3]),
        "values must have shape (2,) or (size, 2), found shape (3,)",
    ),
    (lambda: nonnegative().system(2).violation([[1, 2]]), "values must have shape (2,), found shape (1, 2)"),
    (
        lambda: nonnegative().system(2).holds([1.0, math.nan]),
        "values must hold finite numbers, but the entry at position 1 is not finite",
    ),
    (lambda: nonnegative().system(2).holds([1, 2], scale=0), "scale must be above 0, found 0"),
    (
        lambda: nonnegative() and ordered([0, 1]),
        "a constraint is neither true nor false; combine constraints with & and |, not and / or",
    ),
]


@pytest.mark.parametrize(("make", "sentence"), BAD)
def test_bad_input_is_refused_in_one_sentence(make: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(Refused) as refusal:
        make()
    assert str(refusal.value) == sentence


def test_only_constraints_combine() -> None:
    with pytest.raises(TypeError):
        nonnegative() & 5
    with pytest.raises(TypeError):
        nonnegative() | [0]


def test_every_kind_of_matrix_is_read_alike() -> None:
    expected = [[6, 2, 0], [0, 0, 3]]
    exact = [[Fraction(3, 2), Fraction(1, 2), 0], [0, 0, 3]]
    for C in (
        [[6, 2, 0], [0, 0, 3]],
        np.array([[6, 2, 0], [0, 0, 3]], dtype=np.int8),
        np.array([[6, 2, 0], [0, 0, 3]], dtype=np.uint16),
        np.array([[6, 2, 0], [0, 0, 3.0]]),
        sparse.coo_array(np.array([[6, 2, 0], [0, 0, 3]])),
        sparse.csc_matrix(np.array([[6, 2, 0], [0, 0, 3.0]])),
        [[Decimal(6), 2, 0], [0, 0, np.int64(3)]],
    ):
        rows = invariant(C).system(3).invariants
        assert rows.A.dtype == np.int64
        assert rows.A.toarray().tolist() == expected
    for C in (exact, [[1.5, 0.5, 0], [0, 0, 3]], [[Decimal("1.5"), 0.5, 0], [0, 0, 3]]):
        assert invariant(C).system(3).invariants.A.toarray().tolist() == [[3, 1, 0], [0, 0, 3]]
    repeated = sparse.coo_array(([1, 2, -1], ([0, 0, 0], [0, 1, 0])), shape=(1, 2))
    assert invariant(repeated).system(2).invariants.A.nnz == 1


def test_doubles_are_read_as_the_fractions_they_stand_for() -> None:
    rows = equals([[1 / 3, 0.1], [2 / 7, 1e-6]], [0.7, 1 / 9]).system(2).equalities
    assert rows.A.toarray().tolist() == [[10, 3], [2000000, 7]]
    assert list(rows.b) == [21, Fraction(7000000, 9)]
    assert equals([[1 / 3, 0.1]], 0).irrational() is None
    assert equals([[2.0**-30, 3.0]], 0).irrational() is None
    assert equals([[Fraction(1, 10**7), 3]], 0).irrational() is None


@pytest.mark.parametrize("number", [2**0.5, math.pi, np.float32(1 / 3), 0.1 + 0.2, math.e / 1000])
def test_a_number_that_is_no_simple_fraction_is_flagged(number: float) -> None:
    constraint = invariant([[number, 1]])
    (part,) = constraint.parts
    assert not part.rational
    assert constraint.irrational() == (
        "invariant(1 row) holds a number that is not a simple fraction, so whole-number noise cannot "
        "keep it; give the entries as integers or fractions, or use integer=False"
    )
    a, b = constraint.system(2).invariants.A.toarray()[0].tolist()
    assert Fraction(a, b) == Fraction(float(number))  # kept exactly all the same


def test_nodes_may_be_called_by_id_name_path_or_level() -> None:
    def nodes(given: Any) -> list[int]:
        return exact_nodes(TREE, given).nodes.tolist()

    assert nodes(2) == [2]
    assert nodes([5, 1]) == [1, 5]
    assert nodes((5, 1)) == [1, 5]
    assert nodes(np.array([3])) == [3]
    assert nodes("north") == [1]
    assert nodes("side") == [1, 2]
    assert nodes(["side", "city"]) == [0, 1, 2]
    assert nodes(("city", "south", "a")) == [5]
    assert nodes([("city", "south", "a"), "b", 0]) == [0, 4, 5]


def test_a_table_without_relations_is_consistent() -> None:
    class Histogram:
        n = 4
        tree = None

        def consistency(self) -> sparse.csr_array:
            return sparse.csr_array((0, 4), dtype=np.int64)

    system = (consistent(Histogram()) & nonnegative()).system(4)
    assert system.equalities.count == 0
    assert len(system.equalities.names) == 0
    assert system.holds([0, 1, 2, 3])
    assert system.null_space().rank == 0
    single = consistent(Hierarchy.from_parents([-1])).system(1)
    assert single.equalities.count == 0
    assert single.null_space().lattice_basis().toarray().tolist() == [[1]]


def test_constraints_travel_between_processes() -> None:
    constraint = (consistent(TREE) & nonnegative() & invariant([1, 0, 0, 0, 0, 0])) & (fixed(3, 1) | fixed(3, 2))
    copy = pickle.loads(pickle.dumps(constraint))
    assert str(copy) == str(constraint)
    table = TREE.sum_up([1, 4, 4])
    assert copy.system(6).holds(table)
    assert copy.system(6).equalities.names[0] == "consistency at node 0"


def test_names_of_rows_are_a_sequence() -> None:
    names = (equals([[1, 0], [0, 1]], 0) & fixed([1, 0], 0)).system(2).equalities.names
    assert list(names) == ["equals row 0", "equals row 1", "fixed 1", "fixed 0"]
    assert names[-1] == "fixed 0"
    assert names[1:3] == ["equals row 1", "fixed 1"]
    with pytest.raises(IndexError):
        names[4]
