"""The levels or margins of a table: the noise of each, and how wrong its figures will be."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from holdfast.arrays import Ints
from holdfast.mechanism.mechanism import Mechanism
from holdfast.mechanism.published.linear import measured_deviations
from holdfast.mechanism.source import RESIDUALS
from holdfast.release.job.errors import NOTHING
from holdfast.release.job.table import Table
from holdfast.release.table.wording import DEFINED, FOLLOWS, PUBLISHED

#: The noise of rows that are sums of others.
SUMMED = "that of the figures that it adds up"


@dataclass(frozen=True)
class Level:
    """One level or margin of a table: its noise and its expected errors.

    `exact`: no figure of it has noise. `published`, `follows`: how many figures are published exactly, and how many
    follow from such figures. `share`: its part of the budget, where the spec divides it.
    """

    name: str
    figures: int
    noise: str
    absolute_error: float
    interval_width: float
    exact: bool
    published: int
    follows: int
    share: float | None = None

    def as_mapping(self) -> dict[str, Any]:
        """Return plain values that JSON can hold; null for errors that nobody can tell."""
        unknown = (name for name in ("absolute_error", "interval_width") if math.isinf(getattr(self, name)))
        return vars(self) | dict.fromkeys(unknown)


def levels_of(table: Table) -> tuple[Level, ...]:
    """Describe every level of a table, and the sums that are written besides; errors are measured when asked for."""
    laid, more, found = table.layout, table.derived, []
    shares = table.problem.shares
    for i, name in enumerate(laid.levels):
        rows = np.flatnonzero(laid.level_of == i)
        noisy = rows[~table.standing.as_in_the_data[rows]]
        noise = _noise(table.mechanism, noisy) if noisy.size else ""
        level = _level(table, name, rows, noise, (table.errors.absolute[i], table.errors.width[i]))
        part = None if shares is None else float(shares.get(name, 0) / sum(shares.values()))
        found.append(replace(level, share=part))
    if more is None:
        return tuple(found)
    for i, name in enumerate(more.titles):
        rows = laid.query.n + np.flatnonzero(more.group_of == i)
        found.append(_level(table, name, rows, SUMMED, table.errors.more[i]))
    return tuple(found)


def _level(table: Table, name: str, rows: Ints, noise: str, errors: tuple[float, float]) -> Level:
    stands, figures = table.standing, rows.size
    counts = [int(each[rows].sum()) for each in (stands.exact, stands.follows, stands.defined)]
    told = zip(counts, (PUBLISHED, FOLLOWS, DEFINED), strict=True)
    known = [why if count == figures else f"{count:,} of {figures:,} {why}" for count, why in told if count]
    exact = sum(counts) == figures
    words = f"none: {', '.join(known)}" if exact else "; ".join([noise, *known])
    return Level(name, figures, words, *((0.0, 0.0) if exact else errors), exact, counts[0], counts[1])


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
