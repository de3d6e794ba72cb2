"""Pieces as tasks of a Spark cluster, classic or Connect.

A task gets what is public about a group of pieces, their counts and the secret from which all substreams are derived,
and nothing else; what it makes is a function of these alone. So a task that dies, runs twice or runs elsewhere changes
nothing. What pieces draw stays in the cluster, encrypted; a few numbers of each come to the driver, and nothing is
shuffled.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.arguments import Fault, Refused, one_of
from holdfast.arrays import Array, Ints
from holdfast.mechanism.release import Release
from holdfast.randomness.stream import KEY_BYTES
from holdfast.release.job.job import Job
from holdfast.release.job.table import Table
from holdfast.release.pieces.cut import TOP, Group, Grouped, Held, Noted, Tasks, packed, unpacked
from holdfast.release.pieces.parts import WRITING, Drawn, Folder, Sheets, Written, refuse_unwritten, write, write_part
from holdfast.release.pieces.passes import Pieces, decided
from holdfast.release.records.spark_frames import spark_frame
from holdfast.release.records.spark_frames import told as telling
from holdfast.release.spec.spec import ENGINES
from holdfast.system import sync_folder

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


# --- who draws the tables of a job: this process, or the cluster that holds the records, which then writes them too


@dataclass(frozen=True, eq=False)
class Parts:
    """A table that lies in parts where it was drawn: size and hash of each file, its sheet, and the coin of ties."""

    files: dict[str, tuple[int, str]]
    count: int
    sheets: Sheets
    method: str
    ties: int | None


#: Hands groups, whose first pieces have these numbers, to those who work on them, and takes back what they keep.
Hand = Callable[[Iterable[Group], list[int]], AbstractContextManager[Tasks]]
NO_FRAME = "engine: spark draws where the records are: pass them as a Spark frame from Python, or write engine: local"


@dataclass(frozen=True, eq=False)
class Drawing:
    """Who draws: this process, or those to whom pieces are handed, who write their tables in parts.

    `look` refuses a folder to which they cannot write.
    """

    hand: Hand | None = None
    look: Callable[[str], None] = lambda _: None

    def refuse_unshared(self, place: Path) -> None:
        """Refuse a folder to which those who draw cannot write."""
        self.look(str(place.resolve()))

    def draw(self, table: Table, cells: Ints, truth: Array, folder: Folder) -> Release | Parts:
        """Draw a table from the counts of its cells and its true answer; in a cluster, let it be written."""
        if self.hand is None:
            del cells  # a census fills memory
            return table.mechanism.release(truth)
        pieces = Pieces.of(table.mechanism)
        sheets = Sheets.of(table, pieces, table.mechanism.checked(truth))
        # The secret is nowhere but here and in the tasks, and serves once.
        return in_parts(self.hand, pieces, sheets, cells, folder, secrets.token_bytes(KEY_BYTES))


def drawing(job: Job, source: Any, engine: str | None = None) -> Drawing:
    """Return who draws, by the spec unless an engine is named; refuse what a cluster cannot draw."""
    asked = job.spec.engine if engine is None else one_of("engine", engine, ENGINES)
    if asked == "local":
        return Drawing()
    frame = spark_frame(source)
    if frame is None:
        raise Refused(NO_FRAME)
    session = frame.sparkSession
    refuse_open(session)
    for table in job.tables:
        refuse_unwritten(table, Pieces.of(table.mechanism))
    return Drawing(partial(cluster, session), partial(refuse_unshared, session))


def in_parts(hand: Hand, pieces: Pieces, sheets: Sheets, cells: Ints, folder: Folder, secret: bytes) -> Parts:
    """Let a table be drawn in pieces, from the counts of its cells, and be written by those who do: the top, which is
    made here, is its first part.
    """
    folders = [
        Path(folder.path, name) for name in folder.names(sheets.deviations is not None, sheets.records is not None)
    ]
    for each in (Path(folder.path, WRITING), *folders):
        each.mkdir()

    starts, estimated = pieces.cut.groups[:-1].tolist(), sheets.around_estimates
    with hand(pieces.groups(cells, sheets.sheet, estimated=estimated), starts) as there:
        work = pieces.work(pieces.cut.top(), estimated=estimated)
        done = decided(pieces, work, cells, there, secret)
        told = {group: (group + 1, each) for group, each in pieces.cut.by_group(done.told).items()}
        parts: dict[int, Written] = there.grouped(partial(write, coins=done.coins, folder=folder), told)
    roots = np.concatenate([parts[group].roots for group in range(len(starts))])
    public = sheets.sheet(work.piece.outputs[: work.piece.own], TOP, TOP + 1)
    first = write_part(public, Drawn.of(done.top, done.made), folder, 0, roots)
    _removed(Path(folder.path, WRITING))
    for each in folders:
        sync_folder(each)
    listed = [first, *(parts[group] for group in range(len(starts)))]
    wrong = next((each.wrong for each in listed if each.wrong is not None), None)
    if wrong is not None:
        raise Fault(f"nothing is released: {wrong}; this is a fault of holdfast")
    ties = int(done.coins[0])
    files = {name: (size, found) for part in listed for name, size, found in part.files}
    return Parts(files, len(listed), sheets, pieces.mechanism.method, ties)


def _removed(folder: Path) -> None:
    """Remove a folder, also while a twin of a task that is done still writes to it."""
    while folder.exists():
        shutil.rmtree(folder, ignore_errors=True)
