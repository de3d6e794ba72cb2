"""A census in stretches: the same table as the undivided one, whatever its margins, rules and the way it is moved."""

import re

import numpy as np
import pytest

import holdfast as hf
from holdfast.arguments import Refused
from holdfast.mechanism.onto_moves import moved
from holdfast.onto.ways import areas
from holdfast.randomness import Keys
from holdfast.release.pieces.areas import AreaPieces, Part
from holdfast.release.pieces.cut import coins_of
from holdfast.release.table import area_cut
from one_process import gathered_areas

TREE = hf.Hierarchy.from_parents(
    [-1, *[0] * 3, *np.repeat([1, 2, 3], [2, 4, 3]), *np.repeat(np.arange(4, 13), [3, 5, 1, 2, 4, 6, 3, 2, 5])]
)

CUBE = hf.Cube((2, 3, 4), ["sex", "age", "kind"], {"wide": ("kind", [0, 0, 1, 1])})
ALL = [("sex", "age", "kind"), ("sex", "wide"), ()]
#: Margins by level: all alike; ones that the areas at the cut do not have; and ones that no area below them has.
ASKED = {
    "alike": ALL,
    "gap": {0: ALL, 1: [("sex",)], 2: [("age", "wide"), ("sex",)], 3: ALL},
    "coarse below": {0: ALL, 1: ALL, 2: [("sex", "age")], 3: [("sex", "age"), ("sex", "wide")]},
}


def made(asked="alike", method="areas", rules=None, law=hf.gaussian):
    """The pieces of a census with these margins, cut above some level, and counts of its cells."""
    query = hf.counts(TREE, by=CUBE, keep=ASKED[asked])
    held = hf.consistent(query) & hf.nonnegative()
    if rules is not None:
        held &= rules(query)
    mechanism = law(query, scale=3).onto(held, method=method, integer=True)
    return AreaPieces.of(mechanism), np.random.default_rng(2).geometric(0.4, query.cells) - 1


@pytest.fixture(autouse=True, params=[(960, 1), (600, 2)])
def cut(monkeypatch, request):
    """Cut above either level."""
    monkeypatch.setattr(area_cut, "STRETCH", request.param[0])
    return request.param[1]


def undivided(pieces, cells, noisy, secret):
    """The same by moving all noisy values at once."""
    mechanism = pieces.mechanism
    return moved(mechanism.moves, noisy[None], mechanism.query.answer(cells), coins_of(Keys.of(secret)))[0]


@pytest.mark.parametrize("method", ["areas", "topdown", "bluedown"])
@pytest.mark.parametrize("asked", ASKED)
def test_stretches_make_the_undivided_table(asked, method, cut):
    pieces, cells = made(asked, method)
    assert asked == "coarse below" or pieces.cut.depth == cut
    assert pieces.cut.stretches > 1
    for secret in (bytes(32),):
        values, noisy, centre = gathered_areas(pieces, cells, secret)
        linear = areas.steps_of(pieces.mechanism.moves[0].problem).residuals.estimated(noisy.astype(float))
        np.testing.assert_allclose(centre, linear, rtol=1e-10, atol=1e-9)
        assert pieces.mechanism.held.violation(values) is None
        if method != "bluedown" or asked == "alike":  # what an area lacks is told to it with what is measured in it
            np.testing.assert_array_equal(values, undivided(pieces, cells, noisy, secret))


def empty(query):
    """No record is in two cells, and none in the first block is of one age."""
    nobody = [query.outputs(query.groups.index((3, (0, 1, 2))))[:, 5:7].ravel(), np.zeros(0, np.int64)]
    return hf.fixed(np.concatenate(nobody), np.zeros(sum(each.size for each in nobody), np.int64))


def exact(query):
    """Counts of level 1 and of one margin of level 2 are exact, and no block has more than 90 persons."""
    outputs = [query.outputs(query.groups.index(group)).ravel() for group in ((1, ()), (2, (0, 3)))]
    rows = np.concatenate(outputs)
    figures = np.zeros((rows.size, query.n), np.int64)
    figures[np.arange(rows.size), rows] = 1
    return hf.invariant(figures) & hf.between(0, 90, at=query.outputs(query.groups.index((3, ()))).ravel())


