"""Pieces as tasks of a Spark cluster, classic or Connect.

A task gets what is public about its piece, the piece's counts and the secret from which all substreams are derived, and
nothing else; what it makes is a function of these alone. So a task that dies, runs twice or runs elsewhere changes
nothing. Between the two passes only a few numbers of each piece come to the driver, and nothing is shuffled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Bools, Floats, Ints
from holdfast.randomness import Keys
from holdfast.release.pieces import conditioned, tasks
from holdfast.release.pieces.conditioned import Told, Undivided
from holdfast.release.pieces.passes import Head, coins_of, decide
from holdfast.release.pieces.tasks import each, packed, unpacked
from holdfast.release.pieces.whole import Drawn, Pieces, at_once
from holdfast.release.records.spark import told
from holdfast.trees.joined.part import Graft

#: The columns of what a task gets first, of what stays in the cluster between the passes, and of what comes out.
GIVEN = "piece bigint, work binary, cells binary"
BETWEEN = "piece bigint, work binary, exact binary, noisy binary, head binary"
MADE = "piece bigint, values binary, noisy binary"
#: What conditional noise makes: what a piece tells, or its messages; and its values with the roots that are rejected.
TOLD = "piece bigint, told binary"
DRAWN = "piece bigint, values binary, rejected binary"
#: The setting that says how many rows a task holds at once: a row is a whole piece.
AT_ONCE = "spark.sql.execution.arrow.maxRecordsPerBatch"
#: How far apart pieces lie that follow each other on the way to the cluster.
STRIDE = 64
READABLE = (
    "engine: spark hands counts and the secret of the noise to the cluster, and this session would write them readably "
    "to disks: start it with spark.io.encryption.enabled=true"
)
OVERHEARD = (
    "engine: spark hands counts and the secret of the noise to the cluster, and this session would send them readably: "
    "start it with spark.network.crypto.enabled=true (and spark.authenticate=true) or with spark.ssl.rpc.enabled=true"
)


def draw(session: Any, pieces: Pieces, cells: Ints, secret: bytes) -> Drawn:
    """Make a table in the cluster of a session, from the counts of all cells and the secret of its substreams."""
    refuse_open(session)
    with told("draw the table"), _one_at_a_time(session), ExitStack() as kept:
        given = session.createDataFrame(_given(pieces, cells), GIVEN)
        if pieces.conditions:
            return _conditioned(
                pieces, cells, secret, There(session, _keep(given, kept), secret, pieces.cut.width, kept)
            )
        return _finished(session, pieces, cells, secret, _keep(ascending(given, secret), kept))


@contextmanager
def _one_at_a_time(session: Any) -> Iterator[None]:
    """Let tasks hold one piece at a time."""
    before = session.conf.get(AT_ONCE)
    session.conf.set(AT_ONCE, "1")
    try:
        yield
    finally:
        session.conf.set(AT_ONCE, before)


def _keep(frame: Any, kept: ExitStack) -> Any:
    """Keep what a frame holds in the cluster, until all is done."""
    frame = frame.persist()
    kept.callback(frame.unpersist)
    return frame


@dataclass(frozen=True, eq=False)
class There:
    """The tasks of conditional noise, done by a cluster; what pieces draw stays in it until all are accepted."""

    session: Any
    given: Any
    secret: bytes
    by: int
    kept: ExitStack
    made: list[Any] = field(default_factory=list)

    def told(self) -> list[Told]:
        """What every piece tells before messages are made."""
        found = _collected(self.given.mapInArrow(each(tasks.telling, TOLD), TOLD), "told")
        return [found[number] for number in sorted(found)]

    def grafts(self, some: Ints, pull: Floats) -> dict[int, tuple[Graft | None, ...] | None]:
        """The messages of the roots of some pieces."""
        return _collected(self._with(some, pull).mapInArrow(each(tasks.grafting, TOLD), TOLD), "told")

    def drawn(self, some: Ints, pull: Floats, totals: Ints, attempts: Ints) -> dict[int, Bools | None]:
        """Draw some pieces; return which roots' trees are rejected."""
        asked = self._with(some, pull, totals, attempts)
        self.made.append(_keep(asked.mapInArrow(each(tasks.drawing(self.secret), DRAWN), DRAWN), self.kept))
        return _collected(self.made[-1].select("piece", "rejected"), "rejected")

    def _with(self, some: Ints, *arrays: Any) -> Any:
        """Some pieces, each with its part of arrays over all roots."""
        parts = [each.reshape(-1, self.by) for each in arrays]
        rows = {"piece": some.tolist(), "told": (packed(tuple(each[i] for each in parts)) for i in some.tolist())}
        asked = self.session.createDataFrame(_table(rows), TOLD)
        return self.given.join(asked.hint("broadcast"), "piece")


