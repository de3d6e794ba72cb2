"""Mechanisms, plans and releases side by side: what each promises, how wrong it is by level, what it leaves open."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Refused, listed, whole
from holdfast.domains.data_frames import frame_of
from holdfast.mechanism.mechanism import DATA_DEPENDENT
from holdfast.pictures import Picture, bars, card, number, table_of
from holdfast.privacy import Guarantee
from holdfast.privacy.odds import amounts, in_hundred
from holdfast.randomness import Stream, seeded
from holdfast.release.certificate.load import LoadedRelease
from holdfast.release.plan import Plan

EXPECTED = "a list of mechanisms, plans or releases"
#: The seed of comparisons: the same one twice says the same.
SEED = 5


@dataclass(frozen=True)
class Compared:
    """One of those compared. `errors`: expected absolute error by level, infinite where nobody can tell it."""

    name: str
    guarantee: Guarantee
    errors: Mapping[str, float]
    unprotected: tuple[str, ...]


@dataclass(frozen=True)
class Comparison:
    """Several mechanisms, plans or releases side by side."""

    rows: tuple[Compared, ...]

    @property
    def levels(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(level for row in self.rows for level in row.errors))

    def frame(self, backend: str | None = None) -> Any:
        """Return a data frame with one row per name and level; `backend` as in `Release.to_frame`."""
        pairs = [(row, level) for row in self.rows for level in row.errors]
        columns: dict[str, Any] = {"name": [row.name for row, _ in pairs], "level": [level for _, level in pairs]}
        columns["expected_absolute_error"] = [_known(row.errors[level]) for row, level in pairs]
        for field in ("epsilon", "delta", "rho", "mu", "scope", "status"):
            columns[field] = [getattr(row.guarantee, field) for row, _ in pairs]
        columns["records"] = [row.guarantee.records for row, _ in pairs]
        columns["right_guesses_in_100"] = [in_hundred(row.guarantee) for row, _ in pairs]
        columns["unprotected"] = ["; ".join(row.unprotected) for row, _ in pairs]
        return frame_of(columns, backend)

    def plot(self) -> Picture:
        """Draw the expected absolute errors, level by level; the least of each level stands out."""
        pairs = [(row, level) for level in self.levels for row in self.rows if level in row.errors]
        rows = [
            (f"{level}: {row.name}" if len(self.levels) > 1 else row.name, row.errors[level], 0.0)
            for row, level in pairs
        ]
        least = {level: min(row.errors[level] for row, its in pairs if its == level) for level in self.levels}
        best = [i for i, (row, level) in enumerate(pairs) if row.errors[level] == least[level]]
        if len(best) == len(pairs):
            return bars(rows, "expected absolute error")
        dark = "the least of its level" if len(self.levels) > 1 else "the least"
        return bars(rows, f"expected absolute error; dark: {dark}", best)

    def __repr__(self) -> str:
        told = (
            f"{row.name}: {', '.join(f'{level} {number(error)}' for level, error in row.errors.items())}"
            for row in self.rows
        )
        return f"<Comparison of expected absolute errors: {'; '.join(told)}>"

    def _repr_html_(self) -> str:
        head = ("", *self.levels, "promises", "not protected")
        rows = [
            (
                row.name,
                *(number(row.errors[level]) if level in row.errors else "" for level in self.levels),
                ", ".join(f"{sign} = {amount}" for sign, amount in amounts(row.guarantee)),
                "; ".join(row.unprotected) or "nothing is exact",
            )
            for row in self.rows
        ]
        return card("Comparison", "expected absolute error by level", table_of(head, rows), str(self.plot()))


def compare(
    items: Sequence[object] | Mapping[str, object],
    truth: npt.ArrayLike | None = None,
    size: int = 400,
    rng: Stream | None = None,
) -> Comparison:
    """Compare mechanisms, plans (`hf.job(spec).plan()`) and releases (`hf.load(folder)`), side by side.

    Args:
        items: what is compared; a mapping gives them names.
        truth: a public or a study's table, on which errors of mechanisms are measured; None: of the noise itself, where
            its law does not depend on the data.
        size: how many simulated releases.
        rng: None is a fixed seed.

    Example:
        >>> import holdfast as hf
        >>> tree = hf.Hierarchy.from_parents([-1, 0, 0])
        >>> plain = hf.laplace(hf.counts(tree), epsilon=1)
        >>> hf.compare({"plain": plain, "adds up": plain.given(hf.consistent(tree))}).levels
        ('level 0', 'level 1')
    """
    named = items.items() if isinstance(items, Mapping) else [(None, item) for item in listed("items", items, EXPECTED)]
    count = whole("size", size, at_least=1)
    found: list[Compared] = []
    for name, item in named:
        for row in _rows(item, truth, count, seeded(SEED) if rng is None else rng):
            called = row.name if name is None else f"{name}: {row.name}" if _several(item) else str(name)
            taken = sum(each.name == called or each.name.startswith(f"{called} #") for each in found)
            unlike = f"{called} #{taken + 1}" if taken else called
            found.append(Compared(unlike, row.guarantee, row.errors, row.unprotected))
    if not found:
        raise Refused("items must hold at least one mechanism, plan or release, found none")
    return Comparison(tuple(found))


def _several(item: Any) -> bool:
    return isinstance(item, (Plan, LoadedRelease)) and len(item.tables) > 1


def _rows(item: Any, truth: Any, size: int, stream: Stream) -> list[Compared]:
    """What one of those compared says, one row per table."""
    if isinstance(item, Plan):
        return [
            Compared(
                table.name if _several(item) else item.job.title,
                table.statements[0],
                {level.level: level.errors[0] for level in table.levels},
                tuple(map(str, table.unprotected)),
            )
            for table in item.tables
        ]
    if isinstance(item, LoadedRelease):
        return [
            Compared(
                table.name if _several(item) else item.certificate.title,
                table.statements[0],
                {level.level: level.errors[0] for level in table.noise_by_level},
                tuple(f"{each.level} ({each.figures:,} of {each.of:,} figures)" for each in table.unprotected),
            )
            for table in item.certificate.tables
        ]
    if not hasattr(item, "simulate") or not hasattr(item, "guarantee"):
        raise Refused(f"items must be mechanisms, plans or releases, found {type(item).__name__}")
    statement: Guarantee = item.guarantee
    return [Compared(_short(item), statement, _errors(item, truth, size, stream), statement.unprotected)]


def _short(mechanism: Any) -> str:
    return repr(mechanism).strip("<>").partition(": ")[2] or repr(mechanism)


def _errors(mechanism: Any, truth: Any, size: int, stream: Stream) -> dict[str, float]:
    """Mean absolute errors by level, measured; infinite where they depend on the data and no truth is given."""
    query = mechanism.query
    names = {"all figures": 0} if query.levels is None else dict(query.levels)
    level_of = np.zeros(query.n, dtype=np.int64) if query.level_of is None else query.level_of
    try:
        if truth is not None:
            exact = np.asarray(truth)
            drawn = np.asarray(mechanism.simulate(truth, size, stream)) - exact
        else:
            drawn = mechanism.noise(size, stream)
    except Refused as refusal:
        if truth is not None or str(refusal) != DATA_DEPENDENT:
            raise
        return dict.fromkeys(names, math.inf)
    absolute = np.abs(drawn).mean(axis=0)
    return {name: float(absolute[level_of == number].mean()) for name, number in names.items()}


def _known(error: float) -> float | None:
    return None if math.isinf(error) else error
