"""A mended table: its figures, how far each moved, what contradicted what, and what is known of the true figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.arguments import LARGEST, Number, Refused, path_of
from holdfast.arrays import Array, Bools, Floats, Ints
from holdfast.constraints import nonnegative
from holdfast.evidence import Evidence
from holdfast.mending import telling
from holdfast.mending.figures import Figures, Held
from holdfast.mending.rules import Broken, Kept, looked_at
from holdfast.pictures import Picture

if TYPE_CHECKING:
    from holdfast.mechanism.published.error_bars import ErrorBars

#: Contradictions that are listed one by one.
LISTED = 1_000


@dataclass(frozen=True)
class Contradiction:
    """A published figure and the sum of those that should add up to it, as they were published."""

    figure: str
    column: str
    published: float
    sum: float

    @property
    def gap(self) -> float:
        return self.published - self.sum

    def __str__(self) -> str:
        return f"{self.figure}: {self.published:g} is published, but by {self.column} the parts add up to {self.sum:g}"


@dataclass(frozen=True, eq=False, repr=False)
class Mended:
    """The nearest table to published figures in which everything holds. Made by `mend`.

    Figures stand in the order of the rows of the table, and behind them those that it lacks. `published` and `steps`
    (mended) count in multiples of `unit`; `filled` are missing ones, `ranges` what the others leave for each of them,
    `exact` those that were known. `told` computes what the stated law tells of the true figures.

    Example:
        >>> import holdfast as hf
        >>> from holdfast.mending import Mended
        >>> mended = hf.mend({"zone": ["Total", "A", "B"], "count": [10, 4, 5]}, "consistent")
        >>> isinstance(mended, Mended)
        True
    """

    figures: Figures
    name: str
    published: Floats
    steps: Ints
    unit: Fraction
    filled: Ints
    exact: Ints
    ranges: tuple[Ints, Ints] | None
    told: Callable[[], ErrorBars] | None
    evidence: Evidence
    norm: str
    held: Held
    errors: str
    notes: tuple[str, ...]

    statement = telling.STATEMENT

    def __repr__(self) -> str:
        return (
            f"<Mended: {self.n:,} figures, {self.changed.size:,} moved, {self.filled.size:,} filled; print it for more>"
        )

    def __str__(self) -> str:
        return "\n".join(telling.sentences(self))

    def _repr_html_(self) -> str:
        return telling.shown(self)

    @property
    def n(self) -> int:
        """The number of figures, filled ones included."""
        return int(self.steps.size)

    @cached_property
    def bars(self) -> ErrorBars | None:
        """What the stated law tells of the true figures; None where none is stated, or it contradicts the figures."""
        return None if self.told is None else self.told()

    @cached_property
    def values(self) -> Array:
        """The mended figures: whole numbers, or multiples of `unit`."""
        return self._in_units(self.steps)

    @cached_property
    def moved(self) -> Floats:
        """How far each figure moved, mended less published; NaN where none was published."""
        return np.asarray((self.steps - self.published) * float(self.unit))

    @cached_property
    def changed(self) -> Ints:
        """The published figures that moved, those that moved furthest first."""
        size = np.where(np.isnan(self.moved), 0.0, np.abs(self.moved))
        found = np.flatnonzero(size > 0)
        return found[np.argsort(-size[found], kind="stable")]

    @cached_property
    def status(self) -> list[str]:
        """What each figure is: "published", "moved", "filled" or "exact"."""
        words = np.where(np.nan_to_num(self.moved) != 0, "moved", "published").astype(object)
        words[self.filled] = "filled"
        words[self.exact] = "exact"
        return words.tolist()

    @cached_property
    def _gaps(self) -> list[tuple[int, Ints, Floats]]:
        """Of each family of sums the rows whose figures are all published, and their gaps."""
        known = np.isfinite(self.published)
        values = np.where(known, self.published, 0.0)
        found = []
        for sums in self.figures.sums if self.held.consistent else ():
            used = np.flatnonzero(abs(sums.rows) @ (~known).astype(np.int64) == 0)
            found.append((sums.column, sums.owners[used], np.asarray(sums.rows[used] @ values) * float(self.unit)))
        return found

    @property
    def sums(self) -> int:
        return sum(owners.size for _, owners, _ in self._gaps)

    @property
    def contradicted(self) -> int:
        return sum(int((gaps != 0).sum()) for _, _, gaps in self._gaps)

    @cached_property
    def contradictions(self) -> list[Contradiction]:
        """Figures that contradicted the sum of their parts as published, the largest gap first, up to a thousand."""
        rows = [
            (-abs(float(gap)), int(owner), column, float(gap))
            for column, owners, gaps in self._gaps
            for owner, gap in self._largest(owners, gaps)
        ]
        found = []
        for _, owner, column, gap in sorted(rows)[:LISTED]:
            figure = float(self.published[owner]) * float(self.unit)
            found.append(Contradiction(self.figures.name(owner), self.figures.names[column], figure, figure - gap))
        return found

    @staticmethod
    def _largest(owners: Ints, gaps: Floats) -> Any:
        chosen = np.flatnonzero(gaps != 0)
        chosen = chosen[np.argsort(-np.abs(gaps[chosen]), kind="stable")][:LISTED]
        return zip(owners[chosen].tolist(), gaps[chosen].tolist(), strict=True)

    @cached_property
    def rules(self) -> list[Kept]:
        """What the published figures kept and broke of rules that are no sums of the table, kind by kind."""
        given = [*self.held.others, *([nonnegative()] if self.held.nonnegative else [])]
        return looked_at(given, self.published * float(self.unit), self.figures.name)

    @cached_property
    def broken(self) -> list[Broken]:
        """The rules that are no sums of the table and that the published figures broke, up to a thousand of each."""
        return [each for kind in self.rules for each in kind.largest(LISTED)]

    @property
    def hierarchies(self) -> tuple[str, ...]:
        """What was read from the labels, or said, of each column."""
        return tuple(each.words for each in self.figures.classifications)

    def interval(self, confidence: Number = 0.95) -> Floats:
        """Ends, (n, 2), that hold each true figure with about this probability, by the stated law.

        They come from the best linear estimate: by the law of Gaussian and Laplace noise, by simulation for uniform,
        cell-key and rounded figures, whose certain limits are `bars.low` and `bars.high`. Larger tables than can be
        simulated have those.

        Args:
            confidence: the probability, above 0 and below 1.
        """
        if self.bars is None:
            why = next((note for note in self.notes if "are no intervals" in note), "")
            raise Refused(
                why or "intervals need the law of the noise: pass errors={'rounding': 5} or the like to mend()"
            )
        return self.bars.interval(confidence) + 0.0  # no minus before a 0

    @cached_property
    def pinned(self) -> Bools:
        """Whether the others leave only one value for each filled figure, in the order of `filled`."""
        if self.ranges is None:
            return np.zeros(0, dtype=bool)
        return np.asarray(self.ranges[0][self.filled] == self.ranges[1][self.filled])

    def columns(self, confidence: Number = 0.95) -> dict[str, Any]:
        """The mended table as columns: labels, the figure, what was published, the move, the state, ends."""
        found: dict[str, Any] = {}
        for column, (name, each) in enumerate(zip(self.figures.names, self.figures.classifications, strict=True)):
            if each.levels:
                rows = [each.paths[v] for v in self.figures.places[:, column].tolist()]
                found |= {level: [row[k] for row in rows] for k, level in enumerate(each.levels)}
            else:
                found[name] = self.figures.label(column, slice(None))
        taken = [self.name, "published", "moved", "status", "low", "high"]
        for name in set(taken) & set(found):
            found[f"{name} label"] = found.pop(name)
        found[self.name] = self.values
        found["published"] = self.published * float(self.unit)
        found["moved"] = self.moved
        found["status"] = self.status
        low, high = self._ends(confidence)
        if low is not None:
            found["low"], found["high"] = low, high
        return found

    def _ends(self, confidence: Any) -> tuple[Floats | None, Floats | None]:
        """Ends for every figure: intervals by the law, otherwise ranges of filled ones; None where there are none."""
        if self.bars is not None:
            ends = self.interval(confidence)
            return ends[:, 0], ends[:, 1]
        if self.ranges is None:
            return None, None
        ends = np.full((2, self.n), np.nan)
        for side, sign, range_ in zip(ends, (-np.inf, np.inf), self.ranges, strict=True):
            found = range_[self.filled]
            side[self.filled] = np.where(np.abs(found) >= LARGEST, sign, found * float(self.unit))
        return ends[0], ends[1]

    def frame(self, backend: str | None = None, confidence: Number = 0.95) -> Any:
        """The table as a frame of `backend` (polars, pandas, pyarrow), a row for each figure; ends of `confidence`."""
        from holdfast.domains.data_frames import frame_of

        return frame_of(self.columns(confidence), backend)

    def picture(self) -> Picture:
        """How far figures moved, and the contradictions that made them: a bar for each of the largest."""
        return telling.picture(self)

    def report(self, path: str | Path) -> None:
        """Write a page at `path` that says what was done and shows it; it needs no network."""
        place = path_of("path", path)
        try:
            place.write_text(telling.page(self), encoding="utf-8")
        except OSError as error:
            raise Refused(f"{str(place)!r} cannot be written: {error.strerror}") from None

    def write(self, folder: str | Path) -> Path:
        """Write table.csv, its description datapackage.json and report.html into a new folder."""
        return telling.write(self, path_of("folder", folder))

    def as_mapping(self) -> dict[str, Any]:
        """What was done, for scripts."""
        return telling.mapping(self)

    def _in_units(self, steps: Ints) -> Array:
        if self.unit.denominator == 1:
            return np.asarray(steps * self.unit.numerator)
        return np.asarray(steps * self.unit.numerator / self.unit.denominator)
