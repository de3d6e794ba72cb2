"""Tickets of every total against probabilities computed from the definition, in ball arithmetic and far out."""

from functools import cache

import numpy as np
import pytest
from flint import arb

from holdfast.noise.precision import working_precision
from holdfast.trees.tickets import tickets
from holdfast.trees.tickets.many import RARE
from samplers import NONE, sampler

ROWS = 10**9
BITS = 320
FAR = 100
ALL = 1 << 32

# name: parents, scales, bounds from below and from above
CASES = {
    "a block of seven": ([-1] + [0] * 7, [1.5] + [0.8] * 7, {}, {}),
    "two levels": ([-1, 0, 0, 0, 1, 1, 1, 2, 2], [1, 2, 1, 0.7, 1, 1, 0.5, 1, 1], {}, {}),
    "an unmeasured root": ([-1, 0, 0, 0, 1, 1], [np.inf, 1, 1, 1, 0.6, 0.6], {}, {}),
    "bounds": ([-1, 0, 0, 0, 1, 1], [1, 1, 0.9, 1, 0.6, 0.6], {1: -1, 2: 0, 4: 0, 5: 0}, {2: 3, 3: 5, 0: 6}),
}


def made_of(name, kind, share=1.0):
    parents, scales, low, high = CASES[name]
    n = len(parents)
    lower, upper = ([bound.get(v, none) for v in range(n)] for bound, none in ((low, -NONE), (high, NONE)))
    return sampler(parents, kind, scales, lower, upper).tables(ROWS, share)


def exactly(made):
    """The weight of every total of a kind, straight from the definition, with all noise within FAR."""

    def weight(law, b):
        each = made.laws[law]
        ratio = abs(b) / each.scale if hasattr(each, "scale") else b * b / (2 * each.sigma2)
        return (-arb(ratio.numerator) / ratio.denominator).exp()

    @cache
    def message(k):
        kind = made.halves.kinds[k]
        if kind.left < 0:
            before = {b: arb(1) for b in range(-FAR, FAR + 1)}
        elif kind.right < 0:
            before = message(kind.left)
        else:
            before = {}
            for a, one in message(kind.left).items():
                for b, other in message(kind.right).items():
                    if abs(a + b) <= FAR:
                        before[a + b] = before.get(a + b, arb(0)) + one * other
        inside = {s: value for s, value in before.items() if kind.low <= s <= kind.high}
        return inside if kind.law < 0 else {s: value * weight(kind.law, s) for s, value in inside.items()}

    def shares(k, s):
        """The probability of each left part of a total."""
        kind = made.halves.kinds[k]
        one, other = message(kind.left), {} if kind.top else message(kind.right)
        weights = {a: value * (1 if kind.top else other.get(s - a, arb(0))) for a, value in one.items()}
        total = sum(weights.values(), arb(0))
        return {a: value / total for a, value in weights.items()}

    return shares


