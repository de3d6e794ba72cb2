"""Draws of k-norm noise by facets: the gauge is Gamma, the direction is right; wrong ones are rejected."""

import numpy as np
from scipy import stats

import holdfast as hf
from holdfast.subspace.k_norm import Body, Facets
from subspaces import gauges

#: Fixed seeds; each test below raises a false alarm with probability below 1e-6.
LEAST = 1e-8


def body_of(rank, count, seed):
    return Body.of(np.random.default_rng(seed).integers(-2, 3, (rank, count)) + 0.125 * np.eye(rank, count))


def sizes_of(part, body, size, seed):
    noise = part.draw(size, hf.seeded(seed))
    return noise, gauges(body.moved.T, False, noise)


def test_gauges_are_gamma():
    body = body_of(4, 8, 1)
    _, sizes = sizes_of(Facets.of(body), body, 1_000, 2)
    assert stats.kstest(sizes, stats.gamma(4).cdf).pvalue > LEAST
    assert stats.kstest(sizes, stats.gamma(5).cdf).pvalue < LEAST


def test_a_polygon_is_filled_evenly():
    """Shares of angle sectors of a hexagon and a rectangle with unequal sides are their areas, by hand."""
    corners = np.array([[3.0, 0.0, 1.0], [0.0, 1.0, 1.0]])  # conv ±{(3, 0), (1, 1), (0, 1)}: areas 3, 1, 3 over 2
    body = Body.of(corners)
    noise = Facets.of(body).draw(4_000, hf.seeded(4)) @ body.turn.T
    angles = np.arctan2(noise[:, 1], noise[:, 0]) % np.pi
    sectors = np.searchsorted([np.pi / 4, np.pi / 2], angles)
    areas = np.array([3.0, 1.0, 3.0])
    assert stats.chisquare(np.bincount(sectors), 4_000 * areas / areas.sum()).pvalue > LEAST
    assert stats.chisquare(np.bincount(sectors), np.full(3, 4_000 / 3)).pvalue < LEAST


def test_variances_are_those_of_the_draws():
    body = body_of(5, 11, 3)
    facets = Facets.of(body)
    noise = facets.draw(40_000, hf.seeded(8))
    found = noise.T @ noise / len(noise)
    spread = np.sqrt(((noise[:, :, None] * noise[:, None, :]) ** 2).mean(axis=0) / len(noise))
    assert (np.abs(found - facets.moments) < 6 * spread).all()
    assert (np.abs(1.2 * found - facets.moments) > 6 * spread).any()
