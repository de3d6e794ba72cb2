"""Draws by messages on circles against the list of all tables of small forests (docs/theory/circles.md)."""

from fractions import Fraction

import numpy as np
import pytest
from flint import arb

import holdfast as hf
from holdfast.arguments import LARGEST, Refused
from holdfast.trees.circles import drawing, tables, testing
from holdfast.trees.circles.exact import Joined, Row, joined, sum_at
from holdfast.trees.circles.messages import Messages
from holdfast.trees.circles.outline import outline
from holdfast.trees.circles.sampler import Sampler
from holdfast.trees.circles.weights import GaussianWeight, LaplaceWeight
from holdfast.trees.shape.forest import Forest
from small_forests import ANY, CASES, NONE, distance, listed, sampler
from table_weight import TableWeight


@pytest.mark.parametrize("name", CASES)
def test_draws_have_the_law_of_the_list(name):
    z, beyond = distance(sampler(name).draw(6_000, hf.seeded(1)), listed(name))
    assert z < 5.5
    assert beyond < 5e-3  # leaves beyond the span of the list


@pytest.mark.parametrize("name", ["not negative", "two scales", "a block"])
def test_a_scale_that_is_wrong_is_rejected(name):
    wrong = {**CASES, name: (*CASES[name][:2], [LaplaceWeight(Fraction(13, 10))] * 2, *CASES[name][3:])}
    parents, _, weights, which, low, high = wrong[name]
    forest = Forest(np.array(parents), np.zeros(len(parents), dtype=bool))
    draws = Sampler(forest, weights, np.array(which), np.array(low), np.array(high)).draw(6_000, hf.seeded(1))
    assert distance(draws, listed(name))[0] > 8


@pytest.mark.parametrize("name", ["not negative", "gaussian", "exact", "a block", "any law"])
def test_short_circles_give_the_same_law(name):
    """So much wraps round that tables are rejected, and many tests are decided by balls."""
    short = sampler(name, aliases=0.5)
    z, _ = distance(short.draw(1_500, hf.seeded(2)), listed(name))
    assert z < 5.5


@pytest.mark.parametrize("name", CASES)
def test_divisions_without_proposals_have_the_law_of_the_list(name, monkeypatch):
    monkeypatch.setattr(tables, "ROUNDS", 0)
    z, beyond = distance(sampler(name).draw(500, hf.seeded(5)), listed(name))
    assert z < 5.5
    assert beyond < 5e-3


@pytest.mark.parametrize("name", ["not negative", "a block"])
def test_divisions_that_are_weighed_wrongly_are_rejected(name, monkeypatch):
    """Some ways to make a total twice as heavy: the comparison above sees it."""
    ways = Joined.ways

    def wrong(self, t, more):
        found, _ = ways(self, t, more)
        found = {place: each * (2 if place % 2 else 1) for place, each in found.items()}
        return found, sum(found.values(), arb(0))

    monkeypatch.setattr(tables, "ROUNDS", 0)
    monkeypatch.setattr(Joined, "ways", wrong)
    assert distance(sampler(name).draw(1_000, hf.seeded(5)), listed(name))[0] > 8


def test_what_sums_leave_out_is_enclosed():
    """Windows that end early widen balls, and less so the further they reach."""
    rows = [Row(-1, np.array([0.5, 1.0, 0.25]), (0.5, 0.25), (0.5, 0.25)) for _ in range(4)]
    law = [float(rows[0].at(t)) for t in range(-80, 60)]
    for t in (-3, 0, 20):
        wanted = law
        for _ in range(3):
            wanted = np.convolve(wanted, law)
        balls = [sum_at(joined(rows), t, more) for more in (0, 16, 64)]
        assert all(abs(float(each.mid()) - wanted[t + 320]) <= float(each.rad()) + 1e-14 for each in balls)
        assert balls[0].rad() > 1e3 * balls[1].rad() > 1e3 * balls[2].rad()


