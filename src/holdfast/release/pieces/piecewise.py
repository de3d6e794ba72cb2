"""A table made piece by piece: noisy values, what is decided above the cut, and what each piece then makes of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from holdfast.arrays import Array, Ints, Words
from holdfast.domains import Hierarchy
from holdfast.randomness import Keys
from holdfast.release.pieces import level_passes, linear, nearest_pieces
from holdfast.release.pieces.conditioned import conditioned
from holdfast.release.pieces.cut import Work, coins_of, measured
from holdfast.release.pieces.pieces import Pieces
from holdfast.release.pieces.tasks import Group, Held, Here, Tasks, by_piece


class Finished(NamedTuple):
    """The values of a piece, the noisy ones from which they were moved, and what intervals stand around."""

    values: Ints
    noisy: Ints
    centre: Array


@dataclass(frozen=True, eq=False)
class Decided:
    """The top as it is, what each piece below is told to be finished, and the coins that decide ties."""

    top: Held
    made: Finished
    told: list[tuple[Any, Any]]
    coins: Words


class Above(NamedTuple):
    """What a piece tells to what is above the cut; None where nobody asks."""

    head: level_passes.Head | None
    estimated: linear.Estimated | None


def measure(held: Held, _: object, secret: bytes) -> tuple[Ints, Above]:
    noisy = measured(held.work, held.truth, Keys.of(secret))
    return noisy, above(replace(held, noisy=noisy))


def measure_all(group: Group, _: object, secret: bytes) -> tuple[list[Ints], list[Above]]:
    made = by_piece(partial(measure, secret=secret))(group, None)
    return [noisy for noisy, _ in made], [told for _, told in made]


def above(held: Held, _: object = None) -> Above:
    work = held.work
    head = level_passes.ascend(held) if work.way in ("topdown", "bluedown") else None
    return Above(head, None if work.linear is None else linear.ascend(held))


def finished(held: Held, told: tuple[Any, Any], coins: Words) -> Finished:
    """Make the values of a piece from its noisy ones, and the totals and estimates of its roots."""
    totals, estimates = told
    work, noisy = held.work, held.noisy
    assert noisy is not None
    values = noisy
    if work.way != "given":
        values = (nearest_pieces if work.way == "nearest" else level_passes).descend(held, totals, coins)
    centre: Array = noisy if estimates is None else linear.descend(held, estimates)
    return Finished(values, noisy, centre)


def decided(pieces: Pieces, work: Work, cells: Ints, tasks: Tasks, secret: bytes) -> Decided:
    """Let all pieces be measured or conditioned, and decide everything above the cut."""
    by, own, coins = pieces.cut.width, work.piece.own, coins_of(Keys.of(secret))
    groups: dict[int, None] = dict.fromkeys(range(pieces.cut.groups.size - 1))
    counted = np.concatenate(pieces.cut.above(cells))
    truth = np.asarray(Hierarchy.from_parents(work.piece.parents).sum_up(counted))
    if work.drawn is not None:
        noisy = conditioned(work, truth, pieces.cut.groups * by, tasks, secret)
        told = tasks.grouped(by_piece(above), groups) if work.linear is not None else {}
    else:
        told = tasks.noted(partial(measure_all, secret=secret), groups)
        noisy = measured(work, truth[:own], Keys.of(secret))
    below: list[Above] = [each for group in sorted(told) for each in told[group]]
    values: Ints = noisy
    totals: Any = [None] * pieces.cut.count
    if work.way in ("topdown", "bluedown"):
        values = level_passes.decide(work, truth, noisy, [each.head for each in below if each.head], coins)
        totals = values[own:].reshape(-1, by)
    elif work.way == "nearest":
        values = nearest_pieces.decide(work, truth, noisy, (by, pieces.cut.groups), tasks, coins)
        totals = values[own:].reshape(-1, by)
    centre: Array = noisy
    estimates: Any = [None] * pieces.cut.count
    if work.linear is not None:
        centre = linear.decide(work, truth, noisy, [each.estimated for each in below if each.estimated])
        estimates = centre[own:].reshape(-1, by)
    made = Finished(values[:own], noisy, centre[:own])
    top = Held(work, counted, noisy)
    return Decided(top, made, list(zip(totals, estimates, strict=True)), coins)


def in_one_process(pieces: Pieces, cells: Ints, secret: bytes) -> tuple[Ints, Ints]:
    """Make the table piece by piece here: its values and the noisy ones (the same where noise is conditioned)."""
    return gathered(pieces, cells, Here(list(pieces.groups(cells))), secret)


def gathered(pieces: Pieces, cells: Ints, tasks: Tasks, secret: bytes) -> tuple[Ints, Ints]:
    """Make the table and bring all of it here: its values and the noisy ones."""
    work = pieces.work(pieces.cut.top())
    done = decided(pieces, work, cells, tasks, secret)
    values, noisy = (np.empty(pieces.mechanism.query.n, dtype=np.int64) for _ in range(2))
    at = work.piece.outputs[: work.piece.own]
    values[at], noisy[at] = done.made.values, done.made.noisy
    made = tasks.grouped(by_piece(partial(finished, coins=done.coins)), pieces.cut.by_group(done.told))
    for number, each in enumerate(each for group in sorted(made) for each in made[group]):
        at = pieces.cut.piece(number).outputs
        values[at], noisy[at] = each.values, each.noisy
    return values, noisy
