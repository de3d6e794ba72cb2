"""L-lag couplings: bounds cover the true distance, runs are long enough, and chains that stay apart are caught."""

import numpy as np
import pytest

import holdfast as hf
from holdfast.noise import convergence

LAZY = np.array(
    [
        [0.90, 0.10, 0.00, 0.00],
        [0.05, 0.85, 0.10, 0.00],
        [0.00, 0.10, 0.80, 0.10],
        [0.00, 0.00, 0.20, 0.80],
    ]
)


class Finite:
    """A chain on a few states with a known matrix; copies move by common uniforms once equal, independently before."""

    def __init__(self, matrix):
        self.cumulative = np.cumsum(matrix, axis=1)

    def start(self, count, stream):
        return (len(self.cumulative) * stream.uniforms(count)).astype(np.int64)[:, None]

    def _moved(self, states, uniforms):
        return (uniforms[:, None] > self.cumulative[states[:, 0]]).sum(axis=1)[:, None]

    def advance(self, states, stream):
        return self._moved(states, stream.uniforms(len(states)))

    def advance_coupled(self, ahead, behind, stream):
        one, two = stream.uniforms(2 * len(ahead)).reshape(2, -1)
        same = (ahead == behind)[:, 0]
        return self._moved(ahead, one), self._moved(behind, np.where(same, one, two))


def distances(matrix, steps):
    values, vectors = np.linalg.eig(matrix.T)
    target = np.real(vectors[:, np.argmax(np.real(values))])
    target /= target.sum()
    law, found = np.full(len(matrix), 1 / len(matrix)), []
    for _ in range(steps):
        found.append(np.abs(law - target).sum() / 2)
        law = law @ matrix
    return np.array(found)


@pytest.mark.parametrize("lag", [1, 5, 40])
def test_the_mean_bound_covers_the_true_distance(lag):
    times = convergence.meeting_times(Finite(LAZY), lag, 20_000, hf.seeded(1))
    true = distances(LAZY, 60)
    for step in range(0, 60, 5):
        bound = convergence.mean_bound(times, lag, step)
        assert bound > true[step] - 6 * lag_error(times, lag, step)


def lag_error(times, lag, step):
    return np.maximum(0, -((lag + step - times) // lag)).std() / np.sqrt(len(times))


def test_the_run_is_long_enough_and_not_absurdly_long():
    true = distances(LAZY, 2_000)
    found = convergence.run_length(Finite(LAZY), 1e-6, hf.seeded(2))
    assert found.pairs >= 1_000
    assert true[found.steps] <= 1e-6
    assert found.steps < 6 * np.flatnonzero(true <= 1e-6)[0]


def test_the_worst_of_several_chains_counts():
    slow = 0.1 * LAZY + 0.9 * np.eye(4)
    alone = convergence.run_length(Finite(LAZY), 1e-6, hf.seeded(3)).steps
    both = convergence.worst_run_length([Finite(LAZY), Finite(slow)], 1e-6, hf.seeded(3)).steps
    assert distances(slow, both + 1)[both] <= 1e-6
    assert both > 5 * alone


def test_a_smaller_tau_needs_a_longer_run():
    times = convergence.meeting_times(Finite(LAZY), 20, 1_000, hf.seeded(4))
    steps = [convergence.needed_steps(times, 20, tau) for tau in (1e-2, 1e-4, 1e-8)]
    assert steps == sorted(set(steps))


def test_fitted_tails_are_upper_limits():
    """Geometric meeting times with a known rate: the limit is too low in at most one run of a hundred or so."""
    generator = np.random.default_rng(5)
    rate, lag, tau, low = 0.05, 10, 1e-6, 0
    # P(T > lag + t + j·lag) summed over j at the right t
    right = int(np.ceil(np.log(tau * -np.expm1(lag * np.log1p(-rate))) / np.log1p(-rate)))
    for _ in range(200):
        times = lag + generator.geometric(rate, 1_000)
        low += convergence.needed_steps(times, lag, tau) < right
    assert low <= 6


def test_chains_that_stay_apart_are_caught():
    class TwoRooms(Finite):
        def start(self, count, stream):
            return np.where(stream.uniforms(count) < 0.5, 0, 2)[:, None]

    rooms = np.kron(np.eye(2), np.full((2, 2), 0.5))
    with pytest.raises(hf.Refused, match="did not meet within 300 steps"):
        convergence.run_length(TwoRooms(rooms), 1e-6, hf.seeded(6), most=300)


def test_all_meetings_at_one_step_are_no_proof_of_speed():
    times = np.full(1_000, 11)
    assert convergence.needed_steps(times, 10, 1e-6) >= 2
