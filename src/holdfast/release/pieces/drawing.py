"""Who draws the tables of a job: this process, or the cluster that holds the records, which then writes them too."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.arguments import Refused, one_of
from holdfast.arrays import Array, Ints
from holdfast.mechanism.release import Release
from holdfast.queries.areas.area_margins import AreaMargins
from holdfast.randomness import Keys
from holdfast.randomness.stream import KEY_BYTES
from holdfast.release.job.job import Job
from holdfast.release.job.table import Table
from holdfast.release.pieces import area_parts
from holdfast.release.pieces.areas import AreaPieces, Part, measure
from holdfast.release.pieces.areas import decided as area_decided
from holdfast.release.pieces.cut import TOP, Group, Tasks, coins_of
from holdfast.release.pieces.parts import (
    WRITING,
    Drawn,
    Folder,
    Parts,
    Sheets,
    Written,
    refuse_unwritten,
    refuse_wrong,
    write,
    write_part,
)
from holdfast.release.pieces.passes import Pieces, decided
from holdfast.release.pieces.spark import cluster, refuse_open, refuse_unshared
from holdfast.release.records.spark_frames import spark_frame
from holdfast.release.spec.spec import ENGINES
from holdfast.system import sync_folder

#: Hands groups to those who work on them.
Hand = Callable[[Iterable[Group]], AbstractContextManager[Tasks]]
NO_FRAME = "engine: spark draws where the records are: pass them as a Spark frame from Python, or write engine: local"
NOT_IN_RUNS = (
    "a table of so few figures is one file, and a cluster writes parts: write engine: spark into the spec, from which "
    "the parts of its files follow"
)


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
        # The secret is nowhere but here and in the tasks, and serves once.
        secret, checked = secrets.token_bytes(KEY_BYTES), table.mechanism.checked(truth)
        if isinstance(table.mechanism.query, AreaMargins):
            return census_in_parts(self.hand, table, cells, checked, folder, secret)
        pieces = Pieces.of(table.mechanism)
        return in_parts(self.hand, pieces, Sheets.of(table, pieces, checked), cells, folder, secret)


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
        refuse_undrawn(table)
    return Drawing(partial(cluster, session), partial(refuse_unshared, session))


def refuse_undrawn(table: Table) -> None:
    """Refuse what a cluster does not draw, or what it does not write."""
    if isinstance(table.mechanism.query, AreaMargins):
        AreaPieces.of(table.mechanism)
        if table.layout.in_parts is None:
            raise Refused(NOT_IN_RUNS)
    else:
        refuse_unwritten(table, Pieces.of(table.mechanism))


@contextmanager
def _folders(folder: Folder, files: list[str]) -> Iterator[None]:
    """Make the folders of parts, and the one in which parts are written until they have their names."""
    folders = [Path(folder.path, name) for name in files]
    writing = Path(folder.path, WRITING)
    for each in (writing, *folders):
        each.mkdir()
    yield
    while writing.exists():  # also while a twin of a task that is done still writes to it
        shutil.rmtree(writing, ignore_errors=True)
    for each in folders:
        sync_folder(each)


def in_parts(hand: Hand, pieces: Pieces, sheets: Sheets, cells: Ints, folder: Folder, secret: bytes) -> Parts:
    """Let a table be drawn in pieces, from the counts of its cells, and be written by those who do: the top, which is
    made here, is its first part.
    """
    noisy, records, estimated = sheets.deviations is not None, sheets.records is not None, sheets.around_estimates
    with _folders(folder, folder.names(noisy, records)):
        with hand(pieces.groups(cells, sheets.sheet, estimated=estimated)) as there:
            work = pieces.work(pieces.cut.top(), estimated=estimated)
            done = decided(pieces, work, cells, there, secret)
            told = {group: (group + 1, each) for group, each in pieces.cut.by_group(done.told).items()}
            parts: dict[int, Written] = there.each(partial(write, folder=folder, secret=secret), told)
        listed = [parts[group] for group in range(len(parts))]
        roots = np.concatenate([each.roots for each in listed])
        public = sheets.sheet(work.piece.outputs[: work.piece.own], TOP, TOP + 1)
        first = write_part(public, Drawn.of(done.top, done.made), folder, 0, roots)
    files, known = refuse_wrong([first, *listed]), bool(np.isfinite(sheets.low).any() or np.isfinite(sheets.high).any())
    ties = int(coins_of(Keys.of(secret))[0])
    facts = (noisy, records, known, sheets.measured, sheets.own, pieces.mechanism.method, ties)
    return Parts(files, 1 + len(listed), *facts)


def census_in_parts(hand: Hand, table: Table, cells: Ints, truth: Ints, folder: Folder, secret: bytes) -> Parts:
    """Let a census be drawn stretch by stretch and be written by those who do; the top is made and written here."""
    pieces, limits = AreaPieces.of(table.mechanism).with_rules(truth)
    by_leaf = cells.reshape(-1, pieces.cut.query.table.cells)
    printed, sheets = area_parts.printed(table, pieces, truth)
    with _folders(folder, folder.names(printed.noisy, printed.records is not None)):
        stretches = pieces.stretches(by_leaf, limits)
        with hand(Group(each, partial(sheets.sheet, number)) for number, each in enumerate(stretches)) as there:
            nothing = dict.fromkeys(range(pieces.cut.stretches))
            told = there.each(partial(measure, census=pieces.census, secret=secret), nothing)
            top = Part(pieces.census, pieces.top(by_leaf, limits))
            done, rest = area_decided(top, [told[number] for number in range(len(told))], secret)
            del told
            beside = partial(area_parts.write, census=pieces.census, printed=printed, folder=folder, secret=secret)
            parts: dict[int, Written] = there.each(beside, dict(enumerate(rest)))
        above = area_parts.write_top(top, done, printed, sheets, folder)
    ties = int(coins_of(Keys.of(secret))[0])
    return Parts(
        refuse_wrong([above, *parts.values()]),
        len(sheets.names.parts),
        printed.noisy,
        printed.records is not None,
        sheets.known,
        sheets.measured,
        printed.own,
        pieces.mechanism.method,
        ties,
        runs=True,
    )
