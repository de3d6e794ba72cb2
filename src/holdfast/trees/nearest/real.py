"""Weighted least squares on a hierarchy over the reals: policy iteration on the set of bounds that bite.

Everything is said in moves x = z − y. At inner output k the children share one price λ_k: a leaf answers v·λ_k, cut to
its bounds, an inner child with its own sum. While the cut outputs stay the same, every answer is affine in the price,
so one pass up and one pass down solve the whole hierarchy; then the cut outputs are read off anew. Rounds begin at
price 0. Without bounds the first one is the closed form of generalised least squares. With lower bounds on leaves only,
rounds end at the optimum, because every answer is convex and grows with the price (docs/theory/update-on-trees.md).
"""

from __future__ import annotations

import numpy as np

from holdfast.arrays import compiled

#: Rounds before giving up; a handful is usual.
MOST_ROUNDS = 60
#: A bound is left or taken only if the price is beyond its threshold by more than this share of the terms in it.
SLACK = 1e-13
#: After so many rounds the share grows fourfold each time, up to a largest one: rounding errors then cannot keep a tie
#: moving for ever.
PATIENT_ROUNDS, MOST_SLACK = 16, 1e-10


@compiled(inner=True)
def scan(first, last, price, lo, hi, variance, same):  # type: ignore[no-untyped-def]
    """Answers of the leaves first, …, last−1 at a price: (constant, slope), and the prices between which these hold.

    `hi` is empty where no leaf has an upper bound; `same` is the leaves' common variance, or 0.
    """
    constant, slope, least, most = 0.0, 0.0, -np.inf, np.inf
    if same > 0.0:
        step, free = price * same, 0
        if hi.size == 0:
            for j in range(first, last):  # without branches: which leaves are cut cannot be foreseen
                bound = lo[j]
                cut = step <= bound
                constant += bound if cut else 0.0
                most = min(most, bound if cut else np.inf)
                least = max(least, -np.inf if cut else bound)
                free += not cut
        else:
            for j in range(first, last):
                if step <= lo[j]:
                    constant += lo[j]
                    most = min(most, lo[j])
                elif step >= hi[j]:
                    constant += hi[j]
                    least = max(least, hi[j])
                else:
                    free += 1
                    least = max(least, lo[j])
                    most = min(most, hi[j])
        return constant, free * same, least / same, most / same
    for j in range(first, last):
        if variance[j] == 0.0:  # an exact leaf has one move only
            constant += lo[j]
            continue
        step = price * variance[j]
        if step <= lo[j]:
            constant += lo[j]
            most = min(most, lo[j] / variance[j])
        elif hi.size > 0 and step >= hi[j]:
            constant += hi[j]
            least = max(least, hi[j] / variance[j])
        else:
            slope += variance[j]
            least = max(least, lo[j] / variance[j])
            if hi.size > 0:
                most = min(most, hi[j] / variance[j])
    return constant, slope, least, most


@compiled(inner=True)
def _upwards(forest, weights, limits, gap, bounded, begins, slack, found, leaves, inner):  # type: ignore[no-untyped-def]
    """Answers of all inner outputs while the cut outputs stay the same; whether leaves were cut otherwise.

    `leaves` is (constant, slope, least price, largest price, size of the terms in the price) of the leaves below each
    output, `inner` is (constant of its children, constant of its own answer, which of its bounds it stands at).
    """
    leaf_start, inner_start, _, _ = forest
    _, variance, same, weight = weights
    lo, hi, low, high = limits
    price, _, slope, response = found
    own, own_slope, least, most, size = leaves
    constant, answer, state = inner
    changed = begins
    for k in range(weight.size - 1, -1, -1):
        first, last = leaf_start[k], leaf_start[k + 1]
        if last > first:
            room = slack * (abs(price[k]) + size[k])
            if bounded and not least[k] - room <= price[k] <= most[k] + room:
                own[k], own_slope[k], least[k], most[k] = scan(first, last, price[k], lo, hi, variance, same[k])
                changed = True
            if begins and own_slope[k] == 0.0:
                own[k], own_slope[k], least[k], most[k] = 0.0, (last - first) * same[k], np.inf, -np.inf
                if same[k] == 0.0:
                    for j in range(first, last):
                        own_slope[k] += variance[j]
                        own[k] += lo[j] if variance[j] == 0.0 else 0.0
        a, b = gap[k] + own[k], own_slope[k]
        for c in range(inner_start[k], inner_start[k + 1]):
            a += answer[c]
            b += response[c]
        constant[k], slope[k] = a, b
        if state[k] == 0:
            scale = 1.0 + weight[k] * b
            answer[k], response[k] = a / scale, b / scale
        else:
            answer[k], response[k] = low[k] if state[k] < 0 else high[k], 0.0
    return changed


