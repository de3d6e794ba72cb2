"""Drawing again is given up by a coin, or not at all: a refusal tells no more than a release."""

import inspect
import math

import numpy as np
import pytest

import holdfast as hf
from holdfast.exact import cheapest_rational as least_cost
from holdfast.given import Problem
from holdfast.given.exact import boxes, rejection
from holdfast.given.near import coupled_chains as chains
from holdfast.given.near import lines, two_way, walk
from holdfast.given.near.two_way import log_least_share, missing_share
from holdfast.given.problem import last_tries
from listed_noise import listed

EPSILON = 1.0


def laws(truth, scale, coin):
    """Exact chances of every release and of a refusal: two ordered cells of integer Laplace noise."""
    places = np.arange(-60, 61)
    alpha = math.exp(-1 / scale)
    one, two = (np.where(True, alpha ** np.abs(places - x), 0.0) * (1 - alpha) / (1 + alpha) for x in truth)
    joint = np.where(places[:, None] <= places[None, :], np.outer(one, two), 0.0)
    inside = joint.sum()
    return joint / (coin + (1 - coin) * inside), coin * (1 - inside) / (coin + (1 - coin) * inside), inside


@pytest.mark.parametrize("coin", [0.5, 0.1, 1e-3])
def test_a_refusal_by_a_coin_keeps_the_statement(coin):
    """Release or refusal: all chances sum to 1, and neighbours differ by e^2ε at most."""
    for truth in ([0, 0], [3, 3], [0, 4], [0, 1]):
        for other in ([truth[0] + 1, truth[1]], [truth[0], truth[1] + 1]):
            if other[0] > other[1]:
                continue
            (one, stop, _), (two, halt, _) = laws(truth, 1 / EPSILON, coin), laws(other, 1 / EPSILON, coin)
            assert one.sum() + stop == pytest.approx(1, abs=1e-12)
            held = one > 1e-30
            assert np.abs(np.log(one[held] / two[held])).max() <= 2 * EPSILON + 1e-9
            assert abs(math.log(stop / halt)) <= 2 * EPSILON + 1e-9


def test_a_fixed_number_of_tries_would_not_keep_it():
    """What was done before: the chances of a refusal after 20 tries differ by far more."""
    (_, _, p), (_, _, q) = laws([0, 0], 1 / EPSILON, 0.5), laws([0, 1], 1 / EPSILON, 0.5)
    assert 20 * math.log((1 - p) / (1 - q)) > 2 * EPSILON


def test_coins_fall_as_they_should():
    last = last_tries(1 << 18, 4, hf.seeded(1))
    assert abs(last.sum() - (1 << 14)) < 5.5 * 128  # 5.5 deviations


def test_rejection_is_given_up_as_often_as_its_coin_says(monkeypatch):
    """Four ordered cells that are alike in truth: one try in some twenty succeeds."""
    monkeypatch.setattr(rejection, "GIVING_UP_BITS", 7)
    problem = Problem(hf.laplace(hf.histogram(4), scale=3).base.law, hf.ordered([0, 1, 2, 3]).system(4))
    stream, refused = hf.seeded(2), 0
    noise = problem.law.draw(200_000, hf.seeded(3))
    p = float((np.diff(noise, axis=1) >= 0).all(axis=1).mean())
    for _ in range(150):
        try:
            rejection.draw(problem, np.zeros(4, dtype=int), 1, stream)
        except hf.Refused:
            refused += 1
    chance = (1 - p) / 128 / (p + (1 - p) / 128)
    assert abs(refused - 150 * chance) < 5 * math.sqrt(150 * chance * (1 - chance)) + 1  # five deviations: 6e-7


def test_gaussian_noise_is_drawn_until_it_holds(monkeypatch):
    monkeypatch.setattr(rejection, "last_tries", lambda *_: pytest.fail("no coin is tossed"))
    mechanism = hf.gaussian(hf.histogram(3), scale=1, integer=False).given(hf.ordered([0, 1, 2]), method="rejection")
    assert (np.diff(mechanism.simulate([1, 1, 1], 5, rng=hf.seeded(1)), axis=1) >= 0).all()


