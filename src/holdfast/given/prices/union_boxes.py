"""What a union of boxes costs that no few records lead out of, for any number of outputs.

From a table in box m the other boxes weigh at most ρ_m of its own weight, and one record multiplies their weight by
e^{1/λ} at most; the weight of the box itself it multiplies by R at most, as without a union. So one record loses at
most 1/λ_j + log((R + ρ_m·e^{1/λ_j})/(1 + ρ_m)). Proof: docs/theory/unions.md, Proposition 6.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from flint import arb, ctx

from holdfast.given.problem import Problem
from holdfast.given.unions.sides import Boxes, interval_weight
from holdfast.noise.precision import ball

#: Sides and outputs that are compared at most, pair by pair.
MOST_COMPARED = 200_000

End = Fraction | None


@dataclass(frozen=True)
class Interval:
    """What one side asks of one output, in steps, and the rate 1/λ of its noise; None for no end."""

    rate: Fraction
    low: End
    high: End
    integer: bool

    @property
    def changes(self) -> bool:
        """Whether one record can change the output within these ends."""
        return self.low is None or self.high is None or self.high - self.low >= 1

    def gap(self, other: Interval) -> Fraction:
        """How far two intervals are apart; 0 where they meet."""
        above = other.low - self.high if other.low is not None and self.high is not None else Fraction(0)
        below = self.low - other.high if self.low is not None and other.high is not None else Fraction(0)
        return max(above, below, Fraction(0))

    def weight(self, truth: Fraction) -> arb:
        """Enclose the weight of the interval, seen from a truth."""
        return _weight(
            self.rate,
            None if self.low is None else self.low - truth,
            None if self.high is None else self.high - truth,
            self.integer,
            int(ctx.prec),
        )

    def growth(self) -> arb:
        """Enclose the largest factor by which one record within the interval changes its weight: at an end."""
        factors = [arb(1)]
        if self.low is not None:
            factors.append(self.weight(self.low + 1) / self.weight(self.low))
        if self.high is not None:
            factors.append(self.weight(self.high - 1) / self.weight(self.high))
        return _largest(factors)

    def beside(self, other: Interval) -> arb:
        """Bound the weight of another interval relative to this one, seen from any truth within this one."""
        if (self.low, self.high) == (other.low, other.high):
            return arb(1)
        ends = [end for end in (self.low, self.high) if end is not None]
        if self.gap(other) > 0:  # the end that is nearer to the other: there the other weighs most
            near = min(ends, key=lambda end: other.gap(Interval(self.rate, end, end, self.integer)))
            return other.weight(near) / self.weight(near)
        everything = _weight(self.rate, None, None, self.integer, int(ctx.prec))
        return _largest([arb(1), *(everything / self.weight(end) for end in ends)])


@lru_cache(maxsize=4096)
def _weight(rate: Fraction, low: End, high: End, integer: bool, bits: int) -> arb:
    del bits  # balls of one precision are kept apart from those of another
    return interval_weight(rate, low, high, integer=integer)


def _largest(values: Iterable[arb]) -> arb:
    result = arb(0)
    for value in values:
        result = result.max(value)
    return result


def sides_as_intervals(problem: Problem) -> list[list[Interval]] | None:
    """Each side as one interval per output; None where a side is no box, or there are too many."""
    law, found = problem.law, []
    branches = problem.system.branches
    if len(branches) ** 2 * law.n > MOST_COMPARED:
        return None
    which = law.complete.tolist()
    rates = [Fraction(0) if scale is None else 1 / scale for scale in law.scale_values]
    for branch in branches:
        box = Boxes.of(Problem(law, branch, problem.unit))
        if box is None:
            return None
        kept: dict[tuple[int, End, End], Interval] = {}  # many outputs share few intervals
        found.append(
            [
                kept.setdefault(key, Interval(rates[key[0]], key[1], key[2], law.integer))
                for key in zip(which, *box.ends, strict=True)
            ]
        )
    return [
        side for side in found if all(each.low is None or each.high is None or each.low <= each.high for each in side)
    ]


def kept_apart(boxes: list[list[Interval]], records: int) -> bool:
    """Whether so many records added or removed never lead from one box to another."""
    pairs = (Counter(zip(one, other, strict=True)) for k, one in enumerate(boxes) for other in boxes[:k])
    return all(sum(one.gap(other) * count for (one, other), count in pair.items()) > records for pair in pairs)


def one_record(boxes: list[list[Interval]]) -> arb | None:
    """Bound the loss of one record added or removed within a box; None where none can be."""
    worst: arb | None = None
    for m, own in enumerate(boxes):
        others = arb(0)
        for k, side in enumerate(boxes):
            if k != m:
                share = arb(1)
                for (here, there), count in Counter(zip(own, side, strict=True)).items():
                    share = share * here.beside(there) ** count
                others = others + share
        for interval in {each for each in own if each.changes}:
            most = ball(interval.rate).exp()
            loss = ball(interval.rate) + ((interval.growth() + others * most) / (1 + others)).log()
            worst = loss if worst is None else worst.max(loss)
    return worst
