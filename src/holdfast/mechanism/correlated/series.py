"""A table published in every period: `hf.series` of a mechanism, drawn period by period from one secret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Refused, of_type, reals, whole
from holdfast.arrays import Ints
from holdfast.mechanism.correlated.over_time import AdditiveOverTime
from holdfast.mechanism.mechanism import Mechanism, moved_release
from holdfast.mechanism.noise_source import Plain
from holdfast.mechanism.release import Release
from holdfast.noise.over_time import Factor
from holdfast.noise.time_factors import Chosen, chosen, sums_of
from holdfast.privacy import Guarantee
from holdfast.randomness import Keys

#: How many periods the sums span that are wanted by name; 0: all so far.
SPANS = {"period": 1, "month": 1, "quarter": 3, "year": 12, "running": 0}


@dataclass(frozen=True, eq=False)
class Series:
    """One table in every period, at one price for all of them; see `series`.

    >>> import holdfast as hf
    >>> hf.series(hf.gaussian(hf.histogram(2), rho=1), 12).guarantee.rho
    1.0
    """

    first: Mechanism = field(repr=False)
    choice: Chosen = field(repr=False)

    @property
    def base(self) -> AdditiveOverTime:
        assert isinstance(self.first.base, AdditiveOverTime)
        return self.first.base

    @property
    def factor(self) -> Factor:
        """How the noise of the periods hangs together."""
        return self.choice.factor

    @property
    def periods(self) -> int:
        """How many periods there are."""
        return self.factor.periods

    @property
    def guarantee(self) -> Guarantee:
        """What all periods together promise."""
        return self.first.guarantee

    def at(self, period: int) -> Mechanism:
        """The mechanism of one period, from 1: its errors, and the statements about all periods."""
        number = whole("period", period, at_least=1, at_most=self.periods)
        return self.first.over(self.base.at(number - 1))

    def standard_error(self, weights: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The standard error of every output, summed over periods with these weights, one for each."""
        checked = reals("weights", weights, (self.periods,))
        times = self.factor.variance(checked) / self.factor.of_period(0)
        return self.first.standard_error() * np.sqrt(float(times))

    def release(self, truth: npt.ArrayLike, period: int, keys: Keys) -> Release:
        """Release one period, from 1; with the same truth and keys it is the same again.

        Law: noise that follows from the keys and the period alone. Guarantee: `guarantee`, for all periods together,
        as long as no period is released for two truths, and the keys serve no other series: differences would be exact.
        Nobody but the caller can see to that.
        """
        mechanism, secret = self.at(period), of_type("keys", keys, Keys)
        drawn = draw(mechanism, mechanism.checked(truth), lambda t: secret.at("period", t), secret.at("ties", period))
        return replace(drawn, guarantees=mechanism.guarantees)


def draw(mechanism: Mechanism, truth: npt.NDArray[Any], stream: Any, ties: Any) -> Release:
    """Draw the period of a mechanism over time: `stream(t)` has the words of period t, from 0."""
    return moved_release(mechanism, truth, truth * measured(mechanism) + noise_of(mechanism, stream)[-1], ties)


def measured(mechanism: Mechanism) -> Ints:
    return np.isfinite(mechanism.base.law.variances).astype(np.int64)


def noise_of(mechanism: Mechanism, stream: Any) -> Ints:
    """The noise of all periods up to the mechanism's own, (periods, n), 0 where nothing is measured."""
    base = mechanism.base
    assert isinstance(base, AdditiveOverTime)
    streams = {t: stream(t) for t in range(base.period + 1)}
    found = np.zeros((base.period + 1, base.query.n), dtype=np.int64)
    which = base.law.complete
    for number, square in enumerate(base.squares):
        at = np.flatnonzero(which == number)
        if square is not None and at.size:
            found[:, at] = base.factor.draw(square, at.size, base.period, streams.__getitem__)
    return found


def series(
    mechanism: Mechanism, periods: int, *, wanted: Mapping[str, float] | None = None, several: int = 1
) -> Series:
    """The same table in every period, for what the mechanism costs once.

    Args:
        mechanism: whole Gaussian noise, perhaps moved by `onto`; its ρ is that of all periods together.
        periods: how many there are at most; some may be left out.
        wanted: how much errors of sums count: {"month": 1, "year": 1, "running": 0}; None: months and years.
        several: in how many periods a person's records count at most; 1: every record is of one period.

    Law:
        q(x_t) + n_t, n_t integer Gaussian around a centre that the noise of earlier periods decides, and then moved.
    Guarantee:
        ρ of all periods together, data of later periods chosen by what was published included (THEORY H14).

    Example:
        >>> import holdfast as hf
        >>> months = hf.series(hf.gaussian(hf.histogram(2), rho=0.5), 12, wanted={"month": 1, "year": 1})
        >>> months.standard_error([1] * 12).round(1).tolist(), months.standard_error([1] + [0] * 11).round(1).tolist()
        ([1.4, 1.4], [1.3, 1.3])
    """
    count = whole("periods", periods, at_least=1, at_most=MOST_PERIODS)
    times = whole("several", several, at_least=1, at_most=count)
    asked = of_type("mechanism", mechanism, Mechanism)
    if not isinstance(asked.source, Plain) or isinstance(asked.base, AdditiveOverTime):
        raise Refused("a series is made of gaussian() noise, alone or moved by onto(): given() and extend() have none")
    rho = asked.guarantee.rho
    found = chosen(wanted_sums(count, wanted), (3, 12), times)
    if rho is None:
        raise Refused("a series is made of whole Gaussian noise: use gaussian()")
    relation = asked.base.neighbours
    first = asked.over(AdditiveOverTime.of(asked.base, found.factor, times, relation.records))
    return Series(first.calibrated(rho=Fraction(rho)), found)


#: Periods of a series at most: ten years of months, or two of weeks.
MOST_PERIODS = 120


def wanted_sums(periods: int, wanted: Mapping[str, float] | None) -> Any:
    """What is wanted of so many periods; every name is known, no weight negative, some above 0."""
    given = {"period": 1.0, **({"year": 1.0} if periods >= SPANS["year"] else {})} if wanted is None else wanted
    for name, weight in given.items():
        if name not in SPANS:
            raise Refused(f"wanted knows {', '.join(SPANS)}, found {name!r}")
        if not 0 <= float(weight) < float("inf"):
            raise Refused(f"wanted gives {name} a weight of 0 or more, found {weight!r}")
    kept = {name: float(weight) for name, weight in given.items() if float(weight)}
    if not kept:
        raise Refused("wanted gives no sum a weight above 0")
    return sums_of(periods, SPANS, kept)
