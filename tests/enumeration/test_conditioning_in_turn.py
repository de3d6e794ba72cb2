"""Offers made cell after cell, against listed states: their probabilities add up, and their weights are bounded."""

import numpy as np
import pytest

import holdfast as hf
from holdfast.given import Problem
from holdfast.given.near.in_turn.offers import Layout, MixtureChain, Rejection
from holdfast.given.near.in_turn.steps import in_turn, log_total, prepare, room_for
from listed_noise import listed

ALL_PAIRS = [(0, 1), (0, 2), (1, 2)]
CHAIN = np.array([[1, 2, -1, 0, 0], [0, 1, 1, 3, -1]])


def problem(system, n, scale, kind="gaussian"):
    base = hf.gaussian(hf.histogram(n), scale=scale) if kind == "gaussian" else hf.laplace(hf.histogram(n), scale=scale)
    return Problem(base.base.law, system.system(n))


def cube(shape, scale, kind="gaussian"):
    return problem(hf.invariant(hf.exact_margins(shape, ALL_PAIRS)), int(np.prod(shape)), scale, kind)


@pytest.mark.parametrize(
    ("asked", "reach"),
    [(cube((2, 2, 2), 1.5), 20), (cube((2, 2, 3), 1), 8), (problem(hf.invariant(CHAIN), 5, [1, 0.5, 2, 1, 3]), 14)],
    ids=["2×2×2", "2×2×3", "coefficients and scales"],
)
def test_probabilities_add_up_and_no_weight_is_above_the_limit(asked, reach):
    layout = Layout.of(asked)
    assert layout is not None
    variances = asked.law.variances[layout.cells]
    offers = Rejection.of(layout, variances)
    noise, chances = listed(asked.space.lattice_basis().toarray(), "gaussian", np.sqrt(asked.law.variances), reach)
    states = noise[:, layout.cells].astype(np.float64)
    words, log_chances = np.zeros((layout.free, 2), dtype=np.uint64), np.empty(len(states))
    for k, state in enumerate(states):
        given = state.copy()
        log_chances[k] = in_turn(layout.combination, offers.plan, words, False, given)
        assert np.array_equal(given, state)  # the solved cells follow from the free ones
    assert np.exp(log_chances).sum() == pytest.approx(1, abs=1e-9)
    log_weights = -(states**2 @ (1 / (2 * variances))) - log_chances
    assert log_weights.max() <= offers.limit
    assert log_weights.max() > offers.limit - 1e-5  # no noise at all reaches it
    # Offers weighed by these ratios have the listed law.
    weighed = np.exp(log_chances + log_weights)
    assert np.allclose(weighed / weighed.sum(), chances, atol=1e-12)


def test_an_order_found_on_the_way_is_a_plan_as_well():
    """Probabilities add up whatever order the variances ask for."""
    asked = cube((2, 2, 3), 1)
    layout = Layout.of(asked)
    noise, _ = listed(asked.space.lattice_basis().toarray(), "gaussian", 1.0, 9)
    words = np.zeros((layout.free, 2), dtype=np.uint64)
    for variances in (np.linspace(0.1, 2, 12), np.linspace(2, 0.1, 12)):
        plan = room_for(layout.combination)
        prepare(layout.combination, variances[: layout.free], variances[layout.free :], True, plan)
        assert sorted(plan.order) == list(range(layout.free))
        states = noise[:, layout.cells].astype(np.float64)
        total = sum(np.exp(in_turn(layout.combination, plan, words, False, state)) for state in states)
        assert total == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("variance", [0.01, 0.3, 2.2, 2.3, 40.0])
@pytest.mark.parametrize("mean", [0.0, 0.25, -7.5, 3.999])
def test_sums_over_whole_numbers(mean, variance):
    places = np.arange(-200, 201)
    whole = np.log(np.exp(-((places - mean) ** 2) / (2 * variance)).sum())
    assert log_total(mean, variance) == pytest.approx(whole, abs=1e-14)
    assert log_total(mean, variance) <= log_total(0.0, variance) + 1e-15


def test_the_mixture_of_variances_is_laplace_noise():
    """Weights of offers with random variances, summed over variances, are those of Laplace noise on one line."""
    asked = cube((2, 2, 2), 2, "laplace")
    chain = MixtureChain.of(Layout.of(asked), np.full(8, 0.5))
    states, log_weights = chain._offers(60_000, hf.seeded(1))
    weights = np.exp(log_weights - log_weights.max())
    for t in range(4):
        seen = weights * (np.abs(states[:, 0]) == t)
        wanted = np.exp(-4.0 * t) * (1 if t == 0 else 2) * np.tanh(2.0)
        error = seen.std() / np.sqrt(seen.size) / weights.mean()
        assert abs(seen.mean() / weights.mean() - wanted) < 6 * error + 1e-6
    assert weights.mean() > 0


def test_equalities_without_pivots_of_one_are_not_solved():
    assert Layout.of(problem(hf.invariant(np.array([[2, 3, 5]])), 3, 2)) is None


def test_cells_that_the_equalities_fix_have_no_noise():
    rows = np.array([[1, 1, 1, 0, 0], [0, 0, 0, 1, 1], [0, 0, 0, 1, 0]])
    layout = Layout.of(problem(hf.invariant(rows), 5, 2))
    assert sorted(layout.cells) == [0, 1, 2]
    assert not layout.noise(np.array([[1.0, 2.0, -3.0]]), 5)[0, 3:].any()
