"""The exact draw in plain numpy against every table of small hierarchies."""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb
from scipy import stats

import holdfast as hf
from holdfast.noise import Independent, IntegerGaussian, IntegerLaplace
from holdfast.noise.precision import working_precision
from holdfast.trees import Forest
from holdfast.trees.plain import outlook
from holdfast.trees.plain.marginals import PlainMarginals
from holdfast.trees.plain.message import (
    NOTHING,
    Alone,
    Division,
    End,
    Message,
    TooNarrow,
    Weight,
    _transformed,
    leaf,
    merged,
)
from holdfast.trees.plain.sampler import PlainSampler

F = Fraction
FAR = 1 << 62
LAPLACE = (IntegerLaplace(F(1)), IntegerLaplace(F(3, 2)), None)
GAUSSIAN = (IntegerGaussian(F(2)), IntegerGaussian(F(1)), None)

#: parents, laws of the outputs, lower and upper bounds on their noise, exact outputs.
CASES = {
    "free": ([-1, 0, 0], [0, 1, 1], [-FAR] * 3, [FAR] * 3, []),
    "not negative": ([-1, 0, 0], [0, 1, 1], [-5, -2, -3], [FAR] * 3, []),
    "unmeasured root, bounds on all": ([-1, 0, 0, 0], [2, 1, 1, 0], [-FAR, 0, -3, -1], [3, FAR, FAR, 2], []),
    "three levels": ([-1, 0, 0, 1, 1], [0, 1, 1, 0, 1], [-FAR, -1, -2, 0, -1], [FAR] * 5, []),
    "exact root": ([-1, 0, 0, 0], [2, 1, 1, 0], [-FAR, 0, -3, -1], [FAR, FAR, FAR, 2], [0]),
    "an exact inner output, an only child": ([-1, 0, 0, 1, 1, 2], [0, 2, 1, 0, 1, 1], [-4] * 6, [FAR] * 6, [1]),
}  # fmt: skip


def sampler(name: str, words: dict[str, Any] | None = None, laws: tuple[Any, ...] = LAPLACE) -> PlainSampler:
    """The law of a case."""
    parents, which, low, high, exact = CASES[name]
    n = len(parents)
    forest = Forest(np.array(parents), np.isin(np.arange(n), exact))
    return PlainSampler(forest, Independent(laws, np.array(which), n), np.array(low), np.array(high), **(words or {}))


def tables(law: PlainSampler, span: int) -> dict[tuple[int, ...], float]:
    """The probability of every table whose leaves lie within a span."""
    parents = law.forest.parents.tolist()
    leaves = [v for v in range(len(parents)) if v not in parents]
    found = {}
    for chosen in itertools.product(range(-span, span + 1), repeat=len(leaves)):
        u = [0] * len(parents)
        for v, value in zip(leaves, chosen, strict=True):
            u[v] = value
        for v in reversed(range(1, len(parents))):
            u[parents[v]] += u[v]
        if all(law.low[v] <= u[v] <= law.high[v] and not (law.forest.exact[v] and u[v]) for v in range(len(parents))):
            logs = [float(rate) * (x * x if law.square else abs(x)) for rate, x in zip(law.rates, u, strict=True)]
            found[tuple(u)] = math.exp(-sum(logs))
    whole = sum(found.values())
    return {u: weight / whole for u, weight in found.items()}


@functools.cache
def listed(name: str, laws: tuple[Any, ...]) -> dict[tuple[int, ...], float]:
    """The tables of a case, as they are needed to count draws: listed once for all variants."""
    return tables(sampler(name, None, laws), 7 if len(CASES[name][0]) > 3 else 14)


def rough(message: Message) -> Message:
    """A message that is up to a tenth above itself, differently at every place, with ends three times as high."""
    if message is NOTHING:
        return message
    lifts = 1 + 0.1 * np.random.default_rng(message.values.size + abs(message.lo)).random(message.values.size)
    ends = [End(3 * end.height, end.ratio) for end in (message.below, message.above)]
    return replace(message, values=message.values * lifts, below=ends[0], above=ends[1], excess=message.excess + 0.1)


VARIANTS: dict[str, dict[str, Any]] = {"as it is": {}, "rough": {"worsened": rough}, "narrow": {"need": 0.4}}
LARGE: dict[str, dict[str, Any]] = {"large": {"most_kept": 0}, "large and narrow": {"most_kept": 0, "need": 0.4}}


