"""What is known about the errors of a release before any data is touched."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from holdfast.arguments import Refused
from holdfast.arrays import Array, Floats, Ints
from holdfast.noise.error_model import ErrorModel, of_independent
from holdfast.noise.independent import Independent
from holdfast.noise.inversion import Characteristic
from holdfast.noise.reach import reach_of

#: Simulated draws behind errors that have no closed form here.
STUDY = 20_000
#: How often a limit measured on simulated draws lies inside the quantile it is a limit of.
MISSED = 1e-6
#: Errors that are simulated in all for quantiles, and the least number of draws, which 95 % intervals need.
MOST_DRAWN, FEWEST = 1 << 25, 1_500


@dataclass(frozen=True, eq=False)
class Spread:
    """The error of every output, for a law of noise that does not depend on the data.

    `standard_errors` has one entry per output; `variance_of(weights)` is the variance of the error of a
    weighted sum of outputs; `quantiles(p)` gives every output's p-quantile of the error, and `measured` says
    that these quantiles come from simulation and not from the law itself: they are then confidence limits, which lie
    outside the law's own quantile but for one time in a million. `reach(tail)`: how many of its standard errors any
    weighted sum of outputs reaches on either side at most; None where no more is known than for every law.
    `characteristic`: characteristic functions of weighted sums. `model`: what errors are made of, where that tells all.
    """

    standard_errors: Floats
    variance_of: Callable[[Floats], float]
    quantiles: Callable[[float], Array]
    measured: bool = False
    reach: Callable[[float], float] | None = None
    characteristic: Characteristic | None = None
    model: ErrorModel | None = None

    def times(self, unit: float) -> Spread:
        if unit == 1:
            return self
        return Spread(
            self.standard_errors * unit,
            lambda weights: self.variance_of(weights) * unit**2,
            lambda p: self.quantiles(p) * unit,
            self.measured,
            self.reach,
            None if self.characteristic is None else self.characteristic.times(unit),
            None if self.model is None else replace(self.model, unit=self.model.unit * unit),
        )


def joined_spread(n: int, outputs: Sequence[Ints], parts: Sequence[Spread | None]) -> Spread | None:
    """Errors of n outputs from those of independent shares of them; None where those of one share are not known."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    if len(known) == 1:
        return known[0]

    def gathered(pieces: list[Array]) -> Array:
        result = np.empty(n)
        for chosen, piece in zip(outputs, pieces, strict=True):
            result[chosen] = piece
        return result

    def variance_of(weights: Floats) -> float:
        return sum(part.variance_of(weights[chosen]) for chosen, part in zip(outputs, known, strict=True))

    def together(weights: Floats, frequencies: Floats) -> Floats | None:
        found = np.ones(frequencies.size)
        for chosen, law in zip(outputs, laws, strict=True):
            more = law.of(weights[chosen], frequencies)
            if more is None:
                return None
            found *= more
        return found

    laws = [part.characteristic for part in known if part.characteristic is not None]
    characteristic = Characteristic(
        together,
        lambda weights: gathered([law.at_leaves(weights[chosen]) for chosen, law in zip(outputs, laws, strict=True)]),
        lambda weights, t: sum(law.tilted(weights[chosen], t) for chosen, law in zip(outputs, laws, strict=True)),
    )
    return Spread(
        gathered([part.standard_errors for part in known]),
        variance_of,
        lambda p: gathered([part.quantiles(p) for part in known]),
        measured=any(part.measured for part in known),
        characteristic=characteristic if len(laws) == len(known) else None,
    )


def simulated_quantiles(draws: Callable[[], Array]) -> Callable[[float], Array]:
    """Confidence limits for quantiles of each output's error, over simulated draws, (size, n), made once when asked.

    A limit for p > ½ is at least the p-quantile of the law, and one for p < ½ at most, but for MISSED. *Law:* of
    `size` independent draws as many lie below the p-quantile as a binomial law of p says, or fewer; so the r-th
    smallest is a limit if that law is r or more with probability MISSED at most.
    """
    kept: list[Array] = []

    def quantiles(p: float) -> Array:
        if not kept:
            kept.append(np.sort(draws(), axis=0))
        size = len(kept[0])
        # One more than the largest count of draws below the quantile, MISSED apart.
        rank = bisect_left(range(size), True, key=lambda k: bool(special.bdtrc(k, size, max(p, 1 - p)) <= MISSED)) + 1
        if rank > size:
            raise Refused(
                f"confidence must be lower here, since errors are measured on {size:,} simulated draws, which cannot "
                "show such rare ones"
            )
        return np.asarray(kept[0][size - rank if p < 0.5 else rank - 1])

    return quantiles


def bounded_quantiles(law: Independent, errors: Floats) -> Callable[[float], Array]:
    """Limits for quantiles of weighted sums of noise with these standard errors: proved, and a little wide."""
    reach = reach_of(law)
    return lambda p: np.asarray(errors * (reach(1 - p) if p >= 0.5 else -reach(p)))


def study_size(n: int) -> int | None:
    """So many draws of n errors measure 95 % intervals within memory and seconds; None: there are too many errors."""
    return int(np.clip(MOST_DRAWN // n, FEWEST, STUDY)) if n * FEWEST <= MOST_DRAWN else None


def studied_quantiles(
    study: Callable[[int], Array], law: Independent, errors: Floats
) -> tuple[Callable[[float], Array], bool]:
    """Quantiles of weighted sums of independent noise, and whether they are measured.

    On simulated errors `study(size)` where they can show them, and otherwise by a bound that is a little wide.
    """
    size, otherwise = study_size(len(errors)), bounded_quantiles(law, errors)
    if size is None:
        return otherwise, False
    measured = simulated_quantiles(lambda: study(size))

    def quantiles(p: float) -> Array:
        try:
            return measured(p)
        except Refused:
            return otherwise(p)

    return quantiles, True


def independent_spread(law: Independent) -> Spread:
    variances = law.variances
    return Spread(
        standard_errors=np.sqrt(variances),
        variance_of=lambda weights: float((weights**2 * variances).sum()),
        quantiles=law.quantiles,
        reach=reach_of(law),
        characteristic=of_independent(law, lambda weights: weights),
        model=ErrorModel("moved", law),
    )


def simulated_spread(draws: Callable[[int], Array]) -> Spread:
    """Errors measured on STUDY simulated draws of the noise, `draws(size)` of shape (size, n)."""
    study = draws(STUDY).astype(np.float64)
    return Spread(
        study.std(axis=0),
        lambda weights: float((study @ weights).var()),
        simulated_quantiles(lambda: study),
        measured=True,
    )
