"""Certified folders of one universe as one best estimate with error bars, from what they publish alone (THEORY §15).

*Assumption:* the tables count the same records in the same way. What contradicts it beyond noise is told, not averaged
away. Post-processing: it costs no privacy; the losses of the folders add up for whoever is in all of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

from holdfast.arguments import LARGEST, Number, Refused, of_type, path_of, probability, reals
from holdfast.arrays import Floats
from holdfast.constraints import equals, nonnegative
from holdfast.domains.data_frames import frame_of
from holdfast.mechanism.published.error_bars import ErrorBars
from holdfast.mending.reconciled import reconcile
from holdfast.noise.spread import simulated_quantiles
from holdfast.release.certificate.certificate import FILE as CERTIFICATE
from holdfast.release.certificate.comparing import Estimate, chebyshev, within
from holdfast.release.certificate.load import LoadedRelease, LoadedTable, load
from holdfast.release.certificate.verify import Verdict
from holdfast.release.facts import CONFIDENCE
from holdfast.release.ledger.accounts import Account, Unit
from holdfast.release.standalone_verifier.reading import VALUE
from holdfast.release.storage.files import sha256_of
from holdfast.release.storage.tables import in_unit, read_csv, read_parquet
from holdfast.together.measured import Measured
from holdfast.together.problem import EXACT, SIMULATED, Problem
from holdfast.together.universe import Universe
from holdfast.together.written import FILE, NUMBERS, SCHEMA, verified, write
from holdfast.version import __version__

ASSUMPTION = "the tables count the same records in the same way; parts have all records together, each once"
#: Figures whose intervals come from the law of their errors; of more they are measured on simulated errors.
MOST_BY_LAW = 400
#: Two folders whose answers are all equal share their noise, if that is as rare otherwise.
BY_CHANCE = 1e-6

Folder = str | Path


@dataclass(frozen=True, eq=False, repr=False)
class Combined:
    """One best estimate from several releases: of all figures that stand in one of them, in the order of `names`.

    `chi2` is what the releases differ by, `freedom` what noise alone makes of it on average, and `level` how often it
    is as large then. `contradictions`: figures that differ by more. `lost`: what a person lost in all of them.
    """

    releases: tuple[LoadedRelease, ...]
    parts: tuple[tuple[str, str] | None, ...]
    known: str | None
    figure: str
    problem: Problem
    chi2: float
    freedom: float
    level: float
    contradictions: tuple[str, ...]
    lost: str
    _kept: dict[str, Floats] = field(default_factory=dict, init=False)

    @property
    def names(self) -> dict[str, list[str | None]]:
        """The columns that name every figure, empty where it is a sum over one."""
        return self.problem.universe.columns()

    @property
    def values(self) -> Floats:
        """The best linear estimates."""
        found = self.problem.estimate[0][: self._named]
        if all(each.whole for each in self.problem.sources):
            found = np.where(self.problem.standard_errors > 0, found, np.rint(found))
        return np.asarray(in_unit(found, self._unit))

    @property
    def standard_error(self) -> Floats:
        """The standard errors, from the joint law of all noise."""
        return np.asarray(in_unit(self.problem.standard_errors, self._unit))

    @cached_property
    def alone(self) -> Floats:
        """The least standard error that one release has by itself; infinite where none determines the figure."""
        each = [np.sqrt(single.joint.variances[0][: self._named]) for single in self.problem.singles]
        return np.asarray(in_unit(np.min(each, axis=0), self._unit))

    @property
    def gained(self) -> Floats:
        """By which factor variances fall below those of the best single release; infinite where none has the figure."""
        with np.errstate(divide="ignore", invalid="ignore"):
            found = (self.alone / self.standard_error) ** 2
        return np.where(self.alone == self.standard_error, 1.0, found)

    def __repr__(self) -> str:
        return f"<Combined: {self._named:,} figures of {len(self.releases)} releases; print it for what they tell>"

    def __str__(self) -> str:
        gained = self.gained
        known, new = gained[np.isfinite(gained)], int(np.isinf(gained).sum())
        words = f"{self._named:,} figures of {len(self.releases)} releases"
        if known.size:
            words += f"; variances fall by a factor of {np.median(known):.3g} in the median, {known.max():.3g} at most"
        if new:
            words += f"; {new:,} figures that no release determines alone"
        least = max(self.level, 1 / SIMULATED)
        lines = [
            words,
            f"they differ by χ² = {self.chi2:.4g}, where noise alone makes {self.freedom:.4g} on average, and as much "
            f"in {'less than ' if self.level < least else ''}{100 * least:.2g} of 100 cases",
            *(f"contradiction: {each}" for each in self.contradictions),
            f"assumed: {ASSUMPTION}",
            f"lost: {self.lost}",
        ]
        return "\n".join(lines)

    @cached_property
    def whole(self) -> npt.NDArray[Any]:
        """The nearest whole figures that add up, not negative if no table's are; moves count in standard errors."""
        problem, joint = self.problem, self.problem.joint
        known, errors = joint.determined, np.sqrt(joint.variances[0])
        known_errors = errors[known]
        least = float(known_errors[known_errors > EXACT * known_errors.max()].min(initial=1.0))
        rules = [equals(joint.A, np.rint(problem.right))] if problem.right.size else []
        if all(each.nonnegative for each in problem.sources):
            rules.append(nonnegative())
        start = np.where(known, problem.estimate[0], np.nan)
        found = np.rint(start)
        if rules:
            found = reconcile(start, rules, np.where(known, np.maximum(errors, least), 1.0)).values
        return np.asarray(in_unit(np.asarray(found[: self._named], dtype=np.int64), self._unit))

    def frame(self, backend: str | None = None, confidence: float = 0.95) -> Any:
        """Return a data frame of a library, `backend`: the names, value, standard_error, low, high, whole, alone.

        `confidence`: that of the ends.
        """
        return frame_of(self.columns(confidence), backend)

    def columns(self, confidence: float = 0.95) -> dict[str, Any]:
        """The same, column by column; nothing stands in alone where no release determines a figure by itself."""
        ends = self.interval(confidence)
        alone = [None if math.isinf(each) else each for each in self.alone.tolist()]
        figures = self.values, self.standard_error, ends[:, 0], ends[:, 1]
        listed = [*(each.tolist() for each in figures), self.whole.tolist(), alone]
        return {**self.names, **dict(zip(NUMBERS, listed, strict=True))}

    def interval(self, confidence: Number = 0.95) -> Floats:
        """Return ends, (n, 2), that cover each true figure with at least the probability `confidence`.

        If what is assumed holds.
        """
        tail, problem, count = _tail(confidence), self.problem, self._named
        if str(tail) not in self._kept:
            if count <= MOST_BY_LAW:
                reach = np.array([problem.reach(row, tail) for row in np.eye(count, problem.universe.n)])
            else:
                limits = simulated_quantiles(lambda: problem.errors)
                try:
                    reach = np.maximum(np.abs(limits(tail)), np.abs(limits(1 - tail)))
                except Refused:  # too rare for so few simulated errors
                    reach = problem.standard_errors * chebyshev(tail)
            middle, (low, high) = problem.estimate[0][:count], self._certain
            whole = all(each.whole for each in problem.sources)
            bars = ErrorBars(middle, None, low[:count], high[:count], whole)
            self._kept[str(tail)] = bars.within(middle - reach, middle + reach, low[:count], high[:count])
        return np.asarray(in_unit(self._kept[str(tail)], self._unit))

    def estimate(
        self,
        where: Mapping[str, Any] | None = None,
        weights: npt.ArrayLike | None = None,
        confidence: Number = 0.95,
    ) -> Estimate:
        """Estimate a sum of true figures.

        Args:
            where: which ones, by names: {"borough": "North"}.
            weights: instead of names, a number for every figure.
            confidence: the ends cover the truth with at least this probability, if what is assumed holds.
        """
        if (where is None) == (weights is None):
            raise Refused("say what to add up by one of where (names) and weights (one number per figure)")
        asked = np.zeros(self.problem.universe.n)
        if where is None:
            asked[: self._named] = reals("weights", weights, (self._named,))
        else:
            asked[self.problem.universe.where(where)] = 1.0
        value, reach = float(asked @ self.problem.estimate[0]), self.problem.reach(asked, _tail(confidence))
        used, (low, high) = np.flatnonzero(asked), self._certain
        sides = asked[used, None] * np.column_stack([low[used], high[used]])
        certain = float(sides.min(axis=1).sum()), float(sides.max(axis=1).sum())
        error, ends = math.sqrt(self.problem.variance(asked)), within((value - reach, value + reach), certain)
        return Estimate(value, error, *ends, float(confidence)).times(self._unit)

    def write(self, folder: Folder) -> None:
        """Write the figures and what is said of them into a new folder."""
        write(path_of("folder", folder), self.as_mapping(), self.columns(CONFIDENCE))

    def verify(self, folder: Folder) -> Verdict:
        """Check a folder that was written from the same sources against this estimate."""
        return verified(path_of("folder", folder), self.as_mapping(), self.columns(CONFIDENCE))

    def as_mapping(self) -> dict[str, Any]:
        """What is said of it: its sources by their hashes, what was gained, contradicted, assumed and lost."""
        gained = self.gained
        known = gained[np.isfinite(gained)]
        sources = [
            {
                "release": release.certificate.release,
                "title": release.certificate.title,
                "certificate": sha256_of(release.folder / CERTIFICATE),
                "part": None if part is None else list(part),
            }
            for release, part in zip(self.releases, self.parts, strict=True)
        ]
        return {
            "schema": SCHEMA,
            "software": {"name": "holdfast", "version": __version__},
            "sources": sources,
            "known": self.known,
            "figure": self.figure,
            "figures": int(gained.size),
            "confidence": CONFIDENCE,
            "gained": {"median": float(np.median(known)) if known.size else None, "new": int(gained.size - known.size)},
            "chi2": {"value": self.chi2, "by_noise_alone": self.freedom, "level": self.level},
            "contradictions": list(self.contradictions),
            "assumes": ASSUMPTION,
            "lost": self.lost,
        }

    @property
    def _named(self) -> int:
        return self.problem.universe.named

    @property
    def _unit(self) -> Fraction:
        return self.problem.unit

    @cached_property
    def _certain(self) -> tuple[Floats, Floats]:
        low, high = np.full(self.problem.universe.n, -np.inf), np.full(self.problem.universe.n, np.inf)
        for each, at in zip(self.problem.sources, self.problem.places, strict=True):
            np.maximum.at(low, at, each.low)
            np.minimum.at(high, at, each.high)
        return low, high


