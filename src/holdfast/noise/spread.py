"""What is known about the errors of a release before any data is touched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.noise.independent import Independent


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
