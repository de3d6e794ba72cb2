"""What is known of the errors of a table level by level: their mean, how sure it is, and their distribution."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from holdfast.arrays import Floats
from holdfast.release.job.errors import LINEAR, NORMAL, TABLES, linear_deviations, simulated_errors
from holdfast.release.job.table import Table

#: Steps of the distribution function that are kept of a level, and the bars of its picture.
STEPS, BARS = 1000, 41
#: Standard deviations that stand for all of a level with more, and steps towards a quantile of their normal errors.
KINDS, HALVED = 500, 60
#: The part of all errors that the picture of a distribution shows.
SHOWN = 0.99


@dataclass(frozen=True, eq=False)
class LevelOutlook:
    """The errors of one level. `uncertain` is the standard error of `absolute`, which is a mean over simulated tables.

    `magnitudes` are the quantiles of the absolute error at 0, 1/1000, …, 1; `bars` is how often errors fall into each
    of the equal parts of −reach … reach. An infinite `absolute`: nobody can tell.
    """

    name: str
    figures: int
    absolute: float
    uncertain: float
    magnitudes: Floats
    bars: Floats
    reach: float

    @property
    def known(self) -> bool:
        """Whether anything is known of the errors before the data are."""
        return math.isfinite(self.absolute)

    def within(self, confidence: float | None) -> float:
        """The absolute error that this part of the figures keeps, rounded outwards; without a part, the mean."""
        if confidence is None or not self.known:
            return self.absolute
        return float(self.magnitudes[math.ceil(round(STEPS * confidence, 9))])


@dataclass(frozen=True, eq=False)
class Outlook:
    """The errors of a table, measured on so many simulated ones; `basis` says how they are known."""

    levels: tuple[LevelOutlook, ...]
    basis: str
    tables: int

    @property
    def score(self) -> float:
        """The mean over the levels of their mean absolute errors, as methods are compared by."""
        return float(np.mean([level.absolute for level in self.levels]))


def outlook(table: Table, tables: int = TABLES) -> Outlook:
    """Measure the errors of a table on at most so many simulated ones: the same draws as those behind the plan."""
    layout = table.layout
    deviations = None if table.guess is not None else linear_deviations(table.problem, table.mechanism)
    if deviations is not None:
        each = (_normal(name, deviations[layout.level_of == i]) for i, name in enumerate(layout.levels))
        return Outlook(tuple(each), LINEAR, 0)
    drawn, basis = simulated_errors(layout, table.problem, table.mechanism, table.chosen.method, table.guess, tables)
    found = []
    for number, name in enumerate(layout.levels):
        at_level = layout.level_of == number
        found.append(_level(name, int(at_level.sum()), None if drawn is None else drawn[:, at_level]))
    return Outlook(tuple(found), basis, 0 if drawn is None else len(drawn))


def _level(name: str, figures: int, drawn: npt.NDArray[Any] | None) -> LevelOutlook:
    if drawn is None:
        nothing = np.zeros(0)
        return LevelOutlook(name, figures, math.inf, math.inf, nothing, nothing, math.inf)
    size = np.abs(drawn)
    means = size.mean(axis=1)
    uncertain = float(means.std(ddof=1) / math.sqrt(means.size)) if means.size > 1 else math.inf
    # The inverse of the distribution function, from above: an error that so many figures really keep.
    magnitudes = np.quantile(size, np.linspace(0, 1, STEPS + 1), method="inverted_cdf").astype(np.float64)
    bars, reach = _bars(drawn, float(magnitudes[math.ceil(STEPS * SHOWN)]))
    return LevelOutlook(name, figures, float(size.mean()), uncertain, magnitudes, bars, reach)


def _normal(name: str, deviations: Floats) -> LevelOutlook:
    """The errors of a level whose figures have normal errors of these standard deviations."""
    spread = np.quantile(deviations, (np.arange(KINDS) + 0.5) / KINDS) if deviations.size > KINDS else deviations
    known = spread[spread > 0]

    def below(sizes: Floats) -> Floats:
        """How many in one of the figures have an absolute error of at most these sizes."""
        return 1 - 2 * special.ndtr(-sizes[:, None] / known).sum(axis=1) / spread.size

    wanted = np.linspace(0, 1, STEPS + 1)
    low, high = np.zeros(STEPS + 1), np.full(STEPS + 1, 10.0 * float(spread.max(initial=0.0)))
    for _ in range(HALVED if known.size else 0):
        middle = (low + high) / 2
        enough = below(middle) >= wanted
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    high[-1] = math.inf if known.size else 0.0  # a normal error has no largest size
    reach = float(high[math.ceil(STEPS * SHOWN)])
    ends = np.abs(np.linspace(-reach, reach, BARS + 1))
    signs = np.sign(np.linspace(-reach, reach, BARS + 1))
    bars = np.diff(signs * below(ends)) / 2 if reach else np.ones(1)
    mean = NORMAL[0] * float(deviations.mean())
    return LevelOutlook(name, deviations.size, mean, 0.0, high, bars, reach)


def _bars(drawn: npt.NDArray[Any], reach: float) -> tuple[Floats, float]:
    """How often errors fall into equal parts of −reach … reach; whole errors into parts of as many values each."""
    if reach == 0:
        return np.ones(1), 0.0
    count = BARS
    if (drawn == np.rint(drawn)).all():
        wide = math.ceil((2 * reach + 1) / BARS)
        count = 2 * math.ceil((reach - (wide - 1) / 2) / wide) + 1  # an odd number, so that one stands over 0
        reach = count * wide / 2
    found, _ = np.histogram(drawn, bins=count, range=(-reach, reach))
    return found / drawn.size, reach