def _conditioned(pieces: Pieces, cells: Ints, secret: bytes, there: There) -> Drawn:
    values = np.empty(pieces.mechanism.query.n, dtype=np.int64)
    top, (above, _) = pieces.work(pieces.cut.top()), pieces.cut.split(cells)
    try:
        values[top.piece.outputs[: top.piece.own]] = conditioned.conditioned(top, above, there, Keys.of(secret))
    except Undivided:
        values = at_once(pieces, cells, Keys.of(secret))
        return Drawn(values, values, None)
    for made in there.made:  # what was drawn again takes the place of what was rejected
        for number, found in _collected(made.select("piece", "values"), "values").items():
            values[pieces.cut.piece(number).outputs] = found
    return Drawn(values, values, None)


def _collected(frame: Any, name: str) -> dict[int, Any]:
    """A column of values by piece."""
    found = frame.toArrow().to_pydict()
    return {piece: unpacked(content) for piece, content in zip(found["piece"], found[name], strict=True)}


def ascending(given: Any, secret: bytes) -> Any:
    """The first pass, as a frame: every piece counted and measured."""
    return given.mapInArrow(each(tasks.ascending(secret), BETWEEN), BETWEEN)


def descending(between: Any, totals: Any, secret: bytes) -> Any:
    """The second pass, as a frame: every piece moved to the final values of its roots."""
    return between.join(totals.hint("broadcast"), "piece").mapInArrow(each(tasks.descending(secret), MADE), MADE)


def heads_of(between: Any) -> dict[int, Head]:
    """What every piece tells about its roots."""
    return _collected(between.select("piece", "head"), "head")


def totals_frame(session: Any, totals: Ints, by: int) -> Any:
    """The final values of the roots of every piece, as a frame."""
    rows = _table({"piece": range(totals.size // by), "totals": map(packed, totals.reshape(-1, by))})
    return session.createDataFrame(rows, "piece bigint, totals binary")


def _finished(session: Any, pieces: Pieces, cells: Ints, secret: bytes, between: Any) -> Drawn:
    heads = heads_of(between)
    keys, top = Keys.of(secret), pieces.work(pieces.cut.top())
    values, noisy = (np.empty(pieces.mechanism.query.n, dtype=np.int64) for _ in range(2))
    at = top.piece.outputs[: top.piece.own]
    above, _ = pieces.cut.split(cells)
    values[at], noisy[at], totals = decide(top, above, (heads[number] for number in pieces.numbers), keys)
    made = descending(between, totals_frame(session, totals, pieces.cut.width), secret).toArrow().to_pydict()
    for number, value, measured in zip(made["piece"], made["values"], made["noisy"], strict=True):
        outputs = pieces.cut.piece(number).outputs
        values[outputs], noisy[outputs] = unpacked(value), unpacked(measured)
    return Drawn(values, noisy, int(coins_of(keys)[0]))


def _given(pieces: Pieces, cells: Ints) -> Any:
    """What every task gets; pieces that lie far apart follow each other, so that all shares of them are alike."""
    _, below = pieces.cut.split(cells)
    mixed = [number for first in range(STRIDE) for number in pieces.numbers[first::STRIDE]]
    works = (packed(pieces.work(pieces.cut.piece(number))) for number in mixed)
    counts = (packed(below[number]) for number in mixed)
    return _table({"piece": mixed, "work": works, "cells": counts})


def _table(columns: dict[str, Iterable[Any]]) -> Any:
    """Whole numbers and bytes as an Arrow table."""
    import pyarrow as pa  # only where Spark is

    types = {name: pa.int64() if name == "piece" else pa.binary() for name in columns}
    return pa.table({name: pa.array(list(column), types[name]) for name, column in columns.items()})


def refuse_open(session: Any) -> None:
    """Refuse a session that would write or send what is confidential so that others could read it."""
    if session.conf.get("spark.io.encryption.enabled", "false") != "true":
        raise Refused(READABLE)
    safe = ("spark.network.crypto.enabled", "spark.ssl.rpc.enabled")
    alone = session.conf.get("spark.master", "").startswith("local")  # nothing leaves the machine
    if not alone and all(session.conf.get(key, "false") != "true" for key in safe):
        raise Refused(OVERHEARD)
