"""What continuous noise given linear constraints promises and refuses, through the public names."""

import numpy as np
import pytest

import holdfast as hf

SHAPE = (3, 4)
CROSSED = hf.invariant(hf.exact_margins(SHAPE, [(0,), (1,)]))
TRUTH = np.array([4, 0, 2, 1, 0, 3, 1, 5, 2, 2, 0, 1])


def test_laplace_noise_on_a_crossed_table_is_estimated_and_pays_for_its_distance():
    mechanism = hf.laplace(hf.margins(SHAPE), epsilon=1, integer=False).given(CROSSED)
    assert mechanism.method == "lines"
    statement = mechanism.guarantee
    assert statement.status == "estimated"
    assert statement.numerical_delta > 0
    assert statement.delta >= (1 + np.exp(statement.epsilon)) * 1e-6
    assert any("L-lag couplings" in caveat for caveat in statement.caveats)
    release = mechanism.release(TRUTH, rng=hf.seeded(1))
    assert np.allclose((release.values - TRUTH).reshape(SHAPE).sum(axis=0), 0, atol=1e-9)
    assert np.allclose((release.values - TRUTH).reshape(SHAPE).sum(axis=1), 0, atol=1e-9)
    assert (mechanism.standard_error() > 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("make", [hf.laplace, hf.gaussian])
def test_bounded_crossed_tables_are_drawn_and_nothing_is_told_about_chains(make):
    budget = {"epsilon": 1} if make is hf.laplace else {"rho": 0.5}
    mechanism = make(hf.margins(SHAPE), integer=False, **budget).given(CROSSED & hf.nonnegative())
    assert mechanism.method == "lines"
    statement = mechanism.guarantee
    assert statement.status == "estimated"
    assert any("public tables" in caveat for caveat in statement.caveats)
    release = mechanism.release(TRUTH, rng=hf.seeded(2))
    assert (release.values >= 0).all()
    assert np.allclose((release.values - TRUTH).reshape(SHAPE).sum(axis=0), 0, atol=1e-9)
    assert "steps" not in str(statement)
    with pytest.raises(hf.Refused, match="depends on the data"):
        mechanism.noise(1)


def test_independent_tables_are_drawn_as_shares_and_share_one_distance():
    shape = (2, 3, 4)
    crossed = hf.invariant(hf.exact_margins(shape, [(0, 1), (0, 2)]))
    mechanism = hf.laplace(hf.margins(shape), epsilon=1, integer=False).given(crossed)
    noise = mechanism.noise(4, rng=hf.seeded(3)).reshape(4, *shape)
    assert np.allclose(noise.sum(axis=2), 0, atol=1e-9)
    assert np.allclose(noise.sum(axis=3), 0, atol=1e-9)
    statement = mechanism.guarantee
    assert statement.numerical_delta == pytest.approx((1 + np.exp(statement.epsilon)) * 1e-6, rel=1e-6)


def test_few_equalities_are_drawn_exactly_and_proved():
    two_rows = hf.invariant(hf.exact_margins((2, 5), [(0,), (1,)]))
    mechanism = hf.laplace(hf.margins((2, 5)), epsilon=1, integer=False).given(two_rows)
    assert mechanism.method == "solved"
    assert mechanism.guarantee.status == "proved"
    assert mechanism.guarantee.delta == 0
    noise = mechanism.noise(5, rng=hf.seeded(6)).reshape(5, 2, 5)
    assert np.allclose(noise[:, 0], -noise[:, 1])
    assert np.allclose(noise.sum(axis=2), 0)


def test_draws_of_one_seed_are_the_same_again():
    for constraint in (CROSSED, CROSSED & hf.nonnegative()):
        mechanism = hf.laplace(hf.margins(SHAPE), epsilon=1, integer=False).given(constraint)
        first, again = (mechanism.simulate(TRUTH, 3, rng=hf.seeded(4)) for _ in range(2))
        assert np.array_equal(first, again)


@pytest.mark.slow
def test_orders_of_many_cells_are_drawn_along_lines_and_of_few_by_rejection():
    few = hf.gaussian(hf.histogram(4), rho=0.5, integer=False).given(hf.ordered(range(4)))
    assert few.method == "rejection"
    assert few.guarantee.status == "proved"
    many = hf.gaussian(hf.histogram(10), rho=0.5, integer=False).given(hf.ordered(range(10)))
    assert many.method == "lines"
    values = many.simulate(np.zeros(10), 20, rng=hf.seeded(5))
    assert (np.diff(values, axis=1) >= -1e-12).all()


REFUSED = {
    "a cell that nothing measured limits": (
        hf.laplace(hf.margins(SHAPE), scale=[np.inf] * 6 + [1.0] * 6, integer=False).given(CROSSED),
        "no exact way is known|no way is known",
    ),
    "integer noise by a way for reals": (
        hf.laplace(hf.margins(SHAPE), epsilon=1).given(CROSSED, method="lines"),
        "method 'lines' cannot draw integer Laplace noise",
    ),
    "a union": (
        hf.laplace(hf.histogram(4), epsilon=1, integer=False).given(
            hf.ordered([0, 1]) | hf.at_least([[1, -1, 0, 0]], [1]), method="lines"
        ),
        "method 'lines' cannot draw",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_drawn_is_refused_before_data_is_seen(name):
    mechanism, sentence = REFUSED[name]
    with pytest.raises(hf.Refused, match=sentence):
        _ = mechanism.method


def test_a_truth_outside_its_bounds_is_refused_without_its_value():
    mechanism = hf.laplace(hf.margins(SHAPE), epsilon=1, integer=False).given(CROSSED & hf.nonnegative())
    bad = TRUTH.copy()
    bad[3] = -77
    with pytest.raises(hf.Refused, match="truth violates") as caught:
        mechanism.release(bad)
    assert "77" not in str(caught.value)
