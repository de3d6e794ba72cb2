"""Every first word of a draw, listed: what it decides agrees with the law, and nothing else is decided.

The oracle is decimal arithmetic with 80 digits; the code under test uses binary balls.
"""

import functools
import itertools
from bisect import bisect_left, bisect_right
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from holdfast.noise.draws.comparison import Comparison, _locate, _searched
from holdfast.noise.draws.gaussian_draws import RejectionSampler, coin, gaussian_sampler
from holdfast.noise.draws.geometric import LaplaceTails, laplace_sampler
from holdfast.noise.draws.theta import GaussianTails
from holdfast.noise.draws.zigzag import Zigzag
from holdfast.noise.precision import ball, working_precision
from holdfast.randomness import seeded

DIGITS = 80
LAPLACE = [Fraction(1, 100), Fraction(1, 3), Fraction(0.1), Fraction(3), Fraction(22, 7), Fraction(40)]
GAUSSIAN = [
    Fraction(1, 100),
    Fraction(1, 3),
    Fraction(0.7) ** 2,
    Fraction(9),
    Fraction(200, 3),
    Fraction(1600),
]


class Scripted:
    """A stream that gives prescribed words, then prescribed bits, and counts the bits it gave."""

    def __init__(self, words, bits=()):
        self.queue, self.more, self.asked = list(words), list(bits), 0

    def words(self, count):
        given, self.queue = self.queue[:count], self.queue[count:]
        assert len(given) == count
        return np.array(given, dtype=np.uint64)

    def bits(self, count):
        self.asked += count
        return self.more.pop(0)


def decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / Decimal(number.denominator)


@functools.cache
def oracle(kind: str, parameter: Fraction) -> list[Decimal]:
    """Return F_0, F_1, … in the order 0, −1, 1, −2, 2, … until 1 − F < 10^−30."""
    with localcontext(prec=DIGITS):
        terms = [Decimal(1)]
        while terms[-1] >= Decimal(10) ** -70:
            u = Fraction(len(terms))
            terms.append((-decimal(u / parameter if kind == "laplace" else u * u / (2 * parameter))).exp())
        whole = 2 * sum(terms) - 1
        result, total = [Decimal(0)], Decimal(0)
        while 1 - total >= Decimal(10) ** -30:
            total += terms[len(result) // 2] / whole
            result.append(total)
        return result


def expected(cumulative: list[Decimal], value: int, bits: int) -> int | None:
    """Return the symbol that all U in [value, value + 1)/2^bits share, or None."""
    with localcontext(prec=DIGITS):
        low, high = (Decimal(value + d) / Decimal(2) ** bits for d in (0, 1))
        below = bisect_right(cumulative, low) - 1
        through = bisect_left(cumulative, high) - 1
        return below if below == through and high < 1 else None


def comparison_of(kind: str, parameter: Fraction, bits: int) -> Comparison:
    tails = LaplaceTails(parameter) if kind == "laplace" else GaussianTails(parameter)
    return Comparison.of(Zigzag(tails), bits)


def disagreements(comparison: Comparison, cumulative: list[Decimal]) -> int:
    """Run every first word and count those whose outcome (symbol, or undecided) is not the oracle's."""
    wrong = 0
    bits = comparison.bits
    for value in range(1 << bits):
        stream = Scripted([value << (64 - bits)], bits=[1 << 63] * 50)
        symbol = int(comparison.draw(1, stream)[0])
        truth = expected(cumulative, value, bits)
        wrong += (stream.asked > 0) != (truth is None)
        wrong += truth is not None and symbol != truth
        wrong += comparison.symbol(value, bits) != truth
    return wrong


CASES = [("laplace", x) for x in LAPLACE] + [("gaussian", x) for x in GAUSSIAN]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "parameter"), CASES)
def test_every_first_word_decides_what_the_law_says(kind, parameter):
    cumulative = oracle(kind, parameter)
    for bits in (1, 6):
        assert disagreements(comparison_of(kind, parameter, bits), cumulative) == 0


