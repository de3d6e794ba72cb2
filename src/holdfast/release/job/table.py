"""One table of a job: its shape, what must hold, the mechanism that makes it, what that promises, and its errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Refused
from holdfast.arrays import Ints, Owner
from holdfast.mechanism.mechanism import Mechanism
from holdfast.mechanism.noise_source import RESIDUALS
from holdfast.mechanism.published.linear_estimates import measured_deviations
from holdfast.privacy import Guarantee
from holdfast.privacy.protection import Protection
from holdfast.randomness import seeded
from holdfast.release.facts import ComparedMethod, Level, Noise, Unprotected
from holdfast.release.job.errors import IN_AREAS, LAW, NOTHING, SEED, SOLVED, TABLES, Errors, LevelErrors, errors
from holdfast.release.job.methods import Problem
from holdfast.release.job.slices import Division
from holdfast.release.job.unprotected import Standing
from holdfast.release.standalone_verifier.facts import FOLLOWS, PUBLISHED
from holdfast.release.table.holding import Derived
from holdfast.release.table.laid import LaidTable
from holdfast.release.table.wording import DEFINED

#: The noise of rows that are sums of others.
SUMMED = "that of the figures that it adds up"


@dataclass(frozen=True, eq=False)
class Table(LaidTable, Owner):
    """One table of a job.

    `problem`: what its method must respect. `guess`: the answer for the public guess of the spec. `comparison`: the
    methods that came into question, and `measured` the errors of the chosen one where they were compared. `division`:
    who makes the table, where agents do. `guarantees`: every statement that holds, of which the budget counts
    `counted`. `standing`: how every output is known. `derived`: rows that are written besides the outputs, totals over
    categories and exact margins not asked for. `unprotected`: everything in it that no statement protects. `protects`:
    how many records must change together, column by column, and how strongly that is hidden (THEORY §12); None where no
    figure is exact.
    """

    problem: Problem
    guess: Ints | None
    comparison: tuple[ComparedMethod, ...]
    measured: Errors | None
    mechanism: Mechanism
    division: Division | None
    guarantees: tuple[Guarantee, ...]
    counted: Guarantee
    standing: Standing
    derived: Derived | None
    unprotected: tuple[Unprotected, ...]
    protects: Protection | None

    @cached_property
    def chosen(self) -> ComparedMethod:
        return next(each for each in self.comparison if each.chosen)

    def assuming(self, old: Sequence[str], new: Sequence[str]) -> Table:
        """The same table whose statements assume the new sentences in place of the old ones."""

        def of(statement: Guarantee) -> Guarantee:
            kept = [words for words in statement.assumes if words not in old]
            return replace(statement, assumes=(*kept, *new))

        statements = {id(each): of(each) for each in (*self.guarantees, self.counted)}
        promised = tuple(statements[id(each)] for each in self.guarantees)
        known = self.__dict__.get("errors", self.measured)  # which do not depend on it, and take long
        return replace(self, guarantees=promised, counted=statements[id(self.counted)], measured=known)

    @property
    def kind(self) -> str:
        return self.layout.kind.name

    @property
    def method(self) -> str:
        return self.chosen.method

    @property
    def ways(self) -> str:
        return self.mechanism.method

    @property
    def statements(self) -> tuple[Guarantee, ...]:
        """Every statement about the table, the one that the budget counts first; others about more records last."""
        # Those about more records let it be added to releases that must count more.
        rows = () if self.protects is None or self.division is not None else self.protects.rows
        stated = (row.statement for row in rows if row.statement is not None and not row.statement.void)
        wider = (replace(each, assumes=self.counted.assumes) for each in stated if each.records > self.counted.records)
        return tuple(dict.fromkeys((self.counted, *self.guarantees, *wider)))

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """Its levels, and the sums that are written besides, with their errors."""
        return levels_of(self)

    @property
    def record_columns(self) -> tuple[str, ...]:
        """The columns of synthetic records: those of the data, without the level and a root of the spec's own."""
        left_out = ("level", self.layout.asked.root, *self.layout.asked.recode)
        return tuple(column for column in self.layout.columns if column not in left_out)

    @cached_property
    def errors(self) -> Errors:
        return self.measured or self.errors_on(TABLES)

    def errors_on(self, tables: int) -> Errors:
        """Expected errors, measured on at most so many simulated tables."""
        given = self.layout, self.problem, self.mechanism, self.method, self.guess, self.derived
        return errors(*given, tables)


