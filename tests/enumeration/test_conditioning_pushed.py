"""One large cell among empty ones: bounds push the noise by many scales, and windows must lie where it goes.

With two rows, a first row (large, 0, …, 0) and a second one far from its bounds, −u₁₁ is a sum of K − 1 independent
geometric numbers with ratio e^{−4/λ}; with three rows its law is a two-dimensional convolution.
"""

import numpy as np
import pytest
from scipy import stats

import holdfast as hf
from holdfast.given import Problem
from holdfast.given.near.two_way.rows_in_turn import widest_window
from holdfast.given.near.two_way.typical import _cell, rounded, typical
from holdfast.given.near.walk import walk

LARGE = 10_000


def pushed(rows, columns, scale):
    """The problem and the table: margins exact and nothing negative."""
    table = np.full((rows, columns), LARGE)
    table[0, 1:] = 0
    held = hf.invariant(hf.exact_margins((rows, columns), [(0,), (1,)])) & hf.nonnegative()
    law = hf.laplace(hf.histogram(table.size), scale=scale, neighbours="replace-one").base.law
    return Problem(law, held.system(table.size)), table


def windows(chain, row, column):
    """The noise of one cell that the chain can reach."""
    held = np.flatnonzero(chain.table.weights[row, column] > 0) - chain.table.weights.shape[2] // 2
    return held.min() + chain.centre[row, column], held.max() + chain.centre[row, column]


def three_rows(columns, scale, tilt, size=512):
    """The law of u₁₁ on a 3×K table, by Fourier transforms of tilted weights: row sums are held, so tilts cancel."""
    places = np.fft.fftfreq(size, 1 / size).astype(int)
    one, two = np.meshgrid(places, places, indexing="ij")
    logs = -(np.abs(one) + np.abs(two) + np.abs(one + two)) / scale + tilt * one
    empty = np.where(one >= 0, np.exp(logs), 0.0)
    others = np.fft.ifft2((np.fft.fft2(empty) / empty.sum()) ** (columns - 1)).real.clip(0.0)
    joint = np.exp(logs - logs.max()) * others[-one % size, -two % size]
    return places, joint.sum(axis=1) / joint.sum()


@pytest.mark.parametrize(("columns", "scale"), [(3, 2), (30, 1), pytest.param(450, 2, marks=pytest.mark.slow)])
def test_windows_hold_what_two_rows_leave_to_the_large_cell(columns, scale):
    problem, table = pushed(2, columns, scale)
    chain = walk._row_chain(problem, walk._row_cells(problem), table.ravel())
    low, high = windows(chain, 0, 0)
    law = stats.nbinom(columns - 1, -np.expm1(-4 / scale))
    assert law.sf(-low) < 1e-13
    assert law.cdf(-high - 1) < 1e-13
    # Sums of the last columns of the first row, less their centre, are followed far enough, too.
    for first in {1, columns // 2, columns - 1}:
        half = stats.nbinom(columns - first, -np.expm1(-4 / scale))
        middle, width = chain.centre[0, first:].sum(), chain.table.widths[first]
        assert half.sf(middle + width) < 1e-13
        assert half.cdf(middle - width - 1) < 1e-13


def test_windows_hold_what_three_rows_leave_to_the_large_cell():
    """A window of one free cell ends at −69 here, and leaves out 16.5 % of the law."""
    problem, table = pushed(3, 260, 2)
    places, chances = three_rows(260, 2.0, -0.9)
    assert chances[places < -69].sum() == pytest.approx(0.1646063, abs=1e-6)
    chain = walk._row_chain(problem, walk._row_cells(problem), table.ravel())
    low, high = windows(chain, 0, 0)
    assert chances[(places < low) | (places > high)].sum() < 1e-13


def test_cells_have_the_moments_of_their_listed_law():
    words = np.random.default_rng(1)
    for _ in range(300):
        square, rate = bool(words.integers(2)), words.uniform(0.05, 2)
        low, high = -int(words.integers(0, 30)), int(words.integers(0, 30))
        tilt = words.uniform(-4, 4) * rate
        places = np.arange(low, high + 1.0)
        weights = np.exp(-rate * (places**2 if square else np.abs(places)) + tilt * places)
        mean = (weights * places).sum() / weights.sum()
        variance = (weights * places**2).sum() / weights.sum() - mean**2
        found = _cell(rate, square, float(low), float(high), tilt)
        assert found == pytest.approx((np.log(weights.sum()), mean, variance), rel=1e-6, abs=1e-7)


def test_typical_tables_keep_their_margins_and_are_rounded_to_them():
    words = np.random.default_rng(2)
    for _ in range(30):
        shape = tuple(words.integers(2, 9, 2))
        low = -words.integers(0, 2, shape) * words.integers(0, 60, shape)
        found = typical(words.uniform(0.2, 2, shape), bool(words.integers(2)), low, np.full(shape, 2**40), 2**40)
        spread = np.sqrt(found.variances.sum())
        assert np.abs(found.means.sum(axis=0)).max() < 0.01 * spread
        assert np.abs(found.means.sum(axis=1)).max() < 0.01 * spread
        centre = rounded(found.means)
        assert not centre.sum(axis=1).any()
        assert np.abs(centre - found.means).max() < 1.01
        assert (found.deviations <= np.sqrt(found.variances) * (1 + 1e-9)).all()


def test_public_tables_with_large_cells_are_measured():
    problem, _ = pushed(3, 5, 2)
    tables = [table.reshape(3, 5) for table in walk._row_probes(problem, walk._row_cells(problem))]
    large = widest_window(2, False, 15)
    assert any(((table > 0).sum(axis=1) == [5, 1, 1]).all() and table.max() >= large for table in tables)


@pytest.mark.slow
def test_draws_have_the_law_of_the_large_cell():
    problem, table = pushed(2, 450, 2)
    chain = walk._row_chain(problem, walk._row_cells(problem), table.ravel())
    stream = hf.seeded(4)
    states = chain.start(60, stream)
    for _ in range(2):
        states = chain.advance(states, stream)
    law = stats.nbinom(449, -np.expm1(-2.0))
    ends = law.ppf(np.arange(1, 6) / 6)
    seen = np.bincount(np.searchsorted(ends, -states[:, 0]), minlength=6)
    wanted = 60 * np.diff(np.concatenate([[0.0], law.cdf(ends), [1.0]]))
    assert stats.chisquare(seen, wanted).pvalue > 1e-6
    assert (states[:, 0] < -62).any()  # where the window of a free cell would end
