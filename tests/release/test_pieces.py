"""Hierarchies in pieces: the same table as the undivided one, whatever the cut, and the same bytes twice."""

from types import SimpleNamespace

import numpy as np
import pytest

import holdfast as hf
from holdfast.arguments import Refused
from holdfast.arrays import together
from holdfast.mechanism.onto_moves import moved
from holdfast.randomness import Keys
from holdfast.release.pieces import cut as cut_module
from holdfast.release.pieces.cut import TOP, Cut, Held, coins_of, measured, packed, unpacked
from holdfast.release.pieces.drawing import NO_FRAME, drawing
from holdfast.release.pieces.passes import NOT_IN_PIECES, Pieces, measure
from holdfast.release.pieces.spark import OVERHEARD, READABLE, refuse_open
from jobs import job, tree
from one_process import gathered


def random_tree(random: np.random.Generator, size: int) -> hf.Hierarchy:
    """A tree with leaves at several depths, its nodes numbered in any order."""
    parents = np.array([-1, *(random.integers(max(0, i - 6), i) for i in range(1, size))])
    number = random.permutation(size)
    shuffled = np.empty(size, dtype=np.int64)
    shuffled[number] = np.where(parents < 0, -1, number[parents])
    return hf.Hierarchy.from_parents(shuffled)


def random_mechanism(random: np.random.Generator) -> hf.Mechanism:
    """Noise of another scale on every level, one level perhaps not measured, one node perhaps exact or fixed."""
    shape = random_tree(random, int(random.integers(4, 50)))
    by = int(random.integers(1, 3))
    query = hf.counts(shape, by=by)
    scale = {d: float(random.integers(1, 6)) for d in range(len(shape.levels))}
    if random.random() < 0.4:
        for _ in range(int(random.integers(1, 3))):
            scale[int(random.integers(0, len(shape.levels)))] = np.inf
    held = hf.consistent(query) & hf.nonnegative()
    if by == 1 and random.random() < 0.5:
        held &= hf.invariant(hf.exact_nodes(shape, [int(random.integers(0, shape.n))]))
    law = hf.laplace if random.random() < 0.7 else hf.gaussian
    return law(query, scale=scale).onto(held, method=random.choice(["topdown", "bluedown"]), integer=True)


def cut_at(pieces: Pieces, depth: int, width: int) -> Pieces:
    """The same mechanism, cut elsewhere, and into so many categories."""
    return Pieces(pieces.mechanism, Cut(pieces.cut.tree, pieces.cut.by, depth, width))


def undivided(pieces, cells, secret):
    """The same table by moving all noisy values at once, and the noisy ones."""
    mechanism, keys = pieces.mechanism, Keys.of(secret)
    truth = mechanism.query.answer(cells)
    noisy = np.empty(mechanism.query.n, dtype=np.int64)
    for piece in (pieces.cut.top(), *map(pieces.cut.piece, range(pieces.cut.count))):
        at = piece.outputs[: piece.own]
        noisy[at] = measured(pieces.work(piece), truth[at], keys)
    return moved(mechanism.moves, noisy[None].copy(), truth, coins_of(keys))[0], noisy


@pytest.mark.slow
def test_pieces_make_the_undivided_table():
    random, tried = np.random.default_rng(5), 0
    while tried < 60:
        try:
            mechanism = random_mechanism(random)
            whole = Pieces.of(mechanism)
            width = int(random.choice([1, whole.cut.by]))
            pieces = cut_at(whole, int(random.integers(1, len(mechanism.query.levels))), width)
        except Refused:  # some leaf is not measured, nor anything above it; or there are only two levels
            continue
        tried += 1
        cells = np.maximum(random.geometric(0.2, mechanism.query.cells) - 3, 0)
        secret = random.bytes(32)
        values, noisy = gathered(pieces, cells, secret)
        expected, measured = undivided(pieces, cells, secret)
        np.testing.assert_array_equal(noisy, measured)
        np.testing.assert_array_equal(values, expected)


def test_ties_are_decided_by_the_numbers_in_the_whole():
    """Without noise to speak of every child has the same fraction, and hashes alone decide."""
    shape = hf.Hierarchy.from_parents([-1, *[0] * 4, *np.repeat([1, 2, 3, 4], 9)])
    query = hf.counts(shape)
    scale = {0: 1e3, 1: 1e3, 2: np.inf}
    mechanism = hf.laplace(query, scale=scale).onto(hf.consistent(query) & hf.nonnegative(), method="topdown")
    pieces, cells = Pieces.of(mechanism), np.zeros(query.cells, dtype=np.int64)
    assert pieces.cut.depth == 1
    for seed in range(5):
        secret = bytes([seed] * 32)
        np.testing.assert_array_equal(gathered(pieces, cells, secret)[0], undivided(pieces, cells, secret)[0])


