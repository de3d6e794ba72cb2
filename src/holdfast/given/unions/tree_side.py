"""A hierarchy with bounds and fixed values as one side of a union, for a truth that may lie on another side.

The weight of the side is the sum-product message of its roots, in balls: messages are cut where the noise of an output
exceeds a width, and what is cut off is bounded, since every output weighs at most 1 and the noise of the leaves is
independent. A higher working precision widens them. Draws come from the messages of docs/theory/exact-trees.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import arb, arb_poly, ctx

from holdfast.arguments import LARGEST
from holdfast.given.problem import Problem
from holdfast.noise.precision import ball
from holdfast.randomness import Stream
from holdfast.trees import Forest, Sampler

#: Places of the leaves' messages together, up to which a weight is computed in balls; a second or so.
MOST_PLACES = 30_000

Values = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Tree:
    """A hierarchy on all outputs; the truth obeys its consistency, but perhaps not its bounds and fixed values."""

    problem: Problem
    forest: Forest
    low: npt.NDArray[np.int64]
    high: npt.NDArray[np.int64]

    @classmethod
    def of(cls, problem: Problem) -> Tree | None:
        """The piece, if the rows are those of one hierarchy, bounds and fixed values, and it is small enough."""
        found = Forest.of(problem.system) if problem.law.integer else None
        if found is None or _places(problem, found) > MOST_PLACES:
            return None
        low, high = (side.copy() for side in problem.system.integer_bounds(problem.unit))
        rows = problem.system.equalities.chosen(problem.system.equalities.sizes == 1)
        for position, factor, right in zip(rows.A.indices.tolist(), rows.A.data.tolist(), rows.b.tolist(), strict=True):
            value = Fraction(right) / int(factor) / problem.unit
            low[position] = max(low[position], math.ceil(value))
            high[position] = min(high[position], math.floor(value))
        return cls(problem, Forest(found.parents, np.zeros(found.n, dtype=bool)), low, high)

    def _bounds(self, truth: Values) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Bounds on the noise of each output; ∓2**62 where there is none."""
        low = np.where(self.low > -LARGEST, self.low - truth, -LARGEST)
        high = np.where(self.high < LARGEST, self.high - truth, LARGEST)
        return low, high

    def draw(self, truth: Values, size: int, stream: Stream) -> Values:
        """Draw by messages."""
        return Sampler(self.forest, self.problem.law, *self._bounds(truth)).draw(size, stream)

    def weight(self, truth: Values) -> arb:
        """Enclose the sum of the weights of all noise that is consistent and within bounds."""
        low, high = (side.tolist() for side in self._bounds(truth))
        if any(bottom > top for bottom, top in zip(low, high, strict=True)):
            return arb(0)
        rates, is_leaf = self._rates(), self.forest.is_leaf
        # All noise of the leaves together weighs `all_leaves`; each output is beyond its width in a small share of it.
        all_leaves = arb(1)
        for rate in (rates[v] for v in np.flatnonzero(is_leaf)):
            all_leaves = all_leaves / ball(rate / 2).tanh()
        bits = int(ctx.prec) + max(0, math.ceil(float(all_leaves.log().mid()) / math.log(2))) + 8
        far = max(max(bottom, -top, 0) for bottom, top in zip(low, high, strict=True))
        messages: dict[int, tuple[int, arb_poly]] = {}
        lost = arb(0)
        for v in self.forest.order[::-1].tolist():
            width = math.ceil(bits * math.log(2) / float(rates[v])) + far
            start, sums = self._below(v, messages, width)
            first, last = max(low[v], -width, start), min(high[v], width, start + len(sums) - 1)
            ratio = ball(-rates[v]).exp()
            lost = lost + (2 if is_leaf[v] else 1) * ratio ** (width + 1)
            weighed = [sums[u - start] * ratio ** abs(u) for u in range(first, last + 1)]
            messages[v] = first, arb_poly(weighed or [arb(0)])
        total = arb(1)
        for root in np.flatnonzero(self.forest.parents < 0).tolist():
            total = total * sum(messages[root][1].coeffs(), arb(0))
        return total + (lost * all_leaves).union(arb(0))

    def _below(self, v: int, messages: dict[int, tuple[int, arb_poly]], width: int) -> tuple[int, list[arb]]:
        """The weights of each sum of the children's noise, from a first place on; all 1 at a leaf."""
        children = self.forest.children_of(v).tolist()
        if not children:
            return -width, [arb(1)] * (2 * width + 1)
        start, product = 0, arb_poly([1])
        for child in children:
            first, message = messages.pop(child)
            start, product = start + first, product * message
        return start, product.coeffs() or [arb(0)]

    def _rates(self) -> list[Fraction]:
        law = self.problem.law
        scales = law.scale_values
        return [1 / scale for scale in (scales[at] for at in law.complete.tolist()) if scale is not None]


def _places(problem: Problem, forest: Forest) -> float:
    """About how many places the messages of the leaves have together, at the first precision."""
    law = problem.law
    of_leaves = law.of_output([0.0 if scale is None else float(scale) for scale in law.scale_values])[forest.is_leaf]
    bits = 128 + np.log2(1 + 2 * of_leaves).sum()
    return float(2 * bits * math.log(2) * of_leaves.sum())
