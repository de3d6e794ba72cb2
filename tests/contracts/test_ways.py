"""The contract of every way of both verbs: what a way must do to be one.

Each way has examples here. A way that `choose.py` lists and that has none fails, and so does an example that another
way draws. The law of a way is tested elsewhere, by enumeration and statistics; this is what holds of all of them.
"""

from dataclasses import dataclass
from importlib import import_module
from types import ModuleType

import numpy as np
import pytest

import holdfast as hf
from holdfast import given, onto
from pages import blocks

choose = import_module("holdfast.given.choose")  # the room exports the function of that name
TREE = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1, 2, 2])
FLAT = hf.Hierarchy.from_parents([-1, 0, 0, 0])
COUNTS = TREE.sum_up([4, 0, 7, 2])
STAR = FLAT.sum_up([3, 5, 1])
CELLS = np.array([5, 0, 9, 3])
WIDE = np.array([3, 8, 1, 6, 2, 0, 7, 4, 9, 5, 1, 2, 6, 3, 8, 0, 4, 2, 7, 1])
CUBE = np.array([5, 4, 6, 3, 4, 6, 2, 7])
AREAS = hf.counts(FLAT, by=(2, 2), keep=[(), (0,), (0, 1)])
TOWNS = AREAS.answer(np.array([5, 0, 9, 3, 1, 2, 0, 4, 6, 6, 1, 0]))
ROW = np.ones((1, 4), dtype=int)
#: A tree with two categories in each node: exact totals over them below the root, which is not measured.
DIVIDED = hf.counts(FLAT, by=2)
TOTALS = hf.consistent(DIVIDED) & hf.invariant(np.repeat(np.eye(4, dtype=int), 2, axis=1)[1:])
BELOW = {"shares": {0: 0, 1: 1}}
CROSSED = hf.invariant(hf.exact_margins((4, 5), [(0,), (1,)]))
PAIRS = hf.invariant(hf.exact_margins((2, 2, 2), [(0, 1), (0, 2), (1, 2)]))
FOUR = hf.invariant(hf.exact_margins((2,) * 4, [(i, j) for j in range(4) for i in range(j)]))
#: Draws per example: enough for a mean within 7 standard errors to be no matter of luck.
DRAWS = 400


@dataclass(frozen=True)
class Example:
    """A mechanism that a way draws, and a truth that keeps what must hold."""

    base: hf.Mechanism
    constraint: hf.Constraint
    truth: np.ndarray


def laplace(query, **words):
    return hf.laplace(query, epsilon=1, **words)


def gaussian(query, **words):
    return hf.gaussian(query, rho=0.5, **words)


def trees(*, integer):
    held = hf.consistent(TREE)
    return {law: (law(hf.counts(TREE), integer=integer), held) for law in (laplace, gaussian)}