def test_every_output_belongs_to_one_piece():
    shape = random_tree(np.random.default_rng(2), 200)
    cut = Cut.of(shape, 2)
    pieces = [cut.top(), *(cut.piece(number) for number in range(cut.count))]
    own = np.concatenate([piece.outputs[: piece.own] for piece in pieces])
    np.testing.assert_array_equal(np.sort(own), np.arange(2 * shape.n))
    assert max(piece.own for piece in pieces[1:]) == cut.largest
    assert pieces[0].node == TOP
    assert all((piece.parents < 0).sum() == 2 for piece in pieces[1:])


def test_groups_change_no_table_that_is_moved(monkeypatch):
    """Pieces that follow each other, in stretches of as many outputs; one table, also where calls run compiled."""
    shape = hf.Hierarchy.from_parents([-1, *[0] * 5, *np.repeat(np.arange(1, 6), [2, 9, 1, 30, 4])])
    query = hf.counts(shape)
    held = hf.consistent(query) & hf.nonnegative()
    cells = np.random.default_rng(3).geometric(0.2, query.cells) - 1
    noise, made = hf.laplace(query, epsilon=1), []
    for grouped, expected in ((1, [0, 1, 2, 3, 4, 5]), (12, [0, 2, 4, 5]), (1 << 16, [0, 5])):
        monkeypatch.setattr(cut_module, "GROUPED", grouped)
        pieces = Pieces.of(noise.onto(held, method="topdown"))
        assert pieces.cut.groups.tolist() == expected
        made.append(gathered(pieces, cells, bytes(32))[0].tolist())
        largest = max(sum(held.work.piece.own for held in group.work) for group in pieces.groups(cells))
        assert pieces.cut.largest_group == largest
    monkeypatch.setattr(cut_module, "together", lambda _: together(1 << 20))
    made.append(gathered(pieces, cells, bytes(32))[0].tolist())
    assert made[0] == made[1] == made[2] == made[3]


def test_counts_are_shared_out_among_the_top_and_pieces():
    shape = random_tree(np.random.default_rng(7), 60)
    for depth in (1, 4, len(shape.levels) - 1):
        cut, cells = Cut(shape, 4, depth, 2), np.random.default_rng(0).integers(0, 99, 4 * shape.n_leaves)
        truth = shape.sum_up(cells.reshape(-1, 4)).ravel()
        above, roots = cut.above(cells)
        top = cut.top()
        np.testing.assert_array_equal(roots, truth[top.outputs[top.own :]])
        below = [cut.cells(cut.piece(number), cells) for number in range(cut.count)]
        assert sorted(np.concatenate([above, *below])) == sorted(cells)
        for number, own in enumerate(below):
            piece = cut.piece(number)
            np.testing.assert_array_equal(Held(SimpleNamespace(piece=piece), own).truth, truth[piece.outputs])
            assert (cut.piece_of(piece.outputs) == number).all()
        assert (cut.piece_of(top.outputs[: top.own]) == TOP).all()


def test_pieces_have_noise_of_their_own():
    """Two equal subtrees are not drawn from the same words."""
    shape = hf.Hierarchy.from_parents([-1, 0, 0, *[1] * 50, *[2] * 50])
    query = hf.counts(shape)
    mechanism = hf.laplace(query, epsilon=1).onto(hf.consistent(query), method="topdown")
    _, noisy = undivided(Pieces.of(mechanism), np.zeros(100, dtype=np.int64), bytes(32))
    assert (noisy[3:53] != noisy[53:]).any()


def test_a_task_makes_the_same_bytes_twice():
    shape = random_tree(np.random.default_rng(1), 60)
    query = hf.counts(shape)
    mechanism = hf.laplace(query, epsilon=1).onto(hf.consistent(query) & hf.nonnegative(), method="topdown")
    pieces = Pieces.of(mechanism)
    number = int(np.argmax(pieces.cut.nodes_each))
    cells = pieces.cut.cells(pieces.cut.piece(number), np.arange(query.cells))
    held = Held(pieces.work(pieces.cut.piece(number)), cells)
    assert packed(measure(held, None, bytes(32))) == packed(measure(held, None, bytes(32)))
    assert packed(measure(held, None, bytes(32))) != packed(measure(held, None, bytes([1] * 32)))
    assert unpacked(packed(cells)).tolist() == cells.tolist()


