"""What must hold of every law of noise: symmetry, totals, quantiles, variances, refusals."""

import math
import threading
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from flint import ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.arguments import Refused
from holdfast.noise import Gaussian, Independent, IntegerGaussian, IntegerLaplace, Laplace
from holdfast.noise.draws.geometric import LaplaceTails
from holdfast.noise.draws.theta import GaussianTails, _direct, _dual, _smooth, total, variance
from holdfast.noise.precision import ball, decided, working_precision
from holdfast.randomness import seeded

parameters = st.one_of(
    st.fractions(min_value=Fraction(1, 50), max_value=2000, max_denominator=10**6),
    st.floats(min_value=0.02, max_value=1e6).map(Fraction),
)
integer_laws = st.one_of(parameters.map(IntegerLaplace), parameters.map(IntegerGaussian))
levels = st.one_of(
    st.floats(min_value=1e-300, max_value=1, exclude_max=True),
    st.fractions(min_value=Fraction(1, 10**40), max_value=1 - Fraction(1, 10**40)),
)


def weight(law, u: int) -> Decimal:
    """The unnormalised probability of u, in the current decimal context."""
    x = Fraction(abs(u)) / law.scale if law.kind == "laplace" else Fraction(u * u) / (2 * law.sigma2)
    return (-(Decimal(x.numerator) / Decimal(x.denominator))).exp()


def decimal_sums(law) -> tuple[Decimal, Decimal]:
    """Total weight and variance by plain summation."""
    whole, second, u = Decimal(1), Decimal(0), 0
    while True:
        u += 1
        term = 2 * weight(law, u)
        whole, second = whole + term, second + u * u * term
        if term * u * u < second * Decimal(10) ** -30:
            return whole, second / whole


def decimal_tail(law, a: int) -> Decimal:
    """Total weight of a, a + 1, …, by plain summation."""
    result, term = Decimal(0), weight(law, a)
    while term > result * Decimal(10) ** -40:
        result, a = result + term, a + 1
        term = weight(law, a)
    return result


EXAMPLES = [
    *(IntegerLaplace(scale) for scale in (Fraction(1, 100), Fraction(0.1), Fraction(3), Fraction(22, 7), 50)),
    *(IntegerGaussian(s) for s in (Fraction(1, 100), Fraction(1, 2), Fraction(999, 1000), 1, 9, 63, 64, 65, 900)),
]


def close(found: float, true: Decimal, places: float) -> bool:
    """Whether a double is within so many units in the last place of the truth."""
    return abs(Decimal(found) - true) <= Decimal(places * math.ulp(float(true)))


@pytest.mark.slow
@pytest.mark.parametrize("law", EXAMPLES, ids=str)
def test_variance_probabilities_and_distribution_agree_with_plain_summation(law):
    with localcontext(prec=60):
        whole, spread = decimal_sums(law)
        assert close(law.variance, spread, 0.51)
        points = [0, 1, -1, 2, 5, -30, 200]
        for u, found in zip(points, law.log_density(points), strict=True):
            assert close(found, (weight(law, u) / whole).ln(), 3)
        for u in (-400, -37, -2, -1, 0, 1, 7, 100):
            tail = decimal_tail(law, u + 1 if u >= 0 else -u) / whole
            assert close(float(law.cdf(u)), 1 - tail if u >= 0 else tail, 0.51)


@settings(max_examples=40, deadline=None)
@given(law=integer_laws, p=levels)
def test_the_quantile_is_the_smallest_number_that_reaches_its_level(law, p):
    u = law.quantile(p)
    tails = law_tails(law)
    assert reaches(tails, u, Fraction(p))
    assert not reaches(tails, u - 1, Fraction(p))


def law_tails(law):
    return LaplaceTails(law.scale) if law.kind == "laplace" else GaussianTails(law.sigma2)


def reaches(tails, u: int, p: Fraction) -> bool:
    """P(U ≤ u) ≥ p, said with the opposite tail: 1 − p ≥ P(U ≥ u + 1), or p ≤ P(U ≥ −u)."""
    if u >= 0:
        return not decided(lambda: tails.at(u + 1), 1 - p)
    return decided(lambda: tails.at(-u), p)


