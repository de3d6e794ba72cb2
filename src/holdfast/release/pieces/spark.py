"""Pieces as tasks of a Spark cluster, classic or Connect.

A task gets what is public about its piece, the piece's counts and the secret from which all substreams are derived, and
nothing else; what it makes is a function of these alone. So a task that dies, runs twice or runs elsewhere changes
nothing. Between the two passes only a few numbers of each piece come to the driver, and nothing is shuffled.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Ints
from holdfast.randomness import Keys
from holdfast.release.pieces import tasks
from holdfast.release.pieces.passes import Head, coins_of, decide
from holdfast.release.pieces.tasks import each, packed, unpacked
from holdfast.release.pieces.whole import Drawn, Pieces
from holdfast.release.records.spark import told

#: The columns of what a task gets first, of what stays in the cluster between the passes, and of what comes out.
GIVEN = "piece bigint, work binary, cells binary"
BETWEEN = "piece bigint, work binary, exact binary, noisy binary, head binary"
MADE = "piece bigint, values binary, noisy binary"
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
    with told("draw the table"):
        given = session.createDataFrame(_given(pieces, cells), GIVEN)
        between = ascending(given, secret).persist()
        try:
            return _finished(session, pieces, cells, secret, between)
        finally:
            between.unpersist()


def ascending(given: Any, secret: bytes) -> Any:
    """The first pass, as a frame: every piece counted and measured."""
    return given.mapInArrow(each(tasks.ascending(secret), BETWEEN), BETWEEN)


def descending(between: Any, totals: Any, secret: bytes) -> Any:
    """The second pass, as a frame: every piece moved to the final values of its roots."""
    return between.join(totals.hint("broadcast"), "piece").mapInArrow(each(tasks.descending(secret), MADE), MADE)


def heads_of(between: Any) -> dict[int, Head]:
    """What every piece tells about its roots."""
    found = between.select("piece", "head").toArrow().to_pydict()
    return {piece: unpacked(head) for piece, head in zip(found["piece"], found["head"], strict=True)}


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
    made = descending(between, totals_frame(session, totals, pieces.cut.by), secret).toArrow().to_pydict()
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
