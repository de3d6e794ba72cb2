"""Pieces as tasks of a Spark cluster, classic or Connect.

A task gets what is public about its piece, the piece's counts and the secret from which all substreams are derived, and
nothing else; what it makes is a function of these alone. So a task that dies, runs twice or runs elsewhere changes
nothing. What pieces draw stays in the cluster, encrypted; a few numbers of each come to the driver, and nothing is
shuffled.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from holdfast.arguments import Refused
from holdfast.release.pieces.tasks import Asked, Held, Noted, packed, unpacked
from holdfast.release.records.spark import told as telling

#: The columns of a piece in the cluster, and of what it is told or tells.
KEPT = "piece bigint, work binary, cells binary, noisy binary, sheet binary"
TOLD = "piece bigint, told binary"
#: The setting that says how many rows a task holds at once: a row is a whole piece.
AT_ONCE = "spark.sql.execution.arrow.maxRecordsPerBatch"
#: How far apart pieces lie that follow each other on the way to the cluster.
STRIDE = 64
#: Tasks that look whether they can write where the table is to be.
LOOKS = 8
UNSHARED = (
    "engine: spark lets tasks write the table, and some of them cannot write to the output folder: name one on a disk "
    "that all workers share, under the same path and for the same user, or write engine: local"
)
READABLE = (
    "engine: spark hands counts and the secret of the noise to the cluster, and this session would write them readably "
    "to disks: start it with spark.io.encryption.enabled=true"
)
OVERHEARD = (
    "engine: spark hands counts and the secret of the noise to the cluster, and this session would send them readably: "
    "start it with spark.network.crypto.enabled=true (and spark.authenticate=true) or with spark.ssl.rpc.enabled=true"
)


class Packed(Held):
    """A piece as it lies in the cluster, opened where it is looked at."""

    def __init__(self, work: bytes, cells: bytes, noisy: bytes | None, sheet: bytes | None) -> None:
        self.__dict__["raw"] = {"work": work, "cells": cells, "noisy": noisy, "sheet": sheet}

    def __getattr__(self, name: str) -> Any:
        if name not in self.__dict__.get("raw", ()):
            raise AttributeError(name)
        content = self.__dict__["raw"][name]
        self.__dict__[name] = None if content is None else unpacked(content)
        return self.__dict__[name]


@dataclass(frozen=True, eq=False)
class There:
    """The tasks of a cluster; what pieces draw stays in it, each last draw in the place of the one before."""

    session: Any
    frames: list[Any]
    where: dict[int, int]
    kept: ExitStack = field(default_factory=ExitStack)

    def asked(self, what: Asked, told: Mapping[int, Any] | None = None) -> dict[int, Any]:
        """Do something with pieces, and return what each tells."""
        return _collected(self._with(told).mapInArrow(each(what, keeping=False), TOLD))

    def noted(self, what: Noted, told: Mapping[int, Any] | None = None) -> dict[int, Any]:
        """Draw noisy values, which stay with their pieces, and return what each tells besides."""
        frame = self._with(told).mapInArrow(each(what, keeping=True), f"{KEPT}, told binary")
        made = self._keep(frame)
        found = _collected(made.select("piece", "told"))
        self.frames.append(made.drop("told"))
        self.where.update(dict.fromkeys(found, len(self.frames) - 1))
        return found

    def _keep(self, frame: Any) -> Any:
        """Keep what a frame holds in the cluster, until all is done."""
        frame = frame.persist()
        self.kept.callback(frame.unpersist)
        return frame

    def _with(self, told: Mapping[int, Any] | None) -> Any:
        """Pieces with what they are told; nothing is shuffled."""
        some = self.where if told is None else told
        rows: dict[str, list[Any]] = {
            "piece": list(some),
            "told": [packed(None if told is None else told[i]) for i in some],
        }
        asked = self.session.createDataFrame(_table(rows), TOLD).hint("broadcast")
        whole: Any = None
        for number, frame in enumerate(self.frames):
            own = [piece for piece in some if self.where[piece] == number]
            if own:
                part = frame if len(own) == len(self.where) else frame.filter(frame["piece"].isin(own))
                whole = part if whole is None else whole.unionByName(part)
        return whole.join(asked, "piece")


@contextmanager
def cluster(session: Any, pieces: Iterable[Held], count: int) -> Iterator[There]:
    """Hand pieces to the cluster of a session, and forget what it kept of them in the end."""
    refuse_open(session)
    with telling("draw the table"), _one_at_a_time(session), ExitStack() as kept:
        there = There(session, [], dict.fromkeys(range(count), 0), kept)
        there.frames.append(there._keep(session.createDataFrame(_given(pieces, count), KEPT)))
        yield there


def _given(pieces: Iterable[Held], count: int) -> Any:
    """What the cluster gets; pieces that lie far apart follow each other, so that all shares of them are alike."""
    names = ("work", "cells", "sheet")
    rows = [tuple(packed(getattr(held, name)) for name in names) for held in pieces]
    mixed = [number for first in range(STRIDE) for number in range(first, count, STRIDE)]
    columns = {name: [rows[number][i] for number in mixed] for i, name in enumerate(names)}
    nothing: list[bytes | None] = [None] * count
    return _table({"piece": mixed, **columns, "noisy": nothing}).select(["piece", "work", "cells", "noisy", "sheet"])


@contextmanager
def _one_at_a_time(session: Any) -> Iterator[None]:
    """Let tasks hold one piece at a time."""
    before = session.conf.get(AT_ONCE)
    session.conf.set(AT_ONCE, "1")
    try:
        yield
    finally:
        session.conf.set(AT_ONCE, before)


def each(what: Callable[[Held, Any], Any], *, keeping: bool) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """A task that does the same with every piece; `keeping`: what comes back first are its noisy values."""

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa  # only where Spark is

        for batch in batches:
            for row in batch.to_pylist():
                found = what(Packed(row["work"], row["cells"], row["noisy"], row["sheet"]), unpacked(row["told"]))
                if keeping:
                    row["noisy"], found = packed(found[0]), found[1]
                row["told"] = packed(found)
                names = list(row) if keeping else ["piece", "told"]
                kinds = [pa.int64() if name == "piece" else pa.binary() for name in names]
                columns = [pa.array([row[name]], kind) for name, kind in zip(names, kinds, strict=True)]
                yield pa.RecordBatch.from_arrays(columns, names)

    return task


def _collected(frame: Any) -> dict[int, Any]:
    """What pieces tell, by their numbers."""
    found = frame.toArrow().to_pydict()
    return {piece: unpacked(content) for piece, content in zip(found["piece"], found["told"], strict=True)}


def _table(columns: dict[str, list[Any]]) -> Any:
    """Whole numbers and bytes as an Arrow table."""
    import pyarrow as pa  # only where Spark is

    types = {name: pa.int64() if name == "piece" else pa.binary() for name in columns}
    return pa.table({name: pa.array(column, types[name]) for name, column in columns.items()})


def refuse_unshared(session: Any, folder: str) -> None:
    """Refuse a folder that tasks do not see, or cannot write to."""

    def look(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            seen = os.access(folder, os.W_OK | os.X_OK)
            yield pa.RecordBatch.from_pydict({"seen": [seen] * batch.num_rows})

    with telling("look at the output folder"):
        found = session.range(LOOKS, numPartitions=LOOKS).mapInArrow(look, "seen boolean").toArrow()["seen"].to_pylist()
    if not all(found):
        raise Refused(UNSHARED)


def refuse_open(session: Any) -> None:
    """Refuse a session that would write or send what is confidential so that others could read it."""
    if session.conf.get("spark.io.encryption.enabled", "false") != "true":
        raise Refused(READABLE)
    safe = ("spark.network.crypto.enabled", "spark.ssl.rpc.enabled")
    alone = session.conf.get("spark.master", "").startswith("local")  # nothing leaves the machine
    if not alone and all(session.conf.get(key, "false") != "true" for key in safe):
        raise Refused(OVERHEARD)
