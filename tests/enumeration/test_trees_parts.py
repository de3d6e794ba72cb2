"""Forests drawn in parts against the list of all tables, cut in all ways (docs/theory/pieces.md, section 4)."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from holdfast.randomness import Keys
from holdfast.trees import parts
from holdfast.trees.circles.messages import Messages
from holdfast.trees.parts import Part, Top
from holdfast.trees.shape.forest import Forest
from small_forests import CASES, distance, listed


class Whole:
    """A forest cut above some nodes, its messages made once; `alone`: parts that reject begin again alone (wrong)."""

    def __init__(self, name, roots, aliases, alone=False):
        parents, exact, weights, which, low, high = (
            np.array(each) if isinstance(each, list) and k != 2 else each for k, each in enumerate(CASES[name])
        )
        self.n, self.alone = parents.size, alone
        exact = np.isin(np.arange(self.n), exact)
        owner = np.full(self.n, -1)
        for v in range(self.n):
            owner[v] = v if v in roots else owner[parents[v]] if parents[v] >= 0 else -1

        def some(nodes):
            place = {int(v): k for k, v in enumerate(nodes)}
            above = np.array([place.get(int(parents[v]), -1) for v in nodes])
            return Forest(above, exact[nodes]), weights, which[nodes], low[nodes], high[nodes]

        self.outputs = [np.flatnonzero(owner == root) for root in roots]
        self.parts = [Part(*some(nodes), aliases=aliases, pull=np.zeros(1)) for nodes in self.outputs]
        self.top_outputs = np.concatenate([np.flatnonzero(owner < 0), roots])
        below = [part.answers()[0] for part in self.parts]
        forest, *rest = some(self.top_outputs)
        forest = Forest(
            forest.parents,
            forest.exact
            | (np.arange(forest.n) >= forest.n - len(roots))
            & np.array([False] * (forest.n - len(roots)) + [each is None for each in below]),
        )
        top = Top(forest, *rest, aliases=aliases, below=below)
        self.parts = [replace(part, pull=pull[None]) for part, pull in zip(self.parts, top.pulls, strict=True)]
        self.top = replace(top, sums=[part.sums()[0] for part in self.parts])

    def draw(self, seed):
        """One table."""
        keys = [Keys.of(bytes([k]) * 8 + seed.to_bytes(8, "little")) for k in range(len(self.parts) + 1)]
        table = np.zeros(self.n, dtype=np.int64)

        def ask(attempt, totals, tests):
            all_kept = True
            for k, part in enumerate(self.parts):
                noise, kept = part.drawn(totals[k : k + 1], tests[k : k + 1], attempt, keys[k])
                while self.alone and not kept and attempt < 20:
                    attempt += 1
                    noise, kept = part.drawn(totals[k : k + 1], [None], attempt, keys[k])
                table[self.outputs[k]] = noise
                all_kept &= kept
            return all_kept

        noise = self.top.together(ask, keys[-1])
        inner = self.top_outputs.size - len(self.parts)
        table[self.top_outputs[:inner]] = noise[:inner]
        return table


def cuts(name):
    """All sets of nodes below roots of which none is below another."""
    parents = CASES[name][0]
    above = [set() for _ in parents]
    for v, p in enumerate(parents):
        above[v] = above[p] | {p} if p >= 0 else set()
    nodes = [v for v, p in enumerate(parents) if p >= 0]
    for size in range(1, len(nodes) + 1):
        for some in itertools.combinations(nodes, size):
            if not any(above[v] & set(some) for v in some):
                yield list(some)


def drawn(name, size, aliases=2.0, **more):
    """Tables of a forest, cut in each way in turn."""
    wholes = [Whole(name, some, aliases, **more) for some in cuts(name)]
    return np.array([wholes[i % len(wholes)].draw(i) for i in range(size)])


@pytest.fixture
def worsened(monkeypatch):
    """Messages three times too large in places: many tables are rejected, by the top or by a part."""
    rows = Messages.rows

    def worse(self, some, fresh=False):
        values = rows(self, some, fresh)
        at = self.start[some][:, None] + np.arange(values.shape[1])
        return values * np.where(at % 2 == 0, 3.0, 1.0)

    monkeypatch.setattr(Messages, "rows", worse)
    monkeypatch.setattr(Messages, "alias", lambda self, some, totals: np.full(some.size, 10.0))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CASES if name != "an only leaf"])
def test_parts_draw_the_law_of_the_list(name):
    z, beyond = distance(drawn(name, 600), listed(name))
    assert z < 5.5
    assert beyond < 1e-2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["not negative", "exact", "bounded, not measured"])
def test_worsened_messages_of_parts_leave_the_law(name, worsened):
    assert distance(drawn(name, 120), listed(name))[0] < 5.5


def evens(roots, size, **more):
    """By how many standard errors the share of tables in which node 1 is even differs from the list's."""
    expected = sum(mass for table, mass in listed("gaussian").items() if table[1] % 2 == 0)
    whole = Whole("gaussian", roots, 27.0, **more)
    share = np.mean([whole.draw(i)[1] % 2 == 0 for i in range(size)])
    return float((share - expected) / (expected * (1 - expected) / size) ** 0.5)


def test_a_rejection_in_one_part_begins_all_again(worsened):
    assert abs(evens([1], 150)) < 3
    assert evens([1], 150, alone=True) > 4


def test_tests_of_roots_are_handed_down(worsened, monkeypatch):
    monkeypatch.setattr(parts, "_sent", lambda doubt: None)
    assert evens([1], 150) > 4


def test_a_total_that_no_leaves_make_is_rejected():
    """It is not divided for ever."""
    whole = Whole("not negative", [1], 27.0)
    test = parts.Open(2**64 - 1, ((1, -60), (0, 0)), 0.0, 0.0)
    assert not whole.parts[0].drawn(np.array([-9]), [test], 0, Keys.of(bytes(32)))[1]
