"""Integer Gaussian noise of unlike scales: the sum of the losses of all coordinates, on one grid.

Losses d_i·u/σ_i² of different scales have no common lattice that could be listed. Here every coordinate's loss is put on
a grid that is fine beside the width of their sum, from above (`loss_laws`), and the laws are added.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial

import numpy as np

from holdfast.privacy.loss_laws import Loss, Total, added, from_curve
from holdfast.privacy.losses import BITS, DOUBLE_SAFETY, REACH, column
from holdfast.privacy.rounding import outward

#: Step of the grid, in standard deviations of the sum.
FINENESS = 0.004
#: Coordinates with a larger σ² have too many points to list: their curve δ(ε) has a closed form.
LISTED = 400**2
#: Distance of the points of such a curve, in standard deviations of the coordinate.
CURVE_FINENESS = 0.05
#: Below this δ the ends of the window and of the lists are too heavy.
LEAST_DELTA = 1e-18

#: (|d_i|, σ_i²) and the number of such coordinates.
Kind = Mapping[tuple[int, Fraction], int]


def total_of(kind: Kind, closed: Callable[[int, Fraction, Fraction], float]) -> Total:
    """Return the added losses of all coordinates; closed(|d|, σ², ε) bounds δ(ε) of one coordinate of large σ²."""
    rho = sum((count * size**2 / (2 * sigma2) for (size, sigma2), count in kind.items()), Fraction(0))
    width = math.sqrt(2 * rho)
    step = Fraction(FINENESS * width)
    reach = math.ceil(REACH / FINENESS)
    middle = math.ceil(rho / step)
    losses = []
    for (size, sigma2), count in sorted(kind.items()):
        if sigma2 <= LISTED:
            losses.append((_listed(size, sigma2, step), count))
            continue
        own = Fraction(size) ** 2 / (2 * sigma2)
        spread = math.sqrt(2 * own)
        every = max(1, math.floor(CURVE_FINENESS * spread / float(step)))
        end = math.ceil((float(own) + REACH * spread) / float(step))
        losses.append((from_curve(partial(closed, size, sigma2), step, every, -end, end), count))
    return added(losses, step, min(middle, 0) - reach, middle + reach)


def _listed(size: int, sigma2: Fraction, step: Fraction) -> Loss:
    """Return the loss d²/2σ² + d·u/σ² of one coordinate, each point shared between two places of the grid.

    Both the mass and the mass times e^−loss are kept ("connect the dots", as in `losses.Masses.spread`).
    """
    masses = column(sigma2, Fraction(0))
    slope, offset = size / (sigma2 * step), Fraction(size) ** 2 / (2 * sigma2 * step)
    bottom = math.lcm(slope.denominator, offset.denominator)
    top, start = int(slope * bottom), int(offset * bottom)
    found = [divmod(start + top * (masses.start + i), bottom) for i in range(len(masses.values))]
    places = np.array([place for place, _ in found])
    rests = np.array([rest / bottom for _, rest in found]) * float(step)
    weights = np.array([outward(Fraction(value, 1 << BITS)) for value in masses.values])
    whole = math.expm1(float(step))
    lower = weights * np.expm1(float(step) - rests) / whole * DOUBLE_SAFETY
    upper = weights * np.exp(float(step) - rests) * np.expm1(rests) / whole * DOUBLE_SAFETY
    sums = np.zeros(int(places[-1]) + 2 - int(places[0]))
    np.add.at(sums, places - places[0], lower)
    np.add.at(sums, places - places[0] + 1, upper)
    sums *= 1 + len(found) * 2.0**-50  # what the additions may have lost
    used = np.flatnonzero(sums)
    beyond = outward(Fraction(masses.missing, 1 << BITS))
    return Loss(tuple((used + places[0]).tolist()), tuple(sums[used].tolist()), beyond)
