"""Drawing again is given up by a coin, or not at all: a refusal tells no more than a release."""

import inspect
import math

import numpy as np
import pytest

import holdfast as hf
from holdfast.exact import cheapest_rational as least_cost
from holdfast.given import Problem, giving_up
from holdfast.given.exact import boxes, rejection
from holdfast.given.near import public_tables as corners
from holdfast.given.near.in_turn import in_turn
from holdfast.given.near.in_turn.offers import Layout, Rejection
from holdfast.given.near.two_way import two_way
from holdfast.given.near.two_way.share import log_least_share, missing_share
from holdfast.given.near.walk import walk
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
    last = giving_up.last_tries(1 << 18, 4, hf.seeded(1))
    assert abs(last.sum() - (1 << 14)) < 5.5 * 128  # 5.5 deviations
    kept = np.array([[0, 1, 0], [0, 0, 0], [0, 0, 1], [1, 0, 0]], dtype=bool)
    stop = np.array([[0, 1, 1], [0, 0, 0], [0, 1, 0], [1, 1, 1]], dtype=bool)
    assert giving_up.first_kept(kept, stop).tolist() == [1, -1, -2, 0]


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
    for module in (corners, least_cost, walk, in_turn):
        assert "time_limit" not in inspect.getsource(module)


# --- what is proved about shares ---------------------------------------------------------------------------------


def crossed(shape, kind, scale):
    base = hf.laplace if kind == "laplace" else hf.gaussian
    n = math.prod(shape)
    system = hf.invariant(hf.exact_margins(shape, [(0,), (1,)])).system(n)
    return Problem(base(hf.histogram(n), scale=scale).base.law, system)


@pytest.mark.parametrize(
    ("kind", "scale"), [("laplace", 0.2), ("laplace", 0.5), ("laplace", 1), ("gaussian", 0.5), ("gaussian", 1)]
)
@pytest.mark.parametrize("shape", [(2, 3), (3, 3), (2, 5)])
def test_no_fewer_tables_are_accepted_than_is_proved(shape, kind, scale):
    """The share is Z/(Π f_R(0)·Π M_r), with Z listed and f_R convolved."""
    problem = crossed(shape, kind, scale)
    layout = two_way.Layout.of(problem)
    made = two_way.Proposals.of(layout)
    noise, _ = listed(problem.space.lattice_basis().toarray(), kind, scale, 7)
    sizes = np.abs(noise) / scale if kind == "laplace" else noise**2 / (2 * scale**2)
    total = np.exp(-sizes.sum(axis=1)).sum()
    places = np.arange(-80, 81)
    weights = np.exp(-(np.abs(places) / scale if kind == "laplace" else places**2 / (2 * scale**2)))
    rows, columns = layout.cells.shape
    sums = weights
    for _ in range(rows - 1):
        sums = np.convolve(sums, weights)
    share = total / sums[sums.size // 2] ** columns / np.prod(made.limits)
    least = math.exp(log_least_share(made.table, made.limits, [float(s) for s in layout.scales], layout.gaussian))
    assert 0.1 * share < least <= share * (1 + 1e-9)
    assert made.distance >= layout.cells.size * 4 * (2 * made.table.core + 1) * 2.0**-53 / share


@pytest.mark.parametrize(("kind", "scale"), [("laplace", 0.7), ("laplace", 3), ("gaussian", 0.6), ("gaussian", 2)])
def test_no_more_of_a_message_is_cut_away_than_is_proved(kind, scale, monkeypatch):
    """With windows that leave out 10⁻³ of a law instead of 10⁻¹³, what is cut away can be seen."""
    for module in ("rows_in_turn", "share"):
        monkeypatch.setattr(f"holdfast.given.near.two_way.{module}.TAIL", 1e-3)
    problem = crossed((6, 7), kind, scale)
    layout = two_way.Layout.of(problem)
    table, sizes = layout.table(), layout.windows()
    squared = scale**2 if kind == "gaussian" else scale
    bound = missing_share(squared, kind == "gaussian", 6, sizes)
    places = np.arange(-600, 601)
    weights = np.exp(-(np.abs(places) / scale if kind == "laplace" else places**2 / (2 * squared)))
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
    assert seen <= bound
    assert seen > 0 or kind == "gaussian"  # Gaussian tails are thinner than the bound by far
    assert table.below.shape[2] == 2 * depth + 1


@pytest.mark.parametrize("sigma", [0.3, 0.5, 0.7, 1, 1.5])
@pytest.mark.parametrize("shape", [(2, 2, 2), (2, 2, 3), (2, 3, 3)])
def test_no_fewer_gaussian_offers_are_accepted_than_is_proved(shape, sigma):
    n = math.prod(shape)
    system = hf.invariant(hf.exact_margins(shape, [(0, 1), (0, 2), (1, 2)])).system(n)
    problem = Problem(hf.gaussian(hf.histogram(n), scale=sigma).base.law, system)
    layout = Layout.of(problem)
    made = Rejection.of(layout, np.full(layout.cells.size, float(problem.law.scale_values[0])))
    noise, _ = listed(problem.space.lattice_basis().toarray(), "gaussian", sigma, 9)
    share = np.exp(-(noise**2).sum(axis=1) / (2 * float(problem.law.scale_values[0]))).sum() / math.exp(made.limit)
    assert 0.3 * share < made.least_share() <= share * (1 + 1e-9)
    if in_turn.accepts(problem):
        assert in_turn.evidence(problem).distance >= n * 2.0**-44 / share
