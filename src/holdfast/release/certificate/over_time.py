"""A series read back from its folder: sums over periods, their differences and ratios, by the joint law over time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.arguments import Refused, path_of, probability
from holdfast.arrays import Floats
from holdfast.domains.data_frames import frame_of
from holdfast.noise.over_time import Factor
from holdfast.pictures import Picture, line_over_time
from holdfast.release.certificate.comparing import Estimate, farthest, fieller, quotient, within
from holdfast.release.certificate.load import LoadedRelease, LoadedTable, _plain
from holdfast.release.certificate.load import load as load_one
from holdfast.release.certificate.naming import Where
from holdfast.release.certificate.series_folder import part, periods_in, verify
from holdfast.release.facts import Holds, TableCertificate

Periods = str | Sequence[str]


@dataclass(frozen=True, eq=False, repr=False)
class LoadedSeries(LoadedRelease):
    """A series as it was published so far; `certificate` is that of its newest period.

    Tables are sums over periods, of all that were published unless some are named, with the errors of such sums: noise
    hangs together over periods, and a year is not twelve independent months.
    """

    periods: Mapping[str, LoadedRelease] = field(default_factory=dict)

    @cached_property
    def factor(self) -> Factor:
        told = part(self.certificate)
        return Factor(tuple(map(tuple, told.rows)), tuple(told.weights))

    def __repr__(self) -> str:
        names = list(self.periods)
        return f"<Series {self.certificate.title!r}: {len(names)} periods, {names[0]} to {names[-1]}>"

    @cached_property
    def tables(self) -> Mapping[str, LoadedTable]:
        """The tables by name, summed over all periods."""
        return {each.name: self.summed(each.name, dict.fromkeys(self.periods, 1)) for each in self.certificate.tables}

    def table(self, name: str | None = None, periods: Periods | None = None) -> LoadedTable:
        """Return the sum of a table over some periods, all that were published unless they are named."""
        whole = super().table(name)
        return whole if periods is None else self.summed(whole.certificate.name, self._weights(periods))

    def difference(
        self,
        periods: Periods,
        than: Periods,
        where: Where,
        confidence: float = 0.95,
        table: str | None = None,
    ) -> Estimate:
        """Estimate how much larger the sum `where` is over some periods than over others, such as a year before."""
        weights = self._weights(periods)
        for name in self._weights(than):
            weights[name] = weights.get(name, 0) - 1
        if not any(weights.values()):
            raise Refused("both name the same periods: their difference is 0")
        return self.summed(self.table(table).certificate.name, weights).estimate(where, confidence=confidence)

    def ratio(
        self, periods: Periods, to: Periods, where: Where, confidence: float = 0.95, table: str | None = None
    ) -> Estimate:
        """Estimate the ratio of the sum `where` over some periods to that over others: 1.04 is a growth of 4 %."""
        tail, name = (1 - float(probability("confidence", confidence))) / 2, self.table(table).certificate.name
        some, others = self._weights(periods), self._weights(to)
        one, other = self.summed(name, some), self.summed(name, others)
        asked = one._weights(where)
        above, below = one._known(asked, confidence), other._known(asked, confidence)
        certain = quotient(above.certain, below.certain)
        a, b, first, second = above.centre, below.centre, above.error, below.error
        value = above.value / below.value if below.value else math.nan
        if first is None or second is None or above.told or below.told:
            return Estimate(value, None, *quotient(above.interval(tail), below.interval(tail)), confidence)
        C, u, v = self.factor.covariance, self._row(some), self._row(others)
        shared = first * second * float(u @ C @ v) / math.sqrt(float(u @ C @ u) * float(v @ C @ v))
        joint = np.array([[first**2, shared], [shared, second**2]])
        ends = fieller(a, b, joint, farthest(above.bars, tail))
        inside = within(ends, certain) if ends[0] <= certain[1] and certain[0] <= ends[1] else certain
        error = math.sqrt(max(first**2 - 2 * a / b * shared + (a / b * second) ** 2, 0.0)) / abs(b) if b else None
        return Estimate(value, error, *inside, confidence)

    def plot(self, where: Where | None = None, table: str | None = None) -> Picture:  # type: ignore[override]
        """Draw the sum `where`, or the first figure, in every period as a line on the band of its intervals."""
        rows = []
        for name, each in self.periods.items():
            own = each.table(table)
            asked = np.eye(1, own.certificate.rows)[0] if where is None else own._weights(where)
            found = own.estimate(weights=asked)
            rows.append((name, found.value, found.low, found.high))
        return line_over_time(rows, "Value in every period, and the band of its 95 % interval")

    def frame(self, backend: str | None = None) -> Any:
        """Return every period of the only table as a data frame, with a column `period` in front."""
        tables = {name: each.table() for name, each in self.periods.items()}
        first = next(iter(tables.values()))
        columns: dict[str, Any] = {"period": [name for name, each in tables.items() for _ in each.values]}
        for name in first.columns:
            columns[name] = [value for each in tables.values() for value in list(_plain(each.columns[name]))]
        return frame_of(columns, backend)

    to_frame = frame

    def _weights(self, periods: Periods) -> dict[str, int]:
        names = [periods] if isinstance(periods, str) else list(periods)
        for name in names:
            if name not in self.periods:
                known = list(self.periods)
                raise Refused(f"{name!r} was not published in this series, which has {known[0]} to {known[-1]}")
        if not names or len(set(names)) < len(names):
            raise Refused("periods must name one or more periods, each once")
        return dict.fromkeys(names, 1)

    def _row(self, weights: Mapping[str, int]) -> Floats:
        return np.array([float(weights.get(name, 0)) for name in part(self.certificate).periods])

    def summed(self, name: str, weights: Mapping[str, int]) -> LoadedTable:
        """A table of weighted sums over periods, with the law of their errors."""
        used = {period: weight for period, weight in weights.items() if weight}
        tables = {period: self.periods[period].tables[name] for period in used}
        first, names = next(iter(tables.values())), part(self.certificate).periods
        growth = self.factor.variance(self._row(used)) / self.factor.of_period(names.index(next(iter(used))))
        certificate = _of_sum(first.certificate, growth, used)

        def added(column: str, other: str | None = None) -> Any:
            """The weighted sum of a column; `other` takes its place where a weight is negative."""
            ends = {period: column if weight > 0 or other is None else other for period, weight in used.items()}
            parts = [
                weight * np.ma.filled(np.ma.asarray(tables[period].columns[ends[period]]))
                for period, weight in used.items()
            ]
            return np.sum(parts, axis=0)

        columns = {each: first.columns[each] for each in first.columns}
        columns |= {"value": added("value"), "low": added("low", "high"), "high": added("high", "low")}
        noisy = None
        if first.noisy is not None:
            noisy = {each: first.noisy[each] for each in first.noisy}
            drawn = [weight * np.asarray(tables[period].noisy["value"]) for period, weight in used.items()]  # type: ignore[index]
            noisy["value"] = np.sum(drawn, axis=0)
        told = f"{first.release} {' '.join(f'{weight}*{period}' for period, weight in used.items())}"
        found = LoadedTable(certificate, columns, told, noisy)
        ends = found.interval(first.certificate.interval.confidence)
        columns = columns | {"low": ends[:, 0], "high": ends[:, 1]}
        own = first.certificate.interval
        return LoadedTable(certificate.model_copy(update={"interval": own}), columns, told, noisy)


def load(folder: str | Path, key: str | Path | None = None) -> LoadedRelease:
    """Read a release from its folder, or a series from the folder of its periods; refused if anything is not as
    certified.

    Args:
        folder: what `holdfast release` made; of a series a `LoadedSeries` is returned, whose tables are sums over
            periods, and which has `table(periods=…)`, `difference`, `ratio` and every release in `periods`.
        key: a file of public keys, one of which signed it.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import holdfast as hf
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "people.csv").write_text("age\\nyoung\\nold\\nold\\n")
        >>> _ = hf.job({
        ...     "title": "Ages", "output": str(folder / "out"), "ledger": str(folder / "ledger.sqlite"),
        ...     "data": {"source": str(folder / "people.csv"), "values": {"age": ["young", "old"]}},
        ...     "privacy": {"epsilon": 1.0}, "table": {"histogram": "age"}, "method": "noise",
        ... }).release()
        >>> hf.load(folder / "out").table().interval(0.95).shape
        (2, 2)
    """
    place = path_of("folder", folder)
    found = periods_in(place)
    if not found:
        return load_one(place, key)
    wrong = verify(place, key=key).differences
    if wrong:
        raise Refused(f"{place} is not as it was released: {wrong[0].sentence}")
    periods = {name: LoadedRelease(place / name, each) for name, each in found.items()}
    return LoadedSeries(place, list(found.values())[-1], periods)


#: A confidence that no interval has: those on file are of single periods.
NONE_ON_FILE = 0.0


def _of_sum(table: TableCertificate, growth: Fraction, weights: Mapping[str, int]) -> TableCertificate:
    """What is certified of a weighted sum of periods of a table: wider noise, and limits so many times as wide."""
    levels = [
        level.model_copy(update={"noise": [_wider(each, growth) for each in level.noise]})
        for level in table.noise_by_level
    ]
    interval = table.interval.model_copy(update={"confidence": NONE_ON_FILE})
    holds = _held(table.holds, sum(weights.values()), positive=all(weight > 0 for weight in weights.values()))
    return table.model_copy(update={"noise_by_level": levels, "interval": interval, "holds": holds})


def _wider(noise: Any, growth: Fraction) -> Any:
    if noise.parameter is None:
        return noise
    parameter = Fraction(noise.parameter) * growth
    return noise.model_copy(update={"parameter": str(parameter), "scale": math.sqrt(parameter)})


def _held(holds: Holds, times: int, *, positive: bool) -> Holds:
    """What holds for a sum of so many tables; of a difference only what adds up."""

    def scaled(each: Any) -> Any:
        ends = {end: getattr(each, end) for end in ("low", "high")}
        return each.model_copy(
            update={end: None if text is None else str(times * Fraction(text)) for end, text in ends.items()}
        )

    if not positive:
        return holds.model_copy(update={"nonnegative": False, "bounds": [], "orders": [], "linear": [], "either": []})
    more = {"bounds": [scaled(each) for each in holds.bounds], "linear": [scaled(each) for each in holds.linear]}
    return holds.model_copy(update={**more, "either": []})
