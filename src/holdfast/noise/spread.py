"""What is known about the errors of a release before any data is touched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.noise.independent import Independent

#: Simulated draws behind errors that have no closed form here.
STUDY = 20_000


@dataclass(frozen=True, eq=False)
class Spread:
    """The error of every output, for a law of noise that does not depend on the data.

    `standard_errors` has one entry per output; `variance_of(weights)` is the variance of the error of a
    weighted sum of outputs; `quantiles(p)` gives every output's p-quantile of the error, and `measured` says
    that these quantiles come from simulation and not from the law itself.
    """

    standard_errors: npt.NDArray[np.float64]
    variance_of: Callable[[npt.NDArray[np.float64]], float]
    quantiles: Callable[[float], npt.NDArray[Any]]
    measured: bool = False

    def times(self, unit: float) -> Spread:
        """The same errors counted in another unit."""
        if unit == 1:
            return self
        return Spread(
            self.standard_errors * unit,
            lambda weights: self.variance_of(weights) * unit**2,
            lambda p: self.quantiles(p) * unit,
            self.measured,
        )


def joined_spread(n: int, outputs: Sequence[npt.NDArray[np.int64]], parts: Sequence[Spread | None]) -> Spread | None:
    """Errors of n outputs from those of independent shares of them; None where those of one share are not known."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    if len(known) == 1:
        return known[0]

    def gathered(pieces: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
        result = np.empty(n)
        for chosen, piece in zip(outputs, pieces, strict=True):
            result[chosen] = piece
        return result

    def variance_of(weights: npt.NDArray[np.float64]) -> float:
        return sum(part.variance_of(weights[chosen]) for chosen, part in zip(outputs, known, strict=True))

    return Spread(
        gathered([part.standard_errors for part in known]),
        variance_of,
        lambda p: gathered([part.quantiles(p) for part in known]),
        measured=any(part.measured for part in known),
    )


def simulated_quantiles(
    draws: Callable[[], npt.NDArray[Any]],
) -> Callable[[float], npt.NDArray[Any]]:
    """Quantiles of each output's error over simulated draws of the noise, (size, n), made once when asked."""
    kept: list[npt.NDArray[Any]] = []

    def quantiles(p: float) -> npt.NDArray[Any]:
        if not kept:
            kept.append(np.sort(draws(), axis=0))
        ordered = kept[0]
        # The rank above p(size + 1) on the side of the tail: an interval is never too short for its draws.
        size = len(ordered)
        rank = np.floor(p * (size + 1)) if p < 0.5 else np.ceil(p * (size + 1))
        return ordered[int(np.clip(rank - 1, 0, size - 1))]

    return quantiles


def independent_spread(law: Independent) -> Spread:
    """Errors of independent noise, from the law itself."""
    variances = law.variances
    return Spread(
        standard_errors=np.sqrt(variances),
        variance_of=lambda weights: float((weights**2 * variances).sum()),
        quantiles=law.quantiles,
    )


def simulated_spread(draws: Callable[[int], npt.NDArray[Any]]) -> Spread:
    """Errors measured on STUDY simulated draws of the noise, `draws(size)` of shape (size, n)."""
    study = draws(STUDY).astype(np.float64)
    return Spread(
        study.std(axis=0),
        lambda weights: float((study @ weights).var()),
        simulated_quantiles(lambda: study),
        measured=True,
    )