@pytest.mark.parametrize(("rules", "method"), [(empty, "areas"), (exact, "areas"), (exact, "topdown")])
def test_stretches_keep_rules(rules, method):
    pieces, cells = made("alike", method, rules)
    truth = pieces.mechanism.query.answer(
        cells if rules is exact else np.where(np.arange(cells.size) % 24 < 5, cells, 0)
    )
    if rules is empty:
        cells = np.where((np.arange(cells.size) % 24 < 5), cells, 0)
    values, noisy, _ = gathered_areas(pieces, cells, bytes(32))
    held = pieces.mechanism.held
    assert held.violation(values) is None
    for group in [(1, ()), (2, (0, 3))] if rules is exact else []:
        at = pieces.cut.query.outputs(pieces.cut.query.groups.index(group))
        np.testing.assert_array_equal(values[at], truth[at])
    if pieces.census.sets is None:
        np.testing.assert_array_equal(values, undivided(pieces, cells, noisy, bytes(32)))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda cells: cells + 1, "not those of the areas above"),
        (lambda cells: cells - np.eye(*cells.shape, dtype=int) * 999, "negative|not those"),
    ],
)
def test_cells_that_do_not_hold_are_told(change, said):
    pieces, cells = made("alike", "areas", exact)
    by_leaf = cells.reshape(-1, 24)
    pieces, limits = pieces.with_rules(pieces.mechanism.query.answer(cells))
    for number, stretch in enumerate(pieces.stretches(by_leaf, limits)):
        part = Part(pieces.census, stretch)
        begin = pieces.cut.begins[-1][pieces.cut.ends[number] : pieces.cut.ends[number + 1]]
        roots = np.add.reduceat(stretch.cells, begin - begin[0])
        assert not list(part.wrong(stretch.cells, roots))
        assert re.search(said, next(part.wrong(change(stretch.cells), roots)))
        assert "bounds" in " ".join(part.wrong(change(stretch.cells), None))


def test_noise_is_drawn_by_its_law_and_apart():
    """Two equal stretches are not drawn from the same words, and noisy values have the spread of their law."""
    pieces, cells = made()
    truth = pieces.mechanism.query.answer(cells)
    errors = np.concatenate([gathered_areas(pieces, cells, bytes([seed] * 32))[1] - truth for seed in range(8)])
    assert abs(errors.var() / 9 - 1) < 6 * np.sqrt(2 / errors.size)
    noisy = gathered_areas(pieces, np.zeros_like(cells), bytes(32))[1]
    blocks = noisy[pieces.cut.query.outputs(pieces.cut.query.groups.index((3, (0, 1, 2))))]
    assert len({tuple(row) for row in blocks.tolist()}) == len(blocks)


def test_what_is_not_made_in_stretches_is_refused_with_the_reason():
    query = hf.counts(TREE, by=CUBE, keep=ALL)
    noise, held = hf.gaussian(query, scale=3), hf.consistent(query) & hf.nonnegative()
    unsorted = hf.Hierarchy.from_parents([-1, 0, 0, 2, 1, 2, 1])
    other = hf.counts(unsorted, by=(2, 3, 30), keep=[(0, 1, 2), ()])
    unlike = hf.counts(TREE, by=hf.Cube((2, 5), ["a", "b"], {"c": ("b", [0, 0, 0, 1, 1])}), keep=[("a", "b"), ("c",)])
    chains = hf.counts(hf.Hierarchy.from_parents([-1, 0, 0, 1, 2, 3, 4]), by=(9, 10), keep={2: None, 3: None})
    alone = hf.gaussian(chains, scale={0: 3, 1: np.inf}).onto(hf.consistent(chains) & hf.nonnegative(), integer=True)
    for mechanism, said in (
        (noise.onto(held, integer=False), "numbers: whole"),
        (noise.given(hf.consistent(query)), "numbers: whole"),
        (hf.gaussian(other, scale=3).onto(hf.consistent(other) & hf.nonnegative(), integer=True), "sort the rows"),
        (hf.gaussian(unlike, scale=3).onto(hf.consistent(unlike) & hf.nonnegative(), integer=True), "one size"),
        (alone, "give a share to"),
    ):
        with pytest.raises(Refused, match=said):
            AreaPieces.of(mechanism)
