"""Integer Laplace noise on a two-way table given all its row sums and column sums, by rejection row after row.

Law: independent noise given margins of 0, within a proved distance: rows are proposed in turn (`rows_in_turn.py`), and
row r is accepted with probability P_r(c)/P_r(0), which is at most 1 for all sums c that the columns may still need, if
each column has one scale (docs/theory/walks.md). Doubles decide, all terms are positive, and the distance in total
variation is bounded by the number of operations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Refused
from holdfast.arrays import Floats, Ints, Shared, kept
from holdfast.constraints.system.crossed import crossed_table
from holdfast.evidence import Evidence
from holdfast.given.near.accepted_share import log_least_share, missing_share
from holdfast.given.near.rows_in_turn import TAIL, Table, Windows, accepted, largest, prepared
from holdfast.given.problem import Problem, Truth
from holdfast.noise.spread import Spread, simulated_quantiles, simulated_spread
from holdfast.randomness import Stream, seeded

#: Scales whose tables take too long: the work for one draw grows with the square of the scale.
LARGEST_SCALE = 40.0
#: Cells of a table that count as moderate.
MOST_CELLS = 10_000
#: What is added to the limits, so that rounding and windows never make a row more likely than its limit: at least this,
#: and more where what windows cut away is not known to be so little.
SLACK = 1e-4
#: Largest distance from the law that rounding and windows may leave.
LARGEST_DISTANCE = 1e-6
#: Cells that errors are measured on where all have one law, and tables where not.
POOLED, STUDY = 40_000, 2_000
#: Draws on which errors were measured before.
STUDIES = Shared(8)
#: Random words made at once.
BATCH_WORDS = 1 << 18
#: Proposals after which a draw is given up; where one in a thousand is accepted, one in e^1000 draws needs more.
MOST_TRIES = 1_000_000


@dataclass(frozen=True, eq=False)
class Layout:
    """A two-way table whose columns have one law each, and the outputs of its cells."""

    cells: Ints
    scales: tuple[Fraction, ...]
    which: Ints

    @classmethod
    def of(cls, problem: Problem) -> Layout | None:
        """Find the table and turn it so that each column has one law; None where there is none."""
        law = problem.law
        if not law.integer or law.kind != "laplace" or problem.depends_on_data or None in law.laws:
            return None
        cells = crossed_table(problem.system)
        if cells is None:
            return None
        which = law.complete.astype(np.int64)
        for turned in (cells, np.ascontiguousarray(cells.T)):
            if (which[turned] == which[turned[0]]).all():
                scales = tuple(Fraction(scale or 0) for scale in law.scale_values)
                return cls(turned, scales, which[turned[0]])
        return None

    def windows(self) -> Windows:
        return Windows.of(float(max(self.scales)), *self.cells.shape)

    def table(self) -> Table:
        """The weights, written out for the compiled draws."""
        windows, rows = self.windows(), len(self.cells)
        sizes = np.abs(np.arange(-windows.reach, windows.reach + 1)).astype(np.float64)
        exponents = [sizes / float(s) for s in self.scales]
        weights = np.repeat(np.exp(-np.array(exponents))[None], rows, axis=0)
        return prepared(weights, self.which, windows)


@dataclass(frozen=True, eq=False)
class Proposals:
    """A table with the limits of its rows."""

    layout: Layout
    table: Table
    limits: Floats
    distance: float

    @classmethod
    def of(cls, layout: Layout) -> Proposals:
        """Compute the limits M_r; they hold for every need c of the columns (docs/theory/walks.md, Lemma 3)."""
        table = layout.table()
        (rows, columns), scales = layout.cells.shape, [float(scale) for scale in layout.scales]
        missing = missing_share(max(scales), rows, layout.windows())
        limits = largest(table) * (1 + max(SLACK, 8 * columns * missing))
        share = log_least_share(table, limits, scales)
        relative = 12 * (table.weights.shape[2] + 100) * 2.0**-53 + 4 * TAIL
        absolute = 4 * (2 * table.core + 1) * 2.0**-53 * math.exp(min(700.0, -share))
        return cls(layout, table, limits, rows * columns * (relative + absolute))

    def draw(self, size: int, stream: Stream) -> Ints:
        """Draw so many tables, (size, rows, columns)."""
        rows, columns = self.layout.cells.shape
        noise = np.empty((size, rows, columns), dtype=np.int64)
        each = rows * (columns + 1)
        done = tried = 0
        while done < size:
            if tried > MOST_TRIES * (done + 1):
                raise Refused("drawing this table did not end: use onto(), or more noise")
            words = stream.words(each * max(1, BATCH_WORDS // each)).reshape(-1, each)
            done = accepted(self.table, self.limits, words, noise, done)
            tried += len(words)
        return noise


@kept
def _proposals(problem: Problem) -> Proposals | None:
    layout = Layout.of(problem) if problem.law.n <= MOST_CELLS else None
    if layout is None or max(layout.scales) > LARGEST_SCALE or min(layout.cells.shape) < 2:
        return None
    proposals = Proposals.of(layout)
    return proposals if proposals.distance <= LARGEST_DISTANCE else None


def accepts(problem: Problem) -> bool:
    """Whether all margins of a two-way table are held, nothing else is, and one law holds along rows or columns."""
    return _proposals(problem) is not None


def evidence(problem: Problem) -> Evidence:
    """The proved bound on rounding and on what lies beyond the windows (docs/theory/walks.md, Proposition 4)."""
    found = _proposals(problem)
    assert found is not None
    return Evidence(
        found.distance,
        True,
        "the draws are made in doubles: their distance from the law is bounded by the number of operations, and this "
        "delta pays for it",
    )


def least_tau(problem: Problem) -> float:
    """The distance is proved, whatever is asked for."""
    del problem
    return 0.0


def draw(problem: Problem, truth: Truth, size: int, stream: Stream) -> npt.NDArray[Any]:
    """Draw noise with margins of 0, (size, n)."""
    del truth  # the law does not depend on it
    found = _proposals(problem)
    assert found is not None
    noise = np.empty((size, problem.law.n), dtype=np.int64)
    noise[:, found.layout.cells.ravel()] = found.draw(size, stream).reshape(size, -1)
    return noise


def spread(problem: Problem) -> Spread | None:
    """Measured on simulated draws, once for all tables of one shape and law.

    Where all cells have one law they can be exchanged: they share one variance v, and the covariance of the table is a
    multiple of the projector on margins of 0, with v on its diagonal.
    """
    found = _proposals(problem)
    assert found is not None
    layout = found.layout
    rows, columns = layout.cells.shape
    key = rows, columns, layout.scales, layout.which.tobytes()
    alike = bool((layout.which == layout.which[0]).all())
    count = -(-POOLED // layout.cells.size) if alike else STUDY
    study = STUDIES.get(key, lambda: found.draw(count, seeded(0)))
    order = np.argsort(layout.cells.ravel())
    if not alike:
        return simulated_spread(lambda _size: study.reshape(len(study), -1)[:, order])
    variance = float((study.astype(np.float64) ** 2).mean())
    pooled = simulated_quantiles(lambda: study.reshape(-1, 1), lambda size: np.arange(size) // layout.cells.size)

    def variance_of(weights: npt.NDArray[np.float64]) -> float:
        table = weights[layout.cells]
        free = table - table.mean(axis=0) - table.mean(axis=1)[:, None] + table.mean()
        return variance * rows * columns / ((rows - 1) * (columns - 1)) * float((free**2).sum())

    return Spread(
        np.full(problem.law.n, math.sqrt(variance)),
        variance_of,
        lambda p: np.full(problem.law.n, pooled(p)[0]),
        measured=True,
    )
