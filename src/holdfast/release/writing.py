"""The files of released tables: figures with their intervals, noisy answers, records, and what every column is.

A table of a census that is too large for one file is written in parts: runs of whole areas, one after the other. Names
are made where they are written, so that memory holds those of a few parts, and noisy answers are named by the numbers
of their rows. What was written is read again by whoever verifies the release, part by part too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from holdfast.arrays import Floats
from holdfast.mechanism.published.error_bars import ErrorBars
from holdfast.mechanism.published.linear_estimates import measured_deviations, sum_intervals
from holdfast.mechanism.published.synthetic import cell_outputs, cells_of
from holdfast.mechanism.release import Release
from holdfast.noise.spread import MISSED
from holdfast.progress import Progress
from holdfast.release.certificate.certificate import Certificate
from holdfast.release.certifying import TableFiles, table_certificate
from holdfast.release.facts import CONFIDENCE, Interval, TableCertificate, Unprotected
from holdfast.release.pieces.parts import Parts
from holdfast.release.pieces.runs import Run
from holdfast.release.report.figures import SHOWN
from holdfast.release.standalone_verifier.reading import figure_columns, mean_of, names_of
from holdfast.release.storage.tables import (
    FIGURES,
    MEASUREMENTS,
    ROW,
    Columns,
    first_rows,
    in_unit,
    label_column,
    texts,
    write_csv,
    write_repeated,
    write_table,
)
from holdfast.release.table.area_names import AreaNames
from holdfast.release.table.public import label_columns
from holdfast.release.table.wording import percent
from holdfast.system import sync_folder
from holdfast.workers import in_threads

if TYPE_CHECKING:
    from holdfast.release.job.table import Table


#: What the columns that name a row are in the data dictionary: one of the domain, and the level.
NAMED_BY = (
    "a name of the public domain, as text; empty where the row is a sum over it; read it as text, never as a formula, "
    "also where it begins with =, +, - or @",
    "the level or margin that the row belongs to",
)
#: Why there are no error bars.
DEPENDS = (
    "how large the errors are depends on the data, so error bars would give something away. The columns low and high "
    "hold the limits that are certain, and are empty where there are none. The methods onto and given-then-onto have "
    "error bars"
)
#: The ends of the names of files.
ENDS = (".parquet", ".csv")


@dataclass(frozen=True, eq=False)
class Written:
    """A table that was drawn, and how it is written."""

    table: Table
    drawn: Release
    place: Path
    files: TableFiles

    @cached_property
    def values(self) -> npt.NDArray[Any]:
        return self.drawn.values if self.table.holding.holds.whole else self.drawn.values.astype(np.float64)

    @cached_property
    def bars(self) -> ErrorBars | None:
        """What the table tells about the truth; it is not kept with the release, since a census fills memory."""
        return self.drawn.find_error_bars(self.drawn.values, self.drawn.measurements)

    @cached_property
    def reach(self) -> Floats | None:
        """How far intervals reach to either side; None where they are what is certain, or nothing."""
        bars = self.bars
        return None if bars is None or bars.spread is None else bars.reach(CONFIDENCE)

    @property
    def certified(self) -> tuple[Table, str, Interval]:
        return self.table, self.drawn.method, self.interval

    @property
    def interval(self) -> Interval:
        bars = self.bars
        if bars is None or bars.spread is None:
            known = bars is not None and bool(np.isfinite(bars.low).any() or np.isfinite(bars.high).any())
            return interval_words(None, known=known, own=False)
        return interval_words(bars.spread.measured, known=True, own=bars.centre is self.drawn.values)

    def ends(self, rows: slice, confidence: float = CONFIDENCE) -> Floats:
        """The ends of the intervals of some outputs, not a number where nothing finite is known."""
        bars = self.bars
        if bars is None:
            return np.full((rows.stop - rows.start, 2), np.nan)
        found = np.column_stack([bars.low[rows], bars.high[rows]]).astype(np.float64)
        if self.reach is not None:
            reach = (self.reach if confidence == CONFIDENCE else bars.reach(confidence))[rows]
            centre = bars.centre[rows]
            return bars.within(centre - reach, centre + reach, *found.T)
        found[np.isinf(found)] = np.nan
        return found

    def sums(self, confidence: float) -> tuple[npt.NDArray[Any], Floats]:
        """The values of rows that are sums of outputs, and the ends of their intervals; exact figures are known."""
        found = self.table.derived
        assert found is not None
        sums = found.sums @ self.values
        sums[found.exact] = np.rint(sums[found.exact])
        ends = np.full((len(sums), 2), np.nan)
        known = self.table.standing.as_in_the_data[self.table.layout.query.n :]
        if self.bars is not None and not known.all():
            ends[~known] = sum_intervals(self.bars, found.sums[np.flatnonzero(~known)], confidence)
            ends[np.isinf(ends)] = np.nan
        ends[known] = sums[known, None]
        return sums, ends

    def paths(self, parquet: str | None, csv: str | None, part: int | None = None) -> list[Path]:
        names = (name for name in (parquet, csv) if name is not None)
        return [self.place / (name if part is None else names_of(name, part + 1)[part]) for name in names]

    def limits(self, confidence: float = CONFIDENCE) -> tuple[npt.NDArray[Any], Floats]:
        """The values of all rows, and the ends of their intervals."""
        values, ends = self.values, self.ends(slice(0, self.table.layout.query.n), confidence)
        if self.table.derived is None:
            return values, ends
        more, limits = self.sums(confidence)
        return np.concatenate([values, more]), np.concatenate([ends, limits])

    def figures(self) -> Columns:
        """The values and the ends of their intervals, in the unit of the column that is added up."""
        values, ends = self.limits()
        columns = (in_unit(each, self.unit) for each in (values, *ends.T))
        return dict(zip(figure_columns(self.figure), columns, strict=True))

    @property
    def figure(self) -> str:
        added = self.table.layout.asked.sum_of
        return FIGURES[0] if added is None else added.column

    @property
    def unit(self) -> Fraction:
        added = self.table.layout.asked.sum_of
        return Fraction(1) if added is None else added.unit

    def beside(self) -> None:
        """Write noisy answers and records, where they are asked for."""
        table, files = self.table, self.files
        if files.measurements is not None:  # tidy, and with the counts last for other estimators
            self.noisy()
        if files.records is not None:
            counts, outputs = cells_of(table.layout.query, self.drawn.values), cell_outputs(table.layout.query)
            record = {column: table.layout.columns[column][outputs] for column in table.record_columns}
            write_repeated(record, counts, *self.paths(files.records, files.records_csv))

    def noisy(self) -> None:
        """Write the draw that may be published beside the table, of those rows that were measured."""
        assert self.drawn.measurements is not None
        spread = measured_deviations(self.table.mechanism)
        kept = np.flatnonzero(np.isfinite(spread))
        answers, spread = (in_unit(each[kept], self.unit) for each in (self.drawn.measurements, spread))
        names = {name: texts[kept] for name, texts in self.table.layout.columns.items()}
        parquet, csv = self.paths(self.files.measurements, self.files.measurements_csv)
        write_table({**names, **dict(zip(MEASUREMENTS, (answers, spread), strict=True))}, parquet)
        write_csv({**names, MEASUREMENTS[1]: spread, "count": answers}, csv)

    def part(self, names: AreaNames, number: int) -> None:
        (first, last), files, table = names.parts[number], self.files, self.table
        rows, noisy = slice(first, last), None
        if files.measurements is not None:
            assert self.drawn.measurements is not None
            noisy = self.drawn.measurements[rows], measured_deviations(table.mechanism, rows)
        records = None if files.records is None else table.record_columns
        named, ends = names.of(first, last), self.ends(rows)
        run = Run(first, named, self.values[rows], ends, table.layout.labels, records, noisy)
        run.write([path for name in self.listed for path in self.paths(name, None, number)])

    @property
    def listed(self) -> list[str]:
        files = self.files
        all_files = (
            files.parquet,
            files.csv,
            files.measurements,
            files.measurements_csv,
            files.records,
            files.records_csv,
        )
        return [name for name in all_files if name is not None]

    def in_parts(self, names: AreaNames) -> None:
        files = self.files
        folders = [self.place / name for name in self.listed]
        for folder in folders:
            folder.mkdir(exist_ok=True)
        _ = self.reach  # found once, and not by every thread
        with Progress("writing", files.parts) as progress:

            def write(some: slice) -> None:
                for number in range(some.start, some.stop):
                    self.part(names, number)
                    progress.advance(1)

            in_threads(write, files.parts)
        for folder in folders:
            sync_folder(folder)


def write_table_files(
    drawn: Sequence[tuple[Table, Release]], place: Path, prefix: str, determined: Mapping[str, Sequence[Unprotected]]
) -> list[tuple[TableCertificate, Columns]]:
    """Write the files of a table with all its figures; return what is certified about each, and its columns.

    Those of a table in parts are the columns of its first rows.
    """
    written = []
    for table, made in drawn:
        names, also = table.layout.in_parts, (made.measurements is not None, table.layout.spec.written.records)
        figure = "" if table.layout.asked.sum_of is None else f"{table.layout.asked.sum_of.column}-"
        parts = 0 if names is None else len(names.parts)
        files = _files(prefix, *also, figure, parts=parts, runs=names is not None)
        written.append(Written(table, made, place, files))
    first = written[0]
    if first.table.layout.in_parts is not None:
        first.in_parts(first.table.layout.in_parts)
        all_columns = [_shown(first.table, place, first.files, 1)]
    else:
        all_columns = _together(written)
    return [
        (table_certificate(*each.certified, each.files, determined.get(each.table.name, ()), each.drawn.ties), columns)
        for each, columns in zip(written, all_columns, strict=True)
    ]


def means(counted: Written, summed: Written) -> Columns:
    """The mean of a column in every row, with ends between which it lies; empty where there may be no record.

    Sum and count have noise of their own: each is within its ends but for half of what may be missed, so both are. No
    mean lies beyond the bounds of what is added.
    """
    added, half = summed.table.layout.asked.sum_of, 1 - (1 - CONFIDENCE) / 2
    assert added is not None
    (sums, above), (counts, below) = (each.limits(half) for each in (summed, counted))
    known = (counts > 0) & (below[:, 0] > 0) & np.isfinite(np.column_stack([above, below])).all(axis=1)
    above, below = np.where(known[:, None], above, 1.0), np.where(known[:, None], below, 1.0)
    low = above[:, 0] / np.where(above[:, 0] < 0, below[:, 0], below[:, 1])
    high = above[:, 1] / np.where(above[:, 1] < 0, below[:, 1], below[:, 0])
    ends = (np.clip(end, *added.ends) for end in (low, high))
    columns = (in_unit(each, summed.unit) for each in (sums / np.where(known, counts, 1), *ends))
    named = zip(figure_columns(mean_of(summed.figure)), columns, strict=True)
    return {name: np.where(known, column, np.nan) for name, column in named}


def _together(written: Sequence[Written]) -> list[Columns]:
    """Write one table with the figures of several, and what lies beside it; return the columns of each."""
    first = written[0]
    names, derived = dict(first.table.layout.columns), first.table.derived
    if derived is not None:
        names = {name: np.concatenate([texts, derived.columns[name]]) for name, texts in names.items()}
    own, labels = [each.figures() for each in written], label_columns(first.table.layout.labels, names)
    found = {name: column for each in own for name, column in each.items()}
    for each in written[1:]:
        if mean_of(each.figure) in each.table.layout.asked.written:
            found |= means(written[0], each)
    figures = {name: found[name] for figure in first.table.layout.asked.written for name in figure_columns(figure)}
    write_table(names | figures | labels, *first.paths(first.files.parquet, first.files.csv))
    for each in written:
        each.beside()
    return [names | dict(zip(FIGURES, each.values(), strict=True)) | labels for each in own]


def describe_parts(
    table: Table, drawn: Parts, place: Path, prefix: str, determined: Sequence[Unprotected]
) -> tuple[TableCertificate, Columns]:
    """Say what is certified about a table that lies in parts already, and return columns of its first rows."""
    files = _files(prefix, drawn.noisy, drawn.records, parts=drawn.count, runs=drawn.runs)
    interval = interval_words(drawn.measured, known=drawn.known, own=drawn.own)
    certificate = table_certificate(table, drawn.method, interval, files, determined, drawn.ties)
    return certificate, _shown(table, place, files, drawn.count)


def _files(
    prefix: str, noisy: bool, records: bool, figure: str = "", *, parts: int = 0, runs: bool = False
) -> TableFiles:
    there = {"table": True, f"{figure}measurements": noisy, "records": records}
    names = [f"{prefix}{name}{end}" if is_there else None for name, is_there in there.items() for end in ENDS]
    parquet, csv, *others = names
    assert parquet is not None
    assert csv is not None
    return TableFiles(parquet, csv, others[0], others[1], others[2], others[3], parts, runs)


def _shown(table: Table, place: Path, files: TableFiles, parts: int) -> Columns:
    columns = first_rows([place / name for name in names_of(files.parquet, parts)], SHOWN)
    return columns | {name: texts(columns[name]) for name in table.layout.columns}


def data_package(certificate: Certificate) -> str:
    """Describe every column of the CSV files (Frictionless Data Package): names are texts, so that codes keep zeros."""
    resources, described = [], set[str]()
    for table in certificate.tables:
        names = {column: ("string", NAMED_BY[column == "level"]) for column in table.columns}
        number_of = {ROW: ("integer", "the number of the row in the table, from 0")} if table.parts else {}
        names = number_of | names
        figures: dict[str, tuple[str, str]] = {}
        if table.csv not in described:
            for each in (other for other in certificate.tables if other.csv == table.csv):
                figures |= _figures(each)
            figures = {name: figures[name] for figure in table.figures for name in figure_columns(figure)}
        figures |= {label_column(name): ("string", f"what the code in {name} is called") for name in table.labels}
        if table.csv not in described:
            resources.append(_resource(table.csv, table.parts, f"{table.name}: released figures", names | figures))
        described.add(table.csv)
        if table.measurements_csv is not None:
            noisy = {
                "standard_deviation": ("number", f"standard deviation of the noise in count{_unit(table)}"),
                "count": ("number", f"the noisy answer behind the table; it can be negative{_unit(table)}"),
            }
            named = number_of if table.runs else names
            resources.append(
                _resource(table.measurements_csv, table.parts, f"{table.name}: noisy answers", named | noisy)
            )
        if table.records_csv is not None:
            own = {column: kind for column, kind in names.items() if column in table.record_columns}
            resources.append(_resource(table.records_csv, table.parts, f"{table.name}: synthetic records", own))
    found = {
        "$schema": "https://datapackage.org/profiles/2.0/datapackage.json",
        "name": f"release-{certificate.release}",
        "title": certificate.title,
        "description": str(certificate.statements[0]),
        "created": f"{certificate.date}T00:00:00Z",
        "resources": resources,
    }
    return json.dumps(found, ensure_ascii=False, indent=1) + "\n"


def _figures(table: TableCertificate) -> dict[str, tuple[str, str]]:
    """The columns of a table's figures, means among them: their kinds and what they are, in which unit."""
    value, low, high = figure_columns(table.figure)
    kind = "integer" if table.holds.whole and table.unit.denominator == 1 else "number"
    share = f"{percent(table.interval.confidence)} interval: {table.interval.sentence}"
    what = "figure" if table.sum_of is None else f"sum of {value}"
    found = {
        value: (kind, f"the released {what}{_unit(table)}"),
        low: ("number", f"lower end of the {share}"),
        high: ("number", "upper end of the same interval"),
    }
    mean = figure_columns(mean_of(value))
    told = (
        f"the released sum of {value} divided by the released count; empty where there may be no record",
        f"lower end of an interval that covers the true mean with at least {percent(table.interval.confidence)}",
        "upper end of the same interval",
    )
    return found | {name: ("number", words) for name, words in zip(mean, told, strict=True)}


