"""One table of a job as data: its public shape, what must hold, the mechanism that makes it and what that promises."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from holdfast.arrays import Ints, Owner
from holdfast.mechanism.mechanism import Mechanism
from holdfast.privacy import Guarantee
from holdfast.privacy.protection import Protection
from holdfast.release.job.choosing import Compared
from holdfast.release.job.errors import Errors, errors
from holdfast.release.job.methods import Problem
from holdfast.release.job.standing import Standing
from holdfast.release.job.unprotected import Unprotected
from holdfast.release.table.derived import Derived
from holdfast.release.table.division import Division
from holdfast.release.table.laid import LaidTable


@dataclass(frozen=True, eq=False)
class Table(LaidTable, Owner):
    """One table of a job.

    `problem`: what its method must respect. `guess`: the answer for the public guess of the spec. `comparison`: the
    methods that came into question. `division`: who makes the table, where agents do. `guarantees`: every statement
    that holds, of which the budget counts `counted`. `standing`: how every output is known. `derived`: rows that are
    written besides the outputs, totals over categories and exact margins not asked for. `unprotected`: everything in it
    that no statement protects.
    `protects`: how many records must change together, column by column, and how strongly that is hidden (THEORY §12);
    None where no figure is exact.
    """

    problem: Problem
    guess: Ints | None
    comparison: tuple[Compared, ...]
    mechanism: Mechanism
    division: Division | None
    guarantees: tuple[Guarantee, ...]
    counted: Guarantee
    standing: Standing
    derived: Derived | None
    unprotected: tuple[Unprotected, ...]
    protects: Protection | None

    @cached_property
    def chosen(self) -> Compared:
        """The method that was chosen among those compared."""
        return next(each for each in self.comparison if each.chosen)

    @property
    def record_columns(self) -> tuple[str, ...]:
        """The columns of synthetic records: those of the data, without the level and a root of the spec's own."""
        left_out = ("level", self.layout.asked.root, *self.layout.asked.recode)
        return tuple(column for column in self.layout.columns if column not in left_out)

    @cached_property
    def errors(self) -> Errors:
        """Expected errors per level, measured on simulated tables when first asked for."""
        known = self.chosen.errors
        return known or errors(self.layout, self.problem, self.mechanism, self.chosen.method, self.guess, self.derived)
