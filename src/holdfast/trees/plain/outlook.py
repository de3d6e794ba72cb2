"""Where totals will probably lie: a guess of the mean and the spread of every output, and of the pull from above.

Each output's own weight, and each bound, is replaced by the normal density that has the same mean and variance where
the rest of the tree puts it (expectation propagation); on normal densities a hierarchy is solved by one pass up and one
down. Only windows and tilts come from here, so the law of a draw does not depend on how good the guess is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holdfast.arguments import LARGEST
from holdfast.arrays import Bools, Floats, Ints

#: Rounds of the guess, and the share of its new normal density that an output takes in each.
ROUNDS, STEP = 14, 0.7
#: A variance that stands for "nothing is known", in units of the largest one; and the least variance.
FLAT, LEAST = 1e9, 1e-4
#: A tilt takes at most this share of what noise resists; bounds that are nearer, in scales, are reached by windows.
GENTLER, FALLS, NEAR = 0.97, 3.0, 30.0
#: Points at which a density is read on either side of its mode, down to e^−DROP of it.
POINTS, DROP = 48, 25.0
#: Outputs whose densities are read together.
TOGETHER = 1 << 15


class Weights(NamedTuple):
    """The weight of every output's noise: e^{−rate·|u|}, or e^{−rate·u²} where `square`, between low and high."""

    rate: Floats
    square: bool
    low: Ints
    high: Ints


class Outlook(NamedTuple):
    """The guessed mean and variance of every output, and the slope that its children's total meets from above."""

    mean: Floats
    variance: Floats
    tilt: Floats
    alike: Ints  # a number for every output, the same for leaves that are alike


def levels(parents: Ints) -> list[Ints]:
    """The outputs of a forest by depth, roots first."""
    depth, above = np.zeros(parents.size, dtype=np.int64), parents
    while (above >= 0).any():
        depth += above >= 0
        above = np.where(above >= 0, parents[above], -1)
    return [np.flatnonzero(depth == d) for d in range(int(depth.max(initial=-1)) + 1)]


def outlook(parents: Ints, exact: Bools, weights: Weights, rounds: int = ROUNDS) -> Outlook:
    """Guess where the noise of all outputs lies, given that parents equal the sum of their children.

    Leaves that are alike in all but their place are guessed once.
    """
    kept, alike, count = _alike(parents, exact, weights)
    place = np.full(parents.size + 1, -1)
    place[kept] = np.arange(kept.size)
    fewer = Weights(weights.rate[kept], weights.square, weights.low[kept], weights.high[kept])
    with np.errstate(all="ignore"):  # a guess that runs away is seen, and a warning would tell about counts
        mean, variance, tilt = _outlook(place[parents[kept]], exact[kept], fewer, count, rounds)
    return Outlook(mean[alike], variance[alike], tilt[alike], alike)


def _alike(parents: Ints, exact: Bools, weights: Weights) -> tuple[Ints, Ints, Floats]:
    """One of all outputs that are alike, the place of every output among these, and how many each stands for."""
    inner = np.zeros(parents.size, dtype=bool)
    inner[parents[parents >= 0]] = True
    own = np.where(inner, np.arange(parents.size), -1)
    columns = own, exact, weights.high, weights.low, weights.rate, parents
    order = np.lexsort(columns)
    new = np.ones(order.size, dtype=bool)
    new[1:] = False
    for column in columns:
        new[1:] |= column[order[1:]] != column[order[:-1]]
    first = order[new]  # lexsort is stable: the first of those that are alike
    kept = np.sort(first)
    alike = np.empty(parents.size, dtype=np.int64)
    alike[order] = np.searchsorted(kept, first)[np.cumsum(new) - 1]
    return kept, alike, np.bincount(alike).astype(np.float64)


