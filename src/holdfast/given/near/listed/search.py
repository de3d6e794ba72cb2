"""How far a list of narrow noise must reach, and the search for all whole vectors within that radius.

q(z) = Σ|z_i|/λ_i or Σz_i²/2σ_i² as in `listed.py`; why nothing is missed: docs/theory/walks.md, §6.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np

from holdfast.arrays import Floats, Ints
from holdfast.exact.solver import linear_program
from holdfast.given.near.listed.steps import Short, times_chosen, within_norm, within_squares
from holdfast.randomness import seeded

#: Most vectors in a list, numbers that they take, and nodes of the search for them.
MOST_VECTORS, MOST_NUMBERS, MOST_VISITS = 2_000_000, 2**24, 20_000_000
#: Largest coordinate of a vector.
LARGEST_STEP = 2.0**28
#: Bases of the dimensions that the bound is shared out to, for each cell that one of them could do without.
SHARES = 8
#: A prime: what is independent modulo it is independent.
PRIME = 2**31 - 1
#: Linear forms per depth of the search at most, directions they are looked for in, and how much one must gain.
MOST_FORMS, DIRECTIONS, GAIN = 48, 80, 1.05
#: By what share the radius is enlarged, so that rounding never makes it too small.
SLACK = 1e-9


def cell_shares(basis: Ints, widths: Floats) -> Floats | None:
    """How often each output is among d independent ones, over many such choices, each of outputs seldom chosen before.

    Any two vectors of the lattice differ at such a choice of outputs. None where too few were found independent.
    """
    n, dimension = basis.shape
    count = SHARES * -(-n // dimension)
    times = times_chosen(np.ascontiguousarray(basis % PRIME), widths, count, PRIME)
    return times / count if times.sum() == count * dimension else None


def log_sums(gaussian: bool, rates: Floats, shares: Floats, parts: Floats) -> Floats:
    """Bounds on the log of Σ_z e^{−s·q(z)} for each s in parts: Σ_i x_i log Σ_u e^{−s·q_i(u)/x_i}, x the shares."""
    used = shares > 0
    slopes = parts[:, None] * rates[used] / shares[used]
    if gaussian:
        # Σ_u e^{−au²} ≤ 1 + 2e^{−a} + ∫_1^∞ 2e^{−au²} du, and ≤ 1 + √(π/a).
        with np.errstate(over="ignore"):
            near = 1 + 2 * np.exp(-slopes) * (1 + 1 / (2 * slopes))
        logs = np.log(np.minimum(near, 1 + np.sqrt(np.pi / slopes)))
    else:
        logs = -np.log(np.tanh(slopes / 2))
    return np.asarray(logs @ shares[used])


def needed_radius(gaussian: bool, rates: Floats, shares: Floats, tau: float) -> float:
    """A radius beyond which all weights together are at most tau: they are ≤ e^{−(1−s)·radius}·Σ_z e^{−s·q(z)}."""
    parts = np.arange(1, 100) / 100
    radii = (log_sums(gaussian, rates, shares, parts) - math.log(tau)) / (1 - parts)
    return float(radii.min()) * (1 + SLACK) + SLACK


def log_most(gaussian: bool, rates: Floats, shares: Floats, radius: float) -> float:
    """A bound on the log of the number of vectors within a radius: at most e^{s·radius}·Σ_z e^{−s·q(z)}."""
    parts = np.geomspace(1e-3, 10, 200)
    return float((log_sums(gaussian, rates, shares, parts) + parts * radius).min())


@dataclass(frozen=True, eq=False)
class Search:
    """A lattice basis, and a bound on its coordinates: |t_j| ≤ reach·Σ|z_i| for z = basis·t."""

    basis: Ints
    rates: Floats
    reach: float

    @classmethod
    def of(cls, basis: Ints, rates: Floats) -> Search | None:
        """Invert the basis; None where that is not certain in doubles."""
        inverse = np.linalg.pinv(basis.astype(np.float64))
        if np.abs(inverse @ basis - np.eye(basis.shape[1])).sum(axis=1).max() > 1e-6:
            return None
        return cls(np.ascontiguousarray(basis), rates, 2 * float(np.abs(inverse).max()))

    def within(self, gaussian: bool, radius: float) -> Short | None:
        """The coordinates of all vectors within a radius; None where there are too many."""
        largest = math.sqrt(radius / self.rates.min()) if gaussian else radius / self.rates.min()
        most_steps = self.reach * self.basis.shape[0] * largest
        if most_steps > LARGEST_STEP:
            return None
        dimension = self.basis.shape[1]
        found = np.empty((room(dimension), dimension), dtype=np.int32)
        if gaussian:
            factor, error = self._factor()
            count = within_squares(factor, radius + error * most_steps**2 + SLACK, found, MOST_VISITS)
        else:
            cuts, limits = np.zeros((dimension, MOST_FORMS, dimension)), np.full((dimension, MOST_FORMS), radius)
            for depth in range(dimension):
                forms, errors = self.linear_forms(depth)
                cuts[depth, : len(forms), : depth + 1] = forms
                limits[depth, : len(forms)] = radius * (1 + SLACK) + errors * most_steps
            count = within_norm(self.basis, self.rates, radius, cuts, limits, found, MOST_VISITS)
        return None if count < 0 else found[:count].copy()

    def linear_forms(self, depth: int) -> tuple[Floats, Floats]:
        """Forms y of the coordinates up to a depth with y·t ≤ Σ rates·|z|, and what each may see of a later coordinate.

        A form is that of weights w with |w_i| ≤ rates_i whose sum Σ w_i z_i does not depend on the later coordinates,
        up to rounding; a linear program finds the largest in a direction.
        """
        known, later = self.basis[:, : depth + 1].astype(np.float64), self.basis[:, depth + 1 :].astype(np.float64)
        directions = seeded(depth).normals(DIRECTIONS * (depth + 1)).reshape(DIRECTIONS, depth + 1)
        directions /= (self.rates[:, None] * np.abs(known)).sum(axis=0)
        directions[0, :depth] = 0.0  # bounds the last coordinate whatever the others are
        solver = _program(later, self.rates)
        forms, errors = np.zeros((0, depth + 1)), []
        for direction in directions:
            solver.changeColsCost(len(known), np.arange(len(known), dtype=np.int32), known @ direction)
            solver.run()
            weights = np.clip(np.array(solver.getSolution().col_value), -self.rates, self.rates)
            form = weights @ known
            if form @ direction > GAIN * np.abs(forms @ direction).max(initial=0.0):
                forms = np.vstack([forms, form])
                errors.append(float(np.abs(weights @ later).sum()))
            if len(forms) == MOST_FORMS:
                break
        return forms, np.array(errors)

    def _factor(self) -> tuple[Floats, float]:
        """A lower triangular F with |F t|² = Σ rates·z², and how far off a product of two coordinates may be in it."""
        scaled = self.basis * np.sqrt(self.rates)[:, None]
        upper: Floats = np.linalg.qr(scaled[:, ::-1])[1]
        factor = np.ascontiguousarray(upper[::-1, ::-1])
        squares = scaled.T @ scaled
        error = np.abs(factor.T @ factor - squares) + 1e-15 * len(scaled) * np.sqrt(np.outer(*[squares.diagonal()] * 2))
        return factor, 2 * float(error.sum())


def room(dimension: int) -> int:
    """How many vectors a list may hold."""
    return min(MOST_VECTORS, MOST_NUMBERS // dimension)


def _program(later: Floats, rates: Floats) -> Any:
    """The largest Σ c_i w_i over |w_i| ≤ rates_i with later·w = 0, for costs c still to be set."""
    solver = linear_program(later.T, 0.0, (-rates, rates), (0.0, 0.0), presolve="off")
    solver.changeObjectiveSense(highspy.ObjSense.kMaximize)
    return solver