@pytest.mark.parametrize("variant", VARIANTS | LARGE)
@pytest.mark.parametrize("laws", [LAPLACE, GAUSSIAN], ids=["Laplace", "Gaussian"])
@pytest.mark.parametrize("name", CASES)
def test_draws_have_the_law(name: str, laws: tuple[Any, ...], variant: str) -> None:
    law = sampler(name, (VARIANTS | LARGE)[variant], laws)
    size = 100 if variant in LARGE and len(CASES[name][0]) > 4 else 300
    drawn = Counter(map(tuple, law.draw(size, hf.seeded(11)).tolist()))
    expected = listed(name, laws)
    assert all(u in expected or max(map(abs, u)) > 7 for u in drawn)
    cells = [(drawn[u], size * p) for u, p in expected.items() if size * p >= 4]
    cells.append((size - sum(count for count, _ in cells), size - sum(mean for _, mean in cells)))
    chi = sum((count - mean) ** 2 / max(mean, 1.0) for count, mean in cells)
    assert stats.chi2.sf(chi, len(cells) - 1) > 1e-5


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", CASES)
def test_messages_are_nowhere_below_what_they_stand_for(name: str, variant: str) -> None:
    trees = sampler(name, VARIANTS[variant])._trees(0)
    with working_precision(192):
        for piece in trees.pieces:
            message = piece.message
            for t in range(message.lo - 12, message.hi + 13, 1 if message.values.size < 40 else 7):
                if message.ball(t) > 0:
                    share = message.share(t)
                    assert share <= 1
                    if message.lo <= t <= message.hi:
                        assert 1 - share <= message.excess


