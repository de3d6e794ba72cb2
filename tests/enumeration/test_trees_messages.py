"""What the compiled engine draws times what its test accepts is the weight of a table, whatever the messages are."""

import numpy as np
import pytest
from flint import arb

import holdfast as hf
from holdfast.noise.precision import working_precision
from holdfast.trees.messages.exact import Exact, LaplaceLeaf
from holdfast.trees.plain.message import ANY, HARD, Alone, Division, End, Message
from samplers import NONE, narrowed, sampler, sums_up

TREE = np.array([-1, 0, 0, 1, 1, 1, 2, 2, 0])
LEAVES = [3, 4, 5, 6, 7, 8]
BOUNDED = np.array([-3, -2, -NONE, -1, -NONE, 0, -2, -NONE, -NONE])
SCALES = [2, 1, np.inf, 1, 2, 1, 1, 1, 2]
KINDS = ["laplace", "gaussian"]


def chance(up, table):
    """The probability that a table is drawn times that with which it is accepted, and the shares, in balls."""
    p, exact = up.pieces, Exact(up, lambda *path: None, lambda slot: 0)
    totals, result, nodes = {}, arb(1), []
    for i in range(p.size):
        k, a, b = int(p.kind[i]), int(p.left[i]), int(p.right[i])
        if a >= 0:
            totals[i] = totals[a] + (totals[b] if b >= 0 else 0)
            if b >= 0:
                ways = exact._divided(k, totals[i])
                result = result * ways.term(totals[a]) / ways.total()
        else:
            noise = table[p.leaves[p.first[i] : p.first[i] + p.members[i]]]
            totals[i] = int(noise.sum())
            rest = np.cumsum(noise)
            for j in range(1, noise.size):
                leaf = exact.leaf(int(p.leaf_kind[p.first[i] + j]))
                ways = Division(leaf, exact.prefix(k, j - 1), int(rest[j]))
                result = result * ways.term(int(noise[j])) / ways.total()
            nodes += exact.inside_parcel(i, noise)
        if p.root[i] == 1:
            ways = Alone(exact.piece(k), -float(up.shelf.tilt[k]))
            result = result * ways.term(totals[i]) / ways.total()
        if p.root[i] != 2:
            nodes.append(exact.node(i, totals[i]))
    shares = [node.share() for node in nodes]
    for share in shares:
        result = result * share
    return result, shares


def weight(kind, scales, table):
    """The weight of a table."""
    sizes = np.abs(table / np.asarray(scales))
    return float(np.exp(-(sizes if kind == "laplace" else sizes**2 / 2).sum()))


def tables(rng, count, low):
    """Random tables that keep their sums and bounds."""
    while count:
        table = np.zeros(TREE.size, dtype=np.int64)
        table[LEAVES] = rng.integers(-6, 7, len(LEAVES))
        for v in range(TREE.size - 1, 0, -1):
            table[TREE[v]] += table[v]
        if (table >= low).all():
            count -= 1
            yield table


def wider(up, rng):
    """Make messages up to 10 % too large, and say so."""
    up.shelf.values[:] *= rng.uniform(1, 1.1, up.shelf.values.size)
    up.blocks[0].values[:] *= rng.uniform(1, 1.1, up.blocks[0].values.size)
    up.shelf.excess[:] = up.blocks[0].excess[:] = 0.4


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("low", [None, BOUNDED], ids=["free", "bounded"])
@pytest.mark.parametrize("how", ["as they are", "narrow", "10 % wrong", "narrow and 10 % wrong"])
def test_what_is_drawn_times_what_is_accepted_is_the_weight(kind, low, how):
    rng = np.random.default_rng(5)
    made = sampler(TREE, kind, SCALES, low)
    if how.startswith("narrow"):
        made = narrowed(sampler(TREE, kind, SCALES, low, need=1.0, need_inside=1.0), 3)
    up = made.ready
    _ = up.shelf
    if "wrong" in how:
        wider(up, rng)
    kept, beyond = [], 0
    with working_precision(128):
        for table in tables(rng, 12, np.full(TREE.size, -NONE) if low is None else low):
            found, shares = chance(up, table)
            kept.append(float(found) / weight(kind, SCALES, table))
            beyond += sum(float(share) < 0.999 for share in shares)
    assert kept == pytest.approx([kept[0]] * len(kept), rel=1e-9)
    if how == "as they are":
        assert beyond < 12
    elif kind == "gaussian" or "wrong" in how:
        assert beyond > 5


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("where", ["at the root", "at a first leaf"])
def test_messages_twice_too_large_at_odd_totals_draw_the_exact_law(kind, where, monkeypatch):
    """Half of the odd totals are rejected; without the test they would come twice as often."""
    rows, parents = 120, np.array([-1, 0, 0])

    def share_of_odd():
        made = sampler(parents, kind, 3.0, exact=() if where == "at the root" else (0,))
        up = made.ready
        shelf, p = up.shelf, up.pieces
        k = int(p.kind[np.flatnonzero(p.root)[0]])
        blocks, slots, _ = up.blocks
        place = int(slots[p.leaf_kind[0], 1])
        on, i = (shelf, k) if where == "at the root" else (blocks, place)
        size = int(on.hi[i] - on.lo[i] + 1)
        odd = (np.arange(size) + on.lo[i]) % 2 == 1
        on.values[int(on.offset[i]) : int(on.offset[i]) + size][odd] *= 2
        shelf.excess[k] = on.excess[i] = 0.5
        shelf.slack[:] = 1.0
        draws = made._draw(rows, hf.seeded(7))
        assert sums_up(parents, draws)
        return float((draws[:, 0 if where == "at the root" else 1] % 2 == 1).mean())

    assert abs(share_of_odd() - 0.5) < 0.12
    monkeypatch.setattr(Exact, "accept", lambda *arguments: None)
    assert share_of_odd() > 0.58


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_that_is_not_from_above_is_caught(kind):
    made = sampler([-1, 0, 0], kind, 3.0)
    up = made.ready
    k = int(up.pieces.kind[np.flatnonzero(up.pieces.root)[0]])
    up.shelf.values[int(up.shelf.offset[k] + 1 - up.shelf.lo[k])] *= 0.9
    up.shelf.slack[:] = 1.0
    with pytest.raises(ArithmeticError, match="below what it stands for"):
        made._draw(200, hf.seeded(3))


