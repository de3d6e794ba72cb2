"""What two listed laws prove about the loss between them: lower bounds, rounded down."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from holdfast.arrays import Floats
from holdfast.auditing.claims import EXACT, Claim, Evidence
from holdfast.auditing.listing import Listed

#: Floats compute these logs and sums to about 1e-12; so much is taken off.
ROUNDING = 1e-9
#: Orders at which Rényi divergences are compared with α·ρ; between whole numbers only where that is claimed.
WHOLE_ORDERS, OTHER_ORDERS = (2, 3, 4, 6, 8, 16), (1.05, 1.25, 1.5, 2.5)


@dataclass(frozen=True, eq=False)
class Losses:
    """The losses log p/q of one listed law against another, from bounds on both: p from below, q from above."""

    below: Floats
    above: Floats

    @cached_property
    def _sorted(self) -> tuple[Floats, Floats, Floats]:
        """Losses, largest first, with the sums of p and of q so far."""
        seen = np.isfinite(self.below)
        p, q = self.below[seen], self.above[seen]
        order = np.argsort(q - p, kind="stable")
        return (p - q)[order], np.cumsum(np.exp(p[order])), np.cumsum(np.exp(q[order]))

    @property
    def largest(self) -> float:
        """A lower bound on the largest log p/q."""
        losses = self._sorted[0]
        found = float(losses[0]) if losses.size else -math.inf
        return found - ROUNDING * max(1.0, abs(found)) if math.isfinite(found) else found

    def delta(self, epsilon: float) -> float:
        """A lower bound on Σ[p − e^ε·q]₊."""
        losses, p, q = self._sorted
        k = int(np.searchsorted(-losses, -epsilon))
        if k == 0:
            return 0.0
        found = p[k - 1] * (1 - ROUNDING) - math.exp(min(epsilon, 700.0)) * q[k - 1] * (1 + ROUNDING)
        return max(0.0, float(found))

    def epsilon(self, delta: float) -> float:
        """A lower bound on the ε that is needed at this δ."""
        if delta <= 0:
            return self.largest
        low, high = 0.0, 1.0
        while self.delta(high) > delta:
            low, high = high, 2 * high
            if high > 600:
                return math.inf
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self.delta(middle) > delta else (low, middle)
        return low

    def renyi(self, order: float) -> float:
        """A lower bound on the Rényi divergence of this order above 1."""
        seen = np.isfinite(self.below)
        terms = order * self.below[seen] + (1 - order) * self.above[seen]
        top = float(terms.max(initial=-math.inf))
        if not math.isfinite(top):
            return top
        found = (top + math.log(float(np.exp(terms - top).sum()))) / (order - 1)
        return found - ROUNDING * max(1.0, abs(found)) / min(order - 1, 1.0)


def listed_evidence(claim: Claim, laws: Listed) -> Evidence:
    """The strongest evidence of two listed laws against a claim."""
    found = []
    for losses in (Losses(laws.below[0], laws.above[1]), Losses(laws.below[1], laws.above[0])):
        for claimed, delta in zip(claim.epsilons.tolist(), claim.deltas.tolist(), strict=True):
            epsilon = losses.epsilon(delta)
            words = "the largest log-ratio of the two laws" if delta == 0 else "the δ(ε) of the two laws"
            found.append(Evidence(epsilon - claimed, epsilon, delta, claimed, EXACT, words))
        rho = claim.statement.rho
        if rho is not None:
            for order in WHOLE_ORDERS + (() if claim.statement.orders == "integer" else OTHER_ORDERS):
                divergence = losses.renyi(order)
                if divergence > order * rho:
                    words = (
                        f"the divergence of order {order:g} is {divergence:.6g}, above {order:g}·ρ = {order * rho:.6g}"
                    )
                    best = max(found, key=lambda each: each.margin)
                    found.append(replace(best, margin=divergence - order * rho, event=words))
    return max(found, key=lambda each: each.margin)
