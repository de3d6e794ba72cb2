"""Compiled steps on messages against ball arithmetic: true errors lie within the bounds that the steps return."""

import numpy as np
import pytest
from flint import arb
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from holdfast.noise.precision import working_precision
from holdfast.trees.messages.choices import UNDECIDED, choose_leaf, choose_part
from holdfast.trees.messages.passes import retilted
from holdfast.trees.steps.ends import HIGH, LOW, finish, tail_ratio, weigh
from holdfast.trees.steps.joining import BESIDE, add_piece, extended
from holdfast.trees.steps.laplace_leaf import ENDLESS, add_leaf
from holdfast.trees.steps.leaf import leaf_leans

BITS = 200
FEW = settings(max_examples=40, deadline=None)


def unset(size):
    """Room that a step works in, or writes its result to: what was left there is not read, and so may be no number."""
    return np.full(size, np.nan)


def among_others(values):
    """The same values between places that are not theirs."""
    room = unset(values.size + 400)
    room[200 : 200 + values.size] = values
    return room[200 : 200 + values.size]


def powers_of(scale, longest):
    with working_precision(BITS):
        return np.array([float((-arb(b) / scale).exp()) for b in range(longest + 1)])


@st.composite
def messages(draw, longest=30):
    """A log-concave message: values on a window, and tail ratios at most the last ones; 0: a hard end."""
    size = draw(st.integers(3, longest))
    steps = np.array(draw(st.lists(st.floats(0, 0.8), min_size=size - 1, max_size=size - 1)))
    slopes = draw(st.floats(-0.3, 3.0)) - np.cumsum(steps)
    logs = np.concatenate([[0.0], np.cumsum(slopes)])
    values = np.exp(logs - logs.max())
    assume(values.min() > 1e-100)
    r_lo = 0.0 if draw(st.booleans()) else values[0] / values[1] * draw(st.floats(0.3, 1.0))
    r_hi = 0.0 if draw(st.booleans()) else values[-1] / values[-2] * draw(st.floats(0.3, 1.0))
    return values, draw(st.integers(-20, 20)), float(r_lo), float(r_hi)


def at(message, s):
    """The exact value of a message at a place."""
    values, lo, r_lo, r_hi = message
    hi = lo + values.size - 1
    if s < lo:
        return arb(float(values[0])) * arb(r_lo) ** (lo - s)
    if s > hi:
        return arb(float(values[-1])) * arb(r_hi) ** (s - hi)
    return arb(float(values[s - lo]))


def apart(computed, true):
    """The relative error of a double."""
    return float(abs(arb(float(computed)) / true - 1))


@FEW
@given(messages(), st.sampled_from([0.4, 1.0, 3.0, 9.5]), st.data())
def test_adding_a_leaf_errs_within_its_bound(message, scale, data):
    values, lo, r_lo, r_hi = message
    hi = lo + values.size - 1
    powers = powers_of(scale, 450)
    bound = st.sampled_from([0, 1, 2, 5, 17, 40, 400, ENDLESS])
    b_lo, b_hi = -data.draw(bound), data.draw(bound)
    out_lo = lo + data.draw(st.integers(-12, 12))
    out_hi = out_lo + data.draw(st.integers(0, values.size + 12))
    # a sum without end is refused; one that hardly falls is too long to check here
    if (b_hi == ENDLESS and powers[1] * r_lo >= 1) or (b_lo == -ENDLESS and powers[1] * r_hi >= 1):
        assert not add_leaf(
            values, lo, hi, r_lo, r_hi, powers, b_lo, b_hi, unset(out_hi - out_lo + 1), out_lo, out_hi, unset(1 << 14)
        ) < np.inf  # fmt: skip
        return
    assume(powers[1] * max(r_lo, r_hi) < 0.93 or max(-b_lo, b_hi) < ENDLESS)
    out = unset(out_hi - out_lo + 1)
    error = add_leaf(values, lo, hi, r_lo, r_hi, powers, b_lo, b_hi, out, out_lo, out_hi, unset(1 << 14))
    with working_precision(BITS):
        alpha = (-arb(1) / scale).exp()
        first, last = max(b_lo, -1_000), min(b_hi, 1_000)
        weights = [alpha ** abs(b) for b in range(first, last + 1)]
        for s in range(out_lo, out_hi + 1):
            true = arb(0)
            for b, weight in enumerate(weights, first):
                true += weight * at(message, s - b)
            if true > 1e-200:
                assert apart(out[s - out_lo], true) <= error
    assert error < 1e-11


