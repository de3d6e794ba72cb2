"""The levels or margins of a table: the noise of each, and how wrong its figures will be."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.mechanism.mechanism import Mechanism
from holdfast.release.job.errors import NOTHING
from holdfast.release.job.table import Table


@dataclass(frozen=True)
class Level:
    """One level or margin of a table: its noise and its expected errors."""

    name: str
    figures: int
    noise: str
    absolute_error: float
    interval_width: float
    exact: bool

    def as_mapping(self) -> dict[str, Any]:
        """Return plain values that JSON can hold; null for errors that nobody can tell."""
        unknown = (name for name in ("absolute_error", "interval_width") if math.isinf(getattr(self, name)))
        return vars(self) | dict.fromkeys(unknown)


def levels_of(table: Table) -> tuple[Level, ...]:
    """Describe every level of a table; its errors are measured when first asked for."""
    found, exact = table.errors, _exact_levels(table)
    return tuple(
        Level(
            name,
            int((table.layout.level_of == i).sum()),
            _noise(table.mechanism, table.layout.level_of == i),
            found.absolute[i],
            found.width[i],
            exact[i],
        )
        for i, name in enumerate(table.layout.levels)
    )


def _exact_levels(table: Table) -> list[bool]:
    """Which levels are published exactly as a whole."""
    outputs = np.zeros(table.layout.query.n, dtype=bool)
    for figure in table.holding.account["exact"]:
        outputs[[rows[0] for rows in figure["rows"] if len(rows) == 1]] = True
    return [bool(outputs[table.layout.level_of == i].all()) for i in range(len(table.layout.levels))]


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
