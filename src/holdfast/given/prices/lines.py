"""What is known from lines alone: where equalities leave one direction free, and for bounds on outputs of any kind.

Along one free direction the output is x + k·v with weight β^|k| for −a ≤ k ≤ b, where x lies a steps from one end and b
from the other. In general what is allowed is cut into lines along the change of the records. Proofs:
docs/theory/orders-and-lines.md, §4.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb

from holdfast.constraints import System
from holdfast.given.prices.bounds import PRECISION
from holdfast.noise.precision import ball, working_precision
from holdfast.privacy import Additive, Differences, Guarantee

#: The direction is read from the rows of tables up to this size.
MOST_VALUES = 2_000


def line_price(base: Additive, system: System, differences: Differences, **words: Any) -> Guarantee | None:
    """The guarantee of noise along one free direction given inequalities; None where more is free.

    Guarantee (docs/theory/orders-and-lines.md, Proposition 4). Integer Laplace: ε + log(1 + β(1 − e^{−ε})), a supremum
    as the far end moves away, where β = e^{−r} is the weight of one step; continuous: ε + log(2 − e^{−ε}). Integer
    Gaussian: ρ at integer Rényi orders.
    """
    if system.n > MOST_VALUES or system.null_space().dimension != 1:
        return None
    loss = base.loss(differences).value
    if loss == 0:
        return None  # no noise is measured along the line
    if base.law.kind == "gaussian":
        if not base.law.integer:
            return None
        because = "integer Gaussian noise on a line between two ends keeps ρ at integer orders (THEORY H6)"
        return base.integer_gaussian(loss, None, **(words | {"because": because, "orders": "integer"}))
    step = _step(base, system) if base.law.integer else Fraction(0)
    if step is None:
        return None
    words["because"] = "one free direction between two ends: ε + log(1 + β(1 − e^−ε)) (THEORY §2, one line)"
    with working_precision(PRECISION):
        size = ball(loss)
        extra = (-ball(step)).exp() * (1 - (-size).exp())  # continuous noise: steps as short as one likes
        return base.pure(size + (1 + extra).log(), **words)


def _step(base: Additive, system: System) -> Fraction | None:
    """What one whole step along the line costs, Σ|v_i|/λ_i; None where no noise is measured along it."""
    direction = np.abs(system.null_space().lattice_basis().toarray()[:, 0])
    groups = base.law.complete
    sizes = np.zeros(len(base.inverse_scales), dtype=np.int64)
    np.add.at(sizes, groups, direction)
    step = sum((rate * int(size) for rate, size in zip(base.inverse_scales, sizes, strict=True)), Fraction(0))
    return step or None


def along_lines(loss: Fraction, saved: Fraction, *, integer: bool) -> arb:
    """Bound log c(x + d)/c(x) for changes of loss at most `loss`, where bounds hold outputs of rate `saved` or more.

    Guarantee (docs/theory/orders-and-lines.md, Proposition 7): integer Laplace noise log(1 + (e^ε − 1)·e^{−2·saved}),
    continuous log(1 + ε·(e^κ − 1)/κ) with κ = ε − 2·saved.
    """
    size, rest = ball(loss), loss - 2 * saved
    if integer:
        return (1 + (size.exp() - 1) * (-2 * ball(saved)).exp()).log()
    return (1 + size * ((ball(rest).exp() - 1) / ball(rest) if rest else arb(1))).log()


def lines_price(base: Additive, system: System, differences: Differences, **words: Any) -> Guarantee | None:
    """The guarantee of Laplace noise given bounds on outputs beside equalities of any kind; None for other rows.

    Guarantee (docs/theory/orders-and-lines.md, Proposition 7): the loss of the noise and `along_lines`, below 2ε.
    """
    if base.law.kind != "laplace" or not base.query.integer or base.query.grid is not None:
        return None
    saved = held_rate(base, system)
    if not saved:
        return None
    loss = base.loss(differences).value
    words["because"] = "bounds on outputs, line by line: ε + log(1 + (e^ε − 1)e^−2/λ) (docs/theory/orders-and-lines.md)"
    with working_precision(PRECISION):
        return base.pure(ball(loss) + along_lines(loss, saved, integer=base.law.integer), **words)


def held_rate(base: Additive, system: System) -> Fraction:
    """The least 1/λ of an output that bounds hold and records change; 0 where other rows hold, or one is unmeasured."""
    low, high = system.real_bounds()
    held = (np.isfinite(low) | np.isfinite(high)) & ~system.null_space().pinned_coordinates()
    if system.inequalities.count or system.branches or not held.any():
        return Fraction(0)
    groups = [0] if base.law.which is None else np.unique(base.law.which[held]).tolist()
    return min(base.inverse_scales[int(group)] for group in groups)