GIVEN = {
    "free": [Example(laplace(hf.histogram(4)), hf.equals([[0, 0, 0, 0]], [0]), CELLS)],
    "boxes": [
        Example(law(hf.histogram(4), integer=integer), hf.nonnegative(), CELLS)
        for law in (laplace, gaussian)
        for integer in (True, False)
    ],
    "line": [
        Example(
            law(hf.histogram(4), integer=integer), hf.invariant([[1, -1, 0, 0], [0, 1, -1, 0], [0, 0, 1, -1]]), CELLS
        )
        for law in (laplace, gaussian)
        for integer in (True, False)
    ],
    "total": [Example(laplace(hf.histogram(4), integer=False), hf.invariant(ROW), CELLS)],
    "solved": [Example(laplace(hf.counts(TREE), integer=False), hf.consistent(TREE), COUNTS)],
    "gaussian": [Example(gaussian(hf.histogram(4), integer=False), hf.invariant(ROW), CELLS)],
    "areas": [Example(gaussian(AREAS, integer=False), hf.consistent(AREAS), TOWNS)],
    "gaussian_tree": [Example(gaussian(hf.counts(TREE), integer=False), hf.consistent(TREE), COUNTS)],
    "hierarchy": [
        Example(law(hf.counts(TREE)), held, COUNTS)
        for law in (laplace, gaussian)
        for held in (hf.consistent(TREE), hf.consistent(TREE) & hf.nonnegative())
    ],
    "under_totals": [
        Example(law(DIVIDED, **BELOW), held, DIVIDED.answer([5, 0, 9, 3, 1, 2]))
        for law in (laplace, gaussian)
        for held in (TOTALS, TOTALS & hf.nonnegative())
    ],
    "union": [Example(laplace(hf.histogram(4)), hf.between(0, 6) | hf.between(8, 9), np.array([5, 0, 6, 3]))],
    "tied_totals": [
        Example(law(hf.histogram(4)), held, CELLS)
        for law in (laplace, gaussian)
        for held in (hf.invariant(ROW), hf.invariant(ROW) & hf.nonnegative())
    ],
    "enumeration": [Example(laplace(hf.histogram(4)), hf.between(0, 9) & hf.ordered([1, 3, 0, 2]), CELLS)],
    "rejection": [
        Example(law(hf.histogram(4), integer=integer), hf.ordered([1, 3, 0, 2]), CELLS)
        for law in (laplace, gaussian)
        for integer in (True, False)
    ],
    "lattice": [
        Example(gaussian(hf.margins((4, 5))), CROSSED, WIDE),
        Example(gaussian(hf.margins((2,) * 4), neighbours="replace-one"), FOUR, WIDE[:16]),
    ],
    "metropolis": [Example(laplace(hf.counts(FLAT)), hf.consistent(FLAT), STAR)],
}
ONTO = {
    "hierarchy": [
        Example(law(hf.counts(TREE)), hf.consistent(TREE) & hf.nonnegative(), COUNTS) for law in (laplace, gaussian)
    ],
    "under_totals": [
        Example(law(DIVIDED, **BELOW), TOTALS & hf.nonnegative(), DIVIDED.answer([5, 0, 9, 3, 1, 2]))
        for law in (laplace, gaussian)
    ],
    "boxes": [Example(laplace(hf.histogram(4)), hf.between(0, 9), CELLS)],
    "areas": [Example(law(AREAS, integer=False), hf.consistent(AREAS), TOWNS) for law in (laplace, gaussian)],
    "projection": [Example(laplace(hf.histogram(4), integer=False), hf.invariant(ROW), CELLS)],
    "orders": [
        Example(laplace(hf.histogram(4), integer=integer), hf.ordered([1, 3, 0, 2]), CELLS) for integer in (True, False)
    ],
    "network": [Example(laplace(hf.margins((4, 5)), integer=False), CROSSED & hf.nonnegative(), WIDE)],
    "program": [Example(laplace(hf.margins((2, 2, 2)), integer=False), PAIRS & hf.nonnegative(), CUBE)],
    "union": [Example(laplace(hf.histogram(4)), hf.between(0, 6) | hf.between(8, 9), np.array([5, 0, 6, 3]))],
    "topdown": [Example(gaussian(hf.counts(TREE)), hf.consistent(TREE) & hf.nonnegative(), COUNTS)],
    "bluedown": [Example(gaussian(hf.counts(TREE)), hf.consistent(TREE) & hf.nonnegative(), COUNTS)],
}


#: Ways that begin at so many outputs that hundreds of tables take minutes: tests/enumeration/test_linked.py has them.
APART = {given: set(), onto: {"linked"}}


def applied(verb, way, example, **words):
    """The mechanism of an example, drawn by this way."""
    return getattr(example.base, verb)(example.constraint, method=way, **words)


EXAMPLES = [
    pytest.param(verb, way, example, id=f"{verb}-{way}-{place}")
    for verb, table in (("given", GIVEN), ("onto", ONTO))
    for way, examples in table.items()
    for place, example in enumerate(examples)
]
every_way = pytest.mark.parametrize(("verb", "way", "example"), EXAMPLES)


def assert_one_sentence(refusal):
    text = str(refusal)
    assert text
    assert "\n" not in text
    assert not text.endswith(".")


@pytest.mark.parametrize(("room", "table"), [(given, GIVEN), (onto, ONTO)], ids=["given", "onto"])
def test_every_way_has_an_example(room, table):
    assert set(table) | APART[room] == {room.name_of(way) for way in room.ways()}


@every_way
def test_a_way_is_asked_for_by_its_name_and_draws_every_output(verb, way, example):
    built = applied(verb, way, example)
    drawn = built.simulate(example.truth, 5, rng=hf.seeded(3))
    assert built.method == way
    assert drawn.shape == (5, example.base.query.n)
    integer = example.base.base.law.integer and (verb == "given" or not example.constraint.has_invariants)
    assert drawn.dtype == (np.int64 if integer else np.float64)


@every_way
def test_the_same_seed_gives_the_same_draw_and_another_gives_another(verb, way, example):
    first, again, other = (applied(verb, way, example).simulate(example.truth, 20, rng=hf.seeded(s)) for s in (3, 3, 4))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@every_way
