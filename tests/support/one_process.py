"""Tables that are drawn in pieces, made and gathered by one process: what a cluster's must be, from the same secret."""

from __future__ import annotations

from functools import partial

import numpy as np

from holdfast.arrays import Floats, Ints
from holdfast.release.pieces import areas
from holdfast.release.pieces.cut import Group, Here, Tasks, by_piece
from holdfast.release.pieces.passes import Pieces, decided, finished


def gathered(pieces: Pieces, cells: Ints, secret: bytes, tasks: Tasks | None = None) -> tuple[Ints, Ints]:
    """Make the table piece by piece, here or by others, and bring all of it here: its values and the noisy ones."""
    tasks, work = tasks or Here(list(pieces.groups(cells))), pieces.work(pieces.cut.top())
    done = decided(pieces, work, cells, tasks, secret)
    values, noisy = (np.empty(pieces.mechanism.query.n, dtype=np.int64) for _ in range(2))
    at = work.piece.outputs[: work.piece.own]
    values[at], noisy[at] = done.made.values, done.made.noisy
    made = tasks.each(partial(by_piece, what=partial(finished, secret=secret)), pieces.cut.by_group(done.told))
    for number, each in enumerate(each for group in sorted(made) for each in made[group]):
        at = pieces.cut.piece(number).outputs
        values[at], noisy[at] = each.values, each.noisy
    return values, noisy


def gathered_areas(
    pieces: areas.AreaPieces, cells: Ints, secret: bytes, tasks: Tasks | None = None
) -> tuple[Ints, Ints, Floats]:
    """Make a census here or by others and bring all of it here: its values, noisy ones, and linear estimates."""
    query = pieces.cut.query
    by_leaf = np.asarray(cells).reshape(-1, query.table.cells)
    pieces, limits = pieces.with_rules(np.asarray(query.answer(by_leaf)))
    stretches = list(pieces.stretches(by_leaf, limits))
    tasks = tasks or Here([Group(each) for each in stretches])
    nothing: dict[int, None] = dict.fromkeys(range(len(stretches)))
    told = tasks.each(partial(areas.measure, census=pieces.census, secret=secret), nothing)
    top = areas.Part(pieces.census, pieces.top(by_leaf, limits))
    done, given = areas.decided(top, [told[number] for number in range(len(stretches))], secret)
    made = tasks.each(partial(_finished, census=pieces.census, secret=secret), dict(enumerate(given)))
    result = np.empty(query.n, np.int64), np.empty(query.n, np.int64), np.empty(query.n)
    listed = [(pieces.cut.nodes(number), made[number]) for number in range(len(stretches))]
    for nodes, one in [([range(pieces.cut.above)], done), *listed]:
        rows = np.concatenate([np.arange(query.starts[each.start], query.starts[each.stop]) for each in nodes])
        for whole, part in zip(result, (one.values, one.noisy, one.centre), strict=True):
            whole[rows] = part
    return result


def _finished(group: Group, given: areas.Given, census: areas.Census, secret: bytes) -> areas.Made:
    return areas.finished(areas.Part(census, group.work), given, secret)
