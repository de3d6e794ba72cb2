"""Counterexamples of the page of corrections that no item of the papers computes."""

import math

import numpy as np
import pytest
from scipy import integrate

import holdfast as hf
from holdfast.papers.two_views_city import PRINTED


def information(p, q):
    """I(P, P′) = ΣP′ log P′/P as the paper defines it."""
    return sum(b * math.log(b / a) if a else math.inf for a, b in zip(p, q, strict=True) if b)


def test_conditioning_is_nearest_by_the_information_that_is_defined_and_not_with_exchanged_arguments():
    prior, inside = (0.1, 0.2, 0.3, 0.4), (True, True, False, False)
    given = [p / 0.3 if kept else 0.0 for p, kept in zip(prior, inside, strict=True)]
    others = [(share, 1 - share, 0.0, 0.0) for share in np.linspace(0.01, 0.99, 99)]
    assert information(prior, given) <= min(information(prior, other) for other in others)
    assert all(information(other, prior) == math.inf for other in (given, *others))


def test_the_factor_of_conditioning_on_an_event_is_not_negative():
    """Counts 0 and 1 with noise, given that the output is not negative: one ratio is above 1 in one of two orders."""
    noise = hf.laplace(hf.histogram(1), scale=2)
    held = [1 - math.exp(-1 / 2) ** (count + 1) / (1 + math.exp(-1 / 2)) for count in (0, 1)]
    assert max(math.log(held[0] / held[1]), math.log(held[1] / held[0])) > 0
    assert noise.given(hf.nonnegative()).guarantee.epsilon >= noise.guarantee.epsilon


def test_projected_noise_added_to_the_answer_leaves_an_affine_constraint():
    total, answer, noise = 12.0, np.array([2.0, 4, 6]), np.array([1.0, -0.5, 0.7])

    def projected(z):
        return z + (total - z.sum()) / 3

    assert (answer + projected(noise)).sum() == pytest.approx(2 * total)
    assert projected(answer + noise).sum() == pytest.approx(total)
    assert projected(answer + noise) == pytest.approx(answer + noise - noise.mean())
    rows = np.ones((1, 3))
    assert 3 - np.linalg.matrix_rank(rows) == 2  # free variables of one equation in three


def test_the_printed_errors_of_the_chain_rise_with_the_budget():
    for level, (least, more) in enumerate(((0.0134, 0.0182), (0.0289, 0.0573))):
        assert round(PRINTED[0.5][level][0], 4) == least
        assert round(PRINTED[1.0][level][0], 4) == more


def test_a_basis_shortens():
    basis = np.array([[1.0], [-1.0]]) / math.sqrt(2)
    whole, inside = np.trace(np.eye(2)), np.trace(basis.T @ np.eye(2) @ basis)
    assert (whole, inside) == pytest.approx((2.0, 1.0))


@pytest.mark.parametrize("sigma", [0.5, 1.0, 3.0])
def test_the_density_of_a_refinement_has_one_more_factor(sigma):
    mass, _ = integrate.quad(lambda x: (sigma + 2 * x) * math.exp(-2 * x / sigma), 0, 40 * sigma)
    assert 2 * mass / (2 * sigma) == pytest.approx(sigma)
    assert 2 * mass / (2 * sigma**2) == pytest.approx(1)
    x1, c = 0.8, 0.3  # at mu = 0: the density of (X1 - X2 + c)/2 at x1
    density, _ = integrate.quad(
        lambda x: 2 * math.exp(-(abs(2 * x1 + x - c) + abs(x)) / sigma) / (2 * sigma) ** 2,
        -60,
        60,
        points=[0, c - 2 * x1],
    )
    away = abs(2 * x1 - c)
    assert density == pytest.approx((sigma + away) * math.exp(-away / sigma) / (2 * sigma**2), rel=1e-6)