def _tail(confidence: Number) -> float:
    return (1 - float(probability("confidence", confidence))) / 2


def combine(
    *folders: Folder,
    parts: Mapping[str, Mapping[str, Folder]] | None = None,
    known: Folder | None = None,
    figure: str | None = None,
    key: Folder | None = None,
) -> Combined:
    """Combine certified folders of one universe: one best linear estimate with error bars, from what they publish.

    Figures in common are found by names; a figure of one table may be a sum of figures of another. Each folder is
    verified first.

    Args:
        folders: folders of releases, two or more with those of `parts`.
        parts: folders that have a part of all records each, by a new column and its labels, such as
            {"month": {"January": "out/01", "February": "out/02"}}: together they have all records, each once.
        known: a CSV or Parquet file of figures known without noise, named as in the folders, with a column "value".
        figure: of tables with several figures the column that is added up; None: counts.
        key: a file of public keys, one of which signed every folder.

    Law: Σ AᵢᵀWᵢAᵢ under everything that is exact (LR Theorem 3); intervals from the joint law of all noise.

    Guarantee: post-processing, which costs nothing.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import holdfast as hf
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "people.csv").write_text("age\\nyoung\\nold\\nold\\n")
        >>> def released(name):
        ...     data = {"source": str(folder / "people.csv"), "values": {"age": ["young", "old"]}}
        ...     spec = {"title": name, "data": data, "privacy": {"rho": 0.5}, "table": {"histogram": "age"}}
        ...     spec |= {"method": "noise", "output": str(folder / name), "ledger": str(folder / "ledger.sqlite")}
        ...     _ = hf.job(spec).release()
        ...     return folder / name
        >>> both = hf.combine(released("one"), released("two"))
        >>> both.gained.round(6).tolist()
        [2.0, 2.0]
    """
    given: list[tuple[Folder, tuple[str, str] | None]] = [(folder, None) for folder in folders]
    kind: Any = Mapping  # an abstract type, which an annotation of a type does not take
    divided: Mapping[str, Mapping[str, Folder]] = of_type("parts", {} if parts is None else parts, kind)
    for column, labelled in divided.items():
        of_column = of_type(f"parts[{column!r}]", labelled, kind)
        given += [(folder, (str(column), str(label))) for label, folder in of_column.items()]
    if len(divided) > 1 or len(given) < 2:
        raise Refused(f"combine needs two folders or more, and parts by one column at most, found {len(given)} folders")
    for folder, _ in given:
        if (path_of("a folder", folder) / FILE).exists():
            raise Refused(f"{folder} is a combined estimate: name the folders that it was made of")
    releases = tuple(load(folder, key=key) for folder, _ in given)
    _refuse_twice(releases)
    pairs = [
        (table, part) for release, (_, part) in zip(releases, given, strict=True) for table in _tables(release, figure)
    ]
    for table, _ in pairs:
        if table.certificate.sum_of != pairs[0][0].certificate.sum_of:
            two = f"{_who(table, releases)} and {_who(pairs[0][0], releases)}"
            raise Refused(f"{two} add up differently: the ends and the step of a sum must be the same")
    sources = tuple(Measured.of(_who(table, releases), table, part) for table, part in pairs)
    _refuse_shared(sources)
    if known is not None:
        sources += (_known(path_of("known", known), sources, pairs[0][0].certificate.unit),)
    problem = Problem.of(Universe.of([each.rows for each in sources]), sources, pairs[0][0].certificate.unit)
    _ = problem.estimate  # refused where exact figures contradict each other
    hashed = None if known is None else sha256_of(path_of("known", known))
    contradictions, which = tuple(problem.contradictions()), tuple(part for _, part in given)
    return Combined(
        releases, which, hashed, figure or VALUE, problem, *problem.agreement(), contradictions, _lost(releases)
    )


