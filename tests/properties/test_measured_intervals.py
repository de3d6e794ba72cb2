"""Limits measured on simulated draws lie outside the quantiles of the law, and not far outside."""

import numpy as np
import pytest
from scipy import stats

import holdfast as hf
from holdfast.arguments import Refused
from holdfast.noise.spread import MISSED, simulated_quantiles

SIZE, TAIL = 4_000, 0.025


def plain(draws, p):
    """The quantile of the draws themselves, as it was before: inside the law's own about half of the time."""
    return np.sort(draws, axis=0)[int(np.ceil(p * (SIZE + 1))) - 1]


def test_limits_of_independent_draws_are_never_inside_and_draws_alone_often_are():
    rng = np.random.default_rng(4)
    draws = rng.normal(size=(SIZE, 600))
    truth = stats.norm.isf(TAIL)
    upper, lower = (simulated_quantiles(lambda: draws)(p) for p in (1 - TAIL, TAIL))
    assert (upper >= truth).all()
    assert (lower <= -truth).all()
    assert 0.3 < (plain(draws, 1 - TAIL) < truth).mean() < 0.7
    # The share beyond a limit is within twice the limit's own error of what is asked.
    error = stats.norm.isf(MISSED) * np.sqrt(TAIL * (1 - TAIL) / SIZE)
    assert (stats.norm.sf(upper) > TAIL - 2.2 * error).all()


def test_limits_of_whole_errors_cover_at_their_level():
    rng = np.random.default_rng(5)
    draws = rng.geometric(0.3, size=(SIZE, 400)) - rng.geometric(0.3, size=(SIZE, 400))
    steps = np.arange(200)
    mass = np.convolve(stats.geom.pmf(steps, 0.3), stats.geom.pmf(steps, 0.3)[::-1])
    inside = [mass[abs(np.arange(mass.size) - 199) <= reach].sum() for reach in range(60)]
    upper, lower = (simulated_quantiles(lambda: draws)(p) for p in (1 - TAIL, TAIL))
    assert all(inside[reach] >= 1 - 2 * TAIL for reach in np.maximum(upper, -lower).tolist())


def test_confidence_that_draws_cannot_show_is_refused():
    draws = np.random.default_rng(7).normal(size=(SIZE, 2))
    with pytest.raises(Refused, match="measured on 4,000 simulated draws"):
        simulated_quantiles(lambda: draws)(1 - 1e-3)


@pytest.mark.slow
def test_a_released_interval_that_is_measured_covers_the_listed_law():
    tree = hf.Hierarchy.from_parents([-1, 0, 0])
    mechanism = hf.laplace(hf.counts(tree), epsilon=1).onto(hf.consistent(tree))
    truth = np.array([20, 10, 10])
    stream = hf.seeded(8)
    made = [mechanism.release(truth, rng=stream) for _ in range(300)]
    assert made[0].spread.measured
    assert (
        np.abs(made[0].error_bars.centre - made[0].values).max() <= 1
    )  # the best linear estimate, before it was rounded
    ends = np.stack([each.interval(0.9) for each in made])
    covered = ((ends[..., 0] <= truth) & (truth <= ends[..., 1])).sum(axis=0)
    assert (covered >= stats.binom.ppf(1e-6, len(made), 0.9)).all()