def totals_of(made):
    """Every kind that is divided, with the first, the middle and the last of its totals and some between."""
    for k in np.flatnonzero(made.count).tolist():
        for place in sorted({0, 1, made.count[k] // 3, made.count[k] // 2, made.count[k] - 1}):
            if place < made.count[k]:
                yield k, int(made.low[k] + place)


def mistakes(made):
    """Totals where a part has more tickets than its share, or more are open than roundings and full cells explain."""
    shares = exactly(made)
    found = 0
    with working_precision(BITS):
        for k, s in totals_of(made):
            had, chances = made.tickets(k, s), shares(k, s)
            found += any(not ALL * chances.get(a, arb(0)) >= count for a, count in had.items())
            found += any(not ALL * chances[a] <= count + 2 for a, count in had.items())
            rest = sum((chances[a] for a in chances if a not in had), arb(0))
            found += not (rest < 1e-7 or len(had) == (1 << int(made.bits[k])) - 1)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", CASES)
def test_every_part_has_its_share_of_tickets_rounded_down(kind, name):
    made = made_of(name, kind)
    assert mistakes(made) == 0


@pytest.mark.parametrize("change", [3, -3])
def test_a_few_tickets_too_many_or_too_few_are_seen(change):
    """Three tickets of 2**32 for one part in one cell are enough."""
    made = made_of("a block of seven", "laplace")
    k, s = list(totals_of(made))[6]
    start = int(made.base[k]) + (s - int(made.low[k]) << int(made.bits[k]))
    for place in range(start, start + (1 << int(made.bits[k]))):
        cell = int(made.cells[place])
        if cell >> 16 & 0xFFFF != cell & 0xFFFF and 10 < cell >> 32 < (1 << 32 - int(made.bits[k])) - 10:
            made.cells[place] = cell + (change << 32)
            break
    assert mistakes(made) > 0


@pytest.mark.parametrize("share", [1.0, 0.6])
def test_cells_hold_each_ticket_once(share):
    rng = np.random.default_rng(5)
    for bits in (4, 6, 9):
        f, g = (np.exp(-np.abs(np.arange(-20, 21)) / rng.uniform(0.5, 5)) for _ in range(2))
        cells = np.empty(31 << bits, dtype=np.uint64)
        tickets.fill(f, f, -20, g, g, -20, 0.0, -15, 15, bits, share, cells)
        for s, row in zip(range(-15, 16), cells.reshape(31, -1), strict=True):
            assert int((row >> np.uint64(32)).max()) <= 1 << 32 - bits
            weights = {a: f[a + 20] * g[s - a + 20] for a in range(max(-20, s - 20), min(20, s + 20) + 1)}
            total = sum(weights.values())
            had = tickets.read(row, bits)
            assert len(had) <= (1 << bits) - 1
            for a, count in had.items():
                assert 0 <= share * ALL * weights[a] / total - count < 3
            if bits == 9 and share == 1:
                assert ALL - sum(had.values()) < 100


def test_every_word_is_looked_up_where_its_ticket_lies():
    """Words at both sides of every border between two parts: a lone leaf gets the part in whose share they lie."""
    made = sampler([-1], "laplace", 1.5).tables(ROWS)
    h, top = made.halves, int(made.halves.step_kind[0])
    bits = int(made.bits[top])
    borders, wanted = [], []
    for place, cell in enumerate(made.cells[made.base[top] : made.base[top] + (1 << bits)].tolist()):
        first, size = cell >> 32, 1 << 32 - bits
        for ticket in sorted({0, max(first - 1, 0), min(first, size - 1), size - 1}):
            borders.append((place << 32 - bits) + ticket)
            wanted.append(np.int16(np.uint16(cell >> 16 & 0xFFFF if ticket < first else cell & 0xFFFF)))
    parts, nothing = np.array(wanted), np.empty(0, dtype=np.int64)
    opened, noise = np.empty((parts.size, 2), dtype=np.int64), np.empty((parts.size, 1), dtype=np.int64)
    cells, steps = (made.cells, made.base, made.low, made.count, made.bits), (h.step_kind, h.source, h.left, h.right)
    words = np.array(borders, dtype=np.uint32)
    tickets.draw(cells, steps, words, h.lines, h.line_of, (nothing, nothing), opened, noise)
    is_open = parts == tickets.OPEN
    assert is_open.any()
    assert np.array_equal(opened[:, 0], np.where(is_open, 0, -1))
    assert np.array_equal(noise[~is_open, 0], parts[~is_open])


def test_totals_outside_a_table_are_rare():
    """What lies beyond the totals of a table, in a tree whose totals are known, is about as rare as it should be."""
    made = made_of("a block of seven", "laplace")
    top = int(made.halves.step_kind[0])
    root = made.halves.kinds[top].left
    with working_precision(BITS):
        chances = exactly(made)(top, 0)
        lo, hi = int(made.low[root]), int(made.low[root] + made.count[root] - 1)
        beyond = float(sum((p for s, p in chances.items() if not lo <= s <= hi), arb(0)))
    assert RARE / 20 < beyond < 2 * RARE
