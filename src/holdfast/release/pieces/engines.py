"""Who draws the tables of a job: this process, or the cluster that holds the records, which then writes them too."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
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
from holdfast.release.pieces import spark
from holdfast.release.pieces.cut import TOP
from holdfast.release.pieces.parts import WRITING, Drawn, Folder, Sheets, Written, refuse_unwritten, write, write_part
from holdfast.release.pieces.passes import decided
from holdfast.release.pieces.pieces import Pieces
from holdfast.release.pieces.tasks import Group, Tasks
from holdfast.release.records.spark_frames import spark_frame
from holdfast.release.spec.spec import ENGINES
from holdfast.system import sync_folder


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
    spark.refuse_open(session)
    for table in job.tables:
        refuse_unwritten(table, Pieces.of(table.mechanism))
    return Drawing(partial(spark.cluster, session), partial(spark.refuse_unshared, session))


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