def test_bounds_too_narrow_for_their_noise_are_refused_whatever_the_truth():
    mechanism = hf.laplace(hf.histogram(2), scale=10**6).given(hf.between(0, 3), method="boxes")
    messages = set()
    for truth in ([0, 0], [3, 1], [2, 3]):
        with pytest.raises(hf.Refused, match="too narrow") as caught:
            mechanism.simulate(truth, 1, rng=hf.seeded(1))
        messages.add(str(caught.value))
    assert len(messages) == 1
    assert not hasattr(boxes, "MOST_ROUNDS")


def test_no_clock_decides_what_is_measured_or_found():
    for module in (lines, least_cost, walk, chains):
        assert "time_limit" not in inspect.getsource(module)


# --- what is proved about shares ---------------------------------------------------------------------------------


def crossed(shape, scale):
    n = math.prod(shape)
    system = hf.invariant(hf.exact_margins(shape, [(0,), (1,)])).system(n)
    return Problem(hf.laplace(hf.histogram(n), scale=scale).base.law, system)


@pytest.mark.parametrize("scale", [0.2, 0.5, 1])
@pytest.mark.parametrize("shape", [(2, 3), (3, 3), (2, 5)])
def test_no_fewer_tables_are_accepted_than_is_proved(shape, scale):
    """The share is Z/(Π f_R(0)·Π M_r), with Z listed and f_R convolved."""
    problem = crossed(shape, scale)
    layout = two_way.Layout.of(problem)
    made = two_way.Proposals.of(layout)
    noise, _ = listed(problem.space.lattice_basis().toarray(), "laplace", scale, 7)
    total = np.exp(-np.abs(noise).sum(axis=1) / scale).sum()
    places = np.arange(-80, 81)
    weights = np.exp(-np.abs(places) / scale)
    rows, columns = layout.cells.shape
    sums = weights
    for _ in range(rows - 1):
        sums = np.convolve(sums, weights)
    share = total / sums[sums.size // 2] ** columns / np.prod(made.limits)
    least = math.exp(log_least_share(made.table, made.limits, [float(s) for s in layout.scales]))
    assert 0.1 * share < least <= share * (1 + 1e-9)
    assert made.distance >= layout.cells.size * 4 * (2 * made.table.core + 1) * 2.0**-53 / share


@pytest.mark.parametrize("scale", [0.7, 3])
def test_no_more_of_a_message_is_cut_away_than_is_proved(scale, monkeypatch):
    """With windows that leave out 10⁻³ of a law instead of 10⁻¹³, what is cut away can be seen."""
    for module in ("rows_in_turn", "two_way"):
        monkeypatch.setattr(f"holdfast.given.near.{module}.TAIL", 1e-3)
    problem = crossed((6, 7), scale)
    layout = two_way.Layout.of(problem)
    table, sizes = layout.table(), layout.windows()
    bound = missing_share(scale, 6, sizes)
    places = np.arange(-600, 601)
    weights = np.exp(-np.abs(places) / scale)
    reach, depth = sizes.reach, sizes.depth
    half = (sizes.depth - sizes.core) // 2
    full, cut = np.zeros(1201), np.zeros(1201)
    full[600] = cut[600] = 1.0
    seen = 0.0
    for _ in range(6):
        full = np.convolve(full, weights)[600:-600]
        cut = np.convolve(cut, np.where(np.abs(places) <= reach, weights, 0.0))[600:-600]
        cut[np.abs(places) > depth] = 0.0
        near = np.abs(places) <= half
        seen = max(seen, float((1 - cut[near] / full[near]).max()))
    assert 0 < seen <= bound
    assert table.below.shape[2] == 2 * depth + 1