def levels_of(table: Table) -> tuple[Level, ...]:
    """Describe every level of a table, and the sums that are written besides; errors are measured when asked for."""
    laid, more, shares, found = table.layout, table.derived, table.problem.shares, []
    for i, name in enumerate(laid.levels):
        rows = np.flatnonzero(laid.level_of == i)
        noisy = rows[~table.standing.as_in_the_data[rows]]
        words = _noise(table.mechanism, noisy) if noisy.size else ""
        if words and laid.asked.sum_of is not None:
            words = f"{words}, in steps of {laid.asked.sum_of.step:f}"
        share = None if shares is None else str(shares.get(name, 0))
        laws = _laws(table.mechanism, rows)
        found.append(_level(table, name, rows, words, table.errors.levels[i], share, laws))
    if more is not None:
        groups = [laid.query.n + np.flatnonzero(more.group_of == i) for i in range(len(more.titles))]
        besides = zip(more.titles, groups, table.errors.more, strict=True)
        found += [_level(table, name, rows, SUMMED, errors, None, []) for name, rows, errors in besides]
    return tuple(found)


def _level(
    table: Table, name: str, rows: Ints, words: str, errors: LevelErrors, share: str | None, laws: list[Noise]
) -> Level:
    stands, figures = table.standing, rows.size
    counts = [int(each[rows].sum()) for each in (stands.exact, stands.follows, stands.defined)]
    told = zip(counts, (PUBLISHED, FOLLOWS, DEFINED), strict=True)
    known = [why if count == figures else f"{count:,} of {figures:,} {why}" for count, why in told if count]
    exact = sum(counts) == figures
    return Level(
        level=name,
        figures=figures,
        exact=exact,
        published=counts[0],
        follows=counts[1],
        share=share,
        noise=laws,
        in_words=f"none: {', '.join(known)}" if exact else "; ".join([words, *known]),
        expected_absolute_error=0.0 if exact else errors.absolute if errors.known else None,
        interval_width=0.0 if exact else errors.width if errors.known else None,
    )


def _laws(mechanism: Mechanism, outputs: Ints) -> list[Noise]:
    """The noise of some outputs before anything is made to hold; that on residuals is said residual by residual."""
    law = mechanism.base.law
    if mechanism.source.law == RESIDUALS:
        return []
    which = np.zeros(law.n, dtype=np.int64) if law.which is None else law.which
    found = []
    for number, figures in zip(*np.unique(which[outputs], return_counts=True), strict=True):
        one: dict[str, Any] = {"law": None, "scale": None, "parameter": None}
        parameter = law.scale_values[number]
        if parameter is not None:
            scale = float(parameter) if law.kind == "laplace" else math.sqrt(parameter)
            one = {"law": law.kind, "scale": scale, "parameter": str(Fraction(parameter))}
        found.append(Noise(whole=law.integer, figures=int(figures), **one))
    return found


def _noise(mechanism: Mechanism, outputs: Any) -> str:
    """The noise of some outputs in words, before anything is made to hold; noise made for what holds by its errors."""
    if mechanism.source.law == RESIDUALS:
        found = measured_deviations(mechanism)[outputs]
        least, most = (f"{end:.4g}" for end in (found.min(), found.max()))
        return f"Gaussian on residuals, standard deviation {least if least == most else f'{least} to {most}'}"
    if mechanism.source.law is not None:
        found = mechanism.standard_error()[outputs]
        found[found < NOTHING * mechanism.standard_error().max()] = 0
        least, most = (f"{end:.4g}" for end in (found.min(), found.max()))
        return f"{mechanism.method}, standard error {least if least == most else f'{least} to {most}'}"
    law = mechanism.base.law
    which = {0} if law.which is None else {int(i) for i in np.unique(law.which[outputs])}
    words = []
    for i in sorted(which):
        one: Any = law.laws[i]
        if one is None:
            words.append("not measured")
            continue
        scale = float(one.scale) if law.kind == "laplace" else float(one.sigma2) ** 0.5
        words.append(f"{'integer ' if law.integer else ''}{law.kind.capitalize()}, scale {scale:.4g}")
    return " or ".join(words)