def test_what_must_hold_holds(verb, way, example):
    drawn = applied(verb, way, example).simulate(example.truth, 50, rng=hf.seeded(5))
    system = example.constraint.system(example.base.query.n)
    held = list(system.branches) or [system]
    tolerance = 0 if drawn.dtype == np.int64 else 1e-8

    def kept(row, part):
        low, high = part.real_bounds()
        rows = part.null_space().rows
        equal = np.abs(rows @ (row - example.truth)).max(initial=0) <= tolerance * 100
        return equal and (row >= low - tolerance).all() and (row <= high + tolerance).all()

    assert all(any(kept(row, part) for part in held) for row in drawn)


@every_way
def test_errors_known_before_the_data_are_those_of_draws(verb, way, example):
    built = applied(verb, way, example)
    try:
        stated = built.standard_error()
    except hf.Refused as refusal:
        assert_one_sentence(refusal)
        assert (
            example.constraint.system(example.base.query.n).has_inequalities
            or verb == "onto"
            or way in ("union", "metropolis")
        )
        return  # they depend on the data
    drawn = built.simulate(example.truth, DRAWS, rng=hf.seeded(7)) - example.truth
    measured = np.sqrt((drawn.astype(float) ** 2).mean(axis=0))
    # the fourth moment of Laplace noise is 6 times the square of its variance: 7 standard errors of the mean square
    assert np.all(np.abs(measured**2 - stated**2) <= 7 * np.sqrt(5 / DRAWS) * stated**2 + 1e-9)


@every_way
def test_a_way_refuses_what_it_cannot_draw_in_one_sentence(verb, way, example):
    strange = laplace(hf.query(3, l1=1))
    held = hf.at_least([[2, -3, 5]], [1]) & hf.equals([[7, 1, 1]], [9])
    try:
        built = getattr(strange, verb)(held, method=way)
        built.simulate(np.array([1, 1, 1]), 1, rng=hf.seeded(1))
    except hf.Refused as refusal:
        assert_one_sentence(refusal)


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["given", "onto"])
def test_any_number_of_workers_draws_the_same_table(verb, monkeypatch):
    drawn = []
    for workers in (1, 2, 3):
        monkeypatch.setattr("os.cpu_count", lambda workers=workers: workers)
        table = GIVEN if verb == "given" else ONTO
        built = [applied(verb, way, examples[0]) for way, examples in table.items() if way != "metropolis"]
        drawn.append([each.simulate(table[each.method][0].truth, 3, rng=hf.seeded(2)) for each in built])
    for other in drawn[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(drawn[0], other, strict=True))


@pytest.fixture
def pairs(monkeypatch):
    """The way that CONTRIBUTING writes as an example, among the exact ways of `given`."""
    (source,) = blocks("CONTRIBUTING.md")
    way = ModuleType("holdfast.given.exact.pairs")
    exec(compile(source, "CONTRIBUTING.md", "exec"), vars(way))
    monkeypatch.setattr(choose, "WAYS", (*choose.WAYS, way))
    return Example(laplace(hf.histogram(4)), hf.invariant([[1, 0, 1, 0], [0, 1, 0, 1]]), CELLS)


def test_a_way_without_an_example_is_found(pairs):
    with pytest.raises(AssertionError):
        test_every_way_has_an_example(given, GIVEN)


@pytest.mark.parametrize(
    "promise",
    [
        test_a_way_is_asked_for_by_its_name_and_draws_every_output,
        test_the_same_seed_gives_the_same_draw_and_another_gives_another,
        test_what_must_hold_holds,
        test_errors_known_before_the_data_are_those_of_draws,
        test_a_way_refuses_what_it_cannot_draw_in_one_sentence,
    ],
)
def test_the_way_that_contributing_writes_keeps_the_contract(pairs, promise):
    promise("given", "pairs", pairs)


def test_the_way_that_contributing_writes_draws_the_law(pairs):
    """Each pair's noise has the weights e^(−2|t|/λ), as the exact way for one free direction says."""
    mine, theirs = (applied("given", way, pairs) for way in ("pairs", "line"))
    assert np.array_equal(mine.standard_error(), theirs.standard_error())
    assert str(mine.guarantee) == str(theirs.guarantee)
    one, other = (each.release(pairs.truth, rng=hf.seeded(6)) for each in (mine, theirs))
    assert np.array_equal(np.diff(one.interval(0.9)), np.diff(other.interval(0.9)))
    assert one.estimate([1, 2, 0, 0]).standard_error == other.estimate([1, 2, 0, 0]).standard_error
