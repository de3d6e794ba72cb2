"""The kinds of leaves: leaves with one law and the same bounds on noise are alike, and what is known of them is shared.

Bounds far from the truth are left out of the kinds, so that there are few; where leaves are pulled so hard that such
bounds matter, they are kept. The weights of every law are tabled as far as any bound that is kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from flint import arb

from holdfast.arguments import LARGEST, Refused
from holdfast.arrays import Bools, Floats, Ints, compiled, only_read
from holdfast.noise import Independent, IntegerGaussian, IntegerLaplace
from holdfast.noise.precision import ball, double, working_precision
from holdfast.trees.messages.responses import Laws, Leaves
from holdfast.trees.shape.forest import Forest

#: A bound further than this many scales from the truth is left out of the messages; a table that breaks it (of
#: probability below 1e-19 each) is drawn again as a whole, which is the same law.
FAR_LAPLACE, FAR_GAUSSIAN = 45, 14
#: The same for leaves that others, mostly empty, pull so hard that they hardly resist: as far as doubles hold weights.
FARTHER_LAPLACE, FARTHER_GAUSSIAN = 540, 32
#: Longest table of a leaf's weights.
LONGEST = 1 << 20
#: Powers of which longer tables are products.
BLOCK = 1 << 14
TOO_WIDE = "the noise is too wide for exact draws on this hierarchy: use onto(..., integer=False) or a larger epsilon"


def measured_laws(law: Independent) -> Laws:
    """The measured laws."""
    measured = [each for each in law.laws if isinstance(each, IntegerLaplace | IntegerGaussian)]
    rates = [float(1 / (each.scale if isinstance(each, IntegerLaplace) else 2 * each.sigma2)) for each in measured]
    return Laws(isinstance(measured[0], IntegerLaplace), np.array(rates))


def places_of_laws(law: Independent) -> Ints:
    """For every output, the place of its law among the measured ones; −1: not measured."""
    if law.which is None:  # all have the first law, which is measured
        return np.zeros(law.n, dtype=np.int64)
    measured = np.array([each is not None for each in law.laws])
    return np.asarray(np.where(measured, np.cumsum(measured) - 1, -1)[law.which])


def limits(laws: Laws, pulled: Bools | None) -> Ints:
    """For each measured law, how far from 0 bounds are kept: in general, and where a leaf is pulled hard."""
    usual, farther = (FAR_LAPLACE, FARTHER_LAPLACE) if laws.laplace else (FAR_GAUSSIAN, FARTHER_GAUSSIAN)
    far = np.stack([usual / laws.slope, (usual if pulled is None else farther) / laws.slope])
    if not (np.isfinite(far).all() and far.max() < LONGEST):
        raise Refused(TOO_WIDE)
    return np.asarray(np.ceil(far) + 2, dtype=np.int64)


def weights(law: Independent, longest: int) -> Floats:
    """The weights of 0, 1, 2, … up to the longest noise under each measured law, each within an ulp or so.

    Laplace weights are the powers of a double that is not below e^{−1/λ}; a long table is made of products of two.
    """
    rows = []
    with working_precision(96):
        for each in law.laws:
            if isinstance(each, IntegerLaplace):
                ratio = arb(float(np.nextafter(double((-ball(1 / each.scale)).exp()), 1.0)))
                if longest < BLOCK:
                    rows.append(_powers(ratio, longest + 1))
                    continue
                fine, coarse = _powers(ratio, BLOCK), _powers(ratio**BLOCK, longest // BLOCK + 1)
                rows.append(np.outer(coarse, fine).ravel()[: longest + 1])
            elif isinstance(each, IntegerGaussian):
                rate = ball(1 / (2 * each.sigma2))
                rows.append(np.array([double((-rate * (b * b)).exp()) for b in range(longest + 1)]))
    return np.array(rows)


def _powers(ratio: arb, count: int) -> Floats:
    """1, ratio, ratio², … as doubles."""
    row, power = np.empty(count), ball(1)
    for i in range(count):
        row[i] = double(power)
        power = power * ratio
    return row


def kinds_of_leaves(
    forest: Forest, law_of: Ints, bounds: tuple[Ints, Ints] | None, pulled: Bools | None, far: Ints
) -> tuple[Leaves, Ints]:
    """The kinds of leaves and the kind of every output (0 where it is no free leaf); `far` are the limits of bounds."""
    if bounds is None and not law_of.any():  # all leaves are alike
        one = Leaves(np.zeros(1, dtype=np.int64), np.array([-LARGEST]), np.array([LARGEST]))
        return one, np.zeros(law_of.size, dtype=np.int64)
    low, high = bounds or (only_read(np.full(law_of.size, end)) for end in (-LARGEST, LARGEST))
    span = int(far.max()) + 2
    pulled = np.zeros(0, dtype=np.bool_) if pulled is None else pulled
    key, largest = _leaf_keys(forest.is_leaf, forest.exact, law_of, low, high, pulled, far, span)
    if largest == 0:
        raise Refused("a leaf that is not measured cannot be drawn so far: measure it")
    if largest <= max(1 << 24, 8 * key.size):
        values, kind = _numbered(key, largest)
    else:
        values, kind = np.unique(key, return_inverse=True)
    rest, key_high = np.divmod(values, span)
    kind_law, key_low = np.divmod(rest, span)
    kind_low = np.where(key_low == span - 1, -LARGEST, -key_low)
    kind_high = np.where(key_high == span - 1, LARGEST, key_high)
    return Leaves(kind_law, kind_low, kind_high), np.asarray(kind, dtype=np.int64)


@compiled
def _leaf_keys(is_leaf: Any, exact: Any, law: Any, low: Any, high: Any, pulled: Any, limits: Any, span: Any) -> Any:
    """One number for law and bounds of each free leaf, small where bounds are near; 0 for other outputs.

    The second result is more than all of them, and 0 where a leaf has no law.
    """
    key, largest = np.zeros(law.size, np.int64), np.int64(1)
    for v in range(law.size):
        if is_leaf[v] and not exact[v]:
            if law[v] < 0:
                return key, np.int64(0)
            limit = limits[1 if pulled.size and pulled[v] else 0, law[v]]
            below = -low[v] if low[v] > -limit else span - 1
            above = high[v] if high[v] < limit else span - 1
            key[v] = (law[v] * span + below) * span + above
            largest = max(largest, key[v] + 1)
    return key, largest


@compiled
def _numbered(key: Any, largest: Any) -> Any:
    """The distinct keys in order, and in place of each key its place among them."""
    place = np.zeros(largest, np.int64)
    for i in range(key.size):
        place[key[i]] = 1
    count = 0
    for value in range(largest):
        if place[value]:
            place[value] = count
            count += 1
        else:
            place[value] = -1
    values = np.empty(count, np.int64)
    for value in range(largest):
        if place[value] >= 0:
            values[place[value]] = value
    for i in range(key.size):
        key[i] = place[key[i]]
    return values, key


def left_out(leaves: Ints, kinds: Leaves, kind: Ints, bounds: tuple[Ints, Ints] | None) -> Ints:
    """Places of leaves whose bounds are nearer than those of their kind."""
    if bounds is None:
        return np.empty(0, dtype=np.int64)
    found: Ints = _left_out(leaves, kind, kinds.low, kinds.high, *bounds)
    return found


@compiled
def _left_out(leaves: Any, kind: Any, kind_low: Any, kind_high: Any, low: Any, high: Any) -> Any:
    found = np.empty(leaves.size, np.int64)
    count = 0
    for i in range(leaves.size):
        v = leaves[i]
        if low[v] > kind_low[kind[v]] or high[v] < kind_high[kind[v]]:
            found[count] = i
            count += 1
    return found[:count].copy()
