"""Integer Laplace noise on a two-way table given all its row sums and column sums, by rejection row after row.

Law: independent noise given margins of 0, within a proved distance: rows are proposed in turn (`rows_in_turn.py`), and
row r is accepted with probability P_r(c)/P_r(0), which is at most 1 for all sums c that the columns may still need, if
each column has one scale (docs/theory/walks.md). Doubles decide, all terms are positive, and the distance in total
variation is bounded by the number of operations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse, special

from holdfast.arguments import Refused
from holdfast.arrays import Floats, Ints, Shared, kept
from holdfast.constraints.system.constraint_system import System
from holdfast.evidence import Evidence
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


#: Up to this y, log(1 − y) ≥ −y − y².
LARGEST_Y = 0.68
#: Parts of a lower sum, and points of an integral over the circle.
PARTS, POINTS = 2_000, 1 << 14
#: Taken off the logarithm of a share for the rounding of its own computation.
MARGIN = 1e-6


def missing_share(scale: float, rows: int, sizes: Windows) -> float:
    """The share of f_m(c), |c| within half a column's window, that windows cut away, at most (Lemma 3)."""
    half = (sizes.depth - sizes.core) // 2
    single = 2 * math.exp(-(sizes.reach - half) / scale) / -math.expm1(-1 / scale)
    return rows * (single + 2 * TAIL * (2 * half + 1) / (1 - TAIL))


def log_least_share(table: Table, limits: Floats, scales: Sequence[float]) -> float:
    """The log of the share of tables that are accepted, at least: P(row sums 0 | column sums 0) over all limits.

    Scales are λ of each class of columns. Two bounds; the first is good for few rows, the second for many.
    """
    rows, which = table.weights.shape[0], table.which
    depth, reach = table.below.shape[2] // 2, table.weights.shape[2] // 2
    places = np.arange(-reach, reach + 1)
    held, log_zero = [], []
    for k in range(len(scales)):
        law = table.weights[0, k] * table.below[1, k, depth - places]
        held.append(float((law * places**2).sum() / law.sum()))
        log_zero.append(_log_sum_is_zero(table.weights[0, k], rows))
    first = _by_columns(np.array(held)[which] * rows / (rows - 1), rows)
    second = _by_cells(np.array([0.5 / math.sinh(0.5 / scale) ** 2 for scale in scales])[which], rows)
    second -= float(np.array(log_zero)[which].sum())
    return min(0.0, max(first, second) - float(np.log(limits).sum()) - MARGIN)


def _log_sum_is_zero(weights: Floats, rows: int) -> float:
    """The log of the probability that so many noises sum to 0, or a little more: multiples of `points` count too."""
    points = max(POINTS, 1 << weights.size.bit_length())
    circle = np.zeros(points)
    circle[np.arange(weights.size) - weights.size // 2] = weights / weights.sum()
    return math.log(float((np.fft.fft(circle).real.clip(0.0) ** rows).mean()))


def _by_columns(each: Floats, rows: int) -> float:
    """log P(row sums 0 | column sums 0): columns are independent, each with a covariance of each·(I − 11ᵀ/rows)."""
    total = float(each.sum())
    parts = each / total
    most = min(LARGEST_Y / float(parts.max()), math.pi**2 * total / (2 * rows))
    ends = np.linspace(0.0, most, PARTS + 1)
    shares = np.diff(special.gammainc((rows - 1) / 2, ends))
    mean = float((shares * np.exp(-float((parts**2).sum()) * ends[1:] ** 2)).sum())
    if mean <= 0:
        return -math.inf
    log_volume = (rows - 1) * math.log(total) - math.log(rows)
    return -(rows - 1) / 2 * math.log(2 * math.pi) - log_volume / 2 + math.log(mean)


def _by_cells(variances: Floats, rows: int) -> float:
    """log of the mean of Π e^{−σ_j²(a_i + b_j)²/2} over all angles, of which one is 0, at least."""
    total, columns = float(variances.sum()), variances.size
    count = rows + columns - 1
    log_volume = (columns - 1) * math.log(rows) + (rows - 1) * math.log(total) + float(np.log(variances).sum())
    outside = (rows - 1) * math.erfc(math.pi * math.sqrt(total) / 2)
    spread = 1 / (rows * variances) + (1 - 1 / rows) / total
    outside += float(special.erfc(math.pi / np.sqrt(2 * spread)).sum())
    if outside >= 1:
        return -math.inf
    return -count / 2 * math.log(2 * math.pi) - log_volume / 2 + math.log1p(-outside)


def crossed_table(system: System) -> Ints | None:
    """Return the outputs as a table (rows, columns), rows not more than columns, if its margins are all that is held.

    Every equality sums a row or a column with equal coefficients, and every row and column has its equality.
    """
    if system.branches or system.inequalities.count:
        return None
    A = sparse.csr_array(sparse.vstack([system.equalities.A, system.invariants.A], format="csr"))
    A.eliminate_zeros()
    count, n = A.shape
    if n == 0 or A.nnz != 2 * n or (np.diff(A.indptr) == 0).any():
        return None
    if (A.data != np.repeat(A.data[A.indptr[:-1]], np.diff(A.indptr))).any():
        return None
    columns = sparse.csc_array(A)
    columns.sort_indices()
    if (np.diff(columns.indptr) != 2).any():
        return None
    ends = columns.indices.reshape(n, 2).astype(np.int64)
    first, second = ends[0]
    down = np.unique(ends[(ends == second).any(axis=1)].ravel())
    down = down[down != second]
    is_row = np.zeros(count, dtype=bool)
    is_row[down] = True
    if down.size * (count - down.size) != n or not is_row[first] or (is_row[ends].sum(axis=1) != 1).any():
        return None
    row, column = np.where(is_row[ends[:, 0]], ends.T, ends.T[::-1])
    place = np.cumsum(is_row) - 1, np.cumsum(~is_row) - 1
    table = np.full((down.size, count - down.size), -1, dtype=np.int64)
    table[place[0][row], place[1][column]] = np.arange(n)
    if (table < 0).any():
        return None
    return table if table.shape[0] <= table.shape[1] else np.ascontiguousarray(table.T)
