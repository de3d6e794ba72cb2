"""Records that must change together, against a list of all changes of labelled rows."""

from __future__ import annotations

from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pytest
from scipy.sparse import csr_array

import holdfast as hf
from holdfast.queries.co_changes.by_column import Column, records_together


def needed_rows(S, W, adds, most):
    """k(p → q) for all cells by listing multisets of rows (from, to): the least cost of a minimal altering one."""
    n = W.shape[1]
    outside = [n] if adds else []
    S = np.hstack([S, np.zeros((S.shape[0], 1), int)]) if adds else S
    W = np.hstack([W, np.zeros((W.shape[0], 1), int)]) if adds else W
    rows = [(p, q) for p, q in product([*range(n), *outside], repeat=2) if p != q]
    cost = [1 if adds and n in row else 2 if adds else 1 for row in rows]
    kept = np.array([S[:, q] - S[:, p] for p, q in rows])
    seen = np.array([W[:, q] - W[:, p] for p, q in rows])
    found = np.zeros((n, n), int)
    for size in range(1, most + 1):
        every = np.array(list(combinations_with_replacement(range(len(rows)), size)))
        altering = ~kept[every].sum(axis=1).any(axis=1) & seen[every].sum(axis=1).any(axis=1)
        for listed in every[altering].tolist():
            total = sum(cost[i] for i in listed)
            if total > most:
                continue
            if any(not kept[list(part)].sum(axis=0).any() for k in range(1, size) for part in combinations(listed, k)):
                continue
            for i in listed:
                p, q = rows[i]
                if p < n and q < n and not 0 < found[p, q] <= total:
                    found[p, q] = total
    return found


def cells_column(n):
    return Column.of("cell", np.arange(n), [str(j) for j in range(n)])


def pairs_of(column, matrix):
    """The multiset of needs over unordered pairs of values, each the least over its cells."""
    values = np.unique(column.codes)
    result = {}
    for a, b in combinations(values.tolist(), 2):
        block = matrix[np.ix_(column.codes == a, column.codes == b)]
        least = int(block[block > 0].min(initial=99))
        result[least] = result.get(least, 0) + 1
    return result


def stated(together):
    return {step.records: step.pairs for step in together.steps}


def agrees(together, column, matrix, most):
    """Exact steps agree with the list; inexact ones are never below it; nothing beyond the list contradicts it."""
    listed = pairs_of(column, matrix)
    assert together.undecided == 0 or together.beyond >= 1
    exact = {step.records: step.pairs for step in together.steps if step.exact and step.records <= most}
    inexact = any(not step.exact for step in together.steps)
    if not inexact and not together.undecided:
        assert exact == {k: v for k, v in listed.items() if k <= most}
    else:
        for k in range(1, most + 1):
            said = sum(v for s, v in exact.items() if s <= k)
            assert said <= sum(v for s, v in listed.items() if s <= k)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("kind", ["replace-one", "add-remove"])
def test_random_rows_on_a_histogram(seed, kind):
    rng = np.random.default_rng(seed)
    n = 4 if kind == "replace-one" else 3
    S = rng.integers(0, rng.choice([2, 3, 4]), (int(rng.integers(1, 3)), n))
    most = 4 if kind == "replace-one" else 5
    matrix = needed_rows(S, np.eye(n, dtype=int), kind == "add-remove", most)
    column = Column.of("half", rng.integers(0, 2, n), "ab") if rng.random() < 0.3 else cells_column(n)
    (together,) = records_together(hf.histogram(n), csr_array(S), kind, (column,))
    agrees(together, column, matrix, most)
    if not together.steps and together.fixed_pairs:
        assert not matrix.any()


@pytest.mark.parametrize("seed", range(12))
def test_random_workloads(seed):
    rng = np.random.default_rng(100 + seed)
    n = 4
    W = rng.integers(0, 3, (2, n))
    S = rng.integers(-1, 2, (1, 2))
    matrix = needed_rows(S @ W, W, False, 4)
    (together,) = records_together(hf.workload(W), csr_array(S), "replace-one", (cells_column(n),))
    agrees(together, cells_column(n), matrix, 4)


