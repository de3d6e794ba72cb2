"""Sums of released values by group, exact for whole numbers, and their comparison."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[Any]
#: Below this size 64 bits hold every sum.
SAFE = 2**62
#: Relative error that sums of real numbers may have.
TOLERANCE = 1e-9


def totals(values: Values, group: npt.NDArray[np.int64], count: int) -> tuple[Values, Values]:
    """Return each group's sum, exact for whole numbers, and the sum of sizes that its rounding depends on."""
    sizes = np.zeros(count)
    np.add.at(sizes, group, np.abs(values.astype(np.float64)))
    whole = values.dtype.kind == "i"
    exact = whole and sizes.max(initial=0.0) >= SAFE
    sums = np.zeros(count, dtype=object if exact else values.dtype)
    np.add.at(sums, group, values.astype(object) if exact else values)
    return sums, np.zeros(count) if whole else sizes


def first_unequal(expected: Values, sums: Values, sizes: Values) -> int | None:
    """Return the first place where a value is not its sum, or None."""
    if sizes.any():
        wrong = np.abs(expected - sums) > TOLERANCE * np.maximum(1.0, sizes + np.abs(expected))
    else:
        wrong = np.asarray(expected != sums, dtype=bool)
    places = np.flatnonzero(wrong)
    return int(places[0]) if places.size else None
