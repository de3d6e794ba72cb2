"""Bounds on outputs beside equalities of any kind, line by line along the change of the records.

What is allowed is cut into lines; on each, the change moves an interval by one step, at whose end the noise of an
output that a bound holds has the sign opposite to its change. Proof: docs/theory/lines.md.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb

from holdfast.constraints import System
from holdfast.noise.precision import PRICE_BITS, ball, working_precision
from holdfast.privacy import Additive, Differences, Guarantee

LINES = "bounds on outputs, line by line: ε + log(1 + (e^ε − 1)e^−2/λ) (docs/theory/lines.md)"


def line_price(base: Additive, system: System, differences: Differences, **words: Any) -> Guarantee | None:
    """The guarantee of Laplace noise given bounds on outputs and equalities of any kind; None for other rows.

    Guarantee (docs/theory/lines.md, Proposition 1), never above 2ε.
    """
    if base.law.kind != "laplace" or not base.query.integer or base.query.grid is not None:
        return None
    loss = base.loss(differences).value
    with working_precision(PRICE_BITS):
        saved = _held_rate(base, system)
        if not saved:
            return None
        gain = line_gain(loss, saved, integer=base.law.integer).min(ball(loss))
        return base.pure(ball(loss) + gain, **(words | {"because": LINES}))


def line_gain(loss: Fraction, saved: Fraction, *, integer: bool) -> arb:
    """Bound log c(x + d)/c(x) for changes of loss at most `loss`, where bounds hold outputs of rate `saved` or more."""
    size, rest = ball(loss), loss - 2 * saved
    if integer:
        return (1 + (size.exp() - 1) * (-2 * ball(saved)).exp()).log()
    return (1 + size * ((ball(rest).exp() - 1) / ball(rest) if rest else arb(1))).log()


def _held_rate(base: Additive, system: System) -> Fraction:
    """The least 1/λ of an output that bounds hold and records change; 0 where other rows hold, or one is unmeasured."""
    low, high = system.real_bounds()
    held = (np.isfinite(low) | np.isfinite(high)) & ~system.null_space().pinned_coordinates()
    if system.inequalities.count or system.branches or not held.any():
        return Fraction(0)
    groups = [0] if base.law.which is None else np.unique(base.law.which[held]).tolist()
    return min(base.inverse_scales[int(group)] for group in groups)
