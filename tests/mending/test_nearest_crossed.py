"""Crossed tables: the very nearest whole table where a program proves it, elsewhere a gap in the first line."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import optimize, sparse

import holdfast as hf
from holdfast.mending import search
from scripts import program

HOLD = ["consistent", "nonnegative"]


def areas(regions: int, districts: int, shape: tuple[int, ...], seed: int) -> tuple[dict, np.ndarray, np.ndarray]:
    """Labels of region > district × axes with all totals, noisy figures, and what cells each figure is a sum of."""
    rng = np.random.default_rng(seed)
    count = regions * districts * int(np.prod(shape))
    cells = np.eye(count, dtype=np.int64).reshape(regions, districts, *shape, count)
    for axis in range(2, 2 + len(shape)):
        cells = np.concatenate([cells.sum(axis, keepdims=True), cells], axis)
    middle = cells.sum(1)
    full = np.concatenate([middle.sum(0, keepdims=True), middle, cells.reshape(-1, *cells.shape[2:])])
    sums = full.reshape(-1, count)
    names = ["Total", *(f"R{i}" for i in range(regions))]
    names += [f"R{i}{j}" for i in range(regions) for j in range(districts)]
    axes = [["Total", *(f"{'abc'[k]}{i}" for i in range(size))] for k, size in enumerate(shape)]
    labels = zip(*itertools.product(names, *axes), strict=True)
    columns = dict(zip(("area", "sex", "age", "citizen"), labels, strict=False))
    truth = sums @ rng.poisson(rng.gamma(0.7, 6.0, count))
    return columns, truth + rng.integers(-2, 3, truth.size), sums


def least_distance(sums: np.ndarray, noisy: np.ndarray, around: np.ndarray) -> float:
    """The least squared distance by a program of another form: tangents under every parabola, cells whole."""
    n, count = sums.shape
    places = range(-4, 5)
    middle = np.concatenate([around + k for k in places]) + 0.0
    below, above = middle - np.tile(noisy, len(places)), middle + 1 - np.tile(noisy, len(places))
    slope = above**2 - below**2  # the line through two whole points
    lines = sparse.hstack([-sparse.diags(slope) @ np.tile(sums, (len(places), 1)), sparse.vstack([sparse.eye(n)] * 9)])
    found = optimize.milp(
        np.concatenate([np.zeros(count), np.ones(n)]),
        constraints=optimize.LinearConstraint(sparse.csr_array(lines), below**2 - slope * middle, np.inf),
        integrality=np.concatenate([np.ones(count), np.zeros(n)]),
        bounds=optimize.Bounds(0, np.inf),
    )
    assert found.status == 0
    return float(found.fun)


def test_a_table_of_three_levels_and_three_axes_is_the_very_nearest() -> None:
    columns, noisy, sums = areas(3, 3, (2, 3, 2), 0)
    assert noisy.size == 468
    mended = hf.mend({**columns, "value": noisy}, HOLD)
    assert mended.evidence.nearest
    assert "the nearest table in L2" in str(mended).splitlines()[0]
    distance = float(((mended.values - noisy) ** 2).sum())
    assert distance == mended.evidence.objective
    assert distance == pytest.approx(least_distance(sums, noisy, mended.values), abs=1e-6)


def test_real_figures_that_are_nearer_do_not_count_where_all_distances_have_one_parity(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    columns, noisy, sums = areas(3, 4, (2, 6), 8)
    bounds, lines, read = [], search._lines, search._read

    def program_without_a_search(*words, **options):
        assert options == {"nodes": 0}
        return lines(*words, **options)

    def noted(*words):
        values, least = read(*words)
        bounds.append(least)
        return values, least

    monkeypatch.setattr(search, "_lines", program_without_a_search)
    monkeypatch.setattr(search, "_read", noted)
    mended = hf.mend({**columns, "value": noisy}, HOLD)
    assert mended.evidence.nearest
    assert max(bounds) < mended.evidence.objective - 0.5
    assert mended.evidence.objective == pytest.approx(least_distance(sums, noisy, mended.values), abs=1e-6)


def test_where_no_program_settles_it_the_first_line_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    gaps, read = [], search._read

    def looser(*words, **options):
        values, least = read(*words, **options)
        return values, least - 5.0

    for seed in range(3):
        columns, noisy, _ = areas(3, 4, (2, 6), seed)
        best = hf.mend({**columns, "value": noisy}, HOLD)
        assert best.evidence.nearest
        with monkeypatch.context() as patched:
            patched.setattr(search, "MOST_BRANCHED", 100)
            patched.setattr(search, "_read", looser)
            near = hf.mend({**columns, "value": noisy}, HOLD)
        assert best.evidence.objective <= near.evidence.objective <= 1.02 * best.evidence.objective
        assert near.evidence.lower_bound <= best.evidence.objective + 1e-6
        assert ("could be saved" in str(near).splitlines()[0]) == (not near.evidence.nearest)
        gaps.append(near.evidence.gap)
    assert max(gaps) > 0


@pytest.mark.parametrize("norm", ["l2", "l1"])
@pytest.mark.parametrize("seed", range(4))
def test_any_rows_give_the_nearest_of_all_tables(norm: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    tables = np.array(list(itertools.product(range(6), repeat=5)))
    equal, least = rng.integers(-2, 3, (1, 5)), rng.integers(-2, 3, (2, 5))
    point = tables[rng.integers(len(tables))]
    rules = [hf.equals(equal, equal @ point), hf.at_least(least, least @ point), hf.between(0, 5)]
    published = rng.integers(-3, 9, 5)
    mended = hf.mend({"area": list("abcde"), "value": published}, rules, norm=norm)
    allowed = tables[(tables @ equal.T == equal @ point).all(1) & (tables @ least.T >= least @ point).all(1)]
    off = np.abs(allowed - published)
    best = (off if norm == "l1" else off**2).sum(1).min()
    assert mended.evidence.nearest
    assert (np.abs(mended.values - published) ** (1 if norm == "l1" else 2)).sum() == best
    assert any((mended.values == table).all() for table in allowed)


def test_where_figures_that_are_whole_leave_no_table_the_search_goes_on_from_the_best_real_one() -> None:
    """What a program leaves where it has no solution is none: zeros add up, and are far from everything."""
    study = program("benchmarks/mend.py")
    columns, truth, _ = study.census(5, 8, 6, 0)
    rounded = 5 * np.rint(truth / 5).astype(np.int64)
    mended = hf.mend({**columns, "value": rounded}, HOLD, {"rounding": 5})
    assert mended.evidence.nearest
    assert ((mended.values - truth) ** 2).sum() < 0.6 * ((rounded - truth) ** 2).sum()


def test_totals_that_move_far_are_proved_nearest_without_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """A total may be whole only far from the real one: its lines reach that far. Every count of ones is tried."""
    monkeypatch.setattr(search, "MOST_BRANCHED", 0)
    y = 0.7 * np.linspace(0.02, 0.98, 400)
    tree = hf.Hierarchy.from_parents([-1, *[0] * 400])
    found = hf.reconcile([120, *y], [tree, hf.nonnegative()], [12, *[1] * 400])
    ones = [0.0, *np.cumsum(np.sort(1 - 2 * y))]
    least = min((y**2).sum() + cost + ((count - 120) / 12) ** 2 for count, cost in enumerate(ones))
    assert found.nearest
    assert found.distance[0] == pytest.approx(least)
