"""How often intervals of ratios cover: every error of two sums of whole Laplace noise, with its probability."""

import math

import numpy as np
import pytest

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
