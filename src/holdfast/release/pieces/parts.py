"""A part of a released table, written and checked by whoever made it.

A part has the top, or the pieces of a group. A file is written under a name of its own beside the others and then gets
its name in one step. What is written is a function of the pieces, so a second attempt and a twin write the same bytes,
and which of them comes last is nothing to anybody. What was written is read again and tested: sums, bounds, exact
figures, names, the copy.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
from scipy import sparse

from holdfast.arguments import Fault, Refused
from holdfast.arrays import Array, Bools, Floats, Ints, together
from holdfast.mechanism.published.error_bars import ErrorBars, certain
from holdfast.mechanism.published.linear_estimates import measured_deviations, sum_reach
from holdfast.release.facts import CONFIDENCE
from holdfast.release.job.table import Table
from holdfast.release.pieces.cut import Group, Held, by_piece
from holdfast.release.pieces.passes import Finished, Pieces, finished
from holdfast.release.standalone_verifier.reading import names_of
from holdfast.release.storage.engine import session
from holdfast.release.storage.files import sha256_of
from holdfast.release.storage.tables import (
    FIGURES,
    MEASUREMENTS,
    ROW,
    Columns,
    other_entries,
    read_csv,
    read_parquet,
    write_csv,
    write_repeated,
    write_table,
)
from holdfast.release.table.public import label_columns

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
        around = made.values if self.own else made.centre
        centre = np.concatenate([around, self.sums @ np.asarray(around, dtype=np.float64)])
        ends = ends_of(centre, self.low, self.high, self.reach, whole=self.whole)
        ends[self.known] = values[self.known, None]
        return values, ends


def ends_of(centre: Array, low: Floats, high: Floats, reach: Floats | None, *, whole: bool) -> Floats:
    """The ends of intervals that reach so far, cut to what is certain, or what is certain; not a number: nothing."""
    if reach is not None:
        return ErrorBars(centre, None, low, high, whole).within(centre - reach, centre + reach, low, high)
    ends = np.column_stack([low, high])
    ends[np.isinf(ends)] = np.nan
    return ends


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

    def filed(
        self, files: Sequence[str], part: int, table: Columns, write: Callable[[list[Path]], None]
    ) -> tuple[list[tuple[str, int, str]], Columns, str | None]:
        """Let a part of files be written; its name, size and hash in each, its columns as read again, what is wrong.

        `table`: what the first two hold.
        """
        names = [names_of(name, part + 1)[part] for name in files]
        session().execute("SET threads = 1")  # one thread writes the same bytes whenever it does
        new = [Path(self.path, WRITING, f"{uuid4().hex}{Path(name).suffix}") for name in files]
        write(new)
        found = read_parquet(new[0])
        wrong = [
            *itertools.islice(other_entries(found, {name: _masked(each) for name, each in table.items()}, "a part"), 1),
            *itertools.islice(other_entries(found, read_csv(new[1]), names[1]), 1),
        ]
        described = [(name, path.stat().st_size, sha256_of(path)) for name, path in zip(names, new, strict=True)]
        for name, path in zip(names, new, strict=True):
            os.utime(path, (self.when, self.when))
            os.replace(path, Path(self.path, name))
        return described, found, next(iter(wrong), None)


class Written(NamedTuple):
    """Parts as they lie in their folder: name, size and hash of each file, the values of roots, and what is wrong."""

    files: list[tuple[str, int, str]]
    roots: Ints
    wrong: str | None


@dataclass(frozen=True, eq=False)
class Parts:
    """A table that lies in parts where it was drawn: size and hash of each file, and what is said of it.

    `noisy` and `records`: whether these lie beside it. `known`, `measured` and `own` tell what intervals are, and
    `ties` is the coin. `runs`: each part is a run of whole areas.
    """

    files: dict[str, tuple[int, str]]
    count: int
    noisy: bool
    records: bool
    known: bool
    measured: bool | None
    own: bool
    method: str
    ties: int | None
    runs: bool = False


def refuse_wrong(written: Iterable[Written]) -> dict[str, tuple[int, str]]:
    """The size and hash of every file; nothing is released where something is wrong."""
    files: dict[str, tuple[int, str]] = {}
    for each in written:
        if each.wrong is not None:
            raise Fault(f"nothing is released: {each.wrong}; this is a fault of holdfast")
        files |= {name: (size, found) for name, size, found in each.files}
    return files


class Drawn(NamedTuple):
    """Outputs that were made: places of their parents, how many are own, their bounds, and what was made of them."""

    parents: Ints
    own: int
    low: Ints
    high: Ints
    made: Finished

    @classmethod
    def of(cls, held: Held, made: Finished) -> Drawn:
        return cls(held.work.piece.parents, held.work.piece.own, *held.work.rules.bounds(held.truth), made)

    @classmethod
    def joined(cls, each: Sequence[Drawn]) -> Drawn:
        """What was made of several pieces, one after the other."""
        starts = np.cumsum([0, *(one.own for one in each)]).tolist()
        parents = [np.where(one.parents < 0, -1, one.parents + start) for one, start in zip(each, starts, strict=False)]
        low, high = (np.concatenate(side) for side in ([one.low for one in each], [one.high for one in each]))
        made = Finished(*(np.concatenate(column) for column in zip(*(one.made for one in each), strict=True)))
        return cls(np.concatenate(parents), starts[-1], low, high, made)


def write(group: Group, told: Any, folder: Folder, secret: bytes) -> Written:
    """Finish pieces and write them as a part; `told` is its number and what each piece is told to be finished."""
    part, rest = told
    drawn = Drawn.joined(by_piece(group, rest, lambda held, each: Drawn.of(held, finished(held, each, secret))))
    with together(drawn.own):
        return write_part(group.sheet(), drawn, folder, part, drawn.made.values[:0])


def write_part(sheet: Sheet, drawn: Drawn, folder: Folder, part: int, below: Ints) -> Written:
    """Write a part and check it; `below` are the values of the outputs behind its own, which are in other parts."""
    made = drawn.made
    values, ends = sheet.figures(made)
    own, named = drawn.own, {ROW: sheet.rows, **sheet.names}
    table = named | dict(zip(FIGURES, (values, *ends.T), strict=True)) | dict(sheet.labels)

    def write_files(new: list[Path]) -> None:
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

    files = folder.names(sheet.deviations is not None, sheet.records is not None)
    described, found, wrong = folder.filed(files, part, table, write_files)
    roots = np.flatnonzero(drawn.parents[:own] < 0)
    wrong = wrong or next(_wrong(sheet, drawn, found, below), None)
    return Written(described, np.asarray(found["value"])[roots], wrong)


def _wrong(sheet: Sheet, drawn: Drawn, found: Columns, below: Ints) -> Iterator[str]:
    """Say what does not hold in a part as it was read again."""
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


NO_TOTALS = (
    "engine: spark shares the categories of this table out among several tasks, none of which could write totals over "
    "them: use fewer categories, or leave out engine: spark"
)


@dataclass(frozen=True, eq=False)
class Sheets:
    """The sheet of a whole table, from which those of pieces are cut; `measured`: how reaches are known, if at all.

    `sums` are the rows behind the outputs, piece by piece, and `starts` where those of each piece begin, the top first.
    """

    names: Mapping[str, Any]
    labels: dict[str, dict[str, str]]
    low: Floats
    high: Floats
    reach: Floats | None
    own: bool
    whole: bool
    deviations: Floats | None
    measured: bool | None
    records: tuple[str, ...] | None
    outputs: int
    sums: Any
    known: Bools
    order: Ints
    starts: Ints

    @classmethod
    def of(cls, table: Table, pieces: Pieces, truth: Ints) -> Sheets:
        """Gather names, limits and reaches; of the truth only exact figures are looked at, which are published."""
        mechanism, n, more = pieces.mechanism, pieces.mechanism.query.n, table.derived
        assert mechanism.held is not None
        whole = bool(mechanism.base.law.integer and mechanism.base.unit == 1)
        low, high = certain(mechanism.held, truth, whole=whole)
        found, spread = pieces.errors
        sums = sparse.csr_array((0, n), dtype=np.int64) if more is None else sparse.csr_array(more.sums)
        reach = None
        if spread is not None:
            tail = (1 - CONFIDENCE) / 2
            reach = np.maximum(np.abs(spread.quantiles(tail)), np.abs(spread.quantiles(1 - tail)))
        names: Mapping[str, Any] = table.layout.columns
        if more is not None:
            names = {name: np.concatenate([texts, more.columns[name]]) for name, texts in names.items()}
            low, high = np.concatenate([low, sums @ low]), np.concatenate([high, sums @ high])
            if reach is not None and spread is not None and found is not None:
                reach = np.concatenate([reach, sum_reach(spread, found.noise, sums, CONFIDENCE)])
        owner = owners(pieces, sums)
        order = np.argsort(owner, kind="stable")
        starts = np.searchsorted(owner[order], np.arange(-1, pieces.cut.count + 1))
        known = np.concatenate([np.zeros(n, dtype=bool), table.standing.as_in_the_data[n:]])
        deviations = measured_deviations(mechanism) if pieces.noisy_are_published else None
        records = table.record_columns if table.layout.spec.written.records else None
        own, measured = found is mechanism or spread is None, None if spread is None else spread.measured
        ends = (names, table.layout.labels, low, high, reach)
        return cls(*ends, own, whole, deviations, measured, records, n, sums, known, order, starts)

    @property
    def around_estimates(self) -> bool:
        return self.reach is not None and not self.own

    def sheet(self, own: Ints, first: int, behind: int) -> Sheet:
        """The sheet of outputs that belong to some pieces, from the number of the first one, which may be TOP, on."""
        more = self.order[self.starts[first + 1] : self.starts[behind + 1]]
        part, sorter = self.sums[more], np.argsort(own) if more.size else np.arange(own.size)
        columns = sorter[np.searchsorted(own, part.indices, sorter=sorter)]  # every output of a sum is one of these
        sums = sparse.csr_array((part.data, columns, part.indptr), shape=(more.size, own.size))
        at = np.concatenate([own, self.outputs + more])
        reach = None if self.reach is None else self.reach[at]
        deviations = None if self.deviations is None else self.deviations[own]
        names = {name: texts[at] for name, texts in self.names.items()}
        told = self.low[at], self.high[at], reach, self.own, self.whole, deviations, self.records
        return Sheet(at, names, label_columns(self.labels, names), sums, self.known[at], *told)


def owners(pieces: Pieces, sums: Any) -> Ints:
    """The piece to which each of the rows behind the outputs belongs; refused where one belongs to several."""
    own = pieces.cut.piece_of(sums.indices)
    starts = sums.indptr[:-1]
    if not starts.size:
        return np.empty(0, dtype=np.int64)
    first, last = np.minimum.reduceat(own, starts), np.maximum.reduceat(own, starts)
    if (first != last).any():
        raise Refused(NO_TOTALS)
    return np.asarray(first)


def refuse_unwritten(table: Table, pieces: Pieces) -> None:
    """Refuse what tasks do not write."""
    if table.derived is not None:
        owners(pieces, sparse.csr_array(table.derived.sums))
    if any(name.lower() == ROW for name in table.layout.columns):
        raise Refused(f"engine: spark numbers the rows of its parts in a column {ROW!r}: rename the one of the table")