@pytest.mark.parametrize("kind", KINDS)
def test_leaves_are_part_of_the_test(kind):
    """A leaf's table is above its true weights, by a share that is tested."""
    up = sampler([-1, 0, 0, 0], kind, 3.0).ready
    _ = up.shelf
    exact = Exact(up, lambda *path: None, lambda slot: 0)
    with working_precision(128):
        nodes = [node for node in exact.inside_parcel(0, np.array([9, -7, 5])) if node.purpose == "leaf"]
        assert len(nodes) == 2
        for node in nodes:
            assert 1 - 2.1 * node.message.excess < node.share() < 1
    assert up.shelf.slack[0] > 2 * up.shelf.excess[0]


@pytest.mark.parametrize("tilt", [0.0, 0.125, -0.25])
def test_all_ways_to_divide_a_total_add_up(tilt):
    """The sum that a choice by hand compares with is that of its terms, far beyond both windows, one by one."""
    random = np.random.default_rng(5)
    one = Message(-3, random.random(9), End(0.5, 0.25), End(0.75, 0.5), 0.0, ANY, 0)
    other = Message(2, random.random(6), HARD, End(0.25, 0.375), 0.0, ANY, 0)
    leaf = LaplaceLeaf(-4, np.ones(9), HARD, End(1.0, 0.5), 0.0, ANY, 0, alpha=0.5, low=-4)
    with working_precision(256):
        for ways in (Division(one, other, 4, tilt), Division(leaf, one, 1, tilt), Alone(one, tilt), Alone(other, tilt)):
            terms = sum((ways.term(part) for part in range(-400, 401)), arb(0))
            assert abs(ways.total() / terms - 1) < 1e-40


@pytest.mark.parametrize("seed", [0, 3, 8])
def test_messages_of_pairs_are_the_sums_of_their_parts(seed):
    """Scales that differ much: some windows are asked far beyond all that both parts reach."""
    random = np.random.default_rng(seed)
    parents = [-1, *(int(random.integers(0, max(1, i // 3))) for i in range(1, 80))]
    up = sampler(parents, "laplace", np.where(random.random(80) < 0.5, 8.0, 0.5)).ready
    pieces, shelf, far = up.pieces, up.shelf, 0

    def message(k):
        lo, hi, start = (int(each[k]) for each in (shelf.lo, shelf.hi, shelf.offset))
        inside, away = shelf.values[start : start + hi - lo + 1], np.arange(1, 400)
        return np.concatenate(
            [inside[0] * shelf.r_lo[k] ** away[::-1], inside, inside[-1] * shelf.r_hi[k] ** away]
        ), lo - 399

    for k in np.flatnonzero((pieces.kind_right >= 0) & (pieces.law < 0)).tolist():
        (one, lo), (other, other_lo), (found, _) = map(message, (pieces.kind_left[k], pieces.kind_right[k], k))
        start, size = int(shelf.lo[k]) - lo - other_lo, int(shelf.hi[k] - shelf.lo[k] + 1)
        ratio = found[399 : 399 + size] / np.convolve(one, other)[start : start + size]
        assert np.ptp(ratio) <= 1e-9 * ratio.max()
        far += up.guess.low[k] < shelf.lo[pieces.kind_left[k]] + shelf.lo[pieces.kind_right[k]] - 60
    assert far
