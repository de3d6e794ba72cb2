"""Inequalities of any kind: one free direction, lines along the change of the records, and noise that keeps them.

Along one free direction the output is x + k·v with weight β^|k| for −a ≤ k ≤ b, where x lies a steps from one end and b
from the other. In general what is allowed is cut into lines along the change of the records; and c is at least the
probability of noise that breaks no inequality wherever it starts. Proofs: docs/theory/orders-and-lines.md, §§3–4.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import flint
import numpy as np
from flint import arb
from scipy import sparse

from holdfast.arrays import Bools
from holdfast.constraints import System
from holdfast.noise.precision import PRICE_BITS, ball, working_precision
from holdfast.privacy import Additive, Differences, Guarantee

#: The direction is read from the rows of tables up to this size.
MOST_VALUES = 2_000
#: Outputs up to which those that tell the others are looked for.
MOST_TOLD = 200

DIRECTION = "one free direction between two ends: ε + log(1 + β(1 − e^−ε)) (THEORY §2, one line)"
LINES = "bounds on outputs, line by line: ε + log(1 + (e^ε − 1)e^−2/λ) (docs/theory/orders-and-lines.md)"
KEPT = "what must hold has at least a known probability at every table (docs/theory/orders-and-lines.md)"


def least_price(base: Additive, system: System, differences: Differences, **words: Any) -> Guarantee | None:
    """The least of what is known of inequalities of any kind; None where that is nothing.

    Guarantee (docs/theory/orders-and-lines.md, Propositions 4, 5 and 7), never above 2ε. Integer Gaussian: ρ at integer
    Rényi orders, along one free direction, and given one sum.
    """
    direction = system.n <= MOST_VALUES and system.null_space().dimension == 1
    loss = base.loss(differences).value
    if base.law.kind == "gaussian":
        if not base.law.integer or not loss or not (direction or _one_sum(base, system)):
            return None
        because = "integer Gaussian noise on a line or given one sum keeps ρ at integer orders (THEORY H6)"
        return base.integer_gaussian(loss, None, **(words | {"because": because, "orders": "integer"}))
    with working_precision(PRICE_BITS):
        prices = [(_along_direction(base, system, loss), DIRECTION)] if direction else []
        prices += [(_along_lines(base, system, loss), LINES), (_kept(base, system), KEPT)]
        answers = [(price, because) for price, because in prices if price is not None]
        if not answers:
            return None
        price, because = min(answers, key=lambda answer: float(answer[0].upper()))
        return base.pure(ball(loss) + price.min(ball(loss)), **(words | {"because": because}))


def _one_sum(base: Additive, system: System) -> bool:
    """Whether one inequality with entries of one size is all that must hold, of a whole query."""
    rows = system.inequalities
    alone = rows.count == 1 and not (system.has_bounds or system.branches or system.equalities.count)
    return alone and base.query.cells is not None and base.query.integer and np.unique(np.abs(rows.A.data)).size == 1


def _along_direction(base: Additive, system: System, loss: Fraction) -> arb | None:
    """Proposition 4; None where no noise is measured along the direction."""
    step = Fraction(0)  # continuous noise: steps as short as one likes
    if base.law.integer:
        direction = np.abs(system.null_space().lattice_basis().toarray()[:, 0]).tolist()
        rates = (base.inverse_scales[k] for k in base.law.complete.tolist())
        step = sum((rate * size for rate, size in zip(rates, direction, strict=True)), Fraction(0))
        if not step:
            return None
    return (1 + (-ball(step)).exp() * (1 - (-ball(loss)).exp())).log() if loss else None


def _along_lines(base: Additive, system: System, loss: Fraction) -> arb | None:
    """Proposition 7, for bounds on outputs beside equalities of any kind; None for other rows."""
    saved = _held_rate(base, system) if base.query.integer and base.query.grid is None else Fraction(0)
    if not saved:
        return None
    return line_gain(loss, saved, integer=base.law.integer)


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


def _kept(base: Additive, system: System) -> arb | None:
    """Proposition 5: minus the logarithm of a probability that noise breaks no inequality, wherever in C it starts."""
    if system.branches or base.query.grid is not None or not all(base.inverse_scales):
        return None
    low, high = (np.isfinite(side) for side in system.real_bounds())
    rows = sparse.coo_array(system.inequalities.A)
    rises, falls = low.copy(), high.copy()  # outputs that some inequality keeps from falling, from rising
    rises[rows.col[rows.data > 0]] = True
    falls[rows.col[rows.data < 0]] = True
    pinned = system.null_space().pinned_coordinates()
    tied = system.null_space().dimension < system.n - int(pinned.sum())
    prices = []
    if low.sum() + high.sum() + system.inequalities.count == 1:
        prices.append(arb(2).log())  # the noise is symmetric
    matter = _telling(base, system) if tied else ~pinned
    kinds = Counter(zip(*(each[matter].tolist() for each in (base.law.complete, rises, falls)), strict=True))
    if base.law.integer or not (tied or any(up and down for _, up, down in kinds)):
        price = arb(0)
        for (law, up, down), count in kinds.items():
            alpha = (-ball(base.inverse_scales[law])).exp() if base.law.integer else arb(1)
            if tied or (up and down):
                price = price + count * ((1 + alpha) / (1 - alpha)).log()
            elif up or down:
                price = price + count * (1 + alpha).log()
        prices.append(price)
    return min(prices, key=lambda price: float(price.upper())) if prices else None


def _telling(base: Additive, system: System) -> Bools:
    """Outputs whose noise tells that of all others: of those with the least noise, if they are few."""
    space = system.null_space()
    if system.n > MOST_TOLD:
        return ~space.pinned_coordinates()
    order = np.argsort([-base.inverse_scales[k] for k in base.law.complete.tolist()], kind="stable")
    echelon, _, rank = flint.fmpz_mat(space.lattice_basis().toarray()[order].T.astype(int).tolist()).rref()
    entries = np.array([[bool(entry) for entry in row] for row in echelon.tolist()[:rank]])
    chosen = np.zeros(system.n, bool)
    chosen[order[entries.argmax(axis=1)]] = True
    return chosen
