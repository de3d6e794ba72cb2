"""What a reproduction says: figures beside the printed ones, claims that were put to the test, pictures, a verdict.

A verdict is never written down: it follows from claims, each of which was computed and could have come out otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.arrays import Floats
from holdfast.pictures import Picture, number
from holdfast.randomness import Stream, seeded

REPRODUCED, CORRECTED, DIFFERS, EXTENDED = "reproduced", "corrected", "differs", "extended"


@dataclass(frozen=True)
class Study:
    """How a reproduction runs: a folder of data (None: data are made up), its effort as a part of the usual, a seed."""

    data: Path | None = None
    effort: float = 1.0
    seed: int = 7

    def times(self, usual: int, least: int = 2) -> int:
        """How many repetitions to make where `usual` are made with full effort."""
        return max(least, round(usual * self.effort))

    def scaled(self, usual: int) -> int:
        """How large made-up data are along an axis that has this size in the paper: smaller with less effort."""
        return usual if self.effort >= 1 else max(2 if usual > 1 else 1, round(usual * self.effort**0.5))

    def stream(self) -> Stream:
        return seeded(self.seed)

    def generator(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)


@dataclass(frozen=True)
class Row:
    """One figure: what it is, as printed (None: the paper has none) and as computed, with a standard error."""

    what: str
    printed: float | str | None
    computed: float | str
    error: float = math.nan

    @classmethod
    def of(cls, what: str, printed: float | str | None, values: Any) -> Row:
        found = np.asarray(values, dtype=np.float64)
        return cls(what, printed, float(found.mean()), standard_error(found))

    def words(self) -> tuple[str, str, str]:
        """The figure, the printed one and the computed one as text."""
        if isinstance(self.computed, str) or not 0 < self.error < math.inf:
            return self.what, _shown(self.printed), _shown(self.computed)
        # As many digits as the standard error lets mean something: two of its own.
        digits = max(0, 1 - math.floor(math.log10(self.error)))
        computed = f"{self.computed:,.{digits}f} ± {self.error:,.{digits}f}".replace("-", "−")
        return self.what, _shown(self.printed), computed


def standard_error(values: Floats) -> float:
    return float(values.std(ddof=1) / math.sqrt(values.size)) if values.size > 1 else math.nan


def _shown(value: float | str | None) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return "∞" if math.isinf(value) else f"{value:.4g}".replace("-", "−") if abs(value) < 1000 else number(value)


@dataclass(frozen=True)
class Claim:
    """A sentence that was put to the test. `ours`: a correction, not what the paper says."""

    words: str
    holds: bool
    because: str
    ours: bool = False


@dataclass(frozen=True)
class Findings:
    """What an item found; `data` says on which data, where there are any."""

    claims: tuple[Claim, ...]
    rows: tuple[Row, ...] = ()
    pictures: tuple[tuple[str, Picture], ...] = ()
    data: str = ""

    @property
    def verdict(self) -> str:
        """Reproduced: all the paper says holds. Corrected: something does not, and what we say instead does.

        Extended: the paper only names it, and what we say holds. Differs: anything else.
        """
        printed = [claim.holds for claim in self.claims if not claim.ours]
        instead = [claim.holds for claim in self.claims if claim.ours]
        if not all(instead):
            return DIFFERS
        if not printed:
            return EXTENDED
        if all(printed):
            return REPRODUCED
        return CORRECTED if instead else DIFFERS

    @property
    def why(self) -> str:
        """What failed, in the claims' own words; empty where nothing did."""
        failed = [f"{claim.words}: {claim.because}" for claim in self.claims if not claim.holds]
        return "; ".join(failed)


@dataclass(frozen=True)
class Reproduction:
    """Findings with the name and title of their item, what the paper prints, and how long they took."""

    name: str
    paper: str
    title: str
    printed: str
    findings: Findings
    seconds: float

    @property
    def verdict(self) -> str:
        return self.findings.verdict

    def lines(self) -> list[str]:
        found = self.findings
        told = [f"{self.title} ({self.paper})", f"prints: {self.printed}"]
        told += [f"data: {found.data}"] if found.data else []
        if found.rows:
            told += ["", *columns(["", "printed", "computed"], [row.words() for row in found.rows])]
        told += ["", *(f"{_mark(claim)} {claim.words}: {claim.because}" for claim in found.claims)]
        return [*told, "", f"verdict: {self.verdict}; {self.seconds:.1f} s"]

    def as_mapping(self) -> dict[str, Any]:
        found = self.findings
        rows = [
            {
                "what": row.what,
                "printed": row.printed,
                "computed": row.computed if isinstance(row.computed, str) or math.isfinite(row.computed) else None,
                "standard_error": row.error if math.isfinite(row.error) else None,
            }
            for row in found.rows
        ]
        claims = [
            {"words": c.words, "holds": bool(c.holds), "because": c.because, "ours": c.ours} for c in found.claims
        ]
        about = {"name": self.name, "paper": self.paper, "title": self.title, "printed": self.printed}
        told = {"data": found.data, "verdict": self.verdict, "seconds": round(self.seconds, 2)}
        return {**about, **told, "rows": rows, "claims": claims}


def _mark(claim: Claim) -> str:
    return ("ours, holds:" if claim.ours else "holds:") if claim.holds else "FAILS:"


def columns(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    return ["  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)) for row in [head, *rows]]
