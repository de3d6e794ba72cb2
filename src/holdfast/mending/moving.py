"""The nearest table in which everything holds, and what follows for each figure: by `onto`, and by bounds on sums.

What only large tables, missing figures or laws of noise need is loaded when they come.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from holdfast.arguments import LARGEST, Refused, known
from holdfast.arrays import Bools, Floats, Ints
from holdfast.constraints import Constraint, System, consistent, nonnegative, revealed
from holdfast.constraints.possible.contradiction import refuse_whole_contradiction
from holdfast.constraints.possible.propagation import carried
from holdfast.constraints.system.parts import EQUALITIES
from holdfast.domains import Hierarchy
from holdfast.domains.breadth_first import breadth_first
from holdfast.domains.intervals import bound_downwards, bound_upwards
from holdfast.evidence import Evidence
from holdfast.mending import search
from holdfast.mending.classifications import Classification
from holdfast.mending.figures import Figures
from holdfast.mending.reconciled import OPEN, Covariance, Linear
from holdfast.mending.stated_errors import Stated

if TYPE_CHECKING:
    from holdfast.mechanism.published.error_bars import ErrorBars
    from holdfast.noise.spread import Spread

# --- large crossed tables as areas with margins: one hierarchy, and other columns of one total each ------------------
# Such a table is what `counts(tree, by=shape, keep=all margins)` answers, in another order, and `onto` has a way for it
# that takes millions of figures.

#: Figures up to which tables without missing ones, and crossed ones, are searched at once; figures up to which the
#: nearest crossed table is found by paths on a network, where the sums are one.
MOST_AT_ONCE, MOST_PATHS = 2_000, 30_000


def as_areas(figures: Figures) -> tuple[Any, Ints] | None:
    """The query that a table answers, and for each of its outputs the figure it is; None where it is no such table."""
    from holdfast.queries import counts

    crossed = [column for column, each in enumerate(figures.classifications) if each.sums]
    if not figures.complete or len(crossed) < 2 or len(crossed) < len(figures.names):
        return None
    trees = figures.classifications
    if any(len(each.parents) != 1 for each in trees) or figures.n != int(np.prod([float(each.n) for each in trees])):
        return None
    tree = max(crossed, key=lambda column: trees[column].n)
    others = [column for column in crossed if column != tree]
    if any(_root(trees[column]) is None for column in others):
        return None
    shape = tuple(trees[column].n - 1 for column in others)
    keep = [axes for size in range(len(shape) + 1) for axes in combinations(range(len(shape)), size)]
    query = counts(Hierarchy.from_parents(trees[tree].parents[0]), by=shape, keep=keep)
    if query.n != figures.n:
        return None
    return query, _order(figures, tree, others, keep)


def _root(each: Classification) -> int | None:
    """The label that all others add to; None where there are several levels or totals."""
    (above,) = each.parents
    roots = np.flatnonzero(above < 0)
    return int(roots[0]) if roots.size == 1 and (np.delete(above, roots[0]) == roots[0]).all() else None


def _order(figures: Figures, tree: int, others: list[int], keep: list[tuple[int, ...]]) -> Ints:
    """For each output of the query the figure it is: nodes in order, in each its margins, in C order inside."""
    axes = []
    for column in others:
        label, root = figures.places[:, column], _root(figures.classifications[column])
        assert root is not None
        axes.append(np.where(label == root, -1, label - (label > root)))
    sizes = [figures.classifications[column].n - 1 for column in others]
    each_node = int(np.prod([size + 1 for size in sizes]))
    output = figures.places[:, tree] * each_node
    start = 0
    for margin in keep:
        inside = np.ones(figures.n, dtype=bool)
        at = np.zeros(figures.n, dtype=np.int64)
        for axis, coordinate in enumerate(axes):
            inside &= (coordinate >= 0) == (axis in margin)
        for axis in margin:
            at = at * sizes[axis] + axes[axis]
        output[inside] += start + at[inside]
        start += int(np.prod([sizes[axis] for axis in margin]))
    order = np.empty(figures.n, dtype=np.int64)
    order[output] = np.arange(figures.n)
    return order


#: A missing figure counts by this share of the published one that counts least: enough to decide where nothing else
#: does, too little to move a published figure.
FAINT = 1e-6
#: Weights of figures differ by this much at most.
CONTRAST = 1e8
#: Rounds in which missing figures are guessed from the sums they stand in.
GUESSES = 4
#: Errors of bounded noise that are simulated in all, and draws at least and at most: larger tables keep their certain
#: limits.
MOST_STUDIED, FEWEST_DRAWS, MOST_DRAWS = 1 << 23, 400, 2_000
#: What is said of a large crossed table with missing figures.
GUESSES_COUNT = "the table is large and crossed: guesses for missing figures counted as much as published figures"
#: Rounds in which limits are carried from sum to sum where the table is no hierarchy.
ROUNDS = 64
#: Missing figures up to which programs find the narrowest ranges, and figures of such a table; seconds, about.
MOST_PROGRAMS, MOST_CELLS, SECONDS = 300, 20_000, 5.0


@dataclass(frozen=True, eq=False)
class Moved:
    """A mended table: its values in steps, and what the way that found it shows for it."""

    values: Ints
    evidence: Evidence


def nearest(
    figures: Figures, constraint: Constraint, start: Ints, measured: Bools, spreads: Floats, norm: str
) -> Moved:
    """Move figures (whole steps; guesses where not measured) to the nearest whole ones in which everything holds."""
    n = figures.n
    system = revealed(constraint.system(n), None)
    weakest = spreads[measured].max(initial=1.0)
    faint = min(weakest / FAINT, max(spreads[measured].min(initial=1.0) * CONTRAST, weakest))
    weighed = np.where(measured, spreads, faint)
    if n <= MOST_AT_ONCE and (measured.all() or len(figures.sums) > 1):
        return _by_search(constraint, system, norm, weighed, start)
    from holdfast import onto as update

    problem = update.Problem(n, system, norm, weighed, True)
    if n <= search.MOST_BRANCHED and problem.forest is None:
        return _by_search(constraint, system, norm, weighed, start)
    found = _by_areas(figures, constraint, start, measured, spreads, norm)
    if found is None:
        way = known(update.choose(problem))
        answer = update.certified(way, problem, start, problem.right_hand_sides(), 0)
        found = _looked_at(constraint, np.asarray(answer.values, dtype=np.int64), answer.evidence)
    if found.evidence.nearest or n > search.MOST_BOUNDED:
        return found
    return _by_search(constraint, system, norm, weighed, start, found.values)


def _by_search(
    constraint: Constraint, system: System, norm: str, spreads: Floats, start: Ints, known: Ints | None = None
) -> Moved:
    """The nearest table by programs, with a proved gap; `known` is a table near it."""
    target = search.Target.of(system, start.astype(np.float64), spreads, absolute=norm == "l1")
    try:
        found = search.nearest_whole(target, known)
    except Refused:
        refuse_whole_contradiction(constraint.parts, start.size)
        raise
    evidence = Evidence(objective=found.distance, gap=found.gap, grid=Fraction(1), exact=True, nearest=found.nearest)
    return _looked_at(constraint, found.values, evidence)


def _looked_at(constraint: Constraint, values: Ints, evidence: Evidence) -> Moved:
    """The mended table, once everything was tested on its whole numbers."""
    missed = constraint.system(values.size).violation(values, Fraction(1))
    if missed is not None:
        raise RuntimeError(f"the mended table misses {missed}; this is a fault of holdfast")
    return Moved(values, evidence)


def _by_areas(
    figures: Figures, constraint: Constraint, start: Ints, measured: Bools, spreads: Floats, norm: str
) -> Moved | None:
    """A large crossed table, moved near the nearest one; None for others. Guesses count as figures there."""
    from holdfast import onto as update
    from holdfast.onto.ways import areas

    kinds = {part.kind for part in constraint.parts}
    least = MOST_PATHS if len(figures.sums) == 2 else areas.MOST_EXACT
    simple = sum(part.kind == "equals" for part in constraint.parts) == 1 and kinds <= {"equals", "nonnegative"}
    if norm != "l2" or len(figures.sums) < 2 or figures.n <= least or not simple or (spreads != spreads[0]).any():
        return None
    found = as_areas(figures)
    if found is None:
        return None
    query, order = found
    asked = consistent(query) & nonnegative() if "nonnegative" in kinds else consistent(query)
    problem = update.Problem(query.n, asked.system(query.n), norm, spreads[order], True)
    if not areas.accepts(problem):
        return None
    answer = areas.certified(problem, start[order], problem.right_hand_sides(), 0)
    values = np.empty(figures.n, dtype=np.int64)
    values[order] = answer.values
    evidence = answer.evidence
    if not measured.all():
        evidence = replace(evidence, notes=(*evidence.notes, GUESSES_COUNT))
    return _looked_at(constraint, values, evidence)


def guessed(figures: Figures, published: Ints, measured: Bools, *, nonnegative: bool) -> Ints:
    """Published figures with guesses for the missing ones: an even share of what a sum leaves for them."""
    values, sure = published.copy(), measured.copy()
    for _ in range(GUESSES):
        if sure.all():
            break
        before = sure.copy()
        for sums in figures.sums:
            open_ = ~before
            sums_known = np.bincount(
                sums.parent[(sums.parent >= 0)],
                weights=np.where(before, values, 0)[sums.parent >= 0],
                minlength=figures.n,
            )
            lacking = np.bincount(sums.parent[sums.parent >= 0], weights=open_[sums.parent >= 0], minlength=figures.n)
            totals = sums.owners[~sure[sums.owners] & (lacking[sums.owners] == 0)]
            values[totals] = np.rint(sums_known[totals]).astype(np.int64)
            sure[totals] = True
            parts = np.flatnonzero((sums.parent >= 0) & ~sure)
            parts = parts[before[sums.parent[parts]]]
            above = sums.parent[parts]
            share = (values[above] - sums_known[above]) / np.maximum(lacking[above], 1)
            values[parts] = np.rint(np.maximum(share, 0) if nonnegative else share).astype(np.int64)
            sure[parts] = True
    return values


def limits(figures: Figures, low: Ints, high: Ints) -> tuple[Ints, Ints, int]:
    """Narrow certain limits of whole figures by the sums; also a figure that nothing is left for, or −1.

    Exact on hierarchies, one pass up and one down. Elsewhere limits are carried from sum to sum: true, if not always
    the narrowest.
    """
    low, high = low.copy(), high.copy()
    if len(figures.sums) == 1:
        passed = breadth_first(figures.sums[0].parent)[:3]
        bad = int(bound_upwards(*passed, low, high, 0.0))
        if bad < 0:
            bound_downwards(*passed, low, high)
        return low, high, bad
    rows = [side for sums in figures.sums for side in (sums.rows, -sums.rows)]
    if rows:
        A = sparse.csr_array(sparse.vstack(rows, format="csr"))
        low, high = carried(A, np.zeros(A.shape[0], dtype=np.int64), (low, high), ROUNDS, whole=True)
    crossed = np.flatnonzero(low > high)
    return low, high, int(crossed[0]) if crossed.size else -1


def filled_ranges(figures: Figures, values: Ints, missing: Ints, low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """The range that the other figures, as mended, leave for each missing one."""
    low, high = low.copy(), high.copy()
    given = np.setdiff1d(np.arange(figures.n), missing)
    low[given] = high[given] = values[given]
    low, high, bad = limits(figures, low, high)
    assert bad < 0  # the mended table itself lies within
    if len(figures.sums) > 1 and missing.size <= MOST_PROGRAMS and figures.n <= MOST_CELLS and (low >= 0).all():
        from holdfast.disclosure.figures import CellRows
        from holdfast.disclosure.interval_programs import ranges as program_ranges

        rows = sparse.csr_array(sparse.vstack([sums.rows for sums in figures.sums], format="csr"))
        none = sparse.csr_array((0, figures.n), dtype=np.int64)
        cells = CellRows(rows, np.zeros(rows.shape[0], dtype=np.int64), none, np.zeros(0, dtype=np.int64), low, high)
        targets = sparse.csr_array(
            (np.ones(missing.size, dtype=np.int64), (np.arange(missing.size), missing)), shape=(missing.size, figures.n)
        )
        try:
            found = program_ranges(cells, targets, SECONDS)
        except Refused:
            return low, high
        low[missing], high[missing] = found.low, found.high
    return low, high


def error_bars(
    constraint: Constraint, said: Stated, start: Ints, measured: Bools, own: tuple[Ints, Ints], sure: tuple[Ints, Ints]
) -> ErrorBars:
    """What the published figures tell about the true ones: the best linear estimate, its errors, certain limits.

    `own`: limits that each figure has by itself, `sure`: those that all have together.
    """
    from holdfast.mechanism.published.error_bars import ErrorBars

    ends = [
        np.where(np.abs(side) >= LARGEST, sign * np.inf, side) for side, sign in zip(sure, (-1.0, 1.0), strict=True)
    ]
    parts = tuple(part for part in constraint.parts if part.kind in EQUALITIES)
    made = _estimated if said.law is not None else _simulated
    centre, spread = made(replace(constraint, parts=parts), said, start, measured, own)
    return ErrorBars(centre, spread, ends[0], ends[1], whole=True)


def _estimated(constraint: Constraint, said: Stated, start: Ints, measured: Bools, _: Any) -> tuple[Any, Spread | None]:
    """The figures moved onto the equalities alone, weighted by the noise, and the law of the errors of that."""
    from holdfast import onto as update
    from holdfast.noise.spread import independent_spread

    n, law = start.size, said.law
    assert law is not None
    if constraint.parts:
        spreads = np.where(measured, np.maximum(said.spreads, 1e-12), np.inf)
        problem = update.Problem(n, constraint.system(n), "l2", spreads, False)
        way: Any = update.choose(problem)
        if hasattr(way, "spread"):
            if not measured.all():  # nothing is measured of what is missing
                which = np.where(measured, law.complete, len(law.laws)).astype(np.int32)
                law = replace(law, laws=(*law.laws, None), which=which)
            return way.image(problem, start[None, :], problem.right_hand_sides(), None)[0], way.spread(problem, law)
    return start, independent_spread(law) if measured.all() else None


def _simulated(
    constraint: Constraint, said: Stated, start: Ints, measured: Bools, limits: tuple[Ints, Ints]
) -> tuple[Any, Spread | None]:
    """The best linear estimate from what each figure alone tells of the true one, and its errors, simulated.

    Every whole number within its limits counts alike before a figure is seen. None where there are too many.
    """
    from holdfast.noise.spread import Spread
    from holdfast.randomness import seeded

    low, high = limits
    n, closed = start.size, (low > -LARGEST) & (high < LARGEST)
    width = int((high - low)[closed].max(initial=0)) + 1
    size = min(MOST_STUDIED // n, MOST_DRAWS)
    if n * width > MOST_STUDIED or size < FEWEST_DRAWS:
        return start, None
    true = low[:, None] + np.arange(width)
    assert said.likelihood is not None
    chances = np.where(measured[:, None], said.likelihood(start[:, None], true), 1.0) * (true <= high[:, None])
    chances[~closed] = 0.0
    chances /= np.maximum(chances.sum(axis=1, keepdims=True), 1e-300)
    mean = np.where(closed, (chances * np.arange(width)).sum(axis=1), 0.0)
    variances = np.where(closed, (chances * (np.arange(width) - mean[:, None]) ** 2).sum(axis=1), 0.0)
    open_ = np.sqrt(OPEN * (1.0 + variances.max()))
    uniform = seeded(0).words(size * n).reshape(n, size).astype(np.float64) * 2.0**-64
    ends = np.cumsum(chances, axis=1)
    errors = np.stack([np.searchsorted(row, each) for row, each in zip(ends, uniform, strict=True)]) - mean[:, None]
    errors[~closed] = open_ * np.sqrt(12.0) * (uniform[~closed] - 0.5)
    centre = np.where(closed, low + mean, start)
    if constraint.parts:
        system = constraint.system(n)
        own = np.where(closed, np.maximum(variances, variances.max() / OPEN), open_**2)
        best = Linear(system, Covariance(own, np.zeros((n, 0))))
        centre, errors = best.moved(centre[:, None], system.right_hand_sides())[:, 0], best.moved(errors, 0)
    sizes = np.sort(np.abs(errors), axis=1)

    def quantiles(p: float) -> Floats:
        inside = abs(2 * p - 1)
        shown = inside + 2 * (inside * (1 - inside) / size) ** 0.5  # two standard errors of what was simulated
        return np.sign(p - 0.5) * sizes[:, min(int(np.ceil(shown * size)), size - 1)]

    return centre, Spread(errors.std(axis=1), lambda weights: float((weights @ errors).var()), quantiles, measured=True)
