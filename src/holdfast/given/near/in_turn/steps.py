"""Whole noise given equalities, cell after cell: the compiled offers.

The solved cells are whole combinations of the free ones. Were all cells normal with variances s_i, each free cell
would be normal given those drawn before it, with mean c and variance v; what is drawn instead is a whole number with
weights e^{−(u−c)²/2v}, and the logarithm of its probability is kept. The product of these probabilities is close to the
law of whole normal noise given the equalities (docs/theory/walks.md).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from holdfast.arrays import Floats, Ints, Words, compiled

#: Terms below e to the power of minus this are left out of the law of a cell.
DEPTH = 40.0
#: From this variance on, the sum of e^{−(u−c)²/2v} over whole numbers u is √(2πv) to the last bit of a double.
WIDE = 2.25
#: Random words for each free cell.
WORDS = 2


class Plan(NamedTuple):
    """How free cells depend on those drawn before: place k is drawn after all places above k.

    The cell at place k has mean −variances[k]·pulls[k]·(what those before add to the solved cells).
    """

    order: Ints  # the free cell at each place
    pulls: Floats
    variances: Floats


@compiled
def room_for(combination: Floats) -> Plan:  # pragma: no cover (compiled)
    """A plan that is not filled in yet: cells in the order they stand in."""
    m, r = combination.shape
    return Plan(np.arange(m), np.empty((m, r)), np.empty(m))


@compiled(fastmath={"reassoc", "contract"})
def prepare(
    combination: Floats, free: Floats, solved: Floats, sort: bool, plan: Plan
) -> None:  # pragma: no cover (compiled)
    """Fill in a plan for these variances of the free and the solved cells.

    Where `sort` is set, the order is found as well: each time the cell that has the widest law with those chosen before
    still to be drawn.
    """
    m, r = combination.shape
    precision = np.zeros((r, r))
    for d in range(r):
        precision[d, d] = 1 / solved[d]
    held = np.zeros(m)
    if sort:
        for j in range(m):
            plan.order[j] = j
            for d in range(r):
                held[j] += combination[j, d] * combination[j, d] / solved[d]
    for k in range(m):
        if sort:
            best = k
            for i in range(k, m):
                j, b = plan.order[i], plan.order[best]
                if 1 / free[j] + held[j] < 1 / free[b] + held[b]:
                    best = i
            plan.order[k], plan.order[best] = plan.order[best], plan.order[k]
        row, pull = combination[plan.order[k]], plan.pulls[k]
        for d in range(r):
            pull[d] = 0.0
        for e in range(r):
            if row[e] != 0:
                for d in range(r):
                    pull[d] += row[e] * precision[e, d]
        total = 0.0
        for d in range(r):
            total += row[d] * pull[d]
        width = free[plan.order[k]] / (1 + free[plan.order[k]] * max(0.0, total))
        plan.variances[k] = width
        for d in range(r):
            factor = width * pull[d]
            for e in range(r):
                precision[d, e] -= factor * pull[e]
        if sort:
            for i in range(k + 1, m):
                j, total = plan.order[i], 0.0
                for d in range(r):
                    total += combination[j, d] * pull[d]
                held[j] = max(0.0, held[j] - width * total * total)


@compiled(inner=True)
def _uniform(word: np.uint64) -> float:  # pragma: no cover (compiled)
    return (np.float64(word >> np.uint64(11)) + 0.5) * 2.0**-53


@compiled
def log_total(mean: float, variance: float) -> float:  # pragma: no cover (compiled)
    """The logarithm of Σ e^{−(u−mean)²/2·variance} over all whole numbers u."""
    if variance > WIDE:
        return 0.5 * math.log(2 * math.pi * variance)
    middle = np.floor(mean + 0.5)
    off = middle - mean
    total, step = 1.0, 1.0
    while step * (step - 1) < 2 * DEPTH * variance:
        total += math.exp(-step * (step + 2 * off) / (2 * variance)) + math.exp(
            -step * (step - 2 * off) / (2 * variance)
        )
        step += 1.0
    return math.log(total) - off * off / (2 * variance)


@compiled(inner=True)
def whole_normal(
    mean: float, variance: float, first: np.uint64, second: np.uint64, terms: Floats
) -> float:  # pragma: no cover (compiled)
    """A whole number with weights e^{−(u−mean)²/2·variance}.

    Wide laws are drawn in two steps: the remainder modulo `stride` is uniform to the last bit of a double, and given
    the remainder the law is one of moderate variance.
    """
    stride = max(1.0, np.rint(0.5 * math.sqrt(variance)))
    rest = min(stride - 1, np.floor(stride * _uniform(first))) if stride > 1 else 0.0
    centre, width = (mean - rest) / stride, variance / (stride * stride)
    middle = np.floor(centre + 0.5)
    off = middle - centre
    reach = min(terms.size // 2, int(math.sqrt(2 * DEPTH * width)) + 1)
    total = 0.0
    for k in range(2 * reach + 1):
        step = k - reach
        terms[k] = math.exp(-(step * (step + 2 * off)) / (2 * width))
        total += terms[k]
    left, place = _uniform(second) * total, 0
    while place < 2 * reach and left >= terms[place]:
        left -= terms[place]
        place += 1
    return rest + stride * (middle + place - reach)


@compiled(inner=True)
def added(total: float, lost: float, term: float) -> tuple[float, float]:  # pragma: no cover (compiled)
    """A sum with one more term, and all that rounding has lost of it (Neumaier 1974)."""
    found = total + term
    if abs(total) >= abs(term):
        return found, lost + ((total - found) + term)
    return found, lost + ((term - found) + total)


@compiled
def in_turn(
    combination: Floats, plan: Plan, words: Words, drawn: bool, state: Floats
) -> float:  # pragma: no cover (compiled)
    """The log probability of a state, with free cells in state[:m] that are drawn here, or given.

    The solved cells behind them are filled in.
    """
    m, r = combination.shape
    terms = np.empty(64)
    sums = state[m : m + r]
    sums[:] = 0.0
    log_chance = lost = 0.0  # sums are compensated for what rounding loses, so that errors do not grow with m²
    for k in range(m - 1, -1, -1):
        j, width, mean = plan.order[k], plan.variances[k], 0.0
        for d in range(r):
            mean -= plan.pulls[k, d] * sums[d]
        mean *= width
        if drawn:
            state[j] = whole_normal(mean, width, words[j, 0], words[j, 1], terms)
        log_chance, lost = added(log_chance, lost, -((state[j] - mean) ** 2) / (2 * width) - log_total(mean, width))
        for d in range(r):
            sums[d] += state[j] * combination[j, d]
    return log_chance + lost


@compiled
def offer(
    combination: Floats, plan: Plan, halves: Floats, words: Words, states: Floats, log_weights: Floats
) -> None:  # pragma: no cover (compiled)
    """Draw states (count, m + r) of one law, and the log of their weight e^{−Σ halves·u²} over their probability."""
    for c in range(states.shape[0]):
        total, lost = -in_turn(combination, plan, words[c], True, states[c]), 0.0
        for i in range(states.shape[1]):
            total, lost = added(total, lost, -halves[i] * states[c, i] * states[c, i])
        log_weights[c] = total + lost


@compiled
def weigh_mixture(
    combination: Floats, scales: Floats, sort: bool, words: Words, drawn: bool, states: Floats, log_weights: Floats
) -> None:  # pragma: no cover (compiled)
    """The log of weight over probability for states that are drawn here, or given, each with variances of its own.

    The weight is that of independent whole normal cells with these variances.
    """
    m, r = combination.shape
    plan = room_for(combination)
    for c in range(states.shape[0]):
        prepare(combination, scales[c, :m], scales[c, m:], sort, plan)
        total, lost = -in_turn(combination, plan, words[c if drawn else 0], drawn, states[c]), 0.0
        for i in range(m + r):
            energy = states[c, i] * states[c, i] / (2 * scales[c, i])
            total, lost = added(total, lost, -energy - log_total(0.0, scales[c, i]))
        log_weights[c] = total + lost