def _who(table: LoadedTable, releases: Sequence[LoadedRelease]) -> str:
    release = next(each.certificate for each in releases if each.certificate.release == table.release)
    return f"{table.certificate.name!r} of {release.title!r} ({release.release[:8]})"


def _known(path: Path, others: Sequence[Measured], unit: Fraction) -> Measured:
    """Figures of a public file, CSV or Parquet: names as the folders have them, and the column 'value'."""
    wrong = Refused(f"{path} must be a CSV or Parquet file of figures, with names and a column 'value'")
    try:
        columns = dict(read_csv(path) if path.suffix == ".csv" else read_parquet(path))
        listed = columns.pop(VALUE).tolist()
        small = all(abs(float(each)) < LARGEST for each in listed)
    except (KeyError, TypeError, ValueError, OSError, duckdb.Error):
        raise wrong from None
    if not small:
        raise wrong
    values = np.asarray([Fraction(str(each)) for each in listed])
    return Measured.known(path.name, columns, np.asarray(values / unit, dtype=np.float64), others)


def _tables(release: LoadedRelease, figure: str | None) -> Sequence[LoadedTable]:
    found = [each for each in release.tables.values() if each.certificate.figure == (figure or VALUE)]
    if not found:
        known = sorted({each.certificate.figure for each in release.tables.values()})
        raise Refused(f"{release.folder} has no figure {figure or VALUE!r}: name one of {', '.join(known)} by figure")
    return found


