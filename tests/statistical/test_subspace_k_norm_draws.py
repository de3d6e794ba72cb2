"""Draws of k-norm noise by facets and by walks: the gauge is Gamma, the direction is right; wrong ones are rejected."""

import numpy as np
import pytest
from scipy import stats

import holdfast as hf
from holdfast.subspace.k_norm.body import Body, listed
from holdfast.subspace.k_norm.facets import Facets
from holdfast.subspace.k_norm.gauge import gauges
from holdfast.subspace.k_norm.relations import Relations
from holdfast.subspace.k_norm.walk import Walk

#: Fixed seeds; each test below raises a false alarm with probability below 1e-6.
LEAST = 1e-8


def body_of(rank, count, seed):
    return Body.of(np.random.default_rng(seed).integers(-2, 3, (rank, count)) + 0.125 * np.eye(rank, count))


def sizes_of(part, body, size, seed):
    noise = part.draw(size, hf.seeded(seed))
    return noise, gauges(body.moved.T, False, noise)


@pytest.mark.parametrize("way", [Facets, Walk])
def test_gauges_are_gamma(way):
    body = body_of(4, 8, 1)
    _, sizes = sizes_of(way.of(body), body, 1_000, 2)
    assert stats.kstest(sizes, stats.gamma(4).cdf).pvalue > LEAST
    assert stats.kstest(sizes, stats.gamma(5).cdf).pvalue < LEAST


def test_a_polygon_is_filled_evenly():
    """Shares of angle sectors of a hexagon and a rectangle with unequal sides are their areas, by hand."""
    corners = np.array([[3.0, 0.0, 1.0], [0.0, 1.0, 1.0]])  # conv ±{(3, 0), (1, 1), (0, 1)}: areas 3, 1, 3 over 2
    body = Body.of(corners)
    for way in (Facets, Walk):
        noise = way.of(body).draw(4_000, hf.seeded(4)) @ body.turn.T
        angles = np.arctan2(noise[:, 1], noise[:, 0]) % np.pi
        sectors = np.searchsorted([np.pi / 4, np.pi / 2], angles)
        areas = np.array([3.0, 1.0, 3.0])
        assert stats.chisquare(np.bincount(sectors), 4_000 * areas / areas.sum()).pvalue > LEAST
        assert stats.chisquare(np.bincount(sectors), np.full(3, 4_000 / 3)).pvalue < LEAST


@pytest.mark.parametrize(("rank", "count", "seed"), [(4, 9, 1), (5, 7, 2)])
def test_walks_and_facets_draw_one_law(rank, count, seed):
    body = body_of(rank, count, seed)
    walked, listed = Walk.of(body).draw(1_000, hf.seeded(5)), Facets.of(body).draw(20_000, hf.seeded(6))
    weights = np.random.default_rng(7).standard_normal((6, rank))
    for row in weights:
        assert stats.ks_2samp(walked @ row, listed @ row).pvalue > LEAST
        assert stats.ks_2samp(1.7 * walked @ row, listed @ row).pvalue < LEAST
    # Joint behaviour: how far the two draws lie along the longest point.
    shares = [np.abs(each @ body.points.T).max(axis=1) for each in (walked, listed)]
    assert stats.ks_2samp(*shares).pvalue > LEAST


@pytest.mark.parametrize("pairs", [False, True])
def test_relations_and_facets_draw_one_law(pairs):
    points = np.random.default_rng(9).integers(-2, 3, (5, 8)) + 0.125 * np.eye(5, 8)
    points = points - points.mean(axis=1, keepdims=True) if pairs else points
    body = Body.of(listed(points, pairs))
    related = Relations.of(points, pairs).draw(20_000, hf.seeded(10)) @ points.T
    known = Facets.of(body).draw(20_000, hf.seeded(11)) @ body.turn.T
    for row in np.random.default_rng(12).standard_normal((6, 5)):
        assert stats.ks_2samp(related @ row, known @ row).pvalue > LEAST
        assert stats.ks_2samp(1.2 * related @ row, known @ row).pvalue < LEAST
    shares = [np.abs(each @ np.linalg.inv(body.turn).T @ body.points.T).max(axis=1) for each in (related, known)]
    assert stats.ks_2samp(*shares).pvalue > LEAST


def test_variances_are_those_of_the_draws():
    body = body_of(5, 11, 3)
    facets = Facets.of(body)
    noise = facets.draw(40_000, hf.seeded(8))
    found = noise.T @ noise / len(noise)
    spread = np.sqrt(((noise[:, :, None] * noise[:, None, :]) ** 2).mean(axis=0) / len(noise))
    assert (np.abs(found - facets.moments) < 6 * spread).all()
    assert (np.abs(1.2 * found - facets.moments) > 6 * spread).any()