@pytest.mark.parametrize("bound", [5, 12, 17])
def test_what_was_left_in_memory_does_not_reach_a_sum(bound):
    """The result begins inside the window, and the bound leads below it."""
    message = np.exp(-(np.arange(-10, 11) ** 2) / 9.0), -10, 10, 0.1, 0.1
    made = []
    for left in (0.0, np.nan, np.inf):
        out = unset(6)
        error = add_leaf(*message, powers_of(3.0, 450), -2, bound, out, -1, 4, np.full(1 << 14, left))
        made.append((error, *out))
    assert np.isfinite(made).all()
    assert made[0] == made[1] == made[2]


@pytest.mark.parametrize("scale", [150.0, 777.0, 1000.5, 1900.0, 2345.5])
@pytest.mark.parametrize("side", [-1, 1])
def test_long_recursions_err_more_and_say_so(scale, side):
    """Terms far away were multiplied often by a rounded α: the error grows with their mean distance."""
    n = 4_000
    powers = powers_of(scale, 2)
    out = unset(1)
    place = n if side > 0 else 0
    error = add_leaf(
        np.ones(n + 1),
        0,
        n,
        0.0,
        0.0,
        powers,
        *((0, ENDLESS) if side > 0 else (-ENDLESS, 0)),
        out,
        place,
        place,
        unset(1 << 14),
    )
    with working_precision(BITS):
        alpha = (-arb(1) / scale).exp()
        true = (1 - alpha ** (n + 1)) / (1 - alpha)
        assert apart(out[0], true) <= error
        mean = float(alpha / (1 - alpha) - (n + 1) * alpha ** (n + 1) / (1 - alpha ** (n + 1)))
    assert 3e-16 * mean < error < 3e-15 * mean


@pytest.mark.slow
@FEW
@given(messages(), messages(), st.integers(5, 40), st.data())
def test_adding_a_piece_errs_within_its_bound(one, other, extra, data):
    f, f_lo, f_hi = extended(one[0], one[1], one[1] + one[0].size - 1, one[2], one[3], extra)
    g, g_lo, g_hi = extended(other[0], other[1], other[1] + other[0].size - 1, other[2], other[3], extra)
    hards = [(LOW if m[2] == 0 else 0) | (HIGH if m[3] == 0 else 0) for m in (one, other)]
    low = one[1] + other[1] + data.draw(st.integers(-6, 6) | st.integers(-120, -60))  # also before all that is there
    high = low + data.draw(st.integers(0, one[0].size + other[0].size))
    out, f, g = unset(high - low + 1), among_others(f), among_others(g)
    good_lo, good_hi, error = add_piece((f, f_lo, f_hi, hards[0]), (g, g_lo, g_hi, hards[1]), out, low, high)
    with working_precision(BITS):
        far = 700
        for s in range(good_lo, good_hi + 1):
            true = arb(0)
            for a in range(max(f_lo - far, s - g_hi - far), min(f_hi + far, s - g_lo + far) + 1):
                true += at(one, a) * at(other, s - a)
            assert apart(out[s - low], true) <= error
    assert error < 2e-11


@pytest.mark.parametrize("extra", range(1, 12))
def test_what_is_left_out_at_the_last_place_spoils_no_other(extra):
    """Places go in groups; a last group of one place may miss what all others hold."""
    f, f_lo, f_hi = extended(np.exp(-0.4 * np.abs(np.arange(-40.0, 41.0))), -40, 40, 0.6, 0.6, extra)
    g, g_lo, g_hi = extended(np.exp(-0.7 * np.arange(60.0)), 0, 59, 0.0, 0.4, 2)
    for high in range(8, 160, 4):
        good_lo, good_hi, _ = add_piece((f, f_lo, f_hi, 0), (g, g_lo, g_hi, LOW), np.zeros(high + 1), 0, high)
        assert good_lo == 0
        assert good_hi >= 8


@pytest.mark.parametrize("before", [0, 7, 31, 32, 33, 70])
def test_places_that_no_sum_reaches_take_nothing_from_the_others(before):
    f, f_lo, f_hi = extended(np.exp(-2.0 * np.abs(np.arange(-20.0, 21.0))), -20, 20, 0.13, 0.13, 30)
    g, g_lo, g_hi = extended(np.exp(-1.9 * np.abs(np.arange(-18.0, 19.0))), -18, 18, 0.14, 0.14, 30)
    low, high = f_lo + g_lo - before, f_hi + g_hi + before
    out = unset(high - low + 1)
    good_lo, good_hi, error = add_piece((f, f_lo, f_hi, 0), (g, g_lo, g_hi, 0), out, low, high)
    assert good_lo < -20
    assert good_hi > 20
    wanted = np.convolve(f[BESIDE:-BESIDE], g[BESIDE:-BESIDE])[good_lo - f_lo - g_lo : good_hi - f_lo - g_lo + 1]
    np.testing.assert_allclose(out[good_lo - low : good_hi - low + 1], wanted, rtol=max(error, 1e-13))


