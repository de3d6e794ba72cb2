"""A part of a released table, written and checked by whoever made it.

A part has the top, or the pieces of a group. A file is written under a name of its own beside the others and then gets
its name in one step. What is written is a function of the pieces, so a second attempt and a twin write the same bytes,
and which of them comes last is nothing to anybody. What was written is read again and tested: sums, bounds, exact
figures, names, the copy.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np

from holdfast.arrays import Bools, Floats, Ints
from holdfast.compiler import together
from holdfast.mechanism.published.error_bars import ErrorBars
from holdfast.release.pieces.making import Finished, finished
from holdfast.release.pieces.tasks import Group, Held, by_piece
from holdfast.release.storage.engine import session
from holdfast.release.storage.files import sha256_of
from holdfast.release.storage.tables import (
    FIGURES,
    MEASUREMENTS,
    ROW,
    Columns,
    other_entries,
    part_names,
    read_csv,
    read_parquet,
    write_csv,
    write_repeated,
    write_table,
)

#: The folder in which files are written before they get their names.
WRITING = ".writing"


@dataclass(frozen=True, eq=False)
class Sheet:
    """What is public about the rows of a part: their names, limits that are certain, and how far intervals reach.

    `labels` are columns that follow the figures. Rows behind the outputs are `sums` of these, some of which are `known`
    as they are. `reach` is None where intervals are the certain limits; `own`: they stand around the values, otherwise
    around the draw behind them or its estimate. `deviations` of noisy answers, and the columns of synthetic `records`,
    are None where these are not published.
    """

    rows: Ints
    names: Mapping[str, Any]
    labels: Mapping[str, Any]
    sums: Any
    known: Bools
    low: Floats
    high: Floats
    reach: Floats | None
    own: bool
    whole: bool
    deviations: Floats | None
    records: tuple[str, ...] | None

    def figures(self, made: Finished) -> tuple[Ints, Floats]:
        """The values of all rows, and the ends of their intervals, (n, 2), not a number where nothing is known."""
        values = np.concatenate([made.values, self.sums @ made.values])
        ends = np.column_stack([self.low, self.high])
        if self.reach is not None:
            around = made.values if self.own else made.centre
            centre = np.concatenate([around, self.sums @ np.asarray(around, dtype=np.float64)])
            bars = ErrorBars(centre, None, self.low, self.high, self.whole)
            ends = bars.within(centre - self.reach, centre + self.reach, self.low, self.high)
        else:
            ends[np.isinf(ends)] = np.nan
        ends[self.known] = values[self.known, None]
        return values, ends


@dataclass(frozen=True)
class Folder:
    """Where the parts of a table are written: in a folder that all who write reach by the same name.

    `when`: the time that files bear, so that none tells how long it took.
    """

    path: str
    prefix: str
    when: float

    def names(self, noisy: bool, records: bool) -> list[str]:
        """The files of the table, of its noisy answers and of synthetic records."""
        written = {"table": True, "measurements": noisy, "records": records}
        return [f"{self.prefix}{name}.{end}" for name, there in written.items() if there for end in ("parquet", "csv")]


class Written(NamedTuple):
    """A part as it lies in its folder: name, size and hash of its files, the values of its roots, and what is wrong."""

    files: list[tuple[str, int, str]]
    roots: Ints
    wrong: str | None


class Drawn(NamedTuple):
    """Outputs that were made: places of their parents, how many are own, their bounds, and what was made of them."""

    parents: Ints
    own: int
    low: Ints
    high: Ints
    made: Finished

    @classmethod
    def of(cls, held: Held, made: Finished) -> Drawn:
        """What was made of a piece."""
        return cls(held.work.piece.parents, held.work.piece.own, *held.work.rules.bounds(held.truth), made)

    @classmethod
    def joined(cls, each: Sequence[Drawn]) -> Drawn:
        """What was made of several pieces, one after the other."""
        starts = np.cumsum([0, *(one.own for one in each)]).tolist()
        parents = [np.where(one.parents < 0, -1, one.parents + start) for one, start in zip(each, starts, strict=False)]
        low, high = (np.concatenate(side) for side in ([one.low for one in each], [one.high for one in each]))
        made = Finished(*(np.concatenate(column) for column in zip(*(one.made for one in each), strict=True)))
        return cls(np.concatenate(parents), starts[-1], low, high, made)


def write(group: Group, told: Any, coins: Any, folder: Folder) -> Written:
    """Finish pieces and write them as a part; `told` is its number and what each piece is told to be finished."""
    part, rest = told
    made = by_piece(lambda held, each: Drawn.of(held, finished(held, each, coins)))(group, rest)
    with together(group.figures):
        drawn = Drawn.joined(made)
        return write_part(group.sheet(), drawn, folder, part, drawn.made.values[:0])


def write_part(sheet: Sheet, drawn: Drawn, folder: Folder, part: int, below: Ints) -> Written:
    """Write a part and check it; `below` are the values of the outputs behind its own, which are in other parts."""
    made = drawn.made
    values, ends = sheet.figures(made)
    own, named = drawn.own, {ROW: sheet.rows, **sheet.names}
    table = named | dict(zip(FIGURES, (values, *ends.T), strict=True)) | dict(sheet.labels)
    files = folder.names(sheet.deviations is not None, sheet.records is not None)
    names = [part_names(name, part + 1)[part] for name in files]
    session().execute("SET threads = 1")  # one thread writes the same bytes whenever it does
    new = [Path(folder.path, WRITING, f"{uuid4().hex}{Path(name).suffix}") for name in files]
    write_table(table, new[0], new[1])
    if sheet.deviations is not None:
        kept = np.flatnonzero(np.isfinite(sheet.deviations))
        measured = {name: column[kept] for name, column in named.items()}
        noisy, deviations = made.noisy[kept], sheet.deviations[kept]
        write_table(measured | dict(zip(MEASUREMENTS, (noisy, deviations), strict=True)), new[2])
        write_csv(measured | {"standard_deviation": deviations, "count": noisy}, new[3])
    if sheet.records is not None:
        leaves = np.setdiff1d(np.arange(own), drawn.parents)
        write_repeated({name: named[name][leaves] for name in sheet.records}, made.values[leaves], *new[-2:])
    found = read_parquet(new[0])
    wrong = next(_wrong(sheet, drawn, table, found, below), None) or next(
        other_entries(found, read_csv(new[1]), names[1]), None
    )
    described = [(name, path.stat().st_size, sha256_of(path)) for name, path in zip(names, new, strict=True)]
    for name, path in zip(names, new, strict=True):
        os.utime(path, (folder.when, folder.when))
        os.replace(path, Path(folder.path, name))
    roots = np.flatnonzero(drawn.parents[:own] < 0)
    return Written(described, np.asarray(found["value"])[roots], wrong)


def _wrong(sheet: Sheet, drawn: Drawn, table: Mapping[str, Any], found: Columns, below: Ints) -> Iterator[str]:
    """Say what does not hold in a part as it was read again."""
    yield from other_entries(found, {name: _masked(column) for name, column in table.items()}, "a part")
    every, own, parents = np.asarray(found["value"]), drawn.own, drawn.parents
    if every.dtype != np.int64:
        yield "the values of a part are not whole numbers"
        return
    values = np.concatenate([every[:own], below])
    if (sheet.sums @ every[:own] != every[own:]).any():
        yield "a row of a part is not the sum that its name says"
    inner = np.flatnonzero(np.bincount(parents[parents >= 0], minlength=values.size))
    children, sums = np.flatnonzero(parents >= 0), np.zeros(values.size, dtype=object)  # whose sums are exact
    np.add.at(sums, parents[children], values[children].astype(object))
    if (values[inner] != sums[inner]).any():
        yield "a row of a part is not the sum of the rows below it"
    if ((values[:own] < drawn.low[:own]) | (values[:own] > drawn.high[:own])).any():
        yield "a row of a part is out of its bounds, or not the exact figure"


def _masked(column: Any) -> Any:
    """A column in which nothing, and what is not a number, is masked."""
    return np.ma.array(column, mask=column == None) if column.dtype == object else np.ma.masked_invalid(column)  # noqa: E711
