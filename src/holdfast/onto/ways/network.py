"""The nearest table where equalities are the balances of a network: one sum, crossed margins, crossed hierarchies.

Real least squares by an interior-point method, finished in whole steps; whole numbers, and L1 in either, by cheapest
paths from those prices: the global optimum, since whole data on a network have whole optima.
"""

from __future__ import annotations

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Array, Floats, Ints
from holdfast.noise import Independent
from holdfast.noise.spread import Spread
from holdfast.onto.grid.closing import UNSOLVED, answered, moved_rows, simulated
from holdfast.onto.grid.grid import Task, shape_of
from holdfast.onto.independent_shares import Answer
from holdfast.onto.network_flows import arcs_of
from holdfast.onto.problem import Problem, Ties
from holdfast.onto.solvers.finish import cheapest_on_network, finish_network
from holdfast.onto.solvers.reals import proposed


def accepts(problem: Problem) -> bool:
    """Whether there are equalities on a network and bounds, no other inequalities, and every output is measured."""
    system = problem.system
    if system.branches or system.inequalities.count or problem.space.rank == 0:
        return False
    return bool(np.isfinite(problem.spreads).all()) and arcs_of(shape_of(problem)) is not None


def image(problem: Problem, noisy: Array, right: Array, ties: Ties = None) -> Array:
    return moved_rows(problem, noisy, right, ties, lambda task, coin: _moved(task, coin)[0])


def certified(problem: Problem, noisy: Array, right: Array, coin: int = 0) -> Answer:
    task = Task.of(problem, noisy, right).turned_by(coin)
    moves, prices = _moved(task, coin)
    return answered(task, moves, (prices, np.zeros(0)))


def spread(problem: Problem, law: Independent) -> Spread | None:
    return simulated(problem, law, image)


def _moved(task: Task, coin: int) -> tuple[Ints, Floats]:
    arcs = arcs_of(task.shape)
    assert arcs is not None
    problem = task.problem
    absolute = problem.norm == "l1"
    prices = np.zeros(task.gap.size)
    if not absolute:
        real = proposed(task)
        if real is None:
            raise Refused(UNSOLVED)
        prices = real.prices[0]
        if not problem.integer:
            found = finish_network(task, arcs, real.moves)
            if found is None:
                raise Refused(UNSOLVED)
            return found, prices
        if (task.shape.weights == 1).all():
            prices = np.rint(prices)  # whole prices: nothing is rounded, and many paths cost the same
    moves, exact = cheapest_on_network(task, arcs, prices, coin, absolute=absolute)
    if moves is None:
        raise Refused(UNSOLVED)
    return moves, exact
