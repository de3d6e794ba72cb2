"""The parts of a census: the figures of every stretch, level by level, written and checked by whoever made them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from holdfast.arrays import Array, Floats, Ints
from holdfast.mechanism.published.error_bars import certain
from holdfast.mechanism.published.linear_estimates import input_is_free, known_errors
from holdfast.release.facts import CONFIDENCE
from holdfast.release.job.table import Table
from holdfast.release.pieces.areas import AreaPieces, Census, Given, Made, Part, finished
from holdfast.release.pieces.cut import Group, alike
from holdfast.release.pieces.parts import Folder, Written, ends_of
from holdfast.release.pieces.runs import Run
from holdfast.release.storage.tables import Coded, Texts
from holdfast.release.table.area_cut import AreaCut
from holdfast.release.table.area_names import AreaNames


@dataclass(frozen=True, eq=False)
class Printed:
    """How figures are written everywhere: names of the axes' values, labels, columns of synthetic records, if any.

    `own`: intervals stand around the values. `noisy`: noisy answers are written beside the table.
    """

    of_axes: Sequence[Texts]
    labels: Mapping[str, Mapping[str, str]]
    records: tuple[str, ...] | None
    own: bool
    whole: bool
    noisy: bool


class Bars(NamedTuple):
    """Limits that are certain, and how far intervals reach, of some figures; None: they are these limits."""

    low: Floats
    high: Floats
    reach: Floats | None

    def at(self, rows: Array | slice) -> Bars:
        return Bars(self.low[rows], self.high[rows], None if self.reach is None else self.reach[rows])


class AreaSheet(NamedTuple):
    """What is public about the figures of a stretch: names above its roots, level by level, limits, and its parts.

    Of every part its number, its first row in the table, and where it begins and ends among the figures.
    """

    above: Mapping[str, Texts]
    bars: Bars
    parts: list[tuple[int, int, int, int]]


@dataclass(frozen=True, eq=False)
class AreaSheets:
    """The same of all stretches; `measured` is how reaches are known, if at all."""

    names: AreaNames
    cut: AreaCut
    bars: Bars
    measured: bool | None

    @property
    def known(self) -> bool:
        return bool(np.isfinite(self.bars.low).any() or np.isfinite(self.bars.high).any())

    @cached_property
    def _above(self) -> dict[str, Texts]:
        """The names above every area at the cut, level by level."""
        tree = self.cut.query.hierarchy
        here, found = tree.nodes_at(self.cut.depth), dict[str, Texts]()
        for level in tree.levels[: self.cut.depth][::-1]:
            here = tree.parents[here]
            found[level] = tree.names[here]
        return {level: found[level] for level in tree.levels[: self.cut.depth]}

    def sheet(self, stretch: int) -> AreaSheet:
        first, behind = self.cut.ends[stretch : stretch + 2]
        runs, parts, begin = [level[stretch] for level in self.cut.runs], [], 0
        for low, high in runs:
            if low < high:
                parts.append((self.names.parts.index((low, high)), low, begin, begin + high - low))
            begin += high - low
        rows = np.concatenate([np.arange(*run) for run in runs])
        cut = self.bars.at(rows)
        bars = Bars(alike(cut.low), alike(cut.high), cut.reach)
        return AreaSheet({level: texts[first:behind] for level, texts in self._above.items()}, bars, parts)


def printed(table: Table, pieces: AreaPieces, truth: Ints) -> tuple[Printed, AreaSheets]:
    """Gather how a table is written; of the truth only exact figures are looked at, which are published."""
    mechanism, names = pieces.mechanism, table.layout.in_parts
    assert names is not None
    assert mechanism.held is not None
    whole = bool(mechanism.base.law.integer and mechanism.base.unit == 1)
    noisy = input_is_free(mechanism, (mechanism.guarantee, *mechanism.guarantees[1:]))
    found, spread = known_errors(mechanism, published=noisy)
    tail, reach = (1 - CONFIDENCE) / 2, None
    if spread is not None:
        reach = np.maximum(np.abs(spread.quantiles(tail)), np.abs(spread.quantiles(1 - tail)))
    bars = Bars(*certain(mechanism.held, truth, whole=whole), reach)
    records = table.record_columns if table.layout.spec.written.records else None
    own = found is mechanism or spread is None
    public = Printed(names.of_axes, table.layout.labels, records, own, whole, noisy)
    return public, AreaSheets(names, pieces.cut, bars, None if spread is None else spread.measured)


def write(group: Group, given: Given, census: Census, printed: Printed, folder: Folder, secret: bytes) -> Written:
    """Finish a stretch and write its parts."""
    part, sheet = Part(census, group.work), group.sheet()
    made = finished(part, given, secret)
    root = np.arange(part.tree.n)
    while (part.tree.parents[root] >= 0).any():
        root = np.where(part.tree.parents[root] >= 0, part.tree.parents[root], root)
    names = AreaNames(part.asked, printed.of_axes, {level: texts[root] for level, texts in sheet.above.items()})
    wrong = part.wrong(made.cells, given.cells)
    listed = [(number, row, slice(begin, end), names.of(begin, end)) for number, row, begin, end in sheet.parts]
    return _written(part, made, listed, sheet.bars, printed, folder, wrong)


def write_top(part: Part, made: Made, printed: Printed, sheets: AreaSheets, folder: Folder) -> Written:
    """Write the parts of everything above the cut."""
    n = part.asked.n
    runs = [(number, run) for number, run in enumerate(sheets.names.parts) if run[1] <= n]
    listed = [(number, first, slice(first, last), sheets.names.of(first, last)) for number, (first, last) in runs]
    return _written(part, made, listed, sheets.bars.at(slice(0, n)), printed, folder, part.wrong(made.cells, None))


def _written(
    part: Part,
    made: Made,
    listed: Sequence[tuple[int, int, slice, Mapping[str, Coded]]],
    bars: Bars,
    printed: Printed,
    folder: Folder,
    wrong: Iterator[str],
) -> Written:
    """Write runs of rows, each a part: its number, its first row, where it lies in the part, and its names."""
    files, around = list[tuple[str, int, str]](), made.values if printed.own else made.centre
    broken, named = next(wrong, None), folder.names(printed.noisy, printed.records is not None)
    deviations = np.sqrt(np.asarray(part.law.variances)) if printed.noisy and part.asked.n else np.zeros(0)
    for number, first, rows, names in listed:
        ends = ends_of(np.asarray(around)[rows], *bars.at(rows), whole=printed.whole)
        noisy = (made.noisy[rows], deviations[rows]) if printed.noisy else None
        run = Run(first, names, made.values[rows], ends, printed.labels, printed.records, noisy)
        described, _, other = folder.filed(named, number, run.columns, run.write)
        files, broken = files + described, broken or other
    return Written(files, made.values[:0], broken)
