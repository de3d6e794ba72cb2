"""The draw that is published with a table and has a public law of errors, and error bars from it (THEORY H10)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Refused, array, probability
from holdfast.arrays import Floats
from holdfast.constraints.system.parts import EQUALITIES
from holdfast.mechanism.published.error_bars import ErrorBars, certain
from holdfast.noise.spread import FEWEST, STUDY, Spread, simulated_quantiles
from holdfast.privacy import Guarantee
from holdfast.queries.areas.area_margins import AreaMargins
from holdfast.randomness import Stream, seeded

#: A Mechanism; to import its name would close a circle.
Made = Any
#: Errors that are simulated in all for sums of figures.
MOST_SUMMED = 1 << 22


def input_is_free(mechanism: Made, statements: Sequence[Guarantee]) -> bool:
    """Whether the input of a move may be published beside the table (THEORY H10).

    Beside a table conditioned on bounds it would be a second spend (THEORY §9), and a subspace statement is about the
    moved part alone.
    """
    known = bool(mechanism.moves) and not mechanism.source.depends_on_data
    return known and all(each.scope != "subspace" for each in statements)


def _independent(mechanism: Made) -> bool:
    """Whether the noise of the outputs is independent: neither conditioned nor made for what is asked."""
    return mechanism.source.system is None and mechanism.source.law is None


def measured_deviations(mechanism: Made, rows: slice = slice(None)) -> Floats:
    """The standard deviation of noisy answers that a move started from; infinite where nothing was measured."""
    law = mechanism.base.law
    if _independent(mechanism):
        some = law if rows == slice(None) else law.at(np.arange(*rows.indices(law.n)))
        return np.sqrt(np.asarray(some.variances)) * float(mechanism.base.unit)
    return np.asarray(mechanism.linear_part.standard_error()[rows])


def sum_intervals(bars: ErrorBars, sums: Any, confidence: Any) -> Floats:
    """Return ends, (k, 2), for sums of true figures, `sums` a sparse matrix of 0 and 1, (k, n)."""
    low, high = sums @ bars.low, sums @ bars.high
    if bars.spread is None or bars.noise is None or not sums.shape[0]:
        return np.column_stack([low, high])
    middle = sums @ np.asarray(bars.centre, dtype=np.float64)
    reach = sum_reach(bars.spread, bars.noise, sums, confidence)
    return bars.within(middle - reach, middle + reach, low, high)


def sum_reach(spread: Spread, noise: Callable[[int, Stream], Any], sums: Any, confidence: Any) -> Floats:
    """How far the intervals of sums reach to either side.

    Measured on simulated errors; for many outputs the sum of the figures' own intervals, each at its share of what may
    be missed (a union bound).
    """
    tail = (1 - float(probability("confidence", confidence))) / 2
    reach = np.zeros(sums.shape[0])
    if sums.shape[1] * FEWEST <= MOST_SUMMED:
        size = min(MOST_SUMMED // sums.shape[1], STUDY)
        errors = simulated_quantiles(lambda: np.asarray(sums @ noise(size, seeded(0)).T).T)
        try:
            reach = np.maximum(np.abs(errors(tail)), np.abs(errors(1 - tail)))
        except Refused:  # too rare for so few simulated errors
            reach = np.zeros(0)
    if not reach.any():
        parts = np.diff(sums.indptr)
        for count in np.unique(parts[parts > 0]).tolist():
            each = np.maximum(*(np.abs(spread.quantiles(p)) for p in (tail / count, 1 - tail / count)))
            reach = (
                np.where(parts == count, sums @ each, reach) if reach.size else np.where(parts == count, sums @ each, 0)
            )
    return reach


def possible(mechanism: Made) -> bool:
    """Whether a draw with a public law of errors can be published beside the tables of a mechanism."""
    return not mechanism.source.depends_on_data


def linear_part(mechanism: Made) -> Made | None:
    """The mechanism whose draw is published with a table and has a public law of errors; None where there is none.

    The mechanism itself where its law does not depend on the data and is known. Otherwise what was drawn before it was
    moved within bounds or to whole numbers; of independent noise, that draw moved onto the equalities alone, weighted
    by the noise: its best linear estimate.
    """
    if mechanism.source.depends_on_data:
        return None
    whole = any(each.problem.integer for each in mechanism.moves) and _independent(mechanism)
    if not mechanism.moves or not (mechanism.depends_on_data or whole or mechanism.unit_spread() is None):
        return mechanism
    drawn = replace(mechanism, moves=())
    asked = mechanism.asked
    if not _independent(mechanism) or asked is None:
        return drawn
    kept = tuple(part for part in asked.parts if part.kind in EQUALITIES or part.origin == "invariant")
    if any(isinstance(part.source, AreaMargins) for part in kept):  # the best linear estimate; what is exact is certain
        kept = tuple(part for part in kept if part.kind == "consistent")
    return drawn.onto(replace(asked, parts=kept, branches=()), integer=False) if kept else drawn


def known_errors(mechanism: Made, *, published: bool) -> tuple[Made | None, Spread | None]:
    """The mechanism whose draw has a public law of errors, and that law; `published`: the draw behind a move is."""
    try:
        linear = mechanism.linear_part
        if linear is not None and not published and not mechanism.depends_on_data:  # only the table is published
            linear = mechanism
        if linear is mechanism or (linear is not None and published):
            return linear, linear.unit_spread()
    except Refused:  # what is not measured is not determined without the bounds
        pass
    return None, None


def error_bars(mechanism: Made, values: npt.NDArray[Any], draw: npt.NDArray[Any] | None) -> ErrorBars:
    """What published values, and the draw that is published beside them if there is one, tell about the truth."""
    shape = (mechanism.query.n,)
    values, draw = array("values", values, shape), None if draw is None else array("draw", draw, shape)
    whole = mechanism.base.law.integer and mechanism.base.unit == 1
    low, high = certain(mechanism.held, values, whole=whole)
    linear, spread = known_errors(mechanism, published=draw is not None)
    centre = values if linear is None or linear is mechanism else _estimated(linear, values, draw, whole=whole)
    return ErrorBars(centre, spread, low, high, whole, None if spread is None or linear is None else linear.noise)


def _estimated(linear: Made, values: npt.NDArray[Any], draw: Any, *, whole: bool) -> npt.NDArray[Any]:
    """The draw, moved so that all sums and the exact figures of the published table hold."""
    if not linear.moves:
        return draw
    problem, query = linear.moves[0].problem, linear.query
    sides = problem.space.sides_of(np.asarray(values) if linear.base.unit == 1 else values / float(linear.base.unit))
    right = np.rint(sides.astype(np.float64)).astype(np.int64) if whole and sides.dtype.kind != "i" else sides
    steps = query.in_steps("draw", draw, (query.n,), whole=linear.base.law.integer)
    return np.asarray(query.in_units(linear.moves[0].way.image(problem, steps[None], right, None)[0]))
