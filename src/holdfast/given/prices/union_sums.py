"""What a union costs whose sides are intervals of one sum of outputs: half planes, or bands between them.

The weight of the union depends on the sum s of the truth alone: c(s) is the probability that s + V lies in one of the
intervals, V the sum of the noise. Beyond the last end c only grows towards 1. Proof: docs/theory/unions.md, Proposition
9.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
from flint import arb

from holdfast.arrays import Ints
from holdfast.given.prices.rows import sum_masses
from holdfast.given.problem import Problem
from holdfast.queries import Neighbours

Interval = tuple[int | None, int | None]  # the ends of a sum; None for no end

#: Sums are looked at so many times the widest noise beyond the last end.
BEYOND = 12
#: Changes of the sum that are followed, and pairs of sums that are compared.
MOST_STEPS, MOST_COMPARED = 400, 200_000


def sides_of_one_sum(problem: Problem) -> tuple[Ints, list[Interval], Counter[Fraction]] | None:
    """The entries 0, ±1 of the sum, its intervals in rising order, and the rates 1/λ in it; None for other sides."""
    law, system = problem.law, problem.system
    if not law.integer or law.kind != "laplace" or system.invariants.count:
        return None
    signs: Ints | None = None
    intervals: list[Interval] = []
    for branch in system.branches:
        low: int | None = None
        high: int | None = None
        if branch.equalities.count or branch.has_bounds or not branch.inequalities.count:
            return None
        for row, side in zip(branch.inequalities.A.toarray(), branch.inequalities.b.tolist(), strict=True):
            size = int(np.abs(row).max())
            signs = row // size if signs is None else signs
            if size == 0 or not np.isin(row, (0, size, -size)).all():
                return None
            if np.array_equal(row, size * signs):
                end = math.ceil(Fraction(side) / size)
                low = end if low is None else max(low, end)
            elif np.array_equal(row, -size * signs):
                end = math.floor(-Fraction(side) / size)
                high = end if high is None else min(high, end)
            else:
                return None
        if low is None or high is None or low <= high:
            intervals.append((low, high))
    if signs is None or not intervals:
        return None
    which = np.zeros(law.n, dtype=np.int64) if law.which is None else law.which
    scales = [law.scale_values[int(kind)] for kind in which[signs != 0]]
    if None in scales:
        return None  # a sum with an output that is not measured has no law
    ordered = sorted(intervals, key=lambda ends: -math.inf if ends[0] is None else ends[0])
    return signs, ordered, Counter(1 / scale for scale in scales if scale is not None)


def reached(each: list[int], relation: Neighbours) -> set[int]:
    """The changes of the sum that so many records make, where one record counts one of these; empty where many."""
    single = {s * a for a in each for s in (1, -1)} if relation.adds else {a - b for a in each for b in each}
    found = {0}
    for _ in range(relation.records):
        if len(found) * len(single) > MOST_STEPS**2:
            return set()
        found |= {a + b for a in found for b in single}
    return found if len(found) <= MOST_STEPS else set()


def joined(intervals: list[Interval], steps: set[int]) -> bool:
    """Whether some change leads from each interval to the next, so that sides are protected too."""
    most = max(steps, default=0)

    def leads(one: Interval, other: Interval) -> bool:
        (start, end), (first, last) = one, other
        assert end is not None
        assert first is not None
        return any(
            (start is None or start <= s) and s + step >= first and (last is None or s + step <= last)
            for step in steps
            for s in range(end - most, end + 1)
        )

    return all(leads(one, other) for one, other in itertools.pairwise(intervals))


def sum_rise(intervals: list[Interval], rates: Counter[Fraction], steps: set[int]) -> arb | None:
    """Enclose from above the largest log c(s + step)/c(s) over all sums s with s and s + step in the intervals."""
    ends = [end for interval in intervals for end in interval if end is not None]
    if not ends or not steps:
        return None
    most = max(steps)
    reach = most + math.ceil(BEYOND * math.sqrt(sum(rates.values())) / float(min(rates)))
    first, last = min(ends) - reach, max(ends) + reach
    if (last - first) * len(steps) > MOST_COMPARED:
        return None
    tails = _tails(rates, last - first)
    if tails is None:
        return None

    def weight(s: int) -> arb:
        total = arb(0)
        for low, high in intervals:
            total += (arb(1) if low is None else tails[low - s]) - (arb(0) if high is None else tails[high + 1 - s])
        return total

    possible = [s for s in range(first, last + 1) if any(_inside(s, each) for each in intervals)]
    weights = {s: weight(s) for s in possible}
    worst = arb(1)
    for s, step in itertools.product(possible, steps):
        if s + step in weights:
            worst = worst.max(weights[s + step] / weights[s])
    for edge in (first + most, last - most):  # beyond: c is at most 1, and at least what it is here
        if edge in weights:
            worst = worst.max(1 / weights[edge])
    return worst.log()


def _inside(s: int, ends: Interval) -> bool:
    return (ends[0] is None or ends[0] <= s) and (ends[1] is None or s <= ends[1])


def _tails(rates: Counter[Fraction], most: int) -> dict[int, arb] | None:
    """Enclose P(V ≥ t) for −most ≤ t ≤ most + 1, V symmetric: P(V ≥ t) + P(V ≥ 1 − t) = 1."""
    found = sum_masses(rates, most)
    if found is None:
        return None
    masses = [(mass - found[1]).union(mass) for mass in found[0]]
    tails = {1: (1 - masses[0]) / 2}
    for t in range(1, most + 1):
        tails[t + 1] = tails[t] - masses[t]
    return tails | {1 - t: 1 - tail for t, tail in tails.items()}
