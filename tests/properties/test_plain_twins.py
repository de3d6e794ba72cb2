"""What small problems are solved by gives what compiled code gives, bit for bit: as it is written, and in plain numpy.

Random forests with bounds, exact and unmeasured outputs, several weights and large values; ties by coin.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.arguments import Refused
from holdfast.arrays import Sized
from holdfast.trees.nearest import nearest, plain
from holdfast.trees.nearest.levelwise import Levelwise
from holdfast.trees.nearest.nearest import Nearest

NONE = 2**62


def problem(seed: int, whole: bool) -> tuple[dict[str, Any], tuple[Any, ...]]:
    """A random forest, and rows to be moved with their bounds and coins."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    parents = np.array([-1, *(rng.integers(max(0, v - int(rng.integers(1, n))), v) for v in range(1, n))])
    parents[rng.random(n) < 0.08] = -1
    inner = np.isin(np.arange(n), parents)
    truth = np.where(inner, 0, rng.integers(0, 20, n))
    for v in range(n - 1, 0, -1):
        if parents[v] >= 0:
            truth[parents[v]] += truth[v]
    spreads = rng.choice([1.0, 2.0, 0.3, 7.0], n) if seed % 3 else np.ones(n)
    spreads[inner & (rng.random(n) < 0.2)] = np.inf
    noisy = rng.integers(-30, 30, (12, n)) * 10 ** int(rng.choice([0, 0, 0, 9]))
    low, high, exact = np.full(n, -NONE), np.full(n, NONE), np.zeros(n, dtype=bool)
    if seed % 4:
        low[rng.random(n) < 0.9] = 0
        exact = rng.random(n) < 0.1
    if seed % 4 > 1:
        some = rng.random(n) < 0.3
        high[some] = truth[some] + rng.integers(0, 3, some.sum())
    low[exact] = high[exact] = truth[exact]
    if not whole:
        low, high, noisy = low.astype(float), high.astype(float), noisy + rng.random(noisy.shape)
    forest = {"parents": parents, "exact": exact, "spreads": spreads}
    return forest, (noisy, low, high, rng.integers(0, 2**63, 12).astype(np.uint64))


def moved(made: Any, rows: tuple[Any, ...]) -> Any:
    """What is found, or the refusal."""
    try:
        return made.move(*copy.deepcopy(rows))
    except Refused as refusal:
        return str(refusal)


def compare(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Let every call of a function that may run plainly run both ways and compare; return a set of those called."""
    called: set[str] = set()

    def both(self: Sized, *arguments: Any) -> Any:
        others, name = copy.deepcopy(arguments), self.compiled.py_func.__name__
        ours, theirs = self.plain(*others), self.compiled(*arguments)
        called.add(name)
        np.testing.assert_equal((ours, others), (theirs, arguments), name)
        return theirs

    monkeypatch.setattr(Sized, "__call__", both)
    return called


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("absolute", [True, False])
def test_the_nearest_table_is_the_same_as_it_is_written_and_compiled(
    whole: bool, absolute: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every compiled function that `onto` calls on a hierarchy, each on its own."""
    called = compare(monkeypatch)
    for seed in range(12):
        forest, (noisy, *rest) = problem(seed, whole)
        rows = (noisy[:3], *rest[:2], rest[2][:3])
        moved(Nearest.of(**forest, absolute=absolute), rows)
    kinds = {(False, True): "whole_rows", (False, False): "real_rows"}
    assert {"_tighten", kinds.get((absolute, whole), "curve_rows")} <= called


@pytest.mark.parametrize("whole", [True, False])
def test_tables_split_level_by_level_are_the_same_as_they_are_written_and_compiled(
    whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Top-down, with what each level measured and with everything below it."""
    called = compare(monkeypatch)
    for seed in range(12):
        forest, (noisy, *rest) = problem(seed, whole)
        moved(Levelwise.of(**forest, combined=bool(seed % 2)), (noisy[:3], *rest[:2], rest[2][:3]))
    assert {"_weigh", "_move_rows"} <= called


@pytest.mark.slow
def test_many_whole_rows_in_plain_numpy_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows at once against one by one; nearly none is left to others."""
    rows, given_up, one = 0, 0, plain.move_whole

    def counted(*arguments: Any) -> int:
        nonlocal rows, given_up
        found = one(*arguments)
        rows, given_up = rows + len(arguments[4]), given_up + (found < len(arguments[4]))
        return found

    monkeypatch.setattr(nearest, "move_whole", counted)
    for seed in range(24):
        forest, noisy = problem(seed, True)
        made = Nearest.of(**forest, absolute=False)
        monkeypatch.setattr(nearest, "serves", lambda layout, _: layout.inner.size > 0)
        ours = moved(made, noisy)
        monkeypatch.setattr(nearest, "serves", lambda *_: False)
        np.testing.assert_array_equal(ours, moved(made, noisy), str(seed))
    assert rows > 120
    assert given_up < 0.03 * rows


def test_the_city_is_moved_in_plain_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan's rows of a city go there, and agree with those that go one by one; ties are thrown anew in every row."""
    parents = np.array([-1, *[0] * 6, *(1 + i % 6 for i in range(263))])
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 30, (20, 270)) + np.r_[5000, [700] * 6, [0] * 263]
    limits = (np.zeros(270, dtype=np.int64), np.full(270, NONE), rng.integers(0, 2**63, 20).astype(np.uint64))
    made = Nearest.of(parents, np.zeros(270, dtype=bool), np.r_[300.0, [140.0] * 6, [50.0] * 263], absolute=False)
    assert plain.serves(made.layout, 2_000)
    ours = made.move(rows, *limits)
    single = [made.move(rows[i : i + 1], *limits[:2], limits[2][i : i + 1])[0] for i in range(20)]
    np.testing.assert_array_equal(ours, single)


@pytest.mark.slow
def test_other_functions_are_the_same_as_they_are_written_and_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Orders, one sum, normal noise on a tree, errors of best linear estimates: each example calls some of them."""
    called = compare(monkeypatch)
    tree = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1, 2, 2])
    query, stream = hf.counts(tree), hf.seeded(1)
    truth = query.answer([5, 0, 7, 2])
    hf.gaussian(query, rho=0.5, integer=False).given(hf.consistent(tree)).release(truth, rng=stream).interval(0.9)
    hf.laplace(query, epsilon=1).onto(hf.consistent(tree), integer=False).release(truth, rng=stream).interval(0.9)
    four = hf.histogram(4)
    for norm in ("l2", "l1"):
        for must in (hf.ordered([1, 3, 0, 2]), hf.equals([[1, 1, 1, 1]], [20]) & hf.nonnegative()):
            hf.laplace(four, epsilon=1).onto(must, norm=norm).image(np.array([9, 3, 1, 4]))
    expected = {"_settled", "_variances", "_means", "_medians"}
    assert expected <= called, expected - called
