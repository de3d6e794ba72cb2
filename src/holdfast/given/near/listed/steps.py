"""Compiled search for every whole vector of a lattice that a norm, or a sum of squares, leaves within a radius.

Coordinates of the lattice are chosen one after the other. What those chosen so far cost at least, whatever comes after
them, is a maximum of linear forms for a norm (`cuts`), and a sum of squares for a quadratic form (`factor`). A branch
is cut only where such a bound is beyond the radius, so nothing within it is missed.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from holdfast.arrays import Floats, Ints, compiled

Short = npt.NDArray[np.int32]

#: By how much intervals are widened, so that rounding never cuts a branch that should stay.
WIDER = 1e-6
#: Widest interval of one coordinate.
WIDEST = 2.0**30


@compiled
def times_chosen(basis: Ints, widths: Floats, count: int, prime: int) -> Ints:  # pragma: no cover (compiled)
    """How often each row is chosen, when so often d rows are that are independent modulo a prime, the least used first.

    Rows count as used in proportion to their width. Entries are from 0 to below the prime, which is below 2³¹.
    """
    n, dimension = basis.shape
    times = np.zeros(n, dtype=np.int64)
    pivots = np.zeros((dimension, dimension), dtype=np.int64)
    leads = np.zeros(dimension, dtype=np.int64)
    used = np.empty(n)
    for _ in range(count):
        rank = 0
        for i in range(n):
            used[i] = (times[i] + 1) * widths[i]
        for i in np.argsort(used, kind="mergesort"):
            row = basis[i].copy()
            for k in range(rank):
                by = row[leads[k]]
                if by:
                    for j in range(dimension):
                        row[j] = (row[j] - by * pivots[k, j]) % prime
            for lead in range(dimension):
                if row[lead]:
                    break
            else:
                continue
            # The inverse of the first entry is its power prime − 2.
            inverse, power, exponent = 1, row[lead], prime - 2
            while exponent:
                if exponent & 1:
                    inverse = inverse * power % prime
                power, exponent = power * power % prime, exponent >> 1
            for j in range(dimension):
                pivots[rank, j] = row[j] * inverse % prime
            leads[rank] = lead
            rank += 1
            times[i] += 1
            if rank == dimension:
                break
    return times


@compiled(inner=True)
def _form_interval(
    forms: Floats, limits: Floats, steps: Ints, depth: int
) -> tuple[int, int]:  # pragma: no cover (compiled)
    """Where the next coordinate may lie if the size of each linear form of this depth is within its limit."""
    first, last = -WIDEST, WIDEST
    for k in range(forms.shape[0]):
        so_far, own = 0.0, forms[k, depth]
        for j in range(depth):
            so_far += forms[k, j] * steps[j]
        if abs(own) > 1e-9:
            centre, reach = -so_far / own, limits[k] / abs(own)
            first, last = max(first, centre - reach), min(last, centre + reach)
        elif abs(so_far) > limits[k] + abs(own) * WIDEST + WIDER:
            return 1, 0
    return math.ceil(first - WIDER), math.floor(last + WIDER)


@compiled
def within_norm(
    basis: Ints, rates: Floats, radius: float, cuts: Floats, limits: Floats, found: Short, most_visits: int
) -> int:  # pragma: no cover (compiled)
    """Fill in the coordinates of all z = basis·t with Σ rates·|z| ≤ radius; return how many, −1 where there is no room.

    `cuts` (dimension, forms, dimension) holds linear forms of the first coordinates, whose sizes are within `limits`
    wherever the norm is within the radius.
    """
    n, dimension = basis.shape
    steps = np.zeros(dimension, dtype=np.int64)
    ends = np.zeros(dimension, dtype=np.int64)
    sums = np.zeros((dimension + 1, n), dtype=np.int64)
    count, depth, visits = 0, 0, 0
    steps[0], ends[0] = _form_interval(cuts[0], limits[0], steps, 0)
    while depth >= 0:
        visits += 1
        if visits > most_visits or ends[depth] - steps[depth] >= WIDEST:
            return -1
        if steps[depth] > ends[depth]:
            depth -= 1
            if depth >= 0:
                steps[depth] += 1
            continue
        for i in range(n):
            sums[depth + 1, i] = sums[depth, i] + basis[i, depth] * steps[depth]
        if depth + 1 < dimension:
            depth += 1
            steps[depth], ends[depth] = _form_interval(cuts[depth], limits[depth], steps, depth)
            continue
        size = 0.0
        for i in range(n):
            size += rates[i] * abs(sums[dimension, i])
        if size <= radius:
            if count == found.shape[0]:
                return -1
            found[count] = steps
            count += 1
        steps[depth] += 1
    return count


@compiled
def within_squares(factor: Floats, radius: float, found: Short, most_visits: int) -> int:  # pragma: no cover (compiled)
    """Fill in all whole t with |factor·t|² ≤ radius, factor lower triangular; return how many, −1 without room."""
    dimension = factor.shape[0]
    steps = np.zeros(dimension, dtype=np.int64)
    ends = np.zeros(dimension, dtype=np.int64)
    centres, left = np.zeros(dimension), np.zeros(dimension + 1)
    left[0] = radius
    count, depth, visits, fresh = 0, 0, 0, True
    while depth >= 0:
        visits += 1
        if visits > most_visits:
            return -1
        if fresh:
            so_far = 0.0
            for j in range(depth):
                so_far += factor[depth, j] * steps[j]
            centres[depth] = -so_far / factor[depth, depth]
            reach = math.sqrt(max(left[depth], 0.0)) / abs(factor[depth, depth]) + WIDER
            if not reach < WIDEST:
                return -1
            steps[depth] = math.ceil(centres[depth] - reach)
            ends[depth] = math.floor(centres[depth] + reach)
            fresh = False
        if steps[depth] > ends[depth]:
            depth -= 1
            if depth >= 0:
                steps[depth] += 1
            continue
        if depth + 1 == dimension:
            if count == found.shape[0]:
                return -1
            found[count] = steps
            count += 1
            steps[depth] += 1
            continue
        left[depth + 1] = left[depth] - (factor[depth, depth] * (steps[depth] - centres[depth])) ** 2
        depth += 1
        fresh = True
    return count
