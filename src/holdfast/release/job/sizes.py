"""How wrong figures of different sizes will be: measured on a made-up public table, and which way they err."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Refused
from holdfast.randomness import seeded
from holdfast.release.job.errors import IN_AREAS, LAW, SEED, SOLVED
from holdfast.release.job.table import Table

#: Numbers among all simulated tables, simulated tables at most, and the largest table that is simulated for a picture.
NUMBERS, TABLES, SOLVED_TABLES, LARGEST = 400_000, 200, 20, 100_000
#: Bins of sizes: their ends grow by half a power of ten; bins with fewer numbers tell nothing.
HALF, FEWEST = 10**0.5, 100
#: The typical count of a cell of a table of which nobody guesses one, and how far sizes reach beyond it.
TYPICAL, BEYOND = 100.0, 10.0


@dataclass(frozen=True)
class Sizes:
    """Mean size, mean absolute error and bias (mean error) of figures of one level, bin by bin."""

    level: str
    size: tuple[float, ...]
    absolute: tuple[float, ...]
    bias: tuple[float, ...]
    tables: int

    @property
    def rows(self) -> tuple[tuple[float, float, float], ...]:
        return tuple(zip(self.size, self.absolute, self.bias, strict=True))


def errors_by_size(table: Table) -> Sizes | None:
    """Measure the errors of the level with most figures at made-up public counts; None where nobody can, or need.

    Errors whose law does not depend on the data are the same at every size.
    """
    layout = table.layout
    if table.errors.basis == LAW or layout.query.n > LARGEST:
        return None
    counts = spread_counts(table)
    if counts is None:
        return None
    slow = {SOLVED, *IN_AREAS} & set(table.mechanism.method.split(", "))
    most = SOLVED_TABLES if slow else TABLES
    tables = int(np.clip(NUMBERS // layout.query.n, 1, most))
    try:
        drawn = table.mechanism.simulate(counts, tables, seeded(SEED)) - counts
    except Refused:
        return None
    level = int(np.bincount(layout.level_of).argmax())
    at_level = layout.level_of == level
    sizes, found = counts[at_level], drawn[:, at_level]
    bins = np.where(sizes > 0, np.floor(np.log(np.maximum(sizes, 1)) / math.log(HALF)) + 1, 0).astype(np.int64)
    kept = [each for each in np.unique(bins) if (bins == each).sum() * tables >= FEWEST]
    if len(kept) < 2:
        return None
    return Sizes(
        layout.levels[level],
        tuple(float(sizes[bins == each].mean()) for each in kept),
        tuple(float(np.abs(found[:, bins == each]).mean()) for each in kept),
        tuple(float(found[:, bins == each].mean()) for each in kept),
        tables,
    )


def spread_counts(table: Table) -> npt.NDArray[np.int64] | None:
    """The guess of the spec if it is a whole table, or else public counts of all sizes up to ten times a typical one.

    Where these would violate what must hold, the guess; None where there is none either.
    """
    asked, cells = table.layout.asked.guess, table.layout.query.cells
    if isinstance(asked, str) or cells is None:
        return table.guess
    reach = math.log1p(BEYOND * (TYPICAL if asked is None else max(float(asked), 1.0)))
    found = public_answer(table, np.expm1(np.random.default_rng(SEED).uniform(0, reach, cells)).astype(np.int64))
    return table.guess if found is None else found


def public_answer(table: Table, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64] | None:
    """The answer for public counts of the cells; None where it is too large, or would violate what must hold."""
    if table.holding.impossible is not None:
        counts = np.where(table.holding.impossible, 0, counts)
    try:
        answer = np.asarray(table.layout.query.answer(counts), dtype=np.int64)
    except Refused:  # a guess near the limit of whole numbers
        return None
    held = table.holding.all
    return answer if held is None or held.system(table.layout.query.n).violation(answer) is None else None