# --- how wrong figures of different sizes will be: measured on a made-up public table, and which way they err --------

#: Numbers among all simulated tables, simulated tables at most, and the largest table that is simulated for a picture.
NUMBERS_BY_SIZE, TABLES_BY_SIZE, SOLVED_BY_SIZE, LARGEST_SIZED = 150_000, 200, 20, 100_000
#: Bins of sizes: their ends grow by half a power of ten; bins with fewer numbers tell nothing.
HALF, FEWEST = 10**0.5, 100
#: The typical count of a cell of a table of which nobody guesses one, and how far sizes reach beyond it.
TYPICAL, BEYOND = 100.0, 10.0


@dataclass(frozen=True)
class Sizes:
    """Mean size, mean absolute error and bias (mean error) of figures of one level, bin by bin."""

    level: str
    size: tuple[float, ...]
    absolute: tuple[float, ...]
    bias: tuple[float, ...]
    tables: int

    @property
    def rows(self) -> tuple[tuple[float, float, float], ...]:
        return tuple(zip(self.size, self.absolute, self.bias, strict=True))


def errors_by_size(table: Table) -> Sizes | None:
    """Measure the errors of the level with most figures at made-up public counts; None where nobody can, or need.

    Errors whose law does not depend on the data are the same at every size.
    """
    layout = table.layout
    if table.errors.basis == LAW or layout.query.n > LARGEST_SIZED:
        return None
    counts = spread_counts(table)
    if counts is None:
        return None
    slow = {SOLVED, *IN_AREAS} & set(table.mechanism.method.split(", "))
    most = SOLVED_BY_SIZE if slow else TABLES_BY_SIZE
    tables = int(np.clip(NUMBERS_BY_SIZE // layout.query.n, 1, most))
    try:
        drawn = table.mechanism.simulate(counts, tables, seeded(SEED)) - counts
    except Refused:
        return None
    level = int(np.bincount(layout.level_of).argmax())
    at_level = layout.level_of == level
    sizes, found = counts[at_level], drawn[:, at_level]
    bins = np.where(sizes > 0, np.floor(np.log(np.maximum(sizes, 1)) / math.log(HALF)) + 1, 0).astype(np.int64)
    kept = [each for each in np.unique(bins) if (bins == each).sum() * tables >= FEWEST]
    if len(kept) < 2:
        return None
    unit = 1.0 if layout.asked.sum_of is None else float(layout.asked.sum_of.unit)
    return Sizes(
        layout.levels[level],
        tuple(unit * float(sizes[bins == each].mean()) for each in kept),
        tuple(unit * float(np.abs(found[:, bins == each]).mean()) for each in kept),
        tuple(unit * float(found[:, bins == each].mean()) for each in kept),
        tables,
    )


def spread_counts(table: Table) -> npt.NDArray[np.int64] | None:
    """The guess of the spec if it is a whole table, or else public counts of all sizes up to ten times a typical one.

    Where these would violate what must hold, the guess; None where there is none either.
    """
    asked, cells = table.layout.asked.guess, table.layout.query.cells
    if isinstance(asked, str) or cells is None:
        return table.guess
    typical = (TYPICAL if asked is None else max(float(asked), 1.0)) * table.layout.asked.typical
    reach = math.log1p(BEYOND * typical)
    found = public_answer(table, np.expm1(np.random.default_rng(SEED).uniform(0, reach, cells)).astype(np.int64))
    return table.guess if found is None else found


def public_answer(table: Table, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64] | None:
    """The answer for public counts of the cells; None where it is too large, or would violate what must hold."""
    if table.holding.impossible is not None:
        counts = np.where(table.holding.impossible, 0, counts)
    try:
        answer = np.asarray(table.layout.query.answer(counts), dtype=np.int64)
    except Refused:  # a guess near the limit of whole numbers
        return None
    held = table.holding.all
    return answer if held is None or held.system(table.layout.query.n).violation(answer) is None else None
