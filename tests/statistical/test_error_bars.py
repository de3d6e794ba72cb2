"""Error bars beside tables with bounds (THEORY H10): they cover as often as they say, within what is certain."""

import numpy as np
import pytest
from scipy import stats

import holdfast as hf
from holdfast.mechanism.published.error_bars import certain
from holdfast.mechanism.published.linear_estimates import linear_part
from holdfast.noise.spread import bounded_quantiles
from holdfast.release.certificate.comparing import Summed, ratio_apart

TREE = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1, 2, 2, 2])
QUERY = hf.counts(TREE)
TRUTH = TREE.sum_up(np.array([0, 3, 50, 0, 1]))
#: Each test of this many counts raises a false alarm once in a million times at most.
RARE = 1e-6 / 64


def covering(mechanism, truth, confidences, releases):
    """How often each interval covers, over releases of one truth, (confidences, n)."""
    stream, counts = hf.seeded(1), np.zeros((len(confidences), len(truth)), dtype=int)
    for _ in range(releases):
        release = mechanism.release(truth, rng=stream)
        for k, confidence in enumerate(confidences):
            low, high = release.interval(confidence).T
            counts[k] += (low <= truth) & (truth <= high)
            assert (low <= high).all()
    return counts


def made(kind, law, exact):
    noise = hf.laplace(QUERY, epsilon=1) if law == "laplace" else hf.gaussian(QUERY, rho=0.1)
    equal = hf.consistent(TREE)
    if exact:
        equal = equal & hf.invariant(hf.exact_nodes(TREE, [0]))
    if kind == "given-then-onto":
        return noise.given(equal).onto(hf.nonnegative())
    method = kind if kind == "topdown" else None
    return noise.onto(equal & hf.nonnegative(), integer=True, method=method)


@pytest.mark.parametrize(
    ("kind", "law", "exact"),
    [("given-then-onto", "laplace", True), ("onto", "laplace", False), ("topdown", "gaussian", True)],
)
def test_intervals_cover_as_often_as_they_say(kind, law, exact):
    releases, confidences = 80, (0.5, 0.9, 0.99)
    counts = covering(made(kind, law, exact), TRUTH, confidences, releases)
    for confidence, found in zip(confidences, counts, strict=True):
        assert (found >= stats.binom.ppf(RARE, releases, confidence)).all()


def test_intervals_of_half_the_width_would_be_noticed():
    releases, mechanism, stream = 100, made("given-then-onto", "laplace", exact=False), hf.seeded(2)
    counts = np.zeros(TREE.n, dtype=int)
    for _ in range(releases):
        release = mechanism.release(TRUTH, rng=stream)
        low, high = release.interval(0.95).T
        middle, half = (low + high) / 2, (high - low) / 4
        counts += np.abs(TRUTH - middle) <= half
    assert (counts < stats.binom.ppf(RARE, releases, 0.95)).any()


def test_the_draw_beside_the_table_is_conditioned_and_its_image_is_the_table():
    mechanism = made("given-then-onto", "laplace", exact=True)
    release = mechanism.release(TRUTH, rng=hf.seeded(3))
    drawn = release.measurements
    assert drawn[0] == TRUTH[0] == drawn[1] + drawn[2]
    assert linear_part(mechanism).moves == ()
    assert all(statement.scope != "subspace" for statement in release.guarantees)


def test_a_table_conditioned_on_its_bounds_publishes_no_draw_and_no_interval():
    mechanism = hf.laplace(QUERY, epsilon=1).given(hf.consistent(TREE) & hf.nonnegative())
    release = mechanism.release(TRUTH, rng=hf.seeded(4))
    assert release.measurements is None
    assert release.error_bars.spread is None
    with pytest.raises(hf.Refused, match="depends on the data"):
        release.interval()


def test_weighted_by_the_noise_the_estimate_is_narrower_than_what_was_measured():
    noise = hf.laplace(QUERY, epsilon=1, shares={0: 1, 1: 5, 2: 1})
    release = noise.onto(hf.consistent(TREE) & hf.nonnegative()).release(TRUTH, rng=hf.seeded(5))
    assert (release.standard_errors < noise.standard_error()).all()
    # plain least squares would be wider than the measurement itself at the level that was measured well
    plain = noise.onto(hf.consistent(TREE), weights=None, integer=False)
    assert (plain.standard_error()[1:3] > noise.standard_error()[1:3]).all()


