"""Bounds beside exact margins: never below the enumerated loss, equal where a supremum is stated, near it elsewhere.

Everything is recomputed from the definition: slacks of a table, the noise that the margins leave open, its weight
within the slacks before and after a swap.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

import holdfast as hf
from holdfast.given.prices.lines import line_gain

FAR = 60


def margins(shape, scales, **relation):
    """Counts of a table given its exact margins, not negative."""
    keep = [tuple(b for b in range(len(shape)) if b != a) for a in range(len(shape))]
    base = hf.laplace(hf.histogram(math.prod(shape)), scale=scales, **relation)
    return base.given(hf.invariant(hf.exact_margins(shape, keep)) & hf.nonnegative()).guarantee


def two_rows(table, rates):
    """Σ of the weights of all noise (t, −t), Σt = 0, that a 2×n table allows; rates (2, n)."""
    total, places = np.ones(1), np.arange(-FAR, FAR + 1)
    for column, rate in zip(np.array(table).T, np.array(rates).T, strict=True):
        weights = np.exp(-np.abs(places) * rate.sum()) * (places >= -column[0]) * (places <= column[1])
        total = np.convolve(total, weights)
    return total[total.size // 2]


def worst_swap(rates, tables):
    """The largest loss of one swap of two columns over the tables, 2×n."""
    n, worst = rates.shape[1], 0.0
    for table in tables:
        before = two_rows(table, rates)
        for j, i in itertools.permutations(range(n), 2):
            swap = np.zeros((2, n), dtype=int)
            swap[:, j], swap[:, i] = [1, -1], [-1, 1]
            if (table + swap >= 0).all():
                after = two_rows(table + swap, rates)
                worst = max(worst, (np.abs(swap) * rates).sum() + math.log(after / before))
    return worst


def check_two_rows(seed):
    rng = np.random.default_rng([31, seed])
    n = int(rng.integers(2, 5))
    scales = rng.choice([0.5, 1, 2, 4], size=(2, n)) if rng.integers(2) else np.full((2, n), rng.choice([0.5, 2, 5]))
    tables = rng.choice([0, 0, 1, 2, FAR], size=(6, 2, n))
    # Cells that are empty where a swap raises them and large where it lowers them, all others at one end.
    empty = np.where(rng.integers(2, size=n) == 0, [[0], [FAR]], [[FAR], [0]])
    statement = margins((2, n), scales.ravel().tolist(), neighbours="replace-one")
    assert statement.neighbours.records == 2
    worst = worst_swap(1 / scales, [*tables, empty, np.full((2, n), FAR)])
    assert worst <= statement.epsilon + 1e-9
    assert statement.epsilon <= 2 * 2 * sum(sorted((1 / scales).ravel())[-2:])


@pytest.mark.parametrize("seed", range(25))
def test_two_rows_never_lose_more_than_they_say(seed):
    check_two_rows(seed)


@pytest.mark.parametrize("scale", [1, 2, 4, 8])
@pytest.mark.parametrize("n", [2, 3, 4, 6])
def test_two_rows_cost_their_worst_table(scale, n):
    """At most some half as much again as what some table loses."""
    others = [[(0, FAR)] * a + [(FAR, 0)] * b + [(FAR, FAR)] * (n - 2 - a - b) for a, b in _parted(n - 2)]
    tables = [np.array([(0, FAR), (FAR, 0), *rest]).T for rest in others]
    worst = worst_swap(np.full((2, n), 1 / scale), tables)
    claim = margins((2, n), scale, neighbours="replace-one").epsilon
    assert worst - 1e-9 <= claim <= 1.55 * worst


def _parted(number):
    return [(a, b) for a in range(number + 1) for b in range(number + 1 - a)]


def test_two_exchanges_at_once_lose_no_more():
    """Four replaced records: all moves of two steps, tables with slacks 0, 1 and large."""
    claim = margins((2, 3), 2, neighbours=hf.Neighbours("replace-one", 4)).epsilon
    rates, worst = np.full((2, 3), 0.5), 0.0
    for cells in itertools.product([0, 1, FAR], repeat=6):
        table = np.array(cells).reshape(2, 3)
        for step in ((2, -2, 0), (2, -1, -1), (1, 1, -2)):
            swap = np.array([step, [-s for s in step]])
            if (table + swap >= 0).all():
                ratio = two_rows(table + swap, rates) / two_rows(table, rates)
                worst = max(worst, np.abs(swap).sum() / 2 + math.log(ratio))
    assert claim / 1.7 < worst <= claim + 1e-9


@pytest.fixture(scope="module")
def three_by_three():
    """All noise of a 3×3 table with exact margins whose free entries are moderate, (9, count)."""
    a, b, c, d = np.stack(np.meshgrid(*[np.arange(-8, 9)] * 4, indexing="ij")).reshape(4, -1)
    noise = np.stack([a, b, -a - b, c, d, -c - d, -a - c, -b - d, a + b + c + d])
    return np.ascontiguousarray(noise[:, np.abs(noise).sum(axis=0) <= 32], dtype=np.int8)


@pytest.mark.parametrize("scale", [1, 2])
def test_larger_tables_never_lose_more_than_they_say(three_by_three, scale):
    """3×3: every pattern of empty and large cells, and claim over truth at most 1.5."""
    weights = np.exp(-np.abs(three_by_three).sum(axis=0) / scale)
    swap = np.array([1, -1, 0, -1, 1, 0, 0, 0, 0])

    def seen(slacks):
        held = [row >= -slack for row, slack in zip(three_by_three, slacks, strict=True) if slack < FAR - 1]
        return weights[np.logical_and.reduce(held)].sum()

    worst = 0.0
    for ends in itertools.product([0, FAR], repeat=6):
        slacks = np.array([0, FAR, ends[0], FAR, *ends[1:]])
        worst = max(worst, 4 / scale + math.log(seen(slacks + swap) / seen(slacks)))
    claim = margins((3, 3), scale, neighbours="replace-one").epsilon
    assert worst < claim < 1.5 * worst
    assert margins((3, 4), scale, neighbours="replace-one").epsilon < 2 * 0.81 * 4 / scale


@pytest.mark.parametrize("seed", range(60))
def test_no_line_gains_more_than_lines_do(seed):
    """A random change, random noise on a random line, bounds on some outputs; continuous noise on a fine grid."""
    rng = np.random.default_rng([32, seed])
    size, fine = int(rng.integers(1, 6)), 1 if seed % 2 else 400
    change = rng.integers(1, 3, size=size) * rng.choice([-1, 1], size=size)
    rates = rng.choice([0.25, 0.5, 1.0, 2.0], size=size)
    held = rng.permutation(size)[: int(rng.integers(1, size + 1))]
    start = rng.integers(-3, 4, size=size) + (0 if fine == 1 else rng.random(size))
    slack = rng.choice([0, 0, 1, 3], size=size)
    places = np.arange(-60 * fine, 60 * fine + 1) / fine
    noise = start[:, None] + places * change[:, None]
    weights = np.exp(-(np.abs(noise) * rates[:, None]).sum(axis=0))

    def allowed(by):
        signs = np.sign(change[held])
        return (noise[held] * signs[:, None] >= -(slack[held] + by * np.abs(change[held]))[:, None]).all(axis=0)

    before, after = weights[allowed(0)].sum(), weights[allowed(1)].sum()
    loss, least = (Fraction(float(v)) for v in ((np.abs(change) * rates).sum(), rates[held].min()))
    bound = float(line_gain(loss, least, integer=fine == 1).mid())
    assert math.log(after / before) <= bound + (1e-9 if fine == 1 else 0.05)


def test_one_cell_reaches_what_lines_allow():
    """ε + log(1 + β(1 − β)), and log(2 − β) for continuous noise, β = e^−ε."""
    for epsilon in (Fraction(1, 2), Fraction(1), Fraction(3)):
        beta = math.exp(-epsilon)
        whole, real = (line_gain(epsilon, epsilon, integer=integer) for integer in (True, False))
        assert float(whole.mid()) == pytest.approx(math.log(1 + beta * (1 - beta)))
        assert float(real.mid()) == pytest.approx(math.log(2 - beta))
    assert abs(line_gain(Fraction(2), Fraction(1), integer=False) - arb(3).log()) < 1e-12  # κ = 0