@settings(max_examples=30, deadline=None)
@given(law=integer_laws, u=st.integers(-3000, 3000))
def test_symmetry_and_agreement_of_cdf_and_probabilities(law, u):
    assert law.log_density(u) == law.log_density(-u)
    below, above = float(law.cdf(u - 1)), float(law.cdf(-u))
    assert abs(below + above - 1) <= 2.0**-52
    low, high = (float(law.cdf(v)) for v in (-abs(u) - 1, -abs(u)))
    assert math.isclose(high - low, math.exp(law.log_density(u)), rel_tol=1e-9, abs_tol=1e-300)


@settings(max_examples=30, deadline=None)
@given(law=integer_laws, u=st.integers(-200, 200))
def test_the_quantile_undoes_the_distribution_function(law, u):
    level = float(law.cdf(u))
    if 0 < level < 1:
        # The double is at most one rounding away from the exact level: step below it and the answer is u.
        found = law.quantile(math.nextafter(level, 0))
        assert found <= u
        assert math.isclose(float(law.cdf(found)), level, rel_tol=1e-12)


@pytest.mark.parametrize("law", [Laplace(Fraction(7, 3)), Gaussian(Fraction(7, 3))], ids=str)
def test_continuous_laws_are_consistent(law):
    grid = np.linspace(-400, 400, 2_000_001)
    density = np.exp(law.log_density(grid))
    step = grid[1] - grid[0]
    assert math.isclose(density.sum() * step, 1, rel_tol=1e-7)
    assert math.isclose((density * grid**2).sum() * step, law.variance, rel_tol=1e-6)
    for p in (1e-12, 0.025, 0.3, 0.5, 0.9, 1 - 1e-9):
        assert math.isclose(float(law.cdf(law.quantile(p))), p, rel_tol=1e-9)
    assert law.quantile(0.5) == 0
    assert law.quantile(1 - Fraction(1, 10**40)) == -law.quantile(Fraction(1, 10**40)) > 0


def test_golden_quantile_of_a_far_level():
    # P(U ≥ a) = e^{−a/3}/(1 + e^{−1/3}) ≤ 10^−40 first at a = 3·(40·ln 10 − ln(1 + e^{−1/3})) = 274.69…
    assert IntegerLaplace(Fraction(3)).quantile(1 - Fraction(1, 10**40)) == 274


@pytest.mark.parametrize("sigma2", [Fraction(64), Fraction(1000), Fraction(12345, 7)])
def test_the_ways_to_sum_gaussian_weights_agree(sigma2):
    for bits in (64, 256, 700):
        with working_precision(bits):
            for a in (0, 1, 7, 50, 90):
                direct, smooth = _direct(sigma2, a, 0), _smooth(sigma2, a)
                assert direct.overlaps(smooth)
                assert direct.rel_accuracy_bits() > bits - 20
                assert (smooth / total(sigma2)).rad() < 2.0 ** (10 - bits)
            assert total(sigma2).overlaps(1 + 2 * _direct(sigma2, 1, 0))


@pytest.mark.parametrize("sigma2", [Fraction(1), Fraction(3, 2)])
def test_poisson_summation_agrees_with_the_plain_sum(sigma2):
    with working_precision(300):
        assert total(sigma2).overlaps(1 + 2 * _direct(sigma2, 1, 0))
        assert total(sigma2).rel_accuracy_bits() > 280
        weights = [(2 * u * u, Fraction(u * u) / (2 * sigma2)) for u in range(1, 60)]
        plain = sum(float(k) * math.exp(-x) for k, x in weights) / float(total(sigma2).mid())
        assert math.isclose(float(variance(sigma2).mid()), plain, rel_tol=1e-13)


def missed(short, full) -> bool:
    """Whether a ball from a sum cut short fails to contain the sum; it must be wide because of the cut alone."""
    assert 1e-150 < short.rad() < full
    return not short.contains(full)


def test_sums_cut_short_say_how_much_they_left_out():
    """Cut early, every sum still encloses the whole one: its radius is the proved bound, not rounding."""
    with working_precision(600):
        for s in (Fraction(1, 3), Fraction(9), Fraction(50)):
            for a, last in ((0, 4), (1, 4), (3, 9)):
                assert not missed(_direct(s, a, 0, last=last), _direct(s, a, 0))
        for last in (4, 5, 6):
            assert not missed(_direct(Fraction(9, 10), 1, 2, last=last), _direct(Fraction(9, 10), 1, 2))
        for last in (1, 2):
            for short, full in zip(_dual(Fraction(1), last=last), _dual(Fraction(1)), strict=True):
                assert not missed(short, full)
        for s in (Fraction(64), Fraction(1000)):
            for a in (0, 3, 20):
                for orders in (1, 2, 5):
                    assert not missed(_smooth(s, a, orders=orders), _direct(s, a, 0))


