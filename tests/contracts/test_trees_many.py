"""What tables drawn by tickets keep: sums, bounds, and independence of workers, of earlier draws and of precision."""

from contextlib import suppress
from functools import cache

import numpy as np
import pytest
from flint import arb

import holdfast as hf
from holdfast.noise.draws.decisions import Digits, Open, decided
from holdfast.noise.precision import working_precision
from holdfast.randomness import Keys
from holdfast.trees.tickets import many
from holdfast.trees.tickets.enclosures import Enclosures
from holdfast.trees.tickets.many import ROWS as CHUNK
from samplers import NONE, sampler, sums_up

CITY = np.array([-1] + [0] * 6 + [1 + g for g, size in enumerate((43, 61, 1, 69, 69, 20)) for _ in range(size)])
ROWS = 10**9


@pytest.fixture(scope="module")
def city():
    return sampler(CITY, "laplace", 1).tables(ROWS)


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("bound", [None, 0, 3])
def test_a_city_adds_up_within_its_bounds(kind, bound):
    low = None if bound is None else np.where(np.arange(270) < 7, -NONE, -(np.arange(270) % (bound + 1)))
    draws = sampler(CITY, kind, 1.25, low).tables(ROWS).draw(3_000, hf.seeded(1))
    assert sums_up(CITY, draws)
    assert low is None or (draws >= low).all()
    assert (draws.std(axis=0) > 0.05).all()


def test_workers_do_not_change_a_table():
    tables = [sampler(CITY, "laplace", 1, workers=w).tables(ROWS, 0.99995).draw(5_000, hf.seeded(4)) for w in (1, 2, 3)]
    assert np.array_equal(tables[0], tables[1])
    assert np.array_equal(tables[0], tables[2])
    assert len(np.unique(tables[0], axis=0)) == 5_000


def test_earlier_draws_do_not_change_a_table(monkeypatch):
    """Which way is taken depends on the number of rows, never on tables that happen to be there."""
    monkeypatch.setattr(many, "PLACE_COSTS", 32)
    fresh, used = sampler(CITY, "laplace", 1), sampler(CITY, "laplace", 1)
    used.draw(10_000, hf.seeded(1))
    assert "_tables" in vars(used)
    for size in (5, 1_200, 3_000, 8_000, 10_000):
        assert np.array_equal(fresh.draw(size, hf.seeded(2)), used.draw(size, hf.seeded(2)))


@pytest.mark.slow
def test_many_rows_are_drawn_by_tickets_and_few_are_not(monkeypatch):
    drawn = []
    plain = many.Many.draw
    monkeypatch.setattr(many.Many, "draw", lambda self, size, stream: drawn.append(size) or plain(self, size, stream))
    tree = hf.Hierarchy.from_parents(CITY)
    mechanism = hf.laplace(hf.counts(tree), scale=1).given(hf.consistent(tree))
    truth = tree.sum_up(np.arange(263))
    for size in (1, 500, 20_000):
        mechanism.noise(size, hf.seeded(1))
        values = mechanism.simulate(truth, size, hf.seeded(1))
    assert drawn == [20_000, 20_000]
    assert sums_up(CITY, values)
    assert np.abs(values.mean(axis=0) - truth).max() < 0.1


def test_wide_noise_and_large_trees_go_the_ordinary_way():
    assert sampler(CITY, "laplace", 40.0).tables(10**6) is None
    assert sampler(CITY, "gaussian", 2_000.0).tables(10**6) is None
    assert sampler(CITY, "laplace", 1).tables(2_000) is None
    assert not many.repays(10**6, 10**6)
    # a total of 0 that many leaves reach only if none of them has noise: too rare for its window
    none_below = np.where(np.arange(301) == 0, -NONE, 0)
    rare = sampler([-1] + [0] * 300, "laplace", 2.0, none_below, exact=[0])
    assert rare.tables(10**6) is None
    assert not rare.draw(20_000, hf.seeded(1)).any()


def test_a_row_alone_is_the_row_among_others(city):
    """Open rows are drawn again alone, from the same words."""
    noise, keys = np.empty((CHUNK, 270), dtype=np.int64), Keys.of(bytes(16))
    city._draw_rows(noise, keys, 0)
    words = city._words(keys, 0, 0, CHUNK)
    for row in (0, 1, 255, 256, 700, CHUNK - 1):
        alone = np.empty((1, 270), dtype=np.int64)
        city._finish(many._words_of(words, row, CHUNK), alone, keys, row, 0)
        assert np.array_equal(alone[0], noise[row])


def test_a_smaller_number_of_rows_fills_a_part_of_a_chunk(city):
    for size in (1, 255, 257, CHUNK + 1):
        draws = city.draw(size, hf.seeded(3))
        assert draws.shape == (size, 270)
        assert sums_up(CITY, draws)


