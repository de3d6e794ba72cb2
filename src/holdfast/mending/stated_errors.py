"""What is stated about the errors of published figures: how large they are, or the law of noise behind them.

A law gives weights (the variance) and what is certain: uniform, cell-key and rounded figures lie within known limits of
the true ones, which are as likely as the law says. Gaussian and Laplace noise has no limits, but quantiles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.arguments import LARGEST, Refused, as_array, one_of, positive, reals, whole
from holdfast.arrays import Bools, Floats, Ints
from holdfast.mending.published import columns_of

if TYPE_CHECKING:
    from holdfast.noise import Independent

LAWS = ("uniform", "cell_key", "rounding", "random_rounding", "gaussian", "laplace", "weights")
#: Probabilities of a published distribution add up to 1 within this much: they are printed with few digits.
PRINTED = 1e-4


@dataclass(frozen=True, eq=False)
class Stated:
    """What is stated about the errors of n figures.

    `spreads`: by which each counts, its variance; 0 for figures that are exact. `low`, `high`: the true figures lie
    between these for certain (whole numbers, ∓2**62 for no limit), and `likelihood(figures, true)` is, up to a factor,
    how likely figures are where true ones stand behind them; None where no law bounds them. `law`: of noise that has no
    limits.
    """

    words: str
    spreads: Floats
    low: Ints | None = None
    high: Ints | None = None
    law: Independent | None = None
    likelihood: Callable[[Ints, Ints], Floats] | None = None

    @property
    def known(self) -> bool:
        """Whether a law of noise is stated."""
        return self.low is not None or self.law is not None


def column_of(errors: Any) -> str | None:
    """The column of the table that errors name, if they do."""
    if isinstance(errors, str):
        return errors
    if isinstance(errors, Mapping) and len(errors) == 1:
        ((name, size),) = errors.items()
        if name in ("gaussian", "laplace", "weights") and isinstance(size, str):
            return size
    return None


def stated(errors: Any, figures: Floats, beside: Mapping[str, Floats], *, nonnegative: bool, step: Fraction) -> Stated:
    """Read what is stated about published figures (NaN where missing), all counted in steps."""
    n = figures.size
    measured = np.isfinite(figures)
    if errors is None:
        return Stated("no errors are stated: all figures count alike", np.ones(n))
    if isinstance(errors, Mapping):
        if len(errors) != 1:
            raise Refused(f"errors must state one law, such as {{'rounding': 5}}, found {len(errors)}")
        ((name, size),) = errors.items()
        one_of("the law that errors state", name, LAWS)
        if name == "weights":
            weights = _sizes(size, beside, n, measured)
            if (weights == 0).any():
                raise Refused(f"weights must be above 0, but the one of row {int(np.argmin(weights)) + 1} is 0")
            return Stated("weights are stated", 1 / weights)
        if step != 1:
            raise Refused("a law of noise is about whole counts, but the figures have fractions: state standard errors")
        if name == "cell_key":
            return _cell_key(size, figures, measured, nonnegative)
        if name in ("gaussian", "laplace"):
            return _unlimited(name, _sizes(size, beside, n, measured), n)
        return _within(name, size, figures, measured)
    sizes = _sizes(errors, beside, n, measured) / float(step)
    return Stated("standard errors are stated", sizes**2)


def _sizes(given: Any, beside: Mapping[str, Floats], n: int, measured: Bools) -> Floats:
    """Standard errors or scales: one number, one per row, or a column of the table."""
    if isinstance(given, str):
        found = beside[given].copy()
    elif (made := as_array("errors", given)).ndim == 0:
        positive("errors", given)
        return np.full(n, reals("errors", made[None])[0])
    else:
        found = reals("errors", given, (n,)).copy()
    found[~measured] = 1.0  # what is missing has no error of its own
    bad = ~(np.isfinite(found) & (found >= 0))
    if bad.any():
        raise Refused(f"errors must be 0 (exact) or above, but the one of row {int(np.argmax(bad)) + 1} is not")
    return found


def _unlimited(name: str, sizes: Floats, n: int) -> Stated:
    """Whole Gaussian or Laplace noise of these scales."""
    from holdfast.noise import Independent, IntegerGaussian, IntegerLaplace

    used, which = np.unique(sizes, return_inverse=True)
    laws: list[Any] = []
    for size in used.tolist():
        exact = Fraction(size)
        laws.append(None if size == 0 else IntegerGaussian(exact**2) if name == "gaussian" else IntegerLaplace(exact))
    if all(law is None for law in laws):
        raise Refused("errors must not be 0 throughout: then all figures are exact, and only hold can say so")
    law = Independent(tuple(laws), which.astype(np.int32), n)
    variances = np.array([0.0 if one is None else one.variance for one in laws])[which]
    shown = f"scale {used[0]:g}" if used.size == 1 else f"scales {used[0]:g} to {used[-1]:g}"
    return Stated(f"whole {name.capitalize()} noise of {shown} is stated", variances, law=law)


def _within(name: str, size: Any, figures: Floats, measured: Bools) -> Stated:
    """Noise that is uniform within limits, or figures rounded to multiples of a base."""
    number = whole(f"errors[{name!r}]", size, at_least=1 if name == "uniform" else 2, at_most=10**9)
    if name == "uniform":
        reach, variance = number, number * (number + 1) / 3
        words = f"uniform noise from −{number} to {number} is stated"
    else:
        off = np.flatnonzero(measured & (np.mod(figures, number) != 0))
        if off.size:
            raise Refused(
                f"figures are stated to be rounded to multiples of {number}, but the one of row {off[0] + 1} is not"
            )
        nearest = name == "rounding"
        reach = number // 2 if nearest else number - 1
        variance = (number**2 - 1) / (12 if nearest else 6)
        words = f"rounding to {'the nearest multiple' if nearest else 'a multiple next to it'} of {number} is stated"
    centre = np.where(measured, figures, 0).astype(np.int64)
    low, high = (np.where(measured, centre + way * reach, way * LARGEST) for way in (-1, 1))

    def likelihood(figures: Ints, true: Ints) -> Floats:
        return np.ones(true.shape) if name != "random_rounding" else np.maximum(number - np.abs(figures - true), 0.0)

    return Stated(words, np.full(figures.size, variance), low, high, likelihood=likelihood)


def _cell_key(given: Any, figures: Floats, measured: Bools, nonnegative: bool) -> Stated:
    """Noise by a perturbation table: one distribution, or one for each count (the last for all above it)."""
    table = _perturbations(given)
    number = len(table)
    most = max(int(np.abs(noise).max()) for noise, _ in table)
    variance = float((table[-1][0] ** 2 * table[-1][1]).sum())
    centre = np.where(measured, figures, 0)
    if (centre != np.rint(centre)).any():
        raise Refused("cell-key tables hold whole counts, but a figure has a fraction: state standard errors instead")
    low = np.full(figures.size, -LARGEST, dtype=np.int64)
    high = np.full(figures.size, LARGEST, dtype=np.int64)
    last, counts = table[-1][0], centre.astype(np.int64)
    first = number - 1 if number > 1 else (0 if nonnegative else -LARGEST)
    low[measured] = np.maximum(counts - int(last.max()), first)[measured]  # true count = figure − noise
    high[measured] = (counts - int(last.min()))[measured]
    if number > 1:
        seen = counts[measured]
        for value in np.unique(seen[seen <= number - 1 + most]).tolist():
            true = [i for i in range(number - 1) if value - i in table[i][0].tolist()]
            beyond = [value - int(noise) for noise in last.tolist() if value - int(noise) >= number - 1]
            if not true and not beyond:
                row = int(np.flatnonzero(measured & (counts == value))[0]) + 1
                raise Refused(f"the cell-key distribution never makes {value} of any count, but row {row} holds it")
            at = measured & (counts == value)
            low[at], high[at] = min(true + beyond), max(true + beyond)
    words = f"cell-key noise is stated, from {int(last.min())} to {int(last.max())} with variance {variance:.3g}"
    least = min(int(noise.min()) for noise, _ in table)
    chances = np.zeros((number, max(int(noise.max()) for noise, _ in table) - least + 2))  # the last ones are 0
    for count, (noise, chance) in enumerate(table):
        chances[count, noise - least] = chance

    def likelihood(figures: Ints, true: Ints) -> Floats:
        noise = figures - true - least
        inside = (noise >= 0) & (noise < chances.shape[1])
        return chances[np.clip(true, 0, number - 1), np.where(inside, noise, -1)]

    return Stated(words, np.full(figures.size, max(variance, 1e-12)), low, high, likelihood=likelihood)


def _perturbations(given: Any) -> list[tuple[Ints, Floats]]:
    """A distribution for each count from 0 on: noise values and their probabilities; a single one for all counts.

    `given` maps noise to its probability, or is a file or frame with columns p, v (noise) or j (perturbed count), and i
    (count), as the perturbation tables of the cell-key method are published.
    """
    if isinstance(given, Mapping) and "p" not in given:
        noise, chances = list(given), list(given.values())
        counts = [0] * len(noise)
    else:
        columns = {name.strip().lower(): found for name, found in columns_of(_path(given)).items()}
        if "p" not in columns or not ({"v", "j"} & set(columns)):
            raise Refused("a cell-key distribution must have columns p and v (or i and j), or map noise to probability")
        chances = [_as_number(x, "p") for x in columns["p"].tolist()]
        counts = [int(_as_number(x, "i")) for x in columns["i"].tolist()] if "i" in columns else [0] * len(chances)
        if "v" in columns:
            noise = [_as_number(x, "v") for x in columns["v"].tolist()]
        else:
            noise = [_as_number(x, "j") - i for x, i in zip(columns["j"].tolist(), counts, strict=True)]
    found = []
    for count in range(max(counts) + 1):
        rows = [(whole("noise", v), float(p)) for v, p, i in zip(noise, chances, counts, strict=True) if i == count]
        where = f" for count {count}" if max(counts) else ""
        total = sum(p for _, p in rows)
        if any(p < 0 for _, p in rows) or abs(total - 1) > PRINTED:
            raise Refused(f"a cell-key distribution must sum to 1, but its probabilities{where} sum to {total:.6g}")
        kept = [(v, p) for v, p in rows if p > 0]
        found.append((np.array([v for v, _ in kept], dtype=np.int64), np.array([p for _, p in kept])))
    return found


def _path(given: Any) -> Any:
    return Path(given) if isinstance(given, str) else given


def _as_number(entry: Any, name: str) -> float:
    try:
        return float(str(entry).strip().replace(",", "."))
    except ValueError:
        raise Refused(f"column {name} of a cell-key distribution must hold numbers, found {entry!r}") from None
