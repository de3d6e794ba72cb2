"""Shared moves against all sums of changes, written out, that keep the invariants."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from holdfast.domains import Cube, Hierarchy
from holdfast.queries import Neighbours, counts, histogram, margins, shared_moves, workload

ASKED = [Neighbours(kind, k) for kind in ("add-remove", "replace-one") for k in (1, 2)]


def sums(columns, relation, rows, mask):
    """All non-zero differences of the relation that rows send to zero."""
    cells = [tuple(int(x) for x in c) for j, c in enumerate(columns.T) if mask is None or mask[j]]
    if relation.kind == "add-remove":
        one = set(cells) | {tuple(-x for x in c) for c in cells}
    else:
        one = {tuple(np.subtract(a, b).tolist()) for a, b in itertools.permutations(cells, 2)}
    one.add((0,) * len(columns))
    table = np.array(sorted(one))
    reached = np.zeros((1, len(columns)), int)
    for _ in range(relation.records):
        reached = np.unique((reached[:, None] + table[None]).reshape(-1, len(columns)), axis=0)
    kept = reached[(reached != 0).any(axis=1) & ~(rows @ reached.T).any(axis=0)]
    return kept, reached[(reached != 0).any(axis=1)]


def random_case(rng, kind):
    if kind == "tree":
        n = int(rng.integers(2, 9))
        query = counts(
            Hierarchy.from_parents([int(rng.integers(-1, v)) if v else -1 for v in range(n)]),
            by=int(rng.integers(1, 3)),
        )
        pinned = rng.random(query.n) < 0.35
        rows = np.eye(query.n, dtype=int)[pinned]
        if rng.random() < 0.5:  # consistency rows are kept by every difference and change nothing
            rows = np.vstack([rows, query.consistency().toarray()])
        return query, rows
    if kind == "histogram":
        n = int(rng.integers(2, 6))
        return histogram(n), rng.integers(0, 2, (int(rng.integers(1, 4)), n))
    if kind == "signed":
        n = int(rng.integers(2, 5))
        return histogram(n), rng.integers(-2, 3, (int(rng.integers(1, 3)), n))
    if kind == "margins":
        query = margins((2, 3), [(0,), (1,), (0, 1)])
        return query, np.eye(query.n, dtype=int)[rng.random(query.n) < 0.3]
    n, cells = int(rng.integers(2, 4)), int(rng.integers(2, 6))
    return workload(rng.integers(-2, 3, (n, cells))), rng.integers(-1, 2, (1, n))


def stages(asked):
    yield asked
    if asked.kind == "replace-one":
        yield from (Neighbours("replace-one", k) for k in range(asked.records + 1, 5))
        return
    yield from (Neighbours("add-remove", k) for k in range(asked.records + 1, 4))
    for k in range(2, 5):
        yield Neighbours("replace-one", k)
        if k == 2:
            yield Neighbours("add-remove", 4)


def dominated(small, large):
    return all(
        sum(t for (x, h), t in small.items() if h == g and x >= size)
        <= sum(t for (x, h), t in large.items() if h == g and x >= size)
        for size, g in small
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tree", "histogram", "signed", "margins", "workload"])
@pytest.mark.parametrize("asked", [Neighbours(k, r) for k in ("add-remove", "replace-one") for r in (1, 2)], ids=str)
def test_moves_match_the_listed_sums(kind, asked):
    rng = np.random.default_rng(41)
    seen = Counter()
    for _ in range(18 if asked.records == 1 else 20):
        query, rows = random_case(rng, kind)
        if query.cells > 6 and asked.records > 1:
            continue
        mask = None if rng.random() < 0.6 else rng.random(query.cells) < 0.7
        columns = query.columns.toarray()
        moves = shared_moves(query, rows, asked, mask)
        _, original = sums(columns, asked, rows, mask)
        alterable = (original != 0).any(axis=0)
        whole = len(original) > 0 and not (rows @ original.T).any()
        assert moves.everything == whole
        listed = True
        for stage in stages(asked):
            if stage.records > 2 and query.cells > 5:
                listed = False  # too many
                break
            kept, _ = sums(columns, stage, rows, mask)
            if stage == moves.neighbours and not moves.empty:
                break
            assert len(kept) == 0, "a smaller set of records would do"
        else:
            assert moves.empty
        if moves.empty:
            seen["empty"] += 1
            assert (moves.frozen == np.flatnonzero(alterable)).all()
            continue
        if not listed or stage != moves.neighbours:
            continue
        seen[str(moves.neighbours)] += 1
        assert len(kept)
        which = rng.integers(0, 3, query.n)
        values = [Fraction(int(rng.integers(0, 7)), int(rng.integers(1, 7))) for _ in range(3)]
        weight = [values[g] for g in which]
        for p in (1, 2):
            truth = max(sum(w * abs(int(x)) ** p for w, x in zip(weight, d, strict=True)) for d in kept)
            bound = moves.bound(values, which, p)
            assert bound.value >= truth
            if bound.exact:
                assert bound.value == truth
                seen["exact"] += 1
            else:
                seen["bound"] += 1
        changed = (kept != 0).any(axis=0)
        assert (moves.frozen == np.flatnonzero(alterable & ~changed)).all()
        profiles = {
            frozenset(Counter((abs(int(x)), int(g)) for x, g in zip(d, which, strict=True) if x).items()) for d in kept
        }
        kinds = moves.kinds(which)
        assert all(frozenset(kind.items()) in profiles for kind in kinds)
        assert all(any(dominated(Counter(dict(one)), kind) for kind in kinds) for one in profiles)
    assert seen["exact"] > 5 * seen["bound"]
    assert seen["exact"] > 10


def test_asking_for_more_records_frees_more_outputs():
    # Node 1 is exact: leaves 3 and 4 below it need an exchange, leaf 2 comes and goes alone.
    query = counts(Hierarchy.from_parents([-1, -1, 0, 1, 1]))
    rows = np.array([[0, 1, 0, 0, 0]])
    alone = shared_moves(query, rows, "add-remove")
    assert (alone.records, alone.frozen.tolist()) == (1, [1, 3, 4])
    together = shared_moves(query, rows, "add-remove", records_at_least=2)
    assert (together.records, together.frozen.tolist()) == (2, [1])
    assert together.largest([1], None, 1) == 4  # two records below node 0 change two outputs by 2
    assert together.exact


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("shape", [(2, 2), (3, 4), (2, 1, 3)])
def test_two_crossed_margins_need_two_replacements(relation, shape):
    keep = [(0,), (len(shape) - 1,)] if len(shape) == 2 else [(0, 1), (1, 2)]
    rows = np.vstack([Cube(shape).margin_rows(axes).toarray() for axes in keep])
    for hint in (None, (shape, keep)):
        moves = shared_moves(margins(shape), rows, relation, cube_margins=hint)
        assert moves.neighbours == Neighbours("replace-one", 2)
        assert moves.largest([Fraction(1, 3)], None, 1) == Fraction(4, 3)
        assert moves.largest([1], None, 2) == 4
        assert moves.exact
        assert not moves.everything
        assert moves.frozen.size == 0
        assert moves.kinds() == [Counter({(1, 0): 4})]


def test_three_crossed_pairs_of_margins_need_four_replacements():
    shape, keep = (2, 2, 2), [(0, 1), (0, 2), (1, 2)]
    rows = np.vstack([Cube(shape).margin_rows(axes).toarray() for axes in keep])
    for hint in (None, (shape, keep)):
        moves = shared_moves(margins(shape), rows, "replace-one", cube_margins=hint)
        assert moves.neighbours == Neighbours("replace-one", 4)
        assert moves.largest([1], None, 1) == moves.largest([1], None, 2) == 8
    for k in (1, 2, 3):  # no smaller number will do, by listing
        assert len(sums(np.eye(8, dtype=int), Neighbours("replace-one", k), rows, None)[0]) == 0


def test_the_closed_form_for_cubes_bounds_unequal_weights():
    shape, keep = (2, 3), [(0,), (1,)]
    rows = np.vstack([Cube(shape).margin_rows(axes).toarray() for axes in keep])
    rng = np.random.default_rng(42)
    query = histogram(6)
    listed = shared_moves(query, rows, "replace-one")
    for _ in range(20):
        which, values = rng.integers(0, 3, 6), [1, 2, Fraction(1, 2)]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                "holdfast.queries.co_changes.multisets.MOST_MULTISETS", 0
            )  # as if there were too many to list
            closed = shared_moves(query, rows, "replace-one", cube_margins=(shape, keep))
        for p in (1, 2):
            assert closed.largest(values, which, p) >= listed.largest(values, which, p)
            assert not closed.bound(values, which, p).exact


def test_overlapping_equalities_on_many_cells_are_exact_for_two_records():
    rows = np.zeros((2, 5000), int)
    rows[0, :3000], rows[1, 2000:] = 1, 1  # three classes, the middle one the sum of the others
    moves = shared_moves(histogram(5000), rows, "add-remove")
    assert moves.neighbours == Neighbours("add-remove", 2)
    assert (moves.largest([1], None, 1), moves.largest([1], None, 2), moves.exact) == (2, 2, True)


def test_listing_too_many_moves_falls_back_to_a_bound(monkeypatch):
    rows = np.array([[1, 1, 0, 0, 1, 0], [0, 0, 1, 1, 1, 0]])
    query, asked = histogram(6), Neighbours("replace-one", 2)
    exact = shared_moves(query, rows, asked)
    monkeypatch.setattr("holdfast.queries.co_changes.multisets.MOST_MATCHES", 0)
    rough = shared_moves(query, rows, asked)
    assert exact.exact
    assert not rough.exact
    for p in (1, 2):
        assert rough.largest([1], None, p) >= exact.largest([1], None, p)
    assert set(exact.frozen) <= set(rough.frozen)
