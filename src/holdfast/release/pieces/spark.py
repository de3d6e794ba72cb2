"""Pieces as tasks of a Spark cluster, classic or Connect.

A task gets what is public about a group of pieces, their counts and the secret from which all substreams are derived,
and nothing else; what it makes is a function of these alone. So a task that dies, runs twice or runs elsewhere changes
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
from holdfast.release.pieces.tasks import Group, Grouped, Held, Noted, packed, unpacked
from holdfast.release.records.spark_frames import told as telling

#: The columns of a group of pieces in the cluster, the first of them numbers, and of what it is told or tells.
NUMBERS, COLUMNS = ("part", "first"), ("part", "first", "work", "cells", "noisy", "sheet")
KEPT = ", ".join(f"{name} {'bigint' if name in NUMBERS else 'binary'}" for name in COLUMNS)
TOLD = "part bigint, told binary"
#: The setting that says how many rows a task holds at once: a row is a whole group. And how many of what they are told.
AT_ONCE, TOLD_AT_ONCE = "spark.sql.execution.arrow.maxRecordsPerBatch", 64
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


@dataclass(frozen=True, eq=False)
class There:
    """The tasks of a cluster; what pieces draw stays in it, each last draw in the place of the one before.

    `first`: the numbers of the first pieces of all groups; `where`: which of the frames has each group.
    """

    session: Any
    first: list[int]
    frames: list[Any]
    where: dict[int, int]
    kept: ExitStack = field(default_factory=ExitStack)

    def noted(self, what: Noted, told: Mapping[int, Any]) -> dict[int, Any]:
        """Draw noisy values of groups, which stay with their pieces, and return what each tells besides."""
        asked = self._with(told)
        made = self._keep(asked.mapInArrow(noting(what), f"{KEPT}, told binary"))
        found = _collected(made.select("part", "told"))
        self.frames.append(made.drop("told"))
        self.where.update(dict.fromkeys(found, len(self.frames) - 1))
        return found

    def grouped(self, what: Grouped, told: Mapping[int, Any]) -> dict[int, Any]:
        return _collected(self._with(told).mapInArrow(telling_of(what), TOLD))

    def _keep(self, frame: Any) -> Any:
        frame = frame.persist()
        self.kept.callback(frame.unpersist)
        return frame

    def _with(self, told: Mapping[int, Any]) -> Any:
        """Groups with what they are told; nothing is shuffled."""
        rows = _table({"part": list(told), "told": [packed(each) for each in told.values()]})
        with _rows_at_once(self.session, str(TOLD_AT_ONCE)):
            asked = self.session.createDataFrame(rows, TOLD).hint("broadcast")
        whole: Any = None
        for number, frame in enumerate(self.frames):
            own = [group for group in told if self.where[group] == number]
            if own:
                some = frame if len(own) == len(self.first) else frame.filter(frame["part"].isin(own))
                whole = some if whole is None else whole.unionByName(some)
        return whole.select(*COLUMNS).join(asked, "part")


@contextmanager
def cluster(session: Any, groups: Iterable[Group], first: list[int]) -> Iterator[There]:
    """Hand pieces to the cluster of a session, and forget what it kept of them in the end."""
    refuse_open(session)
    with telling("draw the table"), _rows_at_once(session, "1"), ExitStack() as kept:
        there = There(session, first, [], dict.fromkeys(range(len(first)), 0), kept)
        there.frames.append(there._keep(session.createDataFrame(_given(groups), KEPT)))
        yield there


def _given(groups: Iterable[Group]) -> Any:
    """What the cluster gets, as an Arrow table; a group is packed as soon as it is there, and then let go."""
    import pyarrow as pa  # only where Spark is

    tables = []
    for number, group in enumerate(groups):
        works, cells = ([getattr(each, name) for each in group.pieces] for name in ("work", "cells"))
        content = {"work": works, "cells": cells, "sheet": group.sheet()}
        row = {"part": number, "first": group.first, **{name: packed(each) for name, each in content.items()}}
        tables.append(_table({name: [row.get(name)] for name in COLUMNS}))
    return pa.concat_tables(tables)


@contextmanager
def _rows_at_once(session: Any, most: str) -> Iterator[None]:
    """Let tasks hold so many rows at a time: of groups, one."""
    before = session.conf.get(AT_ONCE)
    session.conf.set(AT_ONCE, most)
    try:
        yield
    finally:
        session.conf.set(AT_ONCE, before)


def telling_of(what: Grouped) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """A task that does something with every group, and tells what comes back."""

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        for row in _rows(batches):
            found = what(_opened(row), unpacked(row["told"]))
            yield from _table({"part": [row["part"]], "told": [packed(found)]}).to_batches()

    return task


def noting(what: Noted) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """A task that lets the pieces of every group keep noisy values, and tells what comes back besides."""

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        for row in _rows(batches):
            made, found = _opened(row).noted(what, unpacked(row["told"]))
            row |= {"noisy": packed([each.noisy for each in made.pieces]), "told": packed(found)}
            yield from _table({name: [row[name]] for name in row}).to_batches()

    return task


def _rows(batches: Iterator[Any]) -> Iterator[dict[str, Any]]:
    for batch in batches:
        yield from batch.to_pylist()


def _opened(row: Mapping[str, Any]) -> Group:
    """A group as it lies in the cluster; its sheet stays closed until it is looked at."""
    works, cells = unpacked(row["work"]), unpacked(row["cells"])
    noisy = [None] * len(works) if row["noisy"] is None else unpacked(row["noisy"])
    pieces = [Held(*each) for each in zip(works, cells, noisy, strict=True)]
    return Group(row["first"], pieces, lambda: unpacked(row["sheet"]))


def _collected(frame: Any) -> dict[int, Any]:
    found = frame.toArrow().to_pydict()
    return {group: unpacked(content) for group, content in zip(found["part"], found["told"], strict=True)}


def _table(columns: dict[str, list[Any]]) -> Any:
    import pyarrow as pa  # only where Spark is

    types = {name: pa.int64() if name in NUMBERS else pa.binary() for name in columns}
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