@FEW
@given(messages(), st.booleans(), st.floats(0.01, 1.5), st.floats(-1, 1), st.booleans())
def test_weights_and_tilts_err_within_their_bounds(message, laplace, rate, tilt, measured):
    values, lo, _, _ = message
    hi = lo + values.size - 1
    middle = (lo + hi) // 2
    weighed, tilted = values.copy(), values.copy()
    error = weigh(weighed, lo, hi, 0 if measured else -1, laplace, rate, tilt)
    tilted_error = retilted(tilted, lo, hi, tilt)
    if not error < np.inf:  # only where doubles do not hold the weights
        places = np.arange(lo, hi + 1)
        logs = tilt * (places - middle) - rate * ((abs(places) - abs(middle)) if laplace else places**2 - middle**2)
        assert logs.max() > 600
        return
    with working_precision(BITS):
        for s in range(lo, hi + 1):
            own = arb(abs(s) - abs(middle)) if laplace else arb(s * s - middle * middle)
            shift = (arb(tilt) * (s - middle)).exp()
            true = arb(float(values[s - lo])) * shift * (-arb(rate) * own if measured else arb(0)).exp()
            assert apart(weighed[s - lo], true) <= error or true < 1e-250
            assert apart(tilted[s - lo], arb(float(values[s - lo])) * shift) <= tilted_error
    assert max(error, tilted_error) < 1e-12


@FEW
@given(messages(), st.floats(1e-15, 1e-5), st.integers(0, 2**32 - 1), st.booleans(), st.booleans())
def test_tail_ratios_lie_between_the_true_ratios(message, error, seed, hard_lo, hard_hi):
    """So a message bounds the function beyond its window and stays log-concave, whatever the errors of its values."""
    values, lo, _, _ = message
    hi = lo + values.size - 1
    stirred = values * np.exp(np.random.default_rng(seed).choice([-0.999, 0.999], values.size) * error)
    found = finish(stirred, lo, hi, lo if hard_lo else -ENDLESS, hi if hard_hi else ENDLESS, error, 0.0)
    s_lo, s_hi, r_lo, r_hi, hard, leaning, _, scale = found
    if scale == 0.0:
        assert values.size < 5
        return
    assert np.log2(scale) == np.round(np.log2(scale))
    assert lo <= s_lo <= s_hi <= hi
    assert bool(hard & LOW) == hard_lo
    assert bool(hard & HIGH) == hard_hi
    with working_precision(BITS):
        true = [arb(float(v)) for v in values]
        if not hard & LOW:
            assert s_lo > lo
            if not leaning & LOW:
                i = s_lo - lo
                assert true[i - 1] / true[i] <= arb(r_lo) <= true[i] / true[i + 1]
        if not hard & HIGH:
            assert s_hi < hi
            if not leaning & HIGH:
                i = s_hi - lo
                assert true[i + 1] / true[i] <= arb(r_hi) <= true[i] / true[i - 1]


def test_a_ratio_is_chosen_only_where_there_is_room():
    assert not tail_ratio(0.2, 0.5, 1.0, 1e-10, 0.0)[1]
    assert tail_ratio(0.25, 0.5, 1.0, 1e-10, 0.0)[1]
    assert tail_ratio(0.2499, 0.5, 1.0, 1e-2, 0.0)[1]
    assert tail_ratio(0.2, 0.5, 1.0, np.inf, 0.0)[1]


@FEW
@given(messages(), st.sampled_from([0.7, 4.0]), st.booleans(), st.integers(-15, 15), st.data())
def test_the_distance_in_a_tail_is_not_understated(message, scale, up, shift, data):
    values, lo, r_lo, r_hi = message
    hi = lo + values.size - 1
    r = r_hi if up else r_lo
    powers = powers_of(scale, 200)
    assume(0 < powers[1] * r < 0.95)
    bound = st.sampled_from([0, 3, 30, ENDLESS])
    b_lo, b_hi = -data.draw(bound), data.draw(bound)
    s = (hi if up else lo) + shift
    found = leaf_leans(values, lo, hi, r, up, powers, True, b_lo, b_hi, s)
    d = np.arange(1, 2_000)
    b = s - (hi + d) if up else s - (lo - d)
    inside = (b >= b_lo) & (b <= b_hi)
    logs = np.log(values[-1] if up else values[0]) + d * np.log(r) - np.abs(b) / scale
    true = (d * np.exp(logs))[inside].sum()
    assert found >= true * (1 - 1e-9)
    assert found <= 1.06 * true + 1e-300


def place_of(order, terms, total, word):
    """The place that a word chooses, exactly; None if it lies beyond these terms or too close to a sum to tell."""
    goal, running = arb(word) / arb(2) ** 64 * total, arb(0)
    for place in order:
        running += terms[place]
        if running > goal:
            return place
    return None


