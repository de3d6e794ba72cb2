"""A table as it might come out: simulated noise on public counts, never on the data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from holdfast.arguments import Refused
from holdfast.randomness import seeded
from holdfast.release.job.sizes import spread_counts
from holdfast.release.job.table import Table

#: Rows of each level that are shown.
ROWS = 8
GUESSED = "the public guess of the spec"
MADE_UP = "made-up public counts of all sizes, since nobody guesses a whole table"


@dataclass(frozen=True)
class Preview:
    """Some rows of a simulated table: level, name, the public count, the simulated figure. `more` are not shown."""

    basis: str
    rows: tuple[tuple[str, str, float, float], ...]
    more: int


def preview(table: Table, number: int) -> Preview:
    """Simulate the table with this number; the same number gives the same table."""
    counts = spread_counts(table)
    if counts is None:
        raise Refused("there are no public counts to try: add a guess to the table")
    values = table.mechanism.simulate(counts, 1, seeded(number))[0]
    layout = table.layout
    rows: list[tuple[str, str, float, float]] = []
    for level, name in enumerate(layout.levels):
        first = np.flatnonzero(layout.level_of == level)[:ROWS].tolist()
        rows += [(name, str(layout.query.labels[i]), float(counts[i]), float(values[i])) for i in first]
    given = isinstance(layout.asked.guess, str)
    return Preview(GUESSED if given else MADE_UP, tuple(rows), layout.query.n - len(rows))
