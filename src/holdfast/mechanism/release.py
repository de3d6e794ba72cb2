"""What leaves the house: the released values, their guarantee and their error bars. It holds no confidential value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Refused, one_of, probability, reals, whole
from holdfast.domains.data_frames import frame_of
from holdfast.evidence import Evidence
from holdfast.mechanism.published.error_bars import ErrorBars
from holdfast.mechanism.published.synthetic import cells_of, named_cells
from holdfast.noise.spread import Spread
from holdfast.pictures import Picture, chosen_rows, points
from holdfast.privacy import Guarantee
from holdfast.queries import Query


@dataclass(frozen=True)
class Estimate:
    """A weighted sum of released values and its standard error (None where the error depends on the data)."""

    value: float
    standard_error: float | None


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """A released table.

    Args:
        values: in output order: int64 where whole numbers were promised, otherwise float64.
        guarantees: every statement that holds; `guarantee` is the best of them.
        query: what was asked.
        method: how the values were made, in words.
        find_error_bars: how intervals are found when they are asked for.
        measurements: the noisy answers that were moved onto the constraint, conditioned on equalities or not, in output
            order and meaningless where an output was not measured: `onto` mechanisms only, and only where the
            guarantees cover them too.
        evidence: on which grid the values stand and how near to the nearest point they are, where they were moved and
            the guarantees cover that too.
        ties: the public coin that decided between equally near whole tables; `mechanism.image(measurements, ties)`
            moves by it again.

    Example:
        >>> import holdfast as hf
        >>> release = hf.laplace(hf.histogram(3), epsilon=1).release([5, 0, 7])
        >>> release.values.dtype, release.interval(0.95).shape
        (dtype('int64'), (3, 2))
    """

    values: npt.NDArray[Any]
    guarantees: tuple[Guarantee, ...]
    query: Query = field(repr=False)
    method: str
    find_error_bars: Callable[[npt.NDArray[Any], npt.NDArray[Any] | None], ErrorBars | None] = field(repr=False)
    measurements: npt.NDArray[Any] | None = field(default=None, repr=False)
    evidence: Evidence | None = field(default=None, repr=False)
    ties: int | None = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        # The law of the errors is found again when it is asked for.
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def __repr__(self) -> str:
        first = ", ".join(f"{name}: {value}" for name, value in zip(self.labels[:4], self.values[:4], strict=False))
        more = f", and {self.values.size - 4} more" if self.values.size > 4 else ""
        return f"<Release: {first}{more}; drawn by {self.method}; print .guarantee for what it promises>"

    def _repr_html_(self) -> str:
        from holdfast.privacy.odds import FIRST, figures_card  # only notebooks need it

        shown, told = self._shown(np.arange(min(FIRST, self.values.size))), {"drawn by": self.method}
        return figures_card(f"{self.values.size:,} figures", shown, self.values.size, self.guarantee, told)

    def plot(self, level: str | None = None, most: int = 30) -> Picture:
        """Draw the first `most` figures of a level with their 95 % intervals, where these are known.

        Without a level all figures, where they are at most `most`; otherwise the finest level of at most so many. The
        picture says what is drawn.
        """
        levels: Mapping[str, Any] = {"figures": range(self.values.size)}
        if self.query.levels is not None:
            levels = {name: np.flatnonzero(self.query.level_of == i) for name, i in self.query.levels.items()}
        if level is not None:
            one_of("level", level, list(self.query.levels or {}))
        rows, drawn, beside = chosen_rows(levels, level, whole("most", most, at_least=1))
        return points(self._shown(np.asarray(rows)), f"{drawn}value, and its 95 % interval", beside)

    def _shown(self, rows: npt.NDArray[np.intp]) -> list[tuple[str, float, float, float]]:
        """Name, value and interval of some figures; an interval that depends on the data is not a number."""
        ends = np.full((self.values.size, 2), np.nan) if self.spread is None else self.interval()
        chosen = zip(self.labels[rows], self.values[rows].tolist(), ends[rows].tolist(), strict=True)
        return [(str(name), float(value), low, high) for name, value, (low, high) in chosen]

    @property
    def labels(self) -> npt.NDArray[np.object_]:
        """The name of each output; made when first asked for."""
        return self.query.labels

    @property
    def guarantee(self) -> Guarantee:
        """The best statement that holds."""
        return self.guarantees[0]

    @cached_property
    def error_bars(self) -> ErrorBars | None:
        """What the release tells about the truth, found when first asked for; None where no law of errors is known."""
        return self.find_error_bars(self.values, self.measurements)

    @property
    def spread(self) -> Spread | None:
        """The law of the errors: of the values themselves, or of the draw behind them where it was moved within bounds
        or to whole numbers.

        None where the law depends on the data.
        """
        return None if self.error_bars is None else self.error_bars.spread

    @cached_property
    def standard_errors(self) -> npt.NDArray[np.float64]:
        """Standard error of every value, or of the draw behind it where it was moved within bounds or rounded."""
        return self._known().standard_errors

    def interval(self, confidence: float = 0.95) -> npt.NDArray[np.float64]:
        """Return lower and upper ends, (n, 2), that cover each true value with the probability `confidence` at least.

        The ends come from the law of the errors, which does not depend on the data; refused where it does. Where
        `spread.measured`, they are measured on simulated draws and widened by the error of that (noise/spread.py).
        Where bounds moved the values, they are those of the draw behind them, cut to what is certain (THEORY H10): a
        value can lie outside its interval.
        """
        probability("confidence", confidence)
        self._known()
        assert self.error_bars is not None
        return self.error_bars.interval(confidence)

    def estimate(self, weights: npt.ArrayLike) -> Estimate:
        """Estimate a sum of the table's values, with one number of `weights` for each."""
        checked = reals("weights", weights, (self.values.size,))
        value = float(checked @ self.values)
        if self.spread is None:
            return Estimate(value, None)
        return Estimate(value, float(np.sqrt(max(0.0, self.spread.variance_of(checked)))))

    def to_frame(self, backend: str | None = None) -> Any:
        """Return a data frame with the columns name, value and, where known, standard_error.

        `backend` is "polars", "pandas" or "pyarrow"; None takes the first that is installed.
        """
        columns: dict[str, Any] = {"name": list(self.labels), "value": self.values}
        if self.spread is not None:
            columns["standard_error"] = self.spread.standard_errors
        return frame_of(columns, backend)

    def records(self, backend: str | None = None) -> Any:
        """Return synthetic records: one row for every one that the table counts, in the order of its cells.

        `backend`: polars, pandas or pyarrow; None is the first that is installed.

        They count to the table exactly and carry nothing that it does not (THEORY §10). Refused unless the table is
        whole, not negative and adds up, and counts every cell of a hierarchy, histogram or cube.
        """
        counts = cells_of(self.query, self.values)
        columns = {name: np.repeat(column, counts).tolist() for name, column in named_cells(self.query).items()}
        return frame_of(columns, backend)

    def _known(self) -> Spread:
        if self.spread is None:
            raise Refused(
                "the law of the errors depends on the data here, so error bars would leak: simulate() public guesses"
            )
        return self.spread
