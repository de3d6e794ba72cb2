"""The limits that counts prove, and the false-alarm rate of whole audits."""

import math

import numpy as np
import pytest
from scipy import stats

import holdfast as hf
from holdfast.auditing.gallery import claim
from holdfast.auditing.sampling import Event, Score, best_event, lowest_bit, proved
from holdfast.auditing.tested_claims import Claim, FalseAlarms, largest_probability, least_probability


@pytest.mark.parametrize("size", [10, 500, 40_000])
@pytest.mark.parametrize("alpha", [1e-3, 1e-10, 1e-16])
def test_limits_are_those_of_the_binomial_law(size, alpha):
    for count in sorted({0, 1, 3, size // 3, size - 1, size}):
        low, high = least_probability(count, size, alpha), largest_probability(count, size, alpha)
        assert 0 <= low <= count / size <= high <= 1
        if count:
            assert stats.binom.sf(count - 1, size, low) == pytest.approx(alpha, rel=1e-6)
        if count <= size // 2:
            assert stats.binom.cdf(count, size, high) == pytest.approx(alpha, rel=1e-6)


def test_rates_of_all_tests_sum_to_the_rate_of_the_audit():
    alarms = FalseAlarms(1e-9)
    rates = [alarms.next() for _ in range(20_000)]
    assert math.fsum(rates) < 1e-9
    assert math.fsum(rates) > 0.9999e-9
    assert alarms.tests == 20_000


def test_a_statement_that_is_just_true_is_refuted_no_more_often_than_said():
    """Randomised response at exactly its ε, with a rate that can be seen: 1 in 5 for each of 2000 tests."""
    rng = np.random.default_rng(5)
    exact = Claim.of(claim(math.log(3)))
    event = Event(Score("the answer", lambda values: values[:, 0].astype(float)), "equal to", 1.0, 0.0)
    alarms = 0
    for _ in range(2000):
        rate = FalseAlarms(0.2 * np.pi**2 / 6)
        counts = int(rng.binomial(400, 0.75)), int(rng.binomial(400, 0.25))
        alarms += proved(event, counts, (400, 400), exact, rate).margin > 0
    # At most 400 are expected; 13 standard deviations above would be 633.
    assert alarms < 500
    slightly = Claim.of(claim(math.log(3) - 0.4))
    assert proved(event, (30_000, 10_000), (40_000, 40_000), slightly, FalseAlarms()).margin > 0


def test_the_best_event_is_found():
    rng = np.random.default_rng(1)
    one, other = rng.normal(size=(4000, 1)), rng.normal(3, 1, size=(4000, 1))
    score = Score("it", lambda values: values[:, 0])
    event = best_event([score], one, other, Claim.of(claim(0.5)), 4000)
    assert event.sign == "at most"
    assert -1 < event.threshold < 2
    assert str(event).startswith("it at most")


def test_the_lowest_bit_of_a_double():
    values = np.array([1.0, 1.5, 2.0**-52, 1 + 2.0**-52, 0.0, -3.0, 2.0**-30 + 2.0**-40])
    assert lowest_bit(values).tolist() == [0, -1, -52, -52, 1100, 0, -40]


@pytest.mark.slow
def test_many_audits_of_a_tight_mechanism_refute_nothing():
    """Whole audits of a law that meets its claim exactly, from many seeds."""
    query = hf.histogram(1)

    class Tight:
        guarantee = claim(1.0)

        def __init__(self):
            self.query = query

        def simulate(self, truth, size, rng):
            return hf.laplace(query, epsilon=1).simulate(truth, size, rng)

    for seed in range(15):
        assert not hf.audit(Tight(), seconds=0.2, seed=seed).violated
