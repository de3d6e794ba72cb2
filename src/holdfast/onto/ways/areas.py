"""Onto the consistency of margins in every area of a hierarchy: one hierarchy of scalars per set of axes.

Weighted by the noise, least squares is the best linear estimate, in O(nodes × cells) (THEORY §10, H7;
docs/theory/areas-and-margins.md); its equalities hold up to the rounding of sums of doubles. Whole or non-negative
values follow it down the hierarchy in steps (onto/areas), and hold exactly where they are whole.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
from scipy import special

from holdfast.arrays import Array, Floats, kept
from holdfast.domains import Hierarchy
from holdfast.evidence import Evidence
from holdfast.noise import Independent
from holdfast.noise.error_model import ErrorModel, of_independent
from holdfast.noise.reach import reach_of
from holdfast.noise.spread import STUDY, Spread, bounded_quantiles, simulated_quantiles, simulated_spread
from holdfast.onto.areas.requirements import Asked, asked_of, exact_figures
from holdfast.onto.areas.steps import EVERYTHING, Steps, empty_cells, refuse_too_many_cells
from holdfast.onto.independent_shares import Answer
from holdfast.onto.problem import MOST_SIMULATED, Problem, Ties, simulated_errors
from holdfast.queries.areas.rules import Rules
from holdfast.trees.normal import grains
from holdfast.trees.normal.padded import Padded
from holdfast.trees.normal.residuals import Residuals, measured_margins

#: Numbers that are estimated in one piece.
MOST_TOGETHER = 1 << 22
#: Outputs up to which a program looks for the nearest whole or non-negative table.
MOST_EXACT = 300
#: Outputs up to which it also holds exact figures and bounds.
MOST_RULED = 1_000


def accepts(problem: Problem) -> bool:
    """Whether the system is such a query's consistency, with bounds at 0 or none, and entries of a group are alike.

    Where nothing is below 0 some outputs may be 0: cells known to be empty.

    Whole or non-negative values are moved in three steps, to a table near the nearest one, where there are too many for
    a program that finds the nearest.
    """
    if problem.norm != "l2" or _residuals(problem) is None:
        return False
    if _asked(problem) is not None:
        return problem.n > MOST_RULED
    if problem.depends_on_data or _formula(problem):
        return _formula(problem) or problem.n > MOST_EXACT
    # Whole numbers of any sign: an error that would depend on the data is left to other ways.
    found = _residuals(problem)
    return found is not None and found.exact and problem.n > MOST_EXACT and steps_of(problem).equivariant


def goes_down(problem: Problem) -> bool:
    """Whether whole or non-negative values can be moved from the roots down, whatever areas are told by."""
    return problem.norm == "l2" and problem.depends_on_data and _residuals(problem) is not None


def _formula(problem: Problem) -> bool:
    return not (problem.integer or problem.depends_on_data)


@kept
def _asked(problem: Problem) -> Asked | None:
    """What must hold beside consistency and non-negativity; None where that is nothing, or cells that are empty."""
    if not _may_be_ruled(problem):
        return None
    residuals = Residuals.of_system(problem.system, problem.spreads, ruled=True)
    found = None if residuals is None else asked_of(problem, residuals.query)
    return None if found is None or not found.rows.shape[0] or found.empty_only else found


def _may_be_ruled(problem: Problem) -> bool:
    """Whether whole numbers of 0 or more are asked for, and something beside that and consistency."""
    return problem.integer and problem.system.has_bounds and problem.unit == 1 and problem.n > MOST_EXACT


@kept
def _residuals(problem: Problem) -> Residuals | None:
    ruled = _asked(problem) is not None
    found = Residuals.of_system(problem.system, problem.spreads, ruled=ruled)
    if found is None and not ruled:
        found = _filled_up(problem)
    return found if found is not None and problem.unit == 1 else None


def _filled_up(problem: Problem) -> Padded | None:
    """The query with recoded axes whose groups differ in size, filled up."""
    asked = measured_margins(problem.system, problem.spreads)
    if asked is None or grains.alike(asked[0].table):
        return None
    found = Padded.of(*asked)
    return None if found.untold is not None else found


@kept
def steps_of(problem: Problem, source: str = EVERYTHING) -> Steps:
    residuals = _residuals(problem)
    assert residuals is not None
    if _asked(problem) is not None:
        return Steps(residuals, True, source=source)
    fixed = [part.rows.A.indices for part in problem.system.parts if part.kind == "fixed" and part.rows is not None]
    outputs = np.concatenate([np.zeros(0, np.int64), *fixed])
    query = residuals.asked if isinstance(residuals, Padded) else residuals.query
    empty = residuals.empty(empty_cells(query, outputs))
    return Steps(residuals, problem.integer, signed=not problem.depends_on_data, empty=empty, source=source)


def rules_of(problem: Problem, right: Array) -> Rules | None:
    """What must hold beside consistency and non-negativity, with the exact figures; None where that is nothing."""
    asked = _asked(problem)
    return None if asked is None else asked.rules(exact_figures(problem, right))


def image(problem: Problem, noisy: Array, right: Array, ties: Ties = None) -> Array:
    if _formula(problem):
        residuals = _residuals(problem)
        assert residuals is not None
        if len(noisy) == 1:
            return _estimated(residuals, noisy)
        rows = np.array_split(noisy, min(len(noisy), -(-noisy.size // MOST_TOGETHER)) or 1)
        return np.concatenate([_estimated(residuals, part) for part in rows])
    coins = np.zeros(len(noisy), np.uint64) if ties is None else ties
    return np.stack([certified(problem, row, right, int(coin)).values for row, coin in zip(noisy, coins, strict=True)])


def certified(problem: Problem, noisy: Array, right: Array, coin: int = 0) -> Answer:
    residuals = _residuals(problem)
    assert residuals is not None
    if _formula(problem):
        return Answer(_estimated(residuals, noisy), Evidence(gap=0.0))
    return moved_down(problem, noisy, right, coin, EVERYTHING)


def moved_down(problem: Problem, noisy: Array, right: Array, coin: int, source: str) -> Answer:
    """Move one table, (n,), from the roots down, with its evidence."""
    residuals = _residuals(problem)
    assert residuals is not None
    refuse_too_many_cells(residuals.query)
    steps = replace(steps_of(problem, source), rules=rules_of(problem, right))
    measured = residuals.inside(noisy.astype(np.float64))
    estimate = residuals.estimated(measured)
    told = estimate if source == EVERYTHING else steps.estimated(measured)
    least = _distance(residuals.outside(estimate), noisy, problem.spreads)
    del measured, estimate  # a census fills memory
    cells, gaps = steps.shared_out(told, coin)
    del told
    values = residuals.answer(cells)
    reached = _distance(values, noisy, problem.spreads)
    gap = max(reached - least, 0.0)
    grid = Fraction(1) if problem.integer else None
    notes = _said(residuals.query.hierarchy, gaps)
    return Answer(values, Evidence(reached, gap, grid, problem.integer, nearest=False, notes=notes))


def _estimated(residuals: Residuals, noisy: Array) -> Floats:
    return residuals.outside(residuals.estimated(residuals.inside(noisy.astype(np.float64, copy=False))))


def _distance(values: Array, noisy: Array, spreads: Floats) -> float:
    """Return Σ(z − y)²/v, piece by piece: a census is large."""
    total = 0.0
    for start in range(0, noisy.size, MOST_TOGETHER):
        at = slice(start, start + MOST_TOGETHER)
        total += float(((values[at] - noisy[at]) ** 2 / spreads[at]).sum())
    return total


def _said(tree: Hierarchy, gaps: Floats) -> tuple[str, ...]:
    """How far the parts of areas lie from what is told about them, beyond what any cells that add up must."""
    inner = np.flatnonzero(~tree.is_leaf)
    if not inner.size:
        return ()
    worst = inner[np.argmax(gaps[inner])]
    return (
        f"gap of an area's parts, in squared standard errors: {np.median(gaps[inner]):.4g} in the middle of "
        f"{inner.size:,} areas, {gaps[worst]:.4g} at most, in {' / '.join(tree.path(int(worst)))}",
    )


def spread(problem: Problem, law: Independent) -> Spread | None:
    """Errors in closed form where the weights are the noise's own; otherwise simulated, where that is not too much."""
    residuals = _residuals(problem)
    assert residuals is not None
    if problem.depends_on_data:
        return None
    small = STUDY * problem.n <= MOST_SIMULATED
    if problem.integer or not residuals.exact or not np.allclose(problem.spreads, law.variances, rtol=1e-12, atol=0.0):
        return simulated_spread(simulated_errors(problem, law, image)) if small else None
    errors: Floats = np.sqrt(residuals.variances())
    model = ErrorModel("moved", law, lambda: problem.space.rows, problem.spreads)
    if law.kind == "gaussian" and not law.integer:
        normal = replace(model, kind="normal")
        return Spread(errors, residuals.variance_of, lambda p: errors * special.ndtri(p), model=normal)
    sides = np.zeros(problem.space.rows.shape[0], dtype=np.int64)
    independent = of_independent(
        law, lambda weights: image(problem, (weights * problem.spreads)[None], sides)[0] / problem.spreads
    )
    quantiles = bounded_quantiles(law, errors)
    if small:
        quantiles = simulated_quantiles(lambda: simulated_errors(problem, law, image)(STUDY))
    return Spread(errors, residuals.variance_of, quantiles, small, reach_of(law), independent, model)