@pytest.mark.parametrize("laws", [LAPLACE, GAUSSIAN], ids=["Laplace", "Gaussian"])
@pytest.mark.parametrize("name", ["not negative", "three levels", "exact root"])
def test_sums_by_a_transform_are_from_above_and_as_near_as_they_say(
    name: str, laws: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.trees.plain.message.WIDE", 1)
    monkeypatch.setattr("holdfast.trees.plain.message.TRANSFORM", 1e6)  # so that the blur is seen
    law = sampler(name, None, laws)
    trees = law._trees(0)
    blurred = [piece.message for piece in trees.pieces if piece.message.blur is not None]
    assert blurred
    with working_precision(192):
        for message in blurred:
            for t in range(message.lo - 12, message.hi + 13):
                if message.ball(t) > 0:
                    share = message.share(t)
                    assert share <= 1
                    if message.lo <= t <= message.hi:
                        assert 1 - share <= message.excess + float(message.blurred(np.array([t]))[0])
    size, expected = 300, tables(law, 14 if law.forest.n == 3 else 7)
    drawn = Counter(map(tuple, law.draw(size, hf.seeded(12)).tolist()))
    cells = [(drawn[u], size * p) for u, p in expected.items() if size * p >= 4]
    cells.append((size - sum(count for count, _ in cells), size - sum(mean for _, mean in cells)))
    assert stats.chi2.sf(sum((k - m) ** 2 / max(m, 1.0) for k, m in cells), len(cells) - 1) > 1e-5


@pytest.mark.parametrize("wanted", [(0, 6000), (0, 2000), (4500, 6000)])
def test_the_error_of_transforms_is_within_its_bound(wanted: tuple[int, int]) -> None:
    """Against sums in doubles whose relative error is small, for messages that fall by many powers."""
    messages = [
        leaf(Weight(F(1, 60), False, tilt, low, FAR), low, low + 3000) for tilt, low in ((0.004, -50), (-0.01, -700))
    ]
    lifted, blur, rounding = _transformed(messages[0], messages[1], *wanted)
    exact = np.convolve(messages[0].values, messages[1].values)
    shown = slice(wanted[0], wanted[1] + 1)
    assert exact.min() < 1e-20 * exact.max()  # far beyond what one transform knows
    assert (lifted >= exact * (1 - 1e-13)).all()
    assert (lifted[shown] <= exact[shown] * (1 + 1e-11 + blur[shown])).all()
    assert blur[shown].max() < 2e-6
    assert rounding < 1e-10


def ratios(law: PlainSampler, tested: Callable[[Message, int], bool]) -> list[float]:
    """The probability that a table is proposed and accepted over its weight, for some tables."""
    trees, found = law._trees(0), []
    with working_precision(192):
        for u, weight in list(tables(law, 6).items())[::97]:
            totals: dict[int, int] = {}
            for i, piece in enumerate(trees.pieces):  # parts stand before what they are parts of
                totals[i] = u[piece.output] if piece.output >= 0 else sum(totals[part] for part in piece.parts or ())
            made = arb(1)
            for i in trees.roots:
                root = Alone(trees.pieces[i].message)
                made = made * root.term(totals[i]) / root.total()
            for i, piece in enumerate(trees.pieces):
                if tested(piece.message, totals[i]):
                    made = made * piece.message.share(totals[i])
                if piece.parts is not None and piece.message.parts is not None:
                    ways = Division(*piece.message.parts, totals[i])
                    made = made * ways.term(totals[piece.parts[0]]) / ways.total()
            found.append(float(made) / weight)
    return found


@pytest.mark.parametrize("variant", VARIANTS)
def test_proposals_times_the_test_are_the_law(variant: str) -> None:
    """Whatever the messages are."""
    found = ratios(sampler("three levels", VARIANTS[variant]), lambda message, t: True)
    assert np.ptp(found) < 1e-12 * max(found)


def test_the_test_needs_leaves_and_totals_beyond_their_windows() -> None:
    law = sampler("three levels", VARIANTS["narrow"] | VARIANTS["rough"])
    leaves = ratios(law, lambda message, t: message.parts is not None)
    inside = ratios(law, lambda message, t: message.lo <= t <= message.hi)
    assert np.ptp(leaves) > 0.1 * max(leaves)
    assert np.ptp(inside) > 0.1 * max(inside)


def test_a_message_that_is_too_low_is_caught() -> None:
    def lowered(message: Message) -> Message:
        return replace(message, values=message.values * 0.9, excess=0.5)

    law = sampler("not negative", {"worsened": lowered})
    with pytest.raises(ArithmeticError, match="below what it stands for"):
        law.draw(200, hf.seeded(1))


@pytest.mark.parametrize("laws", [LAPLACE, GAUSSIAN], ids=["Laplace", "Gaussian"])
@pytest.mark.parametrize("name", CASES)
def test_errors_are_those_of_enumeration(name: str, laws: tuple[Any, ...]) -> None:
    law = sampler(name, None, laws)
    found, expected = PlainMarginals(law), tables(law, 60 if len(CASES[name][0]) == 3 else 16)
    values, weights = np.array(list(expected)), np.array(list(expected.values()))
    means = weights @ values
    assert found.variances == pytest.approx(weights @ (values - means) ** 2, rel=1e-5, abs=1e-12)
    for v, (lo, own) in enumerate(found.laws):
        for place in range(-3, 4):
            mine = own[place - lo] if 0 <= place - lo < own.size else 0.0
            assert mine == pytest.approx(weights[values[:, v] == place].sum(), rel=1e-5, abs=1e-9)
        cumulative = own.cumsum()
        at = int(found.quantiles(0.3)[v]) - lo
        assert cumulative[at] >= 0.3 - 1e-12
        assert at == 0 or cumulative[at - 1] < 0.3


@pytest.mark.slow
def test_children_in_groups_have_the_same_law(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.trees.plain.sampler._together", lambda law: 2)
    law = sampler("unmeasured root, bounds on all", {"most_kept": 0})
    grouped = law._in_groups
    assert grouped.forest.parents.tolist() == [-1, 5, 4, 4, 0, 0]
    assert [float(rate) for rate in grouped.rates] == [*map(float, law.rates), 0.0, 0.0]
    size, expected = 300, tables(law, 7)
    drawn = Counter(map(tuple, law.draw(size, hf.seeded(4)).tolist()))
    cells = [(drawn[u], size * p) for u, p in expected.items() if size * p >= 4]
    cells.append((size - sum(count for count, _ in cells), size - sum(mean for _, mean in cells)))
    assert stats.chi2.sf(sum((k - m) ** 2 / max(m, 1.0) for k, m in cells), len(cells) - 1) > 1e-5


def test_windows_are_made_wider_until_there_are_tails() -> None:
    """However often it takes, with less and less pull."""
    seen: list[Any] = []

    def make(windows: Any) -> str:
        seen.append(windows)
        if len(seen) < 60:
            raise TooNarrow
        return "made"

    assert sampler("not negative")._first_of(make, 0) == "made"
    assert all(one.need < other.need for one, other in itertools.pairwise(seen))
    assert seen[0].pull == 1
    assert seen[-1].pull < 1e-15


def test_an_end_is_near_where_sums_rise_beyond_it() -> None:
    """A narrow weight cuts a small window out of wide sums, which are larger beyond it."""
    wide = leaf(Weight(F(1, 2 * 300**2), True, -0.02, -FAR, FAR), -6000, 3000)
    message = merged(wide, wide, Weight(F(1, 72), True, 0.02, -FAR, FAR), -45, 46)
    assert (message.lo, message.hi) == (-45, 46)
    assert message.below.height < 3 * message.values[0]
    assert message.above.height < 3 * message.values[-1]
    with working_precision(192):
        for t in (-300, -60, -46, 47, 60, 300):
            assert message.share(t) <= 1


def test_rows_follow_from_the_key_alone() -> None:
    law = sampler("three levels")
    three, five = law.draw(3, hf.seeded(5)), sampler("three levels").draw(5, hf.seeded(5))
    assert np.array_equal(three, five[:3])


def weighings(n: int) -> list[Any]:
    """Weights that are equal, that differ, that nearly cancel, and large ones that nearly agree."""
    rng = np.random.default_rng(n)
    alone = np.eye(n)
    return [np.ones(n), rng.normal(size=n), alone[n - 1] - alone[n - 2], 1e6 + rng.integers(-2, 3, n)]


@pytest.mark.parametrize("laws", [LAPLACE, GAUSSIAN], ids=["Laplace", "Gaussian"])
@pytest.mark.parametrize("name", CASES)
def test_weighted_sums_have_the_variance_of_the_listed_tables(name: str, laws: tuple[Any, ...]) -> None:
    law = sampler(name, {}, laws)
    listed = tables(law, 10 if law.forest.n > 3 else 40)
    noise, chances = np.array(list(listed)), np.array(list(listed.values()))
    found = PlainMarginals(law)
    for weights in weighings(law.forest.n):
        sums = noise @ weights
        expected = float(chances @ (sums - chances @ sums) ** 2)
        assert found.variance_of_sum(weights) == pytest.approx(expected, rel=1e-5, abs=1e-12)
        frequencies = np.append(np.array([0.1, 0.5, 1, 2, 3]) / np.sqrt(expected + 1e-9), -0.3j / np.sqrt(expected + 1))
        phases = np.exp(1j * np.outer(frequencies, sums)) @ chances
        assert found.characteristic(weights, frequencies) == pytest.approx(phases.real, rel=1e-5, abs=1e-7)


def test_one_output_and_all_leaves_of_a_deep_tree_have_the_variance_of_their_law() -> None:
    """Where one output says it all, weights on the leaves give what its own law gives."""
    parents = np.array([-1, 0, 0, *[1] * 5, *[2] * 6])
    n = parents.size
    which = np.array([0, 1, 0, *[1] * 11])
    law = PlainSampler(
        Forest(parents, np.zeros(n, bool)), Independent(LAPLACE, which, n), np.full(n, -FAR), np.full(n, FAR)
    )
    found = PlainMarginals(law)
    for output, leaves in ((0, parents > 0), (1, parents == 1), (2, parents == 2), (7, np.arange(n) == 7)):
        assert found.variance_of_sum(2.0 * leaves) == pytest.approx(4 * found.variances[output], rel=1e-10)
    split = np.where(parents == 1, 2.0, 0.0) + np.where(parents == 2, -1.0, 0.0)
    same = 2 * np.eye(n)[1] - np.eye(n)[2]
    assert found.variance_of_sum(split) == pytest.approx(found.variance_of_sum(same), rel=1e-10)


def test_no_table_is_drawn_for_the_error_of_a_weighted_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1, 2, 2])
    query = hf.counts(tree)
    made = hf.laplace(query, epsilon=1).given(hf.consistent(tree))
    noise = made.noise(4000, rng=hf.seeded(3))
    release = made.release(query.answer([5, 0, 7, 1]), rng=hf.seeded(1))
    monkeypatch.setattr(PlainSampler, "draw", None)
    monkeypatch.setattr("holdfast.trees.Sampler.draw", None)
    weights = np.array([0, 1, 0, 0, 0, -2, 1.5])
    assert release.estimate(weights).standard_error == pytest.approx((noise @ weights).std(), rel=0.06)


