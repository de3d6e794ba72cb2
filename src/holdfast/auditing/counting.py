"""Counts and what they prove: Clopper–Pearson limits, and one false-alarm rate shared by all tests of an audit."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy import special

#: The chance that an audit calls any true statement violated, over all its pairs, events and rounds together.
FALSE_ALARM = 1e-9


def least_probability(count: int, size: int, alpha: float) -> float:
    """A lower limit of a probability: above it with chance at most alpha (Clopper and Pearson 1934)."""
    return 0.0 if count == 0 else float(special.betaincinv(count, size - count + 1, alpha))


def largest_probability(count: int, size: int, alpha: float) -> float:
    """An upper limit of a probability: below it with chance at most alpha (Clopper and Pearson 1934)."""
    return 1.0 if count == size else float(special.betainccinv(count + 1, size - count, alpha))


@dataclass
class FalseAlarms:
    """Hands out the false-alarm rate: the k-th test of an audit gets 6/(π²k²) of it, so that all sum to it at most.

    How many tests there will be need not be known, and when the audit stops may depend on what it has seen: each test
    fails with at most its own rate given everything before it, and rates of a fixed sequence are added
    (docs/theory/auditing.md).
    """

    total: float = FALSE_ALARM
    tests: int = field(default=0)

    def next(self) -> float:
        """The rate of the next test."""
        self.tests += 1
        return self.total * 6 / (np.pi**2 * self.tests**2)


def rough_limits(
    counts: npt.NDArray[np.float64], against: npt.NDArray[np.float64], sizes: tuple[int, int], confirming: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Limits that `confirming` fresh draws would about give, from counts among `sizes`; only for choosing events."""
    z = 7.0
    p, q = (counts + 0.0) / sizes[0], (against + 0.5) / sizes[1]
    low = p - z * np.sqrt(p * (1 - p) / confirming) - z * z / (6 * confirming)
    high = q + z * np.sqrt(q * np.maximum(1 - q, 0.0) / confirming) + z * z / (2 * confirming)
    return np.maximum(low, 0.0), np.minimum(high, 1.0)
