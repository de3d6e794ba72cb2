"""`onto` in whole numbers with any linear rows: against every whole point around."""

import itertools

import numpy as np
import pytest

import holdfast as hf
import programs
from holdfast import onto

KINDS = ("table", "sum", "order", "mixed", "rows")


def listed(case, reach):
    """All whole points near that satisfy everything."""
    sides = [np.arange(min(t, y) - reach, max(t, y) + reach + 1) for t, y in zip(case.truth, case.y, strict=True)]
    points = np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, case.y.size)
    return points[case.holds(points)]


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["l2", "l1"])
@pytest.mark.parametrize("kind", KINDS)
def test_no_whole_point_is_nearer(kind, norm):
    """The cost is the least of all whole points, and the point is one of them."""
    for seed in range(4):
        case = programs.made(kind, np.random.default_rng([9, seed]), small=True, noisy=4)
        moved = case.base.onto(case.constraint, norm=norm, integer=True)
        z = moved.image(case.y)
        assert z.dtype == np.int64
        assert case.holds(z).all()
        points = listed(case, 5)
        assert case.cost(z, norm) <= case.cost(points, norm).min() + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_small_cubes(norm):
    """2 × 2 × 2 with all two-way margins: one degree of freedom, listed along it."""
    swap = np.array([1, -1, -1, 1, -1, 1, 1, -1])
    for seed in range(8):
        case = programs.made("cube", np.random.default_rng([3, seed]), small=True)
        z = case.base.onto(case.constraint, norm=norm, integer=True).image(case.y)
        points = case.truth + np.arange(-12, 13)[:, None] * swap
        points = points[case.holds(points)]
        assert case.holds(z).all()
        assert case.cost(z, norm) <= case.cost(points, norm).min() + 1e-9


def test_larger_tables_against_every_exchange():
    """A table is optimal if no cycle of steps improves it; all 2 × 2 and 3 × 3 cycles are tried."""
    rng = np.random.default_rng(6)
    truth = rng.integers(0, 4, (6, 5))
    must = hf.invariant(hf.exact_margins((6, 5), [(0,), (1,)])) & hf.nonnegative()
    moved = hf.laplace(hf.histogram(30), scale=3).onto(must, integer=True)
    noisy = truth + moved.base.law.measured_draw(4, hf.seeded(2)).reshape(4, 6, 5)
    problem = moved.moves[0].problem
    images = onto.choose(problem).image(problem, noisy.reshape(4, 30), problem.space.rows @ truth.ravel())
    for y, z in zip(noisy, images.reshape(4, 6, 5), strict=True):
        np.testing.assert_array_equal(z.sum(axis=0), truth.sum(axis=0))
        for a in range(6):
            for b in range(6):
                for c in range(5):
                    for d in range(5):
                        if a != b and c != d:
                            step = np.zeros((6, 5), dtype=np.int64)
                            step[a, c], step[a, d], step[b, c], step[b, d] = 1, -1, -1, 1
                            if (z + step >= 0).all():
                                assert ((z + step - y) ** 2).sum() >= ((z - y) ** 2).sum()


@pytest.mark.slow
def test_rounding_the_real_order_is_the_best_whole_one():
    """Bounds along the chain, weights, and blocks whose mean is a half: all whole chains are listed."""
    rng = np.random.default_rng(7)
    chains = np.array([c for c in np.ndindex(*(9,) * 4) if all(a <= b for a, b in itertools.pairwise(c))])
    for _ in range(40):
        y, w = rng.integers(-1, 10, 4), rng.choice([1.0, 1.0, 2.0, 0.5], 4)
        low, high = rng.integers(0, 3, 4), rng.integers(5, 9, 4)
        must = hf.ordered([0, 1, 2, 3]) & hf.between(low, high)
        inside = chains[((chains >= low) & (chains <= high)).all(axis=1)]
        for norm, power in (("l2", 2), ("l1", 1)):
            z = hf.laplace(hf.histogram(4), scale=1).onto(must, norm=norm, weights=w).image(y)
            costs = (w ** (power / 2) * np.abs(inside - y) ** power).sum(axis=1)
            assert (z >= low).all()
            assert (np.diff(z) >= 0).all()
            assert (w ** (power / 2) * np.abs(z - y) ** power).sum() <= costs.min() + 1e-9


def test_ties_do_not_favour_the_first():
    """Three units too many among eight equal cells: the public hash says which cells give one, and always the same."""
    moved = hf.laplace(hf.histogram(8), scale=1).onto(hf.equals([np.ones(8, dtype=int)], [0]), integer=True)
    first, again = moved.image([[3, 0, 0, 0, 0, 0, 0, 0], [3, 0, 0, 0, 0, 0, 0, 0]])
    np.testing.assert_array_equal(first, again)
    assert first.sum() == 0
    gave = np.flatnonzero(first - [3, 0, 0, 0, 0, 0, 0, 0])
    assert gave.size == 3
    assert gave.tolist() != [0, 1, 2]
    assert gave.tolist() != [5, 6, 7]