def test_a_draw_does_not_depend_on_where_messages_lie_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 12
    low = np.array([-FAR, *range(-n + 1, 0)])  # every leaf has a message of its own, and all are alike in width

    def draw() -> Any:
        forest = Forest(np.array([-1] + [0] * (n - 1)), np.zeros(n, bool))
        laws = Independent((IntegerLaplace(F(1, 3)),), None, n)
        return PlainSampler(forest, laws, low, np.full(n, FAR)).draw(60, hf.seeded(2))

    first = draw()
    monkeypatch.setattr("holdfast.trees.plain.sampler.id", lambda value: -id(value), raising=False)
    assert np.array_equal(draw(), first)


@pytest.mark.parametrize("count", range(4))
def test_a_bound_that_leaves_few_values_is_drawn(count):
    """The guess closes in on one value here and would pull messages beyond all tails."""
    tree = hf.Hierarchy.from_parents([-1, 0, 1, 2])
    query = hf.counts(tree)
    scales = dict(zip(tree.levels, (0.3, 5, 1, 1), strict=True))
    must = hf.consistent(tree) & hf.nonnegative() & hf.between(0, 3, at=[2])
    drawn = hf.laplace(query, scale=scales).given(must).simulate(query.answer([count]), 2000, rng=hf.seeded(count))
    law = np.exp(-np.abs(np.arange(4) - count) * (1 / 0.3 + 1 / 5 + 2))
    law /= law.sum()
    found = np.bincount(drawn[:, 0], minlength=4) / 2000
    assert np.abs(found - law).max() < 5 * np.sqrt(0.01 / 2000) + 1e-3