def test_a_plan_says_what_tasks_need():
    shape = hf.Hierarchy.from_parents([-1, 0, 0, *[1] * 9, *[2] * 5])
    noise, held = hf.laplace(hf.counts(shape), epsilon=1), hf.consistent(shape) & hf.nonnegative()
    share = Pieces.of(noise.onto(held, method="topdown")).share
    assert (share.pieces, share.passes) == (2, 2)
    assert "2 pieces" in str(share)
    assert min(share.bytes_each, share.bytes_sent) > 0


def test_many_categories_are_shared_out(monkeypatch):
    """So that no piece is larger than a task can hold; one prime number of categories is cut into single ones."""
    shape = hf.Hierarchy.from_parents([-1, 0, 0, *[1] * 9, *[2] * 5])
    monkeypatch.setattr(cut_module, "MOST_OUTPUTS", 40)
    for by, width in ((12, 4), (7, 1), (4, 4)):
        cut = Cut.of(shape, by)
        assert (cut.width, cut.count, cut.largest) == (width, 2 * by // width, 10 * width)
        cells = np.arange(14 * by)
        below = [cut.cells(cut.piece(number), cells) for number in range(cut.count)]
        assert sorted(np.concatenate(below)) == cells.tolist()
        for number, own in enumerate(below):
            piece = cut.piece(number)
            leaves = piece.outputs[(piece.parents >= 0)]
            np.testing.assert_array_equal(own, leaves - 3 * by)


def test_the_cut_leaves_small_subtrees_whole(monkeypatch):
    sizes = np.cumsum([0, 1, 5, 50, 1000])
    parents = [-1, *(sizes[d] + i % (sizes[d + 1] - sizes[d]) for d in range(3) for i in range(np.diff(sizes)[d + 1]))]
    shape = hf.Hierarchy.from_parents(parents)
    for small, expected in ((211, (1, 5, 1, 211)), (210, (2, 50, 6, 21)), (0, (2, 50, 6, 21))):
        monkeypatch.setattr(cut_module, "SMALL", small)
        cut = Cut.of(shape, 1)
        assert (cut.depth, cut.nodes.size, cut.top().own, cut.largest) == expected
    with pytest.raises(Refused, match="no subtrees to draw apart"):
        Cut.of(hf.Hierarchy.from_parents([-1, 0, 0]), 1)


def test_what_is_not_made_in_pieces_is_refused():
    shape = hf.Hierarchy.from_parents([-1, 0, 0, *[1] * 3, *[2] * 3])
    noise, held = hf.laplace(hf.counts(shape), epsilon=1), hf.consistent(shape)
    for made in (noise.given(held), noise.onto(held), noise.onto(held, integer=False)):
        with pytest.raises(Refused) as refused:
            Pieces.of(made)
        assert str(refused.value) == NOT_IN_PIECES


class Session:
    """The settings of a Spark session."""

    def __init__(self, **settings: str) -> None:
        self.conf = {key.replace("__", "."): value for key, value in settings.items()}


def test_a_cluster_that_would_show_the_secret_is_refused():
    with pytest.raises(Refused) as refused:
        refuse_open(Session())
    assert str(refused.value) == READABLE
    with pytest.raises(Refused) as refused:
        refuse_open(Session(spark__io__encryption__enabled="true", spark__master="yarn"))
    assert str(refused.value) == OVERHEARD
    refuse_open(Session(spark__io__encryption__enabled="true", spark__master="local[2]"))
    safe = {"spark__io__encryption__enabled": "true", "spark__network__crypto__enabled": "true"}
    refuse_open(Session(**safe, spark__master="spark://somewhere"))


def test_a_cluster_needs_a_spark_frame(tmp_path):
    made = job(tmp_path, tree(rest="hold: [consistent, nonnegative]\nmethod: topdown\nengine: spark"))
    with pytest.raises(Refused) as refused:
        drawing(made, None)
    assert str(refused.value) == NO_FRAME
    assert drawing(made, None, "local")
    with pytest.raises(Refused, match="engine must be one of"):
        drawing(made, None, "cluster")
