"""How wrong the figures will be: measured on simulated tables, from the spec and public guesses alone."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from holdfast.arguments import Refused
from holdfast.arrays import Floats
from holdfast.constraints.system.parts import EQUALITIES
from holdfast.mechanism.mechanism import DATA_DEPENDENT, Mechanism
from holdfast.mechanism.noise_source import Plain
from holdfast.randomness import seeded
from holdfast.release.job.methods import Problem, made
from holdfast.release.table.holding import Derived, Holding
from holdfast.release.table.public import PublicFiles
from holdfast.release.table.shape import Layout
from holdfast.release.table.wording import in_words_of_the_spec

#: Simulated tables, and numbers among all of them, at most: a plan takes seconds, and means of levels with a hundred
#: figures are good to 2 %. Methods are compared on `COMPARED` numbers, and on `FEWEST` tables at least.
TABLES, NUMBERS, COMPARED, FEWEST = 2_000, 300_000, 100_000, 10
#: Ways that solve a program for every table, or several in every area, and how many tables are simulated at most.
SOLVED, SOLVED_TABLES = "program", 100
IN_AREAS, AREA_TABLES = {"areas", "linked"}, 20
#: Of normal errors: the mean absolute one, and the width of 95 in 100, in standard errors.
NORMAL = (math.sqrt(2 / math.pi), 2 * 1.959964)
#: The seed of plans: the same spec gives the same plan.
SEED = 5
#: How the errors are known.
LAW = "follow from the law of the noise, which does not depend on the data"
GUESS = "are those at the public guess of the spec; they depend on the data"
FAR = "are those of counts far from every bound; near a bound they depend on the data: without a guess nobody can tell"

LINEAR = (
    "are those of the best linear estimate, before it is brought to whole numbers and within bounds: near a bound they "
    "depend on the data"
)

#: Errors that are smaller than this part of the largest come from rounding: the figure is exact.
NOTHING = 1e-9
UNTOLD = "depend on the data, and nobody can tell them without a guess: add one to the table"


#: Steps of the distribution function that are kept of a level, and the bars of its picture.
STEPS, BARS = 1000, 41
#: Standard deviations that stand for all of a level with more, and steps towards a quantile of their normal errors.
KINDS, HALVED = 500, 60
#: The part of all errors that the picture of a distribution shows.
SHOWN = 0.99


@dataclass(frozen=True, eq=False)
class LevelErrors:
    """The errors of one level, or of a group of rows besides. An infinite `absolute`, the mean: nobody can tell.

    `width` is that of 95 in 100, and `uncertain` the standard error of `absolute`, a mean over simulated tables.
    `magnitudes` are the quantiles of the absolute error at 0, 1/1000, …, 1; `bars` is how often errors fall into each
    of the equal parts of −reach … reach.
    """

    name: str
    figures: int
    absolute: float = math.inf
    width: float = math.inf
    uncertain: float = math.inf
    magnitudes: Floats = field(default_factory=lambda: np.zeros(0))
    bars: Floats = field(default_factory=lambda: np.zeros(0))
    reach: float = math.inf

    @property
    def known(self) -> bool:
        return math.isfinite(self.absolute)

    def within(self, confidence: float | None) -> float:
        """The absolute error that this part of the figures keeps, rounded outwards; without a part, the mean."""
        if confidence is None or not self.known:
            return self.absolute
        return float(self.magnitudes[math.ceil(round(STEPS * confidence, 9))])

    def times(self, factor: float) -> LevelErrors:
        """The same where noise is so many times as large."""
        scaled = ("absolute", "width", "uncertain", "magnitudes", "reach")
        return replace(self, **{name: getattr(self, name) * factor for name in scaled})


@dataclass(frozen=True, eq=False)
class Errors:
    """The errors of a table, measured on so many simulated ones; `basis` says how they are known.

    `more`: those of the groups of rows besides the outputs.
    """

    levels: tuple[LevelErrors, ...]
    basis: str
    tables: int
    more: tuple[LevelErrors, ...] = ()

    @property
    def absolute(self) -> tuple[float, ...]:
        return tuple(level.absolute for level in self.levels)

    @property
    def score(self) -> float:
        """The mean over the levels of their mean absolute errors: every level counts the same."""
        return float(np.mean(self.absolute))

    @property
    def uncertain(self) -> float:
        """The standard error of the score."""
        return math.hypot(*(level.uncertain for level in self.levels)) / len(self.levels)


def errors(
    layout: Layout,
    problem: Problem,
    mechanism: Mechanism,
    method: str,
    guess: npt.NDArray[np.int64] | None,
    more: Derived | None = None,
    tables: int = TABLES,
    numbers: int = NUMBERS,
) -> Errors:
    """Measure the errors of a calibrated mechanism, per level and for groups of sums, told in the unit of a column.

    At most `tables` tables are simulated, with so many numbers among them or hardly more.
    """
    found, added = _errors(layout, problem, mechanism, method, guess, more, tables, numbers), layout.asked.sum_of
    if added is None:
        return found
    levels, besides = (tuple(each.times(float(added.unit)) for each in part) for part in (found.levels, found.more))
    return replace(found, levels=levels, more=besides)


def _errors(
    layout: Layout,
    problem: Problem,
    mechanism: Mechanism,
    method: str,
    guess: npt.NDArray[np.int64] | None,
    more: Derived | None,
    tables: int,
    numbers: int,
) -> Errors:
    deviations = None if guess is not None else linear_deviations(problem, mechanism)
    levels = [(name, np.flatnonzero(layout.level_of == i)) for i, name in enumerate(layout.levels)]
    if deviations is not None:
        return Errors(tuple(_normal(name, deviations[rows]) for name, rows in levels), LINEAR, 0)
    drawn, basis = simulated_errors(layout, problem, mechanism, method, guess, tables, numbers)
    groups = [] if more is None else [(t, np.flatnonzero(more.group_of == i)) for i, t in enumerate(more.titles)]
    if drawn is None:
        unknown, besides = (tuple(LevelErrors(name, rows.size) for name, rows in part) for part in (levels, groups))
        return Errors(unknown, basis, 0, besides)
    sums = drawn[:, :0] if more is None else np.asarray((more.sums @ drawn.T).T)
    measured = tuple(_measured(name, drawn[:, rows]) for name, rows in levels)
    return Errors(measured, basis, len(drawn), tuple(_measured(name, sums[:, rows]) for name, rows in groups))


def simulated_errors(
    layout: Layout,
    problem: Problem,
    mechanism: Mechanism,
    method: str,
    guess: npt.NDArray[np.int64] | None,
    tables: int = TABLES,
    numbers: int = NUMBERS,
) -> tuple[npt.NDArray[Any] | None, str]:
    """Return the errors of all figures in simulated tables, (size, n), and how they are known; None: nobody can tell.

    At most `tables` tables are simulated, and the fewer the larger they are.
    """
    size = min(tables, simulated_tables(layout, mechanism, numbers))
    try:
        drawn, basis = mechanism.noise(size, seeded(SEED)), LAW
    except Refused as refusal:
        if str(refusal) != DATA_DEPENDENT:
            raise
        if guess is not None:
            drawn, basis = mechanism.simulate(guess, size, seeded(SEED)) - guess, GUESS
        else:
            far = _far_from_bounds(problem, mechanism, method, size)
            if far is None:
                return None, UNTOLD
            drawn, basis = far, FAR
    drawn[np.abs(drawn) < NOTHING * np.abs(drawn).max()] = 0
    return drawn, basis


def simulated_tables(layout: Layout, mechanism: Mechanism, numbers: int) -> int:
    """How many tables are simulated where they are to have so many numbers."""
    ways = mechanism.method.split(", ")
    most = SOLVED_TABLES if SOLVED in ways else AREA_TABLES if _in_steps(mechanism) else TABLES
    return int(np.clip(numbers // layout.query.n, min(most, FEWEST if numbers < NUMBERS else 1), most))


def _in_steps(mechanism: Mechanism) -> bool:
    return bool(IN_AREAS & set(mechanism.method.split(", ")) and mechanism.moves)


def _measured(name: str, drawn: npt.NDArray[Any]) -> LevelErrors:
    size, (low, high) = np.abs(drawn), np.quantile(drawn, [0.025, 0.975])
    means = size.mean(axis=1)
    uncertain = float(means.std(ddof=1) / math.sqrt(means.size)) if means.size > 1 else math.inf
    # The inverse of the distribution function, from above: an error that so many figures really keep.
    magnitudes = np.quantile(size, np.linspace(0, 1, STEPS + 1), method="inverted_cdf").astype(np.float64)
    shown, reach = _bars(drawn, float(magnitudes[math.ceil(STEPS * SHOWN)]))
    mean, width = float(size.mean()), float(high - low)
    return LevelErrors(name, drawn.shape[1], mean, width, uncertain, magnitudes, shown, reach)


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


def linear_deviations(problem: Problem, mechanism: Mechanism) -> Floats | None:
    """The standard errors of the best linear estimate, which whole numbers and bounds follow at a distance.

    None where tables are not made of it area by area.
    """
    linear = mechanism.linear_part if _in_steps(mechanism) else None
    if linear is None:
        return None
    found = linear.standard_error().copy()
    for part in () if problem.equal is None else problem.equal.parts:
        if part.kind == "fixed" and part.rows is not None:
            found[part.rows.A.indices] = 0.0
    return np.asarray(found)


def _normal(name: str, deviations: Floats) -> LevelErrors:
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
    mean, width = (factor * float(deviations.mean()) for factor in NORMAL)
    return LevelErrors(name, deviations.size, mean, width, 0.0, high, bars, reach)


def _far_from_bounds(problem: Problem, mechanism: Mechanism, method: str, size: int) -> npt.NDArray[Any] | None:
    """Draw the noise without the bounds, which change nothing far from them; None where only bounds make it a law.

    Nor is anything told where every side of a union has equalities, so that no table is far from all of them.
    """
    sides = () if problem.unequal is None else problem.unequal.branches
    if sides and all(any(part.kind in EQUALITIES for part in side.parts) for side in sides):
        return None
    try:
        free = made("noise" if problem.equal is None else method, Mechanism(Plain(mechanism.base)), problem.free)
        return free.noise(size, seeded(SEED))
    except Refused:
        return None


def guessed(layout: Layout, found: Holding, files: PublicFiles) -> npt.NDArray[np.int64] | None:
    """Return the answer for the public guess of the spec: a typical count per cell, or a public table of counts."""
    guess = layout.asked.guess
    if guess is None:
        return None
    cells = layout.query.cells
    assert cells is not None
    try:
        if isinstance(guess, Decimal):
            counts = np.full(cells, int(guess.to_integral_value()) * layout.asked.typical, dtype=np.int64)
        else:
            counts = _listed(layout, guess, files) * layout.asked.typical
        if found.impossible is not None:
            counts = np.where(found.impossible, 0, counts)
        answer = layout.query.answer(counts)
    except (OverflowError, Refused) as trouble:
        if hasattr(trouble, "line"):
            raise
        raise layout.at["guess"].refuse("the guess is too large: counts stay below 2**62") from None
    if found.all is not None:
        missed = found.all.system(layout.query.n).violation(answer)
        if missed is not None:
            words = in_words_of_the_spec(layout, missed)
            raise layout.at["guess"].refuse(f"the guess violates what must hold ({words})")
    return np.asarray(answer, dtype=np.int64)


def _listed(layout: Layout, file: str, files: PublicFiles) -> npt.NDArray[np.int64]:
    """Read a public table of counts: one row per cell, with the columns of the keys and one called count."""
    at = layout.at["guess"]
    position = np.zeros(0, dtype=np.int64)
    for i, key in enumerate(layout.keys):
        own = key_columns(layout, i)
        paths = list(zip(*(files.column(file, name, at).tolist() for name in own), strict=True))
        missing = next((path for path in paths if path not in key.positions), None)
        if missing is not None:
            shown = " / ".join(str(part) for part in missing)
            raise at.refuse(f"the file {file!r} names {shown!r}, which is not in the domain", found=shown)
        index = np.array([key.positions[path] for path in paths], dtype=np.int64)
        position = index if i == 0 else position * key.size + index
    counts = np.zeros(int(np.prod([key.size for key in layout.keys])), dtype=np.int64)
    texts = files.column(file, "count", at)
    try:
        values = np.array([int(text or "") for text in texts], dtype=np.int64)
    except (ValueError, OverflowError):
        values = np.array([-1])
    if (values < 0).any():
        raise at.refuse(f"the column 'count' of {file!r} must hold whole numbers of 0 or more")
    if np.unique(position).size < position.size:
        raise at.refuse(f"the file {file!r} names a cell twice")
    counts[position] = values
    return counts


def key_columns(layout: Layout, number: int) -> tuple[str, ...]:
    """The columns of a key under the names that public files use."""
    if layout.places is None:
        return (layout.names[number],)
    if number > 0:
        return (layout.asked.axes[number - 1],)
    return layout.names if layout.asked.match == "path" else layout.names[-1:]
