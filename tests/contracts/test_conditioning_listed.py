"""What is said about noise drawn from a list: proved, with a small delta; what does not fit is left to other ways."""

import itertools
import math

import numpy as np
import pytest

import holdfast as hf
from holdfast.arrays import Shared
from holdfast.given import Problem
from holdfast.given.near.listed import listed
from holdfast.given.near.listed import search as listed_search


def cube(*shape):
    return hf.invariant(hf.exact_margins(shape, list(itertools.combinations(range(len(shape)), 2))))


def test_narrow_noise_on_tables_of_four_axes_is_proved():
    mechanism = hf.laplace(hf.margins((2, 2, 2, 2)), scale=1).given(cube(2, 2, 2, 2))
    assert mechanism.method == "listed"
    statement = mechanism.guarantee
    assert (statement.status, statement.records, statement.epsilon) == ("proved", 4, 8.0)
    assert statement.delta == pytest.approx((1 + math.exp(8)) * 1e-12)
    assert any("from a list" in caveat for caveat in statement.caveats)
    values = mechanism.simulate(np.arange(16), 3_000, rng=hf.seeded(1)).reshape(3_000, 2, 2, 2, 2)
    assert (values.sum(axis=(1, 2)) == np.arange(16).reshape(2, 2, 2, 2).sum(axis=(0, 1))).all()
    assert (values.sum(axis=(2, 4)) == np.arange(16).reshape(2, 2, 2, 2).sum(axis=(1, 3))).all()
    changed = (values.reshape(3_000, 16) != np.arange(16)).any(axis=1).mean()
    assert 0.01 < changed < 0.04  # 60 e^{−8} and a little more
    assert np.allclose(mechanism.standard_error(), math.sqrt(changed / 2), rtol=0.3)


def test_bounds_keep_the_proof():
    """The list is public; bounds leave a part of it that depends on the table."""
    mechanism = hf.laplace(hf.margins((3, 3, 3)), scale=1).given(cube(3, 3, 3) & hf.nonnegative(), tau=1e-8)
    assert mechanism.method == "listed"
    assert mechanism.guarantee.status == "proved"
    assert mechanism.source.plan.evidence[0].distance == 1e-8
    values = mechanism.simulate(np.arange(27) % 3, 200, rng=hf.seeded(2))
    assert values.min() == 0
    assert (values != np.arange(27) % 3).any()
    with pytest.raises(hf.Refused, match="depends on the data"):
        mechanism.standard_error()


def test_the_distance_is_small_enough_for_the_epsilon():
    """The list for a tiny distance would be long here, so the one that ε needs is made."""
    mechanism = hf.laplace(hf.margins((3, 3, 3)), scale=1).given(cube(3, 3, 3))
    assert mechanism.source.plan.evidence[0].distance == 1e-9
    assert mechanism.guarantee.delta == pytest.approx((1 + math.exp(8)) * 1e-9)


@pytest.mark.parametrize(
    ("kind", "shape", "scale"),
    [("laplace", (2, 2, 2, 2), 40), ("laplace", (2, 2, 2, 2, 2), 1), ("gaussian", (3, 3, 3), 40)],
    ids=["wide", "many dimensions", "wide, Gaussian"],
)
def test_what_does_not_fit_into_a_list_is_refused(kind, shape, scale):
    make = hf.laplace if kind == "laplace" else hf.gaussian
    with pytest.raises(hf.Refused, match="method 'listed' cannot draw"):
        make(hf.margins(shape), scale=scale).given(cube(*shape), method="listed").method  # noqa: B018


@pytest.mark.parametrize("limit", ["MOST_VECTORS", "MOST_VISITS", "MOST_SHELLS", "LARGEST_STEP"])
def test_a_list_that_turns_out_too_long_is_not_accepted(limit, monkeypatch):
    """Two scales: a list is made before anything is promised."""
    scales = [0.8, 1.0] * 9
    base = hf.laplace(hf.histogram(18), scale=scales).base
    asked = Problem(base.law, cube(2, 3, 3).system(18))
    monkeypatch.setattr(listed, "LISTS", Shared(listed.MOST_LISTS))
    monkeypatch.setattr(listed if limit == "MOST_SHELLS" else listed_search, limit, 3)
    assert not listed.accepts(asked)
    monkeypatch.undo()
    assert listed.accepts(Problem(base.law, cube(2, 3, 3).system(18)))


def test_a_search_that_takes_too_long_is_refused(monkeypatch):
    mechanism = hf.laplace(hf.margins((2, 3, 3)), scale=1).given(cube(2, 3, 3))
    assert mechanism.method == "listed"
    monkeypatch.setattr(listed, "LISTS", Shared(listed.MOST_LISTS))
    monkeypatch.setattr(listed_search, "MOST_VISITS", 10)
    with pytest.raises(hf.Refused, match="could not be listed in time"):
        mechanism.noise(1)


def test_lists_are_shared_and_few_are_kept(monkeypatch):
    monkeypatch.setattr(listed, "LISTS", Shared(listed.MOST_LISTS))
    laws = [hf.laplace(hf.histogram(18), scale=scale).base.law for scale in (0.5, 0.6, 0.7, 0.8, 0.9)]
    first = listed._list(Problem(laws[0], cube(2, 3, 3).system(18)))
    assert listed._list(Problem(laws[0], cube(2, 3, 3).system(18))) is first
    for law in laws[1:]:
        assert listed._list(Problem(law, cube(2, 3, 3).system(18))) is not first
    assert 0 < len(listed.LISTS) <= listed.MOST_LISTS