def zigzag(start, low, high):
    """start, start+1, start−1, … within low … high."""
    return sorted(range(low, high + 1), key=lambda s: (abs(s - start), s < start))


@FEW
@given(messages(), st.sampled_from([0.7, 3.0]), st.lists(st.integers(0, 2**64 - 1), min_size=5, max_size=5), st.data())
def test_choices_that_are_made_are_right(message, scale, words, data):
    values, lo, _, _ = message
    hi = lo + values.size - 1
    powers = powers_of(scale, 200)
    s = data.draw(st.integers(lo - 5, hi + 5))
    low, high = s - hi, s - lo
    start = min(max(0, low), high)
    with working_precision(BITS):
        alpha = (-arb(1) / scale).exp()
        terms = {b: alpha ** abs(b) * at(message, s - b) for b in range(low, high + 1)}
        inside = arb(0)
        for term in terms.values():
            inside += term
        total = inside * 1.25  # a quarter more lies beyond the window
        for word in words:
            found = choose_leaf(values, lo, powers, low, high, s, start, float(total), np.uint64(word), 1e-14)
            if found != UNDECIDED:
                assert found == place_of(zigzag(start, low, high), terms, total, word)
            else:  # beyond the window, or within a share of 1e-13 of a sum
                sums = np.cumsum([float(terms[b]) for b in zigzag(start, low, high)])
                goal = word / 2**64 * float(total)
                assert goal > sums[-1] * (1 - 1e-12) or np.abs(sums - goal).min() < 1e-12 * float(total)
        terms = {a: at(message, a) * at((powers[:50], -10, 0.0, 0.0), s - a) for a in range(s - 39, s + 11)}
        low, high = max(lo, s - 39), min(hi, s + 10)
        if low <= high:
            start = data.draw(st.integers(low, high))
            room = unset(high - low + 1)
            whole = arb(0)
            for a in range(s - 39, s + 11):
                whole += terms[a]
            for word in words:
                one, other = (values, lo, hi, 0), (powers[:50], -10, 39, LOW | HIGH)
                found = choose_part(one, other, 0.0, s, start, np.uint64(word), 1e-14, room)
                if found != UNDECIDED:
                    assert found == place_of(zigzag(start, low, high), terms, whole, word)


def check_a_leaf(message, scale, b_lo, b_hi, out_lo, out_hi, step):
    """Compare a sum with balls at every so many places, where it is not too small to be kept; return how many."""
    values, lo, r_lo, r_hi = message
    hi = lo + values.size - 1
    powers = powers_of(scale, 450)
    out = unset(out_hi - out_lo + 1)
    error = add_leaf(values, lo, hi, r_lo, r_hi, powers, b_lo, b_hi, out, out_lo, out_hi, unset(1 << 15))
    checked = 0
    with working_precision(BITS):
        alpha = (-arb(1) / scale).exp()
        for s in range(out_lo, out_hi + 1, step):
            if out[s - out_lo] < 1e-280:
                continue
            true = arb(0)
            for a in range(min(lo, s) - 80, max(hi, s) + 81):
                if b_lo <= s - a <= b_hi:
                    true += alpha ** abs(s - a) * at(message, a)
            assert apart(out[s - out_lo], true) <= error
            checked += 1
    assert error < 1e-10
    return checked


@pytest.mark.parametrize("side", [-1, 1])
def test_a_steep_tail_beyond_a_wide_message_counts_to_its_last_place(side):
    """The power that a bound takes off the tail is below all doubles at one end of the result and not at the other."""
    scale, n = 54.5, 354
    values, steep = np.exp(-3 * np.arange(n) / scale), 0.03
    if side > 0:
        assert check_a_leaf((values, 0, steep, 0.0), scale, 0, 226, -3, n - 6, 1) > 300
    else:
        assert check_a_leaf((values[::-1].copy(), 0, 0.0, steep), scale, -226, 0, 5, n + 2, 1) > 300


@pytest.mark.parametrize("side", [-1, 1])
def test_what_a_bound_cuts_off_is_seen_where_the_first_sums_are_no_doubles(side):
    f = np.ones(30)
    if side < 0:
        assert check_a_leaf((f, 0, 0.6, 0.0), 0.4, -1, ENDLESS, -1500, 29, 31) > 30
    else:
        assert check_a_leaf((f, 0, 0.0, 0.6), 0.4, -ENDLESS, 1, 0, 1529, 31) > 30


def test_sums_that_doubles_do_not_hold_are_refused():
    powers, out = powers_of(2.0, 450), unset(600)
    for b_lo in (0, -3, -400):
        assert (
            not add_leaf(np.array([1.0, 5.0, 25.0]), 0, 2, 0.0, 5.0, powers, b_lo, 3, out, 0, 599, unset(1 << 14))
            < np.inf
        )