def _outlook(
    parents: Ints, exact: Bools, weights: Weights, count: Floats, rounds: int
) -> tuple[Floats, Floats, Floats]:
    order = levels(parents)
    inner = np.zeros(parents.size, dtype=bool)
    inner[parents[parents >= 0]] = True
    told = (weights.rate > 0) | (abs(weights.low) < 1 << 61) | (abs(weights.high) < 1 << 61)
    usual = np.where(weights.rate > 0, weights.rate, np.inf)
    usual = 1 / (2 * usual) if weights.square else 2 / usual**2
    flat = FLAT * max(1.0, float(usual.max(initial=1.0)))
    precision = np.where(usual > 0, 1 / np.maximum(usual, LEAST), 1 / flat)
    shift = np.zeros(parents.size)
    for round_ in range(rounds + 1):
        below, below_variance, above, above_variance = _passes(
            parents, exact, inner, order, precision, shift, flat, count
        )
        cavity = 1 / (1 / below_variance + 1 / above_variance)
        centre = cavity * (below / below_variance + above / above_variance)
        mean, variance = _moments(centre, cavity, weights)
        mean, variance = np.where(told, mean, centre), np.where(told, variance, cavity)
        if round_ == rounds:
            break
        step = 1.0 if round_ == 0 else STEP
        fresh = np.maximum(1 / variance - 1 / cavity, 1 / flat)
        precision = np.where(told, (1 - step) * precision + step * fresh, 1 / flat)
        shift = np.where(told, (1 - step) * shift + step * (mean / variance - centre / cavity), 0.0)
    farthest, widest = _limits(parents, inner, order, weights.square, usual, count)
    if (~(abs(mean) <= farthest))[~exact].any():  # or no number: the normal densities ran away from each other
        mean, below, variance = np.zeros(parents.size), np.zeros(parents.size), widest
    mean, variance = np.where(exact, 0.0, mean), np.where(exact, 0.0, variance)
    down, up = (_steepest(parents, inner, order, weights, bound, variance) for bound in (weights.low, weights.high))
    # A guess that has closed in on one value may ask for any tilt: twice what some noise resists is enough.
    slope = (
        2 * weights.rate * (abs(mean) + 10 / np.sqrt(np.maximum(weights.rate, LEAST)))
        if weights.square
        else weights.rate
    )
    most = 2 * float(slope.max(initial=0.0))
    tilt = np.clip((mean - below) / below_variance, -np.minimum(down, most), np.minimum(up, most))
    return mean, variance, np.where(inner, tilt, 0.0)


def _limits(
    parents: Ints, inner: Bools, order: list[Ints], square: bool, usual: Floats, count: Floats
) -> tuple[Floats, Floats]:
    """How far from 0 the mean noise of an output can lie, and the variance that it has at least without bounds.

    The weights of n noises are largest where all are 0, which keeps all bounds, and are log-concave: the mean of the
    exponent is at most n there, and so is that of each of its terms.
    """
    n, known = max(float(count.sum()), 1.0), np.isfinite(usual) & (usual > 0)
    own = np.where(known, np.sqrt(2 * n * usual) if square else n * np.sqrt(usual), np.inf)
    farthest, widest = np.where(inner, 0.0, own), np.where(inner, 0.0, np.where(known, usual, LEAST))
    for some in reversed(order):
        within = some[inner[some]]
        farthest[within] = np.minimum(farthest[within], own[within])
        widest[within] = np.where(known[within], np.minimum(widest[within], usual[within]), widest[within])
        inside = some[parents[some] >= 0]
        np.add.at(farthest, parents[inside], count[inside] * farthest[inside])
        np.add.at(widest, parents[inside], count[inside] * widest[inside])
    return farthest + 1, np.maximum(widest, LEAST)


def _steepest(
    parents: Ints, inner: Bools, order: list[Ints], weights: Weights, bound: Ints, variance: Floats
) -> Floats:
    """The steepest tilt under which what is below an output still falls off towards a bound that is far away.

    It falls off by GENTLER of what it resists, or by e^−FALLS over the spread of the output where that is less: one
    large leaf among many empty ones may have any part of what they have.
    """
    rate, below = weights.rate, np.full(parents.size, np.inf)
    if weights.square:
        return below
    for some in reversed(order):
        own = np.where(inner[some], below[some], 0.0) + rate[some]
        near = (abs(bound[some]) * rate[some] < NEAR) & (abs(bound[some]) < LARGEST)
        own = np.where(near, np.inf, own)
        inside = parents[some] >= 0
        np.minimum.at(below, parents[some][inside], own[inside])
    spread = np.sqrt(np.maximum(variance, LEAST))
    return below - np.where(np.isfinite(below), np.minimum((1 - GENTLER) * below, FALLS / spread), 0.0)


