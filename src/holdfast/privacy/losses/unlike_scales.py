"""Integer Gaussian noise of unlike scales: the sum of the losses of all coordinates, on one grid.

Losses d_i·u/σ_i² of different scales have no common lattice that could be listed. Here every coordinate's loss is put
on a grid that is fine beside the width of their sum, from above (`loss_laws`), and the laws are added.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from holdfast.privacy.losses.integer_laws import BITS, DOUBLE_SAFETY, REACH, Part, column, merged
from holdfast.privacy.losses.loss_laws import Loss, Total, added, from_curve
from holdfast.privacy.rounding import ball, outward

#: Step of the grid, in standard deviations of the sum.
FINENESS = 0.002
#: Coordinates with a larger σ² have too many points to list: their curve δ(ε) has a closed form.
LISTED = 400**2
#: Distance of the points of such a curve, in standard deviations of the coordinate.
CURVE_FINENESS = 0.05
#: Below this δ the ends of the window and of the lists are too heavy.
LEAST_DELTA = 1e-18

#: (|d_i|, σ_i²) and the number of such coordinates.
Kind = Mapping[tuple[int, Fraction], int]


@dataclass(frozen=True)
class _Coordinate:
    """Losses ρ + unit·u, u an integer Gaussian of this variance; `factor` (a ball) times its masses bounds them."""

    unit: Fraction
    variance: Fraction
    rho: Fraction
    factor: Any = 1


def total_of(kind: Kind, closed: Callable[[Fraction, Fraction, Fraction, Fraction], float]) -> Total:
    """Return the added losses of all coordinates; closed(variance, unit, ρ, ε) bounds δ(ε) of one of large variance."""
    coordinates = [each for key, count in sorted(kind.items()) for each in _coordinates(*key, count)]
    rho = sum((each.rho for each in coordinates), Fraction(0))
    step = Fraction(FINENESS * math.sqrt(2 * rho))
    losses = []
    factor = ball(1)
    for each in coordinates:
        factor *= each.factor
        if each.variance <= LISTED:
            losses.append((_listed(each, step), 1))
            continue
        spread = math.sqrt(2 * each.rho)
        every = max(1, math.floor(CURVE_FINENESS * spread / float(step)))
        end = math.ceil((float(each.rho) + REACH * spread) / float(step))
        curve = partial(closed, each.variance, each.unit, each.rho)
        losses.append((from_curve(curve, step, every, -end, end), 1))
    reach, middle = math.ceil(REACH / FINENESS), math.ceil(rho / step)
    return added(losses, step, -reach, middle + reach).times(outward(factor))


def _coordinates(size: int, sigma2: Fraction, count: int) -> list[_Coordinate]:
    """Return so many coordinates alike: as one, where their sum is smooth enough, otherwise one by one."""
    unit, rho = size / sigma2, Fraction(size) ** 2 / (2 * sigma2)
    parts, factor = merged([Part(1, sigma2, count)])
    if len(parts) == 1 and parts[0].count == 1:
        return [_Coordinate(unit, parts[0].variance, count * rho, factor)]
    return [_Coordinate(unit, sigma2, rho)] * count


def _listed(one: _Coordinate, step: Fraction) -> Loss:
    """Return the losses of one coordinate, each point shared between two places of the grid.

    Both the mass and the mass times e^−loss are kept ("connect the dots", as in `loss_laws`).
    """
    masses = column(one.variance, Fraction(0))
    slope, offset = one.unit / step, one.rho / step
    bottom = math.lcm(slope.denominator, offset.denominator)
    top, start = int(slope * bottom), int(offset * bottom)
    found = [divmod(start + top * (masses.start + i), bottom) for i in range(len(masses.values))]
    places = np.array([place for place, _ in found])
    rests = np.array([rest / bottom for _, rest in found]) * float(step)
    # A whole number becomes the nearest double: the next one is above it; the power of two is exact.
    weights = np.nextafter(np.array([float(value) for value in masses.values]), np.inf) * 2.0**-BITS
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