@pytest.mark.parametrize(("kind", "parameter"), CASES)
@pytest.mark.parametrize("bits", [1, 6, 8, 64])
def test_few_words_are_searched_as_many_are(kind, parameter, bits):
    comparison = comparison_of(kind, parameter, bits)
    near = [comparison.thresholds + np.uint64(more) for more in (0, 1, 2**64 - 1)]
    values = np.concatenate([*near, np.arange(min(256, 2**bits), dtype=np.uint64)]) & np.uint64(2**bits - 1)
    few, many = np.empty(values.size, dtype=np.int64), np.empty(values.size, dtype=np.int64)
    known, shift = (comparison.thresholds, comparison.lowest), np.uint64(64 - bits)
    some = _searched(values, *known, few)
    found = _locate.py_func(values << shift, shift, *known, comparison.guide, np.uint64(comparison.guide_shift), many)
    np.testing.assert_array_equal(few, many)
    assert some == (found > 0)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "parameter"), [("laplace", Fraction(3)), ("gaussian", Fraction(9))])
def test_wrong_samplers_are_caught(kind, parameter):
    truth = oracle(kind, parameter)
    assert disagreements(comparison_of(kind, parameter * Fraction(11, 10), 8), truth) > 0
    right = comparison_of(kind, parameter, 8)
    for shift in (-1, 1):
        thresholds = (right.thresholds.astype(np.int64) + shift).clip(0, 255).astype(np.uint64)
        guide = np.append(np.searchsorted(thresholds, np.arange(len(right.guide) - 1) << right.guide_shift), 0)
        guide[-1] = thresholds.size
        wrong = Comparison(right.cumulative, 8, thresholds, thresholds, guide.astype(np.int32), right.guide_shift)
        assert disagreements(wrong, truth) > 0

    class NeverAsks(Comparison):
        def decide(self, value, stream):
            del stream
            return int(np.searchsorted(self.thresholds, value))

    dropped = NeverAsks(right.cumulative, 8, right.thresholds, right.lowest, right.guide, right.guide_shift)
    assert disagreements(dropped, truth) > 0


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "parameter"), CASES[1:4] + CASES[7:10])
def test_more_digits_close_in_on_the_law(kind, parameter):
    """The mass decided for each symbol after 9 digits brackets its probability within two intervals."""
    cumulative = oracle(kind, parameter)
    bits = 9
    comparison = comparison_of(kind, parameter, 4)
    found = [comparison.symbol(value, bits) for value in range(1 << bits)]
    for k in range(min(len(cumulative) - 1, 200)):
        mass = Decimal(found.count(k)) / 2**bits
        probability = cumulative[k + 1] - cumulative[k]
        assert mass <= probability + Decimal(10) ** -60
        assert probability <= mass + Decimal(2) / 2**bits


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "parameter"), CASES)
def test_an_undecided_word_is_decided_by_what_follows(kind, parameter):
    """All-zero digits after an undecided word lead to the lowest of its symbols, all-one digits to more."""
    comparison = comparison_of(kind, parameter, 6)
    cumulative = oracle(kind, parameter)
    seen = 0
    for value in range(1 << 6):
        if expected(cumulative, value, 6) is None:
            low = bisect_right(cumulative, Decimal(value) / 64) - 1
            assert comparison.decide(value, Scripted([], [0] * 9)) == low
            assert comparison.decide(value, Scripted([], [2**64 - 1] * 3 + [0])) > low
            seen += 1
    assert seen > 0


