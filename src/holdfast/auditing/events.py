"""Events: which values of a score speak for one law; chosen on some draws, to be counted on others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.auditing.claims import Claim
from holdfast.auditing.counting import rough_limits
from holdfast.auditing.scores import Score

Values = npt.NDArray[Any]

#: Thresholds that are tried per score.
THRESHOLDS = 160
SIGNS = {"at least": np.greater_equal, "at most": np.less_equal, "equal to": np.equal}


@dataclass(frozen=True, eq=False)
class Event:
    """All outputs whose score is at least, at most or equal to a number."""

    score: Score
    sign: str
    threshold: float
    promise: float

    def __str__(self) -> str:
        return f"{self.score.words} {self.sign} {self.threshold:.6g}"

    def count(self, values: Values) -> int:
        """How many of the draws (size, n) lie in it."""
        return int(SIGNS[self.sign](self.score.of(values), self.threshold).sum())


def best_event(found: list[Score], one: Values, other: Values, claim: Claim, confirming: int) -> Event | None:
    """The event that speaks most against a claim, as P_one(E) > e^ε·P_other(E) + δ, by about what would be proved."""
    best: Event | None = None
    for score in found:
        a, b = np.sort(score.of(one)), np.sort(score.of(other))
        pooled = np.unique(np.concatenate([a, b]))
        if len(pooled) > THRESHOLDS:
            pooled = np.unique(np.quantile(pooled, np.linspace(0, 1, THRESHOLDS), method="nearest"))
            ends = np.quantile(np.concatenate([a, b]), np.linspace(0, 1, THRESHOLDS), method="nearest")
            pooled = np.unique(np.concatenate([pooled, ends]))
        ranks = [(np.searchsorted(part, pooled), np.searchsorted(part, pooled, side="right")) for part in (a, b)]
        counts = {
            "at least": [len(part) - low for part, (low, _) in zip((a, b), ranks, strict=True)],
            "at most": [high for _, high in ranks],
            "equal to": [high - low for low, high in ranks],
        }
        for sign, (mine, against) in counts.items():
            low, high = rough_limits(mine.astype(float), against.astype(float), (len(a), len(b)), confirming)
            margins, _ = claim.margin(low, high)
            k = int(np.argmax(margins))
            if best is None or margins[k] > best.promise:
                best = Event(score, sign, float(pooled[k]), float(margins[k]))
    return best
