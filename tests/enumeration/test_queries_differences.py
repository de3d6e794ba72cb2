"""Every number a query states about its difference set, against the set written out in fractions."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from holdfast.arguments import Refused
from holdfast.domains import Cube, Hierarchy
from holdfast.queries import Neighbours, counts, histogram, margins, workload
from holdfast.queries.columns import few_differences

RELATIONS = [Neighbours(kind, k) for kind in ("add-remove", "replace-one") for k in (1, 2)]


def random_tree(rng, most=9):
    n = int(rng.integers(1, most))
    above = np.array([int(rng.integers(-1, v)) if v else -1 for v in range(n)])
    shuffle = rng.permutation(n)
    parents = np.empty(n, int)
    parents[shuffle] = np.where(above >= 0, shuffle[above], -1)
    return Hierarchy.from_parents(parents)


def random_query(rng, kind):
    if kind == "tree":
        return counts(random_tree(rng), by=int(rng.integers(1, 3)))
    if kind == "histogram":
        return histogram(int(rng.integers(1, 6)))
    shape = tuple(int(s) for s in rng.integers(1, 4, int(rng.integers(1, 4))))
    if kind == "margins":
        every = [c for k in range(len(shape) + 1) for c in itertools.combinations(range(len(shape)), k)]
        chosen = rng.choice(len(every), int(rng.integers(1, len(every) + 1)), replace=False)
        return margins(Cube(shape), [every[i] for i in chosen])
    size = (int(rng.integers(1, 5)), int(rng.integers(1, 6)))
    if kind == "whole workload":
        return workload(rng.integers(-3, 4, size))
    if kind == "quarter workload":
        return workload(rng.integers(-3, 4, size) / 4)
    return workload(np.round(rng.normal(size=size), int(rng.integers(1, 17))))


def difference_set(query, relation, mask=None):
    """The set of THEORY §0, from its definition."""
    table = query.columns.toarray()
    exact = [tuple(Fraction(float(x)) if table.dtype.kind == "f" else int(x) for x in c) for c in table.T]
    cells = [c for j, c in enumerate(exact) if mask is None or mask[j]]
    zero = (0,) * query.n
    minus = lambda a, b: tuple(x - y for x, y in zip(a, b, strict=True))  # noqa: E731
    if relation.kind == "add-remove":
        one = set(cells) | {minus(zero, c) for c in cells}
    else:
        one = {minus(cells[j], cells[k]) for j, k in itertools.permutations(range(len(cells)), 2)}
    one.add(zero)
    reached = {zero}
    for _ in range(relation.records):
        reached = {minus(a, minus(zero, b)) for a in reached for b in one}
    return reached - {zero}


def total(d, values, which, p):
    group = [0] * len(d) if which is None else which
    return sum((values[g] * abs(x) ** p for x, g in zip(d, group, strict=True)), Fraction(0))


def profile(d, which):
    group = [0] * len(d) if which is None else [int(g) for g in which]
    return Counter((abs(x), g) for x, g in zip(d, group, strict=True) if x)


def dominated(small, large):
    """Whether every change of `small` pairs with one at least as large in the same group of `large`."""
    for g in {g for _, g in small}:
        a = sorted((x for (x, h), t in small.items() for _ in range(t) if h == g), reverse=True)
        b = sorted((x for (x, h), t in large.items() for _ in range(t) if h == g), reverse=True)
        if len(a) > len(b) or any(x > y for x, y in zip(a, b, strict=False)):
            return False
    return True


def random_groups(rng, query):
    kind = rng.integers(3)
    if kind == 0:
        return None, [Fraction(int(rng.integers(1, 9)), 7)]
    values = [Fraction(int(rng.integers(0, 9)), int(rng.integers(1, 9))) for _ in range(4)]
    if kind == 1 and query.level_of is not None:
        by_level = rng.integers(0, 4, int(query.level_of.max()) + 1)
        return by_level[query.level_of], values
    return rng.integers(0, 4, query.n), values


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tree", "histogram", "margins", "whole workload", "real workload"])
@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_largest_change_and_kinds_match_the_listed_set(kind, relation):
    rng = np.random.default_rng(31)
    for _ in range(20 if relation.records == 1 else 10):
        query = random_query(rng, kind)
        if relation.records > 1 and query.cells > 8:
            continue
        mask = None if rng.random() < 0.5 else rng.random(query.cells) < 0.6
        listed = difference_set(query, relation, mask)
        which, values = random_groups(rng, query)
        for p in (1, 2):
            bound = query.bound(values, which, p, relation, mask)
            assert bound.exact
            assert bound.value == max((total(d, values, which, p) for d in listed), default=0)
            assert query.largest(values, which, p, relation, mask) == bound.value
        if query.integer:
            kinds = query.kinds(which, relation, mask)
            profiles = [profile(d, which) for d in listed]
            assert all(any(dominated(one, kind) for kind in kinds) for one in profiles)
            assert all(kind in profiles for kind in kinds)
            assert not any(dominated(a, b) for a, b in itertools.permutations(kinds, 2))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tree", "histogram", "margins", "whole workload", "real workload"])
@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_sensitivity_is_the_smallest_double_not_below(kind, relation):
    rng = np.random.default_rng(32)
    for _ in range(12 if relation.records == 1 else 6):
        query = random_query(rng, kind)
        if relation.records > 1 and query.cells > 8:
            continue
        listed = difference_set(query, relation)
        for p in (1, 2):
            power = max((total(d, [Fraction(1)], None, p) for d in listed), default=Fraction(0))
            found = query.sensitivity(p, relation)
            assert Fraction(found) ** p >= power
            assert found == 0 or Fraction(math.nextafter(found, -1)) ** p < power
        widest = max((max(abs(x) for x in d) for d in listed), default=0)
        assert query.sensitivity(np.inf, relation) == pytest.approx(float(widest), rel=1e-15)
        assert Fraction(query.sensitivity(np.inf, relation)) >= widest


@pytest.mark.parametrize("kind", ["tree", "histogram", "margins", "whole workload"])
@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_differences_lists_the_set_once_each(kind, relation):
    rng = np.random.default_rng(33)
    for _ in range(20):
        query = random_query(rng, kind)
        if relation.records > 1 and query.cells > 8:
            continue
        rows = query.differences(relation)
        listed = [tuple(int(x) for x in row) for row in rows]
        assert len(set(listed)) == len(listed)
        assert set(listed) == difference_set(query, relation)
        assert np.array_equal(few_differences(query.columns, relation, len(rows)), rows)
        assert not len(rows) or few_differences(query.columns, relation, len(rows) - 1) is None


@pytest.mark.parametrize("kind", ["tree", "histogram", "margins", "whole workload", "quarter workload"])
def test_consistency_spans_the_left_null_space_without_redundancy(kind):
    rng = np.random.default_rng(34)
    for _ in range(60):
        query = random_query(rng, kind)
        rows, table = query.consistency().toarray(), query.columns.toarray()
        assert rows.dtype == np.int64
        if table.dtype.kind == "f":
            assert all(
                sum(int(a) * Fraction(float(w)) for a, w in zip(row, column, strict=True)) == 0
                for row in rows
                for column in table.T
            )
        else:
            assert not (rows @ table).any()
        assert len(rows) == query.n - np.linalg.matrix_rank(table)
        assert len(rows) == 0 or np.linalg.matrix_rank(rows) == len(rows)


@pytest.mark.parametrize("kind", ["tree", "histogram", "margins", "whole workload"])
def test_answers_are_the_columns_times_the_cells(kind):
    rng = np.random.default_rng(35)
    for _ in range(30):
        query = random_query(rng, kind)
        cells = rng.integers(0, 50, query.cells)
        answer = query.answer(cells)
        assert answer.dtype == np.int64
        assert (answer == query.columns.toarray() @ cells).all()
        assert len(query.labels) == query.n


def test_too_many_pairs_give_a_bound_that_says_so(monkeypatch):
    rng = np.random.default_rng(36)
    for low in (0, -3):
        query = workload(rng.integers(low, 4, (6, 30)))
        exact = {p: query.bound([1], None, p, "replace-one") for p in (1, 2)}
        monkeypatch.setattr("holdfast.queries.columns.MOST_PAIRS", 10)
        for p in (1, 2):
            rough = query.bound([1], None, p, "replace-one")
            assert exact[p].exact
            assert not rough.exact
            assert rough.value >= exact[p].value
        assert not query.is_exact("replace-one")
        assert query.is_exact("add-remove")
        with pytest.raises(Refused, match="few enough to list"):
            query.kinds(None, "replace-one")
        monkeypatch.undo()


def test_numbers_beyond_the_range_of_doubles_are_summed_exactly():
    query = workload([[1e-200, 0.0], [0.0, 3e-200]])
    assert query.largest([1], None, 2, "add-remove") == Fraction(3e-200) ** 2
    query = workload([[1.5e200, 0.5], [0.0, 3.0]])
    assert query.largest([1], None, 2, "add-remove") == Fraction(1.5e200) ** 2
    values = [Fraction(1), Fraction(1, 10**400), Fraction(2, 10**400)]
    query = workload([[0, 0], [3, 0], [0, 2]])
    assert query.largest(values, [0, 1, 2], 1, "add-remove") == 4 / Fraction(10**400)
    assert query.largest([10**400], None, 1, "add-remove") == 3 * 10**400


def test_near_ties_beyond_the_limit_are_rounded_up(monkeypatch):
    query = workload(np.random.default_rng(37).normal(size=(5, 40)))
    exact = query.bound([1], None, 2, "add-remove").value
    monkeypatch.setattr("holdfast.queries.columns.MOST_TIES", 0)
    rough = query.bound([1], None, 2, "add-remove")
    assert not rough.exact
    assert exact <= rough.value <= exact * (1 + Fraction(1, 10**12))