@pytest.mark.slow
@pytest.mark.parametrize("parameter", [Fraction(1, 3), Fraction(3), Fraction(100)])
def test_full_words_are_located_by_exact_thresholds(parameter):
    """64-bit words at, just below and just above each threshold."""
    for kind in ("laplace", "gaussian"):
        comparison = comparison_of(kind, parameter, 64)
        cumulative = oracle(kind, parameter)
        with localcontext(prec=DIGITS):
            floors = [int(f * 2**64) for f in cumulative[1:]]
        count = comparison.thresholds.size
        assert comparison.thresholds.tolist() == floors[:count]
        assert floors[count - 1] == 2**64 - 1
        assert count == 1 or floors[count - 2] < 2**64 - 1
        for k in range(0, count, max(1, count // 40)):
            for word in {max(floors[k] - 1, 0), floors[k], min(floors[k] + 1, 2**64 - 1)}:
                stream = Scripted([word], [1 << 63] * 20)
                symbol = int(comparison.draw(1, stream)[0])
                truth = expected(cumulative, word, 64)
                assert (stream.asked > 0) == (truth is None)
                assert truth in (None, symbol)


def test_what_practically_never_happens_is_reachable():
    """Scale 1/100: P(U ≠ 0) = 2e^{−100}/(1 + e^{−100}) ≈ 2^−143.27, far beyond the first word."""
    sampler = laplace_sampler(Fraction(1, 100))

    def draw(distance: int) -> int:
        """Draw with the digits of U = 1 − 2^−distance."""
        digits = 2**256 - 2 ** (256 - distance)
        words = [digits >> (192 - 64 * i) & (2**64 - 1) for i in range(4)]
        return int(sampler.draw(1, Scripted(words[:1], words[1:]))[0])

    assert [draw(distance) for distance in (1, 64, 65, 128, 143)] == [0] * 5
    assert draw(144) == -1  # F_1 = 1 − 2^−143.27 < U < F_2 = 1 − 2^−144.27
    assert draw(145) == 1


@pytest.mark.parametrize("scale", [Fraction(200), Fraction(1000, 3), Fraction(0.3) * 1000])
def test_the_parts_of_a_large_draw_make_every_number_once_with_its_probability(scale):
    sampler = laplace_sampler(scale)
    (digit,) = sampler.digits
    tops, lows = 6, digit.cumulative.size

    def word_of(comparison: Comparison, symbol: int) -> int:
        """A word in the middle of a symbol's range."""
        edges = [0, *comparison.thresholds.tolist(), 2**64 - 1]
        return (edges[symbol] + edges[symbol + 1]) // 2

    found = {}
    for top, low in itertools.product(range(tops), range(lows)):
        stream = Scripted([word_of(sampler.top, top), word_of(digit, low)])
        found[int(sampler.draw(1, stream)[0])] = (top, low)
    assert sorted(found) == list(range(-tops // 2 * lows, tops // 2 * lows))
    with working_precision(200):
        ratio = ball(-1 / scale).exp()
        for u, (top, low) in found.items():
            chance = sampler.top.cumulative.at(top + 1) - sampler.top.cumulative.at(top)
            chance = chance * (digit.cumulative.at(low + 1) - digit.cumulative.at(low))
            true = (1 - ratio) / (1 + ratio) * ball(-abs(u) / scale).exp()
            assert chance.overlaps(true)
            assert (chance / true - 1).rad() < 1e-40


@pytest.mark.parametrize("scale", [Fraction(129), Fraction(10**6), Fraction(2**40 + 1, 3), Fraction(2**50)])
def test_digits_follow_their_law_and_run_and_at_agree(scale):
    sampler = laplace_sampler(scale)
    assert sum(sampler.widths) == sum(c.cumulative.width for c in sampler.digits)
    positions = [c.cumulative.position for c in sampler.digits]
    assert positions == [sum(sampler.widths[i + 1 :]) for i in range(len(sampler.widths))]
    with working_precision(250):
        for comparison in (sampler.top, *sampler.digits):
            run = comparison.cumulative.run()
            for k, value in zip(range(1, 40), run, strict=False):
                assert value.overlaps(comparison.cumulative.at(k))
                assert value.rad() < 1e-50
        for comparison in sampler.digits:
            # The digit's weights fall by the same factor at each step, and sum to one.
            cumulative, step = comparison.cumulative, Fraction(1 << comparison.cumulative.position) / scale
            assert cumulative.at(cumulative.size).overlaps(ball(1))
            for k in (1, 2, cumulative.size - 1):
                rise = cumulative.at(k + 1) - cumulative.at(k)
                assert (rise / (cumulative.at(k) - cumulative.at(k - 1))).overlaps(ball(-step).exp())


SIGMA2 = [Fraction(512**2 + 1), Fraction(10**6, 3), Fraction(10**12), Fraction(2**100)]


@pytest.mark.parametrize("sigma2", SIGMA2)
def test_accepted_proposals_have_gaussian_weights(sigma2):
    """Proposal weight times acceptance is e^{−y²/2σ²} times a constant: an identity of rational exponents."""
    sampler = gaussian_sampler(sigma2)
    exponents = set()
    for y in [*range(0, 3000, 7), *range(-40, 0), 10**7]:
        exponents.add(Fraction(abs(y), sampler.scale) + sampler.exponent(y) - Fraction(y * y) / (2 * sigma2))
    assert len(exponents) == 1
    assert 0 <= min(exponents) < 1


def test_every_first_word_of_the_coin_decides_what_the_exponential_says():
    sampler = RejectionSampler.of(Fraction(10**6, 3), coin_bits=8)
    proposals = np.arange(-4000, 4001, 37)
    values = np.arange(256, dtype=np.uint64)
    for y in proposals:
        with localcontext(prec=60):
            scaled = (-decimal(sampler.exponent(int(y)))).exp() * 256
        verdicts, undecided = sampler.verdicts(np.full(256, y), values << np.uint64(56))
        truth = [1 if v + 1 <= scaled else 0 if v >= scaled else -1 for v in range(256)]
        assert verdicts.tolist() == truth
        assert undecided == truth.count(-1) == 1
        unsure = truth.index(-1)
        x = sampler.exponent(int(y))
        assert coin(x, unsure, 8, Scripted([], [0] * 9))
        assert not coin(x, unsure, 8, Scripted([], [2**64 - 1] * 9))
        with localcontext(prec=60):
            digits = int(scaled * 2**64)  # U just below and just above e^{−x}
        assert coin(x, unsure, 8, Scripted([], [digits % 2**64 - 1]))
        assert not coin(x, unsure, 8, Scripted([], [digits % 2**64 + 1]))


@pytest.mark.parametrize("sigma2", SIGMA2)
def test_the_fast_coin_is_within_its_proved_error(sigma2):
    """Words beyond 2^−39 of e^{−x} are decided, rightly; within 2^−43, the proved error, they are not."""
    sampler = gaussian_sampler(sigma2)
    sigma = float(sigma2) ** 0.5
    for y in np.unique((sigma * np.linspace(0, 9.5, 400)).astype(np.int64)):
        with localcontext(prec=60):
            true = (-decimal(sampler.exponent(int(y)))).exp()
            shares = [
                1 - Decimal(2) ** -39,
                1 - Decimal(2) ** -43,
                1 + Decimal(2) ** -43,
                1 + Decimal(2) ** -39,
            ]
            words = [int(true * share * 2**64) for share in shares]
        fine = true * 2**53 > 2**44  # e^{−x} must be large against a step of 2^−53 for this to be seen
        if fine and words[-1] < 2**64:
            verdicts, _ = sampler.verdicts(np.full(4, y), np.array(words, dtype=np.uint64))
            assert verdicts.tolist() == [1, -1, -1, 0]


def test_far_proposals_are_rejected_unless_the_word_is_zero():
    sampler = gaussian_sampler(Fraction(10**6))
    verdicts, undecided = sampler.verdicts(np.full(3, 40_000), np.array([0, 2**11, 2**64 - 1], dtype=np.uint64))
    assert verdicts.tolist() == [-1, 0, 0]
    assert undecided == 1
    assert not coin(sampler.exponent(40_000), 0, 53, seeded(1))


def test_draws_are_the_first_accepted_proposals():
    sampler = gaussian_sampler(Fraction(10**6))
    for count in (1, 10, 1000):
        drawn = sampler.draw(count, seeded(5))
        stream = seeded(5)
        batch = int(count * 1.33) + 16
        proposals = sampler.proposals.draw(batch, stream)
        verdicts, _ = sampler.verdicts(proposals, stream.words(batch))
        accepted = proposals[verdicts == 1][:count]
        assert np.array_equal(drawn[: accepted.size], accepted)
        assert accepted.size > 0.9 * count


@pytest.mark.slow
def test_a_draw_that_does_not_fit_is_an_error():
    sampler = laplace_sampler(Fraction(2**50))
    ones = 2**64 - 1
    with pytest.raises(OverflowError):
        sampler.draw(1, Scripted([ones] * 5, [ones] * 200 + [0]))


class Quarters:
    """Four equally likely symbols: every cumulative probability times 2^bits is whole; balls never tell its floor."""

    size = 4

    def at(self, k):
        return arb(1) / 3 * arb(3) / 4 * k  # a ball around k/4 that is not exact

    def run(self):
        return iter([self.at(1), self.at(2), self.at(3)])


def test_probabilities_that_are_whole_multiples_of_a_word_are_drawn():
    comparison = Comparison.of(Quarters(), 8)
    assert (comparison.thresholds - comparison.lowest).max() == 1
    draws = comparison.draw(40_000, seeded(5))
    counts = np.bincount(draws, minlength=4)
    assert counts.sum() == 40_000
    # Each count has standard deviation 87; six of them.
    assert np.abs(counts - 10_000).max() < 520
    words = {w: comparison.decide(w, seeded(w)) for w in (0, 62, 63, 64, 65, 127, 128, 191, 192, 255)}
    assert [words[w] for w in sorted(words)] == [0, 0, 0, 1, 1, 1, 2, 2, 3, 3]
