"""How far sums of whole noise reach, from characteristic functions, against laws that are listed."""

import itertools
import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy import signal

import holdfast as hf
from holdfast.noise import inversion
from holdfast.noise.inversion import Characteristic, Sums

TAILS = (0.2, 0.05, 0.025, 0.005, 5e-4, 5e-7)
# name: scale of whole Laplace noise, weights
STEPS = {
    "one output": (2.0, [1]),
    "one output of hardly any noise": (0.1, [1]),
    "small noise": (0.3, [1, -1]),
    "a mean": (2.0, [0.1] * 9),
    "several times": (0.5, [2, 2, 2, 1]),
    "often": (0.5, [6] * 12 + [1]),
    "many": (6.0, [1] * 40),
    "wide": (5.0, [3, -3]),
}
OTHERS = {
    "no common step": (6.0, [1, 2, 3.3]),
    "a distant step": (3.0, [1000, 1]),
    "wide noise": (400.0, [1]),
    "any weights": (2.0, [0.3, -1.7, 2.2, 0.9, -0.4, 1.3]),
}


def laplace(scale):
    """The characteristic function of independent noise; the count of frequencies that were asked for; the error."""
    alpha = math.exp(-1 / scale)
    asked = []

    def of(weights, frequencies):
        asked.append(frequencies.size)
        cosines = np.cos(np.multiply.outer(np.asarray(weights), frequencies))
        return ((1 - alpha) ** 2 / (1 - 2 * alpha * cosines + alpha**2)).prod(axis=0).real

    variance = 2 * alpha / (1 - alpha) ** 2

    def tilted(weights, slope):
        rest = 1 - variance * (np.cosh(np.minimum(np.abs(slope * weights), 700)) - 1)
        return -np.log(rest).sum() if (rest > 0).all() else math.inf

    return Characteristic(of, np.asarray, tilted), asked, math.sqrt(variance)


def sums(scale, weights):
    """Sums as `inversion` sees them, and the count of frequencies."""
    law, asked, error = laplace(scale)
    weights = np.array(weights, dtype=np.float64)
    return Sums([(law, weights)], error * math.hypot(*weights)), asked


@cache
def listed(scale, weights):
    """Sizes of sums in tenths, and their probabilities: those of whole noise, joined by transforms of all places."""
    alpha = math.exp(-1 / scale)
    reach = math.ceil(25 * scale) + 3
    one = alpha ** np.abs(np.arange(-reach, reach + 1)) * (1 - alpha) / (1 + alpha)
    law = np.ones(1)
    for weight in weights:
        step = round(abs(weight) * 10)
        more = np.zeros(2 * reach * step + 1)
        more[::step] = one
        law = signal.fftconvolve(law, more)
    half = law.size // 2
    return np.arange(half + 1) / 10, np.append(law[half], 2 * law[half + 1 :])


def beyond(scale, weights, q):
    places, law = listed(scale, tuple(weights))
    return law[places > q + 1e-9].sum()


@pytest.mark.parametrize("name", STEPS)
def test_the_least_reach_of_sums_on_steps(name):
    scale, weights = STEPS[name]
    found, _ = sums(scale, weights)
    step = min(map(abs, weights))
    for tail in TAILS:
        q = found.least_reach(tail)
        assert q / step == pytest.approx(round(q / step))
        assert beyond(scale, weights, q) <= 2 * tail * (1 + 1e-9)
        if q:  # the next smaller one would not do, but for what is kept for safety
            assert beyond(scale, weights, q - step) > (2 - 3 * inversion.SHARE) * tail


@pytest.mark.parametrize("name", [*OTHERS, "one output", "many", "wide"])
def test_a_reach_for_all_weights_is_a_little_wide(name):
    scale, weights = {**OTHERS, **STEPS}[name]
    found, _ = sums(scale, weights)
    places, law = listed(scale, tuple(weights))
    for tail in TAILS:
        q = found.wide_reach(tail)
        assert beyond(scale, weights, q) <= 2 * tail
        true = places[np.searchsorted(np.cumsum(law), 1 - 2 * tail)]
        assert q <= true + 0.25 * found.error + max(weights) / 2


@pytest.mark.parametrize("name", OTHERS)
def test_no_least_reach_is_claimed_without_steps(name):
    scale, weights = OTHERS[name]
    assert sums(scale, weights)[0].least_reach(0.025) is None


