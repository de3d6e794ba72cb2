"""All figures of a table that nothing protects, level by level: those that are published exactly, and what they fix.

A statement names the first few of them only; this is the whole list, short because rows that follow each other are
written as runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.constraints import System
from holdfast.given.prices.unions import ONE_SIDE, union_price
from holdfast.mechanism.mechanism import Mechanism
from holdfast.privacy.invariants import moves_within, never_altered, open_frozen, stages
from holdfast.release.job.standing import Standing, unmoved
from holdfast.release.table.derived import Derived
from holdfast.release.table.domain import Layout
from holdfast.release.table.holding import Holding
from holdfast.release.table.wording import FOLLOWS, PUBLISHED, words_about

IDLE = "follows from exact figures, so that the noise on it protects nothing"
UNMOVED = "no replacement of records alters it"
FIXED = "no allowed change of records alters it"
OUT_OF_REACH = "no allowed change of so many records alters it"
DETERMINED = "determined by the exact figures"
BEFORE = "published exactly before, in {}, so that the noise on it protects nothing"
#: Up to so many figures of a level are named one by one in words.
NAMED = 12


@dataclass(frozen=True)
class Unprotected:
    """Figures of one level or margin. `rows` are the first and last row of every run in the released table.

    Exact figures that are sums of outputs have rows behind them. `records`: how many records the allowed changes
    alter together at most, where more might alter these figures; None for what is published or never changes.
    """

    why: str
    level: str
    figures: int
    of: int
    rows: tuple[tuple[int, int], ...]
    records: int | None
    names: tuple[str, ...]

    def as_mapping(self) -> dict[str, Any]:
        """Return plain values."""
        kept = ("why", "level", "figures", "of", "records")
        return {name: getattr(self, name) for name in kept} | {"rows": [list(run) for run in self.rows]}

    @property
    def named(self) -> bool:
        """Whether the words say exactly which figures are meant."""
        return self.figures == self.of or bool(self.names)

    def __str__(self) -> str:
        if self.figures == self.of and self.figures > 1:
            return f"{self.level} (all {self.of:,} figures)"
        if self.names:
            return f"{self.level} ({', '.join(self.names)})" if self.names != (self.level,) else self.level
        if self.figures == self.of:
            return self.level
        return f"{self.level} ({self.figures:,} of {self.of:,} figures)"


def unprotected(
    layout: Layout, holding: Holding, mechanism: Mechanism, stands: Standing, more: Derived | None
) -> tuple[Unprotected, ...]:
    """Return everything in a table that no statement protects, in the order of its levels; `more` are its sums."""
    found: list[Unprotected] = []
    for rows, why in ((stands.exact, PUBLISHED), (stands.follows, FOLLOWS), (stands.idle, IDLE)):
        found += _by_level(layout, rows, why, None, more)
    seen = stands.as_in_the_data | stands.idle
    still = unmoved(layout, mechanism.base.neighbours.kind, more, holding.impossible) & ~seen
    found += _by_level(layout, still, UNMOVED, None, more)
    seen |= still
    for records, frozen in _frozen(mechanism).items():
        fixed = np.zeros(seen.size, dtype=bool)
        fixed[frozen] = True
        found += _by_level(layout, fixed & ~seen, FIXED if records is None else OUT_OF_REACH, records, more)
    statement = mechanism.guarantee
    if ONE_SIDE in statement.unprotected:
        found.append(Unprotected(OUT_OF_REACH, "either", 1, 1, (), statement.records, ("which side holds",)))
    return tuple(found)


def listed(layout: Layout, rows: npt.NDArray[np.int64], why: str) -> tuple[Unprotected, ...]:
    """Return figures that are not protected for a reason, in the order of the levels."""
    chosen = np.zeros(layout.query.n, dtype=bool)
    chosen[rows] = True
    return tuple(_by_level(layout, chosen, why, None))


def in_words(table: str, found: Sequence[Unprotected]) -> list[str]:
    """Say what is not protected in a table, one sentence per reason."""
    sentences = []
    for why, records in dict.fromkeys((each.why, each.records) for each in found):
        alike = [each for each in found if (each.why, each.records) == (why, records)]
        reason = {FIXED: "no number of records alters", UNMOVED: "no replacement of records alters"}.get(why, why)
        if records is not None:
            reason = f"no allowed change of up to {records} record{'s' * (records > 1)} alters"
        where = "" if all(each.named for each in alike) else "; the certificate lists their rows"
        sentences.append(words_about(table, f"{reason}: {', '.join(map(str, alike))}{where}"))
    return sentences


def _by_level(
    layout: Layout, chosen: npt.NDArray[np.bool_], why: str, records: int | None, more: Derived | None = None
) -> list[Unprotected]:
    found = []
    for number, level in enumerate(layout.levels):
        at_level = np.flatnonzero(layout.level_of == number)
        rows = at_level[chosen[at_level]]
        if rows.size:
            few = rows.size <= NAMED
            names = tuple(str(name) for name in layout.query.labels[rows]) if few else ()
            found.append(Unprotected(why, level, int(rows.size), int(at_level.size), _runs(rows), records, names))
    if more is None:
        return found
    for number, title in enumerate(more.titles):
        group = np.flatnonzero(more.group_of == number)
        rows = group[chosen[layout.query.n + group]]
        if rows.size:
            names = tuple(more.labels[row] for row in rows) if rows.size <= NAMED else ()
            runs = _runs(rows + layout.query.n)
            found.append(Unprotected(why, title, int(rows.size), int(group.size), runs, records, names))
    return found


def _runs(rows: npt.NDArray[np.int64]) -> tuple[tuple[int, int], ...]:
    """The first and last of every run of rows that follow each other."""
    breaks = np.flatnonzero(np.diff(rows) > 1)
    first = rows[np.concatenate([[0], breaks + 1])]
    last = rows[np.concatenate([breaks, [rows.size - 1]])]
    return tuple(zip(first.tolist(), last.tolist(), strict=True))


def _frozen(mechanism: Mechanism) -> dict[int | None, npt.NDArray[np.int64]]:
    """The outputs that no allowed change alters, by how many records change together; None: by however many."""
    system, base = _system(mechanism), mechanism.base
    if system is None or base.query.cells is None:
        return {}
    if system.invariants.count:
        reached: dict[int | None, npt.NDArray[np.int64]] = {}
        for moves, frozen, never in stages(base, system):
            if not moves.everything:
                reached.setdefault(None, frozen[never[frozen]])
                reached[moves.records] = frozen[~never[frozen]]
        return reached
    if not any(statement.unprotected for statement in mechanism.guarantees):
        return {}  # nothing is fixed by what holds for all data
    if system.branches:
        price = union_price(base, system, mechanism.guarantee.neighbours)
        if price is not None:
            return {price.neighbours.records: np.array(price.frozen, dtype=np.int64)}
    space = replace(system, branches=()).null_space(invariants=False)
    moves = moves_within(base, space)
    frozen, never = open_frozen(moves, space), never_altered(base, space, moves)
    return {None: frozen[never[frozen]], moves.records: frozen[~never[frozen]]}


def _system(mechanism: Mechanism) -> System | None:
    """What the statements speak of: what the noise was made for or conditioned on, or else moved onto."""
    if mechanism.source.system is not None:
        return mechanism.source.system
    return mechanism.moves[0].problem.system if mechanism.moves else None
