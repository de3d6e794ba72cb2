"""The levels or margins of a table: the noise of each, and how wrong its figures will be."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.mechanism.mechanism import Mechanism
from holdfast.release.job.errors import NOTHING
from holdfast.release.job.table import Table
from holdfast.release.table.wording import DEFINED, FOLLOWS, PUBLISHED


@dataclass(frozen=True)
class Level:
    """One level or margin of a table: its noise and its expected errors.

    `exact`: no figure of it has noise. `published`, `follows`: how many figures are published exactly, and how many
    follow from such figures.
    """

    name: str
    figures: int
    noise: str
    absolute_error: float
    interval_width: float
    exact: bool
    published: int
    follows: int

    def as_mapping(self) -> dict[str, Any]:
        """Return plain values that JSON can hold; null for errors that nobody can tell."""
        unknown = (name for name in ("absolute_error", "interval_width") if math.isinf(getattr(self, name)))
        return vars(self) | dict.fromkeys(unknown)


def levels_of(table: Table) -> tuple[Level, ...]:
    """Describe every level of a table, exact margins that are written besides too; errors are measured when asked."""
    return (*(_level(table, number) for number in range(len(table.layout.levels))), *_margins(table))


def _level(table: Table, number: int) -> Level:
    stands, rows = table.standing, table.layout.level_of == number
    figures = int(rows.sum())
    published, follows, defined = (int((each & rows).sum()) for each in (stands.exact, stands.follows, stands.defined))
    exact = published + follows + defined == figures
    told = ((published, PUBLISHED), (follows, FOLLOWS), (defined, DEFINED))
    known = [why if count == figures else f"{count:,} of {figures:,} {why}" for count, why in told if count]
    noise = "none" if exact else _noise(table.mechanism, rows & ~stands.as_in_the_data)
    error, width = (0.0, 0.0) if exact else (table.errors.absolute[number], table.errors.width[number])
    words = f"{noise}: {', '.join(known)}" if exact else "; ".join([noise, *known])
    return Level(table.layout.levels[number], figures, words, error, width, exact, published, follows)


def _margins(table: Table) -> list[Level]:
    """The exact margins behind the outputs."""
    more = table.derived
    if more is None or not more.exact.any():
        return []
    names, counts = np.unique(more.columns["level"][more.exact].astype(str), return_counts=True)
    return [
        Level(str(name), int(count), f"none: {PUBLISHED}", 0.0, 0.0, True, int(count), 0)
        for name, count in zip(names, counts, strict=True)
    ]


def _noise(mechanism: Mechanism, outputs: Any) -> str:
    """The noise of some outputs in words, before anything is made to hold; noise made for what holds by its errors."""
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
