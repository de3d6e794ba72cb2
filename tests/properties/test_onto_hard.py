"""`onto` where solvers in doubles give up: sharp corners, twin rows, weights and values of very different sizes."""

from fractions import Fraction

import numpy as np
import pytest

import holdfast as hf
from hard_programs import hard, large, larger
from holdfast import onto
from holdfast.arguments import known
from holdfast.exact.solver import PARALLEL_RULE, linear_program
from holdfast.onto.grid.grid import Task

#: Problems on which a solver found no point (or denied that there is one), or one that could not be finished, or sums
#: that left 62 bits.
REAL = (4, 8, 20, 27, 30, 33, 34, 36, 37, 96, 111, 124, 126, 140, 148, 159, 161, 167, 431, 529, 858)
WHOLE = (16, 31, 41, 51, 56, 57, 76, 97, 123, 130, 190, 191, 237, 298, 303, 382, 448, 806, 3285, 3869)


#: Larger ones: corners with large determinants, prices that pull at bounds, rungs without any whole point, and a
#: network on whose grid a million steps are left to send.
LARGER_REAL, LARGER_WHOLE = (13, 26, 69, 167, 192, 310, 319, 345, 465, 467, 6953), (223, 388, 397)


def answered(case):
    """The image with its evidence, and its values as multiples of the grid."""
    problem = case.mechanism.moves[0].problem
    found = onto.certified(onto.choose(problem), problem, case.y, problem.right_hand_sides())
    grid = found.evidence.grid or Fraction(1)
    return found, [round(Fraction(value) / grid) * grid for value in found.values.tolist()]


def holds(case, z):
    """Whether rational values satisfy everything, exactly."""
    sums = all(_product(row, z) == _product(row, case.truth.tolist()) for row in case.A)
    above = all(_product(row, z) >= int(side) for row, side in zip(case.G, case.h, strict=True))
    inside = all(low <= x <= high for low, x, high in zip(case.low.tolist(), z, case.high.tolist(), strict=True))
    return sums and above and inside


def _product(row, z):
    return sum(int(a) * x for a, x in zip(row, z, strict=True))


@pytest.mark.parametrize("seed", REAL + WHOLE)
def test_what_has_a_solution_is_not_refused(seed):
    """Everything holds exactly, and no point is nearer by more than the gap that is stated."""
    case = hard(seed)
    found, z = answered(case)
    assert [float(x) for x in z] == [float(x) for x in found.values.tolist()]
    assert holds(case, z)


@pytest.mark.parametrize("seed", LARGER_REAL + LARGER_WHOLE)
def test_larger_problems_are_solved_next_to_the_optimum(seed):
    """Everything holds exactly, and the gap that is stated is small."""
    case = larger(seed)
    found, z = answered(case)
    assert holds(case, z)
    assert found.evidence.relative_gap <= (1e-6 if seed in LARGER_REAL else 0.3)


@pytest.mark.parametrize("must", [hf.between(0, 10**12), hf.at_least([[1, -1, 2]], [-(10**9)]), hf.between(0, 2**61)])
@pytest.mark.parametrize("integer", [True, False])
def test_bounds_far_away_do_not_matter(must, integer):
    """Not even where they are too many steps away to be counted."""
    base = hf.laplace(hf.histogram(3), scale=1, integer=integer)
    sums = hf.equals([[1, 2, 1]], [9]) & hf.at_least([[1, 1, 0]], [1])
    y = np.array([1, 2, 3]) if integer else np.array([1.5, 2.0, 3.0])
    np.testing.assert_array_equal(base.onto(must & sums).image(y), base.onto(sums & hf.between(-99, 99)).image(y))


@pytest.mark.parametrize(
    ("row", "side", "integer", "why"),
    [
        ([10**15, 1, 1], 10**15, True, "add up to 1e"),
        ([10**15, 1, 1], 10**15, False, "add up to 1e"),
        ([3**12, 3**12, 3**12], 1, False, "large denominators"),
        ([1, 1, 1], 2**61, False, "too large"),
    ],
)
def test_rows_that_leave_no_room_are_refused_before_noise_is_drawn(row, side, integer, why):
    base = hf.laplace(hf.histogram(3), scale=1, integer=integer)
    moved = base.onto(hf.equals([row], [side]) & hf.at_least([[1, 1, 0]], [0]))
    with pytest.raises(hf.Refused, match=why):
        known(onto.choose(moved.moves[0].problem))


@pytest.mark.parametrize("seed", [4, 8, 27, 36, 124, 16, 41, 130, 237])
def test_hard_images_stay_where_they_are(seed):
    """Idempotent, to the last step."""
    case = hard(seed)
    found, z = answered(case)
    if all(x.denominator == 1 for x in z):
        np.testing.assert_array_equal(case.mechanism.image(found.values), found.values)
    else:
        real = hf.laplace(hf.histogram(case.y.size), scale=1, integer=False)
        must = case.mechanism.moves[0].constraint
        again = real.onto(must, norm=case.norm, weights=case.weights).image(found.values)
        np.testing.assert_allclose(again, found.values, atol=float(found.evidence.grid) * 4)


def test_solvers_leave_out_the_rule_that_writes_to_the_output():
    solver = linear_program([[1.0]], 0.0, (0.0, 1.0), (0.0, 1.0))
    assert solver.getOptionValue("presolve_rule_off")[1] == PARALLEL_RULE


@pytest.mark.slow
@pytest.mark.parametrize("seed", [50_082, 4, 36])
def test_no_table_leaves_a_trace_in_the_next(seed):
    """Moved together, in turn or each with everything made anew: the same to the last bit."""
    case = hard(seed)
    noise = np.random.default_rng([9, seed]).laplace(0, np.abs(case.y - case.truth).mean(), (3, case.y.size))
    noisy = np.vstack([case.y, case.truth + np.rint(noise).astype(np.int64)])
    together = case.mechanism.image(noisy)
    np.testing.assert_array_equal(together, [case.mechanism.image(row) for row in noisy])
    np.testing.assert_array_equal(together[::-1], case.mechanism.image(noisy[::-1]))


@pytest.mark.parametrize("seed", [6, 91, 92, 104])
def test_larger_tables_at_sharp_corners_are_moved(seed):
    """Where no solver's point can be finished: everything holds, and the gap that is stated covers what is lost."""
    case = large(seed)
    assert case.y.size > 40
    assert not case.integer
    found, z = answered(case)
    assert holds(case, z)
    lost = case.cost(found.values) - case.best()
    assert lost <= found.evidence.gap * (1 + 1e-6) + 1e-6 * case.cost(found.values)
    assert case.cost(found.values) <= 5 * case.best()
    task = Task.of(case.mechanism.moves[0].problem, case.y, case.mechanism.moves[0].problem.right_hand_sides())
    whole = task.in_whole_numbers()
    assert whole.missed(case.truth - case.y) is None
