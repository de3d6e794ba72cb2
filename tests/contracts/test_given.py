"""What noise given equalities and bounds promises, and what is refused."""

import itertools
import math

import numpy as np
import pytest

import holdfast as hf

ALL_PAIRS = [(0, 1), (0, 2), (1, 2)]


def laplace(shape, epsilon=1, **options):
    return hf.laplace(hf.margins(shape), epsilon=epsilon, **options)


def test_cells_that_no_swap_changes_are_named():
    """The first cell is exact as well, so no swap of two records changes it."""
    constraint = hf.invariant(hf.exact_margins((3, 3), [(0,), (1,)])) & hf.invariant(np.eye(9, dtype=int)[[0]])
    statement = laplace((3, 3)).given(constraint).guarantee
    assert statement.records == 2
    assert any("published exactly" in words for words in statement.unprotected)
    pinned = hf.invariant(hf.exact_margins((3, 3), [(0,), (1,)])) & hf.invariant(np.eye(9, dtype=int)[[0, 1]])
    told = " ".join(laplace((3, 3)).given(pinned).guarantee.unprotected)
    assert "the same whatever records change" in told


def test_whole_gaussian_noise_given_margins_is_drawn_exactly_and_keeps_its_rho():
    """All two-way margins of a 2⁵ table leave 16 dimensions; so do two crossed margins of a 4×5 table, or 12."""
    for shape, keep in (((2,) * 5, list(itertools.combinations(range(5), 2))), ((4, 5), [(0,), (1,)])):
        mechanism = hf.gaussian(hf.margins(shape), scale=2).given(hf.invariant(hf.exact_margins(shape, keep)))
        assert mechanism.method == "lattice"
        statement = mechanism.guarantee
        assert (statement.status, statement.numerical_delta) == ("proved", 0)
        assert statement.rho is not None
        truth = np.arange(math.prod(shape)) % 7
        values = mechanism.simulate(truth, 3, rng=hf.seeded(1)).reshape(3, *shape)
        assert (values != truth.reshape(shape)).any()
        for kept in keep:
            others = tuple(k for k in range(len(shape)) if k not in kept)
            assert (values.sum(axis=tuple(k + 1 for k in others)) == truth.reshape(shape).sum(axis=others)).all()


def test_what_no_way_draws_names_another_verb():
    shape = (4, 4, 9)
    held = hf.invariant(hf.exact_margins(shape, ALL_PAIRS))
    for constraint, words in (
        (held, r"use Gaussian noise, or onto\(\.\.\., integer=False\)"),
        (held & hf.nonnegative(), r"use onto\("),
    ):
        with pytest.raises(hf.Refused, match=words):
            laplace(shape).given(constraint).method  # noqa: B018
    assert hf.gaussian(hf.margins(shape), scale=3).given(held).method == "lattice"


def test_what_cannot_be_drawn_cannot_be_calibrated_or_released():
    crossed = hf.invariant(hf.exact_margins((4, 5), [(0,), (1,)]))
    for law in (laplace((4, 5)), laplace((4, 5), integer=False)):
        for held in (crossed, crossed & hf.nonnegative()):
            with pytest.raises(hf.Refused, match=r"onto\("):
                law.given(held).release(np.arange(20))


def test_few_equalities_are_drawn_exactly_and_proved():
    two_rows = hf.invariant(hf.exact_margins((2, 5), [(0,), (1,)]))
    mechanism = hf.laplace(hf.margins((2, 5)), epsilon=1, integer=False).given(two_rows)
    assert mechanism.method == "solved"
    assert mechanism.guarantee.status == "proved"
    assert mechanism.guarantee.delta == 0
    noise = mechanism.noise(5, rng=hf.seeded(6)).reshape(5, 2, 5)
    assert np.allclose(noise[:, 0], -noise[:, 1])
    assert np.allclose(noise.sum(axis=2), 0)


def test_a_truth_outside_its_bounds_is_refused_without_its_value():
    mechanism = hf.laplace(hf.histogram(4), epsilon=1).given(hf.invariant([[1, 1, 1, 1]]) & hf.nonnegative())
    with pytest.raises(hf.Refused, match="truth violates") as caught:
        mechanism.release([4, 3, -77, 2])
    assert "77" not in str(caught.value)
