"""Numbers with a derivation beside them: closed forms, large tables, relations in words."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csc_array, csr_array

from holdfast.domains import Cube, Hierarchy
from holdfast.queries import Neighbours, counts, histogram, margins, query, shared_moves, workload
from holdfast.queries.exact_weights import float_up, sqrt_up

#: 1 city, 6 boroughs, 263 zones: the tree of THEORY H1.
ZONES = np.repeat(np.arange(1, 7), [43, 61, 1, 69, 69, 20])


def city():
    return Hierarchy.from_parents(np.concatenate([[-1], np.zeros(6, int), ZONES]))


def test_a_tree_of_three_levels():
    asked = counts(city())
    assert asked.sensitivity(1) == 3  # zone, borough, city
    assert asked.sensitivity(2) == np.nextafter(3**0.5, 2)  # the double nearest √3 lies below it
    assert asked.sensitivity(1, "replace-one") == 4  # two zones and two boroughs; the city stays
    assert asked.sensitivity(2, "replace-one") == 2
    assert asked.sensitivity(np.inf) == asked.sensitivity(np.inf, "replace-one") == 1
    assert asked.sensitivity(1, Neighbours("replace-one", 5)) == 20
    shares = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)]
    assert asked.largest(shares, asked.level_of, 1, "add-remove") == 1
    assert asked.largest(shares, asked.level_of, 1, "replace-one") == 1  # 2·(1/3 + 1/6)
    assert asked.kinds(asked.level_of, "replace-one") == [Counter({(1, 1): 2, (1, 2): 2})]
    assert asked.levels == {"level 0": 0, "level 1": 1, "level 2": 2}


def test_impossible_cells_shorten_the_longest_exchange():
    asked = counts(city())
    only_first = np.zeros(263, bool)
    only_first[:43] = True  # zones of one borough: an exchange leaves the borough's count alone
    assert asked.largest([1], None, 1, "replace-one", only_first) == 2
    assert asked.largest([1], None, 1, "add-remove", only_first) == 3
    assert asked.largest([1], None, 1, "replace-one", np.zeros(263, bool)) == 0


def test_categories_do_not_share_ancestors():
    asked = counts(city(), by=2)
    assert asked.n == 540
    assert asked.cells == 526
    assert asked.sensitivity(1, "replace-one") == 6  # one zone, other category: both whole paths
    one_leaf = counts(Hierarchy.from_parents([-1]), by=2)
    assert one_leaf.sensitivity(1, "replace-one") == 2
    assert asked.labels[1] == "0 [1]"


def test_a_forest_has_no_common_ancestor():
    asked = counts(Hierarchy.from_parents([-1, 0, -1]))
    assert asked.sensitivity(1, "replace-one") == 3  # path of two in one tree, the lone root in the other


def test_histograms_and_margins():
    assert histogram(9).sensitivity(1) == 1
    assert histogram(9).sensitivity(1, "replace-one") == 2
    assert histogram(1).sensitivity(1, "replace-one") == 0
    asked = margins((3, 1, 4), keep=[(0, 2), (1,), (2,), ()])
    assert asked.sensitivity(1) == 4
    assert asked.sensitivity(1, "replace-one") == 4  # (0, 2) and (2,) move; axis 1 has one value
    assert asked.levels == {"axis 0 × axis 2": 0, "axis 1": 1, "axis 2": 2, "total": 3}
    cells = np.arange(12).reshape(3, 1, 4)
    assert asked.answer(cells).tolist() == [*range(12), 66, 12, 15, 18, 21, 66]
    named = margins(Cube((2, 2), names=["sex", "age"]), keep=[("sex",), ("sex", "age")])
    assert named.labels.tolist()[:3] == ["sex=0", "sex=1", "sex=0, age=0"]


def test_a_cube_far_too_large_to_list_is_answered_in_closed_form():
    asked = margins((2**14, 2**13, 2**13), keep=[(0,), (1,), (2,)])
    assert asked.sensitivity(1, "replace-one") == 6
    assert asked.kinds(asked.level_of, "replace-one") == [Counter({(1, 0): 2, (1, 1): 2, (1, 2): 2})]
    assert asked.consistency().shape == (2, asked.n)


@pytest.mark.slow
def test_a_million_leaves():
    leaves = 1_000_000
    inner = [[-1], np.zeros(50, int), 1 + np.arange(1000) // 20]
    parents = np.concatenate([*inner, 51 + np.arange(leaves) // 1000])
    asked = counts(Hierarchy.from_parents(parents))
    assert asked.answer(np.ones(leaves, int))[:2].tolist() == [leaves, 20_000]
    assert asked.sensitivity(1, "replace-one") == 6
    tiny = [Fraction(1, 3**k) for k in range(4)]
    assert asked.largest(tiny, asked.level_of, 1, "replace-one") == 2 * sum(tiny[1:])
    exact = csr_array((np.ones(51, int), (np.arange(51), np.arange(51))), shape=(51, asked.n))
    moves = shared_moves(asked, exact, "add-remove")
    assert moves.neighbours == Neighbours("add-remove", 2)
    assert moves.largest(tiny, asked.level_of, 1) == 2 * (tiny[2] + tiny[3])  # below one exact district
    assert moves.exact
    assert moves.frozen.tolist() == list(range(51))
    assert moves.kinds(asked.level_of) == [Counter({(1, 2): 2, (1, 3): 2})]


def test_exact_weights_beyond_sixty_four_bits():
    asked = counts(Hierarchy.from_parents([-1, 0, 0, 1, 1]))
    values = [Fraction(1, 10**30 + k) for k in range(5)]
    which = np.arange(5)
    assert asked.largest(values, which, 1, "add-remove") == values[0] + values[1] + values[3]
    assert asked.largest(values, which, 1, "replace-one") == values[1] + values[2] + values[3]
    chain = counts(Hierarchy.from_parents([-1, 0, 1, 2, -1]))
    assert chain.largest([2**61], None, 1, "add-remove") == 2**63  # fits no signed word, though each weight does
    assert chain.largest([2**61], None, 1, "replace-one") == 5 * 2**61


def test_exact_totals_by_relation():
    total = np.ones((1, 5), int)
    apart = shared_moves(histogram(5), total, "add-remove")
    assert (apart.neighbours, apart.everything) == (Neighbours("add-remove", 2), False)
    assert apart.largest([Fraction(1, 7)], None, 1) == Fraction(2, 7)
    together = shared_moves(histogram(5), total, "replace-one")
    assert (together.neighbours, together.everything) == (Neighbours("replace-one"), True)
    assert together.largest([1], None, 1) == 2
    nothing = shared_moves(histogram(5), np.eye(5, dtype=int), "replace-one")
    assert nothing.empty
    assert nothing.frozen.tolist() == [0, 1, 2, 3, 4]
    assert nothing.largest([1], None, 1) == 0
    assert nothing.kinds() == []


def test_exact_nodes_with_several_records():
    asked = counts(city())
    rows = np.eye(270, dtype=int)[:7]
    for k in (1, 2, 3):
        moves = shared_moves(asked, rows, Neighbours("replace-one", k))
        assert moves.neighbours == Neighbours("replace-one", k)
        assert moves.largest([1], None, 1) == 2 * k  # each replacement stays inside its borough
        assert moves.largest([1], None, 2) == 2 * k * k
        assert moves.exact
        # The borough of a single zone discloses it: nothing can be exchanged there.
        assert moves.frozen.tolist() == [1, 2, 3, 4, 5, 6, 7 + 43 + 61]


def test_real_workloads_and_grids():
    W = [[0.5, 0.25, 0], [1, 1, 1]]
    real = workload(W)
    assert not real.integer
    assert real.answer([2, 2, 1]).tolist() == [1.5, 5.0]
    assert real.sensitivity(1) == 1.5
    assert real.largest([1], None, 2, "replace-one") == Fraction(1, 4)
    stepped = workload(W, grid=Fraction(1, 4))
    assert stepped.integer
    assert stepped.grid == Fraction(1, 4)
    assert stepped.answer([2, 2, 1]).tolist() == [1.5, 5.0]
    assert stepped.sensitivity(1) == 1.5
    assert stepped.columns.toarray().tolist() == [[2, 1, 0], [4, 4, 4]]  # in steps of 1/4
    assert stepped.largest([1], None, 1, "add-remove") == 6
    assert np.abs(stepped.differences("replace-one")).max() == 0.5
    tenth = workload(csc_array([[0.1, 0.26], [0.0, 0.35]]), grid=Fraction(1, 10))
    assert tenth.columns.toarray().tolist() == [[1, 3], [0, 3]]  # 0.35 is below 7/20 as a double
    assert workload([[1.0, 2.0]]).integer


def test_rounding_is_outward_by_one_double_at_most():
    above = 1 + Fraction(1, 10**60)
    for rounded in (float_up(above), sqrt_up(above)):
        assert rounded == np.nextafter(1.0, 2)
    assert float_up(Fraction(1, 4)) == 0.25
    assert sqrt_up(Fraction(9, 4)) == 1.5
    assert sqrt_up(Fraction(0)) == 0
    assert Fraction(sqrt_up(Fraction(1, 3 * 10**40))) ** 2 >= Fraction(1, 3 * 10**40)
    assert Fraction(sqrt_up(Fraction(10**41, 3))) ** 2 >= Fraction(10**41, 3)


def test_queries_known_by_their_sensitivities():
    asked = query(9, l2=2)
    assert asked.sensitivity(2) == 2
    assert asked.sensitivity(1) == 6
    assert query(9, l1=2).sensitivity(2) == 2
    assert query(9, l1=3, l2=2).largest([1, 5], np.zeros(9, int), 2, "replace-one") == 20
    assert query(9, l1=3, l2=2).sensitivity(1, Neighbours("replace-one", 2)) == 6
    assert not asked.is_exact("add-remove")
    assert asked.cells is None


@pytest.mark.parametrize(
    ("relation", "words"),
    [
        (Neighbours("add-remove"), "one record added or removed"),
        (Neighbours("add-remove", 3), "up to 3 records added or removed"),
        (Neighbours("replace-one"), "one record replaced by another"),
        (Neighbours("replace-one", 2), "up to 2 records replaced by others"),
    ],
)
def test_relations_in_words(relation, words):
    assert str(relation) == words
    assert Neighbours.of(relation) is relation
    assert hash(relation) == hash(Neighbours(relation.kind, relation.records))
