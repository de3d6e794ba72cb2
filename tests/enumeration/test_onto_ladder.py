"""The ladder of bounds for whole numbers: what windows leave out, and what costs can be, against every whole point."""

import numpy as np
import pytest

import holdfast as hf
import programs
from holdfast.onto.grid.grid import Task
from holdfast.onto.solvers import whole_numbers as whole
from holdfast.onto.solvers.pieces import Centre
from holdfast.onto.solvers.reals import proposed

KINDS = ("mixed", "rows")


def task_of(case, norm):
    """One table in steps."""
    problem = case.base.onto(case.constraint, norm=norm, integer=True).moves[0].problem
    return Task.of(problem, case.y, problem.right_hand_sides())


def allowed(case, reach=6):
    """All whole moves near that are allowed."""
    sides = [np.arange(min(t, y) - reach, max(t, y) + reach + 1) for t, y in zip(case.truth, case.y, strict=True)]
    points = np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, case.y.size)
    return points[case.holds(points)] - case.y


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["l2", "l1"])
@pytest.mark.parametrize("kind", KINDS)
def test_windows_hold_every_point_below_their_limit(kind, norm):
    """cost = bound + price of slack + excess at every allowed point, so cheap points lie in windows of their rise."""
    for seed in range(6):
        case = programs.made(kind, np.random.default_rng([11, seed]), small=True, noisy=4)
        task = task_of(case, norm)
        real = proposed(task)
        centre = Centre.of(task, real.prices, 1e6, real.moves)
        moves = allowed(case)
        costs = np.array([task.objective(move) for move in moves])
        slack = moves @ task.shape.inequalities.A.toarray().T - task.least
        excess = np.array([centre.excess(move.astype(np.float64)).sum() for move in moves])
        np.testing.assert_allclose(centre.bound + slack @ centre.prices[1] + excess, costs, atol=1e-5)
        assert centre.bound <= costs.min() + 1e-6
        for rise in (0.5, 3.0, 12.0):
            low, high = centre.window(rise)
            below = moves[costs <= centre.bound + rise - 1e-6]
            assert ((below >= low) & (below <= high)).all()
            if norm == "l2":  # at slopes ±w absolute values cost the same for ever
                assert ((low - 1 < task.low) | (centre.excess(low - 1.0) > rise)).all()
                assert ((high + 1 > task.high) | (centre.excess(high + 1.0) > rise)).all()


def test_costs_come_in_steps():
    """Margins fix the sum, so costs are all even or all odd; an odd coefficient pattern may leave steps of 1."""
    shape = (2, 2, 2)
    swap = np.array([1, -1, -1, 1, -1, 1, 1, -1])
    for seed in range(6):
        rng = np.random.default_rng([12, seed])
        truth, y = rng.integers(0, 5, 8), rng.integers(-3, 8, 8)
        must = hf.equals(programs.margins(shape, [(0, 1), (1, 2), (0, 2)]), _margins(truth)) & hf.nonnegative()
        problem = hf.laplace(hf.histogram(8), scale=1).onto(must, integer=True).moves[0].problem
        task = Task.of(problem, y, problem.right_hand_sides())
        step, offset = whole._costs(task)
        assert step == 2
        for k in range(-5, 6):
            assert task.objective(truth + k * swap - y) % 2 == offset
    must = hf.equals([[2, 1, 0]], [4]) & hf.at_least([[0, 1, 1]], [0])
    problem = hf.laplace(hf.histogram(3), scale=1).onto(must, integer=True).moves[0].problem
    assert whole._costs(Task.of(problem, np.zeros(3, dtype=np.int64), problem.right_hand_sides())) == (1, 0)


def _margins(truth):
    return programs.margins((2, 2, 2), [(0, 1), (1, 2), (0, 2)]) @ truth