def _passes(
    parents: Ints, exact: Bools, inner: Bools, order: list[Ints], precision: Floats, shift: Floats, flat: float,
    count: Floats,
) -> tuple[Floats, Floats, Floats, Floats]:  # fmt: skip
    """For every output the mean and variance that what is below it tells, and what all the rest tells."""
    below, below_variance = np.zeros(parents.size), np.where(inner, 0.0, flat)
    sent, sent_variance = np.zeros(parents.size), np.zeros(parents.size)
    for some in reversed(order):
        below_variance[some] = np.maximum(below_variance[some], LEAST)
        sent_variance[some] = np.where(exact[some], 0.0, 1 / (1 / below_variance[some] + precision[some]))
        sent[some] = sent_variance[some] * (below[some] / below_variance[some] + shift[some])
        inside = some[parents[some] >= 0]
        np.add.at(below, parents[inside], count[inside] * sent[inside])
        np.add.at(below_variance, parents[inside], count[inside] * sent_variance[inside])
    above, above_variance = np.zeros(parents.size), np.full(parents.size, flat)
    for some in order[1:]:
        p = parents[some]
        known = np.where(exact[p], 0.0, 1 / (1 / above_variance[p] + precision[p]))
        at = known * (above[p] / above_variance[p] + shift[p])
        above_variance[some] = np.maximum(known + below_variance[p] - sent_variance[some], LEAST)
        above[some] = at - (below[p] - sent[some])
    return below, below_variance, above, above_variance


def _moments(centre: Floats, variance: Floats, weights: Weights) -> tuple[Floats, Floats]:
    """Mean and variance of whole numbers under normal densities times the weights, within the bounds."""
    if centre.size > TOGETHER:  # a nation's are too many for memory
        parts = [slice(i, i + TOGETHER) for i in range(0, centre.size, TOGETHER)]
        rate, square, low, high = weights
        found = [_moments(centre[p], variance[p], Weights(rate[p], square, low[p], high[p])) for p in parts]
        return np.concatenate([mean for mean, _ in found]), np.concatenate([spread for _, spread in found])
    rate, low, high = weights.rate, weights.low.astype(float), weights.high.astype(float)
    if weights.square:
        mode = centre / (1 + 2 * rate * variance)
    else:
        mode = np.sign(centre) * np.maximum(abs(centre) - rate * variance, 0.0)
    mode = np.clip(np.rint(mode), low, high)[:, None]
    centre, variance, rate = centre[:, None], variance[:, None], rate[:, None]

    def log(u: Floats) -> Floats:
        return np.asarray(-((u - centre) ** 2) / (2 * variance) - rate * (u * u if weights.square else abs(u)))

    top = log(mode)
    mass, first, second = np.ones(mode.shape), np.zeros(mode.shape), np.zeros(mode.shape)
    for side, bound in ((1.0, high[:, None]), (-1.0, low[:, None])):
        most = abs(bound - mode)
        near, far = np.zeros(mode.shape), np.minimum(np.sqrt(2 * DROP * variance) + 1, most)
        for _ in range(30):  # the log density is concave, so it falls ever faster away from its mode
            half = (near + far) / 2
            deep = log(mode + side * half) < top - DROP
            near, far = np.where(deep, near, half), np.where(deep, half, far)
        block = np.maximum(np.ceil(far / POINTS), 1.0)  # so many whole numbers are taken together
        gap = block * np.arange(1, POINTS + 1) - (block - 1) / 2
        density = np.where(gap <= most, block * np.exp(np.minimum(log(mode + side * gap) - top, 50.0)), 0.0)
        mass += density.sum(axis=1, keepdims=True)
        first += side * (density * gap).sum(axis=1, keepdims=True)
        second += (density * gap * gap).sum(axis=1, keepdims=True)
    mean = first / mass
    return (mode + mean)[:, 0], np.maximum(second / mass - mean**2, LEAST)[:, 0]
