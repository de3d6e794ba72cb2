"""How often intervals of ratios cover: every error of two sums of whole Laplace noise, with its probability."""

import math
from dataclasses import replace

import numpy as np
import pytest

import holdfast as hf
from holdfast.release.certificate import comparing
from holdfast.release.certificate.comparing import studied_ratio

ASKED = ((0.95, (333, 1000)), (0.95, (0, 60)), (0.6, (-70, 90)))


def mass(scale):
    """Whole Laplace noise: places that hold all but some 1e-5, and probabilities."""
    alpha = math.exp(-1 / scale)
    places = np.arange(-math.ceil(12 * scale) - 1, math.ceil(12 * scale) + 2)
    return places, alpha ** np.abs(places) * (1 - alpha) / (1 + alpha)


@pytest.mark.parametrize("scale", [0.2, 0.3, 0.4, 0.5, *(pytest.param(s, marks=pytest.mark.slow) for s in (0.7, 1.0))])
@pytest.mark.parametrize("shared", [False, True], ids=["apart", "a part of the whole"])
def test_ratios_cover_as_often_as_they_say(scale, shared):
    """`shared`: the lower sum holds the upper one, as a share of a whole does."""
    places, law = mass(scale)
    stream = np.random.default_rng(1)  # drawn errors deviate more than the law's, as in every other study
    drawn = stream.choice(places, p=law / law.sum(), size=(2, 4_000)).astype(np.float64)
    study = drawn[0], drawn[1] + shared * drawn[0]
    for confidence, truth in ASKED:
        covered, widths = 0.0, []
        for e, p in zip(places, law, strict=True):
            for f, q in zip(places, law, strict=True):
                if p * q < 1e-6:
                    continue
                found = studied_ratio(truth[0] + e, truth[1] + f + shared * e, study, (1 - confidence) / 2)
                covered += p * q * (found[0] <= truth[0] / truth[1] <= found[1])
                widths.append(found[1] - found[0])
        assert covered >= confidence
        assert max(widths) < 40 * scale / truth[1] + 4 / truth[1]


def test_a_ratio_has_no_end_where_the_lower_sum_may_be_0_and_none_that_so_few_errors_cannot_show():
    study = tuple(np.random.default_rng(7).laplace(size=(2, 4_000)))
    assert studied_ratio(5.0, 2.0, study, 0.025) == (-math.inf, math.inf)
    assert studied_ratio(5.0, 200.0, study, 1e-6) is None


TREE = hf.Hierarchy.from_parents([-1, 0, 0])
#: Weights of one leaf over the other, and over the root, which holds both.
PAIRS = {"apart": ([0, 1, 0], [0, 0, 1]), "a part of the whole": ([0, 1, 0], [1, 0, 0])}
OPEN = (-math.inf, math.inf)


def noise_given_sums(kind, scale):
    """Noise of a root and its two leaves given that it adds up, but for the rarest: (m, 3), and probabilities."""
    size = math.ceil((12 if kind == "laplace" else 6) * scale) + 2
    one, two = (axis.ravel() for axis in np.meshgrid(*[np.arange(-size, size + 1)] * 2))
    errors = np.stack([one + two, one, two], axis=1)
    away = np.abs(errors) / scale
    law = np.exp(-(away if kind == "laplace" else away**2 / 2).sum(axis=1))
    law /= law.sum()
    return errors[law > 1e-5], law[law > 1e-5]


@pytest.mark.parametrize(("kind", "scale"), [("laplace", 0.2), ("laplace", 0.5), ("laplace", 1.0), ("gaussian", 0.7)])
@pytest.mark.parametrize("pair", PAIRS)
def test_ratios_given_sums_cover_as_often_as_they_say(kind, scale, pair, monkeypatch):
    """Both sums are within their ends, each at half the level; how far these reach depends on no draw."""
    mechanism = getattr(hf, kind)(hf.counts(TREE), scale=scale).given(hf.consistent(TREE), method="hierarchy")
    truth, weights = np.array([1333, 333, 1000]), np.array(PAIRS[pair], dtype=np.float64)
    bars, reach, known = mechanism.error_bars(truth, truth), comparing._half, {}

    def once(tail, sum_):
        key = tail, sum_.weights.tobytes()
        known[key] = known[key] if key in known else reach(tail, sum_)
        return known[key]

    monkeypatch.setattr(comparing, "_half", once)
    true, errors = np.divide(*(weights @ truth)), noise_given_sums(kind, scale)
    for confidence in (0.95, 0.6):
        covered = 0.0
        for error, p in zip(*errors, strict=True):
            seen = replace(bars, centre=truth + error)
            above, below = (comparing.Summed(0.0, each, seen, OPEN, lambda: None) for each in weights)
            low, high = comparing.ratio(above, below, (1 - confidence) / 2)[1]
            covered += p * (low - 1e-12 <= true <= high + 1e-12)
        assert covered >= confidence
        assert high - low < 0.02 * max(scale, 0.5)
    assert len(known) == 4


@pytest.mark.parametrize("scale", [0.2, 1.0, pytest.param(0.5, marks=pytest.mark.slow)])
def test_ratios_of_moved_noise_cover_as_often_as_they_say(scale):
    """Of errors d = |e − rf| at the true ratio r, the smallest that are rarer than is allowed must be covered."""
    mechanism = hf.laplace(hf.histogram(2), scale=scale).onto(hf.nonnegative())
    truth, weights = np.array([333, 1000]), np.eye(2)
    bars, (places, law) = mechanism.error_bars(truth, truth), mass(scale)
    far = np.abs(places[:, None] - 0.333 * places).ravel()
    order = np.argsort(far, kind="stable")
    beyond = 1 - np.cumsum(np.multiply.outer(law, law).ravel()[order])
    last = order[np.flatnonzero(beyond <= 0.05)[0]]  # what is farther away is rarer than 5 in 100
    seen = replace(bars, centre=truth + np.array([places[last // places.size], places[last % places.size]]))
    above, below = (comparing.Summed(0.0, each, seen, OPEN, lambda: None) for each in weights)
    low, high = comparing.ratio(above, below, 0.025)[1]
    assert low <= 0.333 <= high
    assert high - low < 0.04 * scale
