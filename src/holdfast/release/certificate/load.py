"""Read a release back from its folder, and compute with it what an analyst asks, from the published files alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Refused, listed, one_of, path_of, probability, whole
from holdfast.arrays import Floats
from holdfast.domains.data_frames import frame_of
from holdfast.pictures import Picture, chosen_rows, points
from holdfast.privacy import Guarantee
from holdfast.randomness import Stream, seeded
from holdfast.release.certificate.certificate import Certificate, read_certificate
from holdfast.release.certificate.comparing import (
    Ends,
    Estimate,
    Summed,
    difference,
    places,
    ratio,
    ratio_apart,
    within,
)
from holdfast.release.certificate.naming import Where, record_names, standing_of, sums_of, weights_of
from holdfast.release.certificate.verify import verify
from holdfast.release.facts import TableCertificate
from holdfast.release.standalone_verifier.reading import figure_columns
from holdfast.release.storage.tables import (
    FIGURES,
    MEASUREMENTS,
    ROW,
    Named,
    PartColumns,
    in_steps,
    in_unit,
    label_column,
    missing,
    read_table,
    rows_named,
    texts,
)
from holdfast.release.table.wording import percent

if TYPE_CHECKING:  # whoever only reads a release needs no mechanism
    from holdfast.mechanism.mechanism import Mechanism
    from holdfast.mechanism.published.error_bars import ErrorBars


#: What to do instead of comparing figures as if their noise were independent.
SHARED_NOISE = "use estimate() with weights, ratio() without of, or load() the folder above, if they are of a series"


@dataclass(frozen=True, eq=False, repr=False)
class LoadedTable:
    """One table of a release, and what can be computed from it; `noisy`: the noisy answers published beside it."""

    certificate: TableCertificate
    columns: Named
    release: str
    noisy: Named | None = None
    _studies: dict[int, Floats | None] = field(default_factory=dict, init=False)

    def __repr__(self) -> str:
        table = self.certificate
        bars = "with" if table.interval.basis in ("law", "simulation") else "without"
        return f"<Table {table.name!r}: {table.kind}, {table.rows:,} figures {bars} error bars, made by {table.method}>"

    def _repr_html_(self) -> str:
        from holdfast.privacy.odds import FIRST, figures_card  # only notebooks need it

        table = self.certificate
        told = {"made by": table.method, "intervals": table.interval.sentence}
        shown = _shown(self, np.arange(min(FIRST, table.rows)))
        return figures_card(f"{table.name}, {table.rows:,} figures", shown, table.rows, self.guarantee, told)

    def plot(self, level: str | None = None, most: int = 30) -> Picture:
        """Draw the first `most` figures of a level with their intervals.

        Without a level all figures, where they are at most `most`; otherwise the finest level of at most so many. The
        picture says what is drawn.
        """
        if level is not None:
            one_of("level", level, self.certificate.levels)
        named = np.asarray(self.columns["level"]).astype(str)
        levels = {name: np.flatnonzero(named == name) for name in self.certificate.levels}
        rows, drawn, beside = chosen_rows(levels, level, whole("most", most, at_least=1))
        words = f"{drawn}value, and its {percent(self.certificate.interval.confidence)} interval"
        return points(_shown(self, np.asarray(rows)), words, beside)

    @property
    def values(self) -> npt.NDArray[Any]:
        """The released values in the order of the file."""
        return np.asarray(self.columns["value"])

    @cached_property
    def steps(self) -> npt.NDArray[Any]:
        """The values as the mechanism makes them: of sums, how many steps they are."""
        return in_steps(self.values, self.certificate.unit, whole=self.certificate.holds.whole)

    @property
    def names(self) -> Mapping[str, npt.NDArray[Any]]:
        """The columns that name every row."""
        return {name: self.columns[name] for name in self.certificate.columns}

    @property
    def standing(self) -> npt.NDArray[np.object_]:
        """How every figure is known: published exactly, follows from exact figures, by definition, or noisy."""
        return standing_of(self.certificate)

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """Every statement that holds for this table alone, the one that the budget counts first."""
        return tuple(self.certificate.statements)

    @property
    def guarantee(self) -> Guarantee:
        """The statement about this table alone that the budget counts."""
        return self.guarantees[0]

    @cached_property
    def mechanism(self) -> Mechanism:
        """What the table was drawn from, built again from the certificate; it holds nothing about the data."""
        from holdfast.release.certificate.rebuilt import rebuilt

        return rebuilt(self.certificate, self.columns)

    @cached_property
    def error_bars(self) -> ErrorBars:
        """The law of the errors, what it is about, and what is certain."""
        return self.mechanism.error_bars(self.steps[: self.certificate.outputs], self._draw)

    @cached_property
    def sums(self) -> Any:
        """What adds up the outputs to the rows behind them, totals over categories and exact margins."""
        return sums_of(self.certificate, self.columns)

    @cached_property
    def _draw(self) -> npt.NDArray[Any] | None:
        if self.noisy is None:
            return None
        rows = self.noisy[ROW] if ROW in self.noisy else rows_named(self.noisy, self.columns, self.certificate.columns)
        whole = all(noise.whole for level in self.certificate.measured for noise in level.noise)
        answers = in_steps(np.asarray(self.noisy["value"]), self.certificate.unit, whole=whole)
        draw = np.zeros(self.certificate.outputs, dtype=answers.dtype)
        draw[rows] = answers
        return draw

    def interval(self, confidence: float = 0.95) -> npt.NDArray[np.float64]:
        """Return lower and upper ends, (n, 2), that cover each true figure with at least the probability `confidence`.

        Infinite where nothing is known; see `Release.interval` for what they stand around.
        """
        probability("confidence", confidence)
        if confidence != self.certificate.interval.confidence:
            from holdfast.mechanism.published.linear_estimates import sum_intervals

            own = self.error_bars.interval(confidence)
            more = sum_intervals(self.error_bars, self.sums, confidence)
            exact = np.ma.filled(self.columns["low"] == self.columns["high"], False)[len(own) :]
            more[exact] = self.steps[len(own) :][exact, None]
            return np.asarray(in_unit(np.concatenate([own, more]), self.certificate.unit))
        both = [np.ma.asarray(self.columns[end], dtype=np.float64) for end in ("low", "high")]
        return np.column_stack([end.filled(none) for end, none in zip(both, (-np.inf, np.inf), strict=True)])

    def errors(self, size: int, rng: Stream | None = None) -> npt.NDArray[Any]:
        """Draw simulated errors of all figures, (size, n), for any other statistic: truth is `centre` minus an error.

        Reproducible unless a stream `rng` is given. Refused where the law of the errors depends on the data.
        """
        if self.error_bars.noise is None:
            raise Refused(f"errors cannot be simulated: {self.certificate.interval.sentence}")
        return np.asarray(in_unit(self.drawn(size, rng), self.certificate.unit))

    def drawn(self, size: int, rng: Stream | None) -> npt.NDArray[Any]:
        """Simulated errors as the mechanism makes them: of sums, in steps."""
        assert self.error_bars.noise is not None
        return self.error_bars.noise(whole("size", size, at_least=1), seeded(0) if rng is None else rng)

    @property
    def centre(self) -> npt.NDArray[Any]:
        """The figures that `errors` are about: the values, or the noisy answers behind them made to add up.

        The first `certificate.outputs` rows of the file; those behind them are sums of these."""
        return np.asarray(in_unit(self.error_bars.centre, self.certificate.unit))

    def estimate(
        self, where: Where | None = None, weights: npt.ArrayLike | None = None, confidence: float = 0.95
    ) -> Estimate:
        """Estimate a sum of true figures.

        Args:
            where: which ones, by names: {"borough": "North"}; by labels: {"zone_label": "Astoria"}.
            weights: instead of names, a number for every row of the table.
            confidence: the ends cover the truth with at least this probability.
        """
        total = self._known(weights_of(self.certificate, self.columns, where, weights), confidence)
        found = Estimate(total.value, total.error, *total.interval(_tail(confidence)), confidence, total.unbiased)
        return found.times(self.certificate.unit)

    def ratio(
        self,
        where: Where | npt.ArrayLike,
        to: Where | npt.ArrayLike,
        confidence: float = 0.95,
        of: LoadedTable | None = None,
    ) -> Estimate:
        """Estimate the ratio of two sums, `where` over `to`, each by names or by weights, with ends of `confidence`.

        The ends are infinite where the lower sum may be 0. `of`: the table of another figure or release in which `to`
        is summed, such as the counts that a mean divides by; None: this one.
        """
        if of is not None and of is not self:
            return _ratio_apart(self, where, to, of, confidence)
        above, below = (self._known(self._weights(each), confidence) for each in (where, to))
        error, ends = ratio(above, below, _tail(confidence))
        if above.certain[0] >= 0 and _certain(self, below.weights - above.weights)[0] >= 0:
            ends = within(ends, (0.0, 1.0))  # a part of the whole
        value = above.value / below.value if below.value else math.nan
        return Estimate(value, error, *ends, confidence)

    def difference(self, other: LoadedTable, where: Where | npt.ArrayLike, confidence: float = 0.95) -> Estimate:
        """Estimate how much larger the sum `where` is here than in `other`, a table of another release.

        Their noise is independent. The ends cover the truth with at least the probability `confidence`.
        """
        if not isinstance(other, LoadedTable):
            raise Refused(f"other must be a table of a loaded release, found {type(other).__name__}")
        if (self.release, self.certificate.name) == (other.release, other.certificate.name):
            raise Refused(f"both are one table of one release, which share their noise: {SHARED_NOISE}")
        if (self.certificate.figure, self.certificate.unit) != (other.certificate.figure, other.certificate.unit):
            raise Refused("the two tables add up different things: compare counts with counts, and sums with theirs")
        if self.certificate.domain_hash != other.certificate.domain_hash:
            raise Refused("the two tables have different domains: compare tables with the same rows")
        asked = self._weights(where)
        here, there = self._known(asked, confidence), other._known(asked, confidence, seed=1)
        error, ends = difference(here, there, _tail(confidence))
        centre = None if here.unbiased is None or there.unbiased is None else here.unbiased - there.unbiased
        found = Estimate(here.value - there.value, error, *ends, confidence, centre)
        return found.times(self.certificate.unit)

    def rank(self, wheres: Sequence[Where | npt.ArrayLike], confidence: float = 0.95) -> list[Estimate]:
        """Estimate the place of each of the sums `wheres`, by names or by weights, among them; 1 is the largest.

        All places lie within their ends together with at least the probability `confidence` (Bonferroni over pairs).
        """
        asked = [self._weights(where) for where in listed("wheres", wheres, "a list of sums")]

        values = [float(each @ self.steps) for each in asked]
        return places(values, lambda i, j, p: self._known(asked[i] - asked[j], p).interval(_tail(p)), confidence)

    def _known(self, asked: Floats, confidence: float, seed: int = 0) -> Summed:
        """What is known of a sum of rows with these weights; a published figure has the interval on file."""
        chosen, used = self._of_outputs(asked), np.flatnonzero(asked)
        on_file = confidence == self.certificate.interval.confidence

        def own() -> Ends:
            ends = in_steps(self.interval(confidence)[used[0]], self.certificate.unit, whole=False)
            low, high = sorted((asked[used[0]] * ends).tolist())
            return low, high

        return Summed(
            float(asked @ self.steps),
            chosen,
            self.error_bars,
            _certain(self, chosen),
            lambda: self._study(seed),
            own if used.size == 1 and (on_file or self.error_bars.spread is None) else None,
        )

    def _weights(self, where: Where | npt.ArrayLike) -> Floats:
        given = (where, None) if isinstance(where, Mapping) else (None, where)
        return weights_of(self.certificate, self.columns, *given)

    def _of_outputs(self, weights: Floats) -> Floats:
        """Weights of all rows as weights of the outputs, which the rows behind them are sums of."""
        return np.asarray(weights[: self.certificate.outputs] + self.sums.T @ weights[self.certificate.outputs :])

    def _study(self, seed: int) -> Floats | None:
        """Simulated errors, kept; None where the table has too many figures."""
        if seed not in self._studies:
            from holdfast.noise.spread import study_size

            size = study_size(self.certificate.outputs)
            self._studies[seed] = None if size is None else self.drawn(size, seeded(seed)).astype(np.float64)
        return self._studies[seed]

    def frame(self, backend: str | None = None) -> Any:
        """Return a data frame with the columns of the file; `backend` is "polars", "pandas" or "pyarrow"."""
        return frame_of({name: _plain(column) for name, column in self.columns.items()}, backend)

    to_frame = frame

    def records(self, backend: str | None = None) -> Any:
        """Return synthetic records, a frame of `backend`: one row for every one that the table counts, cell by cell."""
        from holdfast.mechanism.published.synthetic import cell_outputs, cells_of

        query = self.mechanism.query
        counts, outputs = cells_of(query, self.values[: self.certificate.outputs]), cell_outputs(query)
        kept = record_names(self.certificate, self.columns)
        columns = {name: np.repeat(texts(self.columns[name])[outputs], counts).tolist() for name in kept}
        return frame_of(columns, backend)


def _shown(table: LoadedTable, rows: npt.NDArray[np.intp]) -> list[tuple[str, float, float, float]]:
    """Name, value and interval of some figures."""
    said = [label_column(name) if name in table.certificate.labels else name for name in table.certificate.columns]
    names = zip(
        *(("" if each is None else str(each) for each in table.columns[name][rows].tolist()) for name in said[1:]),
        strict=True,
    )
    ends = table.interval(table.certificate.interval.confidence)[rows].tolist()
    listed = [" / ".join(filter(None, parts)) or "total" for parts in names]
    return [
        (name, float(value), low, high)
        for name, value, (low, high) in zip(listed, table.values[rows].tolist(), ends, strict=True)
    ]


def _certain(table: LoadedTable, weights: Floats) -> tuple[float, float]:
    """Limits of a weighted sum that are certain; where parents are the sums of their leaves, by these too."""
    found, tree = table.error_bars.certain(weights), table.mechanism.query.tree
    if tree is None or not table.certificate.holds.consistent:
        return found
    below = weights.reshape(tree.n, -1).copy()
    for depth in range(1, len(tree.levels)):
        nodes = tree.order[tree.level_start[depth] : tree.level_start[depth + 1]]
        below[nodes] += below[tree.parents[nodes]]
    below[~tree.is_leaf] = 0
    leaves = table.error_bars.certain(below.ravel())
    return max(found[0], leaves[0]), min(found[1], leaves[1])


def _ratio_apart(
    here: LoadedTable, where: Where | npt.ArrayLike, to: Where | npt.ArrayLike, of: LoadedTable, confidence: float
) -> Estimate:
    if not isinstance(of, LoadedTable):
        raise Refused(f"of must be a table of a loaded release, found {type(of).__name__}")
    if (here.release, here.certificate.name) == (of.release, of.certificate.name):
        raise Refused(f"both are one table of one release, which share their noise: {SHARED_NOISE}")
    above, below = here._known(here._weights(where), confidence), of._known(of._weights(to), confidence, seed=1)
    value = above.value / below.value if below.value else math.nan
    error, ends = ratio_apart(above, below, _tail(confidence))
    return Estimate(value, error, *ends, confidence).times(here.certificate.unit / of.certificate.unit)


@dataclass(frozen=True, eq=False, repr=False)
class LoadedRelease:
    """A release as it was published: the certificate and the tables by name."""

    folder: Path
    certificate: Certificate = field(repr=False)

    @cached_property
    def tables(self) -> Mapping[str, LoadedTable]:
        """The tables by name, read from the folder when first asked for."""
        return {table.name: self.read(table) for table in self.certificate.tables}

    def read(self, table: TableCertificate) -> LoadedTable:
        if table.runs:
            return self._in_runs(table)
        noisy = None if table.measurements is None else read_table(self.folder, table.measurements, table.parts)
        found = read_table(self.folder, table.parquet, table.parts)
        own = zip(FIGURES, figure_columns(table.figure), strict=True)
        labels = [label_column(name) for name in table.labels]
        columns = {name: found[name] for name in table.columns} | {name: found[its] for name, its in own}
        columns |= {name: found[name] for name in labels}
        return LoadedTable(table, columns, self.certificate.release, noisy)

    def _in_runs(self, table: TableCertificate) -> LoadedTable:
        """A table in runs: its columns are read one by one, when they are asked for."""
        named = [*table.columns, *FIGURES, *map(label_column, table.labels)]
        columns = PartColumns(self.folder, table.parquet, table.parts, named)
        if table.measurements is None:
            return LoadedTable(table, columns, self.certificate.release)
        noisy = PartColumns(self.folder, table.measurements, table.parts, [ROW, *MEASUREMENTS])
        return LoadedTable(table, columns, self.certificate.release, noisy)

    def __repr__(self) -> str:
        names = ", ".join(f"{table.name} ({table.rows:,} figures)" for table in self.certificate.tables)
        return f"<Release {self.certificate.title!r}: {names}; print .guarantee for what it promises>"

    def _repr_html_(self) -> str:
        return "".join(table._repr_html_() for table in self.tables.values())

    def plot(self, level: str | None = None, most: int = 30) -> Picture:
        """Draw the first figures of a level of the only table with their certified intervals, as `LoadedTable.plot`."""
        return self.table().plot(level, most)

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """What all tables promise together, the statement that the budget counts first."""
        return tuple(self.certificate.statements)

    @property
    def guarantee(self) -> Guarantee:
        """The statement about all tables together that the budget counts."""
        return self.guarantees[0]

    def table(self, name: str | None = None) -> LoadedTable:
        """Return a table by its name; without one the only table, refused where there are several.

        A sum is a table called like its column; of one table with several figures the first is returned.
        """
        if name is not None:
            return self.tables[one_of("table", name, list(self.tables))]
        if len({table.parquet for table in self.certificate.tables}) > 1:
            raise Refused(f"the release has several tables: name one of {', '.join(map(repr, self.tables))}")
        return next(iter(self.tables.values()))

    @property
    def values(self) -> npt.NDArray[Any]:
        """The values of the only table."""
        return self.table().values

    def interval(self, confidence: float = 0.95) -> npt.NDArray[np.float64]:
        """Return the intervals of the only table."""
        return self.table().interval(confidence)

    def frame(self, backend: str | None = None) -> Any:
        """Return the only table, with all its figures, as a data frame."""
        first, *others = self.certificate.tables
        if not others:
            return self.table().frame(backend)
        self.table()  # refused where there are several
        found = read_table(self.folder, first.parquet, first.parts)
        return frame_of({name: _plain(column) for name, column in found.items()}, backend)

    def mean(self, column: str, where: Where | npt.ArrayLike, confidence: float = 0.95) -> Estimate:
        """Estimate the mean of a column that is added up, over the records of rows by names, or by weights.

        The ends are infinite where there may be no record.
        """
        sums = {each.figure: each for each in self.certificate.tables if each.sum_of is not None}
        own = sums[one_of("column", column, list(sums))]
        counts = (each for each in self.certificate.tables if each.parquet == own.parquet and each.sum_of is None)
        counted = next(counts, None)
        if counted is None or own.sum_of is None:
            raise Refused(f"a mean needs the number of records: count is not among the figures beside {column!r}")
        found = self.tables[own.name].ratio(where, where, confidence, of=self.tables[counted.name])
        low, high = within((found.low, found.high), (float(Fraction(own.sum_of.low)), float(Fraction(own.sum_of.high))))
        return replace(found, low=low, high=high)

    to_frame = frame


def load(folder: str | Path, key: str | Path | None = None) -> LoadedRelease:
    """Read one release from its folder; refused if anything in it is not as certified."""
    place = path_of("folder", folder)
    wrong = verify(place, key=key).differences
    if wrong:
        raise Refused(f"{place} is not as it was released: {wrong[0].sentence}")
    found = LoadedRelease(place, read_certificate(place))
    if not found.tables:  # read now, while they are as they were verified; columns of parts when they are asked for
        raise Refused(f"{place} is a release without a table")
    return found


def _tail(confidence: float) -> float:
    return (1 - float(probability("confidence", confidence))) / 2


def _plain(column: npt.NDArray[Any]) -> Any:
    empty = missing(column)
    if not empty.any():
        return np.asarray(column) if column.dtype.kind != "O" else column.tolist()
    return [None if gone else value for gone, value in zip(empty.tolist(), np.asarray(column).tolist(), strict=True)]