@pytest.mark.parametrize(
    ("shape", "kept", "asked", "needed"),
    [
        ((2, 2), [(0,), (1,)], None, (2, 2)),
        ((2, 3), [(0,)], None, (2, 1)),
        ((2, 2, 2), [(0, 1), (0, 2)], None, (3, 2, 2)),
        ((2, 2, 2), [(0, 1), (0, 2), (1, 2)], None, (4, 4, 4)),
        ((2, 2, 2), [(0, 1), (2,)], None, (2, 2, 2)),
        ((2, 2), [(0, 1)], None, (None, None)),
        ((2, 2, 2), [()], [(0, 1)], (1, 1, 1)),
    ],
)
def test_cubes_by_hand(shape, kept, asked, needed):
    query = hf.margins(shape, keep=asked)
    cube = query.cube
    rows = np.vstack([cube.margin_rows(m).toarray() for m in kept])
    columns = tuple(Column.of(name, point, range(size)) for name, point, size in axes_of(cube))
    on_outputs = rows if asked is None else rows_on_outputs(query, kept)
    found = records_together(query, csr_array(on_outputs), "replace-one", columns)
    assert tuple(each.records for each in found) == needed
    twice = records_together(query, csr_array(on_outputs), "add-remove", columns)
    assert tuple(each.records for each in twice) == tuple(None if k is None else 2 * k for k in needed)


def axes_of(cube):
    points = cube.coordinates(np.arange(cube.cells))
    return [(name, points[:, a], cube.shape[a]) for a, name in enumerate(cube.names)]


def rows_on_outputs(query, kept):
    """The kept margins as sums of outputs, each from the first asked margin that contains it."""
    rows = []
    for margin in kept:
        i, source = next((i, each) for i, each in enumerate(query.keep) if set(margin) <= set(each))
        outputs = query.offsets[i] + np.arange(query.sizes[i])
        points = np.stack(np.unravel_index(np.arange(query.sizes[i]), query.cube.margin_shape(source) or (1,)))
        places = [source.index(a) for a in margin]
        for point in product(*(range(query.cube.shape[a]) for a in margin)):
            row = np.zeros(query.n, int)
            row[outputs[(points[places] == np.array(point, int)[:, None]).all(axis=0)]] = 1
            rows.append(row)
    return np.array(rows)


@pytest.mark.parametrize("seed", [*range(9), *(pytest.param(s, marks=pytest.mark.slow) for s in range(9, 30))])
def test_small_cubes_against_the_list(seed):
    rng = np.random.default_rng(seed)
    shape = [(2, 2), (2, 3), (2, 2, 2)][seed % 3]
    axes = range(len(shape))
    sets = [m for k in range(len(shape) + 1) for m in combinations(axes, k)]
    kept = [sets[i] for i in rng.choice(len(sets), int(rng.integers(1, 4)), replace=False)]
    query = hf.margins(shape, keep=None)
    asked = None
    if seed % 2:
        asked = [sets[i] for i in rng.choice(len(sets), int(rng.integers(1, 3)), replace=False)]
        query = hf.margins(shape, keep=asked + [m for m in kept if not any(set(m) <= set(a) for a in asked)])
    cube = query.cube
    rows = np.vstack([cube.margin_rows(m).toarray() for m in kept])
    on_outputs = rows if asked is None else rows_on_outputs(query, kept)
    most = 3
    matrix = needed_rows(rows, query.columns.toarray(), False, most)
    columns = tuple(Column.of(name, point, range(size)) for name, point, size in axes_of(cube))
    for column, together in zip(
        columns, records_together(query, csr_array(on_outputs), "replace-one", columns), strict=True
    ):
        listed = {k: v for k, v in pairs_of(column, matrix).items() if k <= most}
        assert {k: v for k, v in stated(together).items() if k <= most} == listed, (shape, kept, asked, column.name)