def test_what_is_certain_follows_from_bounds_and_exact_figures_alone():
    held = (
        hf.consistent(TREE)
        & hf.nonnegative()
        & hf.invariant(hf.exact_nodes(TREE, [0]))
        & hf.between(None, 10, at=[3])
        & hf.fixed([4], [2])
    ).system(TREE.n)
    values = TREE.sum_up(np.array([1, 2, 7, 0, 20]))
    low, high = certain(held, values, whole=True)
    assert low.tolist() == [30, 2, 18, 0, 2, 0, 0, 0]
    assert high.tolist() == [30, 12, 28, 10, 2, 28, 28, 28]
    other = values.copy()
    other[5:] = other[5:][::-1]  # what is not exact says nothing
    assert [end.tolist() for end in certain(held, other, whole=True)] == [low.tolist(), high.tolist()]


def test_an_interval_outside_the_bounds_becomes_the_nearest_allowed_point():
    noise = hf.laplace(hf.histogram(2), scale=3)
    mechanism = noise.onto(hf.nonnegative())
    bars = mechanism.error_bars(np.array([0, 4]), np.array([-40, 4]))
    assert bars.interval(0.9)[0].tolist() == [0, 0]
    reach = noise.standard_error()[0]
    assert bars.interval(0.5)[1, 1] > 4
    assert bars.interval(0.5)[1, 1] < 4 + 2 * reach


@pytest.mark.parametrize("law", [hf.laplace, hf.gaussian])
@pytest.mark.parametrize("scale", [0.3, 1, 4])
def test_the_bound_for_very_many_outputs_is_above_the_quantile_of_every_sum(law, scale):
    noise = law(hf.histogram(3), scale=scale)
    drawn = noise.noise(20_000, hf.seeded(6)).astype(float)
    for weights in ([1, 0, 0], [1, 1, 1], [3, -1, 0.5]):
        errors = drawn @ np.array(weights)
        deviation = np.sqrt((np.array(weights) ** 2 * noise.base.law.variances).sum())
        for p in (0.9, 0.975, 0.995):
            limit = bounded_quantiles(noise.base.law, np.array([deviation]))(p)[0]
            above = int((errors > limit).sum())
            assert above <= stats.binom.isf(RARE, len(errors), 1 - p)
            assert limit < 9 * max(deviation, 1)


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_means_cover_at_small_counts_as_often_as_they_say(law):
    """Sums and counts have noise of their own; ends of half the width are seen."""
    counts, sums, releases, stream = np.array([1, 6, 40, 900]), np.array([7, 31, 333, 6000]), 100, hf.seeded(7)
    noise = [hf.gaussian, hf.laplace][law == "laplace"]
    budget = "rho" if law == "gaussian" else "epsilon"
    made = [noise(hf.histogram(4), **{budget: much}) for much in (0.5, 0.01)]
    studies = [each.simulate(np.zeros(4, dtype=int), 2_000, stream) for each in made]
    inside, near, ended = np.zeros(4, dtype=int), np.zeros(4, dtype=int), np.zeros(4, dtype=int)
    for _ in range(releases):
        bars = [each.release(truth, rng=stream).error_bars for each, truth in zip(made, (counts, sums), strict=True)]
        for i in range(4):
            weights = np.eye(4)[i]
            below, above = (
                Summed(float(weights @ bar.centre), weights, bar, bar.certain(weights), lambda drawn=drawn: drawn)
                for bar, drawn in zip(bars, studies, strict=True)
            )
            _, (low, high) = ratio_apart(above, below, 0.025)
            mean, middle = sums[i] / counts[i], above.centre / (below.centre or 1)
            inside[i] += low <= mean <= high
            ended[i] += np.isfinite([low, high]).all()
            near[i] += abs(mean - middle) <= (high - low) / 4
    assert (inside >= stats.binom.ppf(RARE, releases, 0.95)).all()
    assert ended[0] < releases / 2 < ended[2]  # where there may be no record, no end is told
    assert near[3] < stats.binom.ppf(RARE, releases, 0.95)