@compiled(inner=True)
def _downwards(inner_start, weight, low, high, slack, found, size, inner, above):  # type: ignore[no-untyped-def]
    """Prices and moves from the roots down, and which outputs stand at a bound now; whether any of these is new."""
    price, x, slope, _ = found
    constant, _, state = inner
    moved = False
    for k in range(weight.size):
        a, b = constant[k], slope[k]
        scale = 1.0 + weight[k] * b
        at = 0
        if low[k] == high[k]:
            at = -1
        elif low[k] > -np.inf or high[k] < np.inf:
            free = (a + b * above[k]) / scale
            room = slack * (abs(a) + abs(b * above[k]))
            if free < low[k] - room or (free <= low[k] + room and state[k] < 0):
                at = -1
            elif free > high[k] + room or (free >= high[k] - room and state[k] > 0):
                at = 1
        if at != state[k]:
            state[k] = at
            moved = True
        if at == 0:
            price[k] = (above[k] - weight[k] * a) / scale
            x[k] = a + b * price[k]
            size[k] = (abs(above[k]) + weight[k] * abs(a)) / scale
        else:
            x[k] = low[k] if at < 0 else high[k]
            if b > 0.0:
                price[k] = (x[k] - a) / b
                size[k] = (abs(x[k]) + abs(a)) / b
        for c in range(inner_start[k], inner_start[k + 1]):
            above[c] = price[k]
    return moved


@compiled(inner=True)
def least_squares(forest, weights, limits, gap, bounded, found):  # type: ignore[no-untyped-def]
    """Find the prices and the moves x of the inner outputs; tell whether the optimum was reached.

    `forest` and `weights` are as in rows.py. `limits` is (lo, hi, low, high): bounds on the moves of leaves and of
    inner outputs (equal where one is exact). The sum of the children's moves plus `gap` is the parent's move.
    `bounded` says whether there are bounds beside exact outputs; exact leaves have no variance. `found` is (price, x,
    slope, response): on return `slope` holds dΣ/dλ at each output's children, `response` the slope of its own answer.
    """
    weight, (_, _, low, high) = weights[3], limits
    price, _, slope, _ = found
    count = weight.size
    above, size = np.zeros(count), np.zeros(count)
    leaves = (np.zeros(count), np.zeros(count), np.full(count, np.inf), np.full(count, -np.inf), size)
    constant, state = np.empty(count), np.zeros(count, np.int8)
    inner = (constant, np.empty(count), state)
    slack, moved = SLACK, True
    price[:] = 0.0
    for k in range(count):
        if low[k] == high[k]:
            state[k] = -1
    for turn in range(MOST_ROUNDS):
        if turn > PATIENT_ROUNDS:
            slack = min(4.0 * slack, MOST_SLACK)
        changed = _upwards(forest, weights, limits, gap, bounded, turn == 0, slack, found, leaves, inner)
        if not changed and not moved:
            return _reached(state, constant, slope, price, above, weight, low, high)
        moved = _downwards(forest[1], weight, low, high, slack, found, size, inner, above)
        if not bounded:
            return True
    return False


@compiled(inner=True)
def _reached(state, constant, slope, price, above, weight, low, high):  # type: ignore[no-untyped-def]
    """Whether outputs at a bound are rightly there; where all of their children are cut, rounds may stop too early.

    The children must add up to the bound, and the price from above must not pull away from it.
    """
    for k in range(state.size):
        if state[k] == 0:
            continue
        wanted = low[k] if state[k] < 0 else high[k]
        total = constant[k] + slope[k] * price[k]
        if abs(total - wanted) > 1e-9 * max(1.0, abs(wanted), abs(constant[k])):
            return False
        pull = above[k] - price[k] - weight[k] * wanted
        if low[k] < high[k] and state[k] * pull < -1e-9 * (abs(above[k]) + abs(price[k]) + weight[k] * abs(wanted)):
            return False
    return True


@compiled(inner=True)
def slopes_at(forest, weights, limits, leaf_x, found):  # type: ignore[no-untyped-def]
    """Fill in `slope` and `response` as `least_squares` does, at moves found otherwise; inf beside an open leaf."""
    leaf_start, inner_start, _, _ = forest
    _, variance, _, weight = weights
    lo, hi, low, high = limits
    _, x, slope, response = found
    for k in range(weight.size - 1, -1, -1):
        slope[k] = 0.0
        for j in range(leaf_start[k], leaf_start[k + 1]):
            if lo[j] < leaf_x[j] and (hi.size == 0 or leaf_x[j] < hi[j]):
                slope[k] += variance[j]
        for c in range(inner_start[k], inner_start[k + 1]):
            slope[k] += response[c]
        if x[k] <= low[k] or x[k] >= high[k]:
            response[k] = 0.0
        elif np.isinf(slope[k]):
            response[k] = 1.0 / weight[k]
        else:
            response[k] = slope[k] / (1.0 + weight[k] * slope[k])