def test_a_guess_that_is_too_sure_of_itself_ends():
    tree = hf.Hierarchy.from_parents([-1, 0, 1, 1, 3, 1])
    base = hf.gaussian(hf.counts(tree), scale=[1, 0.5, 1, 1, 0.5, 0.3])
    drawn = base.given(hf.consistent(tree) & hf.nonnegative()).simulate([4, 4, 2, 1, 1, 1], 200, rng=hf.seeded(1))
    assert (drawn >= 0).all()
    assert len({tuple(row) for row in drawn.tolist()}) > 3


@pytest.mark.parametrize("count", [0, 31, 32])
def test_a_guess_that_runs_away_is_no_error(count):
    """Chains of only children between bounds and exact outputs: normal densities would push totals beyond 2**60."""
    parents = [-1, 0, 1, 2, 2, 3, 1, 4, 7, 6, 7, 10, 8, 9, 13, 12, 14, 16, 17, 17]
    tree = hf.Hierarchy.from_parents(parents)
    query = hf.counts(tree)
    must = hf.consistent(tree) & hf.nonnegative() & hf.between(0, [34, 32, 1], at=[1, 4, 19])
    must &= hf.invariant(hf.exact_nodes(tree, [2, 5]))
    scales = np.where(np.isin(np.arange(tree.n), [1, 5, 8, 12, 13, 18]), 1.0, 0.4)
    truth = query.answer([0, count, 0, 0, 0])
    drawn = hf.gaussian(query, scale=scales).given(must).simulate(truth, 20, rng=hf.seeded(1))
    assert (drawn >= 0).all()
    assert (drawn[:, 2] == count).all()


def test_a_guess_that_was_given_up_changes_no_law(monkeypatch):
    tree = hf.Hierarchy.from_parents([-1, 0, 0])
    query = hf.counts(tree)
    law = hf.laplace(query, scale=2).given(hf.consistent(tree) & hf.nonnegative())
    limits = outlook._limits
    monkeypatch.setattr(outlook, "_limits", lambda *given: (-limits(*given)[0], limits(*given)[1]))  # always
    drawn = law.simulate(query.answer([0, 2]), 4000, rng=hf.seeded(3))[:, 1:]
    first, second = np.indices((40, 40))
    weights = np.exp(-(abs(first + second - 2) + first + abs(second - 2)) / 2)
    expected = 4000 * weights[:3, :5] / weights.sum()
    found = np.zeros((99, 99))
    np.add.at(found, tuple(drawn.T), 1)
    found = found[:3, :5]
    assert ((found - expected) ** 2 / expected).sum() < 50  # of 15 cells: beyond 1e-5