def test_the_remainder_of_euler_and_maclaurin_is_bounded_with_little_to_spare():
    """At order 400 the bound is within (2πσ)² of the true remainder: one order less would be too small."""
    sigma2, a, orders = Fraction(1000), 2, 400
    with working_precision(4000):
        short, full = _smooth(sigma2, a, orders=orders), _direct(sigma2, a, 0)
        assert short.contains(full)
        left_out = abs(short.mid() - full)
        assert left_out < short.rad()
        assert left_out * ball(40 * sigma2) > short.rad()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [IntegerLaplace, IntegerGaussian])
def test_extreme_scales_are_drawn(kind):
    power = 1 if kind is IntegerLaplace else 2
    for parameter in (Fraction(1, 2**400), Fraction(2**50) ** power, Fraction(1e-3), Fraction(0.1)):
        law = kind(parameter)
        draws = law.draw(1000, seeded(1))
        assert draws.dtype == np.int64
        assert draws.shape == (1000,)
        assert np.isfinite(law.variance)
        assert np.all(np.abs(draws) < 60 * max(1.0, law.variance**0.5))
        assert np.all(law.log_density(draws) <= 0)
    assert kind(Fraction(3)).draw(0, seeded(1)).shape == (0,)


def test_precision_of_other_code_is_left_alone_and_threads_agree():
    before = ctx.prec
    results = {}

    def work(name):
        laws = [IntegerGaussian(Fraction(name + 1000, 7)), IntegerLaplace(Fraction(name + 50, 3))]
        results[name] = [(law.variance, float(law.cdf(3)), law.draw(50, seeded(2)).tolist()) for law in laws]

    threads = [threading.Thread(target=work, args=(i % 2,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ctx.prec == before
    again = dict(results)
    for name in (0, 1):
        work(name)
    assert results == again


def test_independent_noise_is_the_noise_of_its_laws():
    laws = (IntegerGaussian(Fraction(4)), None, IntegerGaussian(Fraction(900)))
    which = np.array([2, 0, 1, 0, 2], dtype=np.int32)
    noise = Independent(laws, which, 5)
    assert (noise.integer, noise.kind) == (True, "gaussian")
    assert noise.scale_values == (Fraction(4), None, Fraction(900))
    spread = [laws[2].variance, laws[0].variance, math.inf, laws[0].variance, laws[2].variance]
    assert noise.variances.tolist() == spread
    far = [
        laws[2].quantile(0.9),
        laws[0].quantile(0.9),
        math.inf,
        laws[0].quantile(0.9),
        laws[2].quantile(0.9),
    ]
    assert noise.quantiles(0.9).tolist() == far
    assert noise.quantiles(Fraction(1, 10))[2] == -math.inf
    u = np.arange(30).reshape(2, 3, 5)
    by_hand = sum(laws[k].log_density(u[..., i]) for i, k in enumerate(which) if laws[k] is not None)
    assert np.allclose(noise.log_density(u), by_hand, rtol=1e-14)
    with pytest.raises(Refused, match="noise cannot be drawn, because it is infinite where an output"):
        noise.draw(3, seeded(1))
    scaled = noise.times(Fraction(3, 2))
    assert scaled.scale_values == (Fraction(9), None, Fraction(2025))
    assert scaled.which is not None
    assert scaled.which.tolist() == which.tolist()


@pytest.mark.parametrize("law", [IntegerLaplace(Fraction(3)), Gaussian(Fraction(3))], ids=str)
def test_one_law_for_all_coordinates(law):
    noise = Independent((law,), None, 7)
    drawn = noise.draw(4, seeded(1))
    assert drawn.shape == (4, 7)
    assert np.array_equal(drawn.ravel(), law.draw(28, seeded(1)))
    assert np.array_equal(Independent((law, law.times(Fraction(2))), np.zeros(7, int), 7).draw(4, seeded(1)), drawn)
    assert np.allclose(noise.log_density(drawn), law.log_density(drawn).sum(axis=1), rtol=1e-14)
    assert noise.variances.tolist() == [law.variance] * 7
    assert noise.quantiles(0.8).tolist() == [law.quantile(0.8)] * 7
    assert noise.draw(0, seeded(1)).shape == (0, 7)
    assert noise.times(Fraction(2)).laws[0] == law.times(Fraction(2))


@pytest.mark.parametrize("kind", [Laplace, Gaussian, IntegerLaplace, IntegerGaussian])
@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, True, "3", None, Fraction(-1, 3), 1j])
def test_bad_scales_are_refused(kind, bad):
    with pytest.raises(Refused, match=r"^(scale|sigma2) must be "):
        kind(bad)


def test_scales_are_exact_rationals_and_laws_are_values():
    assert IntegerLaplace(0.1).scale == Fraction(0.1)  # type: ignore[arg-type]
    assert IntegerLaplace(Fraction(3)) == IntegerLaplace(3)  # type: ignore[arg-type]
    assert hash(IntegerGaussian(Fraction(9))) == hash(IntegerGaussian(9))  # type: ignore[arg-type]
    assert IntegerLaplace(Fraction(9)) != IntegerGaussian(Fraction(9))


def test_absurd_scales_and_other_bad_input_are_refused():
    with pytest.raises(Refused, match=r"^scale must be at most 2\*\*50 for integer noise"):
        IntegerLaplace(Fraction(2**50) + 1)
    with pytest.raises(Refused, match=r"^sigma2 must be at most 2\*\*100 for integer noise"):
        IntegerGaussian(Fraction(2**100) + 1)
    for kind in (Laplace, Gaussian, IntegerLaplace, IntegerGaussian):
        with pytest.raises(Refused, match=r"must lie between 2\*\*-400 and 2\*\*400"):
            kind(Fraction(1, 2**401))
    law = IntegerLaplace(Fraction(3))
    for p in (0, 1, -0.1, 1.1, math.nan, True):
        with pytest.raises(Refused, match=r"^p must "):
            law.quantile(p)
    for count in (-1, 2.5, True):
        with pytest.raises(Refused, match=r"^count must be"):
            law.draw(count, seeded(1))  # type: ignore[arg-type]
    with pytest.raises(Refused, match=r"^u must hold whole numbers, but the entry at position 1 is not whole"):
        law.log_density([1.0, 0.5])


@pytest.mark.parametrize(
    ("laws", "which", "n", "sentence"),
    [
        ((), None, 3, "at least one law"),
        ((None,), None, 3, "at least one law"),
        ((Laplace(Fraction(1)), Gaussian(Fraction(1))), None, 3, "laws of one type only"),
        ((Laplace(Fraction(1)), IntegerLaplace(Fraction(1))), None, 3, "laws of one type only"),
        (("laplace",), None, 3, "laws must hold laws of noise or None, found str"),
        ((None, Laplace(Fraction(1))), None, 3, "laws must start with a law of noise"),
        ((Laplace(Fraction(1)),), [0, 1, 0], 3, "which must hold positions in laws, between 0 and 0"),
        ((Laplace(Fraction(1)),), [0, -1, 0], 3, "which must hold positions in laws"),
        ((Laplace(Fraction(1)),), [0, 0], 3, "which must hold 3 positions in laws, found shape"),
        ((Laplace(Fraction(1)),), [0.0, 0.0, 0.0], 3, "which must hold 3 positions"),
        ((Laplace(Fraction(1)),), None, -1, "n must be at least 0"),
    ],
)
def test_bad_independent_noise_is_refused(laws, which, n, sentence):
    with pytest.raises(Refused, match=sentence):
        Independent(laws, which, n)


def test_bad_values_for_independent_noise_are_refused():
    noise = Independent((IntegerLaplace(Fraction(1)),), None, 3)
    for u in (1, [1, 2], [[1], [2], [3]]):
        with pytest.raises(Refused, match="u must have 3 entries in its last dimension"):
            noise.log_density(u)
    for factor in (0, -1, math.inf):
        with pytest.raises(Refused, match=r"^factor must be"):
            noise.times(factor)  # type: ignore[arg-type]
    with pytest.raises(Refused, match=r"^size must be"):
        noise.draw(-1, seeded(1))