def _refuse_twice(releases: Sequence[LoadedRelease]) -> None:
    for one, other in combinations(releases, 2):
        fixed = one.certificate.commitment, other.certificate.commitment
        same = None not in fixed and fixed[0].opening == fixed[1].opening  # type: ignore[union-attr]
        if one.certificate.release == other.certificate.release or same:
            raise Refused(f"{one.folder} and {other.folder} are one release: its noise tells nothing twice")


def _refuse_shared(sources: Sequence[Measured]) -> None:
    """Refuse answers that are all the same: independent noise is not."""
    for one, other in combinations(sources, 2):
        if one.rows.columns != other.rows.columns or one.outputs != other.outputs:
            continue
        free = (one.precision.diagonal() > 0) & (other.precision.diagonal() > 0)
        if (one.answers != other.answers)[free].any():
            continue
        errors = np.maximum(one.spread.standard_errors, other.spread.standard_errors)[free]
        if np.log(np.maximum(errors, 1.0)).sum() > -math.log(BY_CHANCE):  # no whole number is likelier than 1/σ
            raise Refused(f"{one.who} and {other.who} have the same noise in all figures, which tells nothing twice")


def _lost(releases: Sequence[LoadedRelease]) -> str:
    """What whoever is in all releases lost, from their certificates: the sum, or why there is none."""
    units = [Unit.read(each.certificate.unit) for each in releases]
    if len({each.who for each in units}) > 1:
        listed = ", ".join(dict.fromkeys(each.words for each in units))
        return f"cannot be added up, since the releases protect different units: {listed}"
    parts, kept = [], []
    for release, unit in zip(releases, units, strict=True):
        for table in release.certificate.tables:
            parts.append(tuple(table.statements))
            kept.append(unit.max_records)
    persons = () if None in kept else tuple(each for each in kept if each is not None)
    account = Account("the releases", units[0].who, None, tuple(parts), persons)
    if account.trouble is not None:
        return f"cannot be added up: {account.trouble}"
    return f"per {units[0].words} in all of them together {account.amount}; {account.spent[0].neighbours}"