def test_hardly_a_row_is_open_unless_tickets_are_kept_back(city, monkeypatch):
    handed = []
    plain = many.Many._finish
    monkeypatch.setattr(
        many.Many, "_finish", lambda self, words, noise, keys, row, attempt: (
            handed.append(row), plain(self, words, noise, keys, row, attempt)
        )[1],
    )  # fmt: skip
    city.draw(20_000, hf.seeded(6))
    assert len(handed) <= 2
    handed.clear()
    half = sampler([-1, 0, 0], "laplace", 1).tables(ROWS, 0.5).draw(300, hf.seeded(6))
    assert 180 < len(handed) < 270  # two divisions, each open with probability 1/2
    assert sums_up([-1, 0, 0], half)


def enclosures(kind, bits):
    """Messages of a small tree, cut off where they are below 2^−bits, whatever the working precision."""
    made = sampler([-1, 0, 0, 0, 1, 1, 1], kind, [1, 1, 1.5, 1, 0.75, 0.75, 2]).tables(ROWS, 0.7)
    return made, Enclosures(made.halves.kinds, made.laws, bits)


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("bits", [6, 20])
def test_narrow_windows_know_what_they_miss(kind, bits):
    """Inside and outside, balls hold the values of windows so wide that nothing is missing."""
    (made, narrow), (_, wide) = enclosures(kind, bits), enclosures(kind, 400)
    with working_precision(400):
        for k, each in enumerate(made.halves.kinds):
            if each.top:
                continue
            cut, whole = narrow.message(k), wide.message(k)
            factor = arb(2) ** round(float((cut.values[-cut.lo] / whole.values[-whole.lo]).log() / arb(2).log()))
            values = {s: value * factor for s, value in enumerate(whole.values, whole.lo)}
            assert all(cut.at(s).overlaps(value) for s, value in values.items())
            known = sum(cut.values, arb(0))
            everything = sum(values.values(), arb(0))
            assert 0 < everything - known < cut.missing * (1 + arb(2) ** -60)
            assert everything < 1


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_precision_does_not_change_a_division(kind):
    """A division by hand is a function of the digits: narrow windows leave some open and decide others as wide ones."""
    made, wide = enclosures(kind, 400)
    rng = np.random.default_rng(7)
    steps = made.halves.step_kind.tolist()
    parts, settled = set(), 0
    with working_precision(400):
        for trial in range(40):
            k = steps[trial % len(steps)]
            s = 0 if made.halves.kinds[k].top else int(rng.integers(-12, 13))
            had, digits = made.tickets(k, s), Digits(int(rng.integers(0, 1 << 63)) * 2, 64, lambda: hf.seeded(1))
            found = wide.part(k, s, had, digits)
            parts.add(found)
            for bits in (24, 40, 80):
                with suppress(Open):
                    assert enclosures_at(made, bits).part(k, s, had, digits) == found
                    settled += 1
    assert len(parts) > 8
    assert 60 < settled < 120


@cache
def enclosures_at(made, bits):
    return Enclosures(made.halves.kinds, made.laws, bits)


def test_more_digits_and_more_precision_settle_a_division():
    """The last number of 64 digits is above all partial sums that 40 bits can tell from 1."""
    made, _ = enclosures("laplace", 40)
    top = int(made.halves.step_kind[0])
    digits = Digits((1 << 64) - 1, 64, lambda: hf.seeded(1))
    far = decided(made._at, digits, lambda exact, number: exact.part(top, 0, {}, number), 40)
    assert digits.count > 64
    assert abs(far) > 20


def test_bounds_that_messages_leave_out_still_hold():
    """A far bound is kept by drawing the whole table again; here bounds count as far that are near."""
    low = np.where(np.arange(9) == 0, -NONE, -2)
    made = sampler([-1] + [0] * 8, "laplace", 1, low)
    vars(made.messages)["limits"] = np.array([[2], [2]])
    draws = made.tables(ROWS).draw(4_000, hf.seeded(8))
    assert made.messages.far.size == 8
    assert (draws >= low).all()
    assert draws[:, 1:].min() == -2
    near = sampler([-1] + [0] * 8, "laplace", 1, low).tables(ROWS).draw(40_000, hf.seeded(9))
    for power in (1, 2):
        a, b = draws.astype(float) ** power, near.astype(float) ** power
        apart = (a.mean(axis=0) - b.mean(axis=0)) / np.sqrt(a.var(axis=0) / len(a) + b.var(axis=0) / len(b))
        assert np.abs(apart).max() < 6


def test_categories_and_forests_are_drawn():
    tree = hf.Hierarchy.from_parents([-1, 0, 0, 0, -1, 4, 4])
    query = hf.counts(tree, by=2)
    mechanism = hf.laplace(query, scale=1).given(hf.consistent(query))
    noise = mechanism.noise(200_000, hf.seeded(10)).reshape(-1, 7, 2)
    assert np.array_equal(noise[:, 0], noise[:, 1:4].sum(axis=1))
    assert np.array_equal(noise[:, 4], noise[:, 5:].sum(axis=1))
    assert noise.reshape(-1, 14).std(axis=0) == pytest.approx(mechanism.standard_error(), rel=0.02)