def test_messages_that_are_worsened_need_the_test(monkeypatch):
    """With messages three tenths too large in places, draws have the law; without the test they have not."""
    rows = Messages.rows

    def worse(self, some, fresh=False):
        values = rows(self, some, fresh)
        at = self.start[some][:, None] + np.arange(values.shape[1])
        return values * np.where(at % 2 == 0, 1.3, 1.0)

    monkeypatch.setattr(Messages, "rows", worse)
    monkeypatch.setattr(
        Messages, "alias", lambda self, some, totals: np.full(some.size, 10.0)
    )  # the slack is not small
    law = listed("not negative")
    z, _ = distance(sampler("not negative").draw(1_500, hf.seeded(3)), law)
    assert z < 5.5
    monkeypatch.setattr(testing.Tested, "_test", lambda *given: None)
    z, _ = distance(sampler("not negative").draw(20_000, hf.seeded(3)), law)
    assert z > 12


@pytest.mark.parametrize("seed", range(6))
def test_no_message_is_below_what_it_stands_for(seed, monkeypatch):
    """Balls at every node of drawn tables on random forests: 1 − slack ≤ c ≤ 1."""
    generator = np.random.default_rng(seed)
    n = int(generator.integers(20, 60))
    parents = np.array([-1] + [int(generator.integers(0, min(v, 8))) for v in range(1, n)])
    forest = Forest(parents, generator.random(n) < 0.1)
    scales = [Fraction(int(generator.integers(3, 60)), 10) for _ in range(2)]
    weights = [LaplaceWeight(1 / s) if seed % 2 else GaussianWeight(s * s) for s in scales]
    low = np.where(forest.is_leaf & (generator.random(n) < 0.6), -generator.integers(0, 6, n), -LARGEST)
    made = Sampler(forest, weights, generator.integers(0, 2, n), low, np.full(n, LARGEST))
    shares = []

    def test(self, nodes, rows, totals, values, at):
        m = self.m
        message = values[at, totals - m.start[nodes]]
        logs = m.exponents(nodes, totals[:, None])[:, 0] - m.norm[nodes]
        slack = (m.alias(nodes, totals) + 2.2 * m.lift[nodes]) / (message / np.exp(logs)) + 8 * m.pad[nodes]
        for k in range(nodes.size):
            node = int(nodes[k])
            above = float(m.above(nodes[k : k + 1])[0])
            value = self._row(node, values[at[k]]).at(int(totals[k]))
            self.pending[node, int(rows[k])] = testing.Doubt(0, value, above, float(m.norm[node]))
            self.slacks[int(nodes[k]), int(rows[k])] = float(slack[k])

    def kept(self, node, t, doubt, whole):
        m, shape = self.m, self.shape
        weight = arb(1) if shape.law[node] < 0 else self.sampler.weights[int(shape.law[node])].ball(t)
        middle = int(m.start[node] + m.length[node] // 2)
        tilt = arb(doubt.above) - arb(float(m.tilt[node]))
        share = weight * (tilt * (t - middle) - arb(doubt.norm)).exp() * sum_at(whole, t, 64) / doubt.message
        shares.append((float(share.mid()), self.slacks[node, 0]))
        assert not share > 1
        return True

    monkeypatch.setattr(drawing.Drawing, "_test", test)
    monkeypatch.setattr(drawing.Drawing, "_kept", kept)
    monkeypatch.setattr(drawing.Drawing, "slacks", {}, raising=False)
    made.draw(1, hf.seeded(seed))
    assert len(shares) > 3
    assert all(1 - slack <= share <= 1 + 1e-12 for share, slack in shares)


def test_narrow_messages_on_wide_windows_keep_their_middle():
    """Sums of weights that are no doubles once bounded a message by less than it stands for."""
    parents = np.array([-1, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 4])
    n = parents.size
    low, high = np.full(n, NONE), np.full(n, ANY)
    low[[8, 10]], high[[8, 5]] = -1, [1, 0]
    forest, none = Forest(parents, np.zeros(n, dtype=bool)), np.zeros(n, dtype=np.int64)
    made = Sampler(forest, [LaplaceWeight(Fraction(1, 10))], none, low, high)
    m = made.messages
    for node in range(made.shape.size):
        row = m.sums(np.array([node]))[0]
        children = made.shape.inner_start[node], made.shape.inner_start[node + 1]
        if children[1] > children[0]:
            start, sums = 0, np.ones(1)
            for child in range(*children):
                sums = np.convolve(sums, m.rows(np.array([child]))[0])
                start += int(m.start[child])
            inside = sums[max(0, m.start[node] - start) : m.start[node] - start + row.size]
            assert (row[: inside.size] >= inside * (1 - 1e-12)).all()
    assert set(np.unique(made.draw(200, hf.seeded(1))[:, 8])) == {-1, 0, 1}


def test_rows_are_drawn_apart_and_again_from_the_same_key():
    one, other = (sampler("not negative").draw(50, hf.seeded(4)) for _ in range(2))
    assert np.array_equal(one, other)
    assert len(np.unique(one, axis=0)) > 2


def test_nodes_have_few_children_and_nothing_is_lost():
    parents = np.concatenate([[-1], np.zeros(1000, dtype=np.int64), [0], np.full(5, 1001)])
    n = parents.size
    shape = outline(
        Forest(parents, np.zeros(n, dtype=bool)), np.zeros(n, dtype=np.int64), np.full(n, NONE), np.full(n, ANY)
    )
    assert np.array_equal(np.sort(shape.leaf_output), np.concatenate([np.arange(1, 1001), np.arange(1002, n)]))
    assert np.diff(shape.leaf_start).max() <= 64
    assert np.diff(shape.inner_start).max() <= 24
    both = (np.diff(shape.leaf_start) > 0) & (np.diff(shape.inner_start) > 0)
    assert not both.any()


@pytest.mark.parametrize(
    ("values", "below"), [((), 0), ((0, 1), 0), ((1, 0), 0), ((1, -1, 1), 0), ((1,), 1), ((1,), -1)]
)
def test_a_table_of_probabilities_has_weights_at_its_ends_and_a_tail(values, below):
    with pytest.raises(Refused, match="must"):
        TableWeight(0, tuple(map(Fraction, values)), below=Fraction(below))


#: Hard tables: parents of n leaves, their counts, weights; each is drawn in seconds.
LEAVES = 1_500


def hard():
    generator = np.random.default_rng(0)
    star = np.concatenate([[-1], np.zeros(LEAVES, dtype=np.int64)])
    groups = np.concatenate([[-1], np.zeros(50, dtype=np.int64), np.sort(1 + np.arange(LEAVES) % 50)])
    binary = np.concatenate([[-1], (np.arange(1, 2**9 - 1) - 1) // 2])
    empty, huge = np.zeros(LEAVES, dtype=np.int64), np.zeros(LEAVES, dtype=np.int64)
    huge[17] = 10**6
    nearly = np.where(generator.random(LEAVES) < 0.999, 0, 50)
    some, few = generator.integers(0, 50, LEAVES), generator.integers(0, 20, 2**8)
    return {
        "a star": (star, some, [LaplaceWeight(Fraction(1, 6))]),
        "an empty star": (star, empty, [LaplaceWeight(Fraction(1, 6))]),
        "nearly empty, wide": (star, nearly, [LaplaceWeight(Fraction(1, 60))]),
        "one huge leaf": (groups, huge, [LaplaceWeight(Fraction(1, 6))]),
        "eight binary levels": (binary, few, [LaplaceWeight(Fraction(1, 6))]),
        "scales 0.3 and 60": (groups, some, [LaplaceWeight(Fraction(10, 3)), LaplaceWeight(Fraction(1, 60))]),
        "empty, narrow": (groups, empty, [GaussianWeight(Fraction(1, 400))]),
        "empty, gaussian": (groups, empty, [GaussianWeight(Fraction(36))]),
    }


@pytest.mark.parametrize("name", list(hard()))
def test_hard_tables_are_drawn(name):
    parents, counts, weights = hard()[name]
    n = parents.size
    forest = Forest(parents, np.zeros(n, dtype=bool))
    low = np.full(n, NONE)
    low[forest.is_leaf] = -counts
    made = Sampler(forest, weights, np.arange(n) % len(weights), low, np.full(n, ANY))
    noise = made.draw(1, hf.seeded(1))[0]
    assert (noise >= low).all()
    sums = np.bincount(parents[1:], weights=noise[1:], minlength=n)[~forest.is_leaf]
    assert np.array_equal(sums, noise[~forest.is_leaf])
    assert made.messages.slack.sum() < 0.05
