"""What errors with a public law are made of: enough for whoever reads a release to compute that law again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from holdfast.arrays import Floats
from holdfast.noise.independent import Independent, Law
from holdfast.noise.inversion import Characteristic

#: Weights that agree to so many parts of the largest are one weight; the normal part is so many times smaller than
#: errors; characteristic functions that are worked on at once.
DIGITS, FINE_BLUR, AT_ONCE = 1e12, 60.0, 1 << 19
#: Places around which theta functions are summed, and σ² below which they are summed on whole numbers.
THETA, NARROW = np.arange(-4, 5), 0.16


@dataclass(frozen=True, eq=False)
class ErrorModel:
    """Independent noise of `law` and the rows whose products with the errors are 0 (None: there are none).

    "moved": the noise is moved there by least squares with `spreads`, "normal": and the law is normal, or all that is
    known of a normal law are variances, where there are no rows. "given": whole
    noise given that it lies there.
    """

    kind: Literal["moved", "normal", "given"]
    law: Independent
    rows: Callable[[], Any] | None = None
    spreads: Floats | None = None
    unit: float = 1.0


def wave(law: Law, x: Floats) -> Floats:
    if law.kind == "laplace":
        return np.asarray(1 / (1 + law.variance * (2 * np.sin(x / 2) ** 2 if law.integer else x**2 / 2)))
    square = float(law.sigma2)  # type: ignore[union-attr]
    if not law.integer:
        return np.asarray(np.exp(-square * x**2 / 2))
    near = np.asarray(x - 2 * np.pi * np.rint(x / (2 * np.pi)))[..., None]
    if square > NARROW:
        found = np.exp(-square * (near + 2 * np.pi * THETA) ** 2 / 2).sum(axis=-1)
        return np.asarray(found / np.exp(-square * (2 * np.pi * THETA) ** 2 / 2).sum())
    weights = np.exp(-(THETA**2) / (2 * square))
    return np.asarray((np.cos(near * THETA) * weights).sum(axis=-1) / weights.sum())


def tilted(law: Law, slopes: Floats) -> Floats:
    if law.kind == "gaussian":
        return np.asarray(float(law.sigma2) * slopes**2 / 2)  # type: ignore[union-attr]
    rest = 1 - law.variance * (np.cosh(np.clip(slopes, -700.0, 700.0)) - 1 if law.integer else slopes**2 / 2)
    return -np.log(rest, where=rest > 0, out=np.full(rest.shape, -np.inf))


def of_independent(law: Independent, moved: Callable[[Floats], Floats]) -> Characteristic:
    """Characteristic functions of Σ moved(weights)·noise."""
    last: list[Any] = [None, ()]

    def parts(weights: Floats) -> list[tuple[Law, Floats, Floats]]:
        if last[0] is not weights:
            most = float((found := np.abs(moved(weights))).max(initial=0.0)) or 1.0
            which = np.zeros(law.n, dtype=np.int64) if law.which is None else law.which
            listed = []
            for k, one in enumerate(law.laws):
                shares, times = np.unique(np.rint(found[which == k] / most * DIGITS), return_counts=True)
                if one is not None and (used := shares > 0).any():
                    listed.append((one, shares[used] / DIGITS * most, times[used].astype(np.float64)))
            last[:] = weights, listed
        return list(last[1])

    def of(weights: Floats, frequencies: Floats) -> Floats:
        logs, step = np.zeros(frequencies.size), max(1, AT_ONCE // frequencies.size)
        with np.errstate(divide="ignore"):  # what is too faint for a double is 0
            for one, sizes, times in parts(weights):
                for at in range(0, sizes.size, step):
                    logs += np.log(wave(one, frequencies[:, None] * sizes[at : at + step])) @ times[at : at + step]
        return np.asarray(np.exp(logs))

    return Characteristic(
        of,
        lambda weights: np.concatenate([np.zeros(1), *(sizes for _, sizes, _ in parts(weights))]),
        lambda weights, t: sum(float(times @ tilted(one, t * sizes)) for one, sizes, times in parts(weights)),
        lattice=law.integer,
        blur=FINE_BLUR,
    )