def test_weights_that_return_are_not_taken_for_faint():
    """Half a turn brings back the noise that counts twice; seven and eight steps meet between their own returns."""
    kinds = ([2] * 150 + [1], [3] * 150 + [1], [19] * 120 + [1], [7] * 40 + [8] * 40 + [1], [1, -1] * 60)
    for scale, weights in itertools.product((0.3, 1.0), kinds):
        found, _ = sums(scale, weights)
        for tail in TAILS:
            q = found.least_reach(tail)
            assert q is None or beyond(scale, weights, q) <= 2 * tail * (1 + 1e-9)


@pytest.mark.parametrize("name", [*STEPS, *OTHERS])
def test_a_reach_that_is_proved_holds_and_says_how_much_comes_around(name):
    scale, weights = {**OTHERS, **STEPS}[name]
    found, _ = sums(scale, weights)
    for tail in (*TAILS, 1e-9):
        q = found.proved_reach(tail)
        assert beyond(scale, weights, q - 1e-6) <= 2 * tail
        assert q <= max(6 * found.error / math.sqrt(2 * tail), 40 * scale * max(weights))


def test_few_frequencies_are_asked_for():
    found, asked = sums(6.0, [1] * 1000)
    assert found.least_reach(0.025) / found.error == pytest.approx(1.96, abs=0.01)
    assert sum(asked) <= 40


def test_units_scale_and_independent_sums_join():
    law, _, error = laplace(3.0)
    one = np.array([1.0, 1, -1])
    whole = Sums([(law, np.concatenate([one, one]))], error * math.sqrt(6))
    halves = Sums([(law, one), (law, one)], error * math.sqrt(6))
    tenth = Sums([(law.times(0.1), one)] * 2, error * math.sqrt(6) / 10)
    for tail in TAILS:
        assert halves.least_reach(tail) == whole.least_reach(tail)
        assert tenth.least_reach(tail) == pytest.approx(whole.least_reach(tail) / 10)
        assert tenth.wide_reach(tail) == pytest.approx(whole.wide_reach(tail) / 10)


def test_of_a_sum_that_is_too_much_work_chernoffs_limit_is_left():
    law, _, error = laplace(6.0)
    none = replace(law, of=lambda weights, frequencies: None)
    many = Sums([(none, np.ones(1200))], error * math.sqrt(1200))
    for tail in TAILS[1:]:
        assert many.least_reach(tail) is many.wide_reach(tail) is None
        assert 1 < many.proved_reach(tail) / sums(6.0, [1] * 1200)[0].least_reach(tail) < 1.6


def test_nothing_is_known_of_what_doubles_do_not_tell():
    found, _ = sums(2.0, [1, 1])
    assert found.least_reach(1e-9) is None
    assert found.wide_reach(1e-9) is None
    law, *_ = laplace(2.0)
    exact = Sums([(law, np.zeros(2))], 0.0)
    assert exact.least_reach(1e-12) == exact.wide_reach(1e-12) == exact.proved_reach(1e-12) == 0.0


@pytest.mark.parametrize("row", [[1, 1, 1], [1, -1, -1]])
@pytest.mark.parametrize("weights", [[1, 1, 0], [1, 0, 0], [2, -1, 0], [1, 2, 5]])
def test_sums_given_a_total_have_the_law_that_is_listed(row, weights):
    mechanism = hf.laplace(hf.histogram(3), scale=2, neighbours="replace-one").given(hf.invariant([row]))
    spread = mechanism.unit_spread()
    assert mechanism.method == "tied_totals"
    steps, weights = np.arange(-70, 71), np.array(weights, dtype=np.float64)
    free = np.stack(np.meshgrid(steps, steps)).reshape(2, -1)
    noise = np.vstack([-(np.array(row[1:]) @ free) * row[0], free])
    masses = np.exp(-np.abs(noise).sum(axis=0) / 2)
    masses /= masses.sum()
    errors, frequencies = weights @ noise, np.array([0.0, 0.01, 0.3, 1.0, 2.5, 3.1])
    listed = (np.cos(np.multiply.outer(frequencies, errors)) * masses).sum(axis=1)
    assert spread.characteristic.of(weights, frequencies) == pytest.approx(listed, abs=1e-12)
    assert spread.variance_of(weights) == pytest.approx(masses @ errors**2)
    for t in (0.05, 0.15):
        assert spread.characteristic.tilted(weights, t) >= math.log(masses @ np.exp(t * errors)) - 1e-12
    found = Sums([(spread.characteristic, weights)], math.sqrt(spread.variance_of(weights)))
    for tail in TAILS[:4]:
        reach = found.least_reach(tail)
        reach = found.wide_reach(tail) if reach is None else reach
        assert masses[np.abs(errors) > reach + 1e-9].sum() <= 2 * tail