def _unit(table: TableCertificate) -> str:
    """Of a sum: in which unit it is, as far as a spec tells."""
    of = table.sum_of
    return "" if of is None else f", in the unit of the column {of.column}, in steps of {in_unit(1, of.unit)}"


def _resource(path: str, parts: int, title: str, columns: dict[str, tuple[str, str]]) -> dict[str, Any]:
    fields = [{"name": name, "type": kind, "description": words} for name, (kind, words) in columns.items()]
    return {
        "name": path.removesuffix(".csv").lower(),
        "title": title,
        "path": names_of(path, parts) if parts else path,
        "format": "csv",
        "mediatype": "text/csv",
        "encoding": "utf-8",
        "schema": {"fields": fields, "missingValues": [""]},
    }


def interval_words(measured: bool | None, *, known: bool, own: bool) -> Interval:
    """Say what intervals are: by a law that was measured or not, None: by what is certain, if anything is `known`."""
    if measured is None:
        return Interval(confidence=CONFIDENCE, basis="bounds" if known else None, sentence=DEPENDS)
    sentence = _sentence(measured=measured, own=own)
    return Interval(confidence=CONFIDENCE, basis="simulation" if measured else "law", sentence=sentence)


def _sentence(*, measured: bool, own: bool) -> str:
    """Say what intervals mean; `own`: they stand around the values themselves."""
    covers = f"each covers its true value with at least {percent(CONFIDENCE)} probability"
    by = ", by the law of the noise"
    if measured:
        by = (
            ". This was measured on simulated noise, and every interval is widened by the error of the measurement, "
            f"which is larger than that in at most one of {1 / MISSED:,.0f} cases"
        )
    if own:
        return f"{covers}{by}. Intervals are cut to what is certain"
    return (
        f"{covers}{by}. Intervals are computed from the noisy answers behind the table and cut to what is certain. "
        "A value that was moved to keep the bounds can lie outside its interval: the interval tells where the truth "
        "lies, the value is for sums"
    )


# --- the rule book as one file, which is put into every release: its modules behind each other, without their imports

NAME = "verify.py"
_PARTS = ("reading", "ed25519", "sums", "table", "facts", "verify")
_OWN = re.compile(r"^from holdfast\.\S+ import (\([^)]*\)|[^(\n]*)\n", re.MULTILINE)
_FUTURE = "from __future__ import annotations\n"


@cache
def one_file() -> str:
    """Return the file that is put into every release."""
    room = resources.files("holdfast.release.standalone_verifier")
    texts = [room.joinpath(f"{part}.py").read_text(encoding="utf-8") for part in _PARTS]
    head, _, body = texts[-1].partition(_FUTURE)
    parts = [_OWN.sub("", text.partition(_FUTURE)[2]) for text in texts[:-1]]
    return head + _FUTURE + "".join([*parts, _OWN.sub("", body)])
