"""The report of an audit: what was tested, how, and whether anything was refuted."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import Any

from holdfast.auditing.claims import EXACT, NOT_REFUTED, VIOLATED, Evidence
from holdfast.auditing.counting import FALSE_ALARM
from holdfast.privacy import Guarantee

#: Version of the JSON form.
SCHEMA = "holdfast-audit-1"


@dataclass(frozen=True)
class Finding:
    """What was found about one statement: the strongest evidence, or why there is none."""

    statement: Guarantee
    evidence: Evidence | None
    pairs: int
    draws: int
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """ "violated" or "not refuted"."""
        return VIOLATED if self.evidence is not None and self.evidence.margin > 0 else NOT_REFUTED

    def __str__(self) -> str:
        what = f"the statement about {self.statement.neighbours} (scope {self.statement.scope})"
        found = self.evidence
        if found is None:
            return f"{NOT_REFUTED}: {what} was not tested: {'; '.join(self.notes)}"
        at = f" at δ = {found.delta:.3g}" if found.delta else ""
        how = "by listing both laws" if found.how == EXACT else "by counting draws"
        said = f"needs ε ≥ {found.epsilon:.4f}{at}, says {found.claimed:.4f}" if found.epsilon > 0 else "nothing found"
        words = f"{self.verdict}: {what} {said} ({how}: {found.event}; {found.pair})"
        return "; ".join([words, *self.notes])


@dataclass(frozen=True)
class Audit:
    """The report of `audit`: one finding per statement. str() is for people, `to_json` for scripts.

    All data in it were made up. What was refuted by listing is refuted without any chance of error.

    Args:
        subject: what was audited, in words.
        findings: one per statement: whether it was refuted, the ε found, the pair of data and the event that show it.
        tests: how many events were counted on fresh draws.
        false_alarm: the chance that draws refute any true statement, over everything that was tested.

    Example:
        >>> import holdfast as hf
        >>> report = hf.audit(hf.laplace(hf.histogram(2), epsilon=1), seconds=0.2)
        >>> report.verdict, report.false_alarm
        ('not refuted', 1e-09)
    """

    subject: str
    findings: tuple[Finding, ...]
    tests: int
    false_alarm: float = FALSE_ALARM

    @property
    def verdict(self) -> str:
        """ "violated" where any statement was refuted, otherwise "not refuted"."""
        return VIOLATED if any(each.verdict == VIOLATED for each in self.findings) else NOT_REFUTED

    @property
    def violated(self) -> bool:
        """Whether a statement was refuted."""
        return self.verdict == VIOLATED

    @property
    def worst(self) -> Finding:
        """The finding that is farthest beyond, or nearest to, what its statement says."""
        return max(self.findings, key=lambda each: -math.inf if each.evidence is None else each.evidence.margin)

    @property
    def epsilon(self) -> float:
        """The strongest lower bound on ε, at `delta`; 0 where nothing was found."""
        found = self.worst.evidence
        return 0.0 if found is None else max(0.0, found.epsilon)

    @property
    def delta(self) -> float:
        """The δ at which `epsilon` is a lower bound."""
        return 0.0 if self.worst.evidence is None else self.worst.evidence.delta

    @property
    def how(self) -> str | None:
        """How the strongest bound was found, "exact" or "sampled"; None where there is none."""
        return None if self.worst.evidence is None else self.worst.evidence.how

    @property
    def confidence(self) -> float:
        """How sure the strongest bound is."""
        return 1.0 if self.how == EXACT else 1.0 - self.false_alarm

    @property
    def pair(self) -> str:
        """The made-up neighbouring data of the strongest bound, in words."""
        return "" if self.worst.evidence is None else self.worst.evidence.pair

    def __str__(self) -> str:
        lines = [f"{self.verdict}: {self.subject}", *(f"  {each}" for each in self.findings)]
        lines.append(
            f"  {self.tests} events were counted on fresh draws; the chance of a false alarm is at most "
            f"{self.false_alarm:g} in all. What is not refuted is not thereby proved."
        )
        return "\n".join(lines)

    def as_mapping(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return {
            "schema": SCHEMA,
            "subject": self.subject,
            "verdict": self.verdict,
            "epsilon": _number(self.epsilon),
            "delta": self.delta,
            "confidence": self.confidence,
            "how": self.how,
            "tests": self.tests,
            "false_alarm": self.false_alarm,
            "findings": [
                {
                    "verdict": each.verdict,
                    "statement": each.statement.as_mapping(),
                    "pairs": each.pairs,
                    "draws": each.draws,
                    "notes": list(each.notes),
                    "evidence": None if each.evidence is None else _plain(each.evidence),
                }
                for each in self.findings
            ],
        }

    def to_json(self) -> str:
        """Return the report as JSON text."""
        return json.dumps(self.as_mapping(), ensure_ascii=False, allow_nan=False)


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else "infinity" if value > 0 else "-infinity"


def _plain(found: Evidence) -> dict[str, Any]:
    plain = asdict(found)
    for name in ("margin", "epsilon"):
        plain[name] = _number(plain[name])
    return plain | {"one": list(found.one), "other": list(found.other)}
