"""A statement as points (ε, δ) that every event must keep to, and the evidence against it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Refused
from holdfast.arrays import Floats
from holdfast.privacy import Guarantee

VIOLATED, NOT_REFUTED = "violated", "not refuted"
EXACT, SAMPLED = "exact", "sampled"
#: Points of the curve δ(ε) at which a statement of ρ or μ is tested.
POINTS = 24
#: The curve is followed until δ has fallen to about this.
SMALL = 1e-9


@dataclass(frozen=True, eq=False)
class Claim:
    """A statement as points (ε, δ): for every event E and neighbours x, x', P_x(E) ≤ e^ε·P_x'(E) + δ."""

    statement: Guarantee
    epsilons: Floats
    deltas: Floats

    @classmethod
    def of(cls, statement: Guarantee) -> Claim:
        """The stated (ε, δ) and, for ρ or μ, points of the curve that they imply."""
        found: list[tuple[float, float]] = []
        if statement.epsilon is not None:
            found.append((statement.epsilon, statement.delta))
        if statement.rho is not None or statement.mu is not None:
            rho = statement.rho if statement.rho is not None else (statement.mu or 0.0) ** 2 / 2
            last = rho + 2 * math.sqrt(rho * math.log(1 / SMALL))
            for epsilon in np.linspace(last / POINTS, last, POINTS).tolist():
                try:
                    at = statement.at_epsilon(epsilon)
                except Refused:
                    continue
                found.append((at.epsilon or 0.0, at.delta))
        epsilons, deltas = np.array(found, dtype=np.float64).T
        return cls(statement, epsilons, deltas)

    def margin(self, low: npt.ArrayLike, high: npt.ArrayLike) -> tuple[Floats, npt.NDArray[np.intp]]:
        """How far each event with P_x(E) ≥ low and P_x'(E) ≤ high > 0 is beyond the claim, and at which point.

        The margin is log((low − δ)/high) − ε, largest over the points; above 0 the statement is false.
        """
        p, q = np.atleast_1d(np.asarray(low, dtype=np.float64)), np.atleast_1d(np.asarray(high, dtype=np.float64))
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(np.maximum(p[:, None] - self.deltas, 0.0)) - np.log(q)[:, None]
        margins = logs - self.epsilons
        best = np.argmax(margins, axis=1)
        return margins[np.arange(len(p)), best], best


@dataclass(frozen=True)
class Evidence:
    """How far something is beyond a claim (above 0 refutes it), with ε from below at a δ, how, on which pair, by what.

    margin: above 0 the claim is refuted. epsilon: a lower bound on the ε that the mechanism needs at `delta`, where the
    statement says `claimed`. one, other: the answers of the two made-up datasets.
    """

    margin: float
    epsilon: float
    delta: float
    claimed: float
    how: str
    event: str
    pair: str = ""
    one: tuple[float, ...] = ()
    other: tuple[float, ...] = ()
